"""Weighted mini-buckets: certified bounds on log Z with tables of bounded size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, PredictedCost, TooLargeError, zero_partition
from inference.exact.kernels.solve import plan
from inference.mini_buckets.kernels import partition
from inference.mini_buckets.kernels.solve import planned_work, tighten
from inference.posterior import LogZKind, Marginals, Posterior, Status

Side = Literal["upper", "lower"]
Partition = Literal["overlap", "first_fit"]

_SIGNS = {"upper": 1, "lower": -1}
_HEURISTICS = {"overlap": partition.LARGEST_OVERLAP, "first_fit": partition.FIRST_FIT}
_SECONDS_PER_ENTRY = 8e-8
"""Order of magnitude of one pass over one table entry: exponentials and a few inputs."""

_LARGEST_I_BOUND = 26
"""Tables of 2**27 entries take 1 GiB each; a larger bound would be exact elimination's task."""


@dataclass(frozen=True)
class WeightedMiniBuckets(Backend):
    """Weighted mini-buckets with cost shifting and weight updates (Liu & Ihler 2011).

    Buckets of more than `i_bound` + 1 variables are split; Hoelder's inequality makes a bound of
    the parts. Passes go on to tighten it: mini-buckets shift cost to one another until their
    moments match, and weights follow the entropies. Every pass gives a valid bound, and the best
    is kept. Without a split bucket the answer is exact. The marginals are the bound's gradient:
    estimates, not bounds; see `inference.mini_buckets.intervals` for certified ones.

    Attributes:
        i_bound: most variables of a message; mini-buckets hold one more. At the induced width or
            above the answer is exact.
        bound: "upper" (positive weights) or "lower" (one positive weight per bucket).
        gap: whether the other side is bounded too, and reported in stats as upper, lower, gap.
        iterations: most passes for each side.
        tolerance: passes end when one gains less than this.
        partition: "overlap" (a function joins the mini-bucket with which it shares most) or
            "first_fit".
        seed, restarts: of the search for an elimination order, as for `exact`.
    """

    name: ClassVar[str] = "wmb"

    i_bound: int = 6
    bound: Side = "upper"
    gap: bool = True
    iterations: int = 10
    tolerance: float = 1e-6
    partition: Partition = "overlap"
    seed: int = 0
    restarts: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.i_bound <= _LARGEST_I_BOUND:
            raise InputError(
                f"the i-bound {self.i_bound} of 'wmb' is not between 1 and {_LARGEST_I_BOUND}"
            )
        for value, known, what in (
            (self.bound, get_args(Side), "bound"),
            (self.partition, get_args(Partition), "partition"),
        ):
            if value not in known:
                raise InputError(
                    f"the {what} {value!r} of 'wmb' is unknown; use {', '.join(known)}"
                )
        if self.iterations < 1:
            raise InputError(f"iterations is {self.iterations}; 'wmb' needs at least 1")
        if not self.tolerance >= 0.0:
            raise InputError(f"the tolerance {self.tolerance} of 'wmb' is below 0; correct it")
        if self.seed < 0 or self.restarts < 0:
            raise InputError("seed and restarts of 'wmb' are whole numbers not below 0")

    def solve(self, graph: FactorGraph) -> Posterior:
        """Bound on log Z of a graph without evidence, and pseudo-marginals.

        Raises:
            TooLargeError: if a single factor is too large for a table.
            ZeroPartitionError: if even the upper bound is zero.
        """
        order, width = self._order(graph)
        sides: tuple[Side, ...] = ("upper", "lower") if self.gap else (self.bound,)
        runs = {side: self._tighten(graph, order, side) for side in sides}
        value, values, trace, splits, settled = runs[self.bound]
        if "upper" in runs and runs["upper"][0] == -np.inf:
            raise zero_partition()
        if not np.isfinite(values).all():
            # A lower bound of zero has no gradient to read marginals from.
            values = np.repeat(1.0 / graph.cardinalities, graph.cardinalities)
        stats: dict[str, Any] = {
            "iterations": len(trace),
            "bound_trace": trace.tolist(),
            "split_buckets": splits,
            "induced_width": width,
            "i_bound": self.i_bound,
            "seed": self.seed,
        }
        if self.gap:
            upper, lower = runs["upper"][0], runs["lower"][0]
            stats |= {"upper": upper, "lower": lower, "gap": max(upper - lower, 0.0)}
        kind = LogZKind.UPPER if self.bound == "upper" else LogZKind.LOWER
        status = Status.CONVERGED if settled else Status.NOT_CONVERGED
        if splits == 0:
            kind, status = LogZKind.EXACT, Status.EXACT
            if value == -np.inf:
                raise zero_partition()
        return Posterior(
            marginals=Marginals(graph.names, graph.cardinalities, values, graph.index),
            log_z=value,
            log_z_kind=kind,
            status=status,
            stats=stats,
        )

    def log_bound(self, graph: FactorGraph, order: NDArray[np.int64] | None = None) -> float:
        """Bound on log Z alone, of a graph without evidence; -inf is a bound, too.

        Args:
            order: an elimination order of all variables; None: one is sought.
        """
        if order is None:
            order, _ = self._order(graph)
        return float(self._tighten(graph, order, self.bound)[0])

    def predict(self, graph: FactorGraph) -> PredictedCost:
        """What `infer` would cost if no side settles before its last pass.

        Raises:
            TooLargeError: if a single factor is too large for a table.
        """
        absorbed = graph.absorb_evidence()
        order, _ = self._order(absorbed)
        work = planned_work(
            absorbed.cardinalities,
            absorbed.scope_starts,
            absorbed.scope_variables,
            order,
            self.i_bound,
            _HEURISTICS[self.partition],
        )
        sides = 2 if self.gap else 1
        return PredictedCost(float(work * sides * self.iterations * _SECONDS_PER_ENTRY), None)

    def least_seconds(self, graph: FactorGraph) -> float:
        """Seconds that `predict` cannot fall short of, without the search that it takes.

        A variable's mini-buckets hold at most `i_bound` of its later neighbours each, so that what
        a graph has of pairs beyond `i_bound` for every variable fills tables of their own.
        """
        sizes = np.diff(graph.scope_starts)
        first = graph.scope_starts[:-1][sizes == 2]
        ends = np.sort(graph.scope_variables[first[:, None] + np.arange(2)], axis=1)
        pairs = len(np.unique(ends[:, 0] * graph.n_variables + ends[:, 1]))
        crowded = max(pairs - graph.n_variables * self.i_bound, 0) / self.i_bound
        sides = 2 if self.gap else 1
        return crowded * 2.0 ** (self.i_bound + 1) * sides * self.iterations * _SECONDS_PER_ENTRY

    def _order(self, graph: FactorGraph) -> tuple[NDArray[np.int64], int]:
        largest = np.diff(graph.table_starts).max(initial=1)
        if largest > 2.0 ** (_LARGEST_I_BOUND + 1):
            raise TooLargeError(
                f"a factor has a table of {largest} entries, too many for 'wmb'; observe variables"
            )
        order, *_, width, _, _, _ = plan(
            graph.cardinalities,
            graph.scope_starts,
            graph.scope_variables,
            self.seed,
            self.restarts,
            np.inf,
        )
        return order, width

    def _tighten(self, graph: FactorGraph, order: NDArray[np.int64], side: Side) -> Any:
        return tighten(
            graph.cardinalities,
            graph.scope_starts,
            graph.scope_variables,
            graph.table_starts,
            graph.log_values,
            order,
            self.i_bound,
            _HEURISTICS[self.partition],
            _SIGNS[side],
            self.iterations,
            self.tolerance,
        )
