"""A portfolio against the clock: bounds on log Z that tighten, an estimate of it, and marginals.

Two lanes run side by side. One bounds log Z, with larger and larger tables; the other estimates:
message passing first, then samplers, each planned to the time that it gets. `_Best` keeps what is
best of all of them.

Marginals are chosen by what is measured of their errors:

- A sampler whose groups agree is nearly without bias, and the spread of its draws says how far off
  it is, unless they all miss the same. So the mean square of the difference between its marginals
  and those of any other algorithm, less the mean square of its errors by that spread, estimates
  that algorithm's mean square error. The smallest is taken; that of the sampler itself is the mean
  square of its own errors.
- Bounds that nearly meet say how far off the distribution is that gave the lower one: mean field
  by Pinsker's inequality, a sum over some assignments by what it leaves out.
- Without either, errors are not known. Then those marginals are taken that are nearest to those of
  the other algorithms: one that went astray is far from all. Message passing whose log Z lies
  outside the bounds, which are certain, does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from threading import Event, Lock, Thread

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import InferenceError, Recorder, ZeroPartitionError
from inference.kernels.preparation import PREPARATION
from inference.messages.lbp import LoopyBeliefPropagation
from inference.messages.trw import TreeReweighted
from inference.mini_buckets.clamping import clamped_bound
from inference.mini_buckets.ijgp import JoinGraphPropagation
from inference.mini_buckets.wmb import WeightedMiniBuckets, coarse_bound
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.sampling.annealing import AnnealedImportance
from inference.sampling.importance import MiniBucketSampling
from inference.stop import Stop
from inference.variational.cavi import CoordinateAscent
from inference.variational.quadratic import QuadraticBound

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

_SLACK = 1e-6
"""What an estimate of log Z may be off the bounds, relative to them: rounding is much smaller."""

_STANDARD_ERRORS = 5.0
"""By how many an estimate may lie outside the bounds: farther out it is not believed."""

_LOOK_SECONDS = 0.2
"""How often it is looked whether the lanes have ended."""

_SAMPLERS = ("ais", "wmb_is")
_MESSAGES = ("lbp", "ijgp")

_LATE = "did not end in the time"

_EFFECTIVE = 40.0
"""Effective draws below which a spread says nothing: what none of them saw is not in it."""

_AGREE = 1.0
"""Standard error of log Z up to which a sampler's marginals tell the errors of others'."""

_CERTAIN = 0.01
"""Root mean square error that bounds certify, below which nothing else is asked."""


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
    """The tightest bounds so far, and what else was found."""

    upper: float = np.inf
    lower: float = -np.inf
    upper_by: str = ""
    lower_by: str = ""
    posterior: Posterior | None = None
    lower_posterior: Posterior | None = None
    at_largest_tables: bool = False
    at_largest_clusters: bool = False
    runs: int = 0
    messages: dict[str, Posterior] = field(default_factory=dict)
    samples: dict[str, Posterior] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """Why an algorithm gave nothing, by its name."""

    def take(self, name: str, posterior: Posterior) -> bool:
        """Take what an algorithm found; return whether a bound is tighter or an estimate new."""
        self.runs += 1
        stats = posterior.stats
        if stats.get("table_limit", name) != name and not name.endswith(
            f"={stats['table_limit']})"
        ):
            self.at_largest_tables = True
        if stats.get("i_bound", np.inf) < _i_bound(name):
            self.at_largest_clusters = True
        kind = posterior.log_z_kind
        sampled = name.startswith(_SAMPLERS)
        # What samples bound holds with a probability alone, but for one of them.
        upper, lower = stats.get("certain_upper"), None
        if not sampled:
            upper, lower = stats.get("upper"), stats.get("lower")
        if kind in (LogZKind.UPPER, LogZKind.EXACT):
            upper = posterior.log_z
        if kind in (LogZKind.LOWER, LogZKind.ELBO, LogZKind.EXACT):
            lower = posterior.log_z
        new = False
        if upper is not None and upper < self.upper:
            self.upper, self.upper_by, new = upper, name, True
            if not sampled or kind is LogZKind.EXACT:
                self.posterior = posterior
        if lower is not None and lower > self.lower:
            self.lower, self.lower_by, new = lower, name, True
            if not sampled or kind is LogZKind.EXACT:
                self.lower_posterior = posterior
        family = name.partition("(")[0]
        if kind is LogZKind.EXACT:
            self.posterior = posterior
        elif family in _MESSAGES:
            # Of join graphs those of the largest clusters, unless they alone have not settled.
            before = self.messages.get(family)
            if before is None or _settled(posterior) or not _settled(before):
                self.messages[family], new = posterior, True
        elif sampled and kind is LogZKind.ESTIMATE:
            before = self.samples.get(family)
            if before is None or _log_z_error(posterior) < _log_z_error(before):
                self.samples[family], new = posterior, True
        elif sampled:
            self.failures[family] = "had no time for enough draws that end in a possible state"
        return new

    def estimate(self) -> tuple[str, Posterior] | None:
        """Whose estimate of log Z is best, and it; None where there is none.

        Samples whose groups agree are; then message passing that settled, of larger clusters first;
        then whatever lies between the bounds.
        """
        sampled = [
            (name, posterior)
            for name, posterior in self.samples.items()
            if _log_z_error(posterior) < np.inf and self._within(posterior)
        ]
        if sampled:
            return min(sampled, key=lambda named: _log_z_error(named[1]))
        for name in reversed(_MESSAGES):
            posterior = self.messages.get(name)
            if posterior is not None and _settled(posterior) and self._within(posterior):
                return name, posterior
        rest = (*self.samples.items(), *self.messages.items())
        return next((named for named in rest if self._within(named[1])), None)

    def _within(self, posterior: Posterior) -> bool:
        """Whether an estimate of log Z lies between the bounds, or near them by its own error."""
        if posterior.log_z is None:
            return False
        slack = _SLACK * max(1.0, abs(posterior.log_z))
        error = _spread(posterior)
        slack += _STANDARD_ERRORS * error if error < np.inf else 0.0
        return self.lower - slack <= posterior.log_z <= self.upper + slack

    def choice(self) -> _Choice:
        """Whose marginals are the answer: see the module.

        Raises:
            InferenceError: if nothing was found yet.
        """
        if self.posterior is not None and self.posterior.status is Status.EXACT:
            return _Choice(self.upper_by, self.posterior, "they are exact", 0.0)
        candidates = {
            name: posterior
            for name, posterior in (*self.messages.items(), *self.samples.items())
            if self._within(posterior)
        }
        if self.posterior is not None:
            candidates[self.upper_by] = self.posterior
        if self.lower_posterior is not None:
            candidates[self.lower_by] = self.lower_posterior
        if not candidates:
            raise InferenceError("no marginals were found in the time; give more seconds")
        certain = self._certain_error()
        if certain is not None and certain <= _CERTAIN:
            why = "the bounds certify that their error is no larger"
            return _Choice(self.lower_by, candidates[self.lower_by], why, certain)
        best = self.estimate()
        if best is not None and best[0] in _SAMPLERS and _spread(best[1]) <= _AGREE:
            return _nearest_to(best[0], best[1], candidates)
        return _most_central(candidates, self.lower_by)

    def _certain_error(self) -> float | None:
        """Largest error of a probability by what gave the lower bound; None: not known."""
        gap = max(self.upper - self.lower, 0.0)
        if self.lower_posterior is None or gap == np.inf:
            return None
        if self.lower_posterior.log_z_kind is LogZKind.ELBO:
            # The gap is at least the divergence KL(q || p).
            return float(np.sqrt(0.5 * gap))
        return -float(np.expm1(-gap)) if self.lower_by.startswith("clamping") else None

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
        """The posterior with both bounds, the estimate, and the marginals that are chosen.

        Raises:
            InferenceError: if nothing was found yet.
        """
        choice = self.choice()
        posterior = self.posterior or choice.posterior
        exact = posterior.status is Status.EXACT
        best = ("exact", posterior) if exact else self.estimate()
        status = posterior.status if self.posterior else Status.NOT_CONVERGED
        if not exact and stop.interrupted:
            status = Status.INTERRUPTED
        error = 0.0 if exact else np.inf if best is None else self._stated_error(best[1])
        stats = {
            **posterior.stats,
            "upper": self.upper,
            "lower": self.lower,
            # Where the two coincide, both are rounded.
            "gap": max(self.upper - self.lower, 0.0),
            "upper_by": self.upper_by,
            "lower_by": self.lower_by,
            "estimate": best[1].log_z if best else None,
            "estimate_by": best[0] if best else None,
            "estimate_standard_error": error if error < np.inf else None,
            "marginals_by": choice.name,
            "marginals_reason": choice.reason,
            "marginals_error": choice.error,
            "missing": self._missing(error, choice),
            "reason": reason,
            "runs": self.runs,
        }
        return replace(
            posterior,
            marginals=choice.posterior.marginals,
            log_z=self.upper,
            log_z_kind=LogZKind.EXACT if exact else LogZKind.UPPER,
            status=status,
            stats=stats,
        )

    def _stated_error(self, posterior: Posterior) -> float:
        """Standard error of an estimate, of which two need not reach beyond the bounds."""
        log_z, error = posterior.log_z, _log_z_error(posterior)
        if log_z is None or error == np.inf:
            return error
        reach = 0.5 * max(self.upper - log_z, log_z - self.lower)
        return max(_spread(posterior), min(error, reach))

    def _missing(self, error: float, choice: _Choice) -> dict[str, str]:
        """What the answer lacks, and why, by its key in `stats`."""
        lacks = {}
        if self.lower == -np.inf:
            lacks["lower"] = "no assignment of positive potential was found in the time"
        if error == np.inf:
            few = "has groups that disagree, or too few draws that count"
            reasons = [
                f"{name} {few if name in self.samples else self.failures.get(name, _LATE)}"
                for name in _SAMPLERS
            ]
            lacks["estimate_standard_error"] = "; ".join(reasons)
        if choice.error is None:
            lacks["marginals_error"] = "no sampler's estimate was sure enough to tell errors by"
        return lacks


def _settled(posterior: Posterior) -> bool:
    return posterior.status is Status.CONVERGED


def _log_z_error(posterior: Posterior) -> float:
    """Standard error of an estimate of log Z; infinite where none is stated."""
    return _or_infinite(posterior, posterior.stats.get("log_z_standard_error"))


def _or_infinite(posterior: Posterior, error: float | None) -> float:
    """An error of draws of which enough count; infinite where there is none."""
    few = posterior.stats.get("effective_sample_size", np.inf) < _EFFECTIVE
    return np.inf if error is None or few else float(error)


def _spread(posterior: Posterior) -> float:
    """Standard error of an estimate of log Z by its own draws; infinite where none is stated."""
    stated = posterior.stats.get("log_z_standard_error")
    return _or_infinite(posterior, posterior.stats.get("log_z_spread", stated))


def _squares(sampled: Posterior) -> list[float]:
    """Of every variable the squares of its standard errors by the draws alone, summed."""
    errors = sampled.stats["standard_errors"].values()
    unseen = 0.25 * float(sampled.stats.get("unseen_share", 0.0)) ** 2
    # A state that is certain has no error.
    return [float(np.maximum(error**2 - unseen, 0.0).sum()) for error in errors]


def _nearest_to(reference: str, sampled: Posterior, candidates: dict[str, Posterior]) -> _Choice:
    """Of all marginals those of the least mean square error, as samples say.

    What they cannot tell from no error is given the error of what they tell.
    """
    variance = sum(_squares(sampled)) / max(len(sampled.marginals.flat), 1)
    why = f"they have the least mean square error that {reference!r} estimates"
    chosen, least = _Choice(reference, sampled, why), variance
    for name, posterior in candidates.items():
        if name != reference:
            off = posterior.marginals.flat - sampled.marginals.flat
            error = float(np.mean(off**2)) - variance
            if error < least:
                chosen, least = _Choice(name, posterior, why), error
    # What is nearer than its noise is not known to be nearer than that.
    return replace(chosen, error=float(np.sqrt(max(least, _noise(sampled)))))


def _noise(sampled: Posterior) -> float:
    """Standard error of a mean square error over states that draws estimate.

    An estimate is the mean square of differences less the variance of the draws. Errors of the
    states of one variable go together, those of variables are taken as independent and normal; the
    variance is itself estimated from groups, with a degree of freedom less than there are.
    """
    squares = np.array(_squares(sampled))
    freedom = max(float(sampled.stats.get("groups", np.inf)) - 1.0, 1.0)
    return float(np.sqrt((2.0 + 2.0 / freedom) * (squares @ squares))) / max(
        len(sampled.marginals.flat), 1
    )


def _most_central(candidates: dict[str, Posterior], lower_by: str) -> _Choice:
    """The marginals nearest to those of the other algorithms, where no error is known."""
    if len(candidates) > 2:
        # A distribution that fits one mode is far from the others by its nature.
        candidates = {name: p for name, p in candidates.items() if name != lower_by}
    flat = np.stack([posterior.marginals.flat for posterior in candidates.values()])
    apart = np.abs(flat[:, None] - flat[None]).mean(axis=2).sum(axis=1)
    name = list(candidates)[int(np.argmin(apart))]
    others = ", ".join(other for other in candidates if other != name)
    why = f"they are nearest to the others ({others})" if others else "they are what there is yet"
    return _Choice(name, candidates[name], why)


def improve(
    graph: FactorGraph,
    stop: Stop,
    memory_limit: int,
    seed: int,
    reason: str,
    record: Recorder | None = None,
) -> Iterator[Posterior]:
    """Yield a posterior whenever a bound is tightened or an estimate is new.

    It ends when the time or the means are used up. An interrupt of the main thread ends what runs,
    and the best so far comes last.

    Args:
        graph: a graph without evidence.
        stop: the time.
        memory_limit: bytes that tables may take.
        seed: seed of everything random.
        reason: why exact elimination is not used, for `stats`.
        record: is called with what each algorithm found, when it ends.

    Raises:
        ZeroPartitionError: if no assignment has positive potential.
        InferenceError: if nothing gave any marginals.
    """
    best = _Best(upper=coarse_bound(graph, "upper"), upper_by="largest entries")
    inner, work = stop.part(), _Work(graph, best, record)
    part = memory_limit // 4
    lanes = [
        Thread(target=work.run, args=(lane, inner), daemon=True)
        for lane in (
            _estimates(part, seed, best),
            _bounds(graph, memory_limit - part, seed, best, inner),
        )
    ]
    for lane in lanes:
        lane.start()
    seen = 0
    try:
        while any(lane.is_alive() for lane in lanes) and not work.error:
            try:
                work.changed.wait(_LOOK_SECONDS)
                answer = work.answer(stop, reason, seen)
            except KeyboardInterrupt:
                # What runs looks the wish up, and gives the best that it has.
                stop.interrupt()
                continue
            if answer is not None:
                seen, posterior = answer
                yield posterior
            if best.closed:
                return
    finally:
        inner.interrupt()
        for lane in lanes:
            lane.join()
    if work.error is not None:
        raise work.error
    if not best.runs:
        if stop.interrupted:
            raise KeyboardInterrupt
        reasons = "; ".join(best.failures.values()) or "nothing was found in the time"
        raise InferenceError(f"{reasons}; give more seconds")
    yield best.answer(stop, reason)


_Run = Callable[[FactorGraph, Stop], Posterior]

_Lane = Iterator[tuple[str, float, _Run]]
"""What runs one after another: its name, its share of the time left, and itself."""


class _Work:
    """What lanes find, taken under a lock, so that an interrupt of the main thread loses nothing.

    Attributes:
        changed: set when the answer has changed, or a lane has ended.
        error: what ends all lanes.
    """

    def __init__(self, graph: FactorGraph, best: _Best, record: Recorder | None) -> None:
        self.changed = Event()
        self.error: Exception | None = None
        self._graph, self._best, self._lock, self._news = graph, best, Lock(), 0
        self._record = record

    def run(self, lane: _Lane, stop: Stop) -> None:
        """Run what a lane yields, one after another, until the time is over."""
        try:
            for name, share, algorithm in lane:
                # However short the time, one has a look at the graph.
                if stop.over and self._best.runs:
                    break
                start = PREPARATION.thread_clock()
                try:
                    posterior = algorithm(self._graph, stop.part(share * stop.remaining))
                except ZeroPartitionError:
                    raise
                except InferenceError as error:
                    self._best.failures[name.partition("(")[0]] = f"failed: {error}"
                    continue
                if self._record is not None:
                    self._record(name, posterior, PREPARATION.thread_clock() - start)
                with self._lock:
                    if self._best.take(name, posterior):
                        self._news += 1
                        self.changed.set()
        except Exception as error:
            self.error = error
        finally:
            self.changed.set()

    def answer(self, stop: Stop, reason: str, seen: int) -> tuple[int, Posterior] | None:
        """The number of the answer, and it, if it is not the one that was told."""
        with self._lock:
            self.changed.clear()
            if self._news == seen:
                return None
            return self._news, self._best.answer(stop, reason)


def _estimates(memory_limit: int, seed: int, best: _Best) -> _Lane:
    """Message passing, then samplers planned to the time, then join graphs while there is some."""
    yield "lbp", 0.2, LoopyBeliefPropagation(tolerance=_TOLERANCE, seed=seed).solve_until
    for number in range(_LARGEST_ROUND + 1):
        if number < 2 and _spread(best.samples.get("ais", _NOTHING)) > _AGREE:
            # The first may be too short for its groups to agree; the other has more particles.
            particles = AnnealedImportance(
                particles=64, seed=seed + number, memory_limit=memory_limit, threads=1
            )
            yield "ais", 0.6, particles.solve_until
        if number == 1:
            draws = MiniBucketSampling(seed=seed, memory_limit=memory_limit, threads=1)
            yield "wmb_is", 0.4, draws.solve_until
        i_bound = min(2 + 2 * number, _LARGEST_I_BOUND)
        if not best.at_largest_clusters:
            clusters = JoinGraphPropagation(
                i_bound=i_bound,
                damping=_DAMPING,
                tolerance=_TOLERANCE,
                seed=seed,
                memory_limit=memory_limit,
            )
            yield f"ijgp(i_bound={i_bound})", 0.2, clusters.solve_until


def _bounds(graph: FactorGraph, memory_limit: int, seed: int, best: _Best, stop: Stop) -> _Lane:
    """Bounds from both sides, in rounds with larger tables and other starts."""
    for number in range(_ROUNDS):
        before = best.upper, best.lower
        ascent = CoordinateAscent(seed=seed + number, restarts=4 if number else 1)
        yield "cavi", 0.1, ascent.solve_until
        least = _FOREST_SECONDS * len(graph.log_values)
        if (number in (0, 2) or number > _LARGEST_ROUND) and least < 0.5 * stop.remaining:
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
            yield f"wmb(table_limit={table})", 0.3 if number == 0 else 0.6, buckets.solve_until
        room = max(memory_limit // (16 * max(graph.n_variables, 1)), 1)
        clamping = _Clamping(min(2 ** min(14 + number, 22), room), seed + number, best.mode(graph))
        if number == 0 or (number % 3 == 0 and best.lower_by.startswith("clamping")):
            yield f"clamping(table_limit={clamping.table_limit})", 0.15, clamping.solve_until
        if number == 0:
            yield "quadratic", 0.7, QuadraticBound(memory_limit).solve_until
        if number > _LARGEST_ROUND and (best.upper, best.lower) == before:
            return


_NOTHING = Posterior(
    Marginals((), np.zeros(0, dtype=np.int64), np.zeros(0)),
    None,
    LogZKind.NONE,
    Status.NOT_CONVERGED,
)


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
        bound = clamped_bound(graph, self.table_limit, 2**40, self.seed, stop, self.start)
        return Posterior(
            marginals=Marginals.of(graph, bound.marginals),
            log_z=bound.log_z,
            log_z_kind=LogZKind.LOWER,
            status=Status.NOT_CONVERGED,
            stats={"clamped": bound.clamped, "assignments": bound.assignments},
        )
