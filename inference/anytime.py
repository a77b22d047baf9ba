"""Bounds on log Z that tighten while there is time, and marginals from whatever gives the best.

Marginals are chosen by what can be known of their errors:

- `ais`, where it has converged, is nearly without bias, and its standard errors say how far off it
  is. So the mean square of the difference between its marginals and those of any other algorithm,
  less the mean square of its standard errors, estimates that algorithm's mean square error. The
  smallest is taken; that of `ais` itself is the mean square of its standard errors.
- Otherwise message passing is believed if it has converged and its estimate of log Z lies between
  the bounds, which are certain. The largest clusters count, since there it is closest to exact.
- Otherwise the marginals are those of the tightest upper bound, its gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import InferenceError, ZeroPartitionError
from inference.messages.lbp import LoopyBeliefPropagation
from inference.messages.trw import TreeReweighted
from inference.mini_buckets.clamping import clamped_bound
from inference.mini_buckets.ijgp import JoinGraphPropagation
from inference.mini_buckets.wmb import WeightedMiniBuckets
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.sampling.annealing import AnnealedImportance
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

_FOREST_SECONDS = 5e-6
"""About what the first bound of `trw` takes for an entry of a table."""

_DAMPING = 0.5
"""Of join graphs: where they settle, they do so with this damping too."""

_TOLERANCE = 1e-6
"""Of messages, which is far below what they err."""

_SHARES_OF_AIS = {1: 0.3, 5: 0.6}
"""Shares of the time left by round: once bounds of small tables are there, and of large ones."""

_SLACK = 1e-6
"""What an estimate of log Z may be off the bounds, relative to them: rounding is much smaller."""


@dataclass(frozen=True, eq=False)
class _Choice:
    """Whose marginals are the answer, and why."""

    name: str
    posterior: Posterior
    reason: str
    error: float | None = None
    """Estimate of the root mean square error; None where nothing is known."""


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
    at_largest_clusters: bool = False
    runs: int = 0
    estimates: dict[str, Posterior] = field(default_factory=dict)
    """Marginals by algorithm, of message passing in order of the size of its clusters."""

    sampled: Posterior | None = None

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

    def consider(self, name: str, posterior: Posterior) -> bool:
        """Take what bounds nothing; return whether it changes whose marginals are the answer."""
        self.runs += 1
        if posterior.log_z_kind is LogZKind.EXACT:
            return self.take(name, posterior)
        before = self.choice().posterior if self.posterior else None
        if name == "ais":
            if not self.sampled_well:
                self.sampled = posterior
        else:
            if posterior.stats.get("i_bound", np.inf) < _i_bound(name):
                self.at_largest_clusters = True
            self.estimates[name] = posterior
        return self.posterior is not None and self.choice().posterior is not before

    @property
    def sampled_well(self) -> bool:
        """Whether there are samples that have converged."""
        return self.sampled is not None and self.sampled.status is Status.CONVERGED

    def choice(self) -> _Choice:
        """Whose marginals are the answer: see the module.

        Raises:
            InferenceError: if there is no bound yet.
        """
        if self.posterior is None:
            raise InferenceError("no bound was found in the time that was given; give more seconds")
        bound = _Choice(self.upper_by, self.posterior, "they are the gradient of the upper bound")
        if not self.upper_by:
            bound = _Choice(self.lower_by, self.posterior, "they are what there is yet")
        if self.posterior.status is Status.EXACT:
            return replace(bound, reason="they are exact", error=0.0)
        if self.sampled is not None and self.sampled_well:
            return self._nearest_to(self.sampled, bound)
        slack = _SLACK * max(1.0, abs(self.upper))
        for name, posterior in reversed(self.estimates.items()):
            log_z = posterior.log_z
            if (
                log_z is not None
                and posterior.status is Status.CONVERGED
                and self.lower - slack <= log_z <= self.upper + slack
            ):
                why = "it converged, and its estimate of log Z lies between the bounds"
                return _Choice(name, posterior, why)
        return bound

    def _nearest_to(self, sampled: Posterior, bound: _Choice) -> _Choice:
        """Of all marginals those of the least mean square error, as `ais` says.

        What `ais` cannot tell from no error is given the error of what it tells.
        """
        errors = sampled.stats["standard_errors"].values()
        # A state that is certain has no error.
        variance = sum(float(own @ own) for own in errors) / len(sampled.marginals.flat)
        why = "they have the least mean square error that 'ais' estimates"
        chosen, least = _Choice("ais", sampled, why), variance
        others = {bound.name: bound.posterior, **self.estimates}
        if self.lower_posterior is not None:
            others[self.lower_by] = self.lower_posterior
        for name, posterior in others.items():
            off = posterior.marginals.flat - sampled.marginals.flat
            error = float(np.mean(off**2)) - variance
            if error < least:
                chosen, least = _Choice(name, posterior, why), error
        # What is nearer than its noise is not known to be nearer than that.
        return replace(chosen, error=float(np.sqrt(max(least, _noise(sampled)))))

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
        """The posterior with both bounds, and the marginals that are chosen.

        Raises:
            InferenceError: if there is no bound yet.
        """
        choice = self.choice()
        posterior = self.posterior or choice.posterior
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
            "marginals_by": choice.name,
            "marginals_reason": choice.reason,
            "marginals_error": choice.error,
            "reason": reason,
            "runs": self.runs,
        }
        if self.sampled is not None and self.sampled_well:
            stats |= {
                "estimate": self.sampled.log_z,
                "estimate_standard_error": self.sampled.stats["log_z_standard_error"],
            }
        return replace(
            posterior,
            marginals=choice.posterior.marginals,
            log_z=self.upper,
            log_z_kind=LogZKind.EXACT if exact else LogZKind.UPPER,
            status=status,
            stats=stats,
        )


def _noise(sampled: Posterior) -> float:
    """Standard error of a mean square error over states that draws estimate.

    An estimate is the mean square of differences less the variance of the draws. Errors of the
    states of one variable go together, those of variables are taken as independent and normal; the
    variance is itself estimated from groups, with a degree of freedom less than there are.
    """
    errors = sampled.stats["standard_errors"].values()
    squares = np.array([float(own @ own) for own in errors])
    freedom = max(float(sampled.stats.get("groups", np.inf)) - 1.0, 1.0)
    return float(np.sqrt((2.0 + 2.0 / freedom) * (squares @ squares))) / len(sampled.marginals.flat)


def improve(
    graph: FactorGraph, stop: Stop, memory_limit: int, seed: int, reason: str
) -> Iterator[Posterior]:
    """Yield a posterior whenever a bound is tightened or other marginals are better.

    It ends when the time or the means are used up.

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
            for name, share, run in _round(graph, memory_limit, seed, number, best, stop):
                if stop.over and best.posterior is not None:
                    break
                try:
                    posterior = _stoppable(run, graph, stop, share)
                except ZeroPartitionError:
                    raise
                except InferenceError as error:
                    failed = error
                    continue
                if name.startswith(_ESTIMATES):
                    if best.consider(name, posterior):
                        yield best.answer(stop, reason)
                elif best.take(name, posterior):
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
    graph: FactorGraph, memory_limit: int, seed: int, number: int, best: _Best, stop: Stop
) -> Iterator[tuple[str, float, _Run]]:
    """Yield what runs in a round: its name, its share of the time left, and itself."""
    yield (
        "cavi",
        0.1,
        CoordinateAscent(seed=seed + number, restarts=4 if number else 1).solve_until,
    )
    least = _FOREST_SECONDS * len(graph.log_values)
    if (number in (0, 2) or number > _LARGEST_ROUND) and least < 0.5 * stop.remaining:
        reweighted = TreeReweighted(weight_updates=_MOST_UPDATES, seed=seed + number)
        yield "trw", 0.1 if number == 0 else 0.2, reweighted.solve_until
    if not number:
        yield "lbp", 0.1, LoopyBeliefPropagation(tolerance=_TOLERANCE, seed=seed).solve_until
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
    i_bound = min(2 + 2 * number, _LARGEST_I_BOUND)
    if not best.at_largest_clusters and number <= _LARGEST_ROUND:
        clusters = JoinGraphPropagation(
            i_bound=i_bound,
            damping=_DAMPING,
            tolerance=_TOLERANCE,
            seed=seed,
            memory_limit=memory_limit,
        )
        yield f"ijgp(i_bound={i_bound})", 0.1, clusters.solve_until
    if number in _SHARES_OF_AIS and not best.sampled_well:
        # The first may be too short for its groups to agree; the other has what is left over.
        particles = AnnealedImportance(
            particles=32 if number == min(_SHARES_OF_AIS) else 64,
            seed=seed + number,
            memory_limit=memory_limit,
        )
        yield "ais", _SHARES_OF_AIS[number], particles.solve_until


_ESTIMATES = ("lbp", "ijgp", "ais")


def _i_bound(name: str) -> float:
    """The i-bound in the name of what runs; 0 where there is none."""
    return float(name.rpartition("=")[2].rstrip(")")) if name.startswith("ijgp") else 0.0


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
