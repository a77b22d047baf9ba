"""Exact inference by variable elimination over a bucket tree, or by conditioning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import (
    Backend,
    BeliefFunction,
    FactorBeliefs,
    Result,
    TooLargeError,
    ZeroPartitionError,
    zero_partition,
)
from inference.exact.batch import solve_each
from inference.exact.kernels.beliefs import factor_beliefs
from inference.exact.kernels.cluster_tree import ClusterTree
from inference.exact.kernels.program import TreeProgram
from inference.exact.kernels.propagation import ZERO
from inference.exact.planner import Planner, Refused
from inference.exact.plans import Plan, posterior_of
from inference.exact.prediction import Prediction
from inference.exact.small import ALLOWANCE
from inference.posterior import LogZKind, Marginals, Posterior, Status


@dataclass(frozen=True)
class Exact(Planner, Backend):
    """All marginals and log Z by variable elimination, or by conditioning if that is cheaper.

    The elimination order is greedy (minimum fill and minimum table size alternately, with seeded
    restarts if tables are large enough to repay them); forests are solved in linear time. The
    orders of recent structures are cached, as is the memory of large tables, for ten seconds.
    Arithmetic is on scaled potentials, or in log space if a product could underflow. Width, memory
    and time are predicted before anything is allocated. If the other variables are many and become
    independent given a few variables (the atoms of a short response), a sum over the states of the
    few takes less time than elimination and almost no memory. If tables do not fit, states that are
    impossible because of zeros are removed first. If tables still do not fit, some variables are
    clamped, and the results are summed over their states, provided that this is predicted to take
    no longer than `seconds_limit`, or ten minutes.

    Attributes:
        seed: seed of the restarts, a whole number not below 0.
        restarts: maximum number of further orders per connected component.
        search_seconds: time limit of the search for an order, as counted steps of about a
            nanosecond, so that every run finds the same order.
        clamping_search_seconds: the same for the search for variables to clamp.
        memory_limit: bytes that the tables may take; None: three quarters of the memory available
            on the machine or, if less, within the limit of the control group.
        seconds_limit: maximum predicted time on one core; None: no limit. It is counted in
            operations, so that every run refuses the same graphs.
        threads: number of threads that share the large tables; None: the number of processors. The
            answer is the same to the last bit for any number.

    Source: bucket-tree elimination, Kask, Dechter, Larrosa & Dechter 2005, "Unifying tree
    decompositions for reasoning in graphical models"; junction-tree division as in Jensen 1990.
    """

    name: ClassVar[str] = "exact"
    identical_batches: ClassVar[bool] = True

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the exact posterior of a graph without evidence.

        Raises:
            TooLargeError: if it would exceed the limits of memory and time.
            ZeroPartitionError: if no assignment has positive potential.
        """
        cost, run = self.ready(graph).solve(graph, self.thread_count)
        return posterior_of(graph, cost.stats(self.seed), run)

    def is_ready(self, graphs: Sequence[FactorGraph]) -> bool:
        """Return whether these graphs are so few and small that no machine code is loaded."""
        absorbed = [graph.absorb_evidence() for graph in graphs]
        return all(map(self.interprets, absorbed)) and ALLOWANCE.holds(absorbed)

    def solve_batch(self, graphs: Sequence[FactorGraph], threads: int = 1) -> list[Result]:
        """Return the exact posteriors of many graphs, or the errors.

        Graphs of one structure share a plan, and graphs of all structures share the threads.
        """
        # Taking a slice absorbs the evidence.
        return solve_each(self, graphs[:], threads)

    def solve_settings(
        self, graph: FactorGraph, log_values: NDArray[np.float64], threads: int = 1
    ) -> list[Result]:
        """Return exact posteriors of a graph under many log tables, planned once."""
        return solve_each(self, [graph.with_log_values(row) for row in log_values], threads)

    def prepare_beliefs(self, graph: FactorGraph) -> BeliefFunction:
        """Return factor beliefs as a function of the log tables, on a cluster tree that is built
        once.

        They are the gradient of log Z (Darwiche 2003, "A differential approach to inference in
        Bayesian networks").
        """
        calibrate = self.planned(graph)

        def beliefs(log_values: NDArray[np.float64]) -> FactorBeliefs:
            tree = calibrate(log_values)
            posterior = Posterior(
                marginals=Marginals.of(graph, tree.marginals),
                log_z=tree.log_z,
                log_z_kind=LogZKind.EXACT,
                status=Status.EXACT,
                backend=self.name,
            )
            return FactorBeliefs(posterior, tree.factor_beliefs())

        return beliefs

    def predict(self, graph: FactorGraph) -> Prediction:
        """Return the predicted cost of `infer` for a graph, with its evidence absorbed.

        If elimination is refused, zeros of the tables may reduce the cost. A graph whose zeros
        leave no possible state has the cost of its elimination without zeros.
        """
        absorbed = graph.absorb_evidence()
        cheaper = self._cheaper(absorbed)
        if cheaper is not None:
            return cheaper.cost
        prediction = self.cluster_plan(absorbed, refuse=False).cost
        if not self.refuses(prediction):
            return prediction
        try:
            narrower = self.narrower(absorbed, Refused(prediction, self))
        except ZeroPartitionError:
            return prediction
        except TooLargeError as refusal:
            cheapest = refusal.prediction
            return cheapest if isinstance(cheapest, Prediction) else prediction
        return prediction if narrower is None else narrower.cost

    def calibrate(self, graph: FactorGraph) -> CalibratedTree:
        """Return the calibrated cluster tree of a graph, with its evidence absorbed.

        The cost is the same as for `infer`. The tables are kept for factor beliefs, joint
        distributions, samples and other results.

        Raises:
            TooLargeError: if the tables would exceed the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
        """
        absorbed = graph.absorb_evidence()
        return self._calibrated(absorbed, self.cluster_plan(absorbed))

    def planned(self, graph: FactorGraph) -> Callable[[NDArray[np.float64]], CalibratedTree]:
        """Return `calibrate` as a function of the log tables of a graph without evidence.

        The cluster tree is built once, except for graphs that are refused or shared between
        threads, which are planned at every call.

        Args:
            graph: the graph, whose own log tables are ignored.
        """
        plan = self.cluster_plan(graph, refuse=False)
        reused = plan.fits and plan.small and not self.takes_too_long(plan.cost)

        def calibrate(log_values: NDArray[np.float64]) -> CalibratedTree:
            with_tables = replace(graph, log_values=log_values)
            return self._calibrated(with_tables, plan if reused else self.cluster_plan(with_tables))

        return calibrate

    def _calibrated(self, graph: FactorGraph, plan: Plan) -> CalibratedTree:
        run, tables = plan.calibrate(graph.log_values, self.thread_count)
        if run.code == ZERO:
            raise zero_partition()
        return CalibratedTree(graph, plan.tree, plan.program, tables, run.marginals, run.log_z)


@dataclass(frozen=True, eq=False)
class CalibratedTree:
    """A cluster tree in which every cluster holds the joint distribution of its variables.

    Attributes:
        graph: the factor graph, without evidence.
        tree: the clusters, children before parents.
        program: the position of every factor in them.
        tables: float64, the joint distributions, laid out as in `tree`.
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
        """Return the joint distribution of every factor's scope, laid out as `graph.log_values`.

        It is the gradient of log Z with respect to the log tables (Darwiche 2003, "A differential
        approach to inference in Bayesian networks").
        """
        result: NDArray[np.float64] = factor_beliefs(
            self.program, self.graph.table_starts, self.tree.constant_factors, self.tables
        )
        return result
