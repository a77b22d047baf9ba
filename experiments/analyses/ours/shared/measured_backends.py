"""Backends on graphs: their errors against a reference, and their times in interleaved rounds."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.figures.panels import nth_colour, nth_marker
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph, digest
from factormodels.io.networks.uai import read_uai
from factormodels.io.networks.uai_results import read_evidence, read_log10_partition, read_marginals
from inference import Backend, InferenceError, Posterior, entries, infer_batch
from inference.posterior import LogZKind

_MOST_CALLS = 1000
"""Keeps a call of nanoseconds from looping on a bad guess of its time."""

NUMBERS = ("total_error", "max_error", "log_z_error", "gap", "first_seconds", "seconds")
"""What a row has no number of where a backend refuses the graph."""


@dataclass(frozen=True)
class Reference:
    """An answer that errors are measured against.

    Attributes:
        source: a backend's name, or names of files.
        marginals: probability vectors of all variables one after another, or None.
        log_z: natural logarithm of the partition function, or None.
        induced_width: of the order that it was found by, nan where none is known.
    """

    source: str
    marginals: NDArray[np.float64] | None = None
    log_z: float | None = None
    induced_width: float = math.nan


def reference_of(graphs: Sequence[FactorGraph], backend: Backend) -> Reference | None:
    """The answer of a backend to graphs, None if it refuses one of them."""
    try:
        answers = infer_batch(graphs, backend)
    except InferenceError:
        return None
    alone = answers[0] if len(graphs) == 1 else None
    return Reference(
        backend.name,
        _flat(answers),
        alone.log_z if alone else None,
        alone.stats.get("induced_width", math.nan) if alone else math.nan,
    )


def read_network(path: Path) -> tuple[FactorGraph, Reference | None]:
    """A UAI network with its evidence, and the answers in NAME.uai.MAR and NAME.uai.PR.

    Whatever program wrote these files may so be compared with backends.

    Raises:
        InputError: if a file is damaged, or the answers are of another network.
    """
    graph = read_uai(path)
    evidence, marginals, partition = (Path(f"{path}.{kind}") for kind in ("evid", "MAR", "PR"))
    if evidence.exists():
        graph = graph.with_evidence(read_evidence(evidence, graph))
    answers = [each.name for each in (marginals, partition) if each.exists()]
    if not answers:
        return graph, None
    flat = np.concatenate(read_marginals(marginals)) if marginals.exists() else None
    if flat is not None and len(flat) != graph.cardinalities.sum():
        raise InputError(
            f"{marginals}: it has {len(flat)} probabilities and {path.name} has "
            f"{graph.cardinalities.sum()} states; put the answers of this network beside it"
        )
    log_z = read_log10_partition(partition) * math.log(10.0) if partition.exists() else None
    return graph, Reference(" and ".join(answers), flat, log_z)


def measure(
    graphs: Sequence[FactorGraph],
    backends: Sequence[tuple[str, Backend]],
    reference: Reference | None,
    rounds: int,
    budget: float,
    seed: int,
) -> Iterator[dict[str, Any]]:
    """One row per backend: how it answered, its errors and its times.

    Errors are nan where there is nothing to compare with: `total_error` (sum of
    |Δp| over the probabilities in marginals, of which there are `probabilities`), `max_error`,
    `log_z_error` (log Z or its bound less the reference's, nats) and `gap` (of its two bounds).
    `first_seconds` is the first call's, `seconds` the median over rounds of a warm call,
    `round_seconds` each round's. In a round all backends take turns in a new order, so that what
    slows the machine for a while slows all of them; a turn is as many calls as fit the budget's
    share of a round. A backend whose first call takes more than the budget takes no turns, unless
    its library compiles for every graph: then it takes one.

    Args:
        graphs: one graph, or those of a batch, answered by one call.
        backends: labels and backends.
        reference: what errors are measured against, if there is something.
        rounds: turns of every backend.
        budget: seconds of warm calls of a backend.
        seed: seed of the order of turns.
    """
    facts = {
        "digest": digest(graphs),
        "variables": sum(graph.n_variables for graph in graphs),
        "probabilities": int(sum(graph.cardinalities.sum() for graph in graphs)),
        "induced_width": math.nan if reference is None else reference.induced_width,
        "reference": "" if reference is None else reference.source,
    }
    rows: dict[str, dict[str, Any]] = {}
    warm: dict[str, Backend] = {}
    for label, backend in backends:
        rows[label] = {**facts, "backend": label, **dict.fromkeys(NUMBERS, math.nan)}
        try:
            seconds, answers = _timed(backend, graphs)
        except InferenceError as error:
            rows[label] |= {"status": "refused", "log_z_kind": "", "remark": str(error)}
            continue
        rows[label] |= {**_compared(answers, reference), "first_seconds": seconds, "remark": ""}
        if seconds <= budget or entries()[backend.name].requires:
            warm[label] = backend
    first = {label: float(rows[label]["first_seconds"]) for label in warm}
    times = _turns(graphs, warm, first, rounds, budget, seed)
    for label, row in rows.items():
        each = times.get(label, ())
        median = float(np.median(each)) if each else row["first_seconds"]
        yield {**row, "seconds": median, "round_seconds": tuple(each)}


def looks(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """How the points of each backend are drawn; after the palette's end markers are hollow."""
    from calibration.figures.style import COLOURS

    return {
        label: {
            "color": nth_colour(at),
            "linestyle": "none",
            "marker": nth_marker(at),
            "markersize": 3.5,
            "fillstyle": "full" if at < len(COLOURS) else "none",
        }
        for at, label in enumerate(dict.fromkeys(labels))
    }


def draw_legend(figure: Any, place: Any, drawn: Mapping[str, Mapping[str, Any]]) -> None:
    """Name backends, drawn as `looks` says, below a figure."""
    handles = [place.plot([], [], **look)[0] for look in drawn.values()]
    figure.legend(
        handles,
        list(drawn),
        loc="outside lower center",
        ncols=min(len(drawn), 8),
        columnspacing=1.2,
        handletextpad=0.2,
    )


def _timed(backend: Backend, graphs: Sequence[FactorGraph]) -> tuple[float, Sequence[Posterior]]:
    start = time.perf_counter()
    answers = [backend.infer(graphs[0])] if len(graphs) == 1 else infer_batch(graphs, backend)
    return time.perf_counter() - start, answers


def _flat(answers: Sequence[Posterior]) -> NDArray[np.float64]:
    flat: NDArray[np.float64] = np.concatenate([answer.marginals.flat for answer in answers])
    return flat


def _compared(answers: Sequence[Posterior], reference: Reference | None) -> dict[str, Any]:
    """How a backend answered; log Z only where there is one graph."""
    statuses = [str(answer.status) for answer in answers]
    worst = "not_converged" if "not_converged" in statuses else statuses[0]
    alone = answers[0] if len(answers) == 1 else None
    row: dict[str, Any] = {"status": worst, "log_z_kind": str(LogZKind.NONE)}
    if alone is not None:
        row["log_z_kind"] = str(alone.log_z_kind)
        if "induced_width" in alone.stats:
            row["induced_width"] = alone.stats["induced_width"]
        row["gap"] = alone.stats.get("upper", math.nan) - alone.stats.get("lower", math.nan)
    if reference is None:
        return row
    if reference.marginals is not None:
        errors = np.abs(_flat(answers) - reference.marginals)
        row |= {"total_error": float(errors.sum()), "max_error": float(errors.max(initial=0.0))}
    if alone is not None and alone.log_z is not None and reference.log_z is not None:
        row["log_z_error"] = alone.log_z - reference.log_z
    return row


def _turns(
    graphs: Sequence[FactorGraph],
    backends: Mapping[str, Backend],
    first: Mapping[str, float],
    rounds: int,
    budget: float,
    seed: int,
) -> dict[str, list[float]]:
    """Seconds of a call of each backend in each round."""
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
                _timed(backends[label], graphs)
            start = time.perf_counter()
            for _ in range(calls):
                _timed(backends[label], graphs)
            expected[label] = (time.perf_counter() - start) / calls
            seconds[label].append(expected[label])
    return seconds
