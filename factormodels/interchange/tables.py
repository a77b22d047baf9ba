"""A factor graph as libraries hold it: one table per scope, evidence and constants among them."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError, MissingDependencyError
from factormodels.factor_graph import UNOBSERVED, FactorGraph


def with_ones(
    graph: FactorGraph, tables: dict[tuple[int, ...], NDArray[np.float64]]
) -> dict[tuple[int, ...], NDArray[np.float64]]:
    """Tables with one of ones for every variable that is in none of them.

    pgmpy calls a model without it incomplete, and pyAgrum cannot infer anything of such a variable.
    """
    bound = {variable for scope in tables for variable in scope}
    free = [variable for variable in range(graph.n_variables) if variable not in bound]
    return {**tables, **{(v,): np.zeros(int(graph.cardinalities[v])) for v in free}}


def merged_tables(graph: FactorGraph) -> dict[tuple[int, ...], NDArray[np.float64]]:
    """Log tables by scope: of factors over the same variables, their product.

    An observed variable has a table that excludes its other states; constants are in the first
    table. So the product of all tables is that of the graph's factors under its evidence.

    Raises:
        InputError: for a graph without variables, which these libraries do not know.
    """
    if not graph.n_variables:
        raise InputError(
            "the factor graph has no variables, and the library cannot hold such a graph"
        )
    merged: dict[frozenset[int], tuple[tuple[int, ...], NDArray[np.float64]]] = {}
    constant = 0.0

    def multiply(scope: tuple[int, ...], table: NDArray[np.float64]) -> None:
        key = frozenset(scope)
        if key not in merged:
            merged[key] = (scope, table.copy())
            return
        own, total = merged[key]
        total += table.transpose([scope.index(variable) for variable in own])

    for scope, table in graph.factors():
        if scope:
            multiply(scope, table)
        else:
            constant += table.item()
    for variable in np.flatnonzero(graph.evidence != UNOBSERVED).tolist():
        table = np.full(int(graph.cardinalities[variable]), -np.inf)
        table[graph.evidence[variable]] = 0.0
        multiply((variable,), table)
    if constant:
        if not merged:
            merged[frozenset((0,))] = ((0,), np.zeros(int(graph.cardinalities[0])))
        first = next(iter(merged.values()))[1]
        first += constant
    return dict(merged.values())


def potentials(
    log_table: NDArray[np.float64], names: Sequence[str], library: str
) -> NDArray[np.float64]:
    """Potentials of a log table, for a library that knows no logarithms.

    Raises:
        InputError: if one leaves the range of doubles.
    """
    with np.errstate(over="ignore", under="ignore"):
        values = np.exp(log_table)
    if np.isinf(values).any() or ((values == 0) & (log_table > -np.inf)).any():
        raise InputError(
            f"the factor over {', '.join(names)} has potentials beyond the range of doubles, and "
            f"{library} does not compute in logarithms; divide it by a constant first"
        )
    return values


def library(name: str, extra: str) -> ModuleType:
    """Import a library, without the warnings of its own import.

    Raises:
        MissingDependencyError: if it is not installed; it says how to install it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"a model of {name.partition('.')[0]} needs the library; run: pip install {extra}"
        ) from error
