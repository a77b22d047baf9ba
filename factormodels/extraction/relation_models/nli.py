"""Local models of natural language inference, through transformers, from a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.claims import JUDGED_KINDS, RelationKind, likeliest_kind
from factormodels.errors import InputError
from factormodels.extraction.optional_libraries import optional_module, without_progress_bars
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.extraction.relation_models.windows import combined_pairs, window_pairs

_STEMS: Mapping[RelationKind, tuple[str, ...]] = MappingProxyType(
    {
        RelationKind.ENTAILMENT: ("entail", "align", "support"),
        RelationKind.CONTRADICTION: ("contradict", "refute"),
        RelationKind.NEUTRAL: ("neutral",),
    }
)
"""Prefixes of labels of inference models, AlignScore's three outputs, and fact-checkers."""


_LEAST_ROOM = 8
"""Minimum tokens of a useful window of a premise."""


Columns = tuple[int, int | None, int | None]
"""Outputs for entailment, contradiction and neutral; None if absent."""


@dataclass(frozen=True)
class NliRelations:
    """A sequence classifier for pairs of texts, as `load_nli` builds it.

    Attributes:
        name: the model's name in tables and manifests.
        columns: position of entailment, contradiction and neutral among the model's outputs. A
            model with two labels does not distinguish the last two, which are then None; a
            regression with one output has none of the three.
        batch_size: pairs per forward pass.
        max_length: tokens per pair; a longer premise is read in overlapping windows.
        device: device of the model, as torch spells it.
    """

    name: str
    columns: Columns
    batch_size: int
    max_length: int
    device: str
    tokenizer: Any = field(repr=False, compare=False)
    model: Any = field(repr=False, compare=False)

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        """Return the most probable relation of each pair, with the distribution.

        Texts that are too long are read in overlapping windows. A pair is missing if its outputs
        are not finite, or if the hypothesis leaves no room for the premise.
        """
        parts: list[tuple[str, str]] = []
        grids: list[list[range]] = []
        room = self.max_length - self.tokenizer.num_special_tokens_to_add(pair=True)
        for pair in pairs:
            rows = window_pairs(
                pair.titled_premise, pair.hypothesis, room, _LEAST_ROOM, self._tokens
            )
            grids.append([])
            for row in rows:
                grids[-1].append(range(len(parts), len(parts) + len(row)))
                parts += row
        judgments = self._judged(parts)
        return [
            combined_pairs([[judgments[i] for i in row] for row in rows])
            if rows
            else self._without_room(pair, room)
            for pair, rows in zip(pairs, grids, strict=True)
        ]

    def _judged(self, parts: Sequence[tuple[str, str]]) -> dict[int, Judgment | Missing]:
        # Batch pairs of similar length to reduce padding.
        order = sorted(range(len(parts)), key=lambda i: len(parts[i][0]), reverse=True)
        judgments: dict[int, Judgment | Missing] = {}
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            logits = self._logits([parts[i] for i in batch])
            judgments |= {
                i: _judgment(row, self.columns) for i, row in zip(batch, logits, strict=True)
            }
        return judgments

    def _without_room(self, pair: TextPair, room: int) -> Missing:
        length = self._tokens(pair.hypothesis)
        return Missing(f"the hypothesis has {length} tokens and the model takes {room} in all")

    def _tokens(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False))

    def _logits(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        import torch

        inputs = self.tokenizer(
            [premise for premise, _ in pairs],
            [hypothesis for _, hypothesis in pairs],
            # Windows fit, except for an additional token where a word is split at a border.
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
    """Load a relation model from a folder with transformers; nothing is downloaded.

    The meanings of the outputs are taken from the names of labels in the model's configuration. A
    model with two labels predicts entailment or not; one with a single output, a regression such as
    one trained on UNLI, predicts the probability of entailment itself.

    Args:
        folder: folder with the model, its tokenizer and configuration.
        batch_size: pairs per forward pass.
        max_length: tokens per pair; lowered to the model's limit.
        device: device of the model, such as "cpu" or "cuda".
        labels: relation of each of the model's labels, if their names do not show it.

    Raises:
        InputError: if the folder does not exist or contains no such model, a setting is out of
            range, or the labels do not name the three relations.
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
        with without_progress_bars():
            model = transformers.AutoModelForSequenceClassification.from_pretrained(
                str(path), local_files_only=True
            )
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{path}: transformers finds no text classifier there ({reason}); name a folder "
            "that save_pretrained wrote"
        ) from None
    columns = label_columns(model.config.id2label, str(path), labels)
    limits = (max_length, tokenizer.model_max_length, positions_of(model.config))
    placed = placed_model(model, device)
    name = f"nli:{path.name}"
    return NliRelations(name, columns, batch_size, min(limits), device, tokenizer, placed)


def label_columns(
    names: Mapping[int, str], where: str, labels: Mapping[str, str] | None = None
) -> Columns:
    """Return the outputs for entailment, contradiction and neutral.

    If there are two outputs, one is entailment and the other its absence; a single output is the
    probability of entailment.

    Args:
        names: the model's label of each output.
        where: name of the model in errors.
        labels: relation of each label; None infers it from the label's name.

    Raises:
        InputError: unless each relation has exactly one output, or entailment one of at most two.
    """
    if len(names) == 1:
        return next(iter(names)), None, None
    listed = ", ".join(repr(name) for name in names.values())
    for name in labels or {}:
        if name not in names.values():
            raise InputError(f"{where}: it has no label {name!r}; its labels are {listed}")
    columns_by_kind: dict[RelationKind, list[int]] = {kind: [] for kind in JUDGED_KINDS}
    for column, name in names.items():
        for kind, stems in _STEMS.items():
            matches = labels.get(name) == kind if labels is not None else _means(name, stems)
            if matches:
                columns_by_kind[kind].append(int(column))
    entailment, contradiction, neutral = (columns_by_kind[kind] for kind in JUDGED_KINDS)
    if len(names) == 2 and len(entailment) == 1:
        return entailment[0], None, None
    if any(len(columns) != 1 for columns in columns_by_kind.values()):
        raise InputError(
            f"{where}: its labels are {listed}, which do not name entailment, contradiction and "
            "neutral once each; say which is which with labels"
        )
    return entailment[0], contradiction[0], neutral[0]


def _means(name: str, stems: tuple[str, ...]) -> bool:
    # "not_entailment", the second label of a two-way model, is not entailment.
    return name.casefold().startswith(stems)


def positions_of(config: Any) -> int:
    """Return the number of tokens that a model with this configuration accepts."""
    # RoBERTa reserves two of its positions for padding.
    return int(getattr(config, "max_position_embeddings", 0) or 2**31) - 2


def placed_model(model: Any, device: str) -> Any:
    """Return the model on a device, in evaluation mode.

    Raises:
        InputError: if the device cannot be used.
    """
    model.eval()
    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"the device {device!r} cannot be used ({reason}); use cpu") from None


def _judgment(logits: NDArray[np.float64], columns: Columns) -> Judgment | Missing:
    """Return the relation given by the outputs of one pair.

    For a model that predicts only entailment, the remaining probability is neutral.
    """
    if not np.isfinite(logits).all():
        return Missing("the model's output is not finite")
    if logits.size == 1:
        # A regression may slightly exceed the range of probabilities.
        return _entailed(float(np.clip(logits[0], 0.0, 1.0)))
    weights = np.exp(logits - logits.max())
    shares = weights / weights.sum()
    if columns[1] is None or columns[2] is None:
        return _entailed(float(shares[columns[0]]))
    entailment, contradiction, neutral = shares[list(columns)].tolist()
    kind, probability = likeliest_kind(entailment, contradiction, neutral)
    return Judgment(kind, probability, "nli", (entailment, contradiction, neutral))


def _entailed(probability: float) -> Judgment:
    kind = RelationKind.ENTAILMENT if probability >= 0.5 else RelationKind.NEUTRAL
    return Judgment(
        kind, max(probability, 1 - probability), "nli", (probability, 0.0, 1 - probability)
    )
