"""Choice of an algorithm by the predicted cost of a graph: exact, or the tightest bounds.

Counted operations decide how a graph would be solved exactly, so the method and its answer are the
same on every machine. The speed of this machine decides only whether there is time for it, which
`time_limited` in `stats` reports.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
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
from inference.exact.parallel import LOG2_CHUNKED_TABLE
from inference.exact.plans import posterior_of
from inference.exact.prediction import REFERENCE, Prediction, reason_of
from inference.exact.ways import Way
from inference.kernels.preparation import PREPARATION
from inference.memory import memory_size
from inference.posterior import Posterior
from inference.settings import setting
from inference.stop import NEVER, Stop
from inference.thread_team import available_processors, run_in_ranges

_PREPARED_SHARE = 0.4
"""Maximum share of the time for the search of an elimination order, and for one of many runs of
`prepare_beliefs`."""

_CLAMPING_SHARE = 0.1
"""Maximum share of the time for the search for variables to clamp."""

_ALONE = 0.02
"""Maximum share of the time for exact inference without a clock: the walk in log space, which no
prediction foresees, takes some forty times as long as the scaled one at most."""

_BESIDE = 0.25
"""Share of the time from which on exact inference has bounds beside it, predicted or spent."""

_MOST_SHARED = 2.0
"""Maximum number of processors that exact inference is assumed to share its tables among."""

_OVERESTIMATED = 1.25
"""Middle of the ratios of predicted to processor time, which are 1.0 to 1.5."""

_FASTEST = 4.0
"""How many times as fast as the reference processor a machine may be. Counted beyond this multiple
of the time, exact inference is refused without a look at the machine."""


@dataclass(frozen=True)
class Auto(Backend):
    """Exact inference if it fits time and memory, otherwise the tightest bounds.

    Exact inference, by elimination, conditioning or clamping, is used if it is likely to end within
    `seconds`; the answer then equals that of `exact` to the last bit. The prediction counts
    operations by kind and multiplies them by the speed of this machine, which is measured once and
    kept with the compiled kernels (`inference.exact.speed`); it is mostly too large, and large
    tables are shared among processors. If exact inference is predicted to take, or takes, more than
    a quarter of the time, bounds run beside it. If it is likely to end even in one thread, they do
    so for a quarter of the time, and then wait for it. It is stopped when the time is over.

    Otherwise two lanes run concurrently until the time is over. One bounds log Z by the best of
    several algorithms: from above `wmb` with larger and larger tables, `trw` and, for dense binary
    graphs, a quadratic (`inference.variational.quadratic`); from below `cavi` and clamping. The
    other estimates: `lbp`, then `ais` and `wmb_is` planned for the time, then `ijgp`, also given
    each assignment of a few variables (`conditioned ijgp`).

    log Z is the best upper bound. `stats` contain:

    - `upper`, `lower` and their `gap`, and the algorithms that gave them (`upper_by`, `lower_by`);
    - the `estimate` of log Z, its algorithm (`estimate_by`) and its standard error
      (`estimate_standard_error`);
    - the approximation of message passing, which has no error (`bethe`, `bethe_by`);
    - the `reason` why exact inference was not used;
    - `time_limited`, true if the answer depends on the clock, which exact answers do not; if so,
      the source of this machine's speed (`speed`), and the seconds of compiling and measuring that
      the limit excludes (`preparation_seconds`);
    - `missing`, the reasons why any of these are absent, by key.

    Marginals are those with the least estimated error (`marginals_by`, `marginals_reason`); see
    `inference.anytime`. `marginals_error` is an estimate of their root mean square error.

    Attributes:
        seconds: limit of wall time, accurate to within a tenth plus half a second if a processor
            is free; compiling kernels, or loading code from disk, takes additional time.
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
        # Settings are checked here, and not with the first graph.
        _ = self._patient

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
        prepared, stop = PREPARATION.seconds, Stop(self.seconds)
        for posterior in self._solve_each(graph, stop, record):
            # An exact answer and its `stats` are the same in a batch and on every machine.
            if posterior.stats["time_limited"]:
                spent = {"preparation_seconds": PREPARATION.seconds - prepared}
                posterior = replace(posterior, stats={**posterior.stats, **spent})
            yield posterior

    def _solve_each(
        self, graph: FactorGraph, stop: Stop, record: Recorder | None
    ) -> Iterator[Posterior]:
        try:
            way = self._way(graph)
            cost = way.cost_of(graph)
        except TooLargeError as refusal:
            yield from self._bounded(graph, stop, self._lacks(refusal), record)
            return
        seconds, speed = cost.seconds, REFERENCE
        if seconds > _ALONE * self.seconds:
            # Imported here, since most graphs take so little time that no speed matters.
            from inference.exact.speed import speed_for

            measured = speed_for(cost.work)
            seconds, speed = measured.seconds(cost.work), measured.source
        exact = _ExactRun(way, cost, seconds, speed, self)
        if seconds <= _ALONE * self.seconds:
            try:
                posterior = exact(graph, None)
            except TooLargeError as refusal:
                yield from self._bounded(graph, stop, self._lacks(refusal), record)
                return
            if record is not None:
                record("exact", posterior)
            yield posterior
        elif exact.likely_seconds <= stop.remaining:
            part = _BESIDE * stop.remaining
            delay = 0.0 if seconds > _BESIDE * self.seconds else part
            alone = delay + part if seconds <= _OVERESTIMATED * stop.remaining else np.inf
            yield from self._bounded(
                graph, stop, exact.why_stopped, record, exact, delay=delay, alone=alone
            )
        else:
            lack = (
                f"{cost.described} is predicted to take {seconds:.2g} s, of {stop.remaining:.2g} s "
                f"that planning left of {self.seconds:g} s"
            )
            yield from self._bounded(graph, stop, lack, record, speed=speed)

    def _way(self, graph: FactorGraph) -> Way:
        """Return how `exact` would solve a graph, whatever the speed of this machine.

        Raises:
            TooLargeError: if it would take too much memory, or too long on any machine.
        """
        return self._patient.ready(graph)

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
                start = time.perf_counter()
                try:
                    posterior = self.solve(graphs[number])
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

        # Beliefs are computed many times.
        exact = replace(self.exact(), seconds_limit=_PREPARED_SHARE * self.seconds)
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
        reason: str,
        record: Recorder | None = None,
        exact: _ExactRun | None = None,
        delay: float = 0.0,
        alone: float = np.inf,
        speed: str = REFERENCE,
    ) -> Iterator[Posterior]:
        """Yield ever better bounds, beside exact inference if there is time for it."""
        # Imported here, since most graphs are solved exactly and need none of the algorithms. The
        # first time takes a second of a processor, which is not the algorithms'.
        with PREPARATION.counted():
            from inference.anytime import Exactly, improve

        allowed = self.exact().allowance().bytes
        first = None if exact is None else Exactly(exact, round(exact.cost.bytes), delay, alone)
        for posterior in improve(graph, stop, allowed, self.seed, reason, record, first):
            if posterior.answered_by != Exact.name:
                source = speed if exact is None else exact.speed
                stats = {**posterior.stats, "time_limited": True, "speed": source}
                posterior = replace(posterior, stats=stats)
            yield posterior

    def _lacks(self, refusal: TooLargeError) -> str:
        """Return what a refused method would have needed."""
        prediction = refusal.prediction
        if not isinstance(prediction, Prediction):
            return str(refusal)
        allowed = self.exact().lacking_memory(prediction)
        if allowed is not None:
            return f"{prediction.described} needs {memory_size(prediction.bytes)}, but {allowed}"
        return (
            f"{prediction.described} is predicted to take {prediction.seconds:.2g} s on "
            f"{REFERENCE}, of {self.seconds:g} s"
        )

    def exact(self) -> Exact:
        """Return settings of `exact` that refuse the graphs that bounds must answer.

        Its time limit is counted in operations, so that the choice is the same on every machine.
        """
        return self._exact

    @cached_property
    def _patient(self) -> Exact:
        """Settings that leave it to the speed of the machine whether the time suffices."""
        return replace(self._exact, seconds_limit=_FASTEST * self.seconds)

    @cached_property
    def _exact(self) -> Exact:
        # Checking settings takes as long as solving a small graph that has a plan.
        return Exact(
            seed=self.seed,
            memory_limit=self.memory_limit,
            search_seconds=min(Exact.search_seconds, _PREPARED_SHARE * self.seconds),
            clamping_search_seconds=min(
                Exact.clamping_search_seconds, _CLAMPING_SHARE * self.seconds
            ),
            seconds_limit=self.seconds,
        )


@dataclass(frozen=True, eq=False)
class _ExactRun:
    """Exact inference that has been planned.

    Attributes:
        way: the way of solution.
        cost: its cost for the graph.
        seconds: predicted seconds on this machine.
        speed: where its speed is from.
        auto: the settings.
    """

    way: Way
    cost: Prediction
    seconds: float
    speed: str
    auto: Auto

    @property
    def likely_seconds(self) -> float:
        """Likely seconds of wall time, with bounds beside it, if no other process runs."""
        threads = self.auto.exact().thread_count()
        if self.cost.method != "conditioning" and (
            self.cost.log2_largest_table < LOG2_CHUNKED_TABLE
        ):
            threads = 1
        # The bounds have one thread more.
        shared = available_processors() * threads / (threads + 1)
        return self.seconds / (_OVERESTIMATED * min(max(shared, 1.0), _MOST_SHARED))

    def __call__(self, graph: FactorGraph, stop: Stop | None) -> Posterior:
        """Return the exact posterior.

        Raises:
            UnfinishedError: if it was stopped, or its time was over, before its end.
            TooLargeError: if the way turned out not to be one, and no other fits.
        """
        exact = self.auto.exact()
        with nullcontext(NEVER) if stop is None else stop.within() as flag:
            cost, run = self.way.solve(graph, exact.thread_count, flag)
        return _with_stats(posterior_of(graph, cost.stats(exact.seed), run))

    @property
    def why_stopped(self) -> str:
        """Clause for an answer of bounds that came before this one."""
        return (
            f"{self.cost.described} has not ended, and was predicted to take {self.seconds:.2g} s, "
            f"of {self.auto.seconds:g} s"
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
        "bethe": None,
        "bethe_by": None,
        "missing": {},
        "marginals_by": "exact",
        "marginals_reason": "they are exact",
        "marginals_error": 0.0,
        "reason": reason_of(stats["method"], stats["predicted_seconds"]),
        "time_limited": False,
    }
    return Posterior(
        posterior.marginals,
        posterior.log_z,
        posterior.log_z_kind,
        posterior.status,
        with_bounds,
        Auto.name,
    )
