"""pgmpy's exact queries, as an independent reference.

The graph is converted to a pgmpy network, and pgmpy is queried for each variable; the sum of its
answer is the partition function of the variable's connected component. pgmpy 1.1.2 starts every
query from scratch, so that large graphs are refused.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from opt_einsum import contract_path
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from factormodels.factor_graph import FactorGraph
from factormodels.interchange import to_pgmpy
from inference.backend import Backend, InferenceError, TooLargeError
from inference.peers.balanced import balanced, no_probability, within_doubles
from inference.peers.limits import require_entries, require_tables
from inference.posterior import LogZKind, Posterior, Status
from inference.settings import setting

with warnings.catch_warnings():
    # pgmpy imports one of its own deprecated modules.
    warnings.filterwarnings(
        "ignore", message="`pgmpy.estimators.StructureScore` is deprecated", category=FutureWarning
    )
    import pgmpy
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteMarkovNetwork

_TABLES_AT_ONCE = 3
"""Copies of the largest table in memory while it is multiplied and summed."""

_MOST_VARIABLES = 150
"""Maximum variables of a component. Each query eliminates all others, so the time is quadratic."""

_ORDER = "greedy"
"""Order of pgmpy's tensor contraction, which is the same in every process."""


@dataclass(frozen=True)
class PgmpyVariableElimination(Backend):
    """pgmpy's VariableElimination, with one query per variable.

    Each query eliminates all other variables of its connected component, which may have at most 150
    variables. Potentials are multiplied as doubles, after division by messages (`peers.balanced`).

    Attributes:
        memory_limit: bytes that the tables of a query may take.

    Source: sum-product variable elimination, Koller & Friedman 2009, "Probabilistic Graphical
    Models", algorithm 9.1, as pgmpy implements it with opt_einsum.
    """

    name: ClassVar[str] = "pgmpy"

    memory_limit: int = setting(2 * 2**30, above=0)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the exact posterior of a graph without evidence.

        Raises:
            TooLargeError: if a component has too many variables, or the tables would exceed the
                memory limit.
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if potentials leave the range of doubles, or pgmpy is set to torch or to
                single precision.
        """
        _require_double_precision()
        _, width = require_tables("pgmpy", graph, _TABLES_AT_ONCE, self.memory_limit)
        support = balanced(graph)
        vectors: dict[str, NDArray[np.float64]] = {}
        components = _components(support.graph)
        log_z, spread = support.log_constant, 0.0
        for network in components:
            engine = VariableElimination(network)
            sums = []
            self._check_memory(network)
            for name in network.nodes():
                answer = engine.query([name], elimination_order=_ORDER, show_progress=False)
                sums.append(float(answer.values.sum()))
                if not 0.0 < sums[-1] < math.inf:
                    raise no_probability("pgmpy", support.graph)
                vectors[name] = answer.values / sums[-1]
            log_z += math.log(sums[0])
            spread = max(spread, math.log(max(sums) / min(sums)))
        values = [np.zeros(0), *(vectors[name] for name in support.graph.names)]
        return Posterior(
            marginals=support.marginals(np.concatenate(values)),
            log_z=log_z,
            log_z_kind=LogZKind.EXACT,
            status=Status.EXACT,
            stats={
                "pgmpy": pgmpy.__version__,
                "induced_width": width,
                "components": len(components),
                "log_z_spread": spread,
            },
        )

    def _check_memory(self, network: Any) -> None:
        """Check that the tables of queries, in pgmpy's own order, fit the memory."""
        operands: list[Any] = []
        numbers = {node: number for number, node in enumerate(network.nodes())}
        for factor in network.factors:
            operands += [factor.values, [numbers[node] for node in factor.variables]]
        path = contract_path(*operands, [0], optimize=_ORDER)[1]
        # The order for another variable is similar, except that this variable stays in the tables.
        most_states = max(network.get_cardinality().values())
        entries = _TABLES_AT_ONCE * most_states * float(path.largest_intermediate)
        require_entries("pgmpy", entries, int(math.log2(entries)), self.memory_limit)


def _components(graph: FactorGraph) -> list[Any]:
    """Return pgmpy networks, one for each connected component of a graph.

    Raises:
        TooLargeError: if one has too many variables.
        InferenceError: if a potential leaves the range of doubles.
    """
    if not graph.n_variables:
        return []
    # pgmpy takes seconds to build a network of ten thousand variables.
    _require_small_components(graph)
    with within_doubles("pgmpy"):
        whole = to_pgmpy(graph)
    components = []
    for nodes in nx.connected_components(whole):
        # In the order of the graph, which does not depend on hashes.
        network = DiscreteMarkovNetwork(whole.subgraph(nodes).edges())
        network.add_nodes_from(node for node in graph.names if node in nodes)
        network.add_factors(*(each for each in whole.factors if each.variables[0] in nodes))
        components.append(network)
    return components


def _require_small_components(graph: FactorGraph) -> None:
    """Check that no connected component has too many variables."""
    factors = np.repeat(np.arange(graph.n_factors), np.diff(graph.scope_starts))
    # Each variable of a scope is joined to the next one.
    joined = factors[1:] == factors[:-1]
    pairs = graph.scope_variables[:-1][joined], graph.scope_variables[1:][joined]
    links = coo_array((np.ones(joined.sum()), pairs), shape=(graph.n_variables,) * 2)
    largest = int(np.bincount(connected_components(links, directed=False)[1]).max())
    if largest > _MOST_VARIABLES:
        raise TooLargeError(
            "'pgmpy' runs a separate elimination for each query and supports at most "
            f"{_MOST_VARIABLES} connected variables; this graph has {largest:,}; use "
            "backend 'exact', or 'lbp' for an estimate"
        )


def _require_double_precision() -> None:
    backend, precision = pgmpy.config.get_backend(), pgmpy.config.get_dtype()
    if backend != "numpy" or np.dtype(precision) != np.float64:
        raise InferenceError(
            f"pgmpy is set to compute with {backend} in {precision} in this process; call "
            "pgmpy.config.set_backend('numpy') before the backend 'pgmpy' is used"
        )
