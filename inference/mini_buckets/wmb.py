"""Weighted mini-buckets: certified bounds on log Z with tables of bounded size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import (
    Backend,
    InferenceError,
    PredictedCost,
    ZeroPartitionError,
    zero_partition,
)
from inference.memory import allowance, require
from inference.mini_buckets.clamping import clamped_bound
from inference.mini_buckets.kernels import partition
from inference.mini_buckets.kernels.solve import Tightening, tighten
from inference.mini_buckets.structure import (
    LARGEST_I_BOUND,
    SECONDS_PER_ENTRY,
    elimination,
    planned,
)
from inference.possible_states import arrays_of
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.settings import setting
from inference.stop import Stop

Side = Literal["upper", "lower"]
Partition = Literal["overlap", "first_fit"]

_SIGNS = {"upper": 1, "lower": -1}
_HEURISTICS = {"overlap": partition.LARGEST_OVERLAP, "first_fit": partition.FIRST_FIT}
_LEAST_TABLE_LIMIT = 2**16
"""Minimum of the default `table_limit`, for variables with more than two states."""

_COPIES_OF_A_FACTOR = 3
"""Its values, the table of its mini-bucket, and scratch memory of the same size."""

_INSTEAD = "use backend 'lbp' for an estimate or 'cavi' for a lower bound, or observe variables"


@dataclass(frozen=True)
class WeightedMiniBuckets(Backend):
    """Weighted mini-buckets with cost shifting and weight updates (Liu & Ihler 2011).

    Buckets of more than `i_bound` + 1 variables are split; Hoelder's inequality turns the parts
    into a bound. Further passes tighten it: mini-buckets shift cost to one another until their
    moments match, and weights follow the entropies. Every pass gives a valid bound, and the best is
    kept. A lower bound of this kind is minus infinity if a split bucket has zeros. In this case
    some variables are clamped, and the others are eliminated exactly
    (`inference.mini_buckets.clamping`). Without a split bucket the answer is exact. The marginals
    are the bound's gradient: estimates, not bounds; see `inference.mini_buckets.intervals` for
    certified ones.

    Attributes:
        i_bound: maximum number of variables of a message; mini-buckets have one more. At the
            induced width or above, the answer is exact if `table_limit` allows.
        table_limit: maximum entries of a mini-bucket's table, unless a single factor has more.
            None: the entries of i_bound + 1 binary variables, but at least 65,536. Memory and time
            may reduce it; stats report the result.
        memory_limit: bytes that all tables may take; tables are reduced to fit. None: three
            quarters of the available memory.
        seconds: limit of wall time, at which the best bound so far is returned; None: no limit.
        bound: "upper" (positive weights) or "lower" (one positive weight per bucket).
        gap: whether to bound the other side too, and report upper, lower and gap in stats.
        iterations: maximum number of passes for each side.
        tolerance: minimum improvement of the bound in a pass; passes end below it.
        partition: "overlap" (a function joins the mini-bucket with which it shares most variables)
            or "first_fit".
        clampings: maximum number of assignments of clamped variables in the lower bound if zeros
            leave no other; 0: the lower bound is then minus infinity.
        seed, restarts: seed and number of restarts of the search for an elimination order, as for
            `exact`.
    """

    name: ClassVar[str] = "wmb"

    i_bound: int = setting(6, least=1, most=LARGEST_I_BOUND)
    bound: Side = setting("upper", names=get_args(Side))
    gap: bool = True
    iterations: int = setting(10, least=1)
    tolerance: float = setting(1e-6, least=0.0)
    partition: Partition = setting("overlap", names=get_args(Partition))
    seed: int = setting(0, least=0)
    restarts: int = setting(4, least=0)
    table_limit: int | None = setting(None, least=1)
    memory_limit: int | None = setting(None, above=0)
    seconds: float | None = setting(None, above=0.0)
    clampings: int = setting(20, least=0)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return a bound on log Z of a graph without evidence, and pseudo-marginals.

        Raises:
            TooLargeError: if a single factor is too large for a table, or even the smallest
                mini-buckets would not fit the memory limit.
            ZeroPartitionError: if even the upper bound is zero.
        """
        return self.solve_until(graph, Stop(self.seconds))

    def solve_until(self, graph: FactorGraph, stop: Stop) -> Posterior:
        """Return the result of `solve` within the remaining time."""
        layout = self._layout(graph, stop)
        sides: tuple[Side, ...] = ("upper", "lower") if self.gap else (self.bound,)
        runs: dict[Side, _Side] = {}
        for number, side in enumerate(sides):
            with stop.within(stop.remaining / (len(sides) - number)):
                runs[side] = self._tightened(graph, layout, side, stop)
        if "upper" in runs and runs["upper"].log_z == -np.inf:
            raise zero_partition()
        chosen = runs[self.bound]
        stats: dict[str, Any] = {
            "iterations": len(chosen.trace),
            "bound_trace": chosen.trace.tolist(),
            "split_buckets": chosen.splits,
            "induced_width": layout.width,
            "i_bound": self.i_bound,
            "table_limit": layout.table_limit,
            "predicted_bytes": round(layout.bytes),
            "seed": self.seed,
        }
        if "lower" in runs:
            stats |= {"lower_by": runs["lower"].method}
        if self.gap:
            upper, lower = runs["upper"].log_z, runs["lower"].log_z
            stats |= {"upper": upper, "lower": lower, "gap": max(upper - lower, 0.0)}
        kind = LogZKind.UPPER if self.bound == "upper" else LogZKind.LOWER
        status = Status.CONVERGED if chosen.settled else Status.NOT_CONVERGED
        if chosen.splits == 0 and len(chosen.trace):
            kind, status = LogZKind.EXACT, Status.EXACT
            if chosen.log_z == -np.inf:
                raise zero_partition()
        return Posterior(
            marginals=Marginals.of(graph, chosen.marginals),
            log_z=chosen.log_z,
            log_z_kind=kind,
            status=status,
            stats=stats,
        )

    def log_bound(self, graph: FactorGraph) -> float:
        """Return a bound on log Z of a graph without evidence, which may be -inf."""
        stop = Stop(self.seconds)
        layout = self._layout(graph, stop)
        try:
            return self._tightened(graph, layout, self.bound, stop).log_z
        except ZeroPartitionError:
            return -np.inf

    def predict(self, graph: FactorGraph) -> WeightedMiniBucketsCost:
        """Predict the cost of `infer` if neither bound converges before its last pass.

        Raises:
            TooLargeError: as `solve`.
        """
        layout = self._layout(graph.absorb_evidence(), Stop())
        return WeightedMiniBucketsCost(
            self._seconds(layout.entries), layout.bytes, layout.table_limit, layout.splits
        )

    def _seconds(self, entries: float, passes: int | None = None) -> float:
        sides = 2 if self.gap else 1
        return entries * sides * (passes or self.iterations) * SECONDS_PER_ENTRY

    def _layout(self, graph: FactorGraph, stop: Stop) -> _Layout:
        """Return the elimination order, and the largest tables that memory and time allow.

        Raises:
            TooLargeError: if a factor is too large, or no mini-buckets fit the memory.
        """
        allowed = allowance(self.memory_limit)
        largest = float(np.diff(graph.table_starts).max(initial=1))
        require(
            _COPIES_OF_A_FACTOR * 8.0 * largest,
            allowed,
            f"mini-buckets with a factor of {largest:,.0f} entries",
            _INSTEAD,
        )
        order, width = elimination(graph, self.seed, self.restarts, 0.1 * stop.remaining)
        limit = float(self.table_limit or max(2 ** (self.i_bound + 1), _LEAST_TABLE_LIMIT))
        with stop.within(0.2 * stop.remaining) as flag:
            while True:
                entries, size, splits = planned(
                    graph, order, self.i_bound, limit, _HEURISTICS[self.partition], flag
                )
                late = self._seconds(entries, passes=2) > stop.remaining
                if flag[0] or limit <= largest or not (size > allowed.bytes or late):
                    break
                limit = max(limit / 4.0, largest)
        if not flag[0]:
            require(size, allowed, f"mini-buckets with tables of {limit:,.0f} entries", _INSTEAD)
        return _Layout(order, width, round(limit), entries, size, splits)

    def _tightened(self, graph: FactorGraph, layout: _Layout, side: Side, stop: Stop) -> _Side:
        """Return the bound from one side, by clamping if zeros make a lower bound useless."""
        tightening = Tightening(
            self.i_bound,
            float(layout.table_limit),
            _HEURISTICS[self.partition],
            _SIGNS[side],
            self.iterations,
            self.tolerance,
        )
        log_z, marginals, trace, splits, settled = tighten(
            arrays_of(graph), layout.order, tightening, stop.flag
        )
        method = "mini-buckets"
        if not len(trace):
            method = "largest entries"
            log_z, marginals = coarse_bound(graph, side), np.zeros(0)
        if side == "lower" and log_z == -np.inf and self.clampings and (splits or not len(trace)):
            method = "clamping"
            try:
                bound = clamped_bound(graph, layout.table_limit, self.clampings, self.seed, stop)
                log_z, marginals = bound.log_z, bound.marginals
            except ZeroPartitionError:
                raise
            except InferenceError:  # No assignment was found, which gives no information on Z.
                method = "none"
        if not len(marginals) or not np.isfinite(marginals).all():
            # Without a pass, or with a lower bound of zero, there is no gradient and so no
            # marginals.
            marginals = np.repeat(1.0 / graph.cardinalities, graph.cardinalities)
        return _Side(float(log_z), marginals, trace, int(splits), bool(settled), method)


@dataclass(frozen=True)
class WeightedMiniBucketsCost(PredictedCost):
    """Predicted cost of weighted mini-buckets.

    Attributes:
        seconds: order of magnitude of the time of all passes, on one core.
        bytes: memory of tables, messages and related arrays.
        table_limit: largest number of entries of a table, after reduction by the memory limit.
        split_buckets: number of split buckets; if it is 0, the answer is exact.
    """

    bytes: float
    table_limit: int
    split_buckets: int


@dataclass(frozen=True, eq=False)
class _Layout:
    order: NDArray[np.int64]
    width: int
    table_limit: int
    entries: float
    bytes: float
    splits: int


@dataclass(frozen=True, eq=False)
class _Side:
    log_z: float
    marginals: NDArray[np.float64]
    trace: NDArray[np.float64]
    splits: int
    settled: bool
    method: str


def coarse_bound(graph: FactorGraph, side: Side) -> float:
    """Return an immediate bound on log Z: the largest entry of each factor above, -inf below."""
    if side == "lower":
        return -np.inf
    largest = (
        np.maximum.reduceat(graph.log_values, graph.table_starts[:-1])
        if len(graph.log_values)
        else np.zeros(0)
    )
    return float(largest.sum() + np.log(graph.cardinalities).sum())
