"""Independent samples of all variables, without a chain or rejection."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.exact.backend import Exact
from inference.tasks.kernels.assignments import assign
from inference.tasks.requests import require_memory

_UNIFORMS_AT_ONCE = 2**21


def sample(graph: FactorGraph, n: int, seed: int, exact: Exact | None = None) -> NDArray[np.int32]:
    """Return independent samples from the posterior of a graph given its evidence.

    Each sample is drawn from the calibrated cluster tree, roots first: the variables of a cluster
    given those shared with its parent. Assignments of probability zero are never drawn. The first
    samples of a longer run equal those of a shorter one with the same seed.

    Args:
        graph: the factor graph, with or without evidence.
        n: number of samples, 0 or more.
        seed: seed of the samples, a whole number not below 0.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        int32 (n, n_variables), the state of every variable; observed variables have the observed
        state.

    Raises:
        InputError: for a number of samples or a seed below 0.
        TooLargeError: if the tables or samples would exceed the memory limit.
        ZeroPartitionError: if no assignment has positive potential.

    Source: random propagation, Dawid 1992, "Applications of a general propagation algorithm for
    probabilistic expert systems".
    """
    if n < 0:
        raise InputError(f"{n} samples were requested; give 0 or more")
    if seed < 0:
        raise InputError(f"the seed {seed} of the samples is negative; give one from 0 up")
    exact = exact or Exact()
    require_memory(4.0 * n * graph.n_variables, exact.allowance(), f"{n} samples")
    calibrated = exact.calibrate(graph)
    tree, cardinalities = calibrated.tree, calibrated.graph.cardinalities
    nothing = np.empty(0, dtype=np.int32)
    states = np.empty((n, graph.n_variables), dtype=np.int32)
    rng = np.random.default_rng(seed)
    rows = max(1, _UNIFORMS_AT_ONCE // max(1, len(tree.parents)))
    for start in range(0, n, rows):
        part = states[start : start + rows]
        uniforms = rng.random((len(part), len(tree.parents)))
        assign(cardinalities, tree, calibrated.tables, uniforms, nothing, part)
    observed = graph.evidence != UNOBSERVED
    states[:, observed] = graph.evidence[observed]
    return states
