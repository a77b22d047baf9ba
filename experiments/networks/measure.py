"""Backends on one network: errors against a reference, bounds, memory, times in rounds."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.networks.data import Loaded, Reference, flat_marginals
from experiments.networks.memory import with_peak
from experiments.study.units import sentence
from factormodels.factor_graph import FactorGraph
from inference import Backend, InferenceError, Posterior, infer_batch
from inference.exact.plans import forget_plans
from inference.posterior import LogZKind, Status
from inference.trace import certain_bounds

_MOST_CALLS = 1000
"""Keeps a call of nanoseconds from looping on a bad guess of its time."""

_FROM_BEST = (Status.EXACT, Status.CONVERGED, Status.NOT_CONVERGED, Status.INTERRUPTED)
"""Of the answers to a batch the worst is told."""

REFUSED, FAILED = "refused", "failed"
"""How a call ended that has no answer: the backend said why, or raised what is no refusal."""

NUMBERS = (
    *("total_error", "max_error", "log_z", "log_z_error", "lower", "upper", "reference_log_z"),
    *("reference_rounding", "peak_bytes", "first_seconds", "seconds", "induced_width"),
)
"""Numbers of a row; nan where there is none."""


class Clocking(NamedTuple):
    """How calls are repeated and timed."""

    rounds: int
    """Turns of every backend."""

    budget: float
    """Seconds of repeated calls of a backend."""

    seed: int
    """Seed of the order of turns."""


class NetworkTask(NamedTuple):
    """A network and the backends that are measured on it."""

    loaded: Loaded
    """Its graphs, and the answers in files."""

    backends: tuple[tuple[str, Backend], ...]
    """The backends by label."""

    judge: Backend
    """What computes the reference, if no file has one."""

    clocking: Clocking
    """How calls are timed."""


def measure(task: NetworkTask) -> list[dict[str, Any]]:
    """A row for each backend: how it answered, its errors, bounds, memory and times.

    Errors are nan where there is nothing to compare with: `total_error` (sum of |Δp| over the
    probabilities in marginals, of which there are `probabilities`), `max_error`, and
    `log_z_error` (log Z or its bound less the reference's, nats). `lower` and `upper` are bounds
    on log Z that hold for certain. `peak_bytes` and `first_seconds` are of the first call,
    `seconds` is the median over rounds of a repeated call, `round_seconds` each round's. In a
    round all backends take turns in a new order, so that what slows the machine for a while slows
    all of them; a turn is as many calls as fit the budget's share of a round. Each backend takes
    the first turn, however long its first call was, which may have been spent on compiling; only a
    repeated call tells. Further turns end with the budget. Rows of one `measurement` were timed
    in the same rounds.
    """
    graphs, given = task.loaded
    answers: dict[str, tuple[Posterior, ...]] = {}
    rows: dict[str, dict[str, Any]] = {}
    for label, backend in task.backends:
        rows[label] = {"backend": label, "status": "", "log_z_kind": "", "remark": ""}
        rows[label] |= dict.fromkeys(NUMBERS, math.nan)
        try:
            # Another backend's plan would make the call look quicker and smaller than it is.
            forget_plans()
            (answers[label], seconds), peak = with_peak(partial(_timed, backend, graphs))
            rows[label] |= {"first_seconds": seconds, "peak_bytes": peak}
        except InferenceError as error:
            rows[label] |= {"status": REFUSED, "remark": str(error)}
        except Exception as error:
            # Whatever a backend raises must not end the measurements of the others.
            rows[label] |= {"status": FAILED, "remark": sentence(error)}
    reference = given or _reference(graphs, task.judge) or _exact_among(answers)
    for label, found in answers.items():
        rows[label] |= _compared(found, reference)
    warm = {label: backend for label, backend in task.backends if label in answers}
    first = {label: float(rows[label]["first_seconds"]) for label in warm}
    times = _turns(graphs, warm, first, task.clocking)
    facts = {
        "measurement": uuid.uuid4().hex,
        "variables": sum(graph.n_variables for graph in graphs),
        "probabilities": int(sum(graph.cardinalities.sum() for graph in graphs)),
        "reference": "" if reference is None else reference.source,
    }
    if reference is not None and reference.log_z is not None:
        facts |= {
            "reference_log_z": reference.log_z,
            "reference_rounding": reference.rounding,
        }
    if reference is not None and not math.isnan(reference.induced_width):
        facts["induced_width"] = reference.induced_width
    measured = []
    for label, row in rows.items():
        each = times.get(label, ())
        median = float(np.median(each)) if each else math.nan
        measured.append({**row, **facts, "seconds": median, "round_seconds": list(each)})
    return measured


def _timed(backend: Backend, graphs: Sequence[FactorGraph]) -> tuple[tuple[Posterior, ...], float]:
    began = time.perf_counter()
    answers = _answered(backend, graphs)
    return answers, time.perf_counter() - began


def _answered(backend: Backend, graphs: Sequence[FactorGraph]) -> tuple[Posterior, ...]:
    if len(graphs) == 1:
        return (backend.infer(graphs[0]),)
    return tuple(infer_batch(graphs, backend))


def _reference(graphs: Sequence[FactorGraph], judge: Backend) -> Reference | None:
    """The answer of a backend to the graphs of a network; None if it refuses one."""
    try:
        return _as_reference(judge.name, _answered(judge, graphs))
    except InferenceError:
        return None


def _exact_among(answers: Mapping[str, Sequence[Posterior]]) -> Reference | None:
    """The first exact answer that a backend gave, if one did."""
    for label, found in answers.items():
        if all(answer.status is Status.EXACT for answer in found):
            return _as_reference(label, found)
    return None


def _as_reference(source: str, answers: Sequence[Posterior]) -> Reference:
    alone = answers[0] if len(answers) == 1 else None
    exact = alone is not None and alone.log_z_kind is LogZKind.EXACT
    return Reference(
        source,
        flat_marginals(answers),
        # A bound or an estimate is no reference of log Z, whoever is asked for one.
        alone.log_z if alone is not None and exact else None,
        alone.stats.get("induced_width", math.nan) if alone else math.nan,
    )


def _compared(answers: Sequence[Posterior], reference: Reference | None) -> dict[str, Any]:
    """How a backend answered; log Z only where there is one graph."""
    worst = max((answer.status for answer in answers), key=_FROM_BEST.index)
    alone = answers[0] if len(answers) == 1 else None
    row: dict[str, Any] = {"status": str(worst), "log_z_kind": str(LogZKind.NONE)}
    if alone is not None:
        lower, upper = certain_bounds(alone)
        row["log_z_kind"] = str(alone.log_z_kind)
        row |= {"log_z": _number(alone.log_z), "lower": _number(lower), "upper": _number(upper)}
        row["induced_width"] = _number(alone.stats.get("induced_width"))
    if reference is None:
        return row
    if reference.marginals is not None:
        errors = np.abs(flat_marginals(answers) - reference.marginals)
        row |= {"total_error": float(errors.sum()), "max_error": float(errors.max(initial=0.0))}
    if alone is not None and alone.log_z is not None and reference.log_z is not None:
        row["log_z_error"] = float(alone.log_z - reference.log_z)
    return row


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _turns(
    graphs: Sequence[FactorGraph],
    backends: Mapping[str, Backend],
    first: Mapping[str, float],
    clocking: Clocking,
) -> dict[str, list[float]]:
    """Seconds of a call of each backend in each round."""
    rounds, budget, seed = clocking
    expected = dict(first)
    seconds: dict[str, list[float]] = {label: [] for label in backends}
    order = np.random.default_rng([seed, len(graphs)])
    labels = list(backends)
    for number in range(rounds):
        for at in order.permutation(len(labels)):
            label = labels[at]
            # The first turn is everybody's; a slow backend's others would be beyond the budget.
            if number and sum(seconds[label]) + expected[label] > budget:
                continue
            calls = min(max(int(budget / rounds / max(expected[label], 1e-9)), 1), _MOST_CALLS)
            # Not timed: the processor's caches hold another backend's data.
            if calls > 1:
                _answered(backends[label], graphs)
            start = time.perf_counter()
            for _ in range(calls):
                _answered(backends[label], graphs)
            expected[label] = (time.perf_counter() - start) / calls
            seconds[label].append(expected[label])
    return seconds
