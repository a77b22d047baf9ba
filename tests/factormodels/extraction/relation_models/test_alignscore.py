"""AlignScore's checkpoints: a tiny one with random weights, saved and loaded as a user's would be.

Checkpoints of AlignScore (yuh-zha/AlignScore, MIT) are those of PyTorch Lightning: a dictionary
with `state_dict`, `hyper_parameters` and the state of a training.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pytest
import torch

from experiments.asking.relation_models import relation_model
from factormodels import RelationKind
from factormodels.extraction.relation_models.alignscore import load_alignscore
from factormodels.extraction.relation_models.base import Judgement, TextPair
from tests.factormodels.extraction.relation_models.test_checkpoints import checkpoint
from tests.factormodels.extraction.relation_models.tiny_models import (
    PAIRS,
    roberta,
    tokenizer,
    transformers,
)
from tests.refusals import refused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint with the configuration and the tokenizer of its RoBERTa."""
    torch.manual_seed(0)
    made = tmp_path / "aligned"
    tokenizer(made)
    config = roberta()
    config.save_pretrained(made)
    base = transformers.RobertaModel(config)
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


def test_the_layer_of_three_outputs_says_the_relation(folder: Path) -> None:
    state = torch.load(folder / "AlignScore-tiny.ckpt", weights_only=True)["state_dict"]
    words = transformers.AutoTokenizer.from_pretrained(folder)
    config = transformers.AutoConfig.from_pretrained(folder)
    base = transformers.RobertaModel(config).eval()
    base.load_state_dict(
        {name[11:]: value for name, value in state.items() if name.startswith("base_model.")},
        strict=False,
    )
    model = load_alignscore(folder)
    answers = model.judge(PAIRS)
    kinds = set()
    for pair, answer in zip(PAIRS, answers, strict=True):
        inputs = words(pair.premise, pair.hypothesis, return_tensors="pt")
        with torch.no_grad():
            pooled = base(**inputs).pooler_output
            logits = pooled @ state["tri_layer.weight"].T + state["tri_layer.bias"]
        aligned, neutral, contradicting = logits.softmax(-1)[0].tolist()
        assert isinstance(answer, Judgement)
        assert answer.distribution == pytest.approx((aligned, contradicting, neutral), abs=1e-5)
        kinds.add(answer.kind)
    assert model.name == "alignscore:AlignScore-tiny"
    assert kinds <= set(RelationKind)


def test_a_long_document_is_read_in_parts(folder: Path) -> None:
    long = ". ".join(["the bridge is green and it was built in 1891"] * 20)
    (answer,) = load_alignscore(folder).judge([TextPair(long, "it is green")])
    assert isinstance(answer, Judgement)


def test_it_has_a_name_among_relation_models(folder: Path, tmp_path: Path) -> None:
    model, facts = relation_model(f"alignscore:{folder}")
    assert model.name == "alignscore:AlignScore-tiny"
    assert len(facts["alignscore_sha256"]) == 64
    refused("no such folder", relation_model, f"alignscore:{tmp_path / 'none'}")


def test_what_does_not_fit_is_refused(folder: Path, tmp_path: Path) -> None:
    path = folder / "AlignScore-tiny.ckpt"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused("torch cannot read it", load_alignscore, folder)
    torch.save({"state_dict": {"classifier.weight": torch.zeros(3, 16)}}, path)
    refused("no layer 'tri_layer'", load_alignscore, folder)
    path.write_bytes(whole)
    config = transformers.AutoConfig.from_pretrained(folder)
    config.hidden_size = config.intermediate_size = 32
    config.save_pretrained(folder)
    refused(r"its base_model has \[.*16\].*and the configuration \[", load_alignscore, folder)
    (folder / "second.ckpt").write_bytes(whole)
    refused("it has 2 checkpoints", load_alignscore, folder)
    (tmp_path / "empty").mkdir()
    refused("it has 0 checkpoints", load_alignscore, tmp_path / "empty")
    path.rename(tmp_path / "empty" / path.name)
    refused("finds no configuration", load_alignscore, tmp_path / "empty")
