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
from tests.refusals import refused

transformers = pytest.importorskip("transformers", reason="the extra nli is not installed")

WORDS = [
    "the",
    "bridge",
    "opened",
    "in",
    "was",
    "built",
    "it",
    "is",
    "green",
    "red",
    "predict",
    ":",
    "1890",
    "1891",
    "0",
    "1",
]


def tokenizer(folder: Path) -> Any:
    """Save and return a tokenizer of words with the special tokens that models want."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    special = {"<pad>": 0, "</s>": 1, "<unk>": 2, "<s>": 3}
    words = {**special, **{word: at for at, word in enumerate(WORDS, len(special))}}
    made = Tokenizer(WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 3), ("</s>", 1)]
    )
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        bos_token="<s>",
        model_max_length=64,
    )
    wrapped.save_pretrained(folder)
    return wrapped


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    """A classifier of two outputs with random weights."""
    torch.manual_seed(0)
    folder = tmp_path / "roberta"
    words = tokenizer(folder)
    config = transformers.RobertaConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=66,
        num_labels=2,
        pad_token_id=0,
    )
    transformers.RobertaForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture
def writer(tmp_path: Path) -> Path:
    """A model that writes, with random weights."""
    torch.manual_seed(0)
    folder = tmp_path / "t5"
    words = tokenizer(folder)
    config = transformers.T5Config(
        vocab_size=len(words), d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


PAIRS = [
    TextPair("the bridge opened in 1890", "it opened in 1890"),
    TextPair("the bridge is green", "the bridge is red"),
]


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
    folder = tmp_path / "three"
    words = tokenizer(folder)
    config = transformers.RobertaConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8, max_position_embeddings=66, num_labels=3,
    )  # fmt: skip
    transformers.RobertaForSequenceClassification(config).save_pretrained(folder)
    refused("3 outputs.*nli:FOLDER", load_minicheck, folder)
    (tmp_path / "empty").mkdir()
    refused("finds no model", load_minicheck, tmp_path / "empty")
