"""Factor graphs as graphs of PGMax, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.interchange.tables import library, merged_tables

_EXTRA = "'factorfacts[jax]' && pip install --no-deps pgmax==0.6.1"


def to_pgmax(graph: FactorGraph) -> Any:
    """PGMax's `FactorGraph` with the distribution of a graph.

    Its variables are a `VarDict` by name. Factors over the same variables are merged; each lists
    the configurations that are possible, so that log 0 is in none of them, evidence included.

    Raises:
        InputError: for a graph without variables, or a factor that no configuration satisfies.
        MissingDependencyError: if PGMax or JAX is not installed.
    """
    fgraph, vgroup, factor = (
        library(f"pgmax.{part}", _EXTRA) for part in ("fgraph", "vgroup", "factor")
    )
    variables = vgroup.VarDict(
        num_states=np.array(graph.cardinalities, dtype=int), variable_names=graph.names
    )
    result = fgraph.FactorGraph(variable_groups=variables)
    for scope, table in merged_tables(graph).items():
        names = [graph.names[variable] for variable in scope]
        configurations = np.argwhere(table > -np.inf)
        if not len(configurations):
            raise InputError(
                f"the factor over {', '.join(names)} is zero throughout: the partition function "
                "is zero, and PGMax holds no such factor; correct the potentials or the evidence"
            )
        result.add_factors(
            factor.EnumFactor(
                variables=[variables[name] for name in names],
                factor_configs=configurations,
                log_potentials=table[tuple(configurations.T)],
            )
        )
    return result


def from_pgmax(graph: Any) -> FactorGraph:
    """Factor graph of a PGMax graph whose factors are enumerated (`EnumFactor`).

    Variables of a `VarDict` keep their names; others are named by their place in the array, as in
    "0" or "1,2", and by their group before that, as in "0:1,2", if there are several. What a
    factor does not list is impossible.

    Raises:
        InputError: for another kind of object, or factors that are not enumerated.
    """
    groups = getattr(graph, "variable_groups", None)
    if groups is None or not hasattr(graph, "factors"):
        raise InputError(f"{type(graph).__name__} is not a factor graph of PGMax")
    names: list[str] = []
    index: dict[Any, int] = {}
    for number, group in enumerate(groups):
        prefix = f"{number}:" if len(groups) > 1 else ""
        for variable, name in zip(group.variables, _names(group), strict=True):
            index[variable] = len(names)
            names.append(prefix + name)
    cardinalities = [int(states) for _, states in index]
    factors = []
    for kind, members in graph.factors.items():
        for member in members:
            if not hasattr(member, "factor_configs"):
                raise InputError(
                    f"a PGMax factor is of the kind {kind.__name__}, which holds no table; "
                    "only enumerated factors (EnumFactor) can be read"
                )
            scope = [index[variable] for variable in member.variables]
            table = np.full([cardinalities[variable] for variable in scope], -np.inf)
            table[tuple(np.asarray(member.factor_configs).T)] = member.log_potentials
            factors.append((scope, table))
    return FactorGraph.from_factors(cardinalities, factors, names=names, log=True)


def _names(group: Any) -> Iterator[str]:
    own = getattr(group, "variable_names", None)
    if own is not None:
        yield from map(str, own)
        return
    for place in np.ndindex(*group.shape):
        yield ",".join(map(str, place))
