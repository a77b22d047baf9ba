"""The i-bound: how near are mini-buckets to the truth, and how many verdicts do they certify?

Question: by i-bound, how far are the bounds of weighted mini-buckets from log Z and their
pseudo-marginals from posteriors, and how many claims do certified intervals decide?
Data: drawn fact graphs of three shapes.
Rival: exact inference.

    python notebooks/questions/i_bound.py
    python notebooks/questions/i_bound.py --graphs 50

The first takes 11 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.figures import line_figure
from experiments.findings.interval_values import interval_text, means_of_clusters, tiny
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame
from experiments.networks.shapes import GraphShape, draw_graph
from factormodels.factor_graph import FactorGraph
from inference import infer
from inference.mini_buckets.intervals import certified_intervals

if TYPE_CHECKING:
    import pandas as pd

FLOOR = 1e-9
"""Smaller numbers are rounding, and are drawn here."""

TITLES = {
    "upper_bound": "upper − log Z",
    "error": "mean error of marginals",
    "width": "certified width",
}

SHAPES: Mapping[str, GraphShape] = MappingProxyType(
    {
        "sparse": GraphShape(atoms=14, density=0.12),
        "dense": GraphShape(atoms=14, density=0.3),
        "strong": GraphShape(atoms=14, density=0.12, strength=3.0),
    }
)
"""Shapes of graphs by what tables call them."""


def i_bound(
    *,
    i_bounds: tuple[int, ...] = (1, 2, 4, 6, 8, 10, 12),
    graphs: int = 3,
    iterations: int = 20,
    seed: int = 0,
) -> Artifacts:
    """Return errors by i-bound, and the figure of errors, bounds and intervals.

    Args:
        i_bounds: i-bounds.
        graphs: graphs of each shape.
        iterations: passes that tighten each bound.
        seed: seed of the graphs, and of the bootstrap over graphs.
    """
    measured = measurements(SHAPES, i_bounds, graphs, iterations, seed)
    errors = summarize(measured, seed)
    columns = columns_as(
        "i_bound:0 i-bound | upper_bound> upper − log Z | lower_bound> log Z − lower | "
        "error_text> mean |Δp| | width_text> certified width | decided:2 | held:2",
        upper_bound=tiny,
        lower_bound=tiny,
    )
    note = (
        "Means over graphs; intervals: 95%, bootstrap over graphs. Decided: share of atoms whose "
        "certified interval does not hold 1/2. Held: share of atoms whose interval holds the exact "
        "posterior."
    )
    frame = errors.assign(
        head=errors["shape"] + errors["induced_width"].map(", induced width {:.1f}".format),
        error_text=interval_text(errors, "error"),
        width_text=interval_text(errors, "width"),
    )
    bounds = Table(
        frame,
        columns,
        "Weighted mini-buckets by i-bound: bounds in nats, pseudo-marginals, certified intervals",
        group="head",
        note=note,
    )
    drawn = TITLES | {"decided": "share decided"}
    floors = dict.fromkeys(TITLES, FLOOR)
    figure = line_figure(errors, "i_bound", drawn, by="shape", floors=floors)
    shown = PaperFigure(figure, errors, "error and certified interval by i-bound")
    return Artifacts({"i-bound": bounds}, {"i-bound-figure": shown})


def measurements(
    shapes: Mapping[str, GraphShape],
    i_bounds: Sequence[int],
    graphs: int,
    iterations: int,
    seed: int,
) -> pd.DataFrame:
    """Rows of errors and widths by graph and i-bound.

    Columns: `shape`, `graph`, `induced_width`, `i_bound`, `upper` and `lower` (distance of the
    bound from log Z in nats), `total_error` (sum of |Δ P(true)| of the pseudo-marginals over
    `variables`), `total_width` (sum of the widths of certified intervals over `atoms`), `decided`
    (atoms whose interval does not hold 1/2), `held` (atoms whose interval holds the exact
    posterior).
    """
    rows: list[dict[str, Any]] = []
    for shape, drawn in shapes.items():
        for number in range(graphs):
            graph = draw_graph(drawn, (seed, number))
            names = graph.names[: drawn.atoms]
            for i_bound in i_bounds:
                row = _measured(graph, names, i_bound, iterations)
                rows.append({"shape": shape, "graph": number, "i_bound": i_bound, **row})
    return data_frame(rows)


def summarize(measured: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Means over graphs by shape and i-bound, with bootstrap intervals."""
    sums = {"upper_bound": ("upper", "graphs"), "lower_bound": ("lower", "graphs")}
    sums |= {"error": ("total_error", "variables"), "width": ("total_width", "atoms")}
    sums |= {name: (name, "atoms") for name in ("decided", "held")}
    by = ["shape", "i_bound"]
    means = means_of_clusters(measured.assign(graphs=1.0), by, sums, seed)
    widths = measured.groupby(by, sort=False)["induced_width"].mean()
    return means.merge(widths.reset_index(), on=by)


def _measured(
    graph: FactorGraph, names: Sequence[str], i_bound: int, iterations: int
) -> dict[str, Any]:
    true, limits = infer(graph, "exact"), {"i_bound": i_bound, "iterations": iterations}
    exact = np.array([true.marginals[name][1] for name in names])
    bounded = infer(graph, "wmb", **limits)
    intervals = certified_intervals(graph, names, **limits)
    lower, upper = np.array([(intervals[name].lower, intervals[name].upper) for name in names]).T
    errors = np.abs(bounded.marginals.flat[1::2] - true.marginals.flat[1::2])
    return {
        "induced_width": true.stats["induced_width"],
        # Where both coincide, a bound is on the wrong side by rounding.
        "upper": max(bounded.stats["upper"] - true.log_z, 0.0),
        "lower": max(true.log_z - bounded.stats["lower"], 0.0),
        "total_error": float(errors.sum()),
        "variables": graph.n_variables,
        "total_width": float((upper - lower).sum()),
        "decided": int(((lower > 0.5) | (upper < 0.5)).sum()),
        "held": int(((lower <= exact) & (exact <= upper)).sum()),
        "atoms": len(names),
    }


if __name__ == "__main__":
    answer_question(i_bound, __file__)
