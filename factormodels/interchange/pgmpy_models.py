"""Factor graphs as models of pgmpy, and back."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.interchange.tables import library, merged_tables, potentials, with_ones

_EXTRA = "'factorfacts[pgmpy]'"


def to_pgmpy(graph: FactorGraph) -> Any:
    """`DiscreteMarkovNetwork` with the distribution and partition function of a graph.

    Variables keep names and states. Factors over the same variables are merged, evidence is a
    factor that excludes the other states, and a variable without a factor gets one of ones.

    Raises:
        InputError: for a graph without variables, or potentials beyond the range of doubles.
        MissingDependencyError: if pgmpy is not installed.
    """
    factors = library("pgmpy.factors.discrete", _EXTRA)
    models = library("pgmpy.models", _EXTRA)
    network = models.DiscreteMarkovNetwork()
    network.add_nodes_from(graph.names)
    for scope, table in with_ones(graph, merged_tables(graph)).items():
        names = [graph.names[variable] for variable in scope]
        network.add_edges_from(combinations(names, 2))
        values = potentials(table, names, "pgmpy")
        network.add_factors(factors.DiscreteFactor(names, table.shape, values))
    return network


def from_pgmpy(model: Any) -> FactorGraph:
    """Factor graph of a pgmpy model: Markov network, Bayesian network, factor graph.

    Variables are in the order of the model's nodes, states in that of its tables; the names of
    states are kept where all are text.

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
    # The nodes of pgmpy's factor graph are variables and factors alike.
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
        name: tuple(own)
        for table in tables
        for name, own in (getattr(table, "state_names", None) or {}).items()
    }
    # pgmpy numbers states that nobody named.
    told = all(
        len(named.get(name, ())) == states[name]
        and all(isinstance(state, str) for state in named[name])
        for name in names
    )
    return FactorGraph.from_factors(
        [states[name] for name in names],
        [([index[name] for name in table.variables], table.values) for table in tables],
        names=names,
        state_names=[named[name] for name in names] if told else None,
    )
