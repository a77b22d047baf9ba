"""A local NLI model: a tiny one of random weights, and how labels are read."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from factormodels import MissingDependencyError, RelationKind
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.extraction.relation_models.nli import _judgment, label_columns, load_nli
from factormodels.selection.entailment import entailment_probability
from tests.factormodels.extraction.relation_models.tiny_models import classifier, transformers
from tests.refusals import refused

E, C, N = RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL

LABELS = {0: "CONTRADICTION", 1: "neutral", 2: "Entailment"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of random weights, as transformers saves it."""
    names = {name: number for number, name in LABELS.items()}
    made = tmp_path_factory.mktemp("models") / "tiny"
    return classifier(made, id2label=LABELS, label2id=names)


def test_answers_are_the_models_softmaxes_in_the_order_of_the_pairs(folder: Path) -> None:
    model = load_nli(folder, batch_size=2)
    # Random as they are the outputs would hardly differ.
    torch.nn.init.normal_(model.model.classifier.out_proj.weight, std=300.0)
    pairs = [TextPair("it is red. " * n, "it is green.") for n in (1, 5, 2, 9, 3)]
    kinds = set()
    for pair, answer in zip(pairs, model.judge(pairs), strict=True):
        inputs = model.tokenizer(pair.premise, pair.hypothesis, return_tensors="pt")
        with torch.no_grad():
            against, neither, speaks = model.model(**inputs).logits.softmax(-1)[0].tolist()
        assert isinstance(answer, Judgment)
        # Batches are padded, which changes the order of sums in single precision.
        assert answer.distribution == pytest.approx((speaks, against, neither), abs=1e-4)
        assert answer.probability == max(answer.distribution or ())
        assert (answer.distribution or ())[[E, C, N].index(answer.kind)] == answer.probability
        assert answer.origin == "nli"
        kinds.add(answer.distribution)
    assert len(kinds) == len(pairs)
    assert (model.name, model.judge([])) == ("nli:tiny", [])


def test_values_too_long_or_not_finite_are_missing(folder: Path) -> None:
    # Two of a RoBERTa's 66 positions are for padding.
    assert load_nli(folder).max_length == 64
    model = load_nli(folder, max_length=14)
    long, good = model.judge([TextPair("it is", "red " * 11), TextPair("it is", "red " * 9)])
    assert isinstance(long, Missing)
    assert "11 tokens" in long.reason
    assert isinstance(good, Judgment)
    unbound = replace(model, model=lambda **_: SimpleNamespace(logits=torch.full((1, 3), math.inf)))
    assert isinstance(unbound.judge([TextPair("it is red", "it")])[0], Missing)


def test_a_long_premise_is_read_to_its_end_in_windows(folder: Path) -> None:
    plain = load_nli(folder, max_length=14)
    year = plain.tokenizer.convert_tokens_to_ids("1891")
    read: list[list[int]] = []

    def model(input_ids: torch.Tensor, **_: Any) -> Any:
        read.extend(input_ids.tolist())
        rows = [[3.0 if year in ids else 0.0, 2.0, 0.0] for ids in input_ids.tolist()]
        return SimpleNamespace(logits=torch.tensor(rows))

    # Eleven tokens in all, three of them the hypothesis's: windows of eight words.
    premise = "it is " * 20 + "it opened in 1891"
    (judgment,) = replace(plain, model=model).judge([TextPair(premise, "it is red")])
    assert isinstance(judgment, Judgment)
    assert judgment.kind is C
    assert judgment.distribution is not None
    assert judgment.distribution[1] == pytest.approx(math.exp(3) / (math.exp(3) + math.exp(2) + 1))
    # Of more than one window's length, nothing is truncated by the tokenizer.
    assert len(read) > 5
    assert max(map(len, read)) <= 14
    assert set(plain.tokenizer.encode(premise)) <= {token for ids in read for token in ids}


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
    answer = _judgment(np.array(logits), columns)
    assert isinstance(answer, Judgment)
    assert answer.kind is kind
    assert entailment_probability(answer) == pytest.approx(probability, abs=1e-15)
    assert answer.distribution is not None
    assert answer.distribution[1] == 0.0
    assert isinstance(_judgment(np.array([math.nan]), (0, None, None)), Missing)


def test_bad_models_and_settings_are_named(folder: Path, tmp_path: Path) -> None:
    refused("no such folder", load_nli, tmp_path / "absent")
    refused("transformers finds no text classifier there", load_nli, tmp_path)
    refused("batch_size", load_nli, folder, batch_size=0)
    refused("'moon'", load_nli, folder, device="moon")


def test_without_transformers_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDependencyError, match=r"factorfacts\[nli\]"):
        load_nli(tmp_path)


def test_loading_a_model_writes_nothing_to_the_terminal(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    transformers().utils.logging.enable_progress_bar()
    capfd.readouterr()
    load_nli(folder)
    assert "".join(capfd.readouterr()) == ""
    # What another program in the process chose stays.
    assert transformers().utils.logging.is_progress_bar_enabled()
