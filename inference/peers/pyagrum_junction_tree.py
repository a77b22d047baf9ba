"""pyAgrum's junction tree, as an independent exact reference.

pyAgrum multiplies potentials without scaling and gives no partition function. It therefore receives
an equivalent graph with potentials near 1 (`peers.balanced`), and log Z is the log potential of an
assignment minus its log probability, which is computed clique by clique.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from factormodels.factor_graph import FactorGraph
from factormodels.interchange import to_pyagrum
from inference.backend import Backend, TooLargeError
from inference.peers.balanced import balanced, no_probability, within_doubles
from inference.peers.limits import require_entries, require_tables
from inference.possible_states import Support
from inference.posterior import LogZKind, Posterior, Status
from inference.settings import setting

with warnings.catch_warnings():
    # Its extension types raise a DeprecationWarning of Python. If warnings are errors, the import
    # and the first network would crash the process.
    warnings.simplefilter("ignore", DeprecationWarning)
    pyagrum: Any = import_module("pyagrum")
    pyagrum.MarkovRandomField()

_TABLES_PER_CLIQUE = 3
"""Tables in memory at once: a clique's table, a product, and the message."""

_MOST_VARIABLES = 5000
"""Maximum number of variables. The time for log Z is quadratic, some seconds at this size."""


@dataclass(frozen=True)
class PyagrumJunctionTree(Backend):
    """pyAgrum's Shafer-Shenoy inference on a Markov random field.

    Attributes:
        memory_limit: bytes that the tables of the cliques may take.

    Source: Shenoy & Shafer 1990, "Axioms for probability and belief-function propagation", as
    pyAgrum implements it.
    """

    name: ClassVar[str] = "pyagrum"

    memory_limit: int = setting(2 * 2**30, above=0)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the exact posterior of a graph without evidence.

        Raises:
            TooLargeError: for more than 5000 variables, or cliques beyond the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if potentials leave the range of doubles in pyAgrum's products.
        """
        support = balanced(graph)
        count = support.graph.n_variables
        if count > _MOST_VARIABLES:
            raise TooLargeError(
                f"the backend 'pyagrum' supports at most {_MOST_VARIABLES} variables, because its "
                f"time grows with their square, and this graph has {count}; use backend 'exact'"
            )
        # Checked before the triangulation, which allocates the tables.
        require_tables("pyAgrum", graph, 1, self.memory_limit)
        if not count:
            return _posterior(support, [], 0.0, 0)
        with within_doubles("pyAgrum"):
            network = to_pyagrum(support.graph)
        engine = pyagrum.ShaferShenoyMRFInference(network)
        # The order of sums depends on the number of threads.
        engine.setNumberOfThreads(1)
        tree = engine.junctionTree()
        self._check_memory(tree, network)
        try:
            engine.makeInference()
            vectors = [engine.posterior(name).toarray() for name in support.graph.names]
            chosen, log_probability = _assignment(engine, tree, network)
        except pyagrum.IncompatibleEvidence:
            vectors = [np.full(1, np.nan)]
        if not np.isfinite(np.concatenate(vectors)).all():
            raise no_probability("pyAgrum", support.graph)
        states = np.array([chosen[name] for name in support.graph.names], dtype=np.int64)
        log_z = support.graph.log_potential(states) - log_probability
        width = max(len(tree.clique(node)) for node in tree.nodes()) - 1
        return _posterior(support, vectors, log_z, width)

    def _check_memory(self, tree: Any, network: Any) -> None:
        cliques = [tree.clique(node) for node in tree.nodes()]
        entries = sum(
            math.prod(network.variable(node).domainSize() for node in clique) for clique in cliques
        )
        widest = max(map(len, cliques))
        require_entries("pyAgrum", _TABLES_PER_CLIQUE * entries, widest, self.memory_limit)


def _posterior(support: Support, vectors: list[Any], log_z: float, width: int) -> Posterior:
    return Posterior(
        marginals=support.marginals(np.concatenate([np.zeros(0), *vectors])),
        log_z=support.log_constant + log_z,
        log_z_kind=LogZKind.EXACT,
        status=Status.EXACT,
        stats={"pyagrum": pyagrum.__version__, "induced_width": width},
    )


def _assignment(engine: Any, tree: Any, network: Any) -> tuple[dict[str, int], float]:
    """Return a probable assignment of the variables by name, and its log probability.

    It is chosen clique by clique: the most probable states given the earlier choices. The
    contribution of a clique to the log probability depends only on the variables shared with its
    neighbor.
    """
    chosen: dict[str, int] = {}
    log_probability = 0.0
    neighbors: dict[int, list[int]] = {node: [] for node in tree.nodes()}
    for first, second in tree.edges():
        neighbors[first].append(second)
        neighbors[second].append(first)
    seen: set[int] = set()
    for root in neighbors:
        pending = [] if root in seen else [root]
        seen.add(root)
        while pending:
            node = pending.pop()
            names = {network.variable(each).name() for each in tree.clique(node)}
            joint = engine.jointPosterior(names)
            # The axes of the array are in the reverse order of the names.
            order = list(reversed(joint.names))
            table = joint.toarray()[tuple(chosen.get(name, slice(None)) for name in order)]
            new = [name for name in order if name not in chosen]
            best = np.unravel_index(np.argmax(table), np.shape(table))
            log_probability += math.log(table[best] / table.sum())
            chosen.update(zip(new, map(int, best), strict=True))
            unseen = [other for other in neighbors[node] if other not in seen]
            seen.update(unseen)
            pending += unseen
    return chosen, log_probability
