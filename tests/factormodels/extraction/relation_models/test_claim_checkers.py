"""Models that check claims, MiniCheck's and AlignScore's: tiny ones with random weights.

They are saved and loaded as a user's would be. Checkpoints of AlignScore (yuh-zha/AlignScore, MIT)
are those of PyTorch Lightning: `state_dict`, `hyper_parameters` and the state of a training.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch

from experiments.asking.relation_models import relation_model
from factormodels import RelationKind
from factormodels.extraction.relation_models.alignscore import checkpoint_weights, load_alignscore
from factormodels.extraction.relation_models.base import Judgment, TextPair
from factormodels.extraction.relation_models.minicheck import load_minicheck
from tests.factormodels.extraction.relation_models import tiny_models
from tests.factormodels.extraction.relation_models.tiny_models import (
    PAIRS,
    roberta,
    tokenizer,
    transformers,
)
from tests.refusals import refused


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    """A classifier of two outputs."""
    return tiny_models.classifier(tmp_path / "roberta", num_labels=2)


@pytest.fixture
def writer(tmp_path: Path) -> Path:
    """A model that writes."""
    return tiny_models.writer(tmp_path / "t5")


class Runs:
    """Code that a pickle would run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("run",)


def checkpoint(**further: Any) -> dict[str, Any]:
    """The state of the model in memory, and what a training leaves beside it."""
    return {
        "epoch": 2,
        "global_step": 30,
        "pytorch-lightning_version": "1.9.5",
        "hyper_parameters": {"model": "roberta-base", "adam_epsilon": 1e-6, "args": ()},
        "optimizer_states": [{"state": {}, "param_groups": [{"lr": 1e-5}]}],
        "callbacks": {},
        **further,
    }


@pytest.fixture
def aligned(tmp_path: Path) -> Path:
    """A checkpoint with the configuration and the tokenizer of its RoBERTa."""
    torch.manual_seed(0)
    made = tmp_path / "aligned"
    tokenizer(made)
    config = roberta()
    config.save_pretrained(made)
    base = transformers().RobertaModel(config)
    layers = {
        name: torch.nn.Linear(16, outputs)
        for name, outputs in (("bin_layer", 2), ("tri_layer", 3), ("reg_layer", 1))
    }
    # Random as they are the outputs would hardly differ.
    torch.nn.init.normal_(layers["tri_layer"].weight, std=3.0)
    state = OrderedDict(
        (f"{prefix}.{name}", value)
        for prefix, module in (("base_model", base), *layers.items())
        for name, value in module.state_dict().items()
    )
    state["base_model.embeddings.position_ids"] = torch.arange(66)[None]
    torch.save(checkpoint(state_dict=state), made / "AlignScore-tiny.ckpt")
    return made


def probabilities(answers: list[Any]) -> list[float]:
    shares = []
    for answer in answers:
        assert isinstance(answer, Judgment)
        assert answer.kind in (RelationKind.ENTAILMENT, RelationKind.NEUTRAL)
        entails = answer.kind is RelationKind.ENTAILMENT
        shares.append(answer.probability if entails else 1.0 - answer.probability)
    return shares


def test_a_classifier_reads_one_text_with_the_end_token_between(classifier: Path) -> None:
    model = load_minicheck(classifier)
    words = transformers().AutoTokenizer.from_pretrained(classifier)
    bare = transformers().AutoModelForSequenceClassification.from_pretrained(classifier).eval()
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
    words = transformers().AutoTokenizer.from_pretrained(writer)
    bare = transformers().AutoModelForSeq2SeqLM.from_pretrained(writer).eval()
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


def test_the_layer_of_three_outputs_says_the_relation(aligned: Path) -> None:
    state = torch.load(aligned / "AlignScore-tiny.ckpt", weights_only=True)["state_dict"]
    words = transformers().AutoTokenizer.from_pretrained(aligned)
    config = transformers().AutoConfig.from_pretrained(aligned)
    base = transformers().RobertaModel(config).eval()
    base.load_state_dict(
        {name[11:]: value for name, value in state.items() if name.startswith("base_model.")},
        strict=False,
    )
    model = load_alignscore(aligned)
    answers = model.judge(PAIRS)
    kinds = set()
    for pair, answer in zip(PAIRS, answers, strict=True):
        inputs = words(pair.premise, pair.hypothesis, return_tensors="pt")
        with torch.no_grad():
            pooled = base(**inputs).pooler_output
            logits = pooled @ state["tri_layer.weight"].T + state["tri_layer.bias"]
        aligned, neutral, contradicting = logits.softmax(-1)[0].tolist()
        assert isinstance(answer, Judgment)
        assert answer.distribution == pytest.approx((aligned, contradicting, neutral), abs=1e-5)
        kinds.add(answer.kind)
    assert model.name == "alignscore:AlignScore-tiny"
    assert kinds <= set(RelationKind)


def test_a_long_document_is_read_in_parts(classifier: Path, aligned: Path) -> None:
    long = ". ".join(["the bridge is green and it was built in 1891"] * 20)
    for model in (load_minicheck(classifier), load_alignscore(aligned)):
        (answer,) = model.judge([TextPair(long, "it is green")])
        assert isinstance(answer, Judgment)


def test_they_have_names_among_relation_models(
    classifier: Path, aligned: Path, tmp_path: Path
) -> None:
    named = {"minicheck": (classifier, "roberta"), "alignscore": (aligned, "AlignScore-tiny")}
    for kind, (folder, name) in named.items():
        model, facts = relation_model(f"{kind}:{folder}")
        assert model.name == f"{kind}:{name}"
        assert len(facts[f"{kind}_sha256"]) == 64
        refused("no such folder", relation_model, f"{kind}:{tmp_path / 'none'}")


def test_another_model_is_refused(tmp_path: Path) -> None:
    folder = tiny_models.classifier(tmp_path / "three", num_labels=3)
    refused("3 outputs.*nli:FOLDER", load_minicheck, folder)
    (tmp_path / "empty").mkdir()
    refused("finds no MiniCheck model", load_minicheck, tmp_path / "empty")


def test_a_checkpoint_that_does_not_fit_is_refused(aligned: Path, tmp_path: Path) -> None:
    path = aligned / "AlignScore-tiny.ckpt"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused("torch cannot read it", load_alignscore, aligned)
    torch.save({"state_dict": {"classifier.weight": torch.zeros(3, 16)}}, path)
    refused("no layer 'tri_layer'", load_alignscore, aligned)
    path.write_bytes(whole)
    config = transformers().AutoConfig.from_pretrained(aligned)
    config.hidden_size = config.intermediate_size = 32
    config.save_pretrained(aligned)
    refused(r"its base_model has \[.*16\].*and the configuration \[", load_alignscore, aligned)
    (aligned / "second.ckpt").write_bytes(whole)
    refused("it has 2 checkpoints", load_alignscore, aligned)
    (tmp_path / "empty").mkdir()
    refused("it has 0 checkpoints", load_alignscore, tmp_path / "empty")
    path.rename(tmp_path / "empty" / path.name)
    refused("finds no configuration", load_alignscore, tmp_path / "empty")


def test_code_that_a_pickle_would_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.ckpt"
    torch.save(checkpoint(state_dict={}, callbacks=Runs()), path)
    refused("more than tensors and plain values", checkpoint_weights, path)
    assert capsys.readouterr().out == ""
