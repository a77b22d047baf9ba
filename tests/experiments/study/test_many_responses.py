"""Memory of a study does not grow with what its graphs hold: they are in a file, not in memory."""

from __future__ import annotations

import pytest

from experiments.study.packed_graphs import HELD
from tests.endurance.many_responses import DATA, PARTS, UNITS, measure, table

pytestmark = [pytest.mark.slow, pytest.mark.kill]

SMALL, LARGE = 5 * HELD // 4, 5 * HELD

BYTES_EACH = 1500
"""Growth of the first process while data are made and units run, per response. As objects in memory
a response takes 6 kB here."""


def test_the_first_process_does_not_hold_the_data() -> None:
    found = {size: measure(size, workers=1, dask=False) for size in (SMALL, LARGE)}
    for size, taken in found.items():
        # Three to six claims each.
        assert 4.4 < taken.rows / size < 4.6
        # The files grow with the study, the memory does not.
        assert taken.sizes["data"] > 400 * size
        assert taken.sizes["rows.csv"] > 500 * size
    # A part of the smaller study may pass between two looks at it, a tenth of a second apart.
    assert all(found[LARGE].seconds[part] > 0.0 for part in PARTS)
    for part in (DATA, UNITS):
        growth = found[LARGE].first_peak[part] - found[SMALL].first_peak[part]
        assert growth < BYTES_EACH * (LARGE - SMALL), part
        assert 0.0 < found[LARGE].anonymous_peak[part] < found[LARGE].first_peak[part]
    lines = table(found).splitlines()
    assert lines[0].endswith("| one more response |")
    assert len(lines) == 22
