"""Conventions: posteriors under the paper's and the release's, against enumeration by their text.

Here the model is built anew from what each convention says, in plain loops, and every state is
enumerated: nothing of the encoder or of `inference` is used for what is expected.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest

from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.conventions import (
    DEFAULT,
    PRESETS,
    Conventions,
    GraphConventions,
    differing,
    meaning_of,
    switched,
)
from factormodels.fact_graph import FactGraph
from factormodels.variants import has_default_prior, variant
from inference import infer

ENTAILMENT, CONTRADICTION = RelationKind.ENTAILMENT, RelationKind.CONTRADICTION

Table = Callable[[int, int], float]
Factor = tuple[str, str, Table]

PAPER, RELEASE = PRESETS["paper"], PRESETS["fact-reasoner-0.8"]


def drawn(seed: int, n_atoms: int = 3, n_contexts: int = 4) -> FactGraph:
    """A response whose passages serve several claims and entail or contradict each other."""
    rng = np.random.default_rng(seed)
    atoms = [f"a{number}" for number in range(n_atoms)]
    contexts = [f"c{number}" for number in range(n_contexts)]
    kinds = [ENTAILMENT, ENTAILMENT, CONTRADICTION, RelationKind.NEUTRAL]

    def related(source: str, target: str) -> Relation:
        kind = kinds[rng.integers(4)]
        # Below 1/2 too, as models of three labels state them.
        return Relation(source, target, kind, round(float(rng.uniform(0.35, 0.98)), 3))

    between = [related(c, d) for c, d in itertools.permutations(contexts, 2)]
    # Two passages that entail each other, whatever is drawn.
    certain = {("c0", "c1"): 0.6, ("c1", "c0"): 0.9}
    between = [
        Relation(each.source, each.target, ENTAILMENT, certain[each.source, each.target])
        if (each.source, each.target) in certain
        else each
        for each in between
    ]
    return FactGraph(
        "r",
        tuple(map(Atom, atoms)),
        tuple(
            Context(c, retrieved_for=tuple(a for a in atoms if rng.random() < 0.6) or ("a0",))
            for c in contexts
        ),
        (*(related(c, a) for c in contexts for a in atoms), *between),
    )


def enumerated(priors: dict[str, float], factors: list[Factor]) -> dict[str, float]:
    """P(true) of every variable of a model, by all of its states."""
    names = list(priors)
    totals = dict.fromkeys(names, 0.0)
    z = 0.0
    for states in itertools.product((0, 1), repeat=len(names)):
        state = dict(zip(names, states, strict=True))
        weight = 1.0
        for name, value in state.items():
            weight *= priors[name] if value else 1.0 - priors[name]
        for source, target, table in factors:
            weight *= table(state[source], state[target])
        z += weight
        for name in names:
            totals[name] += weight * state[name]
    return {name: total / z for name, total in totals.items()}


def table_1(kind: RelationKind, p: float) -> Table:
    """FactReasoner, table 1: 1 - p where the relation is violated, p elsewhere."""
    violated = {ENTAILMENT: [(1, 0)], CONTRADICTION: [(1, 1)]}.get(kind, [(0, 1), (1, 0)])
    return lambda s, t: 1 - p if (s, t) in violated else p


def table_with_priors(kind: RelationKind, p: float, prior: float) -> Table:
    """The release's table: where the source is false, its target is as likely as a prior."""
    if kind is RelationKind.EQUIVALENCE:
        return table_1(kind, p)
    says = p if kind is ENTAILMENT else 1 - p

    def value(source: int, target: int) -> float:
        true = says if source else prior
        return true if target else 1 - true

    return value


def by_pair(graph: FactGraph) -> dict[tuple[str, str], Relation]:
    return {(each.source, each.target): each for each in graph.relations}


def seen_by_release(graph: FactGraph, view: str) -> list[tuple[str, str, RelationKind, float]]:
    """The edges of the release's versions v1, v2 and v3."""
    stated = by_pair(graph)
    edges: list[tuple[str, str, RelationKind, float]] = []
    for context in graph.contexts:
        for atom in graph.atom_ids:
            relation = stated[context.id, atom]
            wanted = view != "FR1" or atom in context.retrieved_for
            if wanted and relation.kind is not RelationKind.NEUTRAL:
                edges.append((context.id, atom, relation.kind, relation.probability))
    if view == "FR3":
        for source, other in itertools.combinations(graph.context_ids, 2):
            first, second = stated[source, other], stated[other, source]
            strongest = first if first.probability >= second.probability else second
            if first.kind is second.kind is ENTAILMENT:
                edges.append((source, other, RelationKind.EQUIVALENCE, strongest.probability))
                continue
            spoken = [each for each in (first, second) if each.kind is not RelationKind.NEUTRAL]
            if len(spoken) == 1:
                (strongest,) = spoken
            if spoken:
                ends = strongest.source, strongest.target
                edges.append((*ends, strongest.kind, strongest.probability))
    return edges


def expected_of_release(graph: FactGraph, view: str, *, with_priors: bool) -> dict[str, float]:
    priors = dict.fromkeys(graph.atom_ids, 0.5) | dict.fromkeys(graph.context_ids, 0.9)
    factors: list[Factor] = []
    for source, target, kind, p in seen_by_release(graph, view):
        table = table_with_priors(kind, p, priors[target]) if with_priors else table_1(kind, p)
        factors.append((source, target, table))
    return enumerated(priors, factors)


def expected_of_paper(graph: FactGraph, view: str) -> dict[str, float]:
    """FR1 by a copy of a passage for each claim; table 1 for relations of any probability."""
    stated = by_pair(graph)
    priors = dict.fromkeys(graph.atom_ids, 0.5)
    factors: list[Factor] = []
    for context in graph.contexts:
        atoms = context.retrieved_for if view == "FR1" else graph.atom_ids
        for atom in atoms:
            name = f"{context.id} for {atom}" if view == "FR1" else context.id
            priors[name] = 0.99
            relation = stated[context.id, atom]
            if relation.kind is not RelationKind.NEUTRAL:
                factors.append((name, atom, table_1(relation.kind, relation.probability)))
    if view == "FR3":
        for source, other in itertools.combinations(graph.context_ids, 2):
            evidence = [
                each
                for each in (stated[source, other], stated[other, source])
                if each.kind is not RelationKind.NEUTRAL
            ]
            if [each.kind for each in evidence] == [ENTAILMENT, ENTAILMENT]:
                least = min(each.probability for each in evidence)
                factors.append((source, other, table_1(RelationKind.EQUIVALENCE, least)))
            elif evidence:
                best = max(evidence, key=lambda each: each.probability)
                table = table_1(best.kind, best.probability)
                factors.append((best.source, best.target, table))
    return enumerated(priors, factors)


def posteriors(graph: FactGraph, view: str, conventions: Conventions) -> list[float]:
    seen = variant(graph, view, conventions)
    marginals = infer(seen.to_factor_graph(conventions.encoding), "exact").marginals
    return [float(marginals[atom][1]) for atom in graph.atom_ids]


@pytest.mark.parametrize("view", ["FR1", "FR2", "FR3"])
@pytest.mark.parametrize("seed", range(4))
def test_declared_conventions_give_the_numbers_of_the_paper_and_of_the_release(
    view: str, seed: int
) -> None:
    graph = drawn(seed)
    atoms = graph.atom_ids
    release = expected_of_release(graph, view, with_priors=True)
    without = expected_of_release(graph, view, with_priors=False)
    paper = expected_of_paper(graph, view)
    # Sums of 2^7 to 2^12 products of the same numbers, in another order.
    exactly = 1e-12
    assert posteriors(graph, view, RELEASE) == pytest.approx(
        [release[a] for a in atoms], abs=exactly
    )
    implication = replace(RELEASE, encoding="implication")
    solved = posteriors(graph, view, implication)
    assert solved == pytest.approx([without[a] for a in atoms], abs=exactly)
    assert posteriors(graph, view, PAPER) == pytest.approx([paper[a] for a in atoms], abs=exactly)
    # What is compared differs, so that none of this holds by chance.
    assert max(abs(release[a] - paper[a]) for a in atoms) > 1e-4


@pytest.mark.parametrize(
    ("name", "view"),
    [
        ("context_prior", "FR2"),
        ("equivalence", "FR3"),
        ("shared_passage", "FR1"),
        ("weak_relations", "FR2"),
        ("encoding", "FR2"),
    ],
)
def test_every_convention_of_a_graph_moves_posteriors_by_itself(name: str, view: str) -> None:
    # The paper and its release keep weak relations alike; the default leaves them out.
    changed = switched(PAPER, DEFAULT if name == "weak_relations" else RELEASE, name)
    assert [*differing(PAPER, changed)] == [name]
    moved = [
        np.abs(np.subtract(posteriors(graph, view, changed), posteriors(graph, view, PAPER))).max()
        for graph in map(drawn, range(5))
    ]
    assert max(moved) > 1e-3


def test_priors_that_are_stated_stay() -> None:
    contexts = (Context("c1"), Context("c2", prior=0.9), Context("c3", prior=0.747))
    graph = FactGraph("r", (Atom("a1"),), contexts)
    for prior in (0.9, 0.99):
        seen = variant(graph, "FR2", GraphConventions(context_prior=prior))
        assert [each.prior for each in seen.contexts] == [prior, prior, 0.747]
    assert [has_default_prior(each) for each in contexts] == [True, True, False]
    # Without a convention the priors are those of the data.
    assert variant(graph, "FR2") is graph


def test_a_shared_passage_is_one_variable_with_the_relations_of_its_claims_alone() -> None:
    relations = [Relation("c1", atom, ENTAILMENT, 0.8) for atom in ("a1", "a2", "a3")]
    graph = FactGraph(
        "r",
        (Atom("a1"), Atom("a2"), Atom("a3")),
        (Context("c1", retrieved_for=("a1", "a2")),),
        tuple(relations),
    )
    seen = variant(graph, "FR1", GraphConventions(shared_passage="one"))
    assert seen.context_ids == ("c1",)
    assert [relation.target for relation in seen.relations] == ["a1", "a2"]
    assert seen.contexts[0].retrieved_for == ("a1", "a2")


def test_every_value_has_a_meaning_of_its_own() -> None:
    for field in fields(Conventions):
        values = {getattr(each, field.name) for each in (DEFAULT, *PRESETS.values())}
        meanings = [meaning_of(field.name, value) for value in values]
        assert len(set(meanings)) == len(values), field.name
