"""Synthetic responses, graphs and grids: shape, laws, seeds, agreement of their two forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factormodels import FactorGraph, RelationKind, variant
from factormodels.encodings import ENCODINGS, KIND_CODES
from factormodels.synthetic import (
    Beta,
    Constant,
    Densities,
    FactLaws,
    Law,
    Mixture,
    Uniform,
    chain,
    draw_facts,
    fact_graph,
    fr1_forest,
    fr2,
    fr3,
    grid,
    mixed_reliability,
    random_graph,
)
from factormodels.synthetic.laws import choose
from tests.chance import assert_share
from tests.factormodels.graphs import assert_same
from tests.oracle import oracle
from tests.refusals import refused


def unchecked(value: object) -> Any:
    """Return what a caller without a type checker may give."""
    return value


PAIRS = [[2, 0], [3, 0], [4, 1], [5, 0], [5, 1], [2, 3], [2, 5]]
KINDS = [1, 0, 1, 0, 1, 1, 0]
PROBABILITIES = [
    *[0.6415581641284152, 0.6936552195424507, 0.9258129943552862, 0.5945876187467604],
    *[0.8588725166718635, 0.8805024364915861, 0.6627014737891629],
]

# What each generator makes of a seed: called with the seed alone.
GENERATORS: dict[str, Callable[[Any], FactorGraph]] = {
    "fr1_forest": lambda seed: fr1_forest(8, 3, seed=seed),
    "fr2": lambda seed: fr2(8, 3, 0.2, seed=seed),
    "fr2 within reach": lambda seed: fr2(8, 3, 0.4, reach=2, seed=seed),
    "fr3": lambda seed: fr3(8, 3, 0.2, 0.1, seed=seed),
    "grid": lambda seed: grid(3, 4, coupling=1.0, field=0.5, seed=seed),
    "Potts grid": lambda seed: grid(3, 4, coupling=1.0, field=0.5, cardinality=3, seed=seed),
    "chain": lambda seed: chain(9, coupling=1.0, field=0.5, seed=seed),
    "random_graph": lambda seed: random_graph(9, 12, zero_probability=0.2, seed=seed),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_a_seed_decides_everything(name: str) -> None:
    generate = GENERATORS[name]
    assert_same(generate(7), generate(7))
    assert_same(generate(7), generate(np.random.default_rng(7)))
    assert_same(generate([7, 1]), generate(np.random.SeedSequence([7, 1])))
    first, other = generate(7), generate(8)
    assert not np.array_equal(first.log_values, other.log_values)


def test_a_seed_means_the_same_next_year() -> None:
    # Recorded from the generators' first version. A new numpy may change its streams; then the
    # published numbers of synthetic data change with it, and this is where it shows.
    facts = draw_facts(2, 2, 0.4, 0.3, seed=0)
    assert facts.pairs.tolist() == PAIRS
    assert facts.kinds.tolist() == KINDS
    # The last digits are the mathematical library's.
    assert facts.probabilities.tolist() == pytest.approx(PROBABILITIES, rel=1e-12)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_both_forms_are_the_same_graph(encoding: str) -> None:
    laws = FactLaws(atom_prior=Uniform(0.2, 0.8), context_prior=mixed_reliability())
    settings: dict[str, Any] = {"seed": 1, "laws": laws}
    near: dict[str, Any] = {**settings, "always_related": False, "reach": 4}
    for flat, facts in (
        (fr1_forest(12, 3, **settings, encoding=encoding), fact_graph(12, 3, **settings)),
        (fr2(12, 3, 0.1, **settings, encoding=encoding), fact_graph(12, 3, 0.1, **settings)),
        (fr3(12, 3, 0.1, 0.1, **near, encoding=encoding), fact_graph(12, 3, 0.1, 0.1, **near)),
    ):
        assert_same(flat, facts.to_factor_graph(encoding))


@settings(max_examples=40)
@given(
    n=st.integers(0, 7),
    k=st.integers(0, 3),
    densities=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
    always_related=st.booleans(),
    reach=st.one_of(st.none(), st.integers(0, 8)),
    seed=st.integers(0, 2**32),
)
def test_structure_keeps_its_promises(
    n: int,
    k: int,
    densities: tuple[float, float],
    always_related: bool,
    reach: int | None,
    seed: int,
) -> None:
    facts = draw_facts(n, k, *densities, always_related=always_related, reach=reach, seed=seed)
    assert len(facts.atom_priors) == n
    assert facts.owners.tolist() == [atom for atom in range(n) for _ in range(k)]
    pairs = list(map(tuple, facts.pairs.tolist()))
    assert len(set(pairs)) == len(pairs)
    evidence = [(source - n, target) for source, target in pairs if target < n]
    between = [(source - n, target - n) for source, target in pairs if target >= n]
    assert pairs[: len(evidence)] == [(c + n, a) for c, a in evidence]
    assert evidence == sorted(evidence)
    assert between == sorted(between)
    assert all(0 <= first < other < n * k for first, other in between)
    owners = facts.owners.tolist()
    if always_related:
        assert {(c, owners[c]) for c in range(n * k)} <= set(evidence)
    if reach is not None:
        assert all(abs(owners[c] - a) <= reach for c, a in evidence)
        assert all(abs(owners[c] - owners[d]) <= reach for c, d in between)
    graph = facts.to_fact_graph()
    assert variant(graph, "FR3") == graph
    if not between:
        assert variant(graph, "FR2") == graph


def test_fr1_of_a_drawn_graph_is_its_own_pairs() -> None:
    wide = fact_graph(6, 2, 0.3, 0.2, seed=3)
    narrow = variant(wide, "FR1")
    assert narrow.contexts == wide.contexts
    assert [(r.source, r.target) for r in narrow.relations] == [
        (f"c{c}", f"a{(c + 1) // 2}") for c in range(1, 13)
    ]


def test_contexts_may_be_spread_unevenly() -> None:
    facts = draw_facts(4, [2, 0, 1, 3], seed=0)
    assert facts.owners.tolist() == [0, 0, 2, 3, 3, 3]
    assert facts.pairs[:, 1].tolist() == facts.owners.tolist()


def test_densities_are_probabilities_of_pairs() -> None:
    n, k = 60, 10
    facts = draw_facts(n, k, 0.05, 0.01, always_related=False, seed=11)
    evidence = int((facts.pairs[:, 1] < n).sum())
    contexts = n * k
    assert_share(evidence, n * contexts, 0.05)
    assert_share(len(facts.pairs) - evidence, contexts * (contexts - 1) // 2, 0.01)
    with_evidence = draw_facts(n, k, 0.05, always_related=True, seed=11)
    assert_share(len(with_evidence.pairs) - contexts, (n - 1) * contexts, 0.05)
    near = draw_facts(n, k, 0.3, 0.2, always_related=False, reach=1, seed=11)
    within = (3 * n - 2) * k
    evidence = int((near.pairs[:, 1] < n).sum())
    assert_share(evidence, within, 0.3)
    # Pairs of contexts of one atom, and of an atom and the next.
    within = n * k * (k - 1) // 2 + (n - 1) * k * k
    assert_share(len(near.pairs) - evidence, within, 0.2)


def test_extreme_densities_relate_nothing_or_everything() -> None:
    none = draw_facts(5, 2, 0.0, 0.0, always_related=False, seed=0)
    assert len(none.pairs) == 0
    every = draw_facts(5, 2, Densities(entailment=1.0), Densities(equivalence=1.0), seed=0)
    assert len(every.pairs) == 5 * 10 + 10 * 9 // 2
    assert set(every.kinds[: 5 * 10].tolist()) == {KIND_CODES[RelationKind.ENTAILMENT]}
    assert set(every.kinds[5 * 10 :].tolist()) == {KIND_CODES[RelationKind.EQUIVALENCE]}
    rare = draw_facts(50, 10, 1e-300, always_related=False, seed=0)
    assert len(rare.pairs) == 0


def test_kinds_follow_the_shares_or_the_densities_of_each() -> None:
    laws = FactLaws(shares=Densities(0.5, 0.3, 0.2))
    kinds = draw_facts(1000, 5, seed=2, laws=laws).kinds
    for code, share in enumerate((0.5, 0.3, 0.2)):
        assert_share(int((kinds == code).sum()), len(kinds), share)
    facts = draw_facts(40, 10, Densities(0.06, 0.02, 0.0), Densities(0.0, 0.01, 0.0), seed=2)
    evidence = facts.pairs[:, 1] < 40
    assert_share(int((facts.kinds[evidence] == 1).sum()), int(evidence.sum()), 0.25)
    assert (facts.kinds[evidence] != 2).all()
    assert (facts.kinds[~evidence] == 1).all()


def test_each_kind_has_its_own_law() -> None:
    laws = FactLaws(
        entailment=Uniform(0.9, 1.0), contradiction=Constant(0.6), equivalence=Uniform(0.0, 0.1)
    )
    facts = draw_facts(100, 3, 0.1, seed=0, laws=laws)
    assert (facts.probabilities[facts.kinds == 0] >= 0.9).all()
    assert set(facts.probabilities[facts.kinds == 1].tolist()) == {0.6}
    assert (facts.probabilities[facts.kinds == 2] <= 0.1).all()


def test_other_laws_leave_the_structure_and_the_kinds_as_they_are() -> None:
    drawn = draw_facts(20, 3, 0.1, 0.05, seed=4)
    laws = FactLaws(entailment=Constant(0.9), context_prior=mixed_reliability())
    other = draw_facts(20, 3, 0.1, 0.05, seed=4, laws=laws)
    np.testing.assert_array_equal(drawn.pairs, other.pairs)
    np.testing.assert_array_equal(drawn.kinds, other.kinds)
    assert not np.array_equal(drawn.context_priors, other.context_priors)


@pytest.mark.parametrize(
    ("law", "mean", "variance"),
    [
        (Beta(8.0, 2.0), 0.8, 0.16 / 11),
        (Uniform(0.5, 0.9), 0.7, 0.16 / 12),
        (Constant(0.3), 0.3, 0.0),
        # Parts by shares 1/4 and 3/4: the variance within, 3/4 of 1/12, and between, 1/4 of 3/4
        # times the squared distance of the means.
        (Mixture(((1.0, Constant(0.9)), (3.0, Uniform(0, 1)))), 0.6, 0.0625 + 0.1875 * 0.16),
        (mixed_reliability(), 0.8 * 0.99 + 0.2 * 0.725, 0.2 * 0.2025 / 12 + 0.16 * 0.265**2),
        (mixed_reliability(0.0), 0.99, 0.0),
    ],
)
def test_laws_have_their_mean_and_variance(law: Law, mean: float, variance: float) -> None:
    size = 40_000
    values = law.sample(np.random.default_rng(9), size)
    assert values.shape == (size,)
    assert ((values >= 0.0) & (values <= 1.0)).all()
    # Five standard errors of the mean; the variance of a law on [0, 1] is at most 1/4, and that
    # of its estimate at most 1/16 a draw.
    assert values.mean() == pytest.approx(mean, abs=5.0 * math.sqrt(variance / size) + 1e-12)
    assert values.var() == pytest.approx(variance, abs=5.0 * 0.25 / math.sqrt(size))


def test_choices_have_the_shares_of_their_weights() -> None:
    weights = [0.0, 3.0, 0.0, 1.0, 4.0, 0.0]
    drawn = np.bincount(choose(np.random.default_rng(3), weights, 20_000), minlength=6)
    assert drawn[[0, 2, 5]].sum() == 0
    for index in (1, 3, 4):
        assert_share(drawn[index], 20_000, weights[index] / 8.0)


def test_a_weight_of_any_size_is_chosen_and_none_of_0_is() -> None:
    # Products with the least number above 0 round to it, which is the end of all steps.
    for least in (math.ulp(0.0), 3 * math.ulp(0.0), 1e-300, 1e300):
        drawn = choose(np.random.default_rng(0), [0.0, least, 0.0, 0.0], 200)
        assert set(drawn.tolist()) == {1}
    values = Mixture(((math.ulp(0.0), Constant(0.25)),)).sample(np.random.default_rng(0), 200)
    assert set(values.tolist()) == {0.25}
    refused(
        ["[1e+308, 1e+308]; give numbers above 0 with a finite sum"],
        Mixture,
        ((1e308, Constant(0.1)), (1e308, Constant(0.9))),
    )


@pytest.mark.parametrize("atoms", [20_000, pytest.param(200_000, marks=pytest.mark.nightly)])
def test_a_million_contexts_make_one_flat_graph(atoms: int) -> None:
    graph = fr1_forest(atoms, 5, seed=0)
    assert graph.n_variables == 6 * atoms
    assert graph.n_factors == 11 * atoms
    assert graph.names[-1] == f"c{5 * atoms}"
    scope = graph.scope(graph.n_factors - 1)
    assert [graph.names[v] for v in scope] == [f"c{5 * atoms}", f"a{atoms}"]


def test_a_grid_joins_neighbors_and_no_others() -> None:
    graph = grid(2, 3, coupling=1.0, field=0.5, seed=0)
    scopes = [scope for scope, _ in graph.factors()]
    assert scopes[:6] == [(v,) for v in range(6)]
    across, down = [(0, 1), (1, 2), (3, 4), (4, 5)], [(0, 3), (1, 4), (2, 5)]
    assert scopes[6:] == across + down
    scopes = [scope for scope, _ in chain(4, coupling=1.0, field=0.5, seed=0).factors()]
    assert scopes[4:] == [(0, 1), (1, 2), (2, 3)]
    assert grid(1, 1, coupling=1.0, field=0.5, seed=0).n_factors == 1


@pytest.mark.parametrize("attractive", [False, True])
@pytest.mark.parametrize("cardinality", [2, 3])
def test_a_grid_is_an_ising_or_potts_model(attractive: bool, cardinality: int) -> None:
    graph = grid(
        9, 9, coupling=0.8, field=0.3, cardinality=cardinality, attractive=attractive, seed=1
    )
    couplings = []
    for scope, table in graph.factors():
        if len(scope) == 1:
            assert np.abs(table).max() <= 0.3
            if cardinality == 2:
                assert table[0] == -table[1]
        else:
            same, different = table[0, 0], table[0, 1]
            assert different == -same
            np.testing.assert_array_equal(
                table, np.where(np.eye(cardinality, dtype=bool), same, different)
            )
            couplings.append(same)
    assert max(couplings) <= 0.8
    assert min(couplings) >= (0.0 if attractive else -0.8)
    assert (min(couplings) < 0.0) is not attractive


def test_a_chain_without_field_has_the_partition_function_of_the_textbook() -> None:
    graph = chain(6, coupling=1.5, field=0.0, seed=0)
    couplings = [table[0, 0] for scope, table in graph.factors() if len(scope) == 2]
    expected = math.log(2.0) + math.fsum(math.log(2.0 * math.cosh(j)) for j in couplings)
    assert oracle(graph).log_z == pytest.approx(expected, rel=1e-13)


@settings(max_examples=60)
@given(
    n=st.integers(1, 6),
    m=st.integers(0, 8),
    arity=st.integers(0, 4),
    cardinality=st.integers(1, 4),
    zero=st.floats(0.0, 1.0),
    isolated=st.integers(0, 2),
    seed=st.integers(0, 2**32),
)
def test_random_graphs_keep_their_promises(
    n: int, m: int, arity: int, cardinality: int, zero: float, isolated: int, seed: int
) -> None:
    graph = random_graph(
        n + isolated,
        m,
        min_arity=0,
        max_arity=arity,
        max_cardinality=cardinality,
        zero_probability=zero,
        isolated=isolated,
        seed=seed,
    )
    assert (graph.n_variables, graph.n_factors) == (n + isolated, m)
    assert ((graph.cardinalities >= 1) & (graph.cardinalities <= cardinality)).all()
    for scope, table in graph.factors():
        assert len(scope) <= min(arity, n)
        assert all(variable < n for variable in scope)
        finite = table[table > -np.inf]
        assert (np.abs(finite) <= 2.0).all()
    assert oracle(graph).log_z > -math.inf


def test_random_graphs_reach_every_arity_and_cardinality() -> None:
    graph = random_graph(
        400, 900, min_arity=0, max_arity=3, min_cardinality=2, zero_probability=0.3, seed=0
    )
    arities = np.bincount(np.diff(graph.scope_starts))
    counts = np.bincount(graph.cardinalities)
    for count in arities:
        assert_share(int(count), 900, 1 / 4)
    assert counts[:2].tolist() == [0, 0]
    for count in counts[2:]:
        assert_share(int(count), 400, 1 / 3)
    impossible = random_graph(3, 3, zero_probability=1.0, satisfiable=False, seed=0)
    assert (impossible.log_values == -np.inf).all()
    spared = random_graph(3, 3, zero_probability=1.0, satisfiable=True, seed=0)
    assert (spared.log_values > -np.inf).sum() == 3
