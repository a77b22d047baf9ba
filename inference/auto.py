"""Choice of an algorithm by the predicted cost of a graph: exact, or the tightest bounds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import FactormodelsError
from factormodels.factor_graph import FactorGraph
from inference.backend import (
    Backend,
    BeliefFunction,
    PredictedCost,
    Recorder,
    Result,
    TooLargeError,
)
from inference.evidence import checked_graph, with_observed
from inference.exact.backend import Exact
from inference.exact.prediction import Prediction, reason_of
from inference.memory import memory_size
from inference.posterior import Posterior
from inference.settings import setting
from inference.stop import Stop
from inference.thread_team import run_in_ranges

_EXACT_SHARE = 0.4
"""Maximum shares of the time for the predicted cost of exact inference and for the search of its
order, since predictions are rough."""


@dataclass(frozen=True)
class Auto(Backend):
    """Exact inference if it fits time and memory, otherwise the tightest bounds.

    Exact inference, by elimination or conditioning, is used if it is predicted to take at most two
    fifths of `seconds`, which is 2 s by default. The prediction counts operations at a measured
    rate of 2.5 ns each, so that every run makes the same choice; the answer then equals that of
    `exact` to the last bit.

    Otherwise two lanes run concurrently until the time is over. One bounds log Z by the best of
    several algorithms: from above `wmb` with larger and larger tables, `trw` and, for dense binary
    graphs, a quadratic (`inference.variational.quadratic`); from below `cavi` and clamping. The
    other estimates: `lbp`, then `ais` and `wmb_is` planned for the time, then `ijgp`.

    log Z is the best upper bound. `stats` hold `upper`, `lower` and their `gap`, and the algorithms
    that gave them (`upper_by`, `lower_by`); the `estimate` of log Z, its algorithm (`estimate_by`)
    and its standard error (`estimate_standard_error`); why exact inference was not used (`reason`);
    and in `missing`, by key, why any of these is absent.

    Marginals are those with the least estimated error (`marginals_by`, `marginals_reason`); see
    `inference.anytime`. `marginals_error` is an estimate of their root mean square error.

    Attributes:
        seconds: limit of wall time, accurate to within a tenth plus half a second; compiling
            kernels, or loading them from disk, takes additional time.
        memory_limit: bytes that tables may take; None: three quarters of the available memory.
        seed: seed of all random numbers.
    """

    name: ClassVar[str] = "auto"
    identical_batches: ClassVar[bool] = True

    seconds: float = setting(5.0, above=0.0)
    memory_limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.exact()

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the posterior of a graph without evidence, exact or bounded.

        An interrupt returns the best bounds so far, with status interrupted.

        Raises:
            TooLargeError: if a single factor is too large for a table.
            ZeroPartitionError: if no assignment has positive potential.
        """
        *_, last = self.solve_each(graph)
        return last

    def solve_traced(self, graph: FactorGraph, record: Recorder) -> Posterior:
        """Return the result of `solve`; call `record` with the result of each algorithm."""
        *_, last = self.solve_each(graph, record)
        return last

    def solve_each(self, graph: FactorGraph, record: Recorder | None = None) -> Iterator[Posterior]:
        """Yield the result that `solve` would return now, whenever it has improved.

        Args:
            graph: a graph without evidence.
            record: called with each algorithm's result when it ends.
        """
        stop = Stop(self.seconds)
        try:
            posterior = self.exact().solve(graph)
        except TooLargeError as refusal:
            yield from self._bounded(graph, stop, refusal, record)
        else:
            if record is not None:
                record("exact", posterior)
            yield _with_stats(posterior)

    def is_ready(self, graphs: Sequence[FactorGraph]) -> bool:
        """Return whether `exact` answers these graphs in milliseconds without loading code."""
        return self.exact().is_ready(graphs)

    def solve_batch(self, graphs: Sequence[FactorGraph], threads: int = 1) -> list[Result]:
        """Return the posterior of each graph, or its error; exact ones are solved first."""
        results = self.exact().solve_batch(graphs, threads)
        wide: list[int] = []
        for number, result in enumerate(results):
            if isinstance(result, Posterior):
                results[number] = _with_stats(result)
            elif isinstance(result, TooLargeError):
                wide.append(number)

        def run(first: int, last: int) -> None:
            for number in wide[first:last]:
                start, refusal = time.perf_counter(), results[number]
                try:
                    *_, posterior = self._bounded(graphs[number], Stop(self.seconds), refusal)
                except FactormodelsError as error:
                    results[number] = error
                else:
                    stats = {**posterior.stats, "seconds": time.perf_counter() - start}
                    results[number] = replace(posterior, stats=stats)

        run_in_ranges(run, len(wide), threads, at_once=True)
        return results

    def solve_settings(
        self, graph: FactorGraph, log_values: NDArray[np.float64], threads: int = 1
    ) -> list[Result]:
        """Return posteriors of a graph under many log tables, planned once if exact."""
        return self.solve_batch([graph.with_log_values(row) for row in log_values], threads)

    def prepare_beliefs(self, graph: FactorGraph) -> BeliefFunction | None:
        """Return factor beliefs as a function of the log tables: of `exact`, or of `lbp` for wide
        graphs.

        Tightened bounds have no beliefs that are the derivative of their log Z.
        """
        from inference.messages.lbp import LoopyBeliefPropagation

        exact = self.exact()
        try:
            exact.cluster_plan(graph)
        except TooLargeError:
            return LoopyBeliefPropagation(seed=self.seed).prepare_beliefs(graph)
        return exact.prepare_beliefs(graph)

    def infer_each(self, graph: FactorGraph, record: Recorder | None = None) -> Iterator[Posterior]:
        """Yield the result that `infer` would return now, whenever it has improved.

        Args:
            graph: the graph.
            record: called with each algorithm's result for the graph without its evidence.
        """
        start = time.perf_counter()
        absorbed = checked_graph(graph).absorb_evidence()
        for posterior in self.solve_each(absorbed, record):
            marginals = posterior.marginals
            if absorbed is not graph:
                marginals = with_observed(graph, marginals)
            stats = {**posterior.stats, "seconds": time.perf_counter() - start}
            yield replace(posterior, marginals=marginals, stats=stats, backend=self.name)

    def predict(self, graph: FactorGraph) -> PredictedCost:
        """Return the predicted cost of exact inference; if it does not fit, the limits."""
        exact = self.exact()
        prediction = exact.predict(graph)
        if exact.refuses(prediction):
            return PredictedCost(self.seconds, self.memory_limit)
        return prediction

    def _bounded(
        self,
        graph: FactorGraph,
        stop: Stop,
        refusal: Result | TooLargeError,
        record: Recorder | None = None,
    ) -> Iterator[Posterior]:
        """Yield ever better bounds for a graph that exact inference refused."""
        # Imported here, since most graphs are solved exactly and need none of the algorithms.
        from inference.anytime import improve

        allowed = self.exact().allowance()
        prediction = getattr(refusal, "prediction", None)
        reason = str(refusal)
        if isinstance(prediction, Prediction):
            lack = (
                f"about {prediction.seconds:.2g} s, of {self.seconds:g} s for everything"
                if prediction.bytes <= allowed.bytes
                else f"{memory_size(prediction.bytes)}, but {allowed}"
            )
            reason = f"exact inference, of induced width {prediction.induced_width}, needs {lack}"
        yield from improve(graph, stop, allowed.bytes, self.seed, reason, record)

    def exact(self) -> Exact:
        """Settings of `exact` that refuse graphs to be answered by bounds."""
        limit = _EXACT_SHARE * self.seconds
        return Exact(
            seed=self.seed,
            memory_limit=self.memory_limit,
            search_seconds=min(Exact.search_seconds, limit),
            seconds_limit=limit,
        )


def _with_stats(posterior: Posterior) -> Posterior:
    """Return an exact posterior with the `stats` that `auto` reports for every answer."""
    stats = posterior.stats
    with_bounds = {
        **stats,
        "upper": posterior.log_z,
        "lower": posterior.log_z,
        "gap": 0.0,
        "upper_by": "exact",
        "lower_by": "exact",
        "estimate": posterior.log_z,
        "estimate_by": "exact",
        "estimate_standard_error": 0.0,
        "missing": {},
        "marginals_by": "exact",
        "marginals_reason": "they are exact",
        "marginals_error": 0.0,
        "reason": reason_of(stats["method"], stats["predicted_seconds"]),
    }
    return Posterior(
        posterior.marginals,
        posterior.log_z,
        posterior.log_z_kind,
        posterior.status,
        with_bounds,
        Auto.name,
    )
