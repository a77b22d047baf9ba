"""Equivalent graphs with potentials near 1, for libraries that multiply potentials without scaling.

Products of potentials leave the range of doubles near 500 factors. Therefore every table is divided
by messages of belief propagation, and the table of every variable is multiplied by them. The
product of all tables is unchanged up to a constant, for any messages, but the factors of the
library's products stay near 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import InferenceError, zero_partition
from inference.messages.kernels.division import divided_by_messages
from inference.messages.kernels.schedules import ZERO
from inference.messages.reduction import reduced
from inference.possible_states import Support, assignment, restricted

_SWEEPS = 50
_DAMPING = 0.3
_TOLERANCE = 1e-3
"""Settings of approximate messages, which suffice to keep products in range."""


def balanced(graph: FactorGraph) -> Support:
    """Return a graph with the distribution of `graph`, on its possible states, with tables near 1.

    Args:
        graph: a factor graph without evidence.

    Returns:
        The support of that graph, whose `log_constant` includes all divisors of its tables.

    Raises:
        ZeroPartitionError: if messages show that no assignment has positive potential.
    """
    model = reduced(graph)
    code, unary, log_values = divided_by_messages(
        graph.cardinalities, model, _DAMPING, _TOLERANCE, _SWEEPS
    )
    if code == ZERO:
        raise zero_partition()
    alive = model.unary > -np.inf
    constants = [model.constant]

    def normalized(logs: NDArray[np.float64], total: float) -> NDArray[np.float64]:
        constants.append(total)
        return logs - total

    beliefs = [
        normalized(logs, float(np.logaddexp.reduce(logs)))
        for logs in np.split(unary, model.state_starts[1:-1])
        if len(logs)
    ]
    tables = []
    for factor in range(len(model.scope_starts) - 1):
        scope = model.scope_variables[slice(*model.scope_starts[factor : factor + 2])]
        entries = log_values[slice(*model.table_starts[factor : factor + 2])]
        joint = entries.reshape(graph.cardinalities[scope])
        for axis, v in enumerate(scope.tolist()):
            joint = joint + beliefs[v].reshape([-1 if a == axis else 1 for a in range(len(scope))])
        tables.append(normalized(entries, float(np.logaddexp.reduce(joint, axis=None))))
    n = graph.n_variables
    values = np.concatenate([np.zeros(0), *beliefs, *tables])
    sizes = [*map(len, beliefs), *map(len, tables)]
    whole = FactorGraph(
        graph.names,
        graph.cardinalities,
        np.concatenate([np.arange(n), n + model.scope_starts]),
        np.concatenate([np.arange(n), model.scope_variables]),
        np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)]),
        values,
        np.full(n, UNOBSERVED),
    )
    support = restricted(whole, alive)
    return replace(support, log_constant=support.log_constant + math.fsum(constants))


@contextmanager
def within_doubles(library: str) -> Iterator[None]:
    """Raise an InferenceError that names a backend for potentials that a conversion refuses."""
    try:
        yield
    except InputError as error:
        raise InferenceError(
            f"potentials span more than doubles can, and {library} does not compute in "
            "logarithms; use backend 'exact'"
        ) from error


def no_probability(library: str, graph: FactorGraph) -> InferenceError:
    """Return the error for a library that found no probability in a balanced graph.

    Raises:
        ZeroPartitionError: if no assignment has positive potential.
    """
    assignment(graph, np.random.SeedSequence(0))
    return InferenceError(
        f"{library} finds no probability to normalize, because its products leave the range of "
        "doubles; use backend 'exact'"
    )
