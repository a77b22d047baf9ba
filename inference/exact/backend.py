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
    """All marginals and log Z by variable elimination, or by conditioning where that is cheaper.

    The elimination order is greedy (minimum fill and minimum table size in turn, with seeded
    restarts where tables are large enough to repay them); forests are solved in linear time. The
    orders of the last structures are kept, and for ten seconds the memory of large tables.
    Arithmetic is on scaled potentials, or in log space where a product could underflow. Before
    anything is allocated, width, memory and time are predicted. Where few variables (the atoms of
    a short response) leave all others independent, and there are many of the others, a sum over
    the states of the few takes less time than elimination and next to no memory. Where tables do
    not fit, states that zeros make impossible are left out first. Where they miss the memory by
    little, up to three variables are clamped, and what is found is summed over their states, if
    that is predicted to take no longer than `seconds_limit`, or ten minutes.

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

    def solve(self, graph: FactorGraph) -> Posterior:
        """Exact posterior of a graph without evidence.

        Raises:
            TooLargeError: if it would not fit the limits of memory and time.
            ZeroPartitionError: if no assignment has positive potential.
        """
        cost, run = self.way(graph).solve(graph, self.thread_count)
        return posterior_of(graph, cost.stats(self.seed), run)

    def is_ready(self, graphs: Sequence[FactorGraph]) -> bool:
        """Whether these graphs are so few and small that no machine code is loaded for them."""
        absorbed = [graph.absorb_evidence() for graph in graphs]
        return all(map(self.interprets, absorbed)) and ALLOWANCE.holds(absorbed)

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
        """What `infer` would cost for a graph, its evidence absorbed, without running it.

        Where elimination is refused, zeros of the tables may make it less. A graph whose zeros
        leave nothing possible has the cost of its elimination, as one without zeros has.
        """
        absorbed = graph.absorb_evidence()
        cheaper = self._cheaper(absorbed)
        if cheaper is not None:
            return cheaper.cost
        prediction = self._elimination(absorbed, self.restarts)
        if not self.refuses(prediction):
            return prediction
        try:
            narrower = self.narrower(absorbed, Refused(prediction, self))
        except ZeroPartitionError:
            return prediction
        return prediction if narrower is None else narrower.cost

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
