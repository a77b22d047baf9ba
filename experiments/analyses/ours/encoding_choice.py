"""Encodings against each other: whose posteriors score better, on whose truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import estimate_figure, line_figure
from experiments.analyses.interval_values import named, tiny
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
    cases = [(each, own) for each in context.load(settings.datasets)]
    cases += [(each, ENCODINGS) for each in context.load(settings.drawn, "drawn")]
    rows: list[dict[str, Any]] = []
    with context.track("comparisons", sum(len(truths) for _, truths in cases)) as step:
        for data, truths in cases:
            for truth in truths:
                graphs: Sequence[FactGraph] = data.graphs
                if truth != OWN:
                    graphs = with_drawn_labels(graphs, truth, context.seed)
                whose = truth if truth == OWN else f"{truth} true"
                case = {"dataset": data.name, "truth": truth, "case": f"{data.name}, {whose}"}
                rows += [case | row for row in comparison(graphs, context.seed, data.name)]
                step()
    frame = data_frame(rows)
    beliefs = [belief_in_contexts(data.graphs).assign(dataset=data.name) for data, _ in cases]
    contexts = pd.concat(beliefs, ignore_index=True)
    relations = frame["relations"].map(lambda value: number(value, 1))
    columns = (
        Column("encoding", "encoding"),
        Column("brier", "Brier", digits=4, bold="best"),
        interval_column("difference", f"less {ENCODINGS[0]}", 4),
        Column("distance", "mean |Δp|", r"mean $|\Delta p|$", show=tiny, right=True),
        interval_column("slope", "slope", 2),
        Column("contexts", "P(context)", digits=3),
    )
    note = (
        "Truth: the labels of the data, or labels drawn from the joint distribution under an "
        f"encoding. Less {ENCODINGS[0]}: difference of Brier scores; mean |Δp|: of the same. Bold: "
        "the least Brier score where the intervals of its differences from all others exclude 0. "
        "Slope: of labels on logit p, 1 if calibrated. Intervals: 95 %, bootstrap over responses."
    )
    shown = frame.assign(head=frame["case"] + ", " + relations + " relations per context")
    caption = "Exact posteriors under every encoding of relations"
    values = {"difference": f"Brier, less {ENCODINGS[0]}", "slope": "calibration slope"}
    ideals = {"difference": 0.0, "slope": 1.0}
    many = contexts[contexts["n_contexts"] >= FEWEST]
    posterior = {"posterior": "mean posterior of contexts"}
    return Artefacts(
        {"encodings": Table(shown, columns, caption, group="head", note=note)},
        {
            "difference": PaperFigure(
                estimate_figure(frame, "case", values, by="encoding", ideals=ideals),
                *(frame, "Brier score under every encoding"),
            ),
            "contexts": PaperFigure(
                line_figure(many, "relations", posterior, by="encoding", panel="dataset"),
                *(contexts, "posterior of contexts by relations"),
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
        labelled = zip(graph.atoms, states[: len(graph.atoms)], strict=True)
        atoms = tuple(replace(atom, label=bool(state)) for atom, state in labelled)
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
    degrees = _degrees(graphs)
    rows = []
    for name in ENCODINGS:
        contexts = context_posteriors(graphs, name)
        rows.append(
            {
                "encoding": name,
                "n_responses": len(atoms.grouping.responses),
                "n_atoms": len(atoms.labels),
                "relations": float(np.mean(degrees)) if degrees else np.nan,
                # Exact posteriors are not certain: their log loss is theirs, however large.
                **scores_with_intervals(p[name], atoms, SCORES, seed, least=0.0),
                **named("difference", changes.get((name, ENCODINGS[0]), (0.0, np.nan, np.nan))),
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
    import pandas as pd

    stated = [context.prior for graph in graphs for context in graph.contexts]
    known = {"relations": _degrees(graphs), "prior": stated}
    every = pd.concat(
        [
            data_frame(known | {"encoding": name, "posterior": context_posteriors(graphs, name)})
            for name in ENCODINGS
        ]
    )
    grouped = every.groupby(["encoding", "relations"])
    means = grouped[["posterior", "prior"]].mean().assign(n_contexts=grouped.size())
    return means.loc[list(ENCODINGS)].reset_index()


def _degrees(graphs: Sequence[FactGraph]) -> list[int]:
    """The number of relations of each context that say something."""
    found: list[int] = []
    for graph in graphs:
        counts = dict.fromkeys(graph.context_ids, 0)
        for relation in graph.relations:
            if relation.kind is not RelationKind.NEUTRAL:
                for end in {relation.source, relation.target} & counts.keys():
                    counts[end] += 1
        found += counts.values()
    return found
