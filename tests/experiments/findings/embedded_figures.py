"""The figures of commands and of embedded studies, as the tests of their looks draw them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from experiments import draw, estimate, score, select
from experiments.findings.artefacts import PaperFigure
from experiments.findings.table import data_frame
from factormodels.datasets import load
from factormodels.synthetic import grid
from tests.experiments.findings.study_figures import kept_figures

DOCS = Path(__file__).resolve().parents[3] / "docs"


def of_commands() -> dict[str, PaperFigure]:
    """Draw the figures of `score` (of few models and of many), `estimate`, `select` and `draw`."""
    generator = np.random.default_rng(0)
    models = ["a", "a longer name of a model", *"bcdef"]
    rows = [
        {"model": model, "response": place // 6, "claim": place, "p": p, "label": bar < 0.5}
        for place, (*each, bar) in enumerate(generator.random((120, len(models) + 1)))
        for model, p in zip(models, each, strict=True)
    ]
    made: dict[str, PaperFigure] = {}
    for number in (2, len(models)):
        shown = [row for row in rows if row["model"] in models[:number]]
        found = score(shown, scores=["brier"], n_bootstrap=20, resamples=20).draw()
        made |= {f"{name}-of-{number}": figure for name, figure in found.items()}
    few = [row | {"label": row["label"] if at % 4 else None} for at, row in enumerate(rows[::7])]
    made |= estimate(few).draw()
    made |= select("demonstration", domain="things").draw()
    for graph in load("demonstration").graphs[:2]:
        made[graph.id] = draw(graph).draw()["graph"]
    made["at-odds"] = draw(load("at-odds").graphs[0]).draw()["graph"]
    network = draw(grid(3, 3, coupling=1.0, field=1.0, seed=0))
    return {**made, "network": network.draw()["graph"]}


def of_studies() -> dict[str, PaperFigure]:
    """Draw the figures of studies from what is kept in docs/results or beside this file."""
    make_draft = _make_draft()
    kept = make_draft.KeptResults()
    made = {name: make(kept) for name, make in make_draft.FIGURES.items()}
    made |= {name.replace("/", "-").replace(" ", "-"): one for name, one in kept_figures().items()}
    return {name: PaperFigure(figure, data_frame([]), name) for name, figure in made.items()}


def _make_draft() -> Any:
    """Return what draws the figures of the findings from the kept results of studies."""
    sys.path.insert(0, str(DOCS))
    try:
        return import_module("make_draft")
    finally:
        sys.path.remove(str(DOCS))
        sys.modules.pop("make_draft", None)
