"""Studies, commands and their results: configuration in; tidy rows, tables and figures out.

This package combines models, inference and calibration. Import the main functions from here; each
loads on first use:

from experiments import assess, fastfact, load_study, posteriors, read_rows, report, run
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments.evaluators.assess import assess
    from experiments.evaluators.coherence import coherence
    from experiments.evaluators.fastfact import fastfact
    from experiments.methods.convert import convert
    from experiments.methods.datasets import datasets
    from experiments.methods.diff import diff
    from experiments.methods.draw import draw
    from experiments.methods.estimate import estimate
    from experiments.methods.fit import apply, fit
    from experiments.methods.grid import grid
    from experiments.methods.infer import infer
    from experiments.methods.keep import keep
    from experiments.methods.lists import list_
    from experiments.methods.omissions import omissions
    from experiments.methods.probe import probe
    from experiments.methods.revise import revise
    from experiments.methods.run import run
    from experiments.methods.score import score
    from experiments.methods.select import select
    from experiments.methods.self_knowledge import self_knowledge
    from experiments.pages.explore import explore
    from experiments.pages.report import report
    from experiments.study.posteriors import posteriors
    from experiments.study.reading import load_study
    from experiments.study.rows import read_rows

__all__ = [
    "apply",
    "assess",
    "coherence",
    "convert",
    "datasets",
    "diff",
    "draw",
    "estimate",
    "explore",
    "fastfact",
    "fit",
    "grid",
    "infer",
    "keep",
    "list_",
    "load_study",
    "omissions",
    "posteriors",
    "probe",
    "read_rows",
    "report",
    "revise",
    "run",
    "score",
    "select",
    "self_knowledge",
]

_IN_ROOMS = {
    "evaluators": "assess coherence fastfact",
    "methods": "fit:apply convert datasets diff draw estimate fit grid infer keep "
    "lists:list_ omissions probe revise run score select self_knowledge",
    "pages": "explore report",
    "study": "posteriors reading:load_study rows:read_rows",
}
"""Functions by room, each in the module of its name or in the module before the colon."""

MODULES = {
    each.rpartition(":")[2]: f"experiments.{room}.{each.partition(':')[0]}"
    for room, names in _IN_ROOMS.items()
    for each in names.split()
}
"""Module of each function, by name."""


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = getattr(import_module(MODULES[name]), name)
    if hasattr(function, "__wrapped__"):
        from experiments.settings.docstrings import with_keywords

        function.__doc__ = with_keywords(function)
    # Cache the function for the next access.
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return list(__all__)
