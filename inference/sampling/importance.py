"""Importance sampling from mini-buckets: an unbiased estimate of Z, and bounds with a
confidence."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, InferenceError, TooLargeError, zero_partition
from inference.mini_buckets.kernels.partition import LARGEST_OVERLAP
from inference.mini_buckets.kernels.proposal import DrawnWeights, Tightened, draw_weighted
from inference.mini_buckets.kernels.solve import Tightening, tighten_for_draws
from inference.mini_buckets.structure import LARGEST_I_BOUND, elimination, narrowed
from inference.mini_buckets.wmb import WeightedMiniBuckets
from inference.possible_states import (
    Support,
    arrays_of,
    assignment,
    possible_states,
    random_state,
    state_starts,
)
from inference.posterior import LogZKind, Posterior, Status
from inference.sampling.estimates import CONFIDENCE, log_mean, ratio_errors
from inference.sampling.judge import (
    StakedDraws,
    Witness,
    judge_log_z,
    judge_marginals,
    too_few,
    why,
)
from inference.settings import setting
from inference.stop import Stop
from inference.thread_team import map_in_threads, thread_count
from inference.variational.cavi import CoordinateAscent

_PART = 256
"""Number of draws per call of a kernel; every such part has its own seed."""

FEWEST_DRAWS = 2 * _PART
"""Minimum number of draws: two parts are needed for a spread."""

_ORDER_SHARE = 0.1
"""Share of a time limit that the search for an elimination order may take."""

_NO_TOLERANCE = -1.0

_WITNESS_SECONDS = 0.5
"""Predicted seconds to which the mini-buckets of a witness are reduced."""

_SECONDS_PER_ENTRY = 2e-6
"""Approximate seconds of an order and the first pass per table entry of the graph."""

_NO_TIME = "there was no time for draws from mini-buckets"

_ASCENT_SECONDS = 0.5
"""Maximum wall time of the ascent to a certain lower bound."""


@dataclass(frozen=True)
class MiniBucketSampling(Backend):
    """Importance sampling from the mixture of each bucket's mini-buckets.

    The weight of a draw lies between 0 and the bound of the mini-buckets. The mean weight, an
    unbiased estimate of Z, therefore has bounds that hold with a stated probability for any graph,
    and for all numbers of draws simultaneously. Without a split bucket, the answer is exact.

    `stats` has upper and lower, with `confidence`; `certain_upper`, the bound of the mini-buckets,
    and `certain_lower`, the bound of mean field, hold for certain. The standard errors of log Z and
    of marginals include mass that the draws may have missed (`unseen_share`); the run is converged
    if the weights have an effective number of `min_effective` and that error is small
    (`inference.sampling.judge`). `log_z_spread` is the error by the spread of the draws alone.

    Attributes:
        i_bound: i-bound of the mini-buckets, as for `wmb`; reduced to fit `memory_limit` and
            `seconds`.
        samples: total number of draws.
        confidence: probability that both bounds on log Z hold, for all numbers of draws.
        iterations: number of passes that tighten the mini-buckets before the draws.
        min_effective: minimum effective number of draws of a converged run.
        seed: seed of the elimination order and the draws.
        restarts: number of restarts of the search for an elimination order, as for `wmb`.
        seconds: limit of wall time; drawing continues while time remains. None: draw `samples`
            samples without a limit. With a limit, numbers depend on the clock.
        memory_limit: bytes that tables may take; None: as for `exact`.
        threads: number of threads that draw; None: the number of processors.

    Source: Liu, Fisher & Ihler 2015, "Probabilistic variational bounds for graphical models"; Lou,
    Dechter & Ihler 2017, "Dynamic importance sampling for anytime bounds of the partition
    function"; Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by
    betting", for the bounds.
    """

    name: ClassVar[str] = "wmb_is"

    i_bound: int = setting(8, least=1, most=LARGEST_I_BOUND)
    samples: int = setting(16_384, least=FEWEST_DRAWS)
    confidence: float = setting(CONFIDENCE, above=0.0, below=1.0)
    iterations: int = setting(10, least=1)
    min_effective: float = setting(100.0, least=0.0)
    seed: int = setting(0, least=0)
    restarts: int = setting(4, least=0)
    seconds: float | None = setting(None, above=0.0)
    memory_limit: int | None = setting(None, above=0)
    threads: int | None = setting(None, least=1)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return estimates for a graph without evidence, with their errors and bounds.

        Raises:
            TooLargeError: if even tables of two variables would not fit the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if neither a draw nor a search found an assignment of positive
                potential.
        """
        return self.solve_until(graph, Stop(self.seconds))

    def solve_until(self, graph: FactorGraph, stop: Stop) -> Posterior:
        """Return the result of `solve` within the remaining time."""
        support = possible_states(graph)
        # Half of the time is for draws.
        buckets = self._buckets(support.graph, stop, 0.5 * stop.remaining)
        if buckets.exact is not None:
            return buckets.exact.solve(graph)
        smaller, constant = support.graph, support.log_constant
        drawn = self._draws(smaller, buckets, stop, beyond=True)
        stats: dict[str, Any] = {
            "samples": _PART * len(drawn.parts),
            "split_buckets": buckets.tightened.splits,
            "induced_width": buckets.width,
            "i_bound": buckets.i_bound,
            "seed": self.seed,
            "confidence": self.confidence,
            "effective_sample_size": drawn.effective,
        }
        if not drawn.seen:
            states = assignment(smaller, np.random.SeedSequence([self.seed, 3]))
            return Posterior(
                marginals=support.marginals(drawn.values),
                log_z=constant + smaller.log_potential(states),
                log_z_kind=LogZKind.LOWER,
                status=Status.NOT_CONVERGED,
                stats={
                    **stats,
                    "certain_upper": constant + buckets.tightened.bound,
                    **why("no two parts of the draws had a positive weight in the time"),
                    "standard_errors": support.by_name(drawn.errors),
                },
            )
        witness = drawn.witness(self._certain_lower(smaller, stop)).moved(constant)
        log_z, spread, _ = log_mean(drawn.sizes, self.confidence)
        log_z += constant - math.log(_PART)
        bound = buckets.tightened.bound
        lower, upper = drawn.staked.bounds_of_mean(self.confidence)
        lower = max(lower + constant + bound, witness.certain_lower)
        upper += constant + bound
        of_log_z = judge_log_z(log_z, spread, witness)
        of_marginals = judge_marginals(smaller, drawn.values, drawn.errors, witness)
        doubt = of_log_z.doubt or of_marginals.doubt
        if drawn.effective < self.min_effective:
            doubt = too_few("draws", drawn.effective, self.min_effective)
        return Posterior(
            marginals=support.marginals(drawn.values),
            log_z=log_z,
            log_z_kind=LogZKind.ESTIMATE,
            status=Status.NOT_CONVERGED if doubt else Status.CONVERGED,
            stats={
                **stats,
                "lower": lower,
                "upper": upper,
                "gap": upper - lower,
                **witness.stats(),
                "log_z_standard_error": of_log_z.error,
                "log_z_spread": spread,
                "standard_errors": support.by_name(of_marginals.errors),
                **why(doubt),
            },
        )

    def witness(self, support: Support, stop: Stop) -> Witness:
        """Return a witness for other samplers from draws of this one, for the whole graph.

        The witness is equal on every machine, unless `stop` ends the draws.

        Args:
            support: the graph reduced by `possible_states`.
            stop: the time limit.

        Raises:
            InferenceError: if there is no memory, or no time, for mini-buckets and two parts of
                the draws.
            ZeroPartitionError: if no assignment has positive potential.
        """
        graph, constant = support.graph, support.log_constant
        if _SECONDS_PER_ENTRY * len(graph.log_values) > stop.remaining:
            raise InferenceError(_NO_TIME)
        buckets = self._buckets(graph, stop, min(_WITNESS_SECONDS, 0.5 * stop.remaining))
        if buckets.exact is not None:
            answer = replace(buckets.exact, gap=False).solve(graph)
            if answer.status is Status.EXACT and answer.log_z is not None:
                return Witness.exact(constant + answer.log_z, answer.marginals.flat)
        drawn = self._draws(graph, buckets, stop, beyond=False)
        if len(drawn.parts) < 2:
            raise InferenceError(_NO_TIME)
        return drawn.witness(self._certain_lower(graph, stop)).moved(constant)

    def _buckets(self, graph: FactorGraph, stop: Stop, seconds: float) -> _Buckets:
        """Return mini-buckets, tightened for about `seconds`.

        Raises:
            TooLargeError: if even tables of two variables would not fit the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
        """
        left = _ORDER_SHARE * stop.remaining
        order, width = elimination(graph, self.seed, self.restarts, left)
        each = seconds / self.iterations
        i_bound = narrowed(graph, order, self.i_bound, self.memory_limit, each)
        if not i_bound:
            raise TooLargeError(
                "even mini-buckets of two variables would take more than 'wmb_is' may use; raise "
                "memory_limit or use backend 'ais'"
            )
        with stop.within(0.5 * stop.remaining) as enough:
            tightening = Tightening(
                i_bound, np.inf, LARGEST_OVERLAP, 1, max(self.iterations, 1), _NO_TOLERANCE
            )
            tightened = Tightened.of(
                *tighten_for_draws(arrays_of(graph), order, tightening, enough)
            )
        if tightened.bound == -np.inf:
            raise zero_partition()
        exact = None
        if tightened.splits == 0:
            exact = WeightedMiniBuckets(i_bound=i_bound, seed=self.seed, restarts=self.restarts)
        return _Buckets(order, width, i_bound, tightened, exact)

    def _certain_lower(self, graph: FactorGraph, stop: Stop) -> float:
        """Return a lower bound on log Z by mean field; -inf if none was found at once."""
        ascent = CoordinateAscent(seed=self.seed, restarts=1)
        try:
            part = stop.part(min(_ASCENT_SECONDS, 0.1 * stop.remaining))
            log_z = ascent.solve_until(graph, part).log_z
        except InferenceError:
            return -math.inf
        return -math.inf if log_z is None else log_z

    def _draws(self, graph: FactorGraph, buckets: _Buckets, stop: Stop, beyond: bool) -> _Drawn:
        """Return draws in parts, each with its own seed.

        Args:
            beyond: whether to continue after `samples` while time remains, if it is limited.
        """
        starts = state_starts(graph)
        tightened = buckets.tightened
        took = 0.0

        def run(number: int) -> _Part | None:
            nonlocal took
            began = time.monotonic()
            if stop.remaining <= took:
                return None
            log_weights, sums = np.empty(_PART), np.zeros(starts[-1])
            random = random_state(np.random.SeedSequence([self.seed, 1, number]))
            weighted = DrawnWeights(log_weights, sums, starts)
            if not draw_weighted(
                arrays_of(graph), buckets.order, tightened, random, weighted, stop.flag
            ):
                return None
            took = time.monotonic() - began
            # No weight exceeds the bound, except by rounding.
            return _Part(np.minimum(log_weights, tightened.bound), sums)

        workers = thread_count(self.threads)
        parts: list[_Part] = []
        wanted = -(-self.samples // _PART)
        with stop.within():
            while len(parts) < wanted or (beyond and 0.0 < stop.remaining < math.inf):
                first = len(parts)
                count = max(wanted - first, 4 * workers)
                results = map_in_threads(run, range(first, first + count), workers)
                # Keep the parts before the first that was too late, so that numbers and seeds
                # correspond.
                kept = results.index(None) if None in results else count
                parts += [part for part in results[:kept] if part is not None]
                if kept < count:
                    break
        return _Drawn.of(graph, tightened.bound, parts)


@dataclass(frozen=True, eq=False)
class _Buckets:
    """Mini-buckets to draw from.

    Attributes:
        order: int64 (n,), the elimination order.
        width: its induced width.
        i_bound: the i-bound, reduced to fit memory and time.
        tightened: the tightened mini-buckets.
        exact: the exact answer if no bucket is split; None otherwise.
    """

    order: NDArray[np.int64]
    width: int
    i_bound: int
    tightened: Tightened
    exact: WeightedMiniBuckets | None


class _Part(NamedTuple):
    """Weights of some draws, and the weighted counts of states in units of the largest."""

    log_weights: NDArray[np.float64]
    sums: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Drawn:
    """All parts of the draws, and their estimates.

    Attributes:
        parts: the parts.
        bound: the bound on every logarithm of a weight.
        sizes: float64 (n_parts,), logarithms of the sums of their weights.
        effective: effective number of draws.
        values, errors: float64 (n_states,), marginals and their standard errors.
    """

    parts: list[_Part]
    bound: float
    sizes: NDArray[np.float64]
    effective: float
    values: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def of(cls, graph: FactorGraph, bound: float, parts: list[_Part]) -> _Drawn:
        """Combine parts of the draws from a graph; marginals are uniform without information."""
        sizes = np.array([np.logaddexp.reduce(part.log_weights) for part in parts])
        if len(parts) < 2 or not np.isfinite(sizes).any():
            uniform = np.repeat(1.0 / graph.cardinalities, graph.cardinalities)
            return cls(parts, bound, sizes, 0.0, uniform, np.full(len(uniform), np.inf))
        every = np.concatenate([part.log_weights for part in parts])
        shares = np.exp(every - every.max())
        effective = float(shares.sum() ** 2 / (shares**2).sum())
        sums = np.stack([part.sums for part in parts])
        values, errors = ratio_errors(graph, np.exp(sizes - sizes.max()), sums, effective)
        # A few parts may agree by chance; this number of independent draws has at least this error.
        errors = np.maximum(errors, np.sqrt(values * (1.0 - values) / effective))
        return cls(parts, bound, sizes, effective, values, errors)

    @property
    def seen(self) -> bool:
        """True if there are at least two parts and a draw with positive weight."""
        return self.effective > 0.0

    @cached_property
    def staked(self) -> StakedDraws:
        """Weights of all draws divided by the bound, for bounds on their mean."""
        log_weights = np.concatenate([part.log_weights for part in self.parts])
        return StakedDraws.of(log_weights - self.bound)

    def witness(self, certain_lower: float) -> Witness:
        """Witness against which other samplers are checked."""
        return Witness.of_draws(self.staked, self.bound, certain_lower, self.values, self.errors)
