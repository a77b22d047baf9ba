"""A small hostile day; at full size: `python -m tests.endurance.hostile_day`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.endurance.hostile_day import live
from tests.endurance.provider import FAULTS, Hostility

pytestmark = [pytest.mark.service, pytest.mark.kill, pytest.mark.slow]

RESPONSES = 5


def test_a_hostile_day_ends_as_a_calm_one_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    (tmp_path / "calm").mkdir()
    (tmp_path / "hostile").mkdir()
    calm = live(tmp_path / "calm", RESPONSES, concurrency=8)
    hostile = live(
        tmp_path / "hostile",
        RESPONSES,
        kills=2,
        concurrency=8,
        hostility=Hostility(drip_seconds=0.5, pause_after=20, pause_seconds=2.0),
        latency=0.02,
    )
    assert hostile.kills == 2
    assert len(calm.output) == RESPONSES
    assert hostile.output == calm.output
    assert calm.repeated == 0
    assert hostile.repeated <= hostile.most_repeated == 16
    assert hostile.questions == calm.questions == calm.answered
    # The day was what it says.
    assert set(hostile.faults) == {*FAULTS, "pause"}


def test_a_day_that_forgets_what_was_answered_asks_too_much_again(tmp_path: Path) -> None:
    """What the other test counts is told from a batch that stores nothing."""
    day = live(tmp_path, RESPONSES, kills=2, concurrency=8, latency=0.02, forgetting=True)
    assert day.repeated > day.most_repeated
