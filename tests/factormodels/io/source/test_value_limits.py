"""A file is refused for the values that would be made of it, however few bytes describe them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factormodels.errors import InputError
from factormodels.io.json import count_values, decode, read_json_lines
from factormodels.io.networks.number_tokens import number_tokens
from factormodels.io.source.opening import VALUE_BYTES, size_limit
from factormodels.io.tables.arrow import arrow_records
from factormodels.io.tables.arrow_extent import extents
from factormodels.io.tables.arrow_messages import unpacked_sizes
from factormodels.io.tables.data_table import parse_table, read_table
from factormodels.io.tables.parquet_footer import declared_values
from factormodels.io.tables.records import json_records, read_content, table_records
from tests.memory import at_most
from tests.refusals import refused

MANY = 10**9
LONG = "x" * 10**5


def stream(column: pa.Array, compression: str | None = None) -> bytes:
    out = io.BytesIO()
    batch = pa.RecordBatch.from_arrays([column], ["c"])
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(out, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return out.getvalue()


def arrow_file(column: pa.Array) -> bytes:
    out = io.BytesIO()
    batch = pa.RecordBatch.from_arrays([column], ["c"])
    with pa.ipc.new_file(out, batch.schema) as writer:
        writer.write_batch(batch)
    return out.getvalue()


def parquet(column: pa.Array) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"c": column}), out)
    return out.getvalue()


def repeated(value: Any, times: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int8()), pa.array([value]))


def shared_view(times: int) -> pa.Array:
    _, view, text = pa.array([LONG], pa.string_view()).buffers()
    views = pa.py_buffer(view.to_pybytes() * times)
    return pa.Array.from_buffers(pa.string_view(), times, [None, views, text])


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "nulls": (lambda: stream(pa.nulls(MANY)), "1,000,000,000 rows × 1 column"),
    "nulls of a file": (lambda: arrow_file(pa.nulls(MANY)), "1,000,000,000 rows × 1 column"),
    "structs without fields": (
        lambda: stream(pa.StructArray.from_buffers(pa.struct([]), MANY, [None])),
        "1,000,000,000 rows × 1 column",
    ),
    "a list of nulls": (
        lambda: stream(pa.ListArray.from_arrays([0, MANY], pa.nulls(MANY))),
        "1,000,000,000 values",
    ),
    "lists of a declared size": (
        lambda: stream(pa.FixedSizeListArray.from_arrays(pa.nulls(MANY), MANY // 10)),
        "1,000,000,000 values",
    ),
    "runs": (
        lambda: stream(pa.RunEndEncodedArray.from_arrays(pa.array([MANY], pa.int32()), ["a"])),
        "1,000,000,000 rows × 1 column",
    ),
    "a list in every row, by a dictionary": (
        lambda: stream(repeated([1] * 10**4, 10**4)),
        "100,010,000 values",
    ),
    "a list in every row, by a run": (
        lambda: stream(
            pa.RunEndEncodedArray.from_arrays(
                pa.array([10**4], pa.int32()), pa.array([[1] * 10**4])
            )
        ),
        "100,010,000 values",
    ),
    "overlapping lists": (
        lambda: stream(
            pa.ListViewArray.from_arrays([0] * 10**4, [10**4] * 10**4, pa.array(range(10**4)))
        ),
        "100,000,000 values",
    ),
    "a long text in every row": (lambda: stream(repeated(LONG, 10**4)), "more than 128 MiB"),
    "overlapping texts": (lambda: stream(shared_view(10**4)), "more than 128 MiB"),
    "zeros, compressed": (
        lambda: stream(pa.array(np.zeros(2**18)).cast(pa.float64()), "zstd").replace(
            (2**21).to_bytes(8, "little"), (2**40).to_bytes(8, "little")
        ),
        "more than 128 MiB",
    ),
    "Parquet of equal numbers": (
        lambda: parquet(pa.array(np.zeros(10**7, np.int8))),
        "10,000,000 rows × 1 column",
    ),
    "Parquet of a list": (
        lambda: parquet(pa.ListArray.from_arrays([0, 10**7], pa.array(np.zeros(10**7, np.int8)))),
        "10,000,000 values",
    ),
    "Parquet of equal texts": (lambda: parquet(repeated(LONG, 10**4)), "more than 128 MiB"),
    "Parquet of equal texts in lists": (
        lambda: parquet(pa.array([[LONG] * 100] * 20)),
        "more than 128 MiB",
    ),
    "Parquet of equal bytes of one width": (
        lambda: parquet(pa.array([bytes(10**5)] * 2000, pa.binary(10**5))),
        "more than 128 MiB",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_small_binary_table_makes_no_more_values_than_are_allowed(name: str) -> None:
    make, amount = HOSTILE[name]
    content = make()
    assert len(content) < 2**20
    with at_most(32 * 2**20):
        refused(f"t: .*{amount}.*--max-size", arrow_records, [("t", content)])


def test_rows_of_a_csv_table_are_counted_before_one_is_made() -> None:
    with size_limit(100 * VALUE_BYTES):
        rows = table_records("p,label\n" + ".5,1\n" * 60, "t.csv")
        with pytest.raises(InputError, match=r"t\.csv: it holds 51 rows × 2 columns"):
            next(rows)
        # Ends of lines within quotes are no rows.
        records = list(table_records("p,label\n" + '"5\n\n\n\n",1\n' * 40, "t.csv"))
    assert [record.value for record in records] == 40 * [{"p": "5\n\n\n\n", "label": "1"}]


def test_the_message_of_too_many_values_names_the_fix_that_works() -> None:
    content = parquet(pa.array(np.zeros(70_000, np.int8)))
    with size_limit(2**20), pytest.raises(InputError) as refusal:
        arrow_records([("t.parquet", content)])
    assert str(refusal.value) == (
        "t.parquet: it holds 70,000 rows × 1 column, and 1 MiB allow 65,536 values; if that is "
        "right, allow more with the option --max-size before the command (factormodels --max-size "
        "2M ...)"
    )
    with size_limit(2 * 2**20):
        assert len(arrow_records([("t.parquet", content)]).rows) == 70_000


ARRAYS = {
    "numbers": pa.array([1, None, 3]),
    "texts": pa.array(["a", None, "äb"]),
    "views": pa.array(["a", None, "a text beyond twelve bytes"], pa.string_view()),
    "lists": pa.array([["a", "bc"], None, []]),
    "large lists": pa.array([[1, 2], [], [3]], pa.large_list(pa.int8())),
    "fixed lists": pa.array([[1, 2], [3, 4], None], pa.list_(pa.int8(), 2)),
    "list views": pa.array([["a"], ["b", "c"], None], pa.list_view(pa.string())),
    "structs": pa.array([{"a": 1, "b": ["x", "y"]}, {"a": None, "b": None}, None]),
    "maps": pa.array([[("k", 1)], [], [("l", 2), ("m", 3)]], pa.map_(pa.string(), pa.int8())),
    "dictionary": pa.array(["a", "bc", None, "bc"]).dictionary_encode(),
    "dictionary of nulls": pa.array([None, None], pa.dictionary(pa.int8(), pa.string())),
    "runs": pa.RunEndEncodedArray.from_arrays([2, 3, 6], ["a", "bc", None]),
    "dense union": pa.UnionArray.from_dense(
        pa.array([0, 1, 1], pa.int8()),
        pa.array([0, 0, 1], pa.int32()),
        [pa.array([7]), pa.array(["a", "bcd"])],
    ),
    "sparse union": pa.UnionArray.from_sparse(
        pa.array([0, 1, 1], pa.int8()), [pa.array([7, 8, 9]), pa.array(["-", "a", "bcd"])]
    ),
    "bytes of one width": pa.array([b"abc", b"def"], pa.binary(3)),
}


def of_python(value: Any) -> tuple[int, int]:
    """Number of values and bytes of texts of a value, counted by walking through it."""
    if isinstance(value, str | bytes):
        return 1, len(value.encode() if isinstance(value, str) else value)
    if isinstance(value, dict):
        inner = [of_python(each) for each in value.values()]
    elif isinstance(value, list):
        # An entry of a map is a pair, which is not counted by itself.
        entries = [part for each in value for part in (each if type(each) is tuple else (each,))]
        inner = [of_python(each) for each in entries]
    else:
        return 1, 0
    return 1 + sum(values for values, _ in inner), sum(texts for _, texts in inner)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("start", [0, 1])
def test_extents_are_those_of_the_values(name: str, start: int) -> None:
    array = ARRAYS[name].slice(start)
    expected = [of_python(value) for value in array.to_pylist()]
    sizes = [tuple(map(int, row)) for row in extents(array, lambda _: None)]
    if name == "structs":
        # A missing structure counts as if its fields were there, and missing.
        expected[-1] = (1 + 2, 0)
    if name == "bytes of one width":
        assert [texts for _, texts in sizes] == [3] * len(array)
    assert sizes == expected


def test_compressed_lengths_are_those_of_the_buffers() -> None:
    texts = pa.array(["a" * 5000, "b" * 3000])
    for content in (stream(texts, "zstd"), stream(texts, "lz4")):
        # Offsets, 12 bytes, are too short to gain from compression.
        assert [size for size in unpacked_sizes(content) if size > 12] == [8000]
    assert list(unpacked_sizes(stream(texts))) == []
    refused("damaged", arrow_records, [("t", stream(texts, "zstd")[:200])])


def test_declared_values_are_those_that_were_written() -> None:
    out = io.BytesIO()
    table = pa.table(
        {
            "a": pa.array(range(5)),
            "b": pa.array([[1, 2], None, [], [3], [4, 5, 6]]),
            "c": pa.array([{"d": "x", "e": [True]}] * 5),
        }
    )
    pq.write_table(table, out, row_group_size=3)
    content = out.getvalue()
    metadata = pq.read_metadata(io.BytesIO(content))
    expected = [
        [metadata.row_group(group).column(at).num_values for at in range(metadata.num_columns)]
        for group in range(2)
    ]
    assert declared_values(content) == expected == [[3, 4, 3, 3], [2, 4, 2, 2]]
    with pytest.raises(ValueError, match="before its start"):
        declared_values(content[-200:])


def test_the_files_of_a_folder_count_together(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"part-{number}.parquet").write_bytes(parquet(pa.array([0.5] * 400)))
    with size_limit(1200 * VALUE_BYTES):
        assert len(read_table(tmp_path).rows) == 1200
    with size_limit(1100 * VALUE_BYTES):
        refused("part-2.parquet: it holds 1,200 rows × 1 column", read_table, tmp_path)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1", 1),
        ('{"a": 1, "b": [2, 3]}', 7),
        ('"a, b: [c] {d}"', 1),
        (r'["\",,,\\", "\\"]', 3),
        ("[[1], [2]]", 5),
    ],
)
def test_values_of_json_are_counted_outside_its_texts(text: str, values: int) -> None:
    assert count_values(text) == values


def test_json_of_many_values_is_refused_and_of_long_texts_read(tmp_path: Path) -> None:
    with size_limit(100 * VALUE_BYTES):
        refused("t: it holds 201 values", decode, json.dumps([0] * 200), "t")
        refused("t: it holds 401 values", parse_table, json.dumps([{}] * 200), "t")
        assert len(decode(json.dumps([", " * 300]), "t")) == 1
        lines = tmp_path / "t.jsonl"
        lines.write_text('{"a": 1}\n' * 60)
        refused("t.jsonl: it holds 102 values", lambda path: list(read_json_lines(path)), lines)
        refused("t.jsonl: it holds 102 values", read_table, lines)
        refused("t.jsonl: it holds 102 values", list, json_records(lines.read_text(), lines))
        lines.write_text('{"a":[0]}\n' * 60)
        refused("t.jsonl: it holds 104 values", list, read_content(lines, in_memory=True))
        # Of lines that are read one after the other, each is counted by itself.
        assert len(list(read_content(lines, in_memory=False))) == 60


def test_cells_of_text_are_counted() -> None:
    with size_limit(100 * VALUE_BYTES):
        assert len(parse_table("a,b\n" + "1,2\n" * 49, "t").rows) == 49
        refused("t: it holds 51 rows × 2 columns", parse_table, "a,b\n" + "1,2\n" * 60, "t")
        refused("t: it holds a line of 151 cells", parse_table, "a,b\n1,2\n" + "," * 150, "t")
        refused("t: it holds a line of 151 cells", parse_table, "," * 150, "t")
        refused("t: it holds 300 values", number_tokens, "0 " * 300, "t")


def workbook(path: Path, part: str, before: bytes, after: bytes) -> Path:
    """Write a workbook of one number, in one part of which some bytes are replaced."""
    openpyxl = pytest.importorskip("openpyxl", reason="what writes workbooks here")
    book = openpyxl.Workbook()
    book.active["A1"], book.active["A2"] = "p", 0.5
    whole = io.BytesIO()
    book.save(whole)
    with (
        zipfile.ZipFile(whole) as archive,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as changed,
    ):
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith(part):
                assert before in content
                content = content.replace(before, after)
            changed.writestr(name, content)
    return path


def test_rows_that_a_workbook_passes_over_count(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", "sheet1.xml", b'r="2"', b'r="99999999999"')
    with size_limit(10_000 * VALUE_BYTES):
        refused("t.xlsx: it holds 10,001 rows or more", read_table, path)


def test_rows_and_cells_of_a_workbook_are_counted_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a row was read")

    monkeypatch.setattr("factormodels.io.tables.workbooks._rows", never)
    rows = b"</sheetData>", b"<row><c><v>1</v></c></row>" * 2**20 + b"</sheetData>"
    path = workbook(tmp_path / "t.xlsx", "sheet1.xml", *rows)
    refused("t.xlsx: a sheet has 1,048,578 rows, and a workbook of Excel at most", read_table, path)
    cells = b"</sheetData>", b"<row>%b<x:c/><col/></row>" % (b"<c/>" * 24) * 2_000 + b"</sheetData>"
    path = workbook(tmp_path / "t.xlsx", "sheet1.xml", *cells)
    with size_limit(2**19 + 2**18):
        refused("t.xlsx: it holds 2,002 rows with 50,002 cells", read_table, path)


def test_formats_and_texts_of_a_workbook_are_counted(tmp_path: Path) -> None:
    formats = b"</cellXfs>", b"<xf/>" * 200_001 + b"</cellXfs>"
    path = workbook(tmp_path / "t.xlsx", "styles.xml", *formats)
    refused("t.xlsx: its part xl/styles.xml has more than 200,000", read_table, path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/sharedStrings.xml", "<si/>" * 150_000)
    with size_limit(2**19 + 2**18):
        refused("t.xlsx: it holds 150,000 values", read_table, path)
