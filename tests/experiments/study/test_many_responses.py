"""Memory of a study grows with its responses packed, not with what they take as objects."""

from __future__ import annotations

import pytest

from experiments.study.packed_graphs import HELD
from tests.endurance.studies import STAGES, measure

pytestmark = [pytest.mark.slow, pytest.mark.kill, pytest.mark.nightly]
"""In the suite, `test_packed_graphs` packs few responses and `test_long_cells` bounds memory."""

SMALL, LARGE = 5 * HELD // 4, 5 * HELD

BYTES_EACH = 1900
"""Growth of the first process, per response: with a million it stays under two gigabytes. As
objects in memory a response takes 6 kB."""


def test_the_first_process_does_not_hold_the_data() -> None:
    measured = {size: measure(size, workers=1) for size in (SMALL, LARGE)}
    for size, taken in measured.items():
        # Three to six claims each.
        assert 4.4 < taken["rows"] / size < 4.6
        assert taken["rows.csv, MiB"] * 2**20 > 500 * size
    # A part of the smaller study may pass between two looks at it, a tenth of a second apart.
    assert all(measured[LARGE][f"by the clock, {part}, s"] > 0.0 for part in STAGES)
    for part in STAGES:
        name = f"first process, {part}, MiB"
        growth = measured[LARGE][name] - measured[SMALL].get(name, 0.0)
        assert growth * 2**20 < BYTES_EACH * (LARGE - SMALL), part
