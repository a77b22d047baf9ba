"""A small part of `make fuzz`, and that a campaign finds what is planted and goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from factormodels.errors import InputError
from tests.fuzz import campaign
from tests.fuzz.mutations import mutant
from tests.fuzz.targets import Target

pytestmark = [pytest.mark.slow, pytest.mark.kill]

MUTANTS = 60
"""Some ten seconds of them; `make fuzz` tries a hundred thousand."""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a campaign that was run."""
    folder = tmp_path_factory.mktemp("fuzz")
    campaign.run(folder, MUTANTS, seed=20)
    return folder


def test_every_target_takes_a_whole_input(begun: Path, tmp_path: Path) -> None:
    """A campaign begins with them, and one target that takes none would end it."""
    assert json.loads((begun / "tally.json").read_text())["tried"] == MUTANTS
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "prepared").touch()
    with pytest.raises(SystemExit, match="no whole input is taken by deaf; mend"):
        campaign.run(tmp_path, 1, chosen=half_deaf)


def half_deaf(_: Path) -> Sequence[Target]:
    """Targets of which one reads nothing."""
    return (Target("sound", "f", (b"sound",), _sound), Target("deaf", "f", (b"x",), _refused))


def _sound(path: Path) -> bytes:
    return path.read_bytes()


def _refused(path: Path) -> None:
    raise InputError(f"{path}: nothing is read")


def test_mutants_end_in_a_result_or_a_sentence(begun: Path) -> None:
    # What is there is kept: nothing is tried again.
    tally = campaign.run(begun, MUTANTS, seed=20)
    assert tally.failures == []
    assert tally.tried == MUTANTS
    # Neither everything nor nothing gets past the first check.
    accepted = sum(counts.get("accepted", 0) for counts in tally.by_target.values())
    assert MUTANTS // 20 < accepted < MUTANTS


def planted(_: Path) -> Sequence[Target]:
    """Targets with a fault of each kind."""
    return (
        Target("sound", "f", (b"sound",), _sound),
        Target("broken", "f", (b"broken",), _broken),
        Target("slow", "f", (b"slow",), _slow, 1),
        Target("greedy", "f", (b"greedy",), _greedy, 1),
    )


def _broken(path: Path) -> None:
    if path.read_bytes() != b"broken":
        raise KeyError("x")


def _slow(path: Path) -> None:
    if path.read_bytes() != b"slow":
        time.sleep(60)


def _greedy(path: Path) -> int:
    return 0 if path.read_bytes() == b"greedy" else len(bytearray(600 * 2**20))


def test_faults_are_found_kept_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = tmp_path / "begun"
    prepared.mkdir()
    (prepared / "prepared").touch()
    monkeypatch.setattr(campaign, "MOST_SECONDS", 0.5)
    monkeypatch.setattr(campaign, "_SAVED_EVERY", 10)
    first = campaign.run(tmp_path, 30, chosen=planted)
    assert json.loads((tmp_path / "tally.json").read_text())["tried"] == 30
    tally = campaign.run(tmp_path, 60, chosen=planted)
    assert tally.failures[: len(first.failures)] == first.failures
    found = {name: outcome for name, _, outcome, _ in tally.failures}
    assert found == {"broken": "traceback", "slow": "hang", "greedy": "growth"}
    for name, number, _, reason in tally.failures:
        (kept,) = (tmp_path / "failures").glob(f"{number}-{name}-*")
        (target,) = (one for one in planted(tmp_path) if one.name == name)
        assert kept.read_bytes() == mutant(target.seeds, 0, number)
        assert name != "broken" or "KeyError at test_fuzz.py" in reason
    assert "| greedy |" in tally.text()
    with pytest.raises(SystemExit, match="have the seed 0"):
        campaign.run(tmp_path, 60, seed=1, chosen=planted)


def test_a_mutant_is_told_by_its_number() -> None:
    seeds = (b'{"a": [1, 2, {"b": "c"}]}', b"study: s\nseed: 1\n")
    drawn = [mutant(seeds, 3, number) for number in range(300)]
    assert drawn == [mutant(seeds, 3, number) for number in range(300)]
    assert len(set(drawn)) > 250
    assert drawn != [mutant(seeds, 4, number) for number in range(300)]
