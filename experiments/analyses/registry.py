"""The analyses by name, imported on demand."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from experiments.analyses.context import AnalysisContext
from experiments.findings.artifacts import Artifacts
from experiments.settings.keyed import Keyed


@dataclass(frozen=True)
class Analysis:
    """An analysis.

    Attributes:
        name: its name in studies.
        summary: one sentence on its purpose.
        settings: the class of its settings.
        run: (settings, context) -> artifacts.
    """

    name: str
    summary: str
    settings: type[Keyed]
    run: Callable[[Any, AnalysisContext], Artifacts]


@cache
def _modules() -> dict[str, str]:
    """The full names of the modules by the name of the analysis, which is spelled with hyphens."""
    return {
        module.name.replace("_", "-"): f"{__package__}.papers.{module.name}"
        for module in pkgutil.iter_modules([str(Path(__file__).parent / "papers")])
        if not module.ispkg
    }


def names() -> tuple[str, ...]:
    """The names of all analyses: the modules of `papers`."""
    return tuple(_modules())


def analysis(name: str) -> Analysis:
    """An analysis by name, one of `names()`."""
    module = importlib.import_module(_modules()[name])
    summary = (module.__doc__ or "").strip().splitlines()[0]
    return Analysis(name, summary, module.Settings, module.run)
