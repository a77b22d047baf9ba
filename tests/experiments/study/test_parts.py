"""Parts of a run: units come back as they were kept, the later of two, and damage is seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.study import parts
from experiments.study.parts import FinishedUnits, finished_units, units_of, write_part
from experiments.study.units import UnitResult, decode, encode
from factormodels.errors import InputError

PLAN = "the hash of a plan"


def some(cell: int, responses: range, p: float = 0.25) -> pa.Table:
    """Units of a cell; the response r has r % 3 atoms."""
    return decode(
        encode([UnitResult(cell, r, "exact", np.full(r % 3, p), float(r)) for r in responses])
    )


def assert_finished(finished: FinishedUnits, n: int) -> None:
    """Assert that units are those of two cells with `n` responses, one of them done again."""
    assert (finished.counts.tolist(), finished.n_units) == ([n, n], 2 * n)
    assert finished.statuses == {"exact": 2 * n}
    for cell in (0, 1):
        rows = finished.of_cell(cell).to_pylist()
        assert finished.responses(cell).tolist() == [row["response"] for row in rows]
        for response, row in enumerate(rows):
            assert (row["cell"], row["response"], row["seconds"]) == (cell, response, response)
            again = (cell, response) == (1, 5)
            assert row["p"] == [0.75 if again else 0.25] * (response % 3)


@pytest.mark.parametrize("length", [1, 7, 40])
@pytest.mark.parametrize("most", [10**6, 3])
def test_units_are_in_order_whatever_their_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int, most: int
) -> None:
    monkeypatch.setattr(parts, "_KEPT_UNITS", most)
    n, generator = 40, np.random.default_rng(length)
    starts = [(cell, start) for cell in (0, 1) for start in range(0, n, length)]
    generator.shuffle(starts)
    tables = [some(cell, range(start, min(start + length, n))) for cell, start in starts]
    tables.append(some(1, range(5, 6), 0.75))
    for number, table in enumerate(tables):
        write_part(table, tmp_path / str(table["cell"][0].as_py()), number, PLAN)
    # What a process left that was killed is no part.
    (tmp_path / "0" / "00000099.unfinished").write_bytes(b"PAR1")
    assert_finished(finished_units(tmp_path, PLAN, [n, n]), n)
    assert_finished(units_of(tables, 2), n)


def test_a_part_of_another_plan_is_refused(tmp_path: Path) -> None:
    write_part(some(0, range(3)), tmp_path / "0", 0, "another")
    with pytest.raises(InputError, match=r"has units of another study.*start over"):
        finished_units(tmp_path, PLAN, [3])


@pytest.mark.parametrize("change", ["column", "cell", "response"])
def test_units_that_are_none_of_the_study_are_left_out(
    tmp_path: Path, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = some(1 if change == "cell" else 0, range(4 if change == "response" else 3))
    if change == "column":
        table = table.rename_columns(["added", *table.column_names[1:]])
    (tmp_path / "0").mkdir()
    pq.write_table(
        table.replace_schema_metadata({"plan": PLAN}), tmp_path / "0" / "00000000.parquet"
    )
    assert finished_units(tmp_path, PLAN, [3]).n_units == 0
    assert "its units are done again" in caplog.text


def test_a_flipped_bit_is_never_another_number(tmp_path: Path) -> None:
    whole = finished_units(tmp_path, PLAN, [600]), some(0, range(600))
    assert whole[0].n_units == 0
    write_part(whole[1], tmp_path / "0", 0, PLAN)
    path = tmp_path / "0" / "00000000.parquet"
    content = path.read_bytes()
    before = finished_units(tmp_path, PLAN, [600]).of_cell(0)
    left_out = 0
    for at in range(0, len(content), max(len(content) // 200, 1)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x41]) + content[at + 1 :])
        try:
            units = finished_units(tmp_path, PLAN, [600]).of_cell(0)
        except InputError:
            # The plan was hit.
            continue
        left_out += not units.num_rows
        assert not units.num_rows or units.equals(before)
    assert left_out > 100
