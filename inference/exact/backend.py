"""Exact inference by variable elimination over a bucket tree, or by conditioning."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import (
    Backend,
    BeliefFunction,
    FactorBeliefs,
    Result,
    TooLargeError,
    zero_partition,
)
from inference.exact.batch import solve_each
from inference.exact.clamping import Clamped, clamping
from inference.exact.conditioning import Conditioning, condition, conditioning
from inference.exact.kernels.beliefs import factor_beliefs
from inference.exact.kernels.cluster_tree import ClusterTree
from inference.exact.kernels.program import TreeProgram
from inference.exact.kernels.propagation import DONE, ZERO
from inference.exact.orders import plan
from inference.exact.plans import KEPT, Key, Plan, Run, posterior_of
from inference.exact.prediction import (
    BYTES_PER_ENTRY,
    SECONDS_PER_OPERATION,
    STEPS_PER_SECOND,
    Prediction,
)
from inference.memory import MemoryAllowance, allowance, check_limit, memory_size
from inference.posterior import LogZKind, Marginals, Posterior, Status

logger = logging.getLogger(__name__)

_WORTH_A_SEARCH = 0.1

_CLAMPED_SECONDS = 600.0
"""What a sum over clamped variables may be predicted to take where no limit is given."""


@dataclass(frozen=True)
class Exact(Backend):
    """All marginals and log Z by variable elimination, or by conditioning where that is cheaper.

    The elimination order is greedy (minimum fill and minimum table size in turn, with seeded
    restarts where tables are large enough to repay them); forests are solved in linear time. The
    orders of the last structures are kept, and for ten seconds the memory of large tables.
    Arithmetic is on scaled potentials, or in log space where a product could underflow. Before
    anything is allocated, width, memory and time are predicted. Where few variables (the atoms of
    a short response) leave all others independent, and there are many of the others, a sum over
    the states of the few takes less time than elimination and next to no memory. Where tables miss
    the memory by little, up to three variables are clamped, and what is found is summed over their
    states, if that is predicted to take no longer than `seconds_limit`, or ten minutes.

    Attributes:
        seed: seed of the restarts, a whole number not below 0.
        restarts: how many further orders may be tried per connected component.
        search_seconds: time that the search for an order may take, as counted steps of about a
            nanosecond, so that every run finds the same order.
        memory_limit: bytes that the tables may take; None: three quarters of what the machine has
            available or, if that is less, of what the limit of the control group leaves.
        seconds_limit: what is predicted to take longer on one core is refused; None: nothing is.
            It is counted in operations, so that every run refuses the same graphs.
        threads: how many threads share the large tables; None: as many as there are processors.
            The answer is the same to the last bit for any number.

    Source: bucket-tree elimination, Kask, Dechter, Larrosa & Dechter 2005, "Unifying tree
    decompositions for reasoning in graphical models"; junction-tree division as in Jensen 1990.
    """

    name: ClassVar[str] = "exact"
    identical_batches: ClassVar[bool] = True

    seed: int = 0
    restarts: int = 1000
    search_seconds: float = 2.0
    memory_limit: int | None = None
    seconds_limit: float | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"the seed {self.seed} of 'exact' is negative; give one from 0 up")
        if self.restarts < 0:
            raise InputError(f"{self.restarts} restarts were requested of 'exact'; give 0 or more")
        if not self.search_seconds >= 0.0:
            raise InputError(
                f"search_seconds of 'exact' is {self.search_seconds}; give 0 or more seconds"
            )
        check_limit(self.name, self.memory_limit)
        if self.seconds_limit is not None and not self.seconds_limit > 0.0:
            raise InputError(
                f"seconds_limit of 'exact' is {self.seconds_limit}; give more than 0 seconds"
            )
        if self.threads is not None and self.threads < 1:
            raise InputError(f"{self.threads} threads were requested of 'exact'; give 1 or more")

    def solve(self, graph: FactorGraph) -> Posterior:
        """Exact posterior of a graph without evidence.

        Raises:
            TooLargeError: if it would not fit the limits of memory and time.
            ZeroPartitionError: if no assignment has positive potential.
        """
        prediction, run = self.run_by(self.method(graph), graph)
        return posterior_of(graph, prediction.stats(self.seed), run)

    def run_by(self, method: Way, graph: FactorGraph) -> tuple[Prediction, Run]:
        """What a run finds, and what was predicted, by what `method` returns for the structure.

        Raises:
            TooLargeError: as `solve`.
        """
        if isinstance(method, Conditioned):
            sums = condition(graph, method.conditioning, self._threads())
            if sums is not None:
                code = ZERO if sums[0] == -np.inf else DONE
                return method.prediction, Run(code, *sums, scaled=True)
            method = self.cluster_plan(graph)
        if isinstance(method, Clamped):
            return method.prediction, method.run(graph, self._threads)
        return method.prediction, method.run(graph.log_values, self._threads)

    def solve_batch(self, graphs: Sequence[FactorGraph], threads: int = 1) -> list[Result]:
        """Exact posteriors of many graphs, or the errors.

        Graphs of one structure share a plan, and graphs of all structures share the threads.
        """
        # A slice, so that evidence is absorbed.
        return solve_each(self, graphs[:], threads)

    def solve_settings(
        self, graph: FactorGraph, log_values: NDArray[np.float64], threads: int = 1
    ) -> list[Result]:
        """Exact posteriors of a graph under many log tables, planned once."""
        return solve_each(self, [graph.with_log_values(row) for row in log_values], threads)

    def prepare_beliefs(self, graph: FactorGraph) -> BeliefFunction:
        """Factor beliefs as a function of the log tables, on a cluster tree made once.

        They are the gradient of log Z (Darwiche 2003, "A differential approach to inference in
        Bayesian networks").
        """
        calibrate = self.planned(graph)

        def beliefs(log_values: NDArray[np.float64]) -> FactorBeliefs:
            found = calibrate(log_values)
            posterior = Posterior(
                marginals=Marginals.of(graph, found.marginals),
                log_z=found.log_z,
                log_z_kind=LogZKind.EXACT,
                status=Status.EXACT,
                backend=self.name,
            )
            return FactorBeliefs(posterior, found.factor_beliefs())

        return beliefs

    def predict(self, graph: FactorGraph) -> Prediction:
        """What `infer` would cost for a graph, its evidence absorbed, without running it."""
        absorbed = graph.absorb_evidence()
        cheaper = self._cheaper(absorbed)
        if cheaper is not None:
            return cheaper.prediction
        found = self._elimination(absorbed, self.restarts)
        clamped = self._clamped(absorbed, found)
        return found if clamped is None else clamped.prediction

    def calibrate(self, graph: FactorGraph) -> CalibratedTree:
        """Calibrated cluster tree of a graph, its evidence absorbed.

        It costs what `infer` costs, and keeps the tables: for factor beliefs, joint
        distributions, samples and whatever else is read off them.

        Raises:
            TooLargeError: if the tables would not fit the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
        """
        absorbed = graph.absorb_evidence()
        return self._calibrated(absorbed, self.cluster_plan(absorbed))

    def planned(self, graph: FactorGraph) -> Callable[[NDArray[np.float64]], CalibratedTree]:
        """`calibrate` as a function of the log tables of a graph without evidence.

        The cluster tree is made once. A graph that is refused, or shared over threads, is planned
        anew at every call.

        Args:
            graph: the graph, whose own log tables play no part.
        """
        plan = self.cluster_plan(graph, refuse=False)
        reused = plan.fits and plan.small and not self.takes_too_long(plan.prediction)

        def calibrate(log_values: NDArray[np.float64]) -> CalibratedTree:
            one = replace(graph, log_values=log_values)
            return self._calibrated(one, plan if reused else self.cluster_plan(one))

        return calibrate

    def method(self, graph: FactorGraph) -> Way:
        """How graphs of this graph's structure are solved; plans are kept.

        Raises:
            TooLargeError: if it would not fit the limits of memory and time.
        """
        kept = self.kept(graph)
        if kept is not None:
            return kept
        cheaper = self._cheaper(graph)
        if cheaper is not None:
            if self.takes_too_long(cheaper.prediction):
                raise self._refusal(cheaper.prediction, self.allowance())
            return cheaper
        plan = self.cluster_plan(graph, refuse=False)
        if not plan.fits or self.takes_too_long(plan.prediction):
            clamped = self._clamped(graph, plan.prediction)
            if clamped is None:
                raise self._refusal(plan.prediction, self.allowance())
            return clamped
        KEPT.keep(self._key(graph), plan)
        return plan

    def kept(self, graph: FactorGraph) -> Plan | None:
        """The plan of this graph's structure, if it is kept and may be run."""
        kept = KEPT.get(self._key(graph))
        if kept is None or self.takes_too_long(kept.prediction):
            return None
        return kept if kept.small or kept.prediction.bytes <= self.allowed_bytes() else None

    def asked_before(self, graph: FactorGraph) -> bool:
        """Whether a batch had this graph's structure before, so that its plan is worth keeping."""
        return KEPT.asked_before(self._key(graph))

    def _key(self, graph: FactorGraph) -> Key:
        searched = (self.seed, self.restarts, self.search_seconds)
        return (graph.structure, *searched, self.memory_limit)

    def cluster_plan(self, graph: FactorGraph, *, refuse: bool = True) -> Plan:
        """Cluster tree of a graph without evidence by the best order found, and what it costs.

        Raises:
            TooLargeError: if it would not fit the limits of memory and time, unless `refuse` is
                false: the plan may have no tree then.
        """
        allowed = self.allowance()
        max_entries = self.most_entries(allowed.bytes)
        plan = Plan.of(graph, self.seed, self.restarts, self.effort(), max_entries)
        if refuse and (not plan.fits or self.takes_too_long(plan.prediction)):
            raise self._refusal(plan.prediction, allowed)
        return plan

    def most_entries(self, memory: float) -> float:
        """Entries beyond which tables do not fit so many bytes, or take longer than the limit."""
        entries = memory / BYTES_PER_ENTRY
        if self.seconds_limit is None:
            return entries
        # Of each entry there are two operations at least.
        return min(entries, self.seconds_limit / SECONDS_PER_OPERATION / 2.0)

    def refuses(self, prediction: Prediction) -> bool:
        """Whether what is predicted passes a limit."""
        return self.takes_too_long(prediction) or prediction.bytes > self.allowed_bytes()

    def takes_too_long(self, prediction: Prediction) -> bool:
        """Whether what is predicted passes the limit of time."""
        return self.seconds_limit is not None and prediction.seconds > self.seconds_limit

    def _calibrated(self, graph: FactorGraph, plan: Plan) -> CalibratedTree:
        run, tables = plan.calibrate(graph.log_values, self._threads)
        if run.code == ZERO:
            raise zero_partition()
        return CalibratedTree(graph, plan.tree, plan.program, tables, run.marginals, run.log_z)

    def _cheaper(self, graph: FactorGraph) -> Conditioned | None:
        """What conditioning would cost and how it goes, where elimination costs more."""
        plan = conditioning(graph)
        if plan is None:
            return None
        limit = self.allowed_bytes()
        if plan.bytes > limit:
            return None
        found = self._elimination(graph, restarts=0)
        # The search for a better order may take longer than conditioning does.
        if plan.seconds > _WORTH_A_SEARCH * found.seconds:
            found = self._elimination(graph, self.restarts)
        if plan.seconds >= found.seconds and found.bytes <= limit:
            return None
        prediction = replace(found, bytes=plan.bytes, seconds=plan.seconds, method="conditioning")
        return Conditioned(prediction, plan)

    def _clamped(self, graph: FactorGraph, whole: Prediction) -> Clamped | None:
        """How to clamp a few variables where tables miss the memory by little; None if not."""
        allowed = self.allowed_bytes()
        limit = _CLAMPED_SECONDS if self.seconds_limit is None else self.seconds_limit
        # Less work than elimination itself it never is; no few variables are worth more memory.
        if whole.bytes <= allowed or whole.seconds > limit:
            return None
        entries = self.most_entries(allowed)

        def make_plan(rest: FactorGraph) -> Plan:
            return Plan.of(rest, self.seed, self.restarts, self.effort(), entries)

        found = clamping(graph, make_plan, entries, self.effort(), self.seed)
        return found if found is not None and found.prediction.seconds <= limit else None

    def _elimination(self, graph: FactorGraph, restarts: int) -> Prediction:
        *_, cost = plan(
            graph.cardinalities,
            graph.scope_starts,
            graph.scope_variables,
            self.seed,
            restarts,
            self.effort(),
        )
        return Prediction.of(cost)

    def _refusal(self, prediction: Prediction, allowed: MemoryAllowance) -> TooLargeError:
        seconds = prediction.seconds
        duration = f"{seconds:,.0f} s" if seconds < 1e7 else "more than 100 days"
        limit, setting = str(allowed), "memory_limit (in bytes)"
        if prediction.bytes <= allowed.bytes:
            limit, setting = f"seconds_limit is {self.seconds_limit:g} s", "seconds_limit"
        return TooLargeError(
            f"the best elimination order found has induced width {prediction.induced_width}: its "
            f"largest table has 2^{prediction.log2_largest_table:.1f} entries, all tables "
            f"{memory_size(prediction.bytes)}, and the run takes about {duration}, but {limit}; "
            "use backend 'auto' or 'wmb' for certified bounds or 'lbp' for an estimate, observe "
            f"variables, or raise {setting}",
            prediction,
        )

    def _threads(self) -> int:
        return self.threads if self.threads is not None else os.cpu_count() or 1

    def allowed_bytes(self) -> int:
        """Bytes that the tables may take."""
        return self.allowance().bytes

    def allowance(self) -> MemoryAllowance:
        """What the tables may take, and what sets that."""
        return allowance(self.memory_limit)

    def effort(self) -> float:
        """Steps that the search for an elimination order may take."""
        return self.search_seconds * STEPS_PER_SECOND


@dataclass(frozen=True, eq=False)
class CalibratedTree:
    """A cluster tree in which every cluster holds the joint distribution of its variables.

    Attributes:
        graph: the factor graph, without evidence.
        tree: the clusters, children before parents.
        program: where every factor lies in them.
        tables: float64, the joint distributions, laid out as `tree` says.
        marginals: float64, the marginals of the variables, one after another.
        log_z: natural logarithm of the partition function.
    """

    graph: FactorGraph
    tree: ClusterTree
    program: TreeProgram
    tables: NDArray[np.float64]
    marginals: NDArray[np.float64]
    log_z: float

    def factor_beliefs(self) -> NDArray[np.float64]:
        """Joint distribution of every factor's scope, laid out as `graph.log_values`.

        It is the gradient of log Z with respect to the log tables (Darwiche 2003, "A differential
        approach to inference in Bayesian networks").
        """
        result: NDArray[np.float64] = factor_beliefs(
            self.program, self.graph.table_starts, self.tree.constant_factors, self.tables
        )
        return result


@dataclass(frozen=True, eq=False)
class Conditioned:
    """Conditioning where elimination costs more: how it goes, and what it costs."""

    prediction: Prediction
    conditioning: Conditioning


Way = Plan | Conditioned | Clamped
"""How graphs of one structure are solved."""
