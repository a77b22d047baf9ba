"""MiniCheck's models: tiny ones with random weights, saved and loaded as a user's would be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from experiments.asking.relation_models import relation_model
from factormodels import RelationKind
from factormodels.extraction.relation_models.base import Judgement, TextPair
from factormodels.extraction.relation_models.minicheck import load_minicheck
from tests.factormodels.extraction.relation_models import tiny_models
from tests.factormodels.extraction.relation_models.tiny_models import PAIRS, transformers
from tests.refusals import refused


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    """A classifier of two outputs."""
    return tiny_models.classifier(tmp_path / "roberta", num_labels=2)


@pytest.fixture
def writer(tmp_path: Path) -> Path:
    """A model that writes."""
    return tiny_models.writer(tmp_path / "t5")


def probabilities(answers: list[Any]) -> list[float]:
    found = []
    for answer in answers:
        assert isinstance(answer, Judgement)
        assert answer.kind in (RelationKind.ENTAILMENT, RelationKind.NEUTRAL)
        entails = answer.kind is RelationKind.ENTAILMENT
        found.append(answer.probability if entails else 1.0 - answer.probability)
    return found


def test_a_classifier_reads_one_text_with_the_end_token_between(classifier: Path) -> None:
    model = load_minicheck(classifier)
    words = transformers.AutoTokenizer.from_pretrained(classifier)
    bare = transformers.AutoModelForSequenceClassification.from_pretrained(classifier).eval()
    expected = []
    for pair in PAIRS:
        inputs = words(f"{pair.premise}</s>{pair.hypothesis}", return_tensors="pt")
        with torch.no_grad():
            expected.append(float(bare(**inputs).logits.softmax(-1)[0, 1]))
    # Batches are padded, and single precision rounds there.
    assert probabilities(model.judge(PAIRS)) == pytest.approx(expected, abs=1e-5)
    assert model.name == "minicheck:roberta"


def test_a_writer_says_the_first_piece_of_its_answer(writer: Path) -> None:
    model = load_minicheck(writer)
    words = transformers.AutoTokenizer.from_pretrained(writer)
    bare = transformers.AutoModelForSeq2SeqLM.from_pretrained(writer).eval()
    answers = [words.convert_tokens_to_ids(word) for word in ("0", "1")]
    expected = []
    for pair in PAIRS:
        inputs = words(f"predict: {pair.premise}</s>{pair.hypothesis}", return_tensors="pt")
        with torch.no_grad():
            logits = bare(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                decoder_input_ids=torch.zeros((1, 1), dtype=torch.long),
            ).logits[0, 0, answers]
        expected.append(float(logits.softmax(-1)[1]))
    assert probabilities(model.judge(PAIRS)) == pytest.approx(expected, abs=1e-5)


def test_a_long_document_is_read_in_parts_and_the_best_counts(classifier: Path) -> None:
    model = load_minicheck(classifier)
    long = ". ".join(["the bridge is green and it was built in 1891"] * 20)
    (answer,) = model.judge([TextPair(long, "it is green")])
    assert isinstance(answer, Judgement)


def test_it_has_a_name_among_relation_models(classifier: Path, tmp_path: Path) -> None:
    model, facts = relation_model(f"minicheck:{classifier}")
    assert model.name == "minicheck:roberta"
    assert len(facts["minicheck_sha256"]) == 64
    refused("no such folder", relation_model, f"minicheck:{tmp_path / 'none'}")


def test_another_model_is_refused(tmp_path: Path) -> None:
    folder = tiny_models.classifier(tmp_path / "three", num_labels=3)
    refused("3 outputs.*nli:FOLDER", load_minicheck, folder)
    (tmp_path / "empty").mkdir()
    refused("finds no model", load_minicheck, tmp_path / "empty")
