"""Estimates from few labels: how often intervals hold what all labels say, and their width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from calibration.figures.panels import PAGE, legend_below, nth_look, panels
from calibration.learned_potentials.methods import METHODS, cross_fit_task
from experiments.analyses.context import AnalysisContext
from experiments.analyses.ours.shared.drawn_labels import Design, Sampling, coverage_rows
from experiments.analyses.posteriors import labelled_atoms
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Table, columns_as, data_frame
from experiments.settings.limits import Folds
from experiments.study.config import STRICT, DatasetChoice

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_BIAS = 0.6
"""What biased probabilities are, times the good ones."""


@dataclass(frozen=True, config=STRICT)
class Settings:
    """On what, how many labels, and how often they are drawn.

    Attributes:
        dataset: labelled responses whose labels are hidden but for those that are drawn.
        labels: numbers of responses, or of claims, that are labelled.
        designs: what is labelled: responses or claims, at random or chosen.
        quantities: what is estimated.
        draws: how often labels are drawn.
        folds: folds from which the good posteriors are learned.
        method: the method of `learned-potentials` that gives them.
    """

    dataset: DatasetChoice
    labels: tuple[Annotated[int, Field(ge=3)], ...] = (10, 20, 40, 80)
    designs: tuple[Design, ...] = ("responses", "claims", "chosen claims")
    quantities: tuple[Literal["share", "mean-share", "brier", "f1-at-k"], ...] = ("share", "brier")
    draws: Annotated[int, Field(ge=1)] = 500
    folds: Folds = 5
    method: str = "six classes"


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Coverage and width by design, posteriors, quantity and number of labels."""
    (data,) = context.load([settings.dataset], "dataset")
    task = cross_fit_task(data.graphs, settings.folds, context.seed)
    atoms = labelled_atoms(task.graphs, data.name)
    good = METHODS[settings.method](task)[atoms.kept]
    shuffled = np.random.default_rng(context.seed).permutation(good)
    posteriors = {
        "good": good,
        "another model's": task.default[atoms.kept],
        "biased": _BIAS * good,
        "useless": shuffled,
    }
    rows: list[dict[str, Any]] = []
    with context.track("designs", len(settings.designs) * len(settings.labels)) as step:
        for design in settings.designs:
            for n in settings.labels:
                sampling = Sampling(design, n, settings.quantities, settings.draws)
                rows += coverage_rows(posteriors, atoms, sampling, context.seed)
                step()
    frame = data_frame(rows)
    figure = PaperFigure(_figure(frame), frame, "width of intervals against labels")
    return Artefacts(tables={"coverage": _table(frame)}, figures={"widths": figure})


def _table(frame: pd.DataFrame) -> Table:
    designs = zip(frame["quantity"], frame["design"], strict=True)
    headed = frame.assign(heading=[f"{name}, {design} labelled" for name, design in designs])
    return Table(
        headed.sort_values(["quantity", "design"], kind="stable"),
        columns_as(
            "posteriors | n:0 labelled | covers:3 | width:3 | "
            "labels_cover:3 labels alone cover | labels_width:3 width of labels alone"
        ),
        "How often nominal 95% intervals hold what all labels say, and how wide they are.",
        group="heading",
        note=f"{frame['draws'].iloc[0]} draws. Biased: {_BIAS:g} times the good posteriors; "
        "useless: these in random order; another model's: the default of the graphs as they are.",
    )


def _figure(frame: pd.DataFrame) -> Figure:
    first = frame[frame["quantity"] == frame["quantity"].iloc[0]]
    designs = list(dict.fromkeys(first["design"]))
    with panels(1, len(designs), (PAGE, 2.4), sharey=True) as (figure, (axes,)):
        for panel, design in zip(axes, designs, strict=True):
            design_rows = first[first["design"] == design]
            alone = design_rows.groupby("n")["labels_width"].mean()
            panel.plot(alone.index, alone, color="0.5", linewidth=1.0, label="labels alone")
            for look, (kind, part) in enumerate(design_rows.groupby("posteriors", sort=False)):
                panel.plot(part["n"], part["width"], label=str(kind), **nth_look(look))
            panel.set_xscale("log")
            panel.set_xticks(
                sorted(set(design_rows["n"])), [str(n) for n in sorted(set(design_rows["n"]))]
            )
            panel.set_xticks([], [], minor=True)
            panel.set_title(f"{design} labelled", fontsize=8)
            panel.set_xlabel("Number labelled")
        axes[0].set_ylabel("Width of the interval")
        handles, names = axes[0].get_legend_handles_labels()
        legend_below(figure, handles, names, 5)
        return figure
