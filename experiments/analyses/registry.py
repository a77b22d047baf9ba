"""The analyses by name, imported when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from experiments.analyses.context import AnalysisContext
from experiments.findings.artefacts import Artefacts

_OF_PAPERS = (
    "claim-alignment",
    "claim-positions",
    "dataset-statistics",
    "padding",
    "printed-tests",
    "selection-agreement",
    "worked-numbers",
)
_OF_OURS = (
    "backend-comparison",
    "certified-bounds",
    "inference-error",
    "encoding-choice",
    "learned-potentials",
    "real-graphs",
    "core-on-biographies",
    "relation-transfer",
    "misspecification",
    "sigma-shift",
    "sigma-on-labels",
    "few-labels",
    "few-calls",
    "kept-claims",
    "claim-coherence",
    "relation-consensus",
    "claims-relations",
)
"""Names of the analyses; each is a module of `papers` or `ours`, spelt there with underscores."""


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
    return _OF_PAPERS + _OF_OURS


def analysis(name: str) -> Analysis:
    """An analysis by name, one of `names()`."""
    room = "papers" if name in _OF_PAPERS else "ours"
    module = importlib.import_module(f"{__package__}.{room}.{name.replace('-', '_')}")
    summary = (module.__doc__ or "").strip().splitlines()[0]
    return Analysis(name, summary, module.Settings, module.run)
