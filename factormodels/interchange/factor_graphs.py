"""Conversion of factor graphs to and from models of pgmpy, pyAgrum and PGMax.

These libraries have one table per scope: factors over the same variables are merged, and evidence
becomes a factor that excludes the other states.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterator
from itertools import combinations
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError, MissingDependencyError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import UNOBSERVED, FactorGraph

_INSTALLED_BY = {
    "pgmpy": "'factorfacts[pgmpy]'",
    "pyagrum": "'factorfacts[pyagrum]'",
    "pgmax": "'factorfacts[jax]' && pip install --no-deps pgmax==0.6.1",
}

_OF_FACT_GRAPHS = ("networkx", "pandas")
"""Libraries whose objects convert to fact graphs, which then convert to factor graphs."""


def conversion_of(model: Any) -> str:
    """Return a clause for errors on how to convert an object to a factor graph."""
    if isinstance(model, FactGraph):
        return "convert it with graph.to_factor_graph(encoding=...)"
    if isinstance(model, str | os.PathLike):
        return "read the file with factormodels.read(path)"
    # Models of pgmpy are networkx graphs too: the most specific type decides.
    for kind in type(model).__mro__:
        name = kind.__module__.partition(".")[0].lower()
        if name in _INSTALLED_BY:
            return f"convert it with factormodels.interchange.from_{name}"
        if name in _OF_FACT_GRAPHS:
            function = "from_networkx" if name == "networkx" else "from_frames"
            return f"convert it with factormodels.interchange.{function}, then .to_factor_graph()"
    return "build one with FactorGraph.from_factors, or see factormodels.interchange"


def to_pgmpy(graph: FactorGraph) -> Any:
    """Return a `DiscreteMarkovNetwork` with the distribution and partition function of a graph.

    Variables keep names and states. Factors over the same variables are merged, evidence becomes a
    factor that excludes the other states, and a variable without a factor gets a factor of ones.

    Raises:
        InputError: for a graph without variables, or potentials beyond the range of doubles.
        MissingDependencyError: if pgmpy is not installed.
    """
    factors, models = library("pgmpy.factors.discrete"), library("pgmpy.models")
    network = models.DiscreteMarkovNetwork()
    network.add_nodes_from(graph.names)
    for names, potentials in _potentials(graph, "pgmpy"):
        network.add_edges_from(combinations(names, 2))
        network.add_factors(factors.DiscreteFactor(names, potentials.shape, potentials))
    return network


def from_pgmpy(model: Any) -> FactorGraph:
    """Return the factor graph of a pgmpy model: Markov network, Bayesian network, factor graph.

    Variables are in the order of the model's nodes, states in the order of its tables; names of
    states are kept if all are text.

    Raises:
        InputError: for another kind of model, names that are not text, or a missing table.
    """
    cpds = getattr(model, "get_cpds", None)
    tables = [cpd.to_factor() for cpd in cpds()] if callable(cpds) else None
    if tables is None:
        get_factors = getattr(model, "get_factors", None)
        if not callable(get_factors):
            raise InputError(
                f"{type(model).__name__} is not a pgmpy model that holds factors; give a "
                "DiscreteMarkovNetwork, a DiscreteBayesianNetwork or a FactorGraph"
            )
        tables = list(get_factors())
    states = {
        name: int(count)
        for table in tables
        for name, count in zip(table.variables, table.cardinality, strict=True)
    }
    # The nodes of pgmpy's factor graph include variables and factors.
    factors = set(map(id, tables))
    names = [node for node in model.nodes() if id(node) not in factors]
    for name in names:
        if not isinstance(name, str):
            raise InputError(
                f"the variable {name!r} has a name that is not text; rename it in the model"
            )
        if name not in states:
            raise InputError(f"the variable {name!r} has no table; add one to the model")
    index = {name: position for position, name in enumerate(names)}
    named = {
        name: tuple(states)
        for table in tables
        for name, states in (getattr(table, "state_names", None) or {}).items()
    }
    # pgmpy numbers unnamed states.
    all_named = all(
        len(named.get(name, ())) == states[name]
        and all(isinstance(state, str) for state in named[name])
        for name in names
    )
    return FactorGraph.from_factors(
        [states[name] for name in names],
        [([index[name] for name in table.variables], table.values) for table in tables],
        names=names,
        state_names=[named[name] for name in names] if all_named else None,
    )


def to_pyagrum(graph: FactorGraph) -> Any:
    """Return a `MarkovRandomField` with the distribution of a graph.

    Variables keep names and states. Factors over the same variables are merged, evidence becomes a
    factor that excludes the other states, and a variable without a factor gets a factor of ones.

    Raises:
        InputError: for a graph without variables, or potentials beyond the range of doubles.
        MissingDependencyError: if pyAgrum is not installed.
    """
    pyagrum = library("pyagrum")
    with warnings.catch_warnings():
        # Its extension types raise a DeprecationWarning at the first network; if warnings are
        # errors, the process would crash.
        warnings.simplefilter("ignore", DeprecationWarning)
        network = pyagrum.MarkovRandomField()
    numbers = {name: number for number, name in enumerate(graph.names)}
    # Otherwise pyAgrum searches for free numbers, and scans the network at each factor.
    network.beginTopologyTransformation()
    for (name, number), count in zip(numbers.items(), graph.cardinalities.tolist(), strict=True):
        network.add(pyagrum.RangeVariable(name, "", 0, count - 1), number)
    for names, potentials in _potentials(graph, "pyAgrum"):
        # pyAgrum's first variable varies fastest.
        scope = [numbers[name] for name in names]
        network.addFactor(scope).fillWith(potentials.ravel(order="F").tolist())
    network.endTopologyTransformation()
    return network


def from_pyagrum(model: Any) -> FactorGraph:
    """Return the factor graph of a pyAgrum `MarkovRandomField` or `BayesNet`.

    Variables are in the order of the model's nodes, states in the order of their labels.

    Raises:
        InputError: for another kind of model.
    """
    if hasattr(model, "cpt"):
        tables = [model.cpt(node) for node in model.nodes()]
    elif hasattr(model, "factor"):
        tables = [model.factor(scope) for scope in model.factors()]
    else:
        raise InputError(
            f"{type(model).__name__} is not a pyAgrum model that holds tables; give a "
            "MarkovRandomField or a BayesNet"
        )
    variables = [model.variable(node) for node in sorted(model.nodes())]
    names = [variable.name() for variable in variables]
    index = {name: position for position, name in enumerate(names)}
    return FactorGraph.from_factors(
        [variable.domainSize() for variable in variables],
        # The axes of an array are the variables in reverse order.
        [([index[name] for name in reversed(table.names)], table.toarray()) for table in tables],
        names=names,
    )


def to_pgmax(graph: FactorGraph) -> Any:
    """Return PGMax's `FactorGraph` with the distribution of a graph.

    Its variables are a `VarDict` by name. Factors over the same variables are merged; each lists
    the possible configurations, so that log 0 and states excluded by evidence are absent.

    Raises:
        InputError: for a graph without variables, or a factor without possible configurations.
        MissingDependencyError: if PGMax or JAX is not installed.
    """
    fgraph, vgroup, factor = (library(f"pgmax.{part}") for part in ("fgraph", "vgroup", "factor"))
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
    """Return the factor graph of a PGMax graph with enumerated factors (`EnumFactor`).

    Variables of a `VarDict` keep their names; others are named by their index in the array, as in
    "0" or "1,2", prefixed by their group, as in "0:1,2", if there are several. Configurations that
    a factor does not list are impossible.

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
        for variable, name in zip(group.variables, _names_in_pgmax(group), strict=True):
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


def _names_in_pgmax(group: Any) -> Iterator[str]:
    names = getattr(group, "variable_names", None)
    if names is not None:
        yield from map(str, names)
        return
    for index in np.ndindex(*group.shape):
        yield ",".join(map(str, index))


def merged_tables(graph: FactorGraph) -> dict[tuple[int, ...], NDArray[np.float64]]:
    """Return log tables by scope: for factors over the same variables, their product.

    An observed variable has a table that excludes its other states; constants are in the first
    table. The product of all tables therefore equals the product of the graph's factors under its
    evidence.

    Raises:
        InputError: for a graph without variables, which these libraries do not support.
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
        merged_scope, total = merged[key]
        total += table.transpose([scope.index(variable) for variable in merged_scope])

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


def _potentials(graph: FactorGraph, whose: str) -> Iterator[tuple[list[str], NDArray[np.float64]]]:
    """Yield names and potentials of merged tables, for a library without log space.

    A variable without a factor has a table of ones: pgmpy considers a model without it incomplete,
    and pyAgrum cannot infer such a variable.

    Raises:
        InputError: if a potential leaves the range of doubles.
    """
    tables = merged_tables(graph)
    for variable in sorted(set(range(graph.n_variables)).difference(*tables)):
        tables[variable,] = np.zeros(int(graph.cardinalities[variable]))
    for scope, log_table in tables.items():
        names = [graph.names[variable] for variable in scope]
        with np.errstate(over="ignore", under="ignore"):
            values = np.exp(log_table)
        if np.isinf(values).any() or ((values == 0) & (log_table > -np.inf)).any():
            raise InputError(
                f"the factor over {', '.join(names)} has potentials beyond the range of doubles, "
                f"and {whose} does not compute in logarithms; divide it by a constant first"
            )
        yield names, values


def library(name: str) -> ModuleType:
    """Import a library without the warnings of its import.

    Raises:
        MissingDependencyError: if it is not installed; the message has the command.
    """
    whole = name.partition(".")[0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"a model of {whole} needs the library; run: pip install {_INSTALLED_BY[whole]}"
        ) from error
