"""Commands that are killed over and over end with the files of a calm run.

At full size: `python -m tests.endurance kills`. In the suite, `study/test_killed_run.py` kills a
run and `evaluators/test_hostile_day.py` an assessment.
"""

from __future__ import annotations

import pytest

from tests.endurance.studies import TRIALS, kills

pytestmark = [pytest.mark.kill, pytest.mark.service, pytest.mark.nightly]


@pytest.mark.parametrize("command", ["run with two workers", "run with Dask", "assess", "fit"])
def test_kills_change_no_file(command: str) -> None:
    n_kills = 3
    share = TRIALS[command][2]
    (row,) = kills(round(n_kills / share), only=(command,), responses=100)
    assert (row["kills"], row["right"]) == (n_kills, True), row
