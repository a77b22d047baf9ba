"""Checkpoints of a training: tensors are read, and nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from factormodels.extraction.relation_models.alignscore import checkpoint_weights
from tests.refusals import refused


class Runs:
    """What a pickle would run."""

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


def test_the_weights_of_a_training_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    weights = {"tri_layer.weight": torch.arange(6.0).reshape(3, 2)}
    torch.save(checkpoint(state_dict=weights), path)
    found = checkpoint_weights(path)
    assert found["tri_layer.weight"].tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]


def test_what_would_be_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.ckpt"
    torch.save(checkpoint(state_dict={}, callbacks=Runs()), path)
    refused("more than tensors and plain values", checkpoint_weights, path)
    assert capsys.readouterr().out == ""
