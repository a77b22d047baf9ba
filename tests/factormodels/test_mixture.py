"""The encoding *mixture*: distributions over kinds, held to an enumeration of the kinds."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.encodings import KIND_CODES, encode_many, mixture, rest_of
from factormodels.io.fact_graph_json import fact_graph_object, parse_fact_graph
from tests.oracle import oracle
from tests.refusals import refused

ENTAILMENT, CONTRADICTION, EQUIVALENCE, NEUTRAL, EXCLUSIVE, CO_NECESSITY = RelationKind
HALF = [0.5, 0.5]

SAYS = {
    # P(target | source) if the relation is of this kind for certain: [source][target].
    ENTAILMENT: [HALF, [0.0, 1.0]],
    CONTRADICTION: [HALF, [1.0, 0.0]],
    EQUIVALENCE: [[1.0, 0.0], [0.0, 1.0]],
    NEUTRAL: [HALF, HALF],
    EXCLUSIVE: [[0.0, 1.0], [1.0, 0.0]],
    CO_NECESSITY: [[0.0, 1.0], HALF],
}

# Sums of at most a few dozen products of a handful of doubles.
ROUNDING = 1e-13


@st.composite
def distributions(draw: st.DrawFn) -> tuple[float, ...]:
    weights = [draw(st.integers(0, 10)) for _ in RelationKind]
    if not any(weights):
        weights[draw(st.integers(0, 5))] = 1
    return tuple(weight / sum(weights) for weight in weights)


@st.composite
def graphs(draw: st.DrawFn) -> FactGraph:
    priors = st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])
    atoms = tuple(Atom(f"a{i}", prior=draw(priors)) for i in range(draw(st.integers(1, 3))))
    contexts = tuple(Context(f"c{i}", prior=draw(priors)) for i in range(draw(st.integers(1, 2))))
    names = [*(atom.id for atom in atoms), *(context.id for context in contexts)]
    every = [*permutations(names, 2)]
    pairs = draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))
    relations = []
    for source, target in pairs:
        shares = draw(distributions())
        kind = draw(st.sampled_from(list(RelationKind)))
        position = list(RelationKind).index(kind)
        relations.append(Relation(source, target, kind, shares[position], shares))
    return FactGraph("g", atoms, contexts, tuple(relations))


def judged(*relation: Any, prior: float = 0.5, trust: float = 0.99) -> FactGraph:
    """Return a claim and a passage with a relation: its kind, probability and distribution."""
    related = (Relation("c", "a", *relation),)
    return FactGraph("g", (Atom("a", prior=prior),), (Context("c", prior=trust),), related)


def over_kinds(graph: FactGraph) -> dict[str, list[float]] | None:
    """Marginals from every assignment and every kind of every relation; None if nothing can be."""
    names = (*graph.atom_ids, *graph.context_ids)
    priors = [*(atom.prior for atom in graph.atoms), *(context.prior for context in graph.contexts)]
    terms: dict[str, list[list[float]]] = {name: [[], []] for name in names}
    for states in product((0, 1), repeat=len(names)):
        state = dict(zip(names, states, strict=True))
        weight = math.prod(p if s else 1.0 - p for p, s in zip(priors, states, strict=True))
        for kinds in product(RelationKind, repeat=len(graph.relations)):
            parts = [
                dict(zip(RelationKind, relation.distribution or (), strict=False)).get(kind, 0.0)
                * SAYS[kind][state[relation.source]][state[relation.target]]
                for relation, kind in zip(graph.relations, kinds, strict=True)
            ]
            for name, value in state.items():
                terms[name][value].append(weight * math.prod(parts))
    total = math.fsum(terms[names[0]][0] + terms[names[0]][1])
    if total == 0.0:
        return None
    return {
        name: [math.fsum(products) / total for products in pair] for name, pair in terms.items()
    }


@settings(max_examples=150, deadline=None)
@given(graph=graphs())
def test_posteriors_are_those_of_an_enumeration_of_kinds(graph: FactGraph) -> None:
    expected = over_kinds(graph)
    answer = oracle(graph.to_factor_graph("mixture"))
    if expected is None:
        assert answer.log_z == -math.inf
        return
    for name, marginal in expected.items():
        assert answer.marginals[name] == pytest.approx(marginal, abs=ROUNDING)


@given(
    shares=distributions(),
    prior=st.floats(0.01, 0.99),
    trust=st.floats(0.01, 1.0),
    kind=st.sampled_from(list(RelationKind)),
)
def test_evidence_is_never_of_the_wrong_sign(
    shares: tuple[float, ...], prior: float, trust: float, kind: RelationKind
) -> None:
    # Without the kinds of which a false source says something too.
    for_, against, equates, neutral, excludes, needed = shares
    shares = (for_ + equates, against + excludes, 0.0, neutral + needed, 0.0, 0.0)
    p = shares[list(RelationKind).index(kind)]
    graph = judged(kind, p, shares, prior=prior, trust=trust)
    enumerated = oracle(graph.to_factor_graph("mixture")).marginals["a"][1]
    expected = np.sign(round(shares[0] - shares[1], 12))
    assert np.sign(round(enumerated - prior, 12)) in (expected, 0.0)
    if abs(shares[0] - shares[1]) * trust > 1e-3:
        assert np.sign(enumerated - prior) == expected


def test_tables_by_hand() -> None:
    # What the relation model does not give to the kind counts as neutral where it says no more.
    for kind, table in {
        ENTAILMENT: [[0.5, 0.5], [0.1, 0.9]],
        CONTRADICTION: [[0.5, 0.5], [0.9, 0.1]],
        EQUIVALENCE: [[0.9, 0.1], [0.1, 0.9]],
        NEUTRAL: [[0.5, 0.5], [0.5, 0.5]],
        EXCLUSIVE: [[0.1, 0.9], [0.9, 0.1]],
        CO_NECESSITY: [[0.1, 0.9], [0.5, 0.5]],
    }.items():
        np.testing.assert_allclose(np.exp(mixture(kind, 0.8, 0.3)), table, rtol=1e-15)
    # 0.4 + 0.5 / 2 for, 0.1 + 0.5 / 2 against.
    rest = [rest_of(ENTAILMENT, (0.4, 0.1, 0.0, 0.5))]
    (table,) = np.exp(encode_many([ENTAILMENT], [0.4], [0.9], "mixture", rest))
    np.testing.assert_allclose(table, [[0.5, 0.5], [0.35, 0.65]], rtol=1e-15)


ENCODINGS = ("implication", "conditional", "mixture")


def with_neutral() -> FactGraph:
    return FactGraph(
        "g",
        (Atom("a"), Atom("b")),
        (Context("c"),),
        (
            Relation("c", "a", NEUTRAL, 0.6, (0.35, 0.05, 0.0, 0.6)),
            Relation("c", "b", NEUTRAL, 0.8),
            Relation("a", "b", NEUTRAL, 0.4, (0.3, 0.3, 0.0, 0.4)),
            Relation("b", "c", CONTRADICTION, 0.7),
        ),
    )


def test_a_neutral_relation_has_a_factor_where_its_distribution_tells_something() -> None:
    graph = with_neutral()
    factors = {name: graph.to_factor_graph(name).n_factors for name in ENCODINGS}
    # Three priors and the contradiction; the mixture reads c -> a as well.
    assert factors == {"implication": 4, "conditional": 4, "mixture": 5}
    assert graph.compiled_for("mixture").relation_numbers.tolist() == [0, 3]
    assert graph.compiled_for("conditional") is graph.compiled
    table = np.exp(graph.to_factor_graph("mixture").log_table(3))
    np.testing.assert_allclose(table, [[0.5, 0.5], [0.35, 0.65]], rtol=1e-15)


def test_another_probability_leaves_the_other_kinds_their_proportions() -> None:
    graph = judged(ENTAILMENT, 0.4, (0.4, 0.1, 0.0, 0.5))
    changed = replace(graph, relations=(replace(graph.relations[0], probability=0.7),))
    stated = judged(ENTAILMENT, 0.7, (0.7, 0.05, 0.0, 0.25))
    first, other = (each.to_factor_graph("mixture").log_values for each in (changed, stated))
    np.testing.assert_allclose(first, other, rtol=1e-15, atol=1e-15)


def test_a_compiled_form_without_the_neutral_ones_does_not_pass_for_the_whole() -> None:
    graph = with_neutral()
    words = ["1 neutral or improbable relation ", "compiled_for('mixture')"]
    refused(words, graph.compiled.log_values, encoding="mixture")
    words = ["'implication'", "compiled_for('implication')"]
    refused(words, graph.compiled_for("mixture").log_values, encoding="implication")


def test_a_distribution_is_written_and_read_back() -> None:
    graph = with_neutral()
    edges = fact_graph_object(graph)["edges"]
    assert edges[0]["distribution"] == {"entailment": 0.35, "contradiction": 0.05, "neutral": 0.6}
    assert "distribution" not in edges[1]
    assert parse_fact_graph(fact_graph_object(graph), "g.json") == graph


def test_probabilities_that_were_rounded_are_scaled() -> None:
    shares: Any = {ENTAILMENT: 0.333, CONTRADICTION: 0.333, NEUTRAL: 0.333}
    relation = Relation("c", "a", NEUTRAL, 0.333, shares)
    assert relation.distribution == pytest.approx((1 / 3, 1 / 3, 0.0, 1 / 3), rel=1e-15)


def test_a_bad_distribution_in_a_file_is_named_with_its_place() -> None:
    plain = fact_graph_object(with_neutral())
    plain["edges"][0]["distribution"]["neutral"] = 0.1
    refused(["mine.json", "edges[0]", "sum to 0.5"], parse_fact_graph, plain, "mine.json")
    plain["edges"][0]["distribution"] = [0.3, 0.7]
    refused(["mine.json", "distribution"], parse_fact_graph, plain, "mine.json")


def test_every_kind_with_a_factor_has_its_number() -> None:
    assert set(KIND_CODES) == set(RelationKind) - {NEUTRAL}
    assert sorted(KIND_CODES.values()) == list(range(len(KIND_CODES)))


def test_a_graph_offers_mixture_where_an_encoding_is_unknown() -> None:
    graph = judged(ENTAILMENT, 0.9)
    refused(r"did you mean 'mixture'\?.*conditional, mixture", graph.to_factor_graph, "mixtur")
