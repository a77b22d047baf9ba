"""Elimination and loopy belief propagation in JAX: for accelerators, and derivatives.

    from inference.peers.jax_backends import bethe, log_partition
    jax.grad(log_partition(graph))(log_values)  # the beliefs of all factors
    jax.grad(lambda log_values: bethe(graph)(log_values)[1])(log_values)

Elimination walks up the cluster tree of `exact`, written out cluster by cluster and compiled once
for each structure; marginals are derivatives of log Z. Propagation floods what is left when zeros
are left out, so all that it computes with is finite: messages are logarithms, 0 for the first
possible state. Its index arrays are padded, so that graphs of about one size share the code that
JAX compiles; what is padded refers to the place behind the last one, and adds to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.ops import segment_max, segment_min, segment_sum
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, Result, TooLargeError, zero_partition
from inference.evidence import with_observed, without_evidence
from inference.exact.backend import Exact
from inference.exact.kernels.cluster_tree import ClusterTree
from inference.exact.plans import Plan, by_structure
from inference.exact.prediction import Prediction
from inference.memory import SHARE, MemoryAllowance, allowance, check_limit, require
from inference.messages.kernels.entries import possible_entries, table_sources
from inference.messages.kernels.schedules import EASE, MOST, PATIENCE, STEP
from inference.messages.lbp import Damping, check_settings, damping_code
from inference.messages.reduction import reduced
from inference.posterior import LogZKind, Marginals, Posterior, Status

_COPIES = 4
"""Copies of the tables at a time: products, their exponentials, and both of them going back."""

_MOST_BYTES_AT_A_TIME = 2**31
"""Memory of the settings that are answered side by side; more are run in parts."""

_MOST_CLUSTERS = 1_000
"""More would be compiled for minutes, and take gigabytes meanwhile."""

_SMALLEST_SIZES = (32, 64, 64, 128)
"""States, message entries, table entries and terms of the smallest size: as a graph of 16 binary
variables and 16 pairs has them. All are doubled together, so that few sizes are compiled for."""

_ADJOINT_DAMPING = 0.5
"""Half of each step: this converges wherever propagation with any damping does."""


@dataclass(frozen=True)
class JaxElimination(Backend):
    """All marginals and log Z by the elimination of `exact`, in JAX and in double precision.

    It is for an accelerator with many settings of one structure, which it answers side by side:
    the responses of a simulation, replicates, a learner's steps. Every structure is compiled, for
    some seconds at a hundred variables, and refused beyond 1,000 clusters; on a processor, and for
    graphs that all differ, `exact` is faster. Arithmetic is in log space throughout.

    Attributes:
        seed: of the search for an elimination order, as for `exact`.
        memory_limit: bytes that the tables of one graph may take; None: three quarters of what the
            machine, or the accelerator that JAX computes on, has available.
    """

    name: ClassVar[str] = "exact_jax"

    seed: int = 0
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"the seed {self.seed} of 'exact_jax' is negative; give one from 0 up")
        check_limit(self.name, self.memory_limit)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Exact posterior of a graph without evidence.

        Raises:
            TooLargeError: if the tables would not fit the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
        """
        (result,) = self.solve_settings(graph, graph.log_values[None])
        if isinstance(result, Posterior):
            return result
        raise result

    def solve_batch(
        self,
        graphs: Sequence[FactorGraph],
        threads: int = 1,  # noqa: ARG002 - JAX has threads of its own
    ) -> list[Result]:
        """Exact posteriors of many graphs, those of one structure side by side, or the errors."""
        results: dict[int, Result] = {}
        for numbers in by_structure(graphs):
            rows = np.stack([graphs[number].log_values for number in numbers])
            found = self.solve_settings(graphs[numbers[0]], rows)
            results.update(zip(numbers, found, strict=True))
        return [results[number] for number in range(len(graphs))]

    def solve_settings(
        self,
        graph: FactorGraph,
        log_values: NDArray[np.float64],
        threads: int = 1,  # noqa: ARG002
    ) -> list[Result]:
        """Exact posteriors of a graph under many log tables, side by side, or the errors."""
        try:
            log_z, marginals, prediction = self.answers(graph, log_values)
        except TooLargeError as error:
            return [error] * len(log_values)
        stats = {**prediction.stats(self.seed), "arithmetic": "log", **_where_computed()}
        return [
            zero_partition()
            if total == -np.inf
            else Posterior(
                marginals=Marginals.of(graph, flat),
                log_z=total,
                log_z_kind=LogZKind.EXACT,
                status=Status.EXACT,
                stats=stats,
                backend=self.name,
            )
            for total, flat in zip(log_z.tolist(), marginals, strict=True)
        ]

    def answers(
        self, graph: FactorGraph, log_values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], Prediction]:
        """Log Z and marginals of a graph under many log tables, as arrays.

        Args:
            graph: a graph without evidence, whose own log tables play no part.
            log_values: float64 (n_settings, n_entries).

        Returns:
            Log Z, float64 (n_settings,), -inf where no assignment has positive potential;
            marginals, float64 (n_settings, n_states), one probability vector after another, NaN
            where log Z is -inf; and what one setting costs.

        Raises:
            TooLargeError: if the tables would not fit the memory limit, or there are too many of
                them to be compiled.
        """
        plan = self._plan(graph)
        needed = _COPIES * plan.prediction.bytes
        if not plan.fits:
            instead = "use backend 'wmb' for certified bounds or 'lbp' for an estimate"
            require(needed, self._allowance(), "the tables of one graph", instead)
        elimination = _elimination(graph, plan.tree)
        # Powers of two, so that few numbers of settings are compiled for.
        most = max(1, int(_MOST_BYTES_AT_A_TIME / max(needed, 1)))
        size = min(1 << (most.bit_length() - 1), 1 << (len(log_values) - 1).bit_length())
        log_z = np.empty(len(log_values))
        marginals = np.empty((len(log_values), elimination.n_states))
        for first in range(0, len(log_values), size):
            rows = log_values[first : first + size]
            filled = np.pad(rows, ((0, size - len(rows)), (0, 0)), mode="edge")
            with jax.enable_x64(True):
                totals, flat = _answers(elimination, filled)
                log_z[first : first + size] = np.asarray(totals)[: len(rows)]
                marginals[first : first + size] = np.asarray(flat)[: len(rows)]
        if graph.n_variables:
            starts = np.cumsum(graph.cardinalities) - graph.cardinalities
            with np.errstate(invalid="ignore"):
                # Rounding keeps the sums from one, and without an assignment there is none.
                sums = np.add.reduceat(marginals, starts, axis=1)
                marginals /= np.repeat(sums, graph.cardinalities, axis=1)
        return log_z, marginals, plan.prediction

    def predict(self, graph: FactorGraph) -> Prediction:
        """What `infer` would cost on a processor, but for compiling."""
        return self._plan(graph.absorb_evidence()).prediction

    def _plan(self, graph: FactorGraph) -> Plan:
        limit = self._allowance().bytes // _COPIES
        return Exact(self.seed, memory_limit=max(limit, 1)).cluster_plan(graph, refuse=False)

    def _allowance(self) -> MemoryAllowance:
        """What the tables may take where JAX computes."""
        stats = jax.devices()[0].memory_stats()
        if self.memory_limit is None and stats and "bytes_limit" in stats:
            return MemoryAllowance(
                int(SHARE * stats["bytes_limit"]),
                "three quarters of the memory that JAX has on the accelerator",
            )
        return allowance(self.memory_limit)


class _Input(NamedTuple):
    """What is multiplied into a cluster's table.

    Attributes:
        source: the log tables (0), what the states add (1), or a message (2).
        first: where it begins there; of a message, the number of the cluster that sends it.
        own: number of states along each of its own axes.
        axes: how these are permuted into the order of the cluster's.
        shape: number of states along each axis of the cluster's table, 1 where it does not vary.
    """

    source: int
    first: int
    own: tuple[int, ...]
    axes: tuple[int, ...]
    shape: tuple[int, ...]


class _Elimination(NamedTuple):
    """A cluster tree as JAX walks it: (inputs, axes summed over, whether a root), children first.

    `constants` are the entries of the log tables over variables of one state only.
    """

    clusters: tuple[tuple[tuple[_Input, ...], int, bool], ...]
    constants: tuple[int, ...]
    n_states: int


def _elimination(graph: FactorGraph, tree: ClusterTree) -> _Elimination:
    """The tree of a graph without evidence.

    Raises:
        TooLargeError: if it has too many clusters to be compiled.
    """
    if len(tree.parents) > _MOST_CLUSTERS:
        raise TooLargeError(
            f"'exact_jax' compiles every cluster by itself, and this graph has "
            f"{len(tree.parents):,} of them (at most {_MOST_CLUSTERS:,}); use backend 'exact'"
        )
    states = graph.cardinalities.tolist()
    first_states = (np.cumsum(graph.cardinalities) - graph.cardinalities).tolist()
    firsts, kept = graph.table_starts.tolist(), tree.separator_sizes.tolist()
    members = [part.tolist() for part in np.split(tree.variables, tree.starts[1:-1])]
    clusters = []
    for c, parent in enumerate(tree.parents.tolist()):
        axes = members[c]

        def placed(source: int, first: int, scope: list[int], axes: list[int] = axes) -> _Input:
            order = sorted(range(len(scope)), key=lambda slot: axes.index(scope[slot]))
            shape = tuple(states[v] if v in scope else 1 for v in axes)
            return _Input(source, first, tuple(states[v] for v in scope), tuple(order), shape)

        factors = tree.factors[tree.factor_starts[c] : tree.factor_starts[c + 1]].tolist()
        children = tree.children[tree.child_starts[c] : tree.child_starts[c + 1]].tolist()
        inputs = (
            *(placed(0, firsts[f], [v for v in graph.scope(f) if states[v] > 1]) for f in factors),
            *(placed(1, first_states[v], [v]) for v in axes[kept[c] :]),
            *(placed(2, child, members[child][: kept[child]]) for child in children),
        )
        clusters.append((inputs, len(axes) - kept[c], parent < 0))
    constants = tuple(firsts[f] for f in tree.constant_factors.tolist())
    return _Elimination(tuple(clusters), constants, sum(states))


def _log_z(elimination: _Elimination, log_values: Any, states: Any) -> Any:
    """Log Z of log tables (n_entries,), with what the states of the variables add (n_states,)."""
    messages: list[Any] = []
    total = sum((log_values[entry] for entry in elimination.constants), 0.0 * states.sum())
    for inputs, summed, is_root in elimination.clusters:
        table: Any = 0.0
        for source, first, own, axes, shape in inputs:
            if source == 2:
                values = messages[first]
            else:
                values = (log_values, states)[source][first : first + math.prod(own)]
            table = table + values.reshape(own).transpose(axes).reshape(shape)
        # -inf, with derivative 0, is the sum of zeros alone.
        over = tuple(range(table.ndim - summed, table.ndim))
        largest = jax.lax.stop_gradient(jnp.max(table, axis=over, keepdims=True))
        largest = jnp.where(largest == -jnp.inf, 0.0, largest)
        sums = jnp.sum(jnp.exp(table - largest), axis=over)
        logs = jnp.log(jnp.where(sums > 0.0, sums, 1.0)) + largest.reshape(sums.shape)
        messages.append(jnp.where(sums > 0.0, logs, -jnp.inf))
        if is_root:
            total = total + messages[-1]
    return total


@partial(jax.jit, static_argnums=0)
def _answers(elimination: _Elimination, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Log Z (n_settings,) and marginals (n_settings, n_states) of rows of log tables."""
    states = jnp.zeros(elimination.n_states, rows.dtype)
    evaluate = jax.value_and_grad(partial(_log_z, elimination), argnums=1)
    found: tuple[jax.Array, jax.Array] = jax.vmap(evaluate, in_axes=(0, None))(rows, states)
    return found


def log_partition(
    graph: FactorGraph, *, memory_limit: int | None = None
) -> Callable[[jax.Array], jax.Array]:
    """Log Z as a function of the log tables that JAX can differentiate.

    Its gradient is the belief of every factor (Darwiche 2003, "A differential approach to
    inference in Bayesian networks"). It works under jit, vmap and grad,
    and twice under grad: the second derivatives are the covariances of entries.

    Args:
        graph: the factor graph, with or without evidence; its own log tables play no part.
        memory_limit: bytes that the tables may take, as for `exact`.

    Returns:
        A function from an array (n_entries,), laid out as `graph.log_values`, to log Z, in the
        type of its argument.

    Raises:
        TooLargeError: if the tables would not fit the memory limit, or there are too many of them
            to be compiled.
    """
    _, columns = without_evidence(graph)
    absorbed = graph.absorb_evidence()
    elimination = _elimination(
        absorbed, Exact(memory_limit=memory_limit).cluster_plan(absorbed).tree
    )

    def evaluate(log_values: jax.Array) -> jax.Array:
        states = jnp.zeros(elimination.n_states, log_values.dtype)
        found: jax.Array = _log_z(elimination, log_values[columns], states)
        return found

    return evaluate


@dataclass(frozen=True)
class JaxBeliefPropagation(Backend):
    """Sum-product belief propagation by flooding, in JAX and in double precision.

    It finds the fixed point that `lbp` finds with the schedule "flooding", in as many iterations.
    It is for derivatives (`bethe`); `lbp` is faster.

    Attributes:
        damping, tolerance, max_iterations: as for `lbp`.
    """

    name: ClassVar[str] = "lbp_jax"

    damping: Damping = "adaptive"
    tolerance: float = 1e-9
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        check_settings(self.name, self.damping, self.tolerance, self.max_iterations)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Posterior of a graph without evidence.

        Raises:
            ZeroPartitionError: if zeros leave some variable without a state.
        """
        model = _Model.of(graph)
        options = (damping_code(self.damping), self.tolerance, self.max_iterations)
        with jax.enable_x64(True):
            sums = model.tables(jnp.asarray(graph.log_values))
            flat, log_z, residual, iterations = _propagated(model.structure, *sums[:2], options)
        marginals = model.marginals(np.asarray(flat))
        converged = float(residual) <= self.tolerance
        return Posterior(
            marginals=Marginals(graph.names, graph.cardinalities, marginals, graph.index),
            log_z=float(log_z + sums[2]),
            log_z_kind=LogZKind.BETHE,
            status=Status.CONVERGED if converged else Status.NOT_CONVERGED,
            stats={
                "iterations": int(iterations),
                "residual": float(residual),
                "schedule": "flooding",
                "damping": self.damping,
                **_where_computed(),
            },
        )


def bethe(
    graph: FactorGraph,
    *,
    damping: Damping = "adaptive",
    tolerance: float = 1e-9,
    max_iterations: int = 1000,
) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
    """Marginals and Bethe log Z as a function of the log tables that JAX can differentiate.

    Derivatives are those of the fixed point: at messages m = f(m, t) a cotangent g becomes
    (df/dt)' w, where w = g + (df/dm)' w is found by damped iteration (implicit differentiation;
    Pineda 1987, Almeida 1987). They are right where the messages have converged.

    Args:
        graph: the factor graph, with or without evidence. Entries that are -inf stay impossible,
            whatever the function is given for them, and have derivative 0.
        damping, tolerance, max_iterations: as for `lbp`. With numbers of single precision, ask
            for a tolerance that these can reach (1e-4).

    Returns:
        A function from an array (n_entries,), laid out as `graph.log_values`, to the marginals,
        one probability vector after another, and the Bethe log Z, in the type of its argument. It
        works under jit, vmap and grad.

    Raises:
        InputError: for a setting out of range.
        ZeroPartitionError: if zeros leave some variable without a state.
    """
    check_settings("lbp_jax", damping, tolerance, max_iterations)
    options = (damping_code(damping), tolerance, max_iterations)
    _, columns = without_evidence(graph)
    absorbed = graph.absorb_evidence()
    model = _Model.of(absorbed)
    # Where each probability comes from; 0 for states that the evidence excludes.
    kept = Marginals(absorbed.names, absorbed.cardinalities, np.arange(1.0, len(model.known) + 1))
    layout = with_observed(graph, kept).flat
    observed = np.repeat(graph.evidence, graph.cardinalities) >= 0
    places = np.where(observed, 0, layout - 1).astype(np.int64)

    def evaluate(log_values: jax.Array) -> tuple[jax.Array, jax.Array]:
        values, unary, constant = model.tables(log_values[columns])
        found, log_z, _, _ = _propagated(model.structure, values, unary, options)
        flat = jnp.asarray(model.known, found.dtype).at[model.states].set(found[model.real_states])
        return jnp.where(observed, layout > 0, flat[places]).astype(found.dtype), log_z + constant

    return evaluate


class _Structure(NamedTuple):
    """Who is joined to whom: index arrays, each padded with the place behind the last.

    Attributes:
        state_variable: (n_states,), the variable of every possible state.
        message_state, message_first: (n_messages,), the state of every entry of a message, and the
            first entry of the same message.
        entry_messages: (n_entries, widest scope), the message entries that belong to an entry of a
            table.
        entry_factor: (n_entries,), the factor of every entry.
        term_entry, term_message: (n_terms,), which entries add to which entry of a message.
    """

    state_variable: Any
    message_state: Any
    message_first: Any
    entry_messages: Any
    entry_factor: Any
    term_entry: Any
    term_message: Any


@dataclass(frozen=True, eq=False)
class _Model:
    """What is possible in a graph: where its numbers come from, and who is joined to whom.

    Attributes:
        structure: of what is possible.
        sources, targets: which entries of the log tables add to which number: the possible entries,
            the possible states, the constant.
        states: int64, positions of the possible states of variables that are not fixed.
        known: float64 (n_states of the graph,), the marginals as far as they are fixed.
    """

    structure: _Structure
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    states: NDArray[np.int64]
    known: NDArray[np.float64]

    @classmethod
    def of(cls, graph: FactorGraph) -> _Model:
        """The model of a graph without evidence.

        Raises:
            ZeroPartitionError: if zeros leave some variable without a state.
        """
        model = reduced(graph)
        entries = possible_entries(graph.cardinalities, model)
        members, count = entries.entry_messages, len(entries.message_states)
        terms = np.flatnonzero(members.ravel() < count)
        counts = (len(entries.states), count, len(entries.entries), len(terms))
        doublings = max(
            (count // least).bit_length()
            for count, least in zip(counts, _SMALLEST_SIZES, strict=True)
        )
        n_states, n_messages, n_entries, n_terms = (least << doublings for least in _SMALLEST_SIZES)
        widest = 1 << (members.shape[1] - 1).bit_length()
        joined = np.full((n_entries, widest), n_messages, dtype=np.int32)
        joined[: len(members), : members.shape[1]] = np.where(members < count, members, n_messages)
        lengths = np.diff(entries.message_starts)
        factors = np.repeat(np.arange(len(entries.entry_starts) - 1), np.diff(entries.entry_starts))
        variables = np.unique(entries.state_variables, return_inverse=True)[1]
        structure = _Structure(
            _padded(variables, n_states, n_states),
            _padded(entries.message_states, n_messages, n_states),
            _padded(np.repeat(entries.message_starts[:-1], lengths), n_messages, n_messages),
            joined,
            _padded(factors, n_entries, n_entries),
            _padded(terms // members.shape[1], n_terms, n_entries),
            _padded(members.ravel()[terms], n_terms, n_messages),
        )
        targets, sources = table_sources(
            graph.cardinalities,
            graph.scope_starts,
            graph.scope_variables,
            graph.table_starts,
            model,
        )
        fixed = (model.state_starts[:-1] + model.fixed)[model.fixed >= 0]
        n_values = len(model.log_values)
        place = np.full(n_values + len(model.unary) + 1, -1)
        place[entries.entries] = np.arange(len(entries.entries))
        place[n_values + entries.states] = n_entries + np.arange(len(entries.states))
        place[n_values + fixed] = place[-1] = n_entries + n_states
        used = place[targets] >= 0
        known = np.zeros(len(model.unary))
        known[fixed] = 1.0
        return cls(structure, sources[used], place[targets[used]], entries.states, known)

    @property
    def real_states(self) -> slice:
        """Those that are not padding."""
        return slice(len(self.states))

    def tables(self, log_values: Any) -> tuple[Any, Any, Any]:
        """Padded log tables of the factors and of the states, and the constant."""
        n_states, n_entries = len(self.structure.state_variable), len(self.structure.entry_factor)
        sums = segment_sum(log_values[self.sources], self.targets, n_entries + n_states + 1)
        return sums[:n_entries], sums[n_entries:-1], sums[-1]

    def marginals(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        """Marginals of all states of the graph."""
        flat = self.known.copy()
        flat[self.states] = found[self.real_states]
        return flat


def _padded(values: NDArray[np.int64], size: int, filler: int) -> NDArray[np.int32]:
    return np.pad(values, (0, size - len(values)), constant_values=filler).astype(np.int32)


@jax.jit
def _propagated(structure: _Structure, values: Any, unary: Any, options: Any) -> Any:
    """Marginals of the possible states, the Bethe log Z, and how the iteration ended.

    Args:
        structure: who is joined to whom.
        values, unary: (n_entries,) and (n_states,), padded log tables.
        options: damping (below 0: adaptive), tolerance and largest number of iterations.
    """
    messages, residual, iterations = _fixed_point(values, unary, structure, options)
    n_states, n_messages = len(unary), len(messages)
    beliefs, _, totals = _products(messages, values, unary, structure)
    log_zs = _log_sums(beliefs, structure.state_variable, n_states)
    marginals = jnp.exp(beliefs - log_zs[structure.state_variable])
    local = _log_sums(totals, structure.entry_factor, len(values))
    # Once per slot: the sum of a message times what its variable sends is that of the variable.
    firsts = structure.message_first == jnp.arange(n_messages)
    of_slots = jnp.where(firsts, log_zs[structure.state_variable[structure.message_state]], 0.0)
    return marginals, log_zs.sum() + local.sum() - of_slots.sum(), residual, iterations


def _log_sums(values: Any, groups: Any, count: int) -> Any:
    """Log of the sum of exponentials in each group, 0 for groups of none."""
    largest = segment_max(jax.lax.stop_gradient(values), groups, count)
    largest = jnp.where(largest == -jnp.inf, 0.0, largest)
    terms = jnp.exp(jnp.where(groups < count, values - largest[groups], 0.0))
    sums = segment_sum(terms, groups, count)
    return largest + jnp.log(jnp.where(sums > 0.0, sums, 1.0))


def _products(messages: Any, values: Any, unary: Any, structure: _Structure) -> Any:
    """Log beliefs of states, those less the messages that they hold, and log beliefs of entries."""
    beliefs = unary + segment_sum(messages, structure.message_state, len(unary))
    real = structure.message_state < len(unary)
    cavities = jnp.where(real, beliefs[structure.message_state] - messages, 0.0)
    sent = jnp.concatenate([cavities, jnp.zeros_like(cavities[:1])])
    return beliefs, cavities, values + sent[structure.entry_messages].sum(axis=1)


def _flood(messages: Any, values: Any, unary: Any, structure: _Structure) -> Any:
    """All messages anew, from those given."""
    _, cavities, totals = _products(messages, values, unary, structure)
    fresh = _log_sums(totals[structure.term_entry], structure.term_message, len(messages))
    fresh -= cavities
    real = structure.message_state < len(unary)
    return jnp.where(real, fresh - fresh[structure.message_first], 0.0)


def _iterate(values: Any, unary: Any, structure: _Structure, options: Any) -> Any:
    """(messages, residual, iterations); damping and residuals are those of `lbp`."""
    asked, tolerance, most = options
    count = len(structure.message_state)

    def step(state: Any) -> Any:
        messages, _, iterations, damping, smallest, waited = state
        change = _flood(messages, values, unary, structure) - messages
        # The first entry of a message never changes, so 0 is among the changes of each.
        highest = segment_max(change, structure.message_first, count)
        lowest = segment_min(change, structure.message_first, count)
        ranges = jnp.where(jnp.isfinite(highest), highest - lowest, 0.0)
        residual = jnp.max(ranges)
        messages = messages + (1.0 - damping) * change
        better, patient = residual < smallest, waited + 1 < PATIENCE
        risen = jnp.where(patient, damping, jnp.minimum(damping + STEP, MOST))
        adapted = jnp.where(better, EASE * damping, risen)
        waits = ~better & patient
        return (
            messages,
            residual,
            iterations + 1,
            jnp.where(asked < 0.0, adapted, damping),
            jnp.where(waits, smallest, residual),
            jnp.where(waits, waited + 1, 0),
        )

    infinite = jnp.asarray(jnp.inf, values.dtype)
    damping = jnp.maximum(asked, 0.0).astype(values.dtype)
    start = (jnp.zeros(count, values.dtype), infinite, 0, damping, infinite, 0)
    going = lambda state: (state[1] > tolerance) & (state[2] < most)  # noqa: E731
    return jax.lax.while_loop(going, step, start)[:3]


_fixed_point = jax.custom_vjp(_iterate)


def _fixed_point_forward(values: Any, unary: Any, structure: _Structure, options: Any) -> Any:
    found = _iterate(values, unary, structure, options)
    return found, (found[0], values, unary, structure, options)


def _fixed_point_backward(kept: Any, cotangents: Any) -> tuple[Any, ...]:
    messages, values, unary, structure, (_, tolerance, most) = kept
    wanted = cotangents[0]
    _, pull = jax.vjp(lambda m, v, u: _flood(m, v, u, structure), messages, values, unary)

    def going(state: Any) -> Any:
        weights, change, iterations = state
        return (change > tolerance * (1.0 + jnp.max(jnp.abs(weights)))) & (iterations < most)

    def step(state: Any) -> Any:
        weights, _, iterations = state
        change = wanted + pull(weights)[0] - weights
        moved = weights + (1.0 - _ADJOINT_DAMPING) * change
        return moved, jnp.max(jnp.abs(change)), iterations + 1

    start = (wanted, jnp.asarray(jnp.inf, wanted.dtype), 0)
    _, to_values, to_unary = pull(jax.lax.while_loop(going, step, start)[0])
    return to_values, to_unary, None, None


_fixed_point.defvjp(_fixed_point_forward, _fixed_point_backward)


def _where_computed() -> dict[str, str]:
    return {"device": jax.default_backend(), "jax": jax.__version__}
