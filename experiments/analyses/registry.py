"""The analyses by name, imported when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from experiments.analyses.context import AnalysisContext
from experiments.paper.artefacts import Artefacts

_MODULES = MappingProxyType(
    {
        "assessors": "assessors",
        "chunk-strides": "chunk_strides",
        "claim-alignment": "claim_alignment",
        "claim-positions": "claim_positions",
        "dataset-statistics": "dataset_statistics",
        "generations": "generations",
        "leaderboard": "leaderboard",
        "padding": "padding",
        "printed-tests": "printed_tests",
        "relation-roc": "relation_roc",
        "selection-agreement": "selection_agreement",
        "self-judgement": "self_judgement",
        "worked-numbers": "worked_numbers",
        "inference-frontier": "inference_frontier",
        "certified-bounds": "certified_bounds",
        "inference-error": "inference_error",
        "encoding-choice": "encoding_choice",
        "prior-learning": "prior_learning",
        "misspecification": "misspecification",
        "sigma-shift": "sigma_shift",
    }
)
"""Name of an analysis -> its module in this package."""


@dataclass(frozen=True)
class Analysis:
    """An analysis.

    Attributes:
        name: what studies call it.
        summary: what it does, one sentence.
        settings: the dataclass of its settings.
        run: (settings, context) -> artefacts.
    """

    name: str
    summary: str
    settings: type
    run: Callable[[Any, AnalysisContext], Artefacts]


def names() -> tuple[str, ...]:
    """The names of all analyses."""
    return tuple(_MODULES)


def analysis(name: str) -> Analysis:
    """An analysis by name, one of `names()`."""
    module = importlib.import_module(f"{__package__}.{_MODULES[name]}")
    summary = (module.__doc__ or "").strip().splitlines()[0]
    return Analysis(name, summary, module.Settings, module.run)
