"""LM-Polygraph's managers: read as torch.save writes them, and never run."""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import sys
import zipfile
from collections import OrderedDict, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from factormodels.errors import InputError
from factormodels.io import read_many
from factormodels.io.saved_managers import manager_rows, plain_values
from factormodels.recorded_verdicts import recorded_verdicts
from tests.refusals import refused

CLASSES = "extract_claims"


@dataclass
class Claim:
    """As LM-Polygraph keeps one."""

    claim_text: str
    aligned_token_ids: list[int] = field(default_factory=list)


@pytest.fixture
def classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module that a saved claim names; its own is in a package."""
    module = ModuleType(CLASSES)
    module.Claim = Claim  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, CLASSES, module)
    monkeypatch.setattr(Claim, "__module__", CLASSES)


def manager() -> dict[str, Any]:
    """What a manager gives to torch.save: two texts, of which the first has two claims."""
    estimations: dict[Any, Any] = defaultdict(list)
    estimations["sequence", "LexicalSimilarity"] += [-0.9, -0.25]
    estimations["sequence", "MaximumSequenceProbability"] += [0.5, math.nan]
    estimations["token", "MaximumTokenProbability"] += [[0.1, 0.2], [0.3]]
    estimations["claim", "ClaimConditionedProbability"] += [[-0.75, -0.125], [-0.5]]
    stats: dict[Any, Any] = defaultdict(list)
    stats["input_texts"] += ["Who was Ada?", "Who was Bo?"]
    stats["greedy_texts"] += ["Ada painted and lived.", "Bo taught."]
    stats["greedy_tokens"] += [[1, 2, 3], torch.tensor([3])]
    stats["claims"] += [[Claim("Ada painted."), Claim("Ada lived.")], [Claim("Bo taught.")]]
    metrics = {("sequence", "LexicalSimilarity", "Rouge", "PRR"): np.float64(0.5)}
    return {
        "metrics": metrics,
        "gen_metrics": OrderedDict(),
        "estimations": estimations,
        "stats": stats,
    }


def saved(folder: Path) -> Path:
    path = folder / "ue_manager_seed1"
    torch.save(manager(), path)
    return path


def archive(pickled: bytes) -> bytes:
    """A pickle in an archive, as torch.save packs it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as written:
        written.writestr("ue_manager_seed1/data.pkl", pickled)
    return packed.getvalue()


@pytest.mark.usefixtures("classes")
def test_each_estimator_judges_texts_or_claims(tmp_path: Path) -> None:
    path = saved(tmp_path)
    del sys.modules[CLASSES]  # Nothing of it is needed to read.
    ada, bo = read_many(path)
    assert (ada.id, ada.query) == ("Who was Ada?", "Who was Ada?")
    texts = {atom.id: atom.text for atom in ada.atoms}
    told = {
        name: {texts[id]: one.p_true for id, one in verdicts.items()}
        for name, verdicts in recorded_verdicts(ada).items()
    }
    assert told == {
        "lm-polygraph: LexicalSimilarity": {"Ada painted and lived.": 0.9},
        "lm-polygraph: MaximumSequenceProbability": {
            "Ada painted and lived.": pytest.approx(math.exp(-0.5))
        },
        "lm-polygraph: ClaimConditionedProbability": {"Ada painted.": 0.75, "Ada lived.": 0.125},
    }
    # Of an estimate that is no number there is no verdict; one text may be a claim as well.
    assert recorded_verdicts(bo).keys() == told.keys() - {
        "lm-polygraph: MaximumSequenceProbability"
    }
    assert [atom.text for atom in bo.atoms] == ["Bo taught."]


@pytest.mark.parametrize("protocol", range(1, pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_are_those_that_pickle_reads(protocol: int) -> None:
    value = {
        "numbers": [0, -7, 300, 2**40, 2**70, 0.1, math.inf, True, False, None],
        "texts": ["", "a", "ü" * 300, "y" * 70_000],
        "nested": [[], {}, [1, [2, [3]]], {"a": {"b": []}}],
        ("a", "key"): "of texts",
        7: "of a number",
    }
    shared = [1, 2]
    value["shared"] = [shared, shared]
    assert plain_values(pickle.dumps(value, protocol)) == value


class Runs:
    """What would be run on reading."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("run",)


def test_nothing_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "manager"
    path.write_bytes(archive(pickle.dumps({**manager(), "metrics": Runs()}, 2)))
    assert len(read_many(path)) == 2
    path.write_bytes(archive(b"cos\nabort\n(tR."))
    refused("no estimates of texts or claims.*JSON Lines", read_many, path)
    assert capsys.readouterr().out == ""


def test_deep_nesting_and_far_places_do_no_harm() -> None:
    deep = b"N" + b"\x85" * 200_000
    assert plain_values(b"\x80\x02}" + deep + b"Ns.") == {}
    assert plain_values(b"\x80\x02K\x01r\xff\xff\xff\x7f.") == 1


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (pickle.dumps(manager(), 2)[:-40], "is damaged"),
        (b"\x80\x02}q\x00h\x07.", "is damaged"),
        (b"\x80\x022.", "the step DUP"),
        (b"", "is damaged"),
        (pickle.dumps([1, 2], 2), "no estimates"),
        (pickle.dumps({"estimations": {("sequence", "X"): [0.5]}, "stats": {}}, 2), "no estimates"),
    ],
    ids=["cut", "no such place", "unknown step", "empty", "list", "no texts"],
)
def test_what_is_no_manager_is_refused(pickled: bytes, message: str) -> None:
    refused(message, manager_rows, archive(pickled), "manager")


def test_every_damaged_byte_is_refused_or_read() -> None:
    whole = pickle.dumps(
        {"estimations": {("sequence", "X"): [0.5]}, "stats": {"greedy_texts": ["a"]}}, 2
    )
    assert sum(1 for _ in pickletools.genops(whole)) > 10
    for place in range(len(whole)):
        for value in (0, 0x2E, 0x52, 0x65, 0xFF):
            damaged = archive(whole[:place] + bytes([value]) + whole[place + 1 :])
            # Whatever else is raised fails the test.
            with suppress(InputError):
                manager_rows(damaged, "manager")
