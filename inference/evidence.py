"""Absorption of evidence, and marginals with the observed variables restored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.posterior import Marginals


def checked_graph(graph: Any) -> FactorGraph:
    """Return the factor graph that was given.

    Raises:
        InputError: if it is another object; the message explains how to convert it.
    """
    if isinstance(graph, FactorGraph):
        return graph
    from factormodels.interchange.factor_graphs import conversion_of

    kind = type(graph)
    library = kind.__module__.partition(".")[0]
    of = "" if library in ("builtins", "factormodels") else f" of {library}"
    raise InputError(
        f"inference takes a factor graph, not a {kind.__name__}{of}; {conversion_of(graph)}"
    )


def without_evidence(graph: FactorGraph) -> tuple[FactorGraph, NDArray[np.int64]]:
    """Return the graph without its evidence, and the entries of the log tables that remain.

    The entries are int64, ascending. The log tables of a graph with evidence are placeholders; a
    graph without evidence is returned unchanged.
    """
    if not graph.has_evidence:
        return graph, np.arange(len(graph.log_values))
    numbers = np.arange(len(graph.log_values), dtype=np.float64)
    absorbed = replace(graph, log_values=numbers).absorb_evidence()
    return absorbed, absorbed.log_values.astype(np.int64)


class WithoutEvidence(Sequence[FactorGraph]):
    """Sequence of graphs without their evidence, which is absorbed at first access.

    Access is by index or slice. For graphs without observed variables the cost is negligible, since
    graphs that differ only in tables share the array of their evidence.

    Attributes:
        graphs: the graphs with their evidence.
        observed: accessed graphs that had evidence, without it, by number.
    """

    def __init__(self, graphs: Sequence[FactorGraph]) -> None:
        self.graphs = graphs
        self.observed: dict[int, FactorGraph] = {}

    def __len__(self) -> int:
        return len(self.graphs)

    @overload
    def __getitem__(self, numbers: int) -> FactorGraph: ...

    @overload
    def __getitem__(self, numbers: slice) -> list[FactorGraph]: ...

    def __getitem__(self, numbers: int | slice) -> FactorGraph | list[FactorGraph]:
        """Return the graph of a number, or the graphs of a slice, without evidence."""
        if not isinstance(numbers, slice):
            return self._taken(range(len(self))[numbers])
        taken = list(self.graphs[numbers])
        # Graphs that differ only in tables share the array of their evidence.
        checked: object = None
        for position, graph in enumerate(taken):
            if graph.evidence is checked:
                continue
            if graph.has_evidence:
                taken[position] = self._taken(range(len(self))[numbers][position])
            else:
                checked = graph.evidence
        return taken

    def _taken(self, number: int) -> FactorGraph:
        graph = self.graphs[number]
        if not graph.has_evidence:
            return graph
        if number not in self.observed:
            self.observed[number] = graph.absorb_evidence()
        return self.observed[number]


def with_observed(graph: FactorGraph, marginals: Marginals) -> Marginals:
    """Return marginals with the observed variables restored, as certain."""
    if not graph.has_evidence:
        return marginals
    observed = graph.evidence != UNOBSERVED
    values = np.zeros(int(graph.cardinalities.sum()))
    starts = np.concatenate([[0], np.cumsum(graph.cardinalities)[:-1]])
    values[starts[observed] + graph.evidence[observed]] = 1.0
    values[np.repeat(~observed, graph.cardinalities)] = marginals.flat[
        np.repeat(~observed, np.where(observed, 1, graph.cardinalities))
    ]
    return Marginals.of(graph, values)


def errors_with_observed(
    graph: FactorGraph, errors: Mapping[str, NDArray[np.float64]]
) -> dict[str, NDArray[np.float64]]:
    """Return standard errors by variable with the observed variables restored, in the graph's
    order.

    Observed variables have error 0.
    """
    observed = graph.evidence != UNOBSERVED
    return {
        name: np.zeros(int(count)) if known else errors[name]
        for name, count, known in zip(graph.names, graph.cardinalities, observed, strict=True)
        if known or name in errors
    }
