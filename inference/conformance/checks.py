"""Checks of the contract of `inference.Backend`, one function for each part of it."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factormodels.factor_graph import FactorGraph
from factormodels.synthetic import grid, random_graph
from inference.backend import Backend, BeliefFunction, InferenceError, ZeroPartitionError
from inference.batch import batch_results, settings_results
from inference.conformance.exactness import ConformanceError, Exactness, in_order
from inference.conformance.graphs import relabeled, unsorted, wide_ranges
from inference.enumeration import Enumeration
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.registry import backend_class, entries

Check = Callable[[Backend, Exactness], None]
"""Function of a backend and its exactness that raises a `ConformanceError` if it fails."""

ROUNDING = 1e-12
"""Relative rounding error of some sums in double precision, for properties that do not depend on a
backend's tolerance, such as a bound or the sum of probabilities."""

SEEDS = range(3)

_STEP = 1e-4
"""Step of central differences of log Z, whose third derivatives by log tables are below 1."""


def settings_are_frozen(backend: Backend, _: Exactness) -> None:
    """Check that a backend is a frozen dataclass that can be pickled."""
    _require(is_dataclass(backend), f"{type(backend).__name__} is not a dataclass")
    _require(
        bool(backend.name) and isinstance(backend.name, str), "the backend's `name` is not text"
    )
    _require(pickle.loads(pickle.dumps(backend)) == backend, "the backend changes in a pickle")
    for field in fields(backend):
        try:
            setattr(backend, field.name, getattr(backend, field.name))
        except FrozenInstanceError:
            continue
        raise ConformanceError(f"the setting {field.name!r} can be assigned: freeze the dataclass")


def posterior_keeps_the_contract(backend: Backend, exactness: Exactness) -> None:
    """Check that a posterior has a read-only distribution per variable, in order, and a status."""
    for graph in (exactness.graph(11), exactness.graph_of_many_states(2)):
        _keeps_the_contract(backend, graph)


def _keeps_the_contract(backend: Backend, graph: FactorGraph) -> None:
    posterior = backend.infer(graph)
    _require(isinstance(posterior, Posterior), f"{type(posterior).__name__} is not a Posterior")
    _require(posterior.backend == backend.name, f"the posterior is of {posterior.backend!r}")
    _require(
        isinstance(posterior.log_z_kind, LogZKind) and isinstance(posterior.status, Status),
        "log_z_kind or status is none of the known ones",
    )
    _require(
        (posterior.log_z is None) == (posterior.log_z_kind is LogZKind.NONE),
        f"log Z is {posterior.log_z} and its kind {posterior.log_z_kind}",
    )
    _require(posterior.stats["seconds"] > 0.0, "stats has no seconds")
    _require(list(posterior.marginals) == list(graph.names), "variables are not those of the graph")
    for name, count in zip(graph.names, graph.cardinalities, strict=True):
        marginal = posterior.marginals[name]
        _require(marginal.shape == (count,), f"{name!r} has {marginal.shape} states, not {count}")
        _require(not marginal.flags.writeable, f"the marginal of {name!r} can be written to")
        _require(bool((marginal >= 0.0).all()), f"the marginal of {name!r} has a negative entry")
        _near(marginal.sum(), 1.0, ROUNDING, f"the sum of the marginal of {name!r}")


def observed_variables_are_certain(backend: Backend, exactness: Exactness) -> None:
    """Check that an observed variable has probability 1 in its observed state."""
    graph = exactness.graph(11).with_evidence({0: 0})
    marginal = backend.infer(graph).marginals[graph.names[0]]
    certain = [1.0] + [0.0] * (int(graph.cardinalities[0]) - 1)
    _require(marginal.tolist() == certain, f"an observed variable has the marginal {marginal}")


def exact_where_it_says_so(backend: Backend, exactness: Exactness) -> None:
    """Check marginals and log Z on the graphs on which the backend is exact."""
    for where, graph in _exact_graphs(exactness):
        truth, posterior = Enumeration().infer(graph), backend.infer(graph)
        _require(
            posterior.status in (Status.EXACT, Status.CONVERGED),
            f"{where}: the status is {posterior.status}",
        )
        _near_marginals(posterior, truth, exactness.allowed(graph, posterior), where)
        if posterior.log_z is not None:
            _near(posterior.log_z, truth.log_z, exactness.tolerance, f"{where}: log Z")


def exact_or_refused_in_wide_ranges(backend: Backend, exactness: Exactness) -> None:
    """Check that tables beyond the range of doubles are solved within tolerance, or refused.

    A refusal is an `InferenceError` with advice, not a report that no assignment is possible.
    """
    for seed in range(6):
        where, graph = f"wide ranges {seed}", exactness.graph_of_wide_ranges(seed)
        posterior = _unless_refused(backend, graph, where)
        if posterior is None:
            continue
        truth = Enumeration().infer(graph)
        _near_marginals(posterior, truth, exactness.allowed(graph, posterior), where)
        if posterior.log_z is not None:
            _near(posterior.log_z, truth.log_z, exactness.tolerance, f"{where}: log Z")


def log_z_is_of_its_kind(backend: Backend, exactness: Exactness) -> None:
    """Check log Z on graphs with cycles: exact, on its side, or within its error.

    Its kind must be exact, or the kind in the registry entry of the backend.
    """
    for seed in SEEDS:
        graph = grid(3, 3, coupling=2.0, field=1.0, cardinality=2 + seed % 2, seed=seed)
        _is_of_its_kind(backend, exactness, graph, f"grid {seed}")
    graph = wide_ranges(grid(3, 3, coupling=2.0, field=1.0, seed=0), 0)
    _is_of_its_kind(backend, exactness, graph, "grid 0 in wide ranges")
    _is_of_its_kind(backend, exactness, unsorted(1, cycles=True), "cycles of unsorted scopes")


def _is_of_its_kind(backend: Backend, exactness: Exactness, graph: FactorGraph, where: str) -> None:
    posterior = _unless_refused(backend, graph, where)
    truth = Enumeration().infer(graph)
    if posterior is None or posterior.log_z is None or truth.log_z is None:
        return
    kind = posterior.log_z_kind
    if declared := _declared_kind(backend):
        _require(
            str(kind) in (declared, LogZKind.EXACT),
            f"{where}: log Z is of the kind {kind}, and the registry declares {declared}",
        )
    # If bound and truth coincide, both have the rounding errors of some hundred operations.
    slack = 10.0 * ROUNDING * max(1.0, abs(truth.log_z), float(np.abs(graph.log_values).max()))
    slack += 6.0 * float(posterior.stats.get("bound_standard_error") or 0.0)
    above = posterior.log_z - truth.log_z
    allowed = f"{slack} is allowed"
    if kind is LogZKind.EXACT:
        _near_marginals(posterior, truth, exactness.allowed(graph, posterior), where)
        _near(posterior.log_z, truth.log_z, exactness.tolerance, f"{where}: log Z")
    elif kind is LogZKind.UPPER:
        _require(above >= -slack, f"{where}: the upper bound is {-above} below log Z; {allowed}")
    elif kind in (LogZKind.LOWER, LogZKind.ELBO):
        _require(above <= slack, f"{where}: the lower bound is {above} above log Z; {allowed}")
    elif kind is LogZKind.ESTIMATE:
        error = posterior.stats["log_z_standard_error"]
        if error is None:
            return
        off = f"{where}: the estimate is {abs(above)} off, of standard error {error}; 6 are allowed"
        _require(abs(above) <= 6.0 * error + slack, off)


def _declared_kind(backend: Backend) -> str:
    """Return the kind of log Z that the registry declares of a backend; "" if it has no such entry.

    An entry is about the default settings: a bound may be on the other side with others.
    """
    entry = entries().get(backend.name)
    if entry is None or type(backend) is not backend_class(entry.name):
        return ""
    return str(entry.log_z_kind) if backend == type(backend)() else ""


def order_does_not_matter(backend: Backend, exactness: Exactness) -> None:
    """Check that another order of variables and factors gives the same answer, permuted."""
    for seed, (where, graph) in enumerate(_exact_graphs(exactness)):
        moved, _ = relabeled(graph, seed)
        original, reordered = backend.infer(graph), backend.infer(moved)
        permuted = Marginals(graph.names, graph.cardinalities, in_order(graph, reordered.marginals))
        where = f"{where} in another order"
        allowed = exactness.allowed(graph, original, reordered)
        _near_marginals(replace(reordered, marginals=permuted), original, allowed, where)
        _near(reordered.log_z, original.log_z, exactness.tolerance, f"{where}: log Z")


def a_constant_moves_log_z_alone(backend: Backend, exactness: Exactness) -> None:
    """Check that a constant added to every log table shifts log Z only, once per factor."""
    graph = exactness.graph(7)
    shifted = replace(graph, log_values=graph.log_values - 2.5)
    original, with_constant = backend.infer(graph), backend.infer(shifted)
    where = "graph 7 with a constant"
    _near_marginals(
        with_constant, original, exactness.allowed(graph, original, with_constant), where
    )
    moved = None if original.log_z is None else original.log_z - 2.5 * graph.n_factors
    _near(with_constant.log_z, moved, exactness.tolerance, f"{where}: log Z")


def the_same_twice(backend: Backend, exactness: Exactness) -> None:
    """Check that two runs give the same numbers, and that sampling has a seed."""
    graph = random_graph(6, 10, max_arity=3, zero_probability=0.2, log_range=3.0, seed=4)
    first, second = backend.infer(graph), backend.infer(graph)
    if exactness.repeated == 0.0:
        same = first.marginals.flat.tobytes() == second.marginals.flat.tobytes()
        _require(same and first.log_z == second.log_z, "a second run gives other numbers")
        return
    allowed = np.full(first.marginals.flat.shape, exactness.repeated)
    _near_marginals(second, first, allowed, "a second run")
    scale = max(1.0, abs(first.log_z or 0.0))
    _near(second.log_z, first.log_z, exactness.repeated * scale, "log Z of a second run")


def degenerate_graphs_are_answered(backend: Backend, exactness: Exactness) -> None:
    """Check graphs without variables or factors, with constants, single states and zeros."""
    for number, (cardinalities, factors) in enumerate(_DEGENERATE):
        graph = FactorGraph.from_factors(cardinalities, factors)
        truth, posterior = Enumeration().infer(graph), backend.infer(graph)
        where = f"degenerate graph {number}"
        _near_marginals(posterior, truth, exactness.allowed(graph, posterior), where)
        if posterior.log_z is not None:
            _near(posterior.log_z, truth.log_z, exactness.tolerance, f"{where}: log Z")


def contradictions_are_named(backend: Backend, _: Exactness) -> None:
    """Check that a graph without a possible assignment raises a ZeroPartitionError."""
    try:
        backend.infer(_CONTRADICTION)
    except ZeroPartitionError:
        return
    raise ConformanceError("a graph without a possible assignment raises no ZeroPartitionError")


def a_batch_gives_the_answers_of_single_graphs(backend: Backend, exactness: Exactness) -> None:
    """Check that batches of graphs and of settings give the answers of single graphs."""
    kind = type(backend)
    if (kind.solve_batch, kind.solve_settings) == (Backend.solve_batch, Backend.solve_settings):
        _require(not backend.identical_batches, "identical_batches is set without a batch")
        return
    graph = exactness.graph(5)
    shift = np.sin(np.arange(len(graph.log_values)))
    rows = graph.log_values + np.array([0.0, 0.5, 1.0])[:, None] * shift
    settings = [replace(graph, log_values=row) for row in rows]
    observed = [setting.with_evidence({0: 0}) for setting in settings]
    graphs = [*settings, _CONTRADICTION, exactness.graph(0), observed[1]]
    wide = exactness.graph_of_wide_ranges(1)
    if _unless_refused(backend, wide, "wide ranges 1") is not None:
        graphs.append(wide)
    for what, results, asked in (
        ("graph", batch_results(graphs, backend, threads=2), graphs),
        ("setting", settings_results(graph, rows, backend, threads=2), settings),
        ("observed setting", settings_results(observed[0], rows, backend, threads=2), observed),
    ):
        for number, (result, single_graph) in enumerate(zip(results, asked, strict=True)):
            where, alone = f"{what} {number} of a batch", backend.attempt(single_graph)
            if not (isinstance(result, Posterior) and isinstance(alone, Posterior)):
                same = type(result) is type(alone) and str(result) == str(alone)
                _require(same, f"{where} gives {result!r}, and alone {alone!r}")
                continue
            _require(
                result.backend == backend.name and result.stats["seconds"] > 0.0,
                f"{where} has no name of its backend, or no seconds",
            )
            if backend.identical_batches:
                same = result.marginals.flat.tobytes() == alone.marginals.flat.tobytes()
                same &= (result.log_z, result.status) == (alone.log_z, alone.status)
                _require(same, f"{where} gives other numbers than alone")
            _near_marginals(result, alone, exactness.allowed(single_graph, result, alone), where)
            _near(result.log_z, alone.log_z, exactness.tolerance, f"{where}: log Z")


def beliefs_are_the_gradient_of_log_z(backend: Backend, exactness: Exactness) -> None:
    """Check that beliefs are distributions, and the derivative of log Z by differences."""
    for graph, where in (
        (exactness.graph(3), "graph 3"),
        (unsorted(0), "unsorted scopes"),
        (grid(2, 3, coupling=0.5, field=1.0, seed=0), "a grid of pairs"),
        (_PAIRS, "pairs in either order"),
    ):
        beliefs = backend.prepare_beliefs(graph)
        if beliefs is None:
            continue
        # Use other tables than those of the graph, which must be ignored.
        log_values = 0.5 * graph.log_values
        answer = beliefs(log_values)
        alone = backend.infer(replace(graph, log_values=log_values))
        allowed = exactness.allowed(graph, answer.posterior, alone)
        _near_marginals(answer.posterior, alone, allowed, f"beliefs of {where}")
        _near(answer.posterior.log_z, alone.log_z, exactness.tolerance, f"{where}: log Z")
        _require(
            answer.entries.shape == log_values.shape,
            f"beliefs have the shape {answer.entries.shape}, not {log_values.shape}",
        )
        impossible = answer.entries[log_values == -np.inf]
        _require(bool((impossible == 0.0).all()), f"{where}: an entry of -inf has a belief")
        slopes = _differences(beliefs, log_values)
        # The error of differences is the square of the step, plus the error of log Z over the step.
        slack = 10.0 * (_STEP**2 + exactness.tolerance / _STEP)
        off = float(np.abs(answer.entries - slopes).max(initial=0.0))
        _require(off <= slack, f"{where}: a belief is {off} from the derivative of log Z")


def a_prediction_runs_nothing(backend: Backend, exactness: Exactness) -> None:
    """Check that a prediction is positive, independent of potentials, and runs no inference."""

    class Unrun(type(backend)):  # type: ignore[misc]
        predict = type(backend).predict

        def solve(self, graph: FactorGraph) -> Posterior:  # noqa: ARG002
            raise ConformanceError("a prediction runs the graph that it is for")

    unrun = Unrun(**{field.name: getattr(backend, field.name) for field in fields(backend)})
    for graph in (exactness.graph(2), grid(4, 4, coupling=1.0, field=1.0, seed=0)):
        cost = unrun.predict(graph)
        if cost is None:
            continue
        for number, what in ((cost.seconds, "seconds"), (cost.bytes, "bytes")):
            _require(number is None or number > 0.0, f"{number} {what} are predicted")
        flat = replace(graph, log_values=np.zeros(len(graph.log_values)))
        _require(unrun.predict(flat) == cost, "a prediction depends on the numbers of the tables")


CHECKS: tuple[Check, ...] = (
    settings_are_frozen,
    posterior_keeps_the_contract,
    observed_variables_are_certain,
    exact_where_it_says_so,
    exact_or_refused_in_wide_ranges,
    log_z_is_of_its_kind,
    order_does_not_matter,
    a_constant_moves_log_z_alone,
    the_same_twice,
    degenerate_graphs_are_answered,
    contradictions_are_named,
    a_batch_gives_the_answers_of_single_graphs,
    beliefs_are_the_gradient_of_log_z,
    a_prediction_runs_nothing,
)
"""All checks, in the order in which a new backend is likely to pass them."""

_CONTRADICTION = FactorGraph.from_factors(
    [2, 2], [([0, 1], [[1.0, 0.0], [0.0, 0.0]]), ([1], [0, 1])]
)

_PAIRS = FactorGraph.from_factors(
    [2] * 4,
    [
        ([1, 0], [[1.0, 0.4], [0.3, 0.9]]),
        ([0, 1], [[0.8, 0.5], [0.7, 0.2]]),
        ([2, 0], [[0.6, 1.1], [0.9, 0.5]]),
        ([1, 2], [[1.2, 0.7], [0.8, 0.3]]),
        ([3, 1], [[0.0, 0.6], [1.3, 0.9]]),
        ([2], [0.4, 0.6]),
    ],
)
"""Pairs of binary variables on a cycle, with ascending and descending scopes and asymmetric
tables."""

_DEGENERATE: tuple[tuple[list[int], list[tuple[list[int], ArrayLike]]], ...] = (
    ([], []),
    ([], [([], 3.0)]),
    ([1], []),
    ([3], []),
    ([2, 2], []),
    ([1, 3], [([], 2.0), ([0], [5.0])]),
    ([1, 2], [([0, 1], [[0.25, 0.75]])]),
    ([2, 2], [([0], [0.0, 1.0]), ([1], [1.0, 0.0])]),
    ([2, 2], [([0, 1], [[1.0, 1.0], [1.0, 1.0]])] * 3),
)


def _exact_graphs(exactness: Exactness) -> Iterator[tuple[str, FactorGraph]]:
    for seed in SEEDS:
        graph = exactness.graph(seed)
        yield f"graph {seed}", graph.with_evidence({0: 0}) if seed == 0 else graph
    for seed in SEEDS:
        yield f"graph {seed} of many states", exactness.graph_of_many_states(seed)
    if exactness.forests:
        yield "unsorted scopes", unsorted(0)


def _unless_refused(backend: Backend, graph: FactorGraph, where: str) -> Posterior | None:
    """Return the posterior of a graph with possible assignments, or None if it is refused."""
    try:
        return backend.infer(graph)
    except ZeroPartitionError as error:
        message = f"{where}: an assignment is possible, and the backend says: {error}"
        raise ConformanceError(message) from error
    except InferenceError:
        return None


def _differences(beliefs: BeliefFunction, log_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the derivative of log Z by each entry of the log tables, 0 for entries of -inf."""
    result = np.zeros(len(log_values))
    for entry in np.flatnonzero(np.isfinite(log_values)).tolist():
        for sign in (1.0, -1.0):
            moved = log_values.copy()
            moved[entry] += sign * _STEP
            log_z = beliefs(moved).posterior.log_z
            _require(log_z is not None, "beliefs come without a log Z")
            result[entry] += sign * (log_z or 0.0) / (2.0 * _STEP)
    return result


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ConformanceError(otherwise)


def _near(value: float | None, expected: float | None, tolerance: float, what: str) -> None:
    if value is None or expected is None:
        _require(value is expected, f"{what} is {value}, not {expected}")
        return
    near = value == expected or math.isclose(value, expected, rel_tol=0.0, abs_tol=tolerance)
    _require(near, f"{what} is {value}, not {expected} within {tolerance}")


def _near_marginals(
    posterior: Posterior, expected: Posterior, allowed: NDArray[np.float64], where: str
) -> None:
    off = np.abs(posterior.marginals.flat - expected.marginals.flat)
    wrong = np.flatnonzero(~(off <= allowed))
    if not len(wrong):
        return
    worst = wrong[np.argmax(off[wrong] - allowed[wrong])]
    variable = int(np.searchsorted(expected.marginals.starts, worst, side="right")) - 1
    name = expected.marginals.names[variable]
    raise ConformanceError(
        f"{where}: a marginal is off by {off[worst]}, and {allowed[worst]} is allowed; that of "
        f"{name!r} is {posterior.marginals[name]}, not {expected.marginals[name]}"
    )
