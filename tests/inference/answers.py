"""Reference answers for posteriors, and their comparison."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import Atom, Context, FactGraph, FactorGraph, Relation, RelationKind
from inference import LogZKind, Marginals, Posterior, Status, infer
from tests.oracle import Oracle, oracle


def log_z_of(graph: FactorGraph, backend: str = "exact", **settings: object) -> float:
    """Return log Z by a backend, which must give one."""
    return given(infer(graph, backend, **settings))


def given(posterior: Posterior) -> float:
    """Return the log Z of a posterior, which must have one."""
    assert posterior.log_z is not None
    return posterior.log_z


def enumerated(graph: FactorGraph) -> NDArray[np.float64]:
    """Return all marginals, one after another, by enumeration of the states."""
    return flat(oracle(graph))


def flat(truth: Oracle) -> NDArray[np.float64]:
    """Return all marginals, one after another."""
    return np.concatenate([np.zeros(0), *truth.marginals.values()])


def assert_near(
    posterior: Posterior,
    marginals: NDArray[np.float64],
    log_z: float | None,
    atol: float,
    rel: float | None = None,
    where: str = "",
) -> None:
    """Check marginals to `atol` and log Z to the same, or to `rel` of itself if given."""
    np.testing.assert_allclose(
        posterior.marginals.flat, marginals, rtol=0.0, atol=atol, err_msg=where
    )
    least = atol if rel is None else min(atol, rel)
    assert posterior.log_z == pytest.approx(log_z, rel=rel or 0.0, abs=least), where


def assert_agree(
    first: Posterior, other: Posterior, atol: float, rel: float | None = None, where: str = ""
) -> None:
    """Check the numbers of a posterior against those of another."""
    assert_near(first, other.marginals.flat, other.log_z, atol, rel, where)


def assert_right(
    graph: FactorGraph, posterior: Posterior, atol: float, rel: float | None = None, where: str = ""
) -> None:
    """Check the numbers of a posterior against enumeration."""
    truth = oracle(graph)
    assert_near(posterior, flat(truth), truth.log_z, atol, rel, where)


def uniform(graph: FactorGraph) -> Posterior:
    """Return an answer that is 1/k for every state, and no log Z."""
    values = np.repeat(1.0 / graph.cardinalities, graph.cardinalities)
    marginals = Marginals(graph.names, graph.cardinalities, values)
    return Posterior(marginals, None, LogZKind.NONE, Status.CONVERGED)


def worked_example() -> FactorGraph:
    """Return FactReasoner's example: c1 entails a1 with 0.8, c2 contradicts it with 0.9."""
    relations = (
        Relation("c1", "a1", RelationKind.ENTAILMENT, 0.8),
        Relation("c2", "a1", RelationKind.CONTRADICTION, 0.9),
    )
    graph = FactGraph("example-1", (Atom("a1"),), (Context("c1"), Context("c2")), relations)
    return graph.to_factor_graph(encoding="implication")
