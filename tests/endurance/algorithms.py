"""Measured coverage of the errors that samplers report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from factormodels import FactorGraph
from inference import LogZKind, Posterior, Status, infer
from tests.endurance import Row
from tests.inference.answers import given
from tests.inference.exactness import standard_errors
from tests.inference.judged_graphs import KINDS, LOG_RANGES

QUICK: dict[str, tuple[str, dict[str, Any]]] = {
    f"`wmb_is`, `i_bound={bound}`": ("wmb_is", {"i_bound": bound, "samples": 4096})
    for bound in (1, 2, 4)
}
SLOW: dict[str, tuple[str, dict[str, Any]]] = {
    f"`{name}`, `judge_i_bound=2`": (name, {"judge_i_bound": 2}) for name in ("ais", "gibbs")
}
"""By how they are shown: backends and settings that run in hundredths of a second, and in tenths.

Larger i-bounds are exact on most of these graphs.
"""


class Run(NamedTuple):
    """Status of a run of a sampler, and its error against the truth.

    Attributes:
        status: how it ended; None: it gave no estimate, since it was exact or failed.
        off: of log Z, in standard errors that are stated; None where there is none.
        by_spread: of log Z, in standard errors by the spread of the draws.
        growth: what is stated over the spread.
        effective: effective number of draws; infinite where it is not told.
        within: of marginals, the share within two standard errors that are stated.
        farthest: of a marginal, in standard errors that are stated.
    """

    status: Status | None
    off: float | None
    by_spread: float | None
    growth: float | None
    effective: float
    within: float
    farthest: float


def run(graph: FactorGraph, truth: Posterior, backend: str, settings: Mapping[str, Any]) -> Run:
    """Run a sampler and compare it with the truth."""
    posterior = infer(graph, backend, **settings)
    stats = posterior.stats
    if posterior.log_z_kind not in (LogZKind.ESTIMATE, LogZKind.NONE):
        return Run(None, None, None, None, 0.0, 1.0, 0.0)
    off = by_spread = growth = None
    # Rounding is the error of what all draws agree on.
    rounding = 1e-9 * max(1.0, abs(given(truth)))
    if posterior.log_z is not None and stats["log_z_standard_error"] is not None:
        error, spread = stats["log_z_standard_error"], stats["log_z_spread"]
        away = max(abs(posterior.log_z - given(truth)) - rounding, 0.0)
        off, by_spread = away / max(error, rounding), away / max(spread, rounding)
        growth = max(error, rounding) / max(spread, rounding)
    wide = standard_errors(graph, posterior)
    away_by_state = np.abs(posterior.marginals.flat - truth.marginals.flat)
    ratios = np.maximum(away_by_state - 1e-9, 0.0) / np.maximum(wide, 1e-9)
    return Run(
        *(posterior.status, off, by_spread, growth),
        float(stats.get("effective_sample_size", np.inf)),
        float((ratios <= 2.0).mean()),
        float(ratios.max(initial=0.0)),
    )


def runs(
    seeds: Iterable[int], samplers: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> Iterator[tuple[str, str, float, Run]]:
    """Yield the name of a sampler, a kind of graph, a log range and a run, over all of them."""
    for seed in seeds:
        for kind, made in KINDS.items():
            for log_range in LOG_RANGES:
                graph = made(seed, log_range)
                truth = infer(graph, "exact")
                for name, (backend, settings) in samplers.items():
                    outcome = run(graph, truth, backend, {**settings, "seed": seed})
                    yield name, kind, log_range, outcome


def row(runs: list[Run]) -> Row:
    """Summary of runs: the share of converged ones whose reported errors cover."""
    estimated = [run for run in runs if run.status is not None]
    converged = [run for run in estimated if run.status is Status.CONVERGED]
    distances = [run.off for run in converged if run.off is not None]
    growths = [run.growth for run in converged if run.growth is not None]
    believed = [
        run.by_spread for run in estimated if run.by_spread is not None and run.effective >= 100.0
    ]
    return {
        "runs": len(estimated),
        "converged": len(converged),
        "log Z within 2": _share(distances, 2.0),
        "beyond 6": None if not distances else sum(off > 6.0 for off in distances),
        "marginals within 2": float(np.mean([run.within for run in converged]))
        if converged
        else None,
        "graphs with one beyond 6": sum(run.farthest > 6.0 for run in converged),
        "error over spread": float(np.median(growths)) if growths else None,
        "by spread alone: believed": len(believed) or None,
        "by spread alone: within 2": _share(believed, 2.0),
        "by spread alone: beyond 6": sum(off > 6.0 for off in believed) if believed else None,
    }


def _share(offs: list[float], most: float) -> float | None:
    return float(np.mean([off <= most for off in offs])) if offs else None


def coverage(seeds: int = 25, slow_seeds: int = 6) -> Iterator[Row]:
    """Coverage of samplers' reported errors: overall, by log range and by kind of graph.

    Every seed makes 40 graphs: ten kinds by four log ranges.

    Args:
        seeds: how many for `wmb_is`.
        slow_seeds: how many for `ais` and `gibbs`.
    """
    every = (*runs(range(seeds), QUICK), *runs(range(slow_seeds), SLOW))
    parts: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for name, kind, log_range, runs_of_backend in every:
        for part in ("all", f"log range {log_range:g}", kind):
            parts[part, name].append(runs_of_backend)
    for (part, name), found_runs in parts.items():
        yield {"graphs": part, "sampler": name, **row(found_runs)}
