"""The journal: whatever of it is torn off, what was whole before is read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.results.rows import FAILED
from experiments.run.journal import open_journal, read_journal
from experiments.run.units import UnitResult, decode, encode
from factormodels.errors import InputError

RECORDS = [b"first", b"", b"the third one", b"\0" * 9]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of `RECORDS`."""
    file = tmp_path / "units.bin"
    with open_journal(file) as journal:
        for record in RECORDS:
            journal.append(record)
    return file


def test_records_come_back_in_order(path: Path) -> None:
    assert list(read_journal(path)) == RECORDS
    with open_journal(path) as journal:
        journal.append(b"later")
    assert list(read_journal(path)) == [*RECORDS, b"later"]


def test_a_record_is_there_at_once(tmp_path: Path) -> None:
    with open_journal(tmp_path / "units.bin") as journal:
        journal.append(b"one")
        assert list(read_journal(tmp_path / "units.bin")) == [b"one"]


def test_a_torn_end_is_cut_off_wherever_it_was_torn(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        before = list(read_journal(path))
        assert before == RECORDS[: len(before)]
        with open_journal(path) as journal:
            journal.append(b"next")
        assert list(read_journal(path)) == [*before, b"next"]


def test_a_damaged_record_ends_what_is_read(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    at = whole.index(b"third")
    whole[at] ^= 1
    path.write_bytes(bytes(whole))
    assert list(read_journal(path)) == RECORDS[:2]


def test_two_runs_do_not_share_a_journal(path: Path) -> None:
    with (
        open_journal(path),
        pytest.raises(InputError, match="another run is at work"),
        open_journal(path),
    ):
        pass
    with open_journal(path) as journal:
        journal.clear()
    assert list(read_journal(path)) == []


def test_another_file_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "units.bin"
    path.write_bytes(b"something else, and longer than the first line of a journal")
    with pytest.raises(InputError, match="no journal"):
        list(read_journal(path))


def test_results_come_back_to_the_last_bit() -> None:
    p = np.array([0.1, 1 / 3, np.nextafter(0.5, 1)])
    results = [
        UnitResult(0, 3, "exact", p, 0.25, -1.5, "exact"),
        UnitResult(7, 0, FAILED, error="why"),
        UnitResult(2, 1, "converged", p[:0], None, None, "none"),
    ]
    batch = decode(encode(results)).to_pylist()
    assert [one["p"] for one in batch] == [p.tolist(), [], []]
    for one, result in zip(batch, results, strict=True):
        for name in ("cell", "response", "status", "seconds", "log_z", "log_z_kind", "error"):
            assert one[name] == getattr(result, name)
    assert decode(encode([])).num_rows == 0
