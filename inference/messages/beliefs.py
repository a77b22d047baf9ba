"""Beliefs of factors at a fixed point of belief propagation: the gradient of the Bethe log Z."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, BeliefFunction, FactorBeliefs

_MOST_LOG_ODDS = 300.0
"""Maximum absolute log odds ratio whose odds ratio has a finite square; beyond it, a factor forbids
the states that it makes unlikely."""


def fixed_point_beliefs(backend: Backend, graph: FactorGraph) -> BeliefFunction | None:
    """Return the beliefs of factors as a function of the log tables of a graph without evidence.

    They are computed from the marginals of variables, which suffice for pairs of binary variables.
    At a fixed point they are the derivative of the Bethe log Z with respect to the log tables
    (Yedidia, Freeman & Weiss 2005, "Constructing free-energy approximations and generalized belief
    propagation").

    Args:
        backend: an algorithm whose answers are fixed points of sum-product belief propagation.
        graph: the graph, whose own log tables are ignored.

    Returns:
        The function; None if a variable does not have two states, or a factor joins more than two
        variables.
    """
    arities = np.diff(graph.scope_starts)
    if (graph.cardinalities != 2).any() or (arities > 2).any():
        return None
    constants = graph.table_starts[:-1][arities == 0]
    unary = graph.table_starts[:-1][arities == 1]
    variables = graph.scope_variables[graph.scope_starts[:-1][arities == 1]]
    pairwise = graph.table_starts[:-1][arities == 2, None] + np.arange(4)
    slots = graph.scope_starts[:-1][arities == 2, None] + np.arange(2)
    pairs, which, reversed_ = _united(graph.scope_variables[slots])

    def beliefs(log_values: NDArray[np.float64]) -> FactorBeliefs:
        posterior = backend.infer(replace(graph, log_values=log_values))
        true = posterior.marginals.of_state(1)
        entries = np.empty(len(log_values))
        entries[constants] = 1.0
        entries[unary], entries[unary + 1] = 1.0 - true[variables], true[variables]
        tables = log_values[pairwise].reshape(-1, 2, 2)
        tables[reversed_] = tables[reversed_].transpose(0, 2, 1)
        products = np.zeros((len(pairs), 2, 2))
        np.add.at(products, which, tables)
        joint = pair_beliefs(true[pairs[:, 0]], true[pairs[:, 1]], products)[which]
        joint[reversed_] = joint[reversed_].transpose(0, 2, 1)
        entries[pairwise] = joint.reshape(-1, 4)
        return FactorBeliefs(posterior, entries)

    return beliefs


def pair_beliefs(
    first: NDArray[np.float64], second: NDArray[np.float64], log_tables: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the joint beliefs of pairs of binary variables from their marginals, (m, 2, 2).

    At a fixed point of belief propagation, the belief of a factor is its table with each row and
    each column multiplied by a message, and its margins are the marginals: it is the only table
    with these margins and the odds ratio of the factor (Plackett 1965, "A class of bivariate
    distributions", equation 3).

    Args:
        first: (m,) probability that the first variable of each pair is true.
        second: (m,) the same for the second variable.
        log_tables: (m, 2, 2) natural logarithms of the factors.
    """
    zero = np.isneginf(log_tables)
    finite = np.where(zero, 0.0, log_tables)
    log_odds = finite[:, 0, 0] + finite[:, 1, 1] - finite[:, 0, 1] - finite[:, 1, 0]
    odds = np.exp(np.clip(log_odds, -_MOST_LOG_ODDS, _MOST_LOG_ODDS))
    # P(1, 1) solves (w - 1) x^2 - (1 + (w - 1) (p + q)) x + w p q = 0, with w the odds ratio.
    total = 1.0 + (first + second) * (odds - 1.0)
    root = np.sqrt(np.maximum(total**2 - 4.0 * odds * (odds - 1.0) * first * second, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # The root has two forms; each is used where nothing cancels.
        both = np.where(
            total > 0.0,
            2.0 * odds * first * second / (total + root),
            (total - root) / (2.0 * (odds - 1.0)),
        )
    # With an odds ratio of 0 or infinity, only one table with this zero has these margins.
    both = np.select(
        [zero[:, 1, 1], zero[:, 1, 0], zero[:, 0, 1], zero[:, 0, 0]],
        [np.zeros_like(both), first, second, first + second - 1.0],
        both,
    )
    table = np.array([[1.0 - first - second + both, second - both], [first - both, both]])
    joint: NDArray[np.float64] = np.maximum(table, 0.0).transpose(2, 0, 1)
    return joint


def _united(
    pairs: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return the distinct pairs of variables, the index of each pair, and whether it is reversed.

    Belief propagation multiplies factors over the same variables before it starts, so that they
    share a belief.

    Args:
        pairs: (m, 2) variables of each factor.
    """
    reversed_ = pairs[:, 0] > pairs[:, 1]
    # Encode each pair as one number, since NumPy turns an interrupt during a comparison of rows
    # into a `TypeError`.
    low, high = np.sort(pairs, axis=1).astype(np.int64).T
    base = int(high.max(initial=0)) + 1
    different, which = np.unique(low * base + high, return_inverse=True)
    return np.stack(np.divmod(different, base), axis=1), which, reversed_
