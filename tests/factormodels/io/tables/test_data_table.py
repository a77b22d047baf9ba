"""Tables of any kind are read as the same records, and every fault is placed."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from factormodels.io.tables.data_table import (
    given_rows,
    holds_binary_tables,
    looks_like_table,
    parse_table,
    read_table,
)
from tests.refusals import refused

ROWS = [
    {"id": "a", "question": "Who, and when?", "answer": 'She said "1903".\nThen left.'},
    {"id": "b", "question": "Où?", "answer": "Paris; Warsaw"},
]
FRAME = pd.DataFrame(ROWS)
COLUMNS = ("id", "question", "answer")


def arrow_stream(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def arrow_file(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def saved_dataset(folder: Path, parts: list[pa.Table]) -> Path:
    """The folder that `Dataset.save_to_disk` writes, as its documentation describes it."""
    folder.mkdir(parents=True)
    names = [f"data-{i:05}-of-{len(parts):05}.arrow" for i in range(len(parts))]
    for name, part in zip(names, parts, strict=True):
        arrow_stream(part, folder / name)
    # Listed in another order than the names sort in: the list says the order of the rows.
    files = [{"filename": name} for name in reversed(names)]
    (folder / "state.json").write_text(json.dumps({"_data_files": files, "_split": None}))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def as_parquet_folder(path: Path) -> None:
    (path / "data").mkdir(parents=True)
    for number, row in enumerate(ROWS):
        name = f"train-{number:05}-of-00002.parquet"
        parquet.write_table(pa.Table.from_pylist([row]), path / "data" / name)


def as_saved_dataset(path: Path) -> None:
    saved_dataset(path, [pa.Table.from_pylist([row]) for row in reversed(ROWS)])


def as_saved_split(path: Path) -> None:
    saved_dataset(path / "train", [pa.Table.from_pylist(ROWS)])
    (path / "dataset_dict.json").write_text('{"splits": ["train"]}')


WRITERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "comma": (lambda path: FRAME.to_csv(path, index=False), "CSV"),
    "excel": (
        lambda path: FRAME.to_csv(
            path, index=False, encoding="utf-8-sig", lineterminator="\r\n", sep=";"
        ),
        "CSV",
    ),
    "index": (FRAME.to_csv, "CSV"),
    "gzip": (lambda path: path.write_bytes(gzip.compress(FRAME.to_csv().encode())), "CSV"),
    "tabs": (lambda path: FRAME.to_csv(path, index=False, sep="\t"), "TSV"),
    "lines": (lambda path: path.write_text("\n".join(map(json.dumps, ROWS))), "JSON Lines"),
    "list": (lambda path: path.write_text(json.dumps(ROWS, indent=2)), "JSON"),
    "parquet": (lambda path: parquet.write_table(pa.Table.from_pylist(ROWS), path), "Parquet"),
    "arrow": (lambda path: arrow_file(pa.Table.from_pylist(ROWS), path), "Arrow"),
    "parquet folder": (as_parquet_folder, "Parquet"),
    "saved": (as_saved_dataset, "Arrow"),
    "split": (as_saved_split, "Arrow"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_form_gives_the_same_records(name: str, tmp_path: Path) -> None:
    write, form = WRITERS[name]
    write(tmp_path / "table")
    table = read_table(tmp_path / "table")
    assert (table.form, table.columns, list(table.rows)) == (form, COLUMNS, ROWS)
    pd.testing.assert_frame_equal(table.frame(), FRAME)


def test_a_row_is_placed_by_its_line_or_its_number(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    # The first row runs over two lines, so the second begins on line 4.
    assert read_table(tmp_path / "t.csv").locate(1, "answer") == (
        f"{tmp_path / 't.csv'}, line 4, column 'answer'"
    )
    FRAME.to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").locate(1) == f"{tmp_path / 't.parquet'}, row 2"


def test_records_of_json_may_lack_columns() -> None:
    table = parse_table('{"a": 1}\n{"b": null, "a": 2}', "x.jsonl")
    assert table.columns == ("a", "b")
    assert table.frame()["a"].tolist() == [1, 2]
    assert table.lines == (1, 2)


def test_empty_rows_and_columns_without_a_name_are_left_out() -> None:
    table = parse_table("a,b,,\n1,2,,\n,,,\n", "x.csv")
    assert (table.columns, list(table.rows)) == (("a", "b"), [{"a": "1", "b": "2"}])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("a,b\n", "the table has no rows"),
        ("a,b\n1,2,3\n", "line 2: the row has 3 cells for 2 columns"),
        ("a,a\n1,2\n", "line 1: two columns have the name 'a'"),
        ('a,b\n1,"2\n', "line 2: it is not a row"),
        ('{"a": 1}\n[1]\n', "[1] is not a JSON object"),
        ('{"a": 1}\n{"a": nan}\n', "line 2: column 7 is not JSON"),
        ("[1, 2]", "[1, 2] is not a JSON object"),
    ],
)
def test_a_fault_of_a_text_is_placed(text: str, message: str) -> None:
    refused(re.escape(message), parse_table, text, "x.csv")


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    (tmp_path / "empty").mkdir()
    path.write_bytes(b"PK\x03\x04rest")
    refused("a sheet as CSV", read_table, path)
    path.write_bytes(b"PAR1 and nothing more")
    refused(r"it is damaged \(.+\); save it again", read_table, path)
    path.write_bytes("é,b\n1,2".encode("latin-1"))
    refused("is not UTF-8", read_table, path)
    refused("holds no Parquet or Arrow file", read_table, tmp_path / "empty")
    assert not holds_binary_tables(tmp_path / "empty")


def test_a_table_in_utf_16_is_refused_with_the_fix(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    FRAME.to_csv(path, index=False, encoding="utf-16")
    refused("it is UTF-16, .* save the file as UTF-8", read_table, path)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_a_spreadsheet_s_line_that_says_the_separator_is_no_row(
    separator: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    text = FRAME.to_csv(index=False, sep=separator, lineterminator="\r\n")
    path.write_text(f"sep={separator}\r\n{text}", newline="")
    table = read_table(path)
    assert (table.columns, [dict(row) for row in table.rows]) == (COLUMNS, ROWS)
    assert looks_like_table(f"sep={separator}\r\n{text}")


def test_folders_that_are_not_one_table_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "splits"
    folder.mkdir()
    (folder / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    refused(f"name one of {folder / 'train'}, {folder / 'test'}", read_table, folder)
    (folder / "dataset_dict.json").write_text("[]")
    refused("the list 'splits' is missing", read_table, folder)
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    parquet.write_table(pa.table({"a": [1]}), mixed / "a.parquet")
    parquet.write_table(pa.table({"b": [1]}), mixed / "b.parquet")
    refused("b.parquet: its columns are b, and those of a.parquet a", read_table, mixed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,answer\n1,It is red.\n2,It is blue.", True),
        ("id;answer\n1;It is red, and large.", True),
        ("id\tanswer\n1\tIt is red.", True),
        ("It is red, and large.\nIt is blue, and small.", False),
        ("It is red.", False),
        ("Paris\nis large", False),
        ("a,b\nonly one", False),
    ],
)
def test_a_table_is_distinguished_from_prose(text: str, expected: bool) -> None:
    assert looks_like_table(text) is expected


def test_columns_by_name_are_rows_and_what_is_no_table_is_refused() -> None:
    assert given_rows({"p": [0.5, 0.25], "label": (1, 0)}) == [
        {"p": 0.5, "label": 1},
        {"p": 0.25, "label": 0},
    ]
    refused(["different numbers of values (2 of 'p', 1 of 'label')"], given_rows,
            {"p": [0.5, 0.25], "label": [1]})  # fmt: skip
    refused(r"'p' is 0\.5; give a list of values for each column", given_rows, {"p": 0.5})
    splits = {"train": pd.DataFrame({"p": [0.5]})}
    refused(["'train' is a table of its own; give it alone, as ['train']"], given_rows, splits)
    for nothing in (None, 3):
        refused(f"the data are {nothing}; give a file, ", given_rows, nothing)
