"""A local NLI model: what is asked of transformers, and how its labels are read."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from factormodels import MissingDependencyError, RelationKind
from factormodels.extraction.relation_models.base import Judgement, Missing, TextPair
from factormodels.extraction.relation_models.nli import _judgement, label_columns, load_nli
from factormodels.selection.entailment import entailment_probability
from tests.refusals import refused

E, C, N = RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL

LABELS = {0: "CONTRADICTION", 1: "neutral", 2: "Entailment"}


class Batch(dict[str, Any]):
    """What a tokenizer returns."""

    def to(self, device: str) -> Batch:
        assert device == "cpu"
        return self


class Tokenizer:
    """One token per word; remembers the batches."""

    model_max_length = 10**30

    def __init__(self) -> None:
        self.batches: list[list[tuple[str, str]]] = []

    def num_special_tokens_to_add(self, *, pair: bool) -> int:
        return 3 if pair else 2

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        return [0] * len(text.split())

    def __call__(self, premises: list[str], hypotheses: list[str], **options: Any) -> Batch:
        assert options["truncation"] == "only_first"
        assert options["max_length"] == 14
        self.batches.append(list(zip(premises, hypotheses, strict=True)))
        return Batch(pairs=self.batches[-1])


class Model:
    """Says by its premise which label it prefers; the last word is the logit."""

    config = SimpleNamespace(id2label=LABELS, max_position_embeddings=16)

    def eval(self) -> None:
        """Do nothing."""

    def to(self, device: str) -> Model:
        if device != "cpu":
            raise RuntimeError("no such device")
        return self

    def __call__(self, pairs: list[tuple[str, str]]) -> Any:
        order = [LABELS[i].lower() for i in range(3)]
        rows = []
        for premise, _ in pairs:
            kind, logit = premise.split()[:2]
            rows.append([float(logit) if label == kind else 0.0 for label in order])
        return SimpleNamespace(logits=torch.tensor(rows))


@pytest.fixture
def tokenizer(monkeypatch: pytest.MonkeyPatch) -> Tokenizer:
    """A tokenizer behind a module that stands for transformers."""
    module = ModuleType("transformers")
    found = Tokenizer()

    def loaded(what: Any) -> Any:
        def from_pretrained(folder: str, *, local_files_only: bool) -> Any:
            assert local_files_only
            if "empty" in folder:
                raise OSError("no file named config.json")
            return what

        return SimpleNamespace(from_pretrained=from_pretrained)

    module.AutoTokenizer = loaded(found)  # type: ignore[attr-defined]
    module.AutoModelForSequenceClassification = loaded(Model())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", module)
    return found


def test_answers_are_softmaxes_in_the_order_of_the_pairs(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model = load_nli(tmp_path, batch_size=2)
    premises = ["entailment 2", "contradiction 1 and more", "neutral 3", "entailment 0.5 x"]
    answers = model.judge([TextPair(premise, "It is red.") for premise in premises])
    kinds = [(E, 2.0), (C, 1.0), (N, 3.0), (E, 0.5)]
    for answer, (kind, logit) in zip(answers, kinds, strict=True):
        assert isinstance(answer, Judgement)
        assert (answer.kind, answer.origin) == (kind, "nli")
        # The model's logits are single precision.
        share = math.exp(logit) / (math.exp(logit) + 2)
        assert answer.probability == pytest.approx(share, rel=1e-6)
        assert answer.distribution is not None
        assert answer.distribution[[E, C, N].index(kind)] == answer.probability
    assert [len(batch) for batch in tokenizer.batches] == [2, 2]
    assert model.name == f"nli:{tmp_path.name}"


def test_what_is_too_long_or_not_finite_is_missing(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = load_nli(tmp_path)
    assert model.max_length == 14
    told = [("neutral 1", "word " * 11), ("neutral inf", "It is red."), ("neutral 1", "word " * 9)]
    long, infinite, good = model.judge([TextPair(*texts) for texts in told])
    assert isinstance(long, Missing)
    assert "11 tokens" in long.reason
    assert isinstance(infinite, Missing)
    assert isinstance(good, Judgement)
    assert model.judge([]) == []
    assert len(tokenizer.batches) == 1


def test_a_long_premise_is_read_to_its_end_in_windows(tokenizer: Tokenizer, tmp_path: Path) -> None:
    def read(pairs: list[tuple[str, str]]) -> Any:
        rows = [[3.0 if "1891" in premise else 0.0, 2.0, 0.0] for premise, _ in pairs]
        return SimpleNamespace(logits=torch.tensor(rows))

    model = replace(load_nli(tmp_path), model=read)
    # Eleven tokens in all, three of them the hypothesis's: windows of eight words.
    premise = " ".join(["It", "rains."] * 20 + ["It", "opened", "in", "1891."])
    (found,) = model.judge([TextPair(premise, "It is red.")])
    assert isinstance(found, Judgement)
    assert found.kind is C
    assert found.distribution is not None
    assert found.distribution[1] == pytest.approx(math.exp(3) / (math.exp(3) + math.exp(2) + 1))
    parts = [one for batch in tokenizer.batches for one, _ in batch]
    assert len(parts) > 5
    assert all(len(part.split()) <= 8 for part in parts)
    # Of more than one window's length, nothing is truncated by the tokenizer.
    assert {word for part in parts for word in part.split()} == set(premise.split())


SILENT = {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}
TOLD = {"LABEL_0": "contradiction", "LABEL_1": "entailment", "LABEL_2": "neutral"}


@pytest.mark.parametrize(
    ("names", "labels", "expected"),
    [
        (LABELS, None, (2, 0, 1)),
        ({0: "entailment", 1: "neutral", 2: "contradiction"}, None, (0, 2, 1)),
        (SILENT, TOLD, (1, 0, 2)),
        # Models of one and of two labels say entailment alone.
        ({0: "entailment", 1: "not_entailment"}, None, (0, None, None)),
        ({0: "LABEL_0", 1: "LABEL_1"}, {"LABEL_1": "entailment"}, (1, None, None)),
        ({0: "LABEL_0"}, None, (0, None, None)),
    ],
)
def test_labels_are_read_by_name(
    names: dict[int, str], labels: dict[str, str] | None, expected: Any
) -> None:
    assert label_columns(names, "m", labels) == expected
    refused("no label 'LABEL_9'", label_columns, {**names, 7: "x"}, "m", {"LABEL_9": "neutral"})


@pytest.mark.parametrize(
    "names",
    [
        SILENT,
        {0: "LABEL_0", 1: "LABEL_1"},
        {0: "entailment", 1: "entailment", 2: "neutral", 3: "contradiction"},
    ],
)
def test_labels_that_do_not_tell_are_refused(names: dict[int, str]) -> None:
    refused("labels", label_columns, names, "m")


@pytest.mark.parametrize(
    ("logits", "columns", "probability", "kind"),
    [
        # A regression gives the probability itself, brought into its range.
        ([0.83], (0, None, None), 0.83, E),
        ([-0.02], (0, None, None), 0.0, N),
        ([1.2], (0, None, None), 1.0, E),
        ([1.0, 3.0], (1, None, None), 1 / (1 + math.exp(-2.0)), E),
        ([1.0, 3.0], (0, None, None), 1 / (1 + math.exp(2.0)), N),
    ],
)
def test_a_graded_or_two_way_answer_is_the_probability_of_entailment(
    logits: list[float], columns: Any, probability: float, kind: RelationKind
) -> None:
    answer = _judgement(np.array(logits), columns)
    assert isinstance(answer, Judgement)
    assert answer.kind is kind
    assert entailment_probability(answer) == pytest.approx(probability, abs=1e-15)
    assert answer.distribution is not None
    assert answer.distribution[1] == 0.0
    assert isinstance(_judgement(np.array([math.nan]), (0, None, None)), Missing)


@pytest.mark.usefixtures("tokenizer")
def test_bad_models_and_settings_are_named(tmp_path: Path) -> None:
    refused("no such folder", load_nli, tmp_path / "absent")
    empty = tmp_path / "empty"
    empty.mkdir()
    refused("no file named", load_nli, empty)
    refused("batch_size", load_nli, tmp_path, batch_size=0)
    refused("'moon'", load_nli, tmp_path, device="moon")


def test_without_transformers_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDependencyError, match=r"factorfacts\[nli\]"):
        load_nli(tmp_path)


def test_a_real_model_of_random_weights(tmp_path: Path) -> None:
    from tests.factormodels.extraction.relation_models.tiny_models import classifier

    names = {name: number for number, name in LABELS.items()}
    classifier(tmp_path, id2label=LABELS, label2id=names)
    model = load_nli(tmp_path, batch_size=2)
    pairs = [TextPair("it is red. " * n, "it is green.") for n in (1, 2, 30)]
    together = model.judge(pairs)
    for pair, answer in zip(pairs, together, strict=True):
        assert isinstance(answer, Judgement)
        (alone,) = model.judge([pair])
        assert isinstance(alone, Judgement)
        # Padding changes the order of sums in single precision.
        assert answer.distribution == pytest.approx(alone.distribution, abs=1e-5)
