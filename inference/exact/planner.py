"""Planner of `exact`: the way of solution of a graph, its plan, and refusals."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np

from factormodels.factor_graph import FactorGraph
from inference.backend import TooLargeError
from inference.exact.clamping import Clamped, clamping
from inference.exact.conditioning import conditioning
from inference.exact.orders import plan
from inference.exact.plans import KEPT, Key, Plan
from inference.exact.prediction import (
    BYTES_PER_ENTRY,
    STEPS_PER_SECOND,
    Prediction,
    Work,
)
from inference.exact.small import (
    ALLOWANCE,
    FEWEST_WITH_RESTARTS,
    SECONDS_AT_ONCE,
    planning_seconds,
)
from inference.exact.ways import (
    Conditioned,
    Flag,
    OneByOne,
    Restricted,
    Solved,
    Threads,
    Way,
)
from inference.kernels.compiled import interpreted
from inference.memory import MemoryAllowance, allowance, memory_size
from inference.possible_states import possible_states
from inference.settings import setting
from inference.stop import NEVER
from inference.thread_team import thread_count

_WORTH_A_SEARCH = 0.1

_MOST_AN_ORDER_SAVES = 1000.0
"""Maximum ratio of a first order's memory to the limit for which a better order is searched."""

_LEAST_SECONDS_PER_ENTRY = 2.5e-10
"""Minimum reference seconds of a table entry in any kind of arithmetic."""

_CLAMPED_SECONDS = 600.0
"""Default maximum of the predicted seconds of a sum over clamped variables."""


@dataclass(frozen=True)
class Planner:
    """The settings of `exact`, and the decisions for a graph that follow from them.

    Attributes:
        seed, restarts, search_seconds, clamping_search_seconds, memory_limit, seconds_limit,
            threads: see `Exact`.
    """

    seed: int = setting(0, least=0)
    restarts: int = setting(1000, least=0)
    search_seconds: float = setting(2.0, least=0.0)
    clamping_search_seconds: float = setting(6.0, least=0.0)
    memory_limit: int | None = setting(None, above=0)
    seconds_limit: float | None = setting(None, above=0.0)
    threads: int | None = setting(None, least=1)

    def way(self, graph: FactorGraph) -> Way:
        """Return the way of solution of graphs with this graph's structure; plans are cached.

        Raises:
            TooLargeError: if conditioning is the cheapest way, and takes too long.
        """
        kept = self.kept(graph)
        if kept is not None:
            return kept
        small = None if ALLOWANCE.spent else self._small_plan(graph)
        if small is not None:
            return small
        cheaper = self._cheaper(graph)
        if cheaper is not None:
            if self.takes_too_long(cheaper.cost):
                raise self.refusal(cheaper.cost)
            return cheaper
        plan = self.cluster_plan(graph, refuse=False)
        if not plan.fits or self.takes_too_long(plan.cost):
            return Refused(plan.cost, self)
        KEPT.keep(self._key(graph), plan)
        return plan

    def ready(self, graph: FactorGraph) -> Way:
        """Return the way of solution of this graph, which its zeros may decide.

        Raises:
            TooLargeError: if no way fits the limits of memory and time.
            ZeroPartitionError: if a variable has no possible state.
        """
        return self.way(graph).settled(graph)

    def _small_plan(self, graph: FactorGraph) -> Plan | None:
        """Return the cached plan of a graph that is small enough to run without machine code.

        Return None for other graphs, without loading anything.
        """
        if not ALLOWANCE.take(planning_seconds(graph)):
            return None
        # Small graphs fit on any machine, and querying its memory takes as long as solving one.
        limit = np.inf if self.memory_limit is None else self.memory_limit
        settings = (self.effort(), self.most_entries(limit))
        with interpreted():
            plan = Plan.of(graph, self.seed, 0, *settings)
            if not self._is_small(plan):
                return None
            if plan.cost.bytes / BYTES_PER_ENTRY >= FEWEST_WITH_RESTARTS:
                # The few further searches cost a fraction of the run.
                plan = Plan.of(graph, self.seed, self.restarts, *settings)
        KEPT.keep(self._key(graph), plan)
        return plan

    def _is_small(self, plan: Plan) -> bool:
        fits = plan.fits and not self.takes_too_long(plan.cost)
        return fits and plan.seconds_interpreted <= SECONDS_AT_ONCE

    def interprets(self, graph: FactorGraph) -> bool:
        """Return whether a graph without evidence is small enough to need no machine code now.

        Its plan is cached, so that the check costs little compared to the answer.
        """
        if not ALLOWANCE.holds([graph]):
            return False
        plan = self.kept(graph) or self._small_plan(graph)
        return plan is not None and self._is_small(plan) and ALLOWANCE.holds([graph])

    def suited(self, graph: FactorGraph) -> AbstractContextManager[None]:
        """Return a context that runs kernels as Python if they process one small graph.

        Args:
            graph: a graph without evidence, which the block plans and runs.
        """
        if ALLOWANCE.spent or not self.interprets(graph):
            return nullcontext()
        needed = 2.0 * planning_seconds(graph)
        return interpreted() if ALLOWANCE.take(needed) else nullcontext()

    def cluster_plan(self, graph: FactorGraph, *, refuse: bool = True) -> Plan:
        """Return the cluster tree of a graph without evidence by the best order found, and its
        cost.

        Raises:
            TooLargeError: if it would exceed the limits of memory and time, unless `refuse` is
                false; the plan may then have no tree.
        """
        max_entries = self.most_entries(self.allowed_bytes())
        plan = Plan.of(graph, self.seed, self.restarts, self.effort(), max_entries)
        if refuse and (not plan.fits or self.takes_too_long(plan.cost)):
            raise self.refusal(plan.cost)
        return plan

    def kept(self, graph: FactorGraph) -> Plan | None:
        """Return the cached plan of this graph's structure, if it may be run."""
        kept = KEPT.get(self._key(graph))
        if kept is None or self.takes_too_long(kept.cost):
            return None
        return kept if kept.small or kept.cost.bytes <= self.allowed_bytes() else None

    def asked_before(self, graph: FactorGraph) -> bool:
        """Return whether an earlier batch had this structure, so that its plan is worth caching."""
        return KEPT.asked_before(self._key(graph))

    def _key(self, graph: FactorGraph) -> Key:
        searched = (self.seed, self.restarts, self.search_seconds)
        return (graph.structure, *searched, self.memory_limit)

    def most_entries(self, memory: float) -> float:
        """Return the maximum number of table entries within the limits of memory and time."""
        entries = memory / BYTES_PER_ENTRY
        if self.seconds_limit is None:
            return entries
        return min(entries, self.seconds_limit / _LEAST_SECONDS_PER_ENTRY)

    def refuses(self, prediction: Prediction) -> bool:
        """Return whether a prediction exceeds a limit."""
        return self.takes_too_long(prediction) or prediction.bytes > self.allowed_bytes()

    def takes_too_long(self, prediction: Prediction) -> bool:
        """Return whether a prediction exceeds the limit of time."""
        return self.seconds_limit is not None and prediction.seconds > self.seconds_limit

    def allowed_bytes(self) -> int:
        """Return the bytes that the tables may take."""
        return self.allowance().bytes

    def allowance(self) -> MemoryAllowance:
        """Return the bytes that the tables may take, and the reason of this limit."""
        return allowance(self.memory_limit)

    def lacking_memory(self, prediction: Prediction) -> str | None:
        """Return the clause that states the memory limit of a refused prediction; None if it was
        refused for its time.
        """
        allowed = self.allowance()
        if prediction.bytes > allowed.bytes:
            return str(allowed)
        if self.takes_too_long(prediction):
            return None
        # Other processes have released memory since.
        return "less was available when it was planned"

    def effort(self) -> float:
        """Maximum steps of the search for an elimination order."""
        return self.search_seconds * STEPS_PER_SECOND

    def _cheaper(self, graph: FactorGraph) -> Conditioned | None:
        """Return conditioning, if it costs less than elimination."""
        plan = conditioning(graph)
        if plan is None:
            return None
        limit = self.allowed_bytes()
        if plan.bytes > limit:
            return None
        elimination = self._elimination(graph, restarts=0)
        # The search for a better order may take longer than conditioning.
        if plan.seconds > _WORTH_A_SEARCH * elimination.seconds:
            elimination = self._elimination(graph, self.restarts)
        if plan.seconds >= elimination.seconds and elimination.bytes <= limit:
            return None
        prediction = replace(elimination, bytes=plan.bytes)
        prediction = prediction.with_work(Work(states=plan.seconds), "conditioning")
        return Conditioned(prediction, plan, self.cluster_plan)

    def narrower(
        self, graph: FactorGraph, refused: Refused, *, removed: bool = False
    ) -> Way | None:
        """Return the way of solution of a graph whose elimination is refused; None if there is no
        other.

        Args:
            graph: the graph, without evidence.
            refused: the way of its structure.
            removed: whether its impossible states were removed before.

        Raises:
            TooLargeError: if there is one, and it does not fit.
            ZeroPartitionError: if a variable has no possible state.
        """
        restricted = None if removed else self._restricted(graph)
        if restricted is not None:
            return restricted
        if not refused.clamped:
            refused.clamped.append(self._clamped(graph, refused.cost))
        clamped = refused.clamped[0]
        if clamped is not None and self.takes_too_long(clamped.cost):
            raise self.refusal(clamped.cost)
        return clamped

    def _restricted(self, graph: FactorGraph) -> Restricted | None:
        """Return the sum over possible states, if some are impossible and the others may fit.

        Raises:
            TooLargeError: if they do not fit.
        """
        if not np.isneginf(graph.log_values).any():
            return None
        support = possible_states(graph)
        if support.alive.all():
            return None
        likely = self._elimination(support.graph, restarts=0)
        if likely.bytes > _MOST_AN_ORDER_SAVES * self.allowed_bytes():
            return None
        return Restricted(support, self.way(support.graph).settled(support.graph, removed=True))

    def _clamped(self, graph: FactorGraph, whole: Prediction) -> Clamped | None:
        """Return how to clamp variables, if tables exceed the memory."""
        allowed = self.allowed_bytes()
        limit = _CLAMPED_SECONDS if self.seconds_limit is None else self.seconds_limit
        # Clamping never takes less work than elimination, and only saves memory.
        if whole.bytes <= allowed or whole.seconds > limit:
            return None
        entries = self.most_entries(allowed)
        effort = self.clamping_search_seconds * STEPS_PER_SECOND

        def make_plan(rest: FactorGraph, seed: int) -> Plan:
            return Plan.of(rest, seed, self.restarts, min(effort, self.effort()), entries)

        clamped = clamping(graph, whole, make_plan, entries, effort, self.seed)
        if clamped is not None and self.seconds_limit is None and clamped.cost.seconds > limit:
            return None
        return clamped

    def _elimination(self, graph: FactorGraph, restarts: int) -> Prediction:
        structure = (graph.cardinalities, graph.scope_starts, graph.scope_variables)
        return Prediction.of(plan(*structure, self.seed, restarts, self.effort()).cost)

    def thread_count(self) -> int:
        """Return the number of threads that may share a large table."""
        return thread_count(self.threads)

    def refusal(self, prediction: Prediction) -> TooLargeError:
        """Return the error for a prediction beyond a limit, which names the limit and the fix."""
        seconds = prediction.seconds
        duration = f"{seconds:,.0f} s" if seconds < 1e7 else "more than 100 days"
        limit, setting = self.lacking_memory(prediction), "memory_limit (in bytes)"
        if limit is None:
            limit, setting = f"seconds_limit is {self.seconds_limit:g} s", "seconds_limit"
        return TooLargeError(
            f"the best elimination order found has induced width {prediction.induced_width}: its "
            f"largest table has 2^{prediction.log2_largest_table:.1f} entries, all tables "
            f"{memory_size(prediction.bytes)}, and the run takes about {duration}, but {limit}; "
            "use backend 'auto' or 'wmb' for certified bounds or 'lbp' for an estimate, observe "
            f"variables, or raise {setting}",
            prediction,
        )


@dataclass(frozen=True, eq=False)
class Refused(OneByOne):
    """A structure whose elimination does not fit; single graphs may still be solved.

    Attributes:
        cost: cost of elimination of the whole graph.
        exact: the settings that refuse it.
        clamped: how graphs of this structure are clamped, or None; empty until needed.
    """

    cost: Prediction
    exact: Planner
    clamped: list[Clamped | None] = field(default_factory=list)

    @property
    def reason(self) -> str:
        """Clause that states the exceeded limit, and the fix."""
        return str(self.exact.refusal(self.cost))

    def solve(self, graph: FactorGraph, threads: Threads, stop: Flag = NEVER) -> Solved:
        """Solve a graph by its possible states, or by clamping some variables."""
        return self.settled(graph).solve(graph, threads, stop)

    def cost_of(self, graph: FactorGraph) -> Prediction:
        """Return the predicted cost of one graph."""
        return self.settled(graph).cost_of(graph)

    def settled(self, graph: FactorGraph, *, removed: bool = False) -> Way:
        """Return the sum over the possible states of a graph, or over some clamped variables.

        Raises:
            TooLargeError: if neither fits.
            ZeroPartitionError: if a variable has no possible state.
        """
        narrower = self.exact.narrower(graph, self, removed=removed)
        if narrower is None:
            raise self.exact.refusal(self.cost)
        return narrower
