"""What is timed: the project's backends and peers by other hands, behind one call.

A backend is timed from factor graph to marginals. A peer is given its own model, built outside
the timing, so that no ratio counts the translation against it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph

Run = Callable[[], NDArray[np.float64]]
"""Computes all marginals: the probability vectors one after another, in order of the variables."""


@dataclass(frozen=True)
class Algorithm:
    """An algorithm that can be timed.

    Attributes:
        prepare: takes a graph and returns the run that is timed.
        summary: one line: what it is and what its time holds.
        requires: libraries that it needs beside the core.
    """

    prepare: Callable[[FactorGraph], Run]
    summary: str
    requires: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """The libraries of this algorithm that are not installed."""
        return tuple(library for library in self.requires if find_spec(library) is None)


def backend(name: str, **settings: Any) -> Callable[[FactorGraph], Run]:
    """Return the preparation of a registered backend with settings."""

    def prepare(graph: FactorGraph) -> Run:
        from inference import get_backend

        built = get_backend(name, **settings)
        return lambda: built.infer(graph).marginals.flat

    return prepare


def pyagrum_junction_tree(graph: FactorGraph) -> Run:
    """Return pyAgrum's Shafer-Shenoy junction tree on a Markov random field built before."""
    names = [f"x{v}" for v in range(graph.n_variables)]
    with warnings.catch_warnings():
        # Its extension modules warn while they are made, and crash where warnings are errors;
        # the first inference makes the last of them.
        warnings.simplefilter("ignore")
        pyagrum: Any = import_module("pyagrum")
        model = pyagrum.MarkovRandomField()
        for name, states in zip(names, graph.cardinalities.tolist(), strict=True):
            model.add(pyagrum.RangeVariable(name, name, 0, states - 1))
        for scope, table in _merged(graph).items():
            factor = model.addFactor([names[v] for v in scope])
            for states in np.ndindex(*table.shape):
                factor[{names[v]: s for v, s in zip(scope, states, strict=True)}] = table[states]
        pyagrum.ShaferShenoyMRFInference(model)

    def run() -> NDArray[np.float64]:
        inference = pyagrum.ShaferShenoyMRFInference(model)
        inference.makeInference()
        return np.concatenate([inference.posterior(name).toarray() for name in names])

    return run


def _merged(graph: FactorGraph) -> Mapping[tuple[int, ...], NDArray[np.float64]]:
    """Return potentials by scope, those over the same variables multiplied; constants left out."""
    logs: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for scope, table in graph.factors():
        if scope:
            order = np.argsort(scope)
            key = tuple(scope[axis] for axis in order)
            logs[key] = logs.get(key, 0.0) + np.transpose(table, order)
    return {scope: np.exp(table) for scope, table in logs.items()}


ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {
        "exact": Algorithm(backend("exact"), "our variable elimination, from graph to marginals"),
        "lbp": Algorithm(backend("lbp"), "our loopy belief propagation, from graph to marginals"),
        "pgmpy": Algorithm(
            backend("pgmpy"),
            "pgmpy's variable elimination with our orders, from graph to marginals",
            requires=("pgmpy",),
        ),
        "pyagrum": Algorithm(
            pyagrum_junction_tree,
            "pyAgrum's Shafer-Shenoy junction tree, model built before",
            requires=("pyagrum",),
        ),
    }
)
"""Every algorithm that a family can name."""
