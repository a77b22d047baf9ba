"""Importance sampling from mini-buckets: an unbiased Z, bounds that hold with a probability."""

from __future__ import annotations

import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, TooLargeError, zero_partition
from inference.mini_buckets.kernels.partition import LARGEST_OVERLAP
from inference.mini_buckets.kernels.proposal import Tightened, draw_weighted
from inference.mini_buckets.kernels.solve import tighten_for_draws
from inference.mini_buckets.structure import LARGEST_I_BOUND, elimination, narrowed
from inference.mini_buckets.wmb import WeightedMiniBuckets
from inference.possible_states import (
    arrays_of,
    assignment,
    possible_states,
    random_state,
    state_starts,
)
from inference.posterior import LogZKind, Posterior, Status
from inference.sampling.estimates import CONFIDENCE, log_mean, ratio_errors
from inference.settings import setting
from inference.stop import Stop

_PART = 256
"""Draws that one call of a kernel makes; every such part has a seed of its own."""

_ORDER_SHARE = 0.1
"""Share of a limit of time that the search for an elimination order may take."""

_NO_TOLERANCE = -1.0


@dataclass(frozen=True)
class MiniBucketSampling(Backend):
    """Importance sampling from the mixture of each bucket's mini-buckets.

    The weight of a draw lies between 0 and the bound of the mini-buckets, so that its mean, an
    unbiased estimate of Z, has bounds that hold with a stated probability whatever the graph: by
    Bernstein's inequality with the variance that was seen, and from below by Markov's too. They
    are read after 256, 512, 1,024 draws and so on, each time with a part of the probability of
    error, so that all of them hold at once and the best counts. Without a split bucket the answer
    is exact.

    `stats` has upper and lower, with `confidence`; `certain_upper`, the bound of the mini-buckets,
    holds for certain. The run is converged if the weights have an effective number of
    `min_effective`.

    Attributes:
        i_bound: as of `wmb`; narrowed where `memory_limit` or `seconds` asks for it.
        samples: draws in all.
        confidence: the probability with which the bounds on log Z hold, both and at all times.
        iterations: passes that tighten the mini-buckets before they are drawn from.
        min_effective: effective number of draws that a converged run has.
        seed: of the order and the draws.
        restarts: of the search for an elimination order, as for `wmb`.
        seconds: wall time; draws go on as long as there is some. None: `samples`, however long
            they take. With a limit, numbers depend on the clock.
        memory_limit: bytes that tables may take; None: as for `exact`.
        threads: how many draw at a time; None: as many as there are processors.

    Source: Liu, Fisher & Ihler 2015, "Probabilistic variational bounds for graphical models"; Lou,
    Dechter & Ihler 2017, "Dynamic importance sampling for anytime bounds of the partition
    function"; Maurer & Pontil 2009, theorem 4, for the inequality.
    """

    name: ClassVar[str] = "wmb_is"

    i_bound: int = setting(8, least=1, most=LARGEST_I_BOUND)
    samples: int = setting(16_384, least=2 * _PART)
    confidence: float = setting(CONFIDENCE, above=0.0, below=1.0)
    iterations: int = setting(10, least=1)
    min_effective: float = setting(100.0, least=0.0)
    seed: int = setting(0, least=0)
    restarts: int = setting(4, least=0)
    seconds: float | None = setting(None, above=0.0)
    memory_limit: int | None = setting(None, above=0)
    threads: int | None = setting(None, least=1)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Estimates for a graph without evidence, with their errors and bounds.

        Raises:
            TooLargeError: if even tables of two variables would not fit the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if neither a draw nor a search found one that has.
        """
        return self.solve_until(graph, Stop(self.seconds))

    def solve_until(self, graph: FactorGraph, stop: Stop) -> Posterior:
        """`solve` within what time is left."""
        support = possible_states(graph)
        smaller = support.graph
        left = _ORDER_SHARE * stop.remaining
        order, width = elimination(smaller, self.seed, self.restarts, left)
        # Half the time is for draws.
        each = 0.5 * stop.remaining / self.iterations
        i_bound = narrowed(smaller, order, self.i_bound, self.memory_limit, each)
        if not i_bound:
            raise TooLargeError(
                "even mini-buckets of two variables would take more than 'wmb_is' may use; raise "
                "memory_limit or use backend 'ais'"
            )
        with stop.within(0.5 * stop.remaining) as enough:
            found = Tightened.of(
                *tighten_for_draws(
                    *arrays_of(smaller),
                    order,
                    i_bound,
                    np.inf,
                    LARGEST_OVERLAP,
                    1,
                    max(self.iterations, 1),
                    _NO_TOLERANCE,
                    enough,
                )
            )
        if found.bound == -np.inf:
            raise zero_partition()
        if found.splits == 0:
            exact = WeightedMiniBuckets(i_bound=i_bound, seed=self.seed, restarts=self.restarts)
            return exact.solve(graph)
        parts = self._draws(smaller, order, found, stop)
        constant = support.log_constant
        stats: dict[str, Any] = {
            "samples": _PART * len(parts),
            "split_buckets": found.splits,
            "induced_width": width,
            "i_bound": i_bound,
            "seed": self.seed,
            "confidence": self.confidence,
            "certain_upper": constant + found.bound,
        }
        sizes = np.array([np.logaddexp.reduce(part.log_weights) for part in parts])
        uniform = np.repeat(1.0 / smaller.cardinalities, smaller.cardinalities)
        values, errors = uniform, np.full(len(uniform), np.inf)
        effective, status, kind = 0.0, Status.NOT_CONVERGED, LogZKind.ESTIMATE
        if len(parts) > 1 and np.isfinite(sizes).any():
            every = np.concatenate([part.log_weights for part in parts])
            shares = np.exp(every - every.max())
            effective = float(shares.sum() ** 2 / (shares**2).sum())
            log_z, error, _ = log_mean(sizes, self.confidence)
            log_z -= math.log(_PART)
            lower, upper = bounds_of_mean(every - found.bound, self.confidence)
            sums = np.stack([part.sums for part in parts])
            values, errors = ratio_errors(smaller, np.exp(sizes - sizes.max()), sums, effective)
            stats |= {
                "lower": constant + found.bound + lower,
                "upper": constant + found.bound + upper,
                "gap": upper - lower,
                "log_z_standard_error": error,
            }
            if effective >= self.min_effective:
                status = Status.CONVERGED
        else:
            states = assignment(smaller, np.random.SeedSequence([self.seed, 3]))
            log_z, kind = smaller.log_potential(states), LogZKind.LOWER
        return Posterior(
            marginals=support.marginals(values),
            log_z=constant + log_z,
            log_z_kind=kind,
            status=status,
            stats={
                **stats,
                "effective_sample_size": effective,
                "standard_errors": support.free_by_name(errors),
            },
        )

    def _draws(
        self, graph: FactorGraph, order: NDArray[np.int64], found: Any, stop: Stop
    ) -> list[_Part]:
        starts = state_starts(graph)
        took = 0.0

        def run(number: int) -> _Part | None:
            nonlocal took
            began = time.monotonic()
            if stop.remaining <= took:
                return None
            log_weights, sums = np.empty(_PART), np.zeros(starts[-1])
            random = random_state(np.random.SeedSequence([self.seed, 1, number]))
            arrays = arrays_of(graph)
            if not draw_weighted(
                *arrays, order, found, random, log_weights, sums, starts, stop.flag
            ):
                return None
            took = time.monotonic() - began
            # No weight exceeds the bound, but for rounding.
            return _Part(np.minimum(log_weights, found.bound), sums)

        workers = self.threads if self.threads is not None else os.cpu_count() or 1
        parts: list[_Part] = []
        wanted = -(-self.samples // _PART)
        with stop.within(), ThreadPoolExecutor(workers) as pool:
            while len(parts) < wanted or 0.0 < stop.remaining < math.inf:
                first = len(parts)
                count = max(wanted - first, 4 * workers)
                results = list(pool.map(run, range(first, first + count)))
                # Those before the first that was too late: numbers stay those of the seeds.
                kept = results.index(None) if None in results else count
                parts += [part for part in results[:kept] if part is not None]
                if kept < count:
                    break
        return parts


class _Part(NamedTuple):
    """Weights of some draws, and the weighted counts of states in units of the largest."""

    log_weights: NDArray[np.float64]
    sums: NDArray[np.float64]


def bounds_of_mean(log_shares: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """Bounds on the logarithm of the mean of a number in [0, 1], from independent draws in order.

    They hold together with the given probability at the numbers of draws 256, 512, 1,024 and so
    on, of which the last is all: the k-th has 1 / (k (k + 1)) of the probability of error.

    Args:
        log_shares: float64 (n,), logarithms of the draws.
        confidence: the probability.

    Source: Maurer & Pontil 2009, "Empirical Bernstein bounds and sample variance penalization",
    theorem 4; Markov's inequality from below.
    """
    lower, upper = -math.inf, 0.0
    shares = np.exp(log_shares)
    n, number = min(_PART, len(shares)), 1
    while True:
        error = (1.0 - confidence) / (number * (number + 1))
        mean = float(shares[:n].mean())
        # Half the error above; below, a quarter for each of the two inequalities.
        above, below = (
            math.sqrt(2.0 * float(shares[:n].var(ddof=1)) * math.log(2.0 / part) / n)
            + 7.0 * math.log(2.0 / part) / (3.0 * (n - 1))
            for part in (0.5 * error, 0.25 * error)
        )
        upper = min(upper, math.log(min(1.0, mean + above)))
        # By Markov's inequality the mean of the draws is rarely many times what is expected.
        top = float(log_shares[:n].max())
        if top > -math.inf:
            log_mean_ = top + math.log(float(np.exp(log_shares[:n] - top).mean()))
            lower = max(lower, log_mean_ + math.log(0.25 * error))
        if mean > below:
            lower = max(lower, math.log(mean - below))
        if n == len(shares):
            return lower, upper
        n, number = min(2 * n, len(shares)), number + 1
