"""Relations between claims: do they help to find false ones, beside the evidence?

Question: do relations between claims, or hidden causes that claims share, tell true claims from
false ones better than the evidence of each claim does?
Data: factscore and selfcheck, embedded, with their labels and relations between their claims.
Rival: evidence alone, with strengths learned in other folds of responses.

    python notebooks/questions/claims_relations.py --out docs/results/claims-relations

It takes 58 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibration.folds import folds_of
from calibration.learned_potentials.columns import RESPONSE, SENTENCE
from calibration.learned_potentials.graph_fitting import cross_fitting
from calibration.learned_potentials.graph_potentials import Potentials
from calibration.learned_potentials.methods import PENALTY, as_support, six_classes
from calibration.validation import Floats
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.claim_scores import labeled_atoms, score_change, scores_with_intervals
from experiments.findings.figures import estimate_figure
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame, named
from factormodels import datasets
from factormodels.claims import Context, Relation, RelationKind
from factormodels.fact_graph import FactGraph
from factormodels.variants import between_claims, variant
from inference.batch import claim_posteriors

ALONE, RELATED, CAUSES = "evidence alone", "relations between claims", "hidden causes"
_SURE = 0.6
"""Relations between claims have a strength for each kind, below and from this probability on."""


def claims_relations(
    *, data: tuple[str, ...] = ("factscore", "selfcheck"), folds: int = 5, seed: int = 0
) -> Artifacts:
    """Return scores of each graph, and their differences from those of the evidence alone.

    Args:
        data: embedded responses with labels and with relations between their claims.
        folds: folds of responses in which strengths are learned.
        seed: seed of the folds and of the bootstrap over responses.
    """
    rows: list[dict[str, Any]] = []
    for name in data:
        graphs = datasets.with_claim_relations(datasets.load(name))
        labeled = [each for each in graphs if any(a.label is not None for a in each.atoms)]
        rows += score_rows(name, labeled, folds, seed)
    frame = data_frame(rows)
    columns = columns_as(
        "graph | relations:0 relations of claims | brier:4± Brier | "
        "difference:4± Brier minus evidence alone | auroc:3± AUROC"
    )
    table = Table(
        *(frame, columns),
        "Labeled claims judged with and without relations between them",
        group="data",
        note="Strengths are learned on other folds of responses. Differences are paired over "
        "responses; 95% intervals. AUROC within folds.",
    )
    figure = estimate_figure(frame, "graph", {"brier": "Brier"}, by="data")
    shown = PaperFigure(figure, frame, "Brier score of each graph")
    return Artifacts({"relations": table}, {"scores": shown})


def score_rows(
    name: str, graphs: Sequence[FactGraph], folds: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield a row for each graph that is learned on."""
    atoms = labeled_atoms(graphs, name)
    fold = folds_of(atoms.grouping, folds, seed)
    alone: Floats | None = None
    for title, make in GRAPHS.items():
        made = [make(graph) for graph in graphs]
        p = learned_posteriors(made, folds, seed)[atoms.kept]
        row: dict[str, Any] = {"data": name, "graph": title, "n_atoms": len(p)}
        row["relations"] = sum(len(between_claims(graph)) for graph in made)
        row |= scores_with_intervals(p, atoms, ("brier", "auroc"), seed, fold)
        # The first is evidence alone, which every other is held against.
        alone = p if alone is None else alone
        difference = (
            score_change("brier", p, alone, atoms, seed) if p is not alone else (np.nan,) * 3
        )
        yield row | named("difference", difference)


def learned_posteriors(graphs: Sequence[FactGraph], folds: int, seed: int) -> Floats:
    """Posterior of each claim with strengths learned in the folds without its response."""
    how: Any = {"backend": "exact", "penalty": PENALTY, "with_errors": False}
    crossing = cross_fitting(graphs, STRENGTHS, n_folds=folds, seed=seed, **how)
    return claim_posteriors(crossing.learned()[1], backend="exact")


def strength_class(graph: FactGraph, relation: Relation) -> str:
    """Class of evidence, and between claims the kind and half of a relation's probability.

    Relations of a hidden cause are of its level.
    """
    if relation.source in graph.atom_ids:
        return f"{relation.kind} {'sure' if relation.probability >= _SURE else 'unsure'}"
    if relation.kind is RelationKind.EQUIVALENCE:
        return relation.source.partition(" ")[0]
    return six_classes(graph, relation)


STRENGTHS = Potentials(("atom_prior", "probability"), strength_class)
"""Learned potentials: a prior of claims, and the strength of each class of relations."""


def evidence_alone(graph: FactGraph) -> FactGraph:
    """The relations of each claim's own passages; votes, where it has these, as one entailment.

    Relations are entailments with the probability that they are one. A vote is an answer whether a
    sample supports the claim; their share is the probability.
    """
    votes = graph.metadata.get("votes")
    if votes is None:
        return as_support(variant(graph, "FR1"))
    yes_shares = {
        atom: answers.count("Y") / len(answers) for atom, answers in votes.items() if answers
    }
    return replace(
        graph,
        contexts=tuple(Context(f"votes {atom}", retrieved_for=(atom,)) for atom in yes_shares),
        relations=tuple(
            Relation(f"votes {atom}", atom, RelationKind.ENTAILMENT, share)
            for atom, share in yes_shares.items()
        ),
    )


def with_related_claims(graph: FactGraph) -> FactGraph:
    """The same, with the relations between claims."""
    alone = evidence_alone(graph)
    return replace(alone, relations=(*alone.relations, *between_claims(graph)))


def with_causes(graph: FactGraph) -> FactGraph:
    """The evidence alone, with a hidden cause of each sentence's claims, and one of the sentences.

    A forest of stars stays a forest. Causes are even, and equivalent to what they cause with a
    probability that is learned: 1/2 says that what they join has nothing in common.
    """
    alone = evidence_alone(graph)
    causes = {f"{SENTENCE} {atom.sentence}" for atom in graph.atoms}
    joined = [(f"{SENTENCE} {atom.sentence}", atom.id) for atom in graph.atoms]
    joined += [(RESPONSE, cause) for cause in sorted(causes)]
    contexts = (Context(name, prior=0.5) for name in (*sorted(causes), RESPONSE))
    relations = (
        Relation(cause, below, RelationKind.EQUIVALENCE, AGREEMENT[cause.partition(" ")[0]])
        for cause, below in joined
    )
    return replace(
        alone,
        contexts=(*alone.contexts, *contexts),
        relations=(*alone.relations, *relations),
    )


AGREEMENT = {SENTENCE: 0.7, RESPONSE: 0.65}
"""Probability with which a cause and what it causes agree before anything is learned."""

GRAPHS: Mapping[str, Callable[[FactGraph], FactGraph]] = {
    ALONE: evidence_alone,
    RELATED: with_related_claims,
    CAUSES: with_causes,
}
"""Graphs that are learned on, by what tables call them."""


if __name__ == "__main__":
    answer_question(claims_relations, __file__)
