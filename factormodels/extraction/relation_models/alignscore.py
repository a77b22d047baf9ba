"""AlignScore checkpoints as relation models, from a local folder.

Source: Zha et al. 2023, "AlignScore: Evaluating Factual Consistency with a Unified Alignment
Function" (yuh-zha/AlignScore, MIT). A checkpoint contains a RoBERTa and three linear layers on its
pooled output, one of which has three outputs: aligned, neutral and contradicting. It contains no
tokenizer or configuration: the folder must have those of the RoBERTa that it was trained from.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from types import SimpleNamespace
from typing import Any

from factormodels.errors import InputError
from factormodels.extraction.optional_libraries import optional_module
from factormodels.extraction.relation_models.nli import NliRelations, placed_model, positions_of

_COLUMNS = (0, 2, 1)
"""Indices of the outputs for entailment, contradiction and neutral."""

_OUTPUTS = 3
_BODY, _HEAD = "base_model.", "tri_layer."
_LONGEST = 512


def load_alignscore(
    folder: str | os.PathLike[str], *, batch_size: int = 32, device: str = "cpu"
) -> NliRelations:
    """Load the three-output classifier of an AlignScore checkpoint; nothing is downloaded.

    The checkpoint is a pickle, from which torch reads tensors and plain values only: any other
    content is refused.

    Args:
        folder: folder with one checkpoint (.ckpt) and the configuration and tokenizer of its
            RoBERTa.
        batch_size: pairs per forward pass.
        device: device of the model, such as "cpu" or "cuda".

    Raises:
        InputError: if the folder does not exist or contains no such checkpoint, or its weights do
            not fit the configuration.
        MissingDependencyError: if transformers or torch is not installed.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"{path}: there is no such folder; name one with AlignScore's checkpoint")
    checkpoints = sorted(path.glob("*.ckpt"))
    if len(checkpoints) != 1:
        raise InputError(
            f"{path}: it has {len(checkpoints)} checkpoints (.ckpt); keep one, with the "
            "configuration and tokenizer of its RoBERTa beside it"
        )
    torch = optional_module("torch", "nli")
    transformers = optional_module("transformers", "nli")
    try:
        config = transformers.AutoConfig.from_pretrained(str(path), local_files_only=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(path), local_files_only=True)
        body = transformers.AutoModel.from_config(config)
    except (OSError, ValueError, KeyError, ImportError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{path}: transformers finds no configuration and tokenizer there ({reason}); save "
            "those of the RoBERTa that the checkpoint was trained from"
        ) from None
    weights = checkpoint_weights(checkpoints[0])
    head = torch.nn.Linear(config.hidden_size, _OUTPUTS)
    for part, module in ((_BODY, body), (_HEAD, head)):
        part_weights = {
            name.removeprefix(part): value
            for name, value in weights.items()
            if name.startswith(part)
        }
        _fill(module, part_weights, f"{checkpoints[0]}: its {part.rstrip('.')}")
    model = _classifier(torch, body, head)
    limit = min(_LONGEST, tokenizer.model_max_length, positions_of(config))
    name = f"alignscore:{checkpoints[0].stem}"
    return NliRelations(
        name, _COLUMNS, batch_size, limit, device, tokenizer, placed_model(model, device)
    )


def checkpoint_weights(path: Path) -> Mapping[str, Any]:
    """Return the tensors of a checkpoint by name, without running code from it.

    Raises:
        InputError: if it contains more than tensors and plain values, is damaged, or is not an
            AlignScore checkpoint.
        MissingDependencyError: if torch is not installed.
    """
    torch = optional_module("torch", "nli")
    try:
        # The default since torch 2.6, set here for any release.
        loaded = torch.load(str(path), map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        reason = str(error).split("\n", 1)[0].strip().removesuffix(".")
        raise InputError(
            f"{path}: it holds more than tensors and plain values, which would have to be run "
            f"({reason}); if you trust it, save its weights again with "
            "torch.save({'state_dict': ...})"
        ) from None
    except (RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: torch cannot read it ({reason}); fetch it again") from None
    weights = loaded.get("state_dict") if isinstance(loaded, dict) else None
    if not isinstance(weights, dict) or f"{_HEAD}weight" not in weights:
        raise InputError(
            f"{path}: there is no layer 'tri_layer' among its weights, so that it is not an "
            "AlignScore checkpoint; use nli:FOLDER for other models"
        )
    return weights


def _fill(module: Any, weights: Mapping[str, Any], where: str) -> None:
    """Load all weights of a module; additional weights are ignored."""
    parameters = module.state_dict()
    for name, value in parameters.items():
        shape = tuple(getattr(weights.get(name), "shape", ()))
        if name not in weights or shape != tuple(value.shape):
            raise InputError(
                f"{where} has {list(shape) or 'nothing'} for {name!r}, and the configuration "
                f"{list(value.shape)}; put the configuration of its own RoBERTa beside it"
            )
    module.load_state_dict({name: weights[name] for name in parameters})


def _classifier(torch: Any, body: Any, head: Any) -> Any:
    """Return body and head as one module that returns logits like transformers' classifiers."""

    class Aligned(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = body, head

        def forward(self, **inputs: Any) -> SimpleNamespace:
            return SimpleNamespace(logits=self.head(self.body(**inputs).pooler_output))

    return Aligned()
