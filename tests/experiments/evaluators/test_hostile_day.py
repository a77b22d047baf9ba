"""A small hostile day; at full size: `python -m tests.endurance hostile_day`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.endurance.assessments import command, live, without_costs, write_batch
from tests.endurance.provider import FAULTS, Hostility, Provider
from tests.experiments.conftest import invoke

pytestmark = [pytest.mark.service, pytest.mark.kill, pytest.mark.slow]

RESPONSES = 3


@pytest.mark.parametrize(
    "variants", [("FR1",), pytest.param(("FR1", "FR2"), marks=pytest.mark.nightly)]
)
def test_a_hostile_day_ends_as_a_calm_one_and_nothing_is_asked_twice(
    keyed: Path, variants: tuple[str, ...]
) -> None:
    options = [part for name in variants for part in ("--variant", name)]
    write_batch(keyed, RESPONSES)
    with Provider() as provider:
        invoke(*command(provider.url, 8, *options))
    questions = [call.question for call in provider.calls]
    (keyed / "hostile").mkdir()
    hostile = live(
        keyed / "hostile",
        RESPONSES,
        kills=1,
        concurrency=8,
        hostility=Hostility(late_seconds=0.5, pause_after=20, pause_seconds=2.0),
        latency=0.02,
        options=options,
    )
    assert hostile.kills == 1
    expected = without_costs(keyed / "out/graphs.jsonl")
    assert len(expected) == RESPONSES
    assert hostile.output == expected
    assert hostile.repeated <= hostile.most_repeated == 8
    assert hostile.questions == len(set(questions)) == len(questions)
    # The day was what it says.
    assert set(hostile.faults) == {*FAULTS, "pause"}


@pytest.mark.nightly
def test_a_day_that_forgets_what_was_answered_asks_too_much_again(tmp_path: Path) -> None:
    """The count of the other test sees a batch that stores nothing."""
    day = live(tmp_path, RESPONSES, kills=1, concurrency=8, latency=0.02, forgetting=True)
    assert day.repeated > day.most_repeated


def test_calls_take_no_more_rounds_than_they_must(keyed: Path) -> None:
    """Latency in turns instead of seconds: everything that can be asked is, up to the limit."""
    limit, responses = 4, 5
    stages = (4, 4, 12)  # chunks, revisions, pairs of each response, one stage after another
    answered: Counter[str] = Counter()

    def all_are_there(counts: Sequence[str]) -> bool:
        askable = 0
        for number in range(responses):
            done = answered[str(number)]
            ends = (sum(stages[: stage + 1]) for stage in range(len(stages)))
            askable += next((end - done for end in ends if end > done), 0)
        if len(counts) < min(limit, askable):
            return False
        answered.update(re.findall(r"Bridge (\d+)", question)[-1] for question in counts)
        return True

    write_batch(keyed, responses)
    with Provider(gate=all_are_there) as provider:
        options = ["--documents", "notes", "--stride", "1", "--variant", "FR1"]
        options += ["--model", "openai/scripted", "--api-base", provider.url]
        invoke("assess", "batch.jsonl", *options, "--concurrency", str(limit), "--out", "o")
    assert len(provider.calls) == responses * sum(stages)
    assert provider.rounds <= 1.1 * len(provider.calls) / limit
