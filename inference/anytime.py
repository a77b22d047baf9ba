"""Bounds on log Z that tighten while there is time, from whatever gives the best."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import InferenceError, ZeroPartitionError
from inference.messages.trw import TreeReweighted
from inference.mini_buckets.clamping import clamped_bound
from inference.mini_buckets.wmb import WeightedMiniBuckets
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.stop import Stop
from inference.variational.cavi import CoordinateAscent

_CLOSED = 1e-9
"""Relative gap at which nothing is left to gain: rounding is of that size."""

_ROUNDS = 40
_FIRST_LOG2_TABLE = 6
_LARGEST_ROUND = 7
"""Tables have 2**26 entries then: later rounds have other seeds alone."""

_LARGEST_I_BOUND = 26
_MOST_UPDATES = 1000


@dataclass
class _Best:
    """The tightest bounds so far, and whose they are."""

    upper: float = np.inf
    lower: float = -np.inf
    upper_by: str = ""
    lower_by: str = ""
    posterior: Posterior | None = None
    lower_posterior: Posterior | None = None
    at_largest_tables: bool = False
    runs: int = 0

    def take(self, name: str, posterior: Posterior) -> bool:
        """Take a posterior's bounds; return whether one is tighter than before."""
        if "table_limit" in posterior.stats and not name.endswith(
            f"={posterior.stats['table_limit']})"
        ):
            self.at_largest_tables = True
        kind, log_z = posterior.log_z_kind, posterior.log_z
        upper, lower = posterior.stats.get("upper"), posterior.stats.get("lower")
        if kind in (LogZKind.UPPER, LogZKind.EXACT):
            upper = log_z
        if kind in (LogZKind.LOWER, LogZKind.ELBO, LogZKind.EXACT):
            lower = log_z
        tighter = False
        if upper is not None and upper < self.upper:
            self.upper, self.upper_by, tighter = upper, name, True
            self.posterior = posterior
        if lower is not None and lower > self.lower:
            self.lower, self.lower_by, tighter = lower, name, True
            self.lower_posterior = posterior
        if self.posterior is None:
            self.posterior = posterior
        self.runs += 1
        return tighter

    def mode(self, graph: FactorGraph) -> NDArray[np.int64] | None:
        """Most probable states by what gave the lower bound; None where they are impossible."""
        if self.lower_posterior is None:
            return None
        states = np.array([np.argmax(p) for p in self.lower_posterior.marginals.values()])
        return states if graph.log_potential(states) > -np.inf else None

    @property
    def closed(self) -> bool:
        """Whether nothing is left to gain."""
        exact = self.posterior is not None and self.posterior.status is Status.EXACT
        gap = self.upper - self.lower
        return exact or (gap < np.inf and gap <= _CLOSED * max(1.0, abs(self.upper)))

    def answer(self, stop: Stop, reason: str) -> Posterior:
        """The posterior with both bounds; its marginals are those of the tightest upper one."""
        if self.posterior is None:
            raise InferenceError("no bound was found in the time that was given; give more seconds")
        posterior = self.posterior
        exact = posterior.status is Status.EXACT
        status = posterior.status
        if not exact and stop.interrupted:
            status = Status.INTERRUPTED
        stats = {
            **posterior.stats,
            "upper": self.upper,
            "lower": self.lower,
            # Where the two coincide, both are rounded.
            "gap": max(self.upper - self.lower, 0.0),
            "upper_by": self.upper_by,
            "lower_by": self.lower_by,
            "chosen": self.upper_by,
            "reason": reason,
            "runs": self.runs,
        }
        kind = LogZKind.EXACT if exact else LogZKind.UPPER
        return replace(posterior, log_z=self.upper, log_z_kind=kind, status=status, stats=stats)


def improve(
    graph: FactorGraph, stop: Stop, memory_limit: int, seed: int, reason: str
) -> Iterator[Posterior]:
    """Yield a posterior whenever a bound is tightened, until the time or the means are used up.

    Rounds go through the algorithms, each round with larger tables and other starts. An interrupt
    of the main thread ends what runs, and the best so far comes last.

    Args:
        graph: a graph without evidence.
        stop: the time.
        memory_limit: bytes that tables may take.
        seed: seed of everything random.
        reason: why exact elimination is not used, for `stats`.

    Raises:
        ZeroPartitionError: if no assignment has positive potential.
        InferenceError: if nothing gave a bound.
    """
    best = _Best()
    failed: InferenceError | None = None
    try:
        for number in range(_ROUNDS):
            gained = False
            for name, share, run in _round(graph, memory_limit, seed, number, best):
                if stop.over and best.posterior is not None:
                    break
                try:
                    posterior = _stoppable(run, graph, stop, share)
                except ZeroPartitionError:
                    raise
                except InferenceError as error:
                    failed = error
                    continue
                if best.take(name, posterior):
                    gained = True
                    yield best.answer(stop, reason)
                if best.closed:
                    return
            if stop.over or (number > _LARGEST_ROUND and not gained):
                break
    except KeyboardInterrupt:
        stop.interrupt()
        if best.posterior is None:
            raise
    if best.posterior is None and failed is not None:
        raise failed
    if stop.interrupted or best.posterior is None:
        yield best.answer(stop, reason)


_Run = Callable[[FactorGraph, Stop], Posterior]


def _round(
    graph: FactorGraph, memory_limit: int, seed: int, number: int, best: _Best
) -> Iterator[tuple[str, float, _Run]]:
    """Yield what runs in a round: its name, its share of the time left, and itself."""
    yield (
        "cavi",
        0.1,
        CoordinateAscent(seed=seed + number, restarts=4 if number else 1).solve_until,
    )
    if number in (0, 2) or number > _LARGEST_ROUND:
        reweighted = TreeReweighted(weight_updates=_MOST_UPDATES, seed=seed + number)
        yield "trw", 0.1 if number == 0 else 0.2, reweighted.solve_until
    table = 2 ** min(_FIRST_LOG2_TABLE + 3 * number, _LARGEST_I_BOUND)
    if not best.at_largest_tables:
        buckets = WeightedMiniBuckets(
            i_bound=_LARGEST_I_BOUND,
            table_limit=table,
            memory_limit=memory_limit,
            clampings=0,
            # A lower bound that another algorithm beat is not worth half of the time.
            gap=number == 0 or best.lower_by.startswith("wmb"),
            seed=seed,
        )
        yield f"wmb(table_limit={table})", 0.6, buckets.solve_until
    room = max(memory_limit // (16 * max(graph.n_variables, 1)), 1)
    clamping = _Clamping(min(2 ** min(14 + number, 22), room), seed + number, best.mode(graph))
    if number == 0 or (number % 3 == 0 and best.lower_by.startswith("clamping")):
        yield f"clamping(table_limit={clamping.table_limit})", 0.15, clamping.solve_until


@dataclass(frozen=True)
class _Clamping:
    """A lower bound by clamping, as one of the algorithms."""

    table_limit: int
    seed: int
    start: NDArray[np.int64] | None

    def solve_until(self, graph: FactorGraph, stop: Stop) -> Posterior:
        found = clamped_bound(graph, self.table_limit, 2**40, self.seed, stop, self.start)
        return Posterior(
            marginals=Marginals(graph.names, graph.cardinalities, found.marginals, graph.index),
            log_z=found.log_z,
            log_z_kind=LogZKind.LOWER,
            status=Status.NOT_CONVERGED,
            stats={"clamped": found.clamped, "assignments": found.assignments},
        )


def _stoppable(run: _Run, graph: FactorGraph, stop: Stop, share: float) -> Posterior:
    """What a run returns; an interrupt of the main thread makes it return early."""
    part = stop.part(share * stop.remaining)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run, graph, part)
        try:
            return future.result()
        except KeyboardInterrupt:
            # What runs looks the wish up, and gives the best that it has.
            stop.interrupt()
            return future.result()
