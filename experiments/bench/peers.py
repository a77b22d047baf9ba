"""Other libraries, called as themselves: each on its own model, built outside the timing.

No ratio counts the translation of a graph against a peer, and each gets the settings that suit it
best. What is not a question to any of them is taken away before: variables with one state
(observed ones among them), factors over the same variables (multiplied) and constants.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.bench.answers import BenchAnswer, Prepared
from factormodels.factor_graph import UNOBSERVED, FactorGraph

Tables = Mapping[tuple[int, ...], NDArray[np.float64]]

_LOG_ZERO = -1e5
"""What PGMax gets for log 0, of which it makes NaN; exp of it is 0 in single precision."""

_FEW_ITERATIONS, _MOST_ITERATIONS = 50, 1000
_SETTLED = 1e-5
"""Largest change of a log message at which PGMax has settled: single precision sees little more."""


@dataclass(frozen=True)
class PeerModel:
    """A graph as peers are given it.

    Attributes:
        graph: the graph.
        cardinalities: number of states of each variable, 1 where it is observed.
        tables: log tables by scope, scopes ascending; every variable of a scope has two states
            or more.
    """

    graph: FactorGraph
    cardinalities: tuple[int, ...]
    tables: Tables

    @property
    def variables(self) -> list[int]:
        """The variables that have a factor."""
        return sorted({variable for scope in self.tables for variable in scope})

    @property
    def linked(self) -> list[int]:
        """The variables that share a factor with another."""
        return sorted({v for scope in self.tables if len(scope) > 1 for v in scope})

    def alone(self) -> dict[int, NDArray[np.float64]]:
        """The marginals of variables that share no factor: their table is their answer."""
        linked = set(self.linked)
        return {
            scope[0]: np.exp(table - np.logaddexp.reduce(table))
            for scope, table in self.tables.items()
            if scope[0] not in linked
        }

    def flat(self, vectors: Mapping[int, NDArray[np.float64]]) -> NDArray[np.float64]:
        """All marginals one after another, float64; observed or uniform where no vector is."""
        parts = []
        for variable, states in enumerate(self.graph.cardinalities.tolist()):
            seen = self.graph.evidence[variable]
            if seen != UNOBSERVED:
                parts.append(np.eye(states)[seen])
            else:
                parts.append(np.asarray(vectors.get(variable, np.full(states, 1.0 / states))))
        return np.concatenate([np.zeros(0), *parts])


def peer_model(graph: FactorGraph) -> PeerModel:
    """The model of a graph with its evidence absorbed."""
    absorbed = graph.absorb_evidence()
    cardinalities = tuple(absorbed.cardinalities.tolist())
    tables: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for scope, table in absorbed.factors():
        kept = [axis for axis, variable in enumerate(scope) if cardinalities[variable] > 1]
        if kept:
            # Ascending, so that factors over the same variables meet under one key.
            kept.sort(key=scope.__getitem__)
            key = tuple(scope[axis] for axis in kept)
            single = tuple(axis for axis in range(len(scope)) if axis not in kept)
            # Axes of one state come first and vanish in the reshape.
            ordered = np.transpose(table, [*single, *kept]).reshape(
                [cardinalities[variable] for variable in key]
            )
            # Log tables: adding them multiplies the factors.
            tables[key] = tables[key] + ordered if key in tables else ordered
    return PeerModel(graph, cardinalities, tables)


def pyagrum_junction_tree(graph: FactorGraph) -> Prepared:
    """pyAgrum's Shafer-Shenoy junction tree on a Markov random field built before."""
    model = peer_model(graph)
    name = {variable: f"x{variable}" for variable in model.variables}
    pyagrum = load_pyagrum()
    field = pyagrum.MarkovRandomField()
    for variable in model.variables:
        last = model.cardinalities[variable] - 1
        field.add(pyagrum.RangeVariable(name[variable], name[variable], 0, last))
    for scope, log_table in model.tables.items():
        factor = field.addFactor([name[v] for v in scope])
        # A constant is no part of the marginals, and without it exp cannot overflow.
        table = np.exp(log_table - log_table.max())
        for states in np.ndindex(*table.shape):
            factor[{name[v]: s for v, s in zip(scope, states, strict=True)}] = table[states]

    def run() -> dict[int, Any]:
        inference = pyagrum.ShaferShenoyMRFInference(field)
        inference.makeInference()
        return {variable: inference.posterior(name[variable]) for variable in name}

    def read(posteriors: Mapping[int, Any]) -> BenchAnswer:
        vectors = {variable: posterior.toarray() for variable, posterior in posteriors.items()}
        return BenchAnswer(model.flat(vectors), status="exact")

    return Prepared(run, read)


def load_pyagrum() -> Any:
    """Import pyAgrum and return it."""
    with warnings.catch_warnings():
        # Its extension modules warn while they are made, and crash where warnings are errors;
        # the first inference makes the last of them.
        warnings.simplefilter("ignore")
        pyagrum: Any = import_module("pyagrum")
        field = pyagrum.MarkovRandomField()
        field.add(pyagrum.RangeVariable("x", "x", 0, 1))
        field.addFactor(["x"])
        pyagrum.ShaferShenoyMRFInference(field).makeInference()
    return pyagrum


def pgmpy_junction_tree(graph: FactorGraph) -> Prepared:
    """pgmpy's BeliefPropagation (a junction tree) on Markov networks built before.

    pgmpy refuses a network that is not connected, so that each component is a network. Left to
    itself it triangulates into cliques that take gigabytes where tens of kilobytes do, so that
    networks come with the edges of a min-fill order. It takes beliefs that differ by less than
    1e-8 for calibrated, so that potentials are scaled to a mean of 1. Marginals are summed from
    the beliefs of the cliques.
    """
    from inference.peers.tree_decomposition import tree_decomposition

    model = peer_model(graph)
    pgmpy = load_pgmpy()
    networks = []
    for variables, scopes in _components(model):
        network = pgmpy.Network()
        network.add_nodes_from(variables)
        # A clique per bag: with these edges the network is triangulated already.
        for bag in tree_decomposition(scopes, lambda _: None):
            network.add_edges_from(combinations(sorted(bag), 2))
        for scope in scopes:
            table = model.tables[scope]
            potentials = np.exp(table - table.max())
            network.add_factors(pgmpy.Factor(scope, table.shape, potentials / potentials.mean()))
        networks.append(network)

    def run() -> dict[int, NDArray[np.float64]]:
        found = model.alone()
        for network in networks:
            inference = pgmpy.BeliefPropagation(network)
            inference.calibrate()
            for clique, belief in inference.get_clique_beliefs().items():
                for variable in clique:
                    if variable not in found:
                        others = [other for other in clique if other != variable]
                        summed = belief.marginalize(others, inplace=False) if others else belief
                        found[variable] = summed.values / summed.values.sum()
        return found

    return Prepared(run, lambda found: BenchAnswer(model.flat(found), status="exact"))


def load_pgmpy() -> Any:
    """Import what of pgmpy is called."""
    with warnings.catch_warnings():
        # pgmpy imports modules of its own that it has deprecated.
        warnings.simplefilter("ignore")
        return SimpleNamespace(
            Factor=import_module("pgmpy.factors.discrete").DiscreteFactor,
            BeliefPropagation=import_module("pgmpy.inference").BeliefPropagation,
            Network=import_module("pgmpy.models").DiscreteMarkovNetwork,
        )


def _components(
    model: PeerModel,
) -> list[tuple[list[int], list[tuple[int, ...]]]]:
    """The variables and scopes of every connected component of two variables or more."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = len(model.cardinalities)
    pairs = [(scope[0], other) for scope in model.tables for other in scope[1:]]
    # The reshape makes two columns even if there is no pair.
    rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    links = coo_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))
    _, label = connected_components(links, directed=False)
    members: dict[int, tuple[list[int], list[tuple[int, ...]]]] = {}
    for variable in model.linked:
        members.setdefault(int(label[variable]), ([], []))[0].append(variable)
    for scope in model.tables:
        if int(label[scope[0]]) in members:
            members[int(label[scope[0]])][1].append(scope)
    return list(members.values())


def pgmax_belief_propagation(graph: FactorGraph) -> Prepared:
    """PGMax's belief propagation at temperature 1, jitted, its graph built before.

    PGMax has no rule to stop: it gets as many iterations as it takes to settle, which is found
    out before, without damping where that settles and with its own default, 0.5, where not.
    """
    pgmax = load_pgmax()
    model = peer_model(graph)
    variables = model.linked
    if not variables:
        # PGMax refuses a graph in which no two variables share a factor.
        return Prepared(model.alone, lambda found: BenchAnswer(model.flat(found)))
    array = pgmax.vgroup.NDVarArray(
        num_states=np.array([model.cardinalities[v] for v in variables]), shape=(len(variables),)
    )
    node = {variable: array[at] for at, variable in enumerate(variables)}
    built = pgmax.fgraph.FactorGraph(variable_groups=array)
    for scopes, tables in _by_shape(model.tables):
        shape = tables[0].shape
        built.add_factors(
            pgmax.fgroup.EnumFactorGroup(
                variables_for_factors=[[node[v] for v in scope] for scope in scopes],
                factor_configs=np.array(list(np.ndindex(*shape))),
                log_potentials=np.stack([table.ravel() for table in tables]),
            )
        )
    evidence = np.zeros((len(variables), max(model.cardinalities[v] for v in variables)))
    for at, variable in enumerate(variables):
        # PGMax takes tables of one variable as evidence rather than as factors.
        if (variable,) in model.tables:
            finite = _finite(model.tables[(variable,)])
            evidence[at, : len(finite)] = finite
    inferer = pgmax.infer.build_inferer(built.bp_state, backend="bp")
    start = inferer.init(evidence_updates={array: evidence})
    # Before the call is jitted, since the number of iterations is part of what is compiled.
    iterations, damping, settled = _iterations(inferer, start)

    def propagate(arrays: Any) -> Any:
        arrays = inferer.run(arrays, num_iters=iterations, damping=damping, temperature=1.0)
        beliefs = inferer.get_beliefs(arrays)
        return pgmax.infer.get_marginals(beliefs)

    jitted = pgmax.jax.jit(propagate)

    def run() -> Any:
        # JAX returns before it has computed; the clock must not.
        return pgmax.jax.block_until_ready(jitted(start))

    def read(marginals: Any) -> BenchAnswer:
        (table,) = marginals.values()
        found = np.asarray(table, dtype=np.float64)
        vectors = model.alone()
        for at, variable in enumerate(variables):
            vectors[variable] = found[at, : model.cardinalities[variable]]
        facts = {"iterations": iterations, "damping": damping}
        status = "converged" if settled else "not_converged"
        return BenchAnswer(model.flat(vectors), status=status, facts=facts)

    return Prepared(run, read)


def load_pgmax() -> Any:
    """Import PGMax, lending it a function that JAX has dropped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jax: Any = import_module("jax")
        if not hasattr(jax.lib, "xla_bridge"):
            get_backend = import_module("jax.extend.backend").get_backend
            jax.lib.xla_bridge = SimpleNamespace(get_backend=get_backend)
        return SimpleNamespace(
            jax=jax, **{name: import_module(f"pgmax.{name}") for name in _PGMAX_MODULES}
        )


_PGMAX_MODULES = ("fgraph", "fgroup", "infer", "vgroup")


def _iterations(inferer: Any, start: Any) -> tuple[int, float, bool]:
    """How many iterations PGMax takes to settle, its damping, and whether it settles."""
    # A short try first, since a run does all its iterations even if it settles early.
    for most, damping in ((_FEW_ITERATIONS, 0.0), (_MOST_ITERATIONS, 0.0), (_MOST_ITERATIONS, 0.5)):
        _, changes = inferer.run_with_diffs(start, num_iters=most, damping=damping, temperature=1.0)
        small = np.flatnonzero(np.asarray(changes) <= _SETTLED)
        if len(small):
            return int(small[0]) + 1, damping, True
    return _MOST_ITERATIONS, 0.5, False


def _finite(log_table: NDArray[np.float64]) -> NDArray[np.float64]:
    finite: NDArray[np.float64] = np.maximum(log_table - log_table.max(), _LOG_ZERO)
    return finite


def _by_shape(
    tables: Tables,
) -> list[tuple[list[tuple[int, ...]], Sequence[NDArray[np.float64]]]]:
    """Scopes and finite tables of two variables or more, grouped by shape."""
    groups: dict[tuple[int, ...], tuple[list[tuple[int, ...]], list[NDArray[np.float64]]]] = {}
    for scope, table in tables.items():
        if len(scope) > 1:
            scopes, members = groups.setdefault(table.shape, ([], []))
            scopes.append(scope)
            members.append(_finite(table))
    return list(groups.values())
