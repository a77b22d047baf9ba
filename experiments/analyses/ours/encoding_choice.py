"""Encodings against each other: whose posteriors score better, on whose truth."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
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
from experiments.analyses.interval_values import tiny
from experiments.analyses.posteriors import (
    atom_posteriors,
    context_posteriors,
    labelled_atoms,
    score_change,
    scores_with_intervals,
)
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, interval_column
from experiments.findings.text import number
from experiments.study.config import STRICT, DatasetChoice
from factormodels.claims import RelationKind
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ENCODINGS = ("implication", "conditional", "mixture")
"""Those compared, the first of which the others are compared with."""

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
    """Scores under every encoding, and the figure of their differences."""
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
                rows += [{"dataset": data.name, "truth": truth, **row} for row in found]
                step()
    frame, contexts = pd.DataFrame(rows), pd.concat(beliefs, ignore_index=True)
    return Artefacts(
        tables={"encodings": _table(frame)},
        figures={
            "difference": PaperFigure(
                _difference_figure(frame), frame, "Brier score under every encoding"
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


def comparison(
    graphs: Sequence[FactGraph], seed: int, where: str = "the data"
) -> list[dict[str, Any]]:
    """The scores of exact posteriors under every encoding, a row for each.

    `difference` is the Brier score less that under the first encoding, with its paired bootstrap
    interval over responses, `distance` the mean |Δp| from the first. `best` says that the Brier
    score is the least, and that the intervals of its differences from all others exclude 0.

    Args:
        graphs: labelled responses.
        seed: seed of the bootstrap.
        where: what errors call the data.

    Raises:
        InputError: if no atom is labelled.
    """
    atoms = labelled_atoms(graphs, where)
    p = {name: atom_posteriors(graphs, name)[atoms.kept] for name in ENCODINGS}
    # Paired: the same redrawn responses under all, whose difficulty cancels.
    changes = {
        (name, other): score_change("brier", p[name], p[other], atoms, seed)
        for name, other in permutations(ENCODINGS, 2)
    }
    shared = {
        "n_responses": len(atoms.grouping.responses),
        "n_atoms": len(atoms.labels),
        "relations": _relations_per_context(graphs),
    }
    rows = []
    for name in ENCODINGS:
        contexts = context_posteriors(graphs, name)
        difference, lower, upper = changes.get((name, ENCODINGS[0]), (0.0, np.nan, np.nan))
        rows.append(
            {
                "encoding": name,
                **shared,
                # Exact posteriors are not certain: their log loss is theirs, however large.
                **scores_with_intervals(p[name], atoms, SCORES, seed, least=0.0),
                "difference": difference,
                "lower": lower,
                "upper": upper,
                "distance": float(np.abs(p[name] - p[ENCODINGS[0]]).mean()),
                "best": all(changes[name, each][2] < 0.0 for each in ENCODINGS if each != name),
                "contexts": float(contexts.mean()) if contexts.size else np.nan,
            }
        )
    return rows


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


def _table(frame: pd.DataFrame) -> Table:
    heads = [
        f"{_name(row)}, {number(row['relations'], 1)} relations per context"
        for row in frame.to_dict("records")
    ]
    return Table(
        frame.assign(head=heads),
        (
            Column("encoding", "encoding"),
            Column("brier", "Brier", digits=4, bold="best"),
            Column("difference", f"less {ENCODINGS[0]}", digits=4, lower="lower", upper="upper"),
            Column("distance", "mean |Δp|", r"mean $|\Delta p|$", show=tiny, right=True),
            interval_column("slope", "slope", 2),
            Column("contexts", "P(context)", digits=3),
        ),
        "Exact posteriors under every encoding of relations",
        group="head",
        note=(
            "Truth: the labels of the data, or labels drawn from the joint distribution under an "
            f"encoding. Less {ENCODINGS[0]}: difference of Brier scores; mean |Δp|: of the same. "
            "Bold: the least Brier score where the intervals of its differences from all others "
            "exclude 0. Slope: of labels on logit p, 1 if calibrated. Intervals: 95 %, bootstrap "
            "over responses."
        ),
    )


def _name(row: Mapping[Hashable, Any]) -> str:
    whose = row["truth"] if row["truth"] == OWN else f"{row['truth']} true"
    return f"{row['dataset']}, {whose}"


def _difference_figure(frame: pd.DataFrame) -> Figure:
    rows = frame.to_dict("records")
    names = list(dict.fromkeys(map(_name, rows)))
    with panels(1, 2, (PAGE, 0.8 + 0.3 * len(names)), sharey=True) as (figure, ((left, right),)):
        left.axvline(0.0, color="0.6", linewidth=0.7)
        right.axvline(1.0, color="0.6", linewidth=0.7)
        labelled = set()
        for row in rows:
            at = ENCODINGS.index(row["encoding"])
            height = len(names) - 1 - names.index(_name(row)) + 0.22 - 0.22 * at
            look = nth_look(at) | {"label": None if at in labelled else row["encoding"]}
            labelled.add(at)
            slope = row["slope"], row["slope_lower"], row["slope_upper"]
            draw_interval(right, height, slope, **look)
            if at:
                ends = row["difference"], row["lower"], row["upper"]
                draw_interval(left, height, ends, **(look | {"label": None}))
        left.set_yticks(range(len(names) - 1, -1, -1), names)
        left.set_xlabel(f"Brier, less {ENCODINGS[0]}")
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
