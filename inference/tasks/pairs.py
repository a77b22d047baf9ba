"""Joint distributions of all pairs of a set of variables, in one pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.exact.backend import CalibratedTree, Exact
from inference.tasks.kernels.rows import PAIRS, RowWalk, pass_rows
from inference.tasks.kernels.subtrees import Subtrees, subtrees
from inference.tasks.requests import Variables, positions, require_memory


def pairwise_joints(
    graph: FactorGraph, variables: Variables, exact: Exact | None = None
) -> NDArray[np.float64]:
    """Return the joint distribution of every two of some variables given the evidence.

    For example, the variance of the number of true atoms among m is the sum over all pairs of
    ``joints[i, j, 1, 1] - p[i] * p[j]``.

    Each pair is processed once, in the lowest cluster above both. The cost is at most m times the
    table entries above the variables, and m**2 if the variables are in small clusters, as on a
    forest.

    Args:
        graph: the factor graph, with or without evidence.
        variables: names or positions of m variables, each once.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        float64 (m, m, k, k), where k is the maximum number of states: ``[i, j, s, t]`` is the
        probability that variable i is in state s and j in t; 0 for states that do not exist. ``[i,
        i]`` has the marginal on its diagonal.

    Raises:
        InputError: for an unknown or repeated variable, or none.
        TooLargeError: if the tables would exceed the memory limit.
        ZeroPartitionError: if no assignment has positive potential.
    """
    exact = exact or Exact()
    wanted = positions(graph, variables, "variables")
    counts = graph.cardinalities[wanted]
    calibrated = exact.calibrate(graph)
    absorbed = calibrated.graph
    weights = np.zeros(graph.n_variables, dtype=np.int64)
    weights[wanted] = absorbed.cardinalities[wanted]
    below = subtrees(calibrated.tree, weights, 0)
    total = int(weights.sum())
    entries = below.room + 3.0 * total**2 + (len(wanted) * float(counts.max())) ** 2
    require_memory(8.0 * entries, exact.allowance(), "the joint distributions of all pairs")
    flat = _pairs(calibrated, weights, below, wanted)
    result = np.zeros((len(wanted), len(wanted), counts.max(), counts.max()))
    states = np.concatenate([np.arange(count) for count in absorbed.cardinalities[wanted]])
    owners = np.repeat(np.arange(len(wanted)), absorbed.cardinalities[wanted])
    observed = graph.evidence[wanted][owners]
    states = np.where(observed == UNOBSERVED, states, observed)
    result[owners[:, None], owners[None, :], states[:, None], states[None, :]] = flat
    return result


def _pairs(
    calibrated: CalibratedTree,
    weights: NDArray[np.int64],
    below: Subtrees,
    wanted: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the probabilities of two states, (n, n), for the states of the wanted variables."""
    graph = calibrated.graph
    total = int(weights.sum())
    pairs = np.zeros((total, total))
    walk = RowWalk(
        graph.cardinalities,
        calibrated.tree,
        calibrated.program,
        calibrated.tables,
        weights,
        below,
    )
    pass_rows(PAIRS, walk, pairs)
    sizes = weights[wanted]
    within = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    columns = np.repeat(below.begins[wanted], sizes) + within
    result: NDArray[np.float64] = pairs[np.ix_(columns, columns)]
    # The kernel fills one half: the first target in post-order is the row.
    result += result.T
    starts = np.cumsum(graph.cardinalities) - graph.cardinalities
    marginals = calibrated.marginals[np.repeat(starts[wanted], sizes) + within]
    roots = np.repeat(_roots(calibrated, wanted), sizes)
    apart = roots[:, None] != roots[None, :]
    result[apart] = np.outer(marginals, marginals)[apart]
    np.fill_diagonal(result, marginals)
    return result


def _roots(calibrated: CalibratedTree, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the root of the component of each variable."""
    tree = calibrated.tree
    roots = np.where(tree.parents >= 0, tree.parents, np.arange(len(tree.parents)))
    while (roots[roots] != roots).any():
        roots = roots[roots]
    home = np.empty(calibrated.graph.n_variables, dtype=np.int64)
    separators = tree.starts[:-1] + tree.separator_sizes
    lengths = tree.starts[1:] - separators
    clusters = np.repeat(np.arange(len(tree.parents)), lengths)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    home[tree.variables[separators[clusters] + within]] = clusters
    result: NDArray[np.int64] = roots[home[wanted]]
    return result
