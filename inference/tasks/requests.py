"""Validation of the variables, states and memory of tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.memory import MemoryAllowance, require

Variables = Sequence[str] | Sequence[int] | NDArray[np.int64]
"""Variables of a graph, by name or position."""

_NAMES_SHOWN = 5


def positions(graph: FactorGraph, variables: Variables, role: str) -> NDArray[np.int64]:
    """Return the positions of some variables.

    Args:
        graph: the factor graph.
        variables: names or positions.
        role: role of the variables in the task, for messages, such as "targets".

    Raises:
        InputError: if there are none, one is unknown, or one is given twice.
    """
    if isinstance(variables, str):
        raise InputError(f"{role} is the text {variables!r}; give a list of names")
    chosen: dict[int, None] = {}
    for variable in variables:
        position = _position(graph, variable, role)
        if position in chosen:
            raise InputError(f"{role} name {graph.names[position]!r} twice; give it once")
        chosen[position] = None
    if not chosen:
        raise InputError(f"{role} are empty; give at least one variable")
    return np.fromiter(chosen, dtype=np.int64, count=len(chosen))


def wanted_states(
    graph: FactorGraph, variables: NDArray[np.int64], state: int | Sequence[int]
) -> NDArray[np.int64]:
    """Return the state for each variable: the same for all, or one for each.

    Raises:
        InputError: if the numbers differ, or a variable has no such state.
    """
    states = np.asarray(state)
    if states.dtype.kind not in "iu" or states.shape not in ((), (len(variables),)):
        raise InputError(
            f"the state {state!r} is neither one whole number nor one for each of the "
            f"{len(variables)} variables"
        )
    states = np.broadcast_to(states, len(variables)).astype(np.int64)
    counts = graph.cardinalities[variables]
    outside = (states < 0) | (states >= counts)
    if outside.any():
        at = int(np.argmax(outside))
        raise InputError(
            f"variable {graph.names[variables[at]]!r} has no state {states[at]}; "
            f"its states are 0 to {counts[at] - 1}"
        )
    return states


def with_observed(
    graph: FactorGraph, variables: NDArray[np.int64], table: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the joint distribution with all states of observed variables, from one without.

    Args:
        graph: the factor graph, with its evidence.
        variables: the axes of `table`.
        table: the joint distribution, in which observed variables have one state.
    """
    result = np.zeros(graph.cardinalities[variables])
    index = tuple(
        slice(None) if state == UNOBSERVED else slice(state, state + 1)
        for state in graph.evidence[variables].tolist()
    )
    result[index] = table
    return result


def require_memory(needed: float, allowed: MemoryAllowance, what: str) -> None:
    """Check that a number of bytes is allowed.

    Raises:
        TooLargeError: with a message that names `what`.
    """
    require(needed, allowed, what, "ask for fewer variables, observe some")


def listed(graph: FactorGraph, variables: NDArray[np.int64]) -> str:
    """Return the names of some variables for a message."""
    names = [repr(graph.names[variable]) for variable in variables[:_NAMES_SHOWN]]
    shown = ", ".join(names)
    return shown if len(variables) <= _NAMES_SHOWN else f"{shown}, ... ({len(variables)} in all)"


def _position(graph: FactorGraph, variable: object, role: str) -> int:
    if isinstance(variable, str):
        if variable not in graph.index:
            raise InputError(
                f"{role} name {variable!r}, which is not a variable of this graph; its variables "
                f"are {listed(graph, np.arange(graph.n_variables))}"
            )
        return graph.index[variable]
    if isinstance(variable, bool | np.bool_) or not isinstance(variable, int | np.integer):
        raise InputError(f"{role} hold {variable!r}; give names or positions of variables")
    if not 0 <= variable < graph.n_variables:
        raise InputError(
            f"{role} hold the position {variable}, which does not exist; positions run from 0 to "
            f"{graph.n_variables - 1}"
        )
    return int(variable)
