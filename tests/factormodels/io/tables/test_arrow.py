"""Damaged Arrow and Parquet end in a sentence, whatever a bit of them says."""

from __future__ import annotations

import io
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from factormodels.errors import InputError
from factormodels.io.source.opening import size_limit
from factormodels.io.tables.arrow import ParquetGroups, arrow_records, record_batch
from factormodels.io.tables.data_table import read_table
from tests.processes import run_python
from tests.refusals import refused

N_ROWS = 24

COLUMNS: dict[str, Any] = {
    "claim": [f"claim {row}" for row in range(N_ROWS)],
    "p": [None if row % 7 == 0 else row / N_ROWS for row in range(N_ROWS)],
    "label": [bool(row % 2) if row % 5 else None for row in range(N_ROWS)],
    "kind": pa.array(["a", "b", None] * (N_ROWS // 3)).dictionary_encode(),
    "tags": [["x", "y"][: row % 3] for row in range(N_ROWS)],
    "facts": [{"a": row, "b": str(row)} for row in range(N_ROWS)],
    "time": pa.array(range(N_ROWS), pa.timestamp("ms")),
}
"""A column of every layout: offsets, bitmaps, indices of a dictionary, lists, structures, dates."""

TABLE = pa.table(COLUMNS)


def _ipc(new: Callable[..., Any], **options: Any) -> bytes:
    out = io.BytesIO()
    with new(out, TABLE.schema, **options) as writer:
        writer.write_table(TABLE)
    return out.getvalue()


def _feather() -> bytes:
    out = io.BytesIO()
    feather.write_feather(TABLE, out, compression="lz4")
    return out.getvalue()


def _parquet(**options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(TABLE, out, **options)
    return out.getvalue()


FORMS: dict[str, Callable[[], bytes]] = {
    "arrow": lambda: _ipc(pa.ipc.new_file),
    "stream": lambda: _ipc(pa.ipc.new_stream),
    "zstd": lambda: _ipc(pa.ipc.new_file, options=pa.ipc.IpcWriteOptions(compression="zstd")),
    "feather": _feather,
    "parquet": _parquet,
    "plain parquet": lambda: _parquet(compression="none", use_dictionary=False),
}


def outcome(content: bytes) -> str:
    """Outcome of reading a table."""
    try:
        arrow_records([("t", content)])
    except InputError as error:
        return "refused" if re.fullmatch(r"t: .+; .+", str(error)) else f"no sentence: {error}"
    return "read"


def flipped(content: bytes, generator: random.Random) -> bytes:
    changed = bytearray(content)
    changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
    return bytes(changed)


def outcomes_of_flips(form: str, n: int) -> Counter[str]:
    generator = random.Random(form)
    whole = FORMS[form]()
    return Counter(outcome(flipped(whole, generator)) for _ in range(n))


@pytest.mark.slow
@pytest.mark.parametrize("n_flips", [250, pytest.param(2_000, marks=pytest.mark.nightly)])
def test_one_flipped_bit_is_read_or_refused(n_flips: int) -> None:
    # In a process of its own: what a bit does without validation is a segmentation fault.
    output, _ = run_python(
        "import json\n"
        "from tests.factormodels.io.tables.test_arrow import FORMS, outcomes_of_flips\n"
        f"print(json.dumps({{form: outcomes_of_flips(form, {n_flips}) for form in FORMS}}))"
    )
    outcomes = json.loads(output)
    assert outcomes.keys() == FORMS.keys()
    for form, counts in outcomes.items():
        assert set(counts) == {"read", "refused"}, form
        assert sum(counts.values()) == n_flips, form


@pytest.mark.parametrize("form", FORMS)
def test_a_whole_file_is_read_equal(form: str) -> None:
    read = arrow_records([("t", FORMS[form]())])
    assert read.columns == tuple(COLUMNS)
    assert read.rows == TABLE.to_pylist()
    assert read.rows[1]["time"] == datetime(1970, 1, 1, 0, 0, 0, 1000)


def test_offsets_beyond_their_texts_are_refused_wherever_they_come_from(tmp_path: Path) -> None:
    # Those at the ends are right, which is all that Arrow itself looks at.
    offsets = pa.py_buffer(np.array([0, 2**30, 3], dtype=np.int32))
    bad = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"abc"))
    batch = pa.record_batch([bad], ["claim"])
    out = io.BytesIO()
    with pa.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
    (tmp_path / "t.arrow").write_bytes(out.getvalue())
    refused(
        r"t\.arrow: it is damaged \(.*offset.*\); save it again", read_table, tmp_path / "t.arrow"
    )
    with pytest.raises(pa.ArrowInvalid, match="offset"):
        record_batch(bytes(batch.serialize()), batch.schema)


def test_two_columns_of_a_name_are_refused() -> None:
    out = io.BytesIO()
    table = pa.table([pa.array([1]), pa.array([2])], names=["p", "p"])
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    refused("t: two columns have the name 'p'", arrow_records, [("t", out.getvalue())])


def test_the_unpacked_size_of_a_small_file_is_limited() -> None:
    out = io.BytesIO()
    # Equal texts are a hundred bytes of Parquet, and ten megabytes unpacked.
    pq.write_table(pa.table({"p": pa.array(["x" * 1000]).take(pa.array([0] * 10**4))}), out)
    assert len(out.getvalue()) < 10_000
    with size_limit(2**20):
        refused("t: it holds more than 1 MiB", arrow_records, [("t", out.getvalue())])


def test_row_groups_are_checked_as_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    whole = _parquet(row_group_size=8)
    path.write_bytes(whole)
    rows = ParquetGroups(path, "run it again")
    assert (rows.names, rows.n_rows, rows.n_groups) == (tuple(COLUMNS), N_ROWS, 3)
    assert rows.first_row(1, ("claim", "p")) == {"claim": "claim 8", "p": 8 / N_ROWS}
    assert rows.read((2,), ("claim",))["claim"].to_pylist() == COLUMNS["claim"][16:]
    path.write_bytes(whole[:4] + b"\xff" * 40 + whole[44:])
    damaged = ParquetGroups(path, "run it again")
    refused(r"t\.parquet: it is damaged \(.+\); run it again", damaged.read)
    refused(r"t\.parquet: it is damaged \(.+\); run it again", damaged.first_row, 0, ("claim",))


@pytest.mark.parametrize(
    "name", ["..", ".", "", "../t.arrow", "/etc/passwd", 3, None, {"x": 1}, ["t"]]
)
@pytest.mark.parametrize("file", ["dataset_dict.json", "state.json"])
def test_a_saved_dataset_names_files_beside_it_alone(
    name: object, file: str, tmp_path: Path
) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    (tmp_path / "t.arrow").write_bytes(FORMS["arrow"]())
    listed = {"splits": [name]} if file == "dataset_dict.json" else {"_data_files": [name]}
    (folder / file).write_text(json.dumps(listed))
    refused("where the name of a file or folder beside it belongs", read_table, folder)
