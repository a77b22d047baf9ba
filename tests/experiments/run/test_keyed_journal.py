"""What is worked out once is kept by key, to the last bit, whatever becomes of its process."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from experiments.run.keyed_journal import keyed_journal
from factormodels.errors import InputError


def test_values_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "kept.bin"
    value = {"theta": [0.1 + 0.2, 5e-324, 1e308, -0.0], "none": None, "text": "a\n\u2028ü"}
    with keyed_journal(path) as kept:
        assert kept.get("a") is None
        kept.put("a", 1)
        kept.put("b", {"nan": math.nan, "inf": math.inf})
        kept.put("a", value)
        assert kept.get("a") == value
    with keyed_journal(path) as kept:
        assert kept.get("a") == value
        assert math.copysign(1.0, kept.get("a")["theta"][3]) == -1.0
        assert math.isnan(kept.get("b")["nan"])
        assert kept.get("b")["inf"] == math.inf


def test_a_torn_record_is_dropped_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "kept.bin"
    with keyed_journal(path) as kept:
        kept.put("a", 1)
        kept.put("b", 2)
    path.write_bytes(path.read_bytes()[:-1])
    with keyed_journal(path) as kept:
        assert (kept.get("a"), kept.get("b")) == (1, None)
        kept.put("b", 3)
    with keyed_journal(path) as kept:
        assert (kept.get("a"), kept.get("b")) == (1, 3)


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.bin"
    path.write_text("something else entirely", encoding="utf-8")
    with pytest.raises(InputError, match="this is no journal"), keyed_journal(path):
        pass
