"""Backends on graphs: their errors against a reference, and their times in interleaved rounds."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.analyses.measured_graphs import Reference, flat_marginals
from experiments.findings.table import data_frame, named
from experiments.findings.text import ABSENT
from factormodels.factor_graph import FactorGraph, digest
from inference import Backend, InferenceError, Posterior, infer_batch
from inference.posterior import LogZKind, Status

if TYPE_CHECKING:
    import pandas as pd

_MOST_CALLS = 1000
"""Keeps a call of nanoseconds from looping on a bad guess of its time."""

_FROM_BEST = (Status.EXACT, Status.CONVERGED, Status.NOT_CONVERGED, Status.INTERRUPTED)
"""Of the answers to a batch the worst is told."""

N_BOOTSTRAP = 10_000
"""Draws of rounds, for the interval of a ratio of times."""

NUMBERS = ("total_error", "max_error", "log_z_error", "gap", "first_seconds", "seconds")
"""What a row has no number of where a backend refuses the graph."""


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
    `first_seconds` is the first call's, `seconds` the median over rounds of a repeated call,
    `round_seconds` each round's. In a round all backends take turns in a new order, so that what
    slows the machine for a while slows all of them; a turn is as many calls as fit the budget's
    share of a round. Each backend takes the first turn, however long its first call was, which may
    have been spent on compiling; only a repeated call tells. Further turns end with the budget.

    Args:
        graphs: one graph, or those of a batch, answered by one call.
        backends: labels and backends.
        reference: what errors are measured against, if there is something.
        rounds: turns of every backend.
        budget: seconds of repeated calls of a backend.
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
        warm[label] = backend
    first = {label: float(rows[label]["first_seconds"]) for label in warm}
    times = _turns(graphs, warm, first, rounds, budget, seed)
    for label, row in rows.items():
        each = times.get(label, ())
        median = float(np.median(each)) if each else math.nan
        yield {**row, "seconds": median, "round_seconds": tuple(each)}


def summarise(measured: pd.DataFrame, against: str, seed: int) -> pd.DataFrame:
    """One row per family and backend: status, errors, and the ratio of times with its interval.

    The ratio is the median over rounds of the ratio within a round, averaged geometrically over
    graphs; its interval is the percentile bootstrap over rounds.
    """
    rows = []
    for (family, backend), group in measured.groupby(["graphs", "backend"], sort=False):
        answered = group[group["status"] != "refused"]
        other = measured[(measured["graphs"] == family) & (measured["backend"] == against)]
        pairs = group.merge(other, on=["graph", "digest"], suffixes=("", "_other"))
        times = list(zip(pairs["round_seconds"], pairs["round_seconds_other"], strict=True))
        # A network may come with its marginals, its log Z, or both.
        judged = answered.dropna(subset=["total_error"])
        log_z = answered["log_z_error"].dropna()
        rows.append(
            {
                "graphs": family,
                "backend": backend,
                "n_graphs": len(group),
                "answered": len(answered),
                "settled": int(group["status"].isin(("exact", "converged")).sum()),
                "seconds": float(np.exp(np.log(answered["seconds"]).mean())),
                **_ratio(times if backend != against else [], seed),
                "mean_error": judged["total_error"].sum()
                / (judged["probabilities"].sum() or np.nan),
                "max_error": answered["max_error"].max(),
                "log_z_kind": ", ".join(dict.fromkeys(answered["log_z_kind"])),
                "log_z_error": log_z.median(),
                "furthest": log_z.iloc[log_z.abs().argmax()] if len(log_z) else np.nan,
                "gap": answered["gap"].median(),
            }
        )
    return data_frame(rows)


def ratio_texts(overall: pd.DataFrame) -> list[str]:
    """The ratios of times that `summarise` gives, with their intervals, as a table shows them."""
    texts = []
    rows: list[dict[Any, Any]] = overall.to_dict("records")
    for row in rows:
        ends = "" if np.isnan(row["ratio_lower"]) else " [{ratio_lower:.3g}, {ratio_upper:.3g}]"
        texts.append(ABSENT if np.isnan(row["ratio"]) else ("{ratio:.3g}" + ends).format(**row))
    return texts


def _timed(backend: Backend, graphs: Sequence[FactorGraph]) -> tuple[float, Sequence[Posterior]]:
    start = time.perf_counter()
    answers = [backend.infer(graphs[0])] if len(graphs) == 1 else infer_batch(graphs, backend)
    return time.perf_counter() - start, answers


def _compared(answers: Sequence[Posterior], reference: Reference | None) -> dict[str, Any]:
    """How a backend answered; log Z only where there is one graph."""
    worst = max((answer.status for answer in answers), key=_FROM_BEST.index)
    alone = answers[0] if len(answers) == 1 else None
    row: dict[str, Any] = {"status": str(worst), "log_z_kind": str(LogZKind.NONE)}
    if alone is not None:
        row["log_z_kind"] = str(alone.log_z_kind)
        if "induced_width" in alone.stats:
            row["induced_width"] = alone.stats["induced_width"]
        row["gap"] = alone.stats.get("upper", math.nan) - alone.stats.get("lower", math.nan)
    if reference is None:
        return row
    if reference.marginals is not None:
        errors = np.abs(flat_marginals(answers) - reference.marginals)
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


def _ratio(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], seed: int) -> dict[str, float]:
    """How many times as long a call takes, from the times of both in the same rounds."""
    # The first rounds are everybody's: who is slow has fewer.
    both = [np.array(list(zip(*pair, strict=False))) for pair in pairs]
    logs = [np.log(times[:, 0] / times[:, 1]) for times in both if len(times)]
    if not logs:
        return named("ratio", [np.nan] * 3)
    value = np.mean([np.median(log) for log in logs])
    # One round resamples to itself, and would pretend to be certain.
    ends = np.full(2, np.nan)
    if min(map(len, logs)) > 1:
        draw = np.random.default_rng(seed)
        drawn = [
            np.median(log[draw.integers(0, len(log), (N_BOOTSTRAP, len(log)))], axis=1)
            for log in logs
        ]
        ends = np.quantile(np.mean(drawn, axis=0), [0.025, 0.975])
    return named("ratio", np.exp([value, *ends]).tolist())
