"""Backends on one network: errors against a reference, bounds, memory, times in rounds."""

from __future__ import annotations

import math
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from experiments.networks.config import Searcher
from experiments.networks.data import Loaded, Reference, flat_marginals
from experiments.networks.memory import with_peak
from experiments.study.units import sentence
from factormodels.errors import MissingDependencyError
from factormodels.factor_graph import FactorGraph
from inference import Backend, InferenceError, Posterior, infer_batch
from inference.exact.plans import forget_plans
from inference.posterior import LogZKind, Status
from inference.trace import certain_bounds

_MOST_CALLS = 1000
"""Limit on repetitions, in case the estimated time of a call is much too short."""

_FROM_BEST = (Status.EXACT, Status.CONVERGED, Status.NOT_CONVERGED, Status.INTERRUPTED)
"""Order of statuses, of which the worst in a batch is reported."""

REFUSED, FAILED, ABSENT = "refused", "failed", "absent"
"""Statuses of a call without an answer: refused with a reason, failed with another error, or absent
without its library.
"""

Answer = TypeVar("Answer")

NUMBERS = (
    *("total_error", "max_error", "log_z", "log_z_error", "lower", "upper", "reference_log_z"),
    *("reference_rounding", "peak_bytes", "first_seconds", "seconds", "induced_width"),
)
"""Numbers of a row; nan if there is none."""


class Clocking(NamedTuple):
    """Settings of repeated and timed calls."""

    rounds: int
    """Turns of every backend."""

    budget: float
    """Seconds of repeated calls per backend."""

    seed: int
    """Seed of the order of turns."""


class NetworkTask(NamedTuple):
    """A network and its measurements, each under a label."""

    loaded: Loaded
    """Its graphs, and answers in files."""

    backends: tuple[tuple[str, Backend], ...]
    """The backends."""

    searchers: tuple[tuple[str, Searcher], ...]
    """Searches for its most probable states."""

    judge: Backend
    """Backend that computes the reference, if no file has one."""

    search_seconds: float
    """Limit on toulbar2's processor time."""

    clocking: Clocking
    """Settings for timing calls."""


def measure(task: NetworkTask) -> list[dict[str, Any]]:
    """A row for each backend: status, errors, bounds, memory and times.

    Errors are NaN without a reference: `total_error` (sum of |Δp| over all `probabilities` numbers
    in the marginals), `max_error`, and `log_z_error` (log Z or its bound minus the reference's, in
    nats). `lower` and `upper` are certain bounds on log Z. `peak_bytes` and `first_seconds` refer
    to the first call. `seconds` is the median over rounds of a repeated call, and `round_seconds`
    has the seconds of each round. In a round all backends take turns in a new order, so that
    temporary load affects all of them; a turn has as many calls as fit the budget's share of a
    round. Each backend takes the first turn regardless of its first call, which may include
    compilation. Further turns end with the budget. Rows of the same `measurement` were timed in the
    same rounds.
    """
    graphs, given = task.loaded
    answers: dict[str, tuple[Posterior, ...]] = {}
    rows: dict[str, dict[str, Any]] = {}
    for label, backend in task.backends:
        rows[label] = {"backend": label, "status": "", "log_z_kind": "", "remark": ""}
        rows[label] |= dict.fromkeys(NUMBERS, math.nan)
        answer, facts = attempted(partial(_answered, backend, graphs))
        rows[label] |= facts
        if answer is not None:
            answers[label] = answer
    reference = given or _reference(graphs, task.judge) or _exact_among(answers)
    for label, posteriors in answers.items():
        rows[label] |= _compared(posteriors, reference)
    calls = {
        label: partial(_answered, backend, graphs)
        for label, backend in task.backends
        if label in answers
    }
    first = {label: float(rows[label]["first_seconds"]) for label in calls}
    times = timing(calls, first, task.clocking)
    of_network = {
        "variables": sum(graph.n_variables for graph in graphs),
        "probabilities": int(sum(graph.cardinalities.sum() for graph in graphs)),
        "reference": "" if reference is None else reference.source,
    }
    if reference is not None and reference.log_z is not None:
        of_network |= {
            "reference_log_z": reference.log_z,
            "reference_rounding": reference.rounding,
        }
    if reference is not None and not math.isnan(reference.induced_width):
        of_network["induced_width"] = reference.induced_width
    return [{**row, **of_network, **times[label]} for label, row in rows.items()]


def attempted(call: Callable[[], Answer]) -> tuple[Answer | None, dict[str, Any]]:
    """Result of a first call with its time and memory, or its status without an answer."""

    def timed() -> tuple[Answer, float]:
        began = time.perf_counter()
        answer = call()
        return answer, time.perf_counter() - began

    # Another backend's plan would make the call faster and smaller than it is.
    forget_plans()
    try:
        (answer, seconds), peak = with_peak(timed)
    except InferenceError as error:
        return None, {"status": REFUSED, "remark": str(error)}
    except MissingDependencyError as error:
        return None, {"status": ABSENT, "remark": str(error)}
    except Exception as error:
        # An exception of a backend must not end the measurements of the others.
        return None, {"status": FAILED, "remark": sentence(error)}
    return answer, {"first_seconds": seconds, "peak_bytes": peak, "remark": ""}


def _answered(backend: Backend, graphs: Sequence[FactorGraph]) -> tuple[Posterior, ...]:
    if len(graphs) == 1:
        return (backend.infer(graphs[0]),)
    return tuple(infer_batch(graphs, backend))


def _reference(graphs: Sequence[FactorGraph], judge: Backend) -> Reference | None:
    """The answer of a backend to the graphs of a network; None if it refuses a graph."""
    try:
        return _as_reference(judge.name, _answered(judge, graphs))
    except InferenceError:
        return None


def _exact_among(answers: Mapping[str, Sequence[Posterior]]) -> Reference | None:
    """The first exact answer of a backend, if any."""
    for label, posteriors in answers.items():
        if all(posterior.status is Status.EXACT for posterior in posteriors):
            return _as_reference(label, posteriors)
    return None


def _as_reference(source: str, answers: Sequence[Posterior]) -> Reference:
    alone = answers[0] if len(answers) == 1 else None
    exact = alone is not None and alone.log_z_kind is LogZKind.EXACT
    return Reference(
        source,
        flat_marginals(answers),
        # Bounds and estimates are never references for log Z.
        alone.log_z if alone is not None and exact else None,
        alone.stats.get("induced_width", math.nan) if alone else math.nan,
    )


def _compared(answers: Sequence[Posterior], reference: Reference | None) -> dict[str, Any]:
    """Comparison of a backend's answer; log Z only for a single graph."""
    worst = max((answer.status for answer in answers), key=_FROM_BEST.index)
    alone = answers[0] if len(answers) == 1 else None
    row: dict[str, Any] = {"status": str(worst), "log_z_kind": str(LogZKind.NONE)}
    if alone is not None:
        lower, upper = certain_bounds(alone)
        row["log_z_kind"] = str(alone.log_z_kind)
        row |= {"log_z": _number(alone.log_z), "lower": _bound(lower), "upper": _bound(upper)}
        row["induced_width"] = _number(alone.stats.get("induced_width"))
    if reference is None:
        return row
    if reference.marginals is not None:
        errors = np.abs(flat_marginals(answers) - reference.marginals)
        row |= {"total_error": float(errors.sum()), "max_error": float(errors.max(initial=0.0))}
    if alone is not None and alone.log_z is not None and reference.log_z is not None:
        row["log_z_error"] = float(alone.log_z - reference.log_z)
    return row


def _bound(value: float | None) -> float:
    """A bound, or NaN if infinite."""
    return math.nan if value is None or math.isinf(value) else float(value)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def timing(
    calls: Mapping[str, Callable[[], object]], first: Mapping[str, float], clocking: Clocking
) -> Mapping[str, dict[str, Any]]:
    """Times of repeated calls in rounds, by label; labels without times have empty entries.

    Args:
        calls: functions to call, by label.
        first: seconds of the first call of each.
        clocking: rounds, budget and seed.
    """
    # Rows that share this were timed in the same rounds.
    blank = {"measurement": uuid.uuid4().hex, "seconds": math.nan, "round_seconds": []}
    times: defaultdict[str, dict[str, Any]] = defaultdict(lambda: blank)
    for label, each in _turns(calls, first, clocking).items():
        times[label] = {**blank, "seconds": float(np.median(each)), "round_seconds": each}
    return times


def _turns(
    calls: Mapping[str, Callable[[], object]], first: Mapping[str, float], clocking: Clocking
) -> dict[str, list[float]]:
    """Seconds of a call of each label in each round: the mean over the calls of its turn.

    Other processes that get the processor lengthen the mean of short calls as much as a long call.
    Their median would not notice them, so that ratios to long calls would depend on the load.
    """
    rounds, budget, seed = clocking
    expected = dict(first)
    seconds: dict[str, list[float]] = {label: [] for label in calls}
    order = np.random.default_rng(seed)
    labels = list(calls)
    for number in range(rounds):
        for at in order.permutation(len(labels)):
            label = labels[at]
            # Every backend takes the first turn; further turns of slow backends would exceed the
            # budget.
            if number and sum(seconds[label]) + expected[label] > budget:
                continue
            count = min(max(int(budget / rounds / max(expected[label], 1e-9)), 1), _MOST_CALLS)
            # Not timed, because the processor's caches contain another backend's data.
            if count > 1:
                calls[label]()
            start = time.perf_counter()
            for _ in range(count):
                calls[label]()
            expected[label] = (time.perf_counter() - start) / count
            seconds[label].append(expected[label])
    return seconds
