"""Every reader and command on damaged inputs, and that a campaign finds what is planted."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import campaign, planted, targets
from tests.fuzz.campaign import Target
from tests.fuzz.mutations import mutant

pytestmark = [pytest.mark.slow, pytest.mark.kill]

HEAVY = 3
"""A target whose share is at most this takes long, and is damaged once; the others more often."""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that targets begin from."""
    folder = tmp_path_factory.mktemp("begun")
    targets.prepare(folder)
    return folder


@pytest.mark.parametrize("target", targets.TARGETS, ids=lambda target: target.name)
def test_every_target_takes_a_whole_input(target: Target, begun: Path) -> None:
    ends = [campaign.tried(target, whole, begun) for whole in target.whole(begun)]
    assert (campaign.ACCEPTED, "") in ends
    assert {end for end, _ in ends} <= {campaign.ACCEPTED, campaign.REFUSED}, ends


@pytest.mark.parametrize("target", targets.TARGETS, ids=lambda target: target.name)
def test_a_damaged_input_ends_in_a_result_or_a_sentence(target: Target, begun: Path) -> None:
    @settings(max_examples=1 if target.share <= HEAVY else 5, deadline=None, derandomize=True)
    @given(st.integers(min_value=0))
    def holds(number: int) -> None:
        damaged = mutant(target.whole(begun), Random(number))
        end, reason = campaign.tried(target, damaged, begun)
        assert end in (campaign.ACCEPTED, campaign.REFUSED), f"{reason}: {damaged[:2000]!r}"

    holds()


def test_faults_are_found_kept_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "MOST_SECONDS", 0.5)
    monkeypatch.setattr(campaign, "_SAVED_EVERY", 10)
    first = campaign.run(tmp_path, 30, table=planted.__name__)
    assert json.loads((tmp_path / "tally.json").read_text())["tried"] == 30
    tally = campaign.run(tmp_path, 60, table=planted.__name__)
    assert tally.tried == sum(sum(ends.values()) for ends in tally.by_target.values()) == 60
    assert tally.failures[: len(first.failures)] == first.failures
    found = {name: outcome for name, _, outcome, _ in tally.failures}
    assert found == {"broken": "traceback", "slow": "hang", "greedy": "growth"}
    for name, number, _, reason in tally.failures:
        (kept,) = (tmp_path / "failures").glob(f"{number}-{name}-*")
        drawn = Random(f"0 {number}")
        (target,) = drawn.choices(planted.TARGETS, [one.share for one in planted.TARGETS])
        assert (target.name, mutant(target.whole(tmp_path), drawn)) == (name, kept.read_bytes())
        assert name != "broken" or "KeyError at planted.py" in reason
    assert "| greedy |" in tally.text()
    with pytest.raises(SystemExit, match="have the seed 0"):
        campaign.run(tmp_path, 60, seed=1, table=planted.__name__)


def test_a_campaign_does_not_begin_with_a_target_that_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planted, "TARGETS", (planted.TARGETS[0], planted.DEAF))
    assert campaign._deaf({}, planted.__name__, tmp_path) == ["deaf"]


def test_a_mutant_is_told_by_its_seed() -> None:
    seeds = (b'{"a": [1, 2, {"b": "c"}]}', b"study: s\nseed: 1\n")
    drawn = [mutant(seeds, Random(f"3 {number}")) for number in range(300)]
    assert drawn == [mutant(seeds, Random(f"3 {number}")) for number in range(300)]
    assert len(set(drawn)) > 250
    assert drawn != [mutant(seeds, Random(f"4 {number}")) for number in range(300)]
