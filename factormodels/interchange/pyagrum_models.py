"""Factor graphs as models of pyAgrum, and back."""

from __future__ import annotations

import warnings
from typing import Any

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.interchange.tables import library, merged_tables, potentials, with_ones

_EXTRA = "'factorfacts[pyagrum]'"


def to_pyagrum(graph: FactorGraph) -> Any:
    """`MarkovRandomField` with the distribution of a graph.

    Variables keep names and states. Factors over the same variables are merged, evidence is a
    factor that excludes the other states, and a variable without a factor gets one of ones.

    Raises:
        InputError: for a graph without variables, or potentials beyond the range of doubles.
        MissingDependencyError: if pyAgrum is not installed.
    """
    pyagrum = library("pyagrum", _EXTRA)
    with warnings.catch_warnings():
        # Its first network imports types of a kind that Python deprecates; where that warning is
        # an error, the process ends.
        warnings.simplefilter("ignore", DeprecationWarning)
        network = pyagrum.MarkovRandomField()
    for name, count in zip(graph.names, graph.cardinalities.tolist(), strict=True):
        network.add(pyagrum.RangeVariable(name, "", 0, count - 1))
    for scope, table in with_ones(graph, merged_tables(graph)).items():
        names = [graph.names[variable] for variable in scope]
        values = potentials(table, names, "pyAgrum")
        # pyAgrum's first variable is the fastest.
        network.addFactor(names).fillWith(values.ravel(order="F").tolist())
    return network


def from_pyagrum(model: Any) -> FactorGraph:
    """Factor graph of a pyAgrum `MarkovRandomField` or `BayesNet`.

    Variables are in the order of the model's nodes, states in that of their labels.

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
        # The axes of an array are the variables from the last to the first.
        [([index[name] for name in reversed(table.names)], table.toarray()) for table in tables],
        names=names,
    )
