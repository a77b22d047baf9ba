"""Implication against conditional encoding: whose posteriors score better, on whose truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibration.figures.panels import (
    PAGE,
    coincide,
    draw_interval,
    legend_below,
    name_lines,
    nth_look,
    panel_grid,
    panels,
    together,
)
from calibration.grouping import group_by_response
from experiments.analyses.context import AnalysisContext
from experiments.analyses.posteriors import (
    atom_posteriors,
    context_posteriors,
    labelled_atoms,
    score_change,
    scores_with_intervals,
)
from experiments.analyses.resampled import tiny
from experiments.paper.artefacts import Artefacts, PaperFigure
from experiments.paper.table import PaperColumn, PaperTable, data_frame, interval_column
from experiments.study.config import STRICT, DatasetChoice
from factormodels.claims import RelationKind
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ENCODINGS = ("implication", "conditional")

SCORES = ("brier", "log_loss", "calibration_slope")

FEWEST = 10
"""A mean over fewer contexts is not drawn; the data behind the figure have it."""

OWN = "own labels"
"""What tables call the truth of data that come with labels."""


@dataclass(frozen=True)
class Settings:
    """What is compared.

    Attributes:
        datasets: labelled responses, judged by their own labels.
        drawn: responses whose truth is drawn anew from the joint distribution under each encoding,
            so that it is known which encoding is right; their own labels play no part.
    """

    __pydantic_config__: ClassVar = STRICT

    datasets: tuple[DatasetChoice, ...] = ()
    drawn: tuple[DatasetChoice, ...] = ()

    def __post_init__(self) -> None:
        if not self.datasets and not self.drawn:
            raise ValueError("there is no data; list some under datasets or drawn")


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Scores under both encodings, and the figure of their difference."""
    import pandas as pd

    own: tuple[str, ...] = (OWN,)
    named = [(each, own) for each in context.load(settings.datasets)]
    named += [(each, ENCODINGS) for each in context.load(settings.drawn, "drawn")]
    rows: list[dict[str, Any]] = []
    beliefs: list[pd.DataFrame] = []
    with context.track("comparisons", sum(len(truths) for _, truths in named)) as step:
        for data, truths in named:
            beliefs.append(belief_in_contexts(data.graphs).assign(dataset=data.name))
            for truth in truths:
                graphs: Sequence[FactGraph] = data.graphs
                if truth != OWN:
                    graphs = with_drawn_labels(graphs, truth, context.seed)
                found = comparison(graphs, context.seed, data.name)
                rows.append({"dataset": data.name, "truth": truth, **found})
                step()
    frame, contexts = pd.DataFrame(rows), pd.concat(beliefs, ignore_index=True)
    return Artefacts(
        tables={"encodings": _table(frame)},
        figures={
            "difference": PaperFigure(
                _difference_figure(frame), frame, "Brier score under both encodings"
            ),
            "contexts": PaperFigure(
                _contexts_figure(contexts), contexts, "posterior of contexts by relations"
            ),
        },
    )


def with_drawn_labels(graphs: Sequence[FactGraph], encoding: str, seed: int) -> list[FactGraph]:
    """Responses whose labels are one draw from the joint distribution of each.

    Posteriors under this encoding are then calibrated, whatever the relations are.

    Args:
        graphs: the responses.
        encoding: the encoding of the joint distribution.
        seed: seed of the draws.
    """
    from inference.tasks import sample

    # The responses may have been generated from this seed: the draws have a stream of their own.
    seeds = np.random.default_rng((seed, 1)).integers(0, 2**31, len(graphs)).tolist()
    drawn = []
    for graph, own in zip(graphs, seeds, strict=True):
        states = sample(graph.to_factor_graph(encoding), 1, own)[0].tolist()
        atoms = tuple(
            replace(atom, label=bool(state))
            for atom, state in zip(graph.atoms, states[: len(graph.atoms)], strict=True)
        )
        drawn.append(replace(graph, atoms=atoms))
    return drawn


def comparison(graphs: Sequence[FactGraph], seed: int, where: str = "the data") -> dict[str, Any]:
    """The scores of exact posteriors under both encodings, and their difference.

    `difference` is the Brier score under implication less that under conditional, with its paired
    bootstrap interval over responses; `distance` the mean |Δp| between the two.

    Args:
        graphs: labelled responses.
        seed: seed of the bootstrap.
        where: what errors call the data.

    Raises:
        InputError: if no atom is labelled.
    """
    atoms = labelled_atoms(graphs, where)
    p = {name: atom_posteriors(graphs, name)[atoms.kept] for name in ENCODINGS}
    row: dict[str, Any] = {
        "n_responses": len(atoms.grouping.responses),
        "n_atoms": len(atoms.labels),
        "relations": _relations_per_context(graphs),
        "distance": float(np.abs(p["implication"] - p["conditional"]).mean()),
    }
    for name in ENCODINGS:
        found = scores_with_intervals(p[name], atoms, SCORES, seed)
        row |= {f"{name}_{key}": value for key, value in found.items()}
        contexts = context_posteriors(graphs, name)
        row[f"{name}_contexts"] = float(contexts.mean()) if contexts.size else np.nan
    # Paired: the same redrawn responses under both, whose difficulty cancels.
    first, second = (p[name] for name in ENCODINGS)
    difference, lower, upper = score_change("brier", first, second, atoms, seed)
    return row | {"difference": difference, "lower": lower, "upper": upper}


def belief_in_contexts(graphs: Sequence[FactGraph]) -> pd.DataFrame:
    """The mean posterior of contexts by their number of relations, under each encoding.

    Columns: `encoding`, `relations`, `posterior`, `prior` (mean stated prior), `n_contexts`.
    """
    degrees = np.array([degree for graph in graphs for degree in _degrees(graph)], dtype=np.int64)
    priors = np.array([context.prior for graph in graphs for context in graph.contexts])
    rows = []
    for encoding in ENCODINGS:
        grouping = group_by_response(degrees.tolist())
        means = grouping.means(context_posteriors(graphs, encoding))
        stated = grouping.means(priors)
        order = np.argsort(np.asarray(grouping.responses, dtype=np.int64))
        rows += [
            {
                "encoding": encoding,
                "relations": int(grouping.responses[at]),
                "posterior": float(means[at]),
                "prior": float(stated[at]),
                "n_contexts": int(grouping.sizes[at]),
            }
            for at in order
        ]
    return data_frame(rows)


def _degrees(graph: FactGraph) -> list[int]:
    counts = dict.fromkeys(graph.context_ids, 0)
    for relation in graph.relations:
        if relation.kind is RelationKind.NEUTRAL:
            continue
        for end in {relation.source, relation.target} & counts.keys():
            counts[end] += 1
    return list(counts.values())


def _relations_per_context(graphs: Sequence[FactGraph]) -> float:
    degrees = [degree for graph in graphs for degree in _degrees(graph)]
    return float(np.mean(degrees)) if degrees else np.nan


def _table(frame: pd.DataFrame) -> PaperTable:
    significant = (frame["lower"] > 0) | (frame["upper"] < 0)
    better = {
        "implication_best": significant & (frame["difference"] < 0),
        "conditional_best": significant & (frame["difference"] > 0),
    }
    return PaperTable(
        frame.assign(**better),
        (
            PaperColumn("dataset", "data"),
            PaperColumn("truth", "truth"),
            PaperColumn("relations", "relations per context", digits=1),
            PaperColumn("distance", "mean |Δp|", r"mean $|\Delta p|$", show=tiny, right=True),
            *(
                PaperColumn(f"{name}_brier", f"Brier, {name}", digits=4, bold=f"{name}_best")
                for name in ENCODINGS
            ),
            PaperColumn("difference", "difference", digits=4, lower="lower", upper="upper"),
            *(interval_column(f"{name}_slope", f"slope, {name}", 2) for name in ENCODINGS),
            *(
                PaperColumn(f"{name}_contexts", f"P(context), {name}", digits=3)
                for name in ENCODINGS
            ),
        ),
        "Exact posteriors under both encodings of relations",
        note=(
            "Truth: the labels of the data, or labels drawn from the joint distribution under an "
            "encoding. Difference: Brier score under implication less that under conditional. "
            "Bold: the better Brier score where the interval of the difference excludes 0. Slope: "
            "of labels on logit p, 1 if calibrated. Intervals: 95 %, bootstrap over responses."
        ),
    )


def _difference_figure(frame: pd.DataFrame) -> Figure:
    rows = frame.to_dict("records")
    with panels(1, 2, (PAGE, 0.8 + 0.24 * len(rows)), sharey=True) as (figure, ((left, right),)):
        left.axvline(0.0, color="0.6", linewidth=0.7)
        right.axvline(1.0, color="0.6", linewidth=0.7)
        heights = range(len(rows) - 1, -1, -1)
        for height, row in zip(heights, rows, strict=True):
            ends = row["difference"], row["lower"], row["upper"]
            draw_interval(left, height, ends, color="0.2", marker="D", markersize=3.0)
            for at, name in enumerate(ENCODINGS):
                slope = row[f"{name}_slope"], row[f"{name}_slope_lower"], row[f"{name}_slope_upper"]
                look = nth_look(at) | {"label": name if height == heights[0] else None}
                draw_interval(right, height + 0.18 - 0.36 * at, slope, **look)
        names = [
            row["dataset"] if row["truth"] == OWN else f"{row['dataset']}, {row['truth']} true"
            for row in rows
        ]
        left.set_yticks(heights, names)
        left.set_xlabel("Brier, implication less conditional")
        right.set_xlabel("calibration slope")
        legend_below(figure, right)
        return figure


def _contexts_figure(contexts: pd.DataFrame) -> Figure:
    from matplotlib.ticker import MaxNLocator

    names = list(dict.fromkeys(contexts["dataset"]))
    with panel_grid(len(names), (2.1, 1.8), sharey=True) as (figure, places):
        for place, name in zip(places, names, strict=True):
            own = contexts[(contexts["dataset"] == name) & (contexts["n_contexts"] >= FEWEST)]
            by_encoding = {each: own[own["encoding"] == each] for each in ENCODINGS}
            across = by_encoding[ENCODINGS[0]]["relations"]
            curves = {each: line["posterior"] for each, line in by_encoding.items()}
            curves["prior"] = by_encoding[ENCODINGS[0]]["prior"]
            found = together(curves, partial(coincide, apart=0.02))
            lines = {}
            for named, values in found.items():
                # The look of the first that it stands for, in every panel.
                look = nth_look(list(curves).index(named.split(" = ")[0])) | {"markersize": 3.0}
                (lines[named.replace(" = ", " =\n")],) = place.plot(across, values, **look)
            place.set(xlabel="relations of a context", title=name, ylim=(0.0, 1.02))
            place.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            name_lines(place, lines)
        figure.supylabel("mean posterior of contexts", fontsize=8.0)
        return figure
