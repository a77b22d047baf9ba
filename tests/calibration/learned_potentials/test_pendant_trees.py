"""Pendant trees by closed formulas: the answers of the whole graph, cycles or none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibration.learned_potentials.graph_fitting import fit_potentials as fit
from calibration.learned_potentials.pendant_trees import beliefs_without_pendants
from calibration.learned_potentials.terms import Potentials, level, temperature
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.factor_graph import FactorGraph
from inference import get_backend
from inference.backend import ZeroPartitionError
from tests.oracle import oracle

_SHAPES = {
    "star": [(1, 0), (2, 0), (0, 3)],
    "chain": [(0, 1), (2, 1), (2, 3)],
    "two": [(0, 1), (2, 3)],
    "cycle": [(0, 1), (1, 2), (2, 0), (3, 2), (4, 3), (3, 5)],
    "both ways": [(0, 1), (1, 0), (1, 2)],
    "nothing": [],
}


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("name", ["exact", "lbp"])
def test_beliefs_are_those_of_the_whole_graph(shape: str, name: str) -> None:
    rng = np.random.default_rng(0)
    pairs = _SHAPES[shape]
    n = 6
    scopes = [*([at] for at in range(n)), *(list(pair) for pair in pairs)]
    tables = [rng.uniform(0.1, 1.0, (2,) * len(scope)) for scope in scopes]
    # A variable that is held at a state, as labels hold atoms.
    tables[3] = np.array([0.0, 0.7])
    graph = FactorGraph.from_factors([2] * n, zip(scopes, tables, strict=True))
    settings = {"tolerance": 1e-13, "max_iterations": 2000} if name == "lbp" else {}
    beliefs = beliefs_without_pendants(get_backend(name, **settings), graph)
    assert beliefs is not None
    found = beliefs(graph.log_values)
    if name == "lbp":
        whole = get_backend(name, **settings).infer(graph)
        expected, log_z = whole.marginals.of_state(1), whole.log_z
    else:
        truth = oracle(graph)
        expected = np.array([truth.marginals[each][1] for each in graph.names])
        log_z = truth.log_z
    assert found.posterior.log_z == pytest.approx(log_z, abs=1e-11)
    np.testing.assert_allclose(found.posterior.marginals.of_state(1), expected, atol=1e-10)
    tables_of = found.entries[2 * n :].reshape(-1, 2, 2)
    for (source, target), table in zip(pairs, tables_of, strict=True):
        np.testing.assert_allclose(table.sum(), 1.0, atol=1e-10)
        np.testing.assert_allclose(table[1].sum(), expected[source], atol=1e-10)
        np.testing.assert_allclose(table[:, 1].sum(), expected[target], atol=1e-10)


def test_what_is_impossible_is_said() -> None:
    graph = FactorGraph.from_factors(
        [2, 2], [([0], [1.0, 0.0]), ([1], [0.0, 1.0]), ([0, 1], [[1.0, 0.0], [0.0, 1.0]])]
    )
    beliefs = beliefs_without_pendants(get_backend("exact"), graph)
    assert beliefs is not None
    with pytest.raises(ZeroPartitionError):
        beliefs(graph.log_values)


def test_neutral_relations_that_mixture_reads_are_learned_and_applied() -> None:
    rng = np.random.default_rng(1)
    kinds = (RelationKind.ENTAILMENT, RelationKind.NEUTRAL, RelationKind.NEUTRAL)
    graphs = []
    for number in range(12):
        relations = tuple(
            Relation(f"c{at}", "a", kind, p, _shares(kind, p))
            for at, (kind, p) in enumerate(zip(kinds, rng.uniform(0.5, 0.8, 3), strict=True))
        )
        contexts = tuple(Context(f"c{at}") for at in range(3))
        atom = Atom("a", label=bool(number % 3))
        graphs.append(FactGraph(f"r{number}", (atom,), contexts, relations))
    chosen = Potentials(level("atom_prior"), None, temperature("kind"), "mixture")
    learned = fit(graphs, chosen, penalty=1.0)
    assert set(learned.values) == {"atom_prior", "temperature[entailment]", "temperature[neutral]"}
    value = 0.0
    for graph in map(learned.apply, graphs):
        assert {r.probability for r in graph.relations} != {0.5}
        truth = oracle(graph.to_factor_graph("mixture"))
        value -= np.log(truth.marginals["a"][int(graph.atoms[0].label is True)])
    assert learned.value == pytest.approx(value, abs=1e-9)
    # Under the other encodings neutral relations stay what they are.
    other = fit(graphs, replace(chosen, encoding="implication"), penalty=1.0)
    assert set(other.values) == {"atom_prior", "temperature[entailment]"}
    assert other.apply(graphs[0]).relations[1] == graphs[0].relations[1]


def _shares(kind: RelationKind, p: float) -> tuple[float, ...]:
    """Return a distribution: the rest is contradicted or of the other kind."""
    if kind is RelationKind.ENTAILMENT:
        return (p, 0.1, 0.0, 0.9 - p)
    return (0.9 - p, 0.1, 0.0, p)
