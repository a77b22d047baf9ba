"""A portfolio with a time limit: bounds on log Z that tighten, an estimate of it, and marginals.

Two lanes run concurrently. One bounds log Z, with larger and larger tables; the other estimates it:
message passing first, then samplers, each planned for its share of the time. `_Best` keeps the best
results of all of them.

Marginals are chosen by estimates of their errors:

- A sampler whose groups agree is nearly unbiased, and the spread of its draws measures its error,
  unless all groups miss the same states. The mean square of the difference between its marginals
  and those of another algorithm, minus the mean square of its own errors by that spread,
  therefore estimates the other algorithm's mean square error. The smallest is chosen; the sampler's
  own is the mean square of its errors. Among algorithms that the samples do not distinguish from
  the smallest, the one that is mostly the most exact is chosen.
- Bounds that nearly meet bound the error of the distribution that gave the lower one: for mean
  field by Pinsker's inequality, for a sum over some assignments by the omitted mass.
- Without either, a rule decides: two algorithms that err in different ways and yet agree are likely
  to be right. The rule compares a sum over some assignments, if its lower bound is the best or
  nearly so; message passing, if its log Z lies within the bounds; and mini-buckets with the
  tightest upper bound, as the gradient of that bound. Message passing runs given each
  assignment of a few variables, on clusters, and plain; the first of these that has converged is
  compared with the others. From the two nearest to each other, the first in this list is chosen,
  except that mini-buckets precede message passing if the bounds are near each other or the messages
  have not converged, and precede a sum that leaves out much if the bounds nearly meet. If no two
  are near, mini-buckets are chosen, unless the later half of the sum added little while the last
  growth of the tables moved the mini-buckets; then the sum is chosen. The stated error grows with
  the distance. The rule and its errors were derived from some of the graphs of
  `python -m tests.endurance marginals`, all with exact marginals, and checked on others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from threading import Event, Lock, Thread

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import InferenceError, Recorder, ZeroPartitionError
from inference.kernels.preparation import PREPARATION
from inference.messages.lbp import LoopyBeliefPropagation
from inference.messages.trw import TreeReweighted
from inference.mini_buckets.clamping import clamped_bound
from inference.mini_buckets.conditioned import ConditionedPropagation
from inference.mini_buckets.ijgp import JoinGraphPropagation
from inference.mini_buckets.wmb import WeightedMiniBuckets, coarse_bound
from inference.possible_states import possible_states
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.sampling.annealing import AnnealedImportance
from inference.sampling.importance import MiniBucketSampling
from inference.stop import Stop, UnfinishedError
from inference.variational.cavi import CoordinateAscent
from inference.variational.quadratic import QuadraticBound

_CLOSED = 1e-9
"""Relative gap of the bounds at which the search ends, the size of rounding errors."""

_ROUNDS = 40
_FIRST_LOG2_TABLE = 6
_LARGEST_ROUND = 7
"""Largest i-bound, for tables of 2**26 entries; later rounds change the seed only."""

_LARGEST_I_BOUND = 26
_MOST_UPDATES = 1000

_FOREST_SECONDS = 5e-6
"""Approximate seconds per table entry for the first bound of `trw`."""

_DAMPING = 0.5
"""Damping of join graphs, which does not prevent their convergence."""

_TOLERANCE = 1e-6
"""Tolerance of messages, far below their error."""

_SLACK = 1e-6
"""Relative tolerance for an estimate of log Z outside the bounds, well above rounding."""

_STANDARD_ERRORS = 5.0
"""Number of standard errors by which a credible estimate may lie outside the bounds."""

_LEAST_ROOM = 2**16
"""Bytes for the tables of bounds beside exact inference that takes all of the memory."""

_LOOK_SECONDS = 0.2
"""Seconds between checks of whether the lanes have ended."""

_ASCENTS = 8
_ASCENTS_SHARE = 0.2
"""Number of mean fields whose modes clamping begins with, and their share of its time."""

_SAMPLERS = ("ais", "wmb_is")
_MESSAGES = ("lbp", "ijgp", "conditioned ijgp")
"""Message passing, from the least exact to the most."""

_LATE = "did not end in the time"

EXACT = "exact"
"""Name of the run of exact inference."""

_EFFECTIVE = 40.0
"""Minimum effective draws for a meaningful spread, which excludes states that no draw visited."""

_AGREE = 1.0
"""Maximum standard error of log Z for which a sampler's marginals estimate others' errors."""

_NEAR = 0.15
"""Maximum root mean square of the differences between marginals that agree."""

_NARROW = 1.0
"""Distance of the bounds below which mini-buckets are nearly exact."""

_SETTLED = 0.1
"""Maximum root mean square of the changes of mini-buckets' marginals at which they settle."""

_NEARLY_BEST = 0.1
"""Maximum distance to the best lower bound at which a sum over some assignments is compared."""

_SATURATED = 0.05
"""Maximum share of the later half of the assignments in a sum that leaves out little."""

_AGREEING_FLOOR, _AGREEING_SLOPE = 0.01, 1.5
"""Root mean square error of marginals that agree, at distance 0 and per distance."""

_ALONE_ERROR = 0.11
"""Root mean square error of marginals that no other algorithm agrees with."""

_INDISTINCT = 1.5
"""Number of standard errors within which samples do not distinguish mean square errors."""

_CERTAIN = 0.01
"""Certified root mean square error below which no other estimate is considered."""


_MEASURED = "the error is that of such graphs with exact marginals"

_Named = tuple[str, Posterior]


@dataclass(frozen=True, eq=False)
class _Choice:
    """The chosen marginals, and the reason."""

    name: str
    posterior: Posterior
    reason: str
    error: float | None = None
    """Estimate of the root mean square error; None if unknown."""
    case: str = ""
    """Case of the rule that decided; empty if none was needed."""


@dataclass
class _Best:
    """The tightest bounds so far, and the other results."""

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
    """Reasons of algorithms without a result, by name."""
    largest: tuple[str, Posterior] | None = None
    """Mini-buckets with the tightest upper bound so far, which mostly have the largest tables."""
    summed: _Named | None = None
    """Sum over some assignments with the tightest lower bound so far."""
    moved: float = np.inf
    """Root mean square of the changes of their marginals since the tables before."""
    exact: Posterior | None = None
    """Result of exact inference that ran beside the bounds."""

    def take(self, name: str, posterior: Posterior) -> bool:
        """Record an algorithm's result; return whether a bound is tighter or an estimate new."""
        self.runs += 1
        if name == EXACT:
            self.exact = posterior
        stats = posterior.stats
        if stats.get("table_limit", name) != name and not name.endswith(
            f"={stats['table_limit']})"
        ):
            self.at_largest_tables = True
        if stats.get("i_bound", np.inf) < _i_bound(name):
            self.at_largest_clusters = True
        name = _as_run(name, posterior)
        kind = posterior.log_z_kind
        sampled = name.startswith(_SAMPLERS)
        # Bounds from samples hold with a probability only, except for the upper one.
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
        if family == "wmb" and stats.get("iterations", 1):
            # Without a pass there is no gradient. Tables grow from round to round, but larger ones
            # with time for few passes may give a looser bound.
            before = None if self.largest is None else self.largest[1]
            if before is None or _upper_bound(posterior) <= _upper_bound(before):
                self.moved = np.inf if before is None else _apart(before, posterior)
                self.largest = name, posterior
        if family == "clamping" and (
            self.summed is None or _lower_bound(posterior) >= _lower_bound(self.summed[1])
        ):
            self.summed = name, posterior
        if kind is LogZKind.EXACT:
            self.posterior = posterior
        elif family in _MESSAGES and kind is not LogZKind.NONE:
            # Keep the join graph with the largest clusters of those that have converged; of others
            # the one that came nearest to it.
            before = self.messages.get(family)
            if before is None or (not _settled(posterior), _residual(posterior)) <= (
                not _settled(before),
                np.inf if _settled(before) else _residual(before),
            ):
                self.messages[family], new = posterior, True
        elif sampled and kind is LogZKind.ESTIMATE:
            before = self.samples.get(family)
            if before is None or _log_z_error(posterior) < _log_z_error(before):
                self.samples[family], new = posterior, True
        elif sampled:
            self.failures[family] = "had no time for enough draws that count"
        return new

    def estimate(self) -> tuple[str, Posterior] | None:
        """Return the sampler with the best estimate of log Z, and its posterior; None if there is
        none.

        Samplers whose groups agree come first, then any between the bounds.
        """
        sampled = [named for named in self.samples.items() if self._within(named[1])]
        return min(sampled, key=lambda named: _log_z_error(named[1]), default=None)

    def bethe(self) -> tuple[str, Posterior] | None:
        """Return message passing with the best approximation of log Z, and its posterior.

        Converged runs come first, then larger clusters; None if none is between the bounds.
        """
        within = [named for named in self.messages.items() if self._within(named[1])]
        return max(
            within,
            key=lambda named: (_settled(named[1]), _MESSAGES.index(named[0])),
            default=None,
        )

    def _within(self, posterior: Posterior) -> bool:
        """Return whether an estimate of log Z is within its own error of the bounds."""
        if posterior.log_z is None:
            return False
        slack = _SLACK * max(1.0, abs(posterior.log_z))
        error = _spread(posterior)
        slack += _STANDARD_ERRORS * error if error < np.inf else 0.0
        return self.lower - slack <= posterior.log_z <= self.upper + slack

    def choice(self) -> _Choice:
        """Return the chosen marginals; see the module.

        Raises:
            InferenceError: if there is no result yet.
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
        certified = min(self._certified(), key=lambda each: each[0], default=None)
        if certified is not None and certified[0] <= _CERTAIN:
            why = "the bounds certify that their error is no larger"
            return _Choice(*certified[1], why, certified[0])
        best = self.estimate()
        if best is not None and _spread(best[1]) <= _AGREE:
            return self._by_samples(*best, candidates)
        return self._by_rule(candidates)

    def _by_samples(
        self, reference: str, sampled: Posterior, candidates: dict[str, Posterior]
    ) -> _Choice:
        """Return marginals by the mean square errors that samples estimate; see the module."""
        trusted = dict(self._trusted(candidates))
        least = _nearest_to(reference, sampled, {**candidates, **trusted})
        for name, posterior in trusted.items():
            if least.name in (name, reference):
                break
            excess, noise = _excess(posterior, least.posterior, sampled)
            if excess <= _INDISTINCT * noise:
                why = (
                    f"samples of {reference!r} do not distinguish their error from the least, that "
                    f"of {least.name!r}, and their algorithm is mostly the more exact one"
                )
                error = float(np.sqrt((least.error or 0.0) ** 2 + max(excess, 0.0)))
                return _Choice(name, posterior, why, error)
        return least

    def _trusted(self, candidates: dict[str, Posterior]) -> Iterator[_Named]:
        """Yield algorithms from the mostly most exact one on: a sum that leaves out little, message
        passing given assignments, on clusters and on factors, and mini-buckets.
        """
        if self.summed is not None and _late_share(self.summed[1]) <= _SATURATED:
            yield self.summed
        passed = [name for name in reversed(_MESSAGES) if name in candidates]
        for name in sorted(passed, key=lambda name: not _settled(candidates[name])):
            yield name, candidates[name]
        if self.largest is not None:
            yield self.largest

    def _by_rule(self, candidates: dict[str, Posterior]) -> _Choice:
        """Return marginals whose error neither a bound nor a sampler determines; see the module."""
        families = dict(self._families(candidates))
        agreeing = self._agreeing(families)
        if agreeing is not None:
            return agreeing
        if "buckets" not in families:
            name = next(iter(candidates))
            return _Choice(name, candidates[name], "they are what there is yet")
        family, why = "buckets", "its upper bound is the tightest of mini-buckets"
        if (
            "sum" in families
            and self.moved > _SETTLED
            and _late_share(families["sum"][1]) <= _SATURATED
        ):
            family, why = "sum", "the later half of its sum added little"
        reason = f"no two algorithms agree, so they may be far off; {why}; {_MEASURED}"
        return _Choice(*families[family], reason, _ALONE_ERROR, "alone")

    def _agreeing(self, families: dict[str, _Named]) -> _Choice | None:
        """Return the first of the two algorithms that are nearest to each other; None if no two are
        near.
        """
        pairs = [
            (_apart(families[first][1], families[other][1]), first, families[other][0])
            for first, other in combinations(families, 2)
        ]
        passed = families.get("messages")
        for name, posterior in self.messages.items():
            settled = _settled(posterior) or (passed is not None and _settled(passed[1]))
            if passed is not None and name != passed[0] and settled:
                pairs.append((_apart(passed[1], posterior), "messages", name))
        distance, first, other = min(pairs, default=(np.inf, "", ""))
        if distance > _NEAR:
            return None
        nearest, preceded = families[first], ""
        if first != "buckets" and self._precede(families, first, other):
            preceded = f"mini-buckets precede {nearest[0]!r}; "
            if other == families["buckets"][0]:
                other = nearest[0]
            else:
                distance = _apart(families["buckets"][1], nearest[1])
            first = "buckets"
        why = (
            f"{preceded}they and those of {other!r} differ by {distance:.2g} (root mean square), "
            f"and no two algorithms agree better; {_MEASURED}"
        )
        error = float(np.hypot(_AGREEING_FLOOR, _AGREEING_SLOPE * distance))
        return _Choice(*families[first], why, error, "agreeing")

    def _precede(self, families: dict[str, _Named], first: str, other: str) -> bool:
        """Return whether mini-buckets precede the first of two algorithms that agree.

        Where the bounds are near each other, the tables are large enough for the gradient of the
        upper bound to be nearly exact.
        """
        if "buckets" not in families:
            return False
        gap, settled = self.upper - self.lower, self.moved <= _SETTLED
        beside = other == families["buckets"][0]
        if first == "sum":
            leaves_out = _late_share(families[first][1]) > _SATURATED
            return beside and leaves_out and settled and gap <= _NEARLY_BEST
        if beside:
            return gap <= _NARROW or not _settled(families[first][1])
        return gap <= _NARROW and settled

    def _families(self, candidates: dict[str, Posterior]) -> Iterator[tuple[str, _Named]]:
        """Yield algorithms that err in different ways, each by its family."""
        if self.summed is not None and self.lower - _lower_bound(self.summed[1]) <= _NEARLY_BEST:
            yield "sum", self.summed
        passed = max(
            self.messages,
            key=lambda name: (_settled(self.messages[name]), _MESSAGES.index(name)),
            default="",
        )
        if passed in candidates:
            yield "messages", (passed, candidates[passed])
        if self.largest is not None:
            yield "buckets", self.largest

    def _certified(self) -> Iterator[tuple[float, _Named]]:
        """Yield marginals and the largest error of a probability that the bounds allow."""
        if self.upper == np.inf:
            return
        if self.summed is not None:
            gap = self.upper - _lower_bound(self.summed[1])
            yield -float(np.expm1(-max(gap, 0.0))), self.summed
        lower = self.lower_posterior
        if lower is not None and lower.log_z_kind is LogZKind.ELBO:
            # The gap is an upper bound on the divergence KL(q || p).
            gap = max(self.upper - self.lower, 0.0)
            yield float(np.sqrt(0.5 * gap)), (self.lower_by, lower)

    def mode(self, graph: FactorGraph) -> NDArray[np.int64] | None:
        """Return the most probable states of the lower bound's distribution; None if impossible."""
        if self.lower_posterior is None:
            return None
        states = _most_probable(graph, self.lower_posterior.marginals.flat)
        return states if graph.log_potential(states) > -np.inf else None

    @property
    def closed(self) -> bool:
        """True if the bounds cannot improve further."""
        exact = self.posterior is not None and self.posterior.status is Status.EXACT
        gap = self.upper - self.lower
        return exact or (gap < np.inf and gap <= _CLOSED * max(1.0, abs(self.upper)))

    def answer(self, stop: Stop, reason: str) -> Posterior:
        """Return the posterior with both bounds, the estimate, and the chosen marginals.

        Raises:
            InferenceError: if there is no result yet.
        """
        choice = self.choice()
        posterior = self.posterior or choice.posterior
        exact = posterior.status is Status.EXACT
        best = ("exact", posterior) if exact else self.estimate()
        bethe = self.bethe()
        status = posterior.status if self.posterior else Status.NOT_CONVERGED
        if not exact and stop.interrupted:
            status = Status.INTERRUPTED
        error = 0.0 if exact else np.inf if best is None else self._stated_error(best[1])
        stats = {
            **posterior.stats,
            "upper": self.upper,
            "lower": self.lower,
            # Rounding may cross coinciding bounds.
            "gap": max(self.upper - self.lower, 0.0),
            "upper_by": self.upper_by,
            "lower_by": self.lower_by,
            "estimate": best[1].log_z if best else None,
            "estimate_by": best[0] if best else None,
            "estimate_standard_error": error if error < np.inf else None,
            "bethe": bethe[1].log_z if bethe else None,
            "bethe_by": bethe[0] if bethe else None,
            "marginals_by": choice.name,
            "marginals_reason": choice.reason,
            "marginals_error": choice.error,
            "missing": self._missing(error, choice),
            "reason": self.failures.get(EXACT, reason),
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
        """Return an estimate's standard error, at most half the distance to the farther bound."""
        log_z, error = posterior.log_z, _log_z_error(posterior)
        if log_z is None or error == np.inf:
            return error
        reach = 0.5 * max(self.upper - log_z, log_z - self.lower)
        return max(_spread(posterior), min(error, reach))

    def _missing(self, error: float, choice: _Choice) -> dict[str, str]:
        """Return what the answer lacks, and why, by its key in `stats`."""
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
            if self.estimate() is None:
                lacks["estimate"] = lacks["estimate_standard_error"]
        if choice.error is None:
            lacks["marginals_error"] = (
                "no sampler was sure enough, and no two algorithms could be compared"
            )
        return lacks


def _settled(posterior: Posterior) -> bool:
    return posterior.status is Status.CONVERGED


def _late_share(posterior: Posterior) -> float:
    """Return the share of the later half of the assignments in a sum; 1 if not stated."""
    return float(posterior.stats.get("late_share", 1.0))


def _residual(posterior: Posterior) -> float:
    """Return the largest last change of a message; infinite if not stated."""
    return float(posterior.stats.get("residual", np.inf))


def _upper_bound(posterior: Posterior) -> float:
    """Return an upper bound on log Z; infinite if there is none."""
    return np.inf if posterior.log_z is None else posterior.log_z


def _lower_bound(posterior: Posterior) -> float:
    """Return a lower bound on log Z; minus infinity if there is none."""
    return -np.inf if posterior.log_z is None else posterior.log_z


def _log_z_error(posterior: Posterior) -> float:
    """Return the standard error of an estimate of log Z; infinite if not stated."""
    return _or_infinite(posterior, posterior.stats.get("log_z_standard_error"))


def _or_infinite(posterior: Posterior, error: float | None) -> float:
    """Return an error based on enough draws; infinite otherwise."""
    few = posterior.stats.get("effective_sample_size", np.inf) < _EFFECTIVE
    return np.inf if error is None or few else float(error)


def _spread(posterior: Posterior) -> float:
    """Return the standard error of an estimate of log Z by its own draws; else infinity."""
    stated = posterior.stats.get("log_z_standard_error")
    return _or_infinite(posterior, posterior.stats.get("log_z_spread", stated))


def _squares(sampled: Posterior) -> list[float]:
    """Return the sum of squared standard errors of each variable by the draws alone."""
    return [float(variances.sum()) for variances in _variances(sampled)]


def _variances(sampled: Posterior) -> list[NDArray[np.float64]]:
    """Return the squared standard errors of each variable's states by the draws alone."""
    errors = sampled.stats["standard_errors"].values()
    unseen = 0.25 * float(sampled.stats.get("unseen_share", 0.0)) ** 2
    # A certain state has no error.
    return [np.maximum(error**2 - unseen, 0.0) for error in errors]


def _nearest_to(reference: str, sampled: Posterior, candidates: dict[str, Posterior]) -> _Choice:
    """Return the marginals of the least mean square error, as estimated from samples.

    Errors that the samples cannot distinguish from zero are set to the noise of the estimate.
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
    # Distances below the noise cannot be distinguished from it.
    return replace(chosen, error=float(np.sqrt(max(least, _noise(sampled)))))


def _excess(posterior: Posterior, other: Posterior, sampled: Posterior) -> tuple[float, float]:
    """Return by how much the mean square error of marginals exceeds that of others, as estimated
    from samples, and the most that the standard error of this estimate can be.

    With the difference d between the marginals, the estimate varies with the errors e of the
    samples as the mean of -2 d e. Errors of the states of one variable depend on each other in an
    unknown way; those of different variables are assumed independent.
    """
    flat = sampled.marginals.flat
    first, second = posterior.marginals.flat - flat, other.marginals.flat - flat
    errors = np.sqrt(np.concatenate(_variances(sampled)))
    reach = np.add.reduceat(np.abs(first - second) * errors, sampled.marginals.starts[:-1])
    noise = 2.0 * float(np.sqrt(reach @ reach)) / len(flat)
    return float(np.mean(first**2) - np.mean(second**2)), noise


def _noise(sampled: Posterior) -> float:
    """Return the standard error of a mean square error over states estimated from draws.

    An estimate is the mean square of differences minus the variance of the draws. Errors of the
    states of one variable are dependent; those of different variables are assumed independent and
    normal. The variance is itself estimated from groups, with one degree of freedom fewer than
    groups.
    """
    squares = np.array(_squares(sampled))
    freedom = max(float(sampled.stats.get("groups", np.inf)) - 1.0, 1.0)
    return float(np.sqrt((2.0 + 2.0 / freedom) * (squares @ squares))) / max(
        len(sampled.marginals.flat), 1
    )


def _apart(first: Posterior, other: Posterior) -> float:
    """Return the root mean square of the differences between two posteriors' marginals."""
    return float(np.sqrt(np.mean((first.marginals.flat - other.marginals.flat) ** 2)))


def improve(
    graph: FactorGraph,
    stop: Stop,
    memory_limit: int,
    seed: int,
    reason: str,
    record: Recorder | None = None,
    exactly: Exactly | None = None,
) -> Iterator[Posterior]:
    """Yield a posterior whenever a bound tightens or there is a new estimate.

    The generator ends when the time is over or every algorithm has run. An interrupt of the main
    thread stops the running algorithms, and the best posterior so far is yielded last.

    Args:
        graph: a graph without evidence.
        stop: the time limit.
        memory_limit: bytes that tables may take.
        seed: seed of all random numbers.
        reason: why exact elimination is not used, for `stats`.
        record: called with each algorithm's result when it ends.
        exactly: exact inference in place of the lane of estimates; its posterior, if it ends in
            time, is the last one.

    Raises:
        ZeroPartitionError: if no assignment has positive potential.
        InferenceError: if no algorithm gave marginals.
    """
    best = _Best(upper=coarse_bound(graph, "upper"), upper_by="largest entries")
    inner, work = stop.part(), _Work(graph, best, record)
    part = max(memory_limit // 4, 1)
    rest = max(memory_limit - part, 1)
    lanes = [_estimates(part, seed, best), _bounds(graph, rest, seed, best, inner)]
    if exactly is not None:
        room = max(memory_limit - exactly.bytes, _LEAST_ROOM)
        lanes = [
            _exact_first(exactly, lanes[0], best),
            _beside(exactly, _bounds(graph, room, seed, best, inner), seed, best, inner),
        ]
    threads = [Thread(target=work.run, args=(lane, inner), daemon=True) for lane in lanes]
    for thread in threads:
        thread.start()
    seen = 0
    try:
        while any(thread.is_alive() for thread in threads) and not work.error:
            try:
                work.changed.wait(_LOOK_SECONDS)
                if best.exact is not None:
                    yield best.exact
                    return
                answer = work.answer(stop, reason, seen)
            except KeyboardInterrupt:
                # Running algorithms poll the flag and return their best result.
                stop.interrupt()
                continue
            if answer is not None:
                seen, posterior = answer
                yield posterior
            if best.closed and (exactly is None or exactly.ended.is_set()):
                return
    finally:
        inner.interrupt()
        for thread in threads:
            thread.join()
    if best.exact is not None:
        yield best.exact
        return
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
"""A sequence of runs: name, share of the remaining time, and algorithm."""


class _Work:
    """Results of the lanes, recorded under a lock, so that an interrupt of the main thread loses
    nothing.

    Attributes:
        changed: set when the answer has changed, or a lane has ended.
        error: an error that ends all lanes.
    """

    def __init__(self, graph: FactorGraph, best: _Best, record: Recorder | None) -> None:
        self.changed = Event()
        self.error: Exception | None = None
        self._graph, self._best, self._lock, self._news = graph, best, Lock(), 0
        self._record = record

    def run(self, lane: _Lane, stop: Stop) -> None:
        """Run the algorithms of a lane in order until the time is over."""
        try:
            for name, share, algorithm in lane:
                # Run at least one algorithm, even after the time limit.
                if stop.over and self._best.runs:
                    break
                start = PREPARATION.thread_clock()
                try:
                    posterior = algorithm(self._graph, stop.part(share * stop.remaining))
                except ZeroPartitionError:
                    raise
                except UnfinishedError:
                    continue
                except InferenceError as error:
                    self._best.failures[name.partition("(")[0]] = f"failed: {error}"
                    continue
                if self._record is not None:
                    taken = PREPARATION.thread_clock() - start
                    self._record(_as_run(name, posterior), posterior, taken)
                with self._lock:
                    if self._best.take(name, posterior):
                        self._news += 1
                        self.changed.set()
        except Exception as error:
            self.error = error
        finally:
            self.changed.set()

    def answer(self, stop: Stop, reason: str, seen: int) -> tuple[int, Posterior] | None:
        """Return the number of the answer, and the answer, if it differs from the last one."""
        with self._lock:
            self.changed.clear()
            if self._news == seen:
                return None
            return self._news, self._best.answer(stop, reason)


@dataclass(frozen=True, eq=False)
class Exactly:
    """Exact inference, beside which bounds run.

    Attributes:
        run: returns the posterior, or raises `UnfinishedError` when the time is over.
        bytes: memory of its tables.
        delay: seconds after which the bounds begin.
        alone: seconds after which the bounds wait until it has ended.
        ended: set when it has ended, with or without a result.
    """

    run: _Run
    bytes: int
    delay: float
    alone: float
    ended: Event = field(default_factory=Event)


def _exact_first(exactly: Exactly, estimates: _Lane, best: _Best) -> _Lane:
    """Yield exact inference, then the estimates if it cannot answer."""
    try:
        yield EXACT, 1.0, exactly.run
    finally:
        exactly.ended.set()
    if best.exact is None:
        yield from estimates


def _beside(exactly: Exactly, bounds: _Lane, seed: int, best: _Best, stop: Stop) -> _Lane:
    """Yield message passing and bounds, unless exact inference ends before the delay.

    Two threads on one core are together hardly faster than one, so that bounds could keep exact
    inference from ending in time. From `alone` on they wait for its end.
    """
    while stop.elapsed < exactly.delay and not stop.over:
        if exactly.ended.wait(min(_LOOK_SECONDS, exactly.delay)):
            break
    if best.exact is not None:
        return
    yield _message_passing(seed)
    for name, share, algorithm in bounds:
        while stop.elapsed >= exactly.alone and not stop.over:
            if exactly.ended.wait(_LOOK_SECONDS):
                break
        if best.exact is not None or stop.over:
            return
        if not exactly.ended.is_set() and exactly.alone < stop.elapsed + share * stop.remaining:
            share = max(exactly.alone - stop.elapsed, 0.0) / max(stop.remaining, _LOOK_SECONDS)
        yield name, share, algorithm


def _message_passing(seed: int) -> tuple[str, float, _Run]:
    return "lbp", 0.2, LoopyBeliefPropagation(tolerance=_TOLERANCE, seed=seed).solve_until


def _estimates(memory_limit: int, seed: int, best: _Best) -> _Lane:
    """Yield message passing, then samplers planned for the time, then join graphs."""
    yield _message_passing(seed)
    for number in range(_LARGEST_ROUND + 1):
        if number < 2 and _spread(best.samples.get("ais", _NOTHING)) > _AGREE:
            # The first run may be too short for its groups to agree; the second has more particles.
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
            passed = best.messages.get("ijgp")
            if passed is not None and passed.stats["i_bound"] == i_bound:
                yield from conditioned_runs(clusters, passed.marginals, best)


def conditioned_runs(clusters: JoinGraphPropagation, guide: Marginals, best: _Best) -> _Lane:
    """Yield message passing given assignments: clusters of one variable fewer, and if its messages
    do not converge, fewer assignments with the same clusters.

    Conditioning narrows the graph. More assignments with smaller clusters take about as
    long as fewer with larger ones, and mostly have smaller errors.
    """
    smaller = replace(clusters, i_bound=max(2, clusters.i_bound - 1))
    for propagation, assignments in ((smaller, (16, 64)), (clusters, (16, 16))):
        run = ConditionedPropagation(propagation, guide, assignments)
        yield f"conditioned ijgp(i_bound={propagation.i_bound})", 0.3, run.solve_until
        given = best.messages.get("conditioned ijgp")
        if smaller == clusters or (given is not None and _settled(given)):
            return


def _bounds(graph: FactorGraph, memory_limit: int, seed: int, best: _Best, stop: Stop) -> _Lane:
    """Yield bounds from both sides, in rounds with larger tables and other starts."""
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
                # Do not spend half of the time on a lower bound that another algorithm beats.
                gap=number == 0 or best.lower_by.startswith("wmb"),
                seed=seed,
            )
            yield f"wmb(table_limit={table})", 0.3 if number == 0 else 0.6, buckets.solve_until
        room = max(memory_limit // (16 * max(graph.n_variables, 1)), 1)
        clamping = Clamping(min(2 ** min(14 + number, 22), room), seed + number, best.mode(graph))
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


def _as_run(name: str, posterior: Posterior) -> str:
    """Return the name of a run, with the tables or clusters that fit memory and time."""
    for setting in ("table_limit", "i_bound"):
        family, asked, _ = name.partition(f"({setting}=")
        if asked and setting in posterior.stats:
            return f"{family}({setting}={posterior.stats[setting]})"
    return name


def _i_bound(name: str) -> float:
    """Return the i-bound in the name of a run; 0 if there is none."""
    return float(name.rpartition("=")[2].rstrip(")")) if name.startswith("ijgp") else 0.0


@dataclass(frozen=True)
class Clamping:
    """Lower bound by clamping, in the form of an algorithm.

    Attributes:
        table_limit: maximum number of entries of a table.
        seed: seed of the ascents and of the search.
        start: an assignment of positive potential to begin with; None: there is none.
        assignments: maximum number of assignments to sum over.
    """

    table_limit: int
    seed: int
    start: NDArray[np.int64] | None = None
    assignments: int = 2**40

    def solve_until(self, graph: FactorGraph, stop: Stop) -> Posterior:
        """Return the lower bound, summed from the modes that several ascents reach."""
        starts = self._modes(graph, stop.part(_ASCENTS_SHARE * stop.remaining))
        if self.start is not None:
            starts.insert(0, self.start)
        bound = clamped_bound(graph, self.table_limit, self.assignments, self.seed, stop, starts)
        return Posterior(
            marginals=Marginals.of(graph, bound.marginals),
            log_z=bound.log_z,
            log_z_kind=LogZKind.LOWER,
            status=Status.NOT_CONVERGED,
            stats={
                "clamped": bound.clamped,
                "assignments": bound.assignments,
                "late_share": bound.late_share,
            },
        )

    def _modes(self, graph: FactorGraph, stop: Stop) -> list[NDArray[np.int64]]:
        """Return assignments of positive potential, the most probable ones of mean fields."""
        support = possible_states(graph)
        try:
            with stop.within():
                fits = CoordinateAscent(seed=self.seed, restarts=_ASCENTS).fits(support.graph, stop)
        except ZeroPartitionError:
            raise
        except InferenceError:
            return []
        modes = [_most_probable(graph, support.expand(fit.marginals)) for fit in fits]
        return [states for states in modes if graph.log_potential(states) > -np.inf]


def _most_probable(graph: FactorGraph, marginals: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the most probable state of each variable."""
    vectors = Marginals.of(graph, marginals).values()
    return np.array([np.argmax(vector) for vector in vectors], dtype=np.int64)
