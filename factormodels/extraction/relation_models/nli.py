"""A local model of natural language inference, through transformers, from a folder on this disk."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.claims import RelationKind
from factormodels.errors import InputError
from factormodels.extraction.optional import optional_module
from factormodels.extraction.relation_models.base import Judgement, Missing, TextPair
from factormodels.extraction.relation_models.lexical import KINDS

_STEMS: Mapping[RelationKind, str] = MappingProxyType(
    {
        RelationKind.ENTAILMENT: "entail",
        RelationKind.CONTRADICTION: "contradict",
        RelationKind.NEUTRAL: "neutral",
    }
)


@dataclass(frozen=True)
class NliRelations:
    """A sequence classifier for pairs of texts, as `load_nli` builds it.

    Attributes:
        name: the model's name in tables and manifests.
        columns: position of entailment, contradiction and neutral among the model's outputs.
        batch_size: pairs per forward pass.
        max_length: tokens per pair; a longer premise is cut at its end.
        device: where the model runs, as torch spells it.
    """

    name: str
    columns: tuple[int, int, int]
    batch_size: int
    max_length: int
    device: str
    tokenizer: Any = field(repr=False, compare=False)
    model: Any = field(repr=False, compare=False)

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        """Likeliest relation of each pair, with the distribution.

        A pair whose numbers are not finite, or whose hypothesis alone is too long for the model,
        is missing.
        """
        # Pairs of like length share a batch, so that little of it is padding.
        order = sorted(range(len(pairs)), key=lambda i: len(pairs[i].premise), reverse=True)
        answers: list[Judgement | Missing] = [Missing("the pair was not asked")] * len(pairs)
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            for place, answer in zip(batch, self._answers([pairs[i] for i in batch]), strict=True):
                answers[place] = answer
        return answers

    def _answers(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        longest = self.max_length - self.tokenizer.num_special_tokens_to_add(pair=True)
        lengths = [
            len(self.tokenizer.encode(pair.hypothesis, add_special_tokens=False)) for pair in pairs
        ]
        fitting = [i for i, length in enumerate(lengths) if length < longest]
        answers: list[Judgement | Missing] = [
            Missing(f"the hypothesis has {length} tokens and the model takes {longest}")
            for length in lengths
        ]
        if fitting:
            logits = self._logits([pairs[i] for i in fitting])
            for place, row in zip(fitting, logits[:, self.columns], strict=True):
                answers[place] = _judgement(row)
        return answers

    def _logits(self, pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        import torch

        inputs = self.tokenizer(
            [pair.premise for pair in pairs],
            [pair.hypothesis for pair in pairs],
            truncation="only_first",
            max_length=self.max_length,
            padding=True,
            return_tensors="pt",
        ).to(self.device)
        with torch.no_grad():
            logits = self.model(**inputs).logits
        result: NDArray[np.float64] = logits.double().cpu().numpy()
        return result


def load_nli(
    folder: str | os.PathLike[str],
    *,
    batch_size: int = 32,
    max_length: int = 512,
    device: str = "cpu",
    labels: Mapping[str, str] | None = None,
) -> NliRelations:
    """Relation model in a folder that transformers can read; nothing is downloaded.

    Which output means what is taken from the names of labels in the model's configuration.

    Args:
        folder: folder with the model, its tokenizer and configuration.
        batch_size: pairs per forward pass.
        max_length: tokens per pair; lowered to what the model takes.
        device: where the model runs, such as "cpu" or "cuda".
        labels: relation of each of the model's labels, where their names do not tell.

    Raises:
        InputError: if there is no such folder, it holds no such model, a setting is out of range,
            or the labels do not name the three relations.
        MissingDependencyError: if transformers or torch is not installed.
    """
    for what, value in (("batch_size", batch_size), ("max_length", max_length)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{what} is {value!r}; give a whole number from 1")
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"{path}: there is no such folder; name the folder of an NLI model")
    optional_module("torch", "nli")
    transformers = optional_module("transformers", "nli")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(path), local_files_only=True)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            str(path), local_files_only=True
        )
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{path}: transformers finds no classifier of texts there ({reason}); name a folder "
            "that save_pretrained wrote"
        ) from None
    columns = label_columns(model.config.id2label, str(path), labels)
    limits = (max_length, tokenizer.model_max_length, _positions(model.config))
    placed = _placed(model, device)
    name = f"nli:{path.name}"
    return NliRelations(name, columns, batch_size, min(limits), device, tokenizer, placed)


def label_columns(
    names: Mapping[int, str], where: str, labels: Mapping[str, str] | None = None
) -> tuple[int, int, int]:
    """Outputs that stand for entailment, contradiction and neutral.

    Args:
        names: the model's label of each output.
        where: what errors call the model.
        labels: relation of each label; None reads it off the label's name.

    Raises:
        InputError: unless each relation has exactly one output.
    """
    found: dict[RelationKind, list[int]] = {kind: [] for kind in KINDS}
    for column, name in names.items():
        for kind, stem in _STEMS.items():
            told = labels.get(name) == kind if labels is not None else _means(name, stem)
            if told:
                found[kind].append(int(column))
    if any(len(columns) != 1 for columns in found.values()):
        listed = ", ".join(repr(name) for name in names.values())
        raise InputError(
            f"{where}: its labels are {listed}, which do not name entailment, contradiction and "
            "neutral once each; say which is which with labels"
        )
    entailment, contradiction, neutral = (found[kind][0] for kind in KINDS)
    return entailment, contradiction, neutral


def _means(name: str, stem: str) -> bool:
    # "not_entailment", the second label of a two-way model, is no entailment.
    return name.casefold().startswith(stem)


def _positions(config: Any) -> int:
    # RoBERTa keeps two of its positions for padding; that many tokens less fit.
    return int(getattr(config, "max_position_embeddings", 0) or 2**31) - 2


def _placed(model: Any, device: str) -> Any:
    model.eval()
    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"the device {device!r} cannot be used ({reason}); use cpu") from None


def _judgement(logits: NDArray[np.float64]) -> Judgement | Missing:
    if not np.isfinite(logits).all():
        return Missing("the model's output is not finite")
    weights = np.exp(logits - logits.max())
    row = (weights / weights.sum()).tolist()
    best = int(np.argmax(row))
    return Judgement(KINDS[best], row[best], "nli", (row[0], row[1], row[2]))
