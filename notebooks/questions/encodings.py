"""Encodings of relations: which posteriors score better, on real and on simulated truth?

Question: how far do exact posteriors depend on the encoding, and does the encoding under which the
truth was drawn score best?
Data: factcheck-bench and demonstration, embedded, with their labels; and responses whose labels are
drawn from the joint distribution under each encoding, so that it is known which encoding is right.
Rival: every other encoding on the same responses.

    python notebooks/questions/encodings.py

It takes 8 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from calibration.validation import Floats
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.claim_scores import labeled_atoms, score_change, scores_with_intervals
from experiments.findings.figures import estimate_figure
from experiments.findings.interval_values import tiny
from experiments.findings.notebook import answer_question
from experiments.findings.table import Column, Table, columns_as, data_frame, named
from experiments.findings.text import number
from experiments.settings.inputs import read_graphs
from factormodels.claims import RelationKind
from factormodels.fact_graph import FactGraph
from factormodels.synthetic import Uniform, labeled_responses
from inference import infer_batch
from inference.batch import claim_posteriors
from inference.tasks import sample

ENCODINGS = ("implication", "conditional", "mixture")
"""Those compared, the first of which the others are compared with."""

SCORES = ("brier", "log_loss", "calibration_slope")

OWN = "own labels"
"""Title of data that come with labels, in tables."""

DRAWN: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "sparse": {"density": 0.05},
        "dense": {"density": 0.4},
        "dense, doubtful contexts": {"density": 0.4, "context_prior": Uniform(0.5, 0.95)},
    }
)
"""Parameters of the drawn responses, whose truth is drawn anew under each encoding."""


def encodings(
    *,
    data: tuple[Path, ...] = (Path("factcheck-bench"), Path("demonstration")),
    drawn: int = 100,
    seed: int = 0,
) -> Artifacts:
    """Return the scores under every encoding, and the figure of their differences.

    Args:
        data: files or embedded datasets of responses, which are judged by their own labels.
        drawn: how many responses of each kind are drawn; 0: none.
        seed: seed of the labels that are drawn, and of the bootstrap over responses.
    """
    cases = [(str(name), read_graphs(name), OWN) for name in data]
    for name, laws in DRAWN.items() if drawn else ():
        sizes: Any = {"n_atoms": (8, 14), "contexts_per_atom": 2, **laws}
        graphs = labeled_responses(drawn, seed=0, **sizes)
        cases += [(name, with_drawn_labels(graphs, truth, seed), truth) for truth in ENCODINGS]
    rows: list[dict[str, Any]] = []
    for name, graphs, truth in cases:
        whose = truth if truth == OWN else f"{truth} true"
        case = {"dataset": name, "truth": truth, "case": f"{name}, {whose}"}
        rows += [case | row for row in comparison(graphs, seed, name)]
    frame = data_frame(rows)
    relations = frame["relations"].map(lambda value: number(value, 1))
    columns = (
        Column("encoding", "encoding"),
        Column("brier", "Brier", digits=4, bold="best"),
        *columns_as(
            f"difference:4± difference from {ENCODINGS[0]} | distance> mean |Δp| | slope:2± | "
            "contexts:3 P(context)",
            distance=tiny,
        ),
    )
    note = (
        "Truth: the labels of the data, or labels drawn from the joint distribution under an "
        f"encoding. Less {ENCODINGS[0]}: difference of Brier scores; mean |Δp|: of the same. Bold: "
        "the least Brier score where the intervals of its differences from all others exclude 0. "
        "Slope: of labels on logit p, 1 if calibrated. Intervals: 95%, bootstrap over responses."
    )
    shown = frame.assign(head=frame["case"] + ", " + relations + " relations per context")
    caption = "Exact posteriors under every encoding of relations"
    values = {"difference": f"Brier, difference from {ENCODINGS[0]}", "slope": "calibration slope"}
    ideals = {"difference": 0.0, "slope": 1.0}
    figure = estimate_figure(frame, "case", values, by="encoding", ideals=ideals)
    return Artifacts(
        {"encodings": Table(shown, columns, caption, group="head", note=note)},
        {"difference": PaperFigure(figure, frame, "Brier score under every encoding")},
    )


def comparison(
    graphs: Sequence[FactGraph], seed: int, where: str = "the data"
) -> Iterator[dict[str, Any]]:
    """Yield the scores of exact posteriors under every encoding, a row for each.

    `difference` is the Brier score minus that under the first encoding, with its paired bootstrap
    interval over responses, `distance` the mean |Δp| from the first. `best` says that the Brier
    score is the least, and that the intervals of its differences from all others exclude 0.

    Args:
        graphs: labeled responses.
        seed: seed of the bootstrap.
        where: what errors call the data.

    Raises:
        InputError: if no atom is labeled.
    """
    atoms = labeled_atoms(graphs, where)
    p = {name: claim_posteriors(graphs, name)[atoms.kept] for name in ENCODINGS}
    # Paired: the same redrawn responses under all, whose difficulty cancels.
    changes = {
        (name, other): score_change("brier", p[name], p[other], atoms, seed)
        for name, other in permutations(ENCODINGS, 2)
    }
    for name in ENCODINGS:
        contexts = context_posteriors(graphs, name)
        yield {
            "encoding": name,
            "n_responses": len(atoms.grouping.responses),
            "n_atoms": len(atoms.labels),
            "relations": _relations_per_context(graphs),
            # Exact posteriors are not certain: their log loss is theirs, however large.
            **scores_with_intervals(p[name], atoms, SCORES, seed, least=0.0),
            **named("difference", changes.get((name, ENCODINGS[0]), (0.0, np.nan, np.nan))),
            "distance": float(np.abs(p[name] - p[ENCODINGS[0]]).mean()),
            "best": all(changes[name, each][2] < 0.0 for each in ENCODINGS if each != name),
            "contexts": float(contexts.mean()) if contexts.size else np.nan,
        }


def _relations_per_context(graphs: Sequence[FactGraph]) -> float:
    """The mean number of relations of a context that say something."""
    ends = 0
    for graph in graphs:
        contexts = set(graph.context_ids)
        telling = (each for each in graph.relations if each.kind is not RelationKind.NEUTRAL)
        ends += sum(len({each.source, each.target} & contexts) for each in telling)
    return ends / (sum(len(graph.contexts) for graph in graphs) or np.nan)


def context_posteriors(graphs: Sequence[FactGraph], encoding: str) -> Floats:
    """The exact P(true) of every context of responses, in order, (n_contexts,)."""
    answers = infer_batch([graph.to_factor_graph(encoding) for graph in graphs])
    parts = [
        answer.marginals.flat[1 + 2 * len(graph.atoms) :: 2]
        for graph, answer in zip(graphs, answers, strict=True)
    ]
    return np.concatenate(parts)


def with_drawn_labels(graphs: Sequence[FactGraph], encoding: str, seed: int) -> list[FactGraph]:
    """Responses whose labels are one draw from the joint distribution of each.

    Posteriors under this encoding are then calibrated, whatever the relations are.

    Args:
        graphs: the responses.
        encoding: the encoding of the joint distribution.
        seed: seed of the draws.
    """
    # The responses may have been generated from this seed: the draws have a stream of their own.
    seeds = np.random.default_rng((seed, 1)).integers(0, 2**31, len(graphs)).tolist()
    drawn = []
    for graph, graph_seed in zip(graphs, seeds, strict=True):
        states = sample(graph.to_factor_graph(encoding), 1, graph_seed)[0].tolist()
        labeled = zip(graph.atoms, states[: len(graph.atoms)], strict=True)
        atoms = tuple(replace(atom, label=bool(state)) for atom, state in labeled)
        drawn.append(replace(graph, atoms=atoms))
    return drawn


if __name__ == "__main__":
    answer_question(encodings, __file__)
