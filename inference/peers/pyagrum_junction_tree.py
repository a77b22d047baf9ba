"""pyAgrum's junction tree, an exact reference by other hands.

pyAgrum multiplies potentials as they are, which underflow near 500 factors, and tells no partition
function. So it is given an equivalent model: every table divided by messages of belief
propagation, every variable's table multiplied by them. Whatever the messages, the product of all
tables is the same, but now its factors stay near 1 where they meet in the junction tree. log Z is
the difference between the log potential of an assignment and its log probability, which is read
off the cliques one after another.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, InferenceError, TooLargeError, zero_partition
from inference.messages.kernels.division import divided_by_messages
from inference.messages.kernels.reduction import Reduced
from inference.messages.kernels.schedules import ZERO
from inference.messages.reduction import reduced
from inference.peers.limits import require_entries, require_tables
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.settings import setting

with warnings.catch_warnings():
    # Its types are of a kind that Python deprecates. Where that warning is an error, the import
    # and the first network end the process.
    warnings.simplefilter("ignore", DeprecationWarning)
    pyagrum: Any = import_module("pyagrum")
    pyagrum.MarkovRandomField()

_TABLES_PER_CLIQUE = 3
"""A clique's table, a product on the way and what is sent: what is held at once."""

_MOST_VARIABLES = 5000
"""The time for log Z grows with the square of the variables: some seconds at this size."""

_SWEEPS = 50
_DAMPING = 0.3
_TOLERANCE = 1e-3
"""The messages need not be final; these are good enough to keep products in range."""


@dataclass(frozen=True)
class PyagrumJunctionTree(Backend):
    """pyAgrum's Shafer-Shenoy inference on a Markov random field.

    Attributes:
        memory_limit: bytes that the tables of the cliques may take.

    Source: Shafer & Shenoy 1990, "Axioms for probability and belief-function propagation", as
    pyAgrum implements it.
    """

    name: ClassVar[str] = "pyagrum"

    memory_limit: int = setting(2 * 2**30, above=0)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Exact posterior of a graph without evidence.

        Raises:
            TooLargeError: for more than 5000 variables, or cliques beyond the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if potentials leave the range of doubles in pyAgrum's products.
        """
        model = reduced(graph)
        count = int(np.count_nonzero(model.fixed < 0))
        if count > _MOST_VARIABLES:
            raise TooLargeError(
                f"the backend 'pyagrum' takes {_MOST_VARIABLES} variables at most, because its "
                f"time grows with their square, and this graph has {count}; use backend 'exact'"
            )
        # Before it triangulates: it fills memory with the tables as it does so.
        require_tables("pyAgrum", graph, 1, self.memory_limit)
        network = _network(graph, model)
        engine = pyagrum.ShaferShenoyMRFInference(network)
        # More threads would sum in an order of their own.
        engine.setNumberOfThreads(1)
        cliques, neighbours = _junction_tree(engine)
        self._check_memory(cliques, network)
        try:
            engine.makeInference()
            states = _possible_states(model)
            marginals = _marginals(engine, model, states)
            chosen, log_probability = _assignment(engine, cliques, neighbours)
        except pyagrum.IncompatibleEvidence:
            marginals = np.full(1, np.nan)
        if not np.isfinite(marginals).all():
            raise InferenceError(
                "pyAgrum finds no probability to normalise: the partition function is zero, or its "
                "products leave the range of doubles; ask backend 'exact' which"
            )
        for position, state in chosen.items():
            states[position] = states[position][state : state + 1]
        assignment = np.array([row[0] for row in states], dtype=np.int64)
        log_z = graph.log_potential(assignment) - log_probability
        return Posterior(
            marginals=Marginals.of(graph, marginals),
            log_z=log_z,
            log_z_kind=LogZKind.EXACT,
            status=Status.EXACT,
            stats={
                "pyagrum": pyagrum.__version__,
                "induced_width": max((len(clique) - 1 for clique in cliques.values()), default=0),
            },
        )

    def _check_memory(self, cliques: dict[int, set[int]], network: Any) -> None:
        entries = sum(
            math.prod(network.variable(node).domainSize() for node in clique)
            for clique in cliques.values()
        )
        widest = max(map(len, cliques.values()), default=0)
        require_entries("pyAgrum", _TABLES_PER_CLIQUE * entries, widest, self.memory_limit)


def _possible_states(model: Reduced) -> list[NDArray[np.int64]]:
    """Possible states of every variable."""
    possible = model.unary > -np.inf
    return [
        np.flatnonzero(possible[start:stop])
        for start, stop in zip(model.state_starts[:-1], model.state_starts[1:], strict=True)
    ]


def _network(graph: FactorGraph, model: Reduced) -> Any:
    """PyAgrum's model of the variables with several states; they keep their numbers."""
    code, unary, log_values = divided_by_messages(
        graph.cardinalities, model, _DAMPING, _TOLERANCE, _SWEEPS
    )
    if code == ZERO:
        raise zero_partition()
    states = _possible_states(model)
    free = np.flatnonzero(model.fixed < 0).tolist()
    network = pyagrum.MarkovRandomField()
    network.beginTopologyTransformation()
    beliefs = {}
    for v in free:
        # With a given number; pyAgrum would seek one among all.
        network.add(pyagrum.RangeVariable(f"x{v}", "", 0, len(states[v]) - 1), v)
        logs = unary[model.state_starts[v] + states[v]]
        beliefs[v] = logs - np.logaddexp.reduce(logs)
        network.addFactor([v]).fillWith(np.exp(beliefs[v]).tolist())
    for factor in range(len(model.scope_starts) - 1):
        start, stop = model.scope_starts[factor], model.scope_starts[factor + 1]
        scope = model.scope_variables[start:stop].tolist()
        first, last = model.table_starts[factor], model.table_starts[factor + 1]
        table = log_values[first:last].reshape(graph.cardinalities[scope])
        table = table[np.ix_(*(states[v] for v in scope))]
        joint = table.copy()
        for axis, v in enumerate(scope):
            joint += beliefs[v].reshape([-1 if a == axis else 1 for a in range(len(scope))])
        with np.errstate(over="ignore"):
            potentials = np.exp(table - np.logaddexp.reduce(joint, axis=None))
        if not np.isfinite(potentials).all():
            raise InferenceError(
                "potentials span more than doubles can, and pyAgrum does not compute in "
                "logarithms; use backend 'exact'"
            )
        # pyAgrum's first variable is the fastest.
        network.addFactor(scope).fillWith(potentials.ravel(order="F").tolist())
    network.endTopologyTransformation()
    return network


def _junction_tree(engine: Any) -> tuple[dict[int, set[int]], dict[int, list[int]]]:
    """Variables of every clique, and its neighbours."""
    tree = engine.junctionTree()
    cliques = {node: tree.clique(node) for node in tree.nodes()}
    neighbours: dict[int, list[int]] = {node: [] for node in cliques}
    for first, second in tree.edges():
        neighbours[first].append(second)
        neighbours[second].append(first)
    return cliques, neighbours


def _marginals(engine: Any, model: Reduced, states: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    values = np.zeros(len(model.unary))
    for v, possible in enumerate(states):
        probabilities = 1.0 if len(possible) == 1 else engine.posterior(v).toarray()
        values[model.state_starts[v] + possible] = probabilities
    return values


def _assignment(
    engine: Any, cliques: dict[int, set[int]], neighbours: dict[int, list[int]]
) -> tuple[dict[int, int], float]:
    """Probable assignment of the variables and its log probability.

    It is chosen clique by clique, the most probable states given those chosen before; what a
    clique adds to the log probability depends on what it shares with its neighbour alone.
    """
    chosen: dict[int, int] = {}
    log_probability = 0.0
    seen: set[int] = set()
    for root in cliques:
        pending = [] if root in seen else [root]
        seen.add(root)
        while pending:
            node = pending.pop()
            joint = engine.jointPosterior(cliques[node])
            # The axes of the array are in the reverse order of the names.
            order = [int(name[1:]) for name in reversed(joint.names)]
            table = joint.toarray()[tuple(chosen.get(v, slice(None)) for v in order)]
            new = [v for v in order if v not in chosen]
            best = np.unravel_index(np.argmax(table), np.shape(table))
            log_probability += math.log(table[best] / table.sum())
            chosen.update(zip(new, map(int, best), strict=True))
            for other in neighbours[node]:
                if other not in seen:
                    seen.add(other)
                    pending.append(other)
    return chosen, log_probability
