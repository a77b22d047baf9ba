"""Trace of a call of `infer`: results and times of each algorithm, as data frames."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, complete
from inference.evidence import checked_graph, with_observed
from inference.kernels.preparation import PREPARATION
from inference.posterior import LogZKind, Marginals, Posterior

if TYPE_CHECKING:
    import pandas as pd

_CERTAIN_UPPER = (LogZKind.UPPER, LogZKind.EXACT)
_CERTAIN_LOWER = (LogZKind.LOWER, LogZKind.ELBO, LogZKind.EXACT)
_OF_SAMPLERS = frozenset(("effective_sample_size", "certain_upper", "confidence"))
"""Key that only the `stats` of samplers have."""

_ESTIMATES = (LogZKind.EXACT, LogZKind.ESTIMATE)


def certain_bounds(posterior: Posterior) -> tuple[float | None, float | None]:
    """Return the certain lower and upper bound on log Z; None if there is none.

    Bounds of a sampler hold with a probability only, except for the upper bound of its proposal.
    """
    stats, kind = posterior.stats, posterior.log_z_kind
    sampled = not _OF_SAMPLERS.isdisjoint(stats)
    lower = None if sampled else stats.get("lower")
    upper = stats.get("certain_upper") if sampled else stats.get("upper")
    return (
        posterior.log_z if kind in _CERTAIN_LOWER else lower,
        posterior.log_z if kind in _CERTAIN_UPPER else upper,
    )


@dataclass(frozen=True, eq=False)
class TraceStep:
    """The result of one run of an algorithm.

    Attributes:
        algorithm: its name, with the setting that distinguishes it from its other runs.
        seconds: wall time since the call began; all times exclude compilation.
        processor_seconds: processor time of the process since the call began, of all its threads.
        own_seconds: processor time of the run.
        posterior: its result, with the evidence of the graph.
    """

    algorithm: str
    seconds: float
    processor_seconds: float
    own_seconds: float
    posterior: Posterior


@dataclass(frozen=True, eq=False)
class Trace:
    """The results of all algorithms in one call, in the order in which they ended.

    Attributes:
        steps: the runs.
    """

    steps: tuple[TraceStep, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return the runs, one per row.

        Columns: `step` (from 0), `algorithm`, `seconds`, `processor_seconds`, `own_seconds`,
        `lower` and `upper` (its certain bounds on log Z), `estimate` and `error` (its estimate of
        log Z and the standard error; 0 for exact inference), `bethe` (message passing's
        approximation of log Z, without an error), `best_lower` and `best_upper` (of all runs so
        far), `status`. Values that an algorithm does not give are NaN.
        """
        import pandas as pd

        rows = []
        best_lower, best_upper = -np.inf, np.inf
        for number, step in enumerate(self.steps):
            posterior = step.posterior
            lower, upper = certain_bounds(posterior)
            best_lower = max(best_lower, -np.inf if lower is None else lower)
            best_upper = min(best_upper, np.inf if upper is None else upper)
            kind = posterior.log_z_kind
            estimated = kind in _ESTIMATES
            exact = kind is LogZKind.EXACT
            error = 0.0 if exact else posterior.stats.get("log_z_standard_error")
            rows.append(
                {
                    "step": number,
                    "algorithm": step.algorithm,
                    "seconds": step.seconds,
                    "processor_seconds": step.processor_seconds,
                    "own_seconds": step.own_seconds,
                    "lower": lower,
                    "upper": upper,
                    "estimate": posterior.log_z if estimated else None,
                    "error": error if estimated else None,
                    "bethe": posterior.log_z if kind is LogZKind.BETHE else None,
                    "best_lower": best_lower,
                    "best_upper": best_upper,
                    "status": str(posterior.status),
                }
            )
        frame = pd.DataFrame(rows, columns=list(_COLUMNS))
        numbers = ["lower", "upper", "estimate", "error", "bethe", "best_lower", "best_upper"]
        return frame.astype(dict.fromkeys(numbers, float))

    def marginals_frame(self) -> pd.DataFrame:
        """Return the marginals of each run, a row for each variable and state.

        Columns: `step`, `algorithm`, `processor_seconds`, `variable`, `state` (its number), `p`.
        """
        import pandas as pd

        parts = []
        for number, step in enumerate(self.steps):
            marginals = step.posterior.marginals
            counts = np.diff(marginals.starts)
            parts.append(
                pd.DataFrame(
                    {
                        "step": number,
                        "algorithm": step.algorithm,
                        "processor_seconds": step.processor_seconds,
                        "variable": np.repeat(np.array(marginals.names, dtype=object), counts),
                        "state": np.concatenate([np.arange(n) for n in counts] or [counts]),
                        "p": marginals.flat,
                    }
                )
            )
        if not parts:
            return pd.DataFrame(columns=[*_COLUMNS[:2], "processor_seconds", "variable", "p"])
        return pd.concat(parts, ignore_index=True)


_COLUMNS = (
    *("step", "algorithm", "seconds", "processor_seconds", "own_seconds", "lower", "upper"),
    *("estimate", "error", "bethe", "best_lower", "best_upper", "status"),
)


def _wall_clock() -> float:
    return time.perf_counter() - PREPARATION.seconds


@dataclass(eq=False)
class TraceRecorder:
    """Recorder of the results of a call's algorithms, in several threads.

    Attributes:
        graph: the graph, with its evidence.
    """

    graph: FactorGraph
    _steps: list[TraceStep] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _wall: float = field(default_factory=_wall_clock)
    _processor: float = field(default_factory=PREPARATION.process_clock)

    def __call__(self, algorithm: str, posterior: Posterior, seconds: float | None = None) -> None:
        """Record a posterior of the graph without its evidence."""
        marginals = posterior.marginals
        if len(marginals.flat) != int(self.graph.cardinalities.sum()):
            marginals = with_observed(self.graph, marginals)
        whole = Posterior(
            Marginals.of(self.graph, marginals.flat),
            posterior.log_z,
            posterior.log_z_kind,
            posterior.status,
            posterior.stats,
            posterior.backend,
        )
        wall = _wall_clock() - self._wall
        processor = PREPARATION.process_clock() - self._processor
        with self._lock:
            measured = processor if seconds is None else seconds
            self._steps.append(TraceStep(algorithm, wall, processor, measured, whole))

    def trace(self) -> Trace:
        """Return the trace so far."""
        with self._lock:
            return Trace(tuple(sorted(self._steps, key=lambda step: step.processor_seconds)))


def traced(backend: Backend, graph: FactorGraph) -> Posterior:
    """Return the result of `backend.infer`, with the `Trace` of its algorithms in `stats`.

    Raises:
        InputError, InferenceError: as in `Backend.infer`.
    """
    recorder = TraceRecorder(checked_graph(graph))
    start = time.perf_counter()
    absorbed = graph.absorb_evidence()
    solved = backend.solve_traced(absorbed, recorder)
    return with_trace(complete(graph, solved, backend.name, start), recorder)


def with_trace(posterior: Posterior, recorder: TraceRecorder) -> Posterior:
    """Return the posterior with the recorded trace as `trace` of its `stats`."""
    return replace(posterior, stats={**posterior.stats, "trace": recorder.trace()})
