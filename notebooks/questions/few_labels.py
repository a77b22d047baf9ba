"""Few labels: do intervals from few labels cover the value by all labels, and how wide are they?

Question: by design (responses or claims, at random or chosen) and number of labels, how often do
the intervals of `estimate` cover the truth, and how many labels do posteriors save?
Data: factscore, embedded, with all labels hidden except the drawn ones.
Rival: the labels alone; and posteriors of another model, biased and useless ones.

    python notebooks/questions/few_labels.py --out docs/results/few-labels

It takes 1 minute 40 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibration.estimation import (
    RATIOS,
    Quantity,
    Unit,
    difference,
    draw,
    estimate,
    inclusion_probabilities,
    spread,
)
from calibration.figures.panels import PAGE, legend_below, nth_look, panels
from calibration.grouping import Grouping
from calibration.learned_potentials.methods import METHODS, cross_fit_task
from calibration.validation import Floats
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.claim_scores import LabeledAtoms, labeled_atoms
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame
from experiments.settings.inputs import read_graphs

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_BIAS = 0.6
"""Factor from good to biased probabilities."""

Design = Literal["responses", "claims", "chosen responses", "chosen claims"]
"""Labeled units: a random sample, or the choice of `estimate --choose`."""


@dataclass(frozen=True)
class Sampling:
    """Design of a sample of labels, and the quantities estimated from it.

    Attributes:
        design: what is labeled.
        n: how many responses, or claims, are labeled.
        quantities: names of `RATIOS`; F1@K is left out where claims are labeled.
        draws: how often labels are drawn.
    """

    design: Design
    n: int
    quantities: Sequence[str]
    draws: int


def few_labels(
    *,
    data: Path = Path("factscore"),
    labels: tuple[int, ...] = (10, 20, 40, 80),
    designs: tuple[Design, ...] = ("responses", "claims", "chosen claims"),
    quantities: tuple[str, ...] = ("share", "mean-share", "brier", "f1-at-k"),
    draws: int = 500,
    seed: int = 0,
) -> Artifacts:
    """Return coverage and width by design, posteriors, quantity and number of labels.

    Args:
        data: file or embedded dataset of labeled responses.
        labels: numbers of responses, or of claims, that are labeled.
        designs: what is labeled: responses or claims, at random or chosen.
        quantities: what is estimated.
        draws: how often labels are drawn.
        seed: seed of the folds from which posteriors are learned, and of the draws.
    """
    task = cross_fit_task(read_graphs(data), 5, seed)
    atoms = labeled_atoms(task.graphs, str(data))
    good = METHODS["six classes"](task)[atoms.kept]
    shuffled = np.random.default_rng(seed).permutation(good)
    posteriors = {
        "good": good,
        "another model's": task.default[atoms.kept],
        "biased": _BIAS * good,
        "useless": shuffled,
    }
    rows: list[dict[str, Any]] = []
    for design in designs:
        for n in labels:
            sampling = Sampling(design, n, quantities, draws)
            rows += coverage_rows(posteriors, atoms, sampling, seed)
    frame = data_frame(rows)
    figure = PaperFigure(width_figure(frame), frame, "width of intervals against labels")
    return Artifacts(tables={"coverage": _table(frame)}, figures={"widths": figure})


def _table(frame: pd.DataFrame) -> Table:
    designs = zip(frame["quantity"], frame["design"], strict=True)
    headed = frame.assign(heading=[f"{name}, {design} labeled" for name, design in designs])
    return Table(
        headed.sort_values(["quantity", "design"], kind="stable"),
        columns_as(
            "posteriors | n:0 labeled | covers:3 | width:3 | "
            "labels_cover:3 labels alone cover | labels_width:3 width of labels alone"
        ),
        "Coverage of the value by all labels by nominal 95% intervals, and their widths.",
        group="heading",
        note=f"{frame['draws'].iloc[0]} draws. Biased: {_BIAS:g} times the good posteriors; "
        "useless: these in random order; another model's: the default of the graphs as given.",
    )


def width_figure(frame: pd.DataFrame) -> Figure:
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
            panel.set_title(f"{design} labeled", fontsize=8)
            panel.set_xlabel("Number labeled")
        axes[0].set_ylabel("Width of the interval")
        handles, names = axes[0].get_legend_handles_labels()
        legend_below(figure, handles, names, 5)
        return figure


def coverage_rows(
    posteriors: Mapping[str, Floats],
    atoms: LabeledAtoms,
    sampling: Sampling,
    seed: int,
) -> list[dict[str, Any]]:
    """A row per posteriors and quantity: how often intervals hold the truth, and their width.

    The Brier score also has rows for the difference between the first two posteriors.

    The truth is the value by all labels. Intervals describe a population of such responses, so they
    may cover the value of these responses more often than their level.
    """
    labels, grouping = atoms.labels, atoms.grouping
    design, n = sampling.design, sampling.n
    names = [q for q in sampling.quantities if q != "f1-at-k" or design.endswith("responses")]
    judged: list[tuple[str, tuple[Floats, ...], str]] = [
        (kind, (p,), name) for kind, p in posteriors.items() for name in names
    ]
    if "brier" in names and len(posteriors) > 1:
        (first, p), (other, q) = [*posteriors.items()][:2]
        judged.append((f"{first} minus {other}", (p, q), "brier"))
    whole = {
        (kind, name): [RATIOS[name](p, labels, grouping.index) for p in those]
        for kind, those, name in judged
    }
    draws_by_quantity: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for number in range(sampling.draws):
        drawn = {kind: _drawn(p, grouping, design, n, seed + number)
                 for kind, p in posteriors.items()}  # fmt: skip
        for (kind, name), quantities in whole.items():
            # Of a difference, both are of the labels that the first would choose.
            kept, weights = drawn.get(kind) or next(iter(drawn.values()))
            each = [estimate(_hidden(quantity, grouping, kept, weights)) for quantity in quantities]
            estimated = each[0] if len(each) == 1 else difference(*each)
            truth, *less = (
                float(quantity.observed.sum() / quantity.size.sum()) for quantity in quantities
            )
            truth -= sum(less)
            draws_by_quantity.setdefault((kind, name), []).append((
                estimated.lower <= truth <= estimated.upper,
                estimated.labels_lower <= truth <= estimated.labels_upper,
                estimated.upper - estimated.lower,
                estimated.labels_upper - estimated.labels_lower,
            ))  # fmt: skip
    rows = []
    for (kind, quantity), draws in draws_by_quantity.items():
        values = np.array(draws, dtype=np.float64)
        covers, labels_cover, width, labels_width = values.mean(axis=0)
        rows.append(
            {
                "design": design,
                "posteriors": kind,
                "quantity": quantity,
                "n": n,
                "covers": covers,
                "width": width,
                "labels_cover": labels_cover,
                "labels_width": labels_width,
                "widest_ratio": float((values[:, 2] / values[:, 3]).max()),
                "draws": sampling.draws,
            }
        )
    return rows


def _hidden(
    whole: Quantity, grouping: Grouping, kept: NDArray[np.bool_], weights: Floats
) -> Quantity:
    """A quantity of which all labels are known, with those of the kept claims alone."""
    if whole.observed.size != kept.size:
        # An item is a response: it is labeled if all of its claims are.
        kept, weights = grouping.sums(kept) == grouping.sizes, grouping.means(weights)
    return replace(whole, observed=np.where(kept, whole.observed, np.nan), weights=weights)


def _drawn(p: Floats, grouping: Grouping, design: Design, n: int, seed: int) -> tuple[Any, Floats]:
    """Labeled claims, and the number of claims that each represents."""
    unit = Unit.RESPONSE if design.endswith("responses") else Unit.CLAIM
    size = len(grouping.responses) if unit is Unit.RESPONSE else p.size
    if design.startswith("chosen"):
        minutes = np.ones(size) if unit is Unit.CLAIM else grouping.sizes.astype(np.float64)
        expected = spread(p, grouping, unit)
        chances = inclusion_probabilities(expected, minutes, n, np.ones(size, dtype=np.bool_))
        kept = draw(chances, seed)
    else:
        chances = np.full(size, n / size)
        kept = np.zeros(size, dtype=np.bool_)
        kept[np.random.default_rng(seed).choice(size, n, replace=False)] = True
    weights = np.where(kept, 1 / chances, 1.0)
    if unit is Unit.CLAIM:
        return kept, weights
    return kept[grouping.index], weights[grouping.index]


if __name__ == "__main__":
    answer_question(few_labels, __file__)
