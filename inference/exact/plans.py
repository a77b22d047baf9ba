"""Plans of elimination for graphs of one structure; the most recent ones are cached."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Result, zero_partition
from inference.exact.conditioning import FEWEST_FACTORS
from inference.exact.kernels.cluster_tree import ClusterTree, Cost
from inference.exact.kernels.joins import LOG2_REARRANGED, worth_joining
from inference.exact.kernels.log_walk import propagate_log
from inference.exact.kernels.program import TreeProgram
from inference.exact.kernels.propagation import (
    STOPPED,
    UNDERFLOW,
    ZERO,
    Workspace,
    new_workspace,
    propagate,
)
from inference.exact.kernels.solve import (
    APART,
    Planning,
    Runs,
    join_program,
    plan_and_run_each,
    plant_program,
    run_for_each,
)
from inference.exact.orders import planned_order
from inference.exact.parallel import LOG2_CHUNKED_TABLE, run_in_chunks
from inference.exact.prediction import FEWEST_OPERATIONS, Prediction, log_work, scaled_work
from inference.exact.small import ALLOWANCE, PLANTING, planting_seconds, running_seconds
from inference.exact.ways import Fields, Flag, OneByOne, Run, Solved, Threads
from inference.exact.workspaces import (
    FEWEST_SHARED_BYTES,
    MOST_SHARED_BYTES,
    SHARED,
    SPARE,
    large_workspace,
)
from inference.kernels.compiled import interpreted
from inference.kernels.views import read_only
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.stacked_graphs import Stacked, joined
from inference.stop import NEVER, UnfinishedError

MOST_KEPT = 256
_MOST_BYTES = 2**26
"""Maximum number of cached plans, and maximum memory of their programs and workspaces."""

_MOST_REMEMBERED = 2**14
"""Maximum number of structures whose earlier use is recorded."""

_OPERATIONS_AT_A_TIME = 1e9
"""Operations per call, about a second, after which compiled code returns to check for
interrupts."""

_LOG_SAFE_RANGE = 650.0
"""Log range of a product from which on the scaled walk gives up (`propagation.would_underflow`)."""

_ARITHMETIC = {True: "scaled", False: "log"}

# Looking up members of an enumeration counts in batches of a posterior every few microseconds.
_KIND, _STATUS = LogZKind.EXACT, Status.EXACT

_COMPARED_FIRST = 16
"""Number of scope entries that are compared before all arrays of structures."""

Structure = tuple[bytes, bytes, bytes]

Key = tuple[Structure, int, int, float, int | None]
"""Key of a plan: structure, and the seed, restarts, search seconds and memory limit of `exact`."""


@dataclass(frozen=True, eq=False)
class Plan(OneByOne):
    """Plan of elimination for graphs of one structure.

    Attributes:
        fits: whether the tables fit the allowed memory; if not, there is no tree.
        tree: the cluster tree.
        program: the steps of a pass over it.
        cost: cost of a run.
        cardinalities, table_starts: int64, arrays of the graphs.
        n_states: entries of all marginals.
    """

    fits: bool
    tree: ClusterTree
    program: TreeProgram
    cost: Prediction
    cardinalities: NDArray[np.int64]
    table_starts: NDArray[np.int64]
    n_states: int
    _spare: list[Workspace] = field(default_factory=list)

    @classmethod
    def of(
        cls, graph: FactorGraph, seed: int, restarts: int, effort: float, max_entries: float
    ) -> Plan:
        """Return the plan for a graph without evidence; settings as in `elimination_order`."""
        structure = (graph.cardinalities, graph.scope_starts, graph.scope_variables)
        order = planned_order(*structure, seed, restarts, effort)
        if not PLANTING.spent and PLANTING.take(planting_seconds(graph)):
            with interpreted():
                planted = _planted(graph, order, max_entries)
        else:
            planted = _planted(graph, order, max_entries)
        return cls(
            *planted,
            graph.cardinalities,
            graph.table_starts,
            # The method `sum` takes twice as long.
            int(np.add.reduce(graph.cardinalities)),
        )

    @property
    def reason(self) -> str:
        """Clause that states the predicted time."""
        return self.cost.reason

    def cost_of(self, graph: FactorGraph) -> Prediction:
        """Return the cost of a run of one graph, which its potentials may force into log space."""
        if self.cost.operations < FEWEST_OPERATIONS or not self._underflows(graph):
            return self.cost
        return self.cost.with_work(log_work(self.program, self.cost.bytes))

    def _underflows(self, graph: FactorGraph) -> bool:
        """Return whether the factors of some cluster alone exceed the range of doubles.

        Messages add to that range, so a run may still underflow if this is false.
        """
        if not len(graph.log_values):
            return False
        finite = np.isfinite(graph.log_values)
        starts = graph.table_starts[:-1]
        largest = np.maximum.reduceat(np.where(finite, graph.log_values, -np.inf), starts)
        least = np.minimum.reduceat(np.where(finite, graph.log_values, np.inf), starts)
        ranges = np.maximum(largest - least, 0.0)
        clusters = np.repeat(np.arange(len(self.tree.parents)), np.diff(self.tree.factor_starts))
        sums = np.bincount(clusters, ranges[self.tree.factors], 1)
        return bool(sums.max() > _LOG_SAFE_RANGE)

    @property
    def small(self) -> bool:
        """True if tables are too small to share a run between threads."""
        return self.cost.log2_largest_table < LOG2_CHUNKED_TABLE

    @property
    def bytes(self) -> float:
        """Memory of the cached plan, without workspaces of large tables, which are not cached."""
        arrays = (*self.tree, *self.program)
        tables = self.cost.bytes if self.small else 0.0
        return tables + sum(array.nbytes for array in arrays)

    def run(self, log_values: NDArray[np.float64], threads: Threads, stop: Flag = NEVER) -> Run:
        """Return marginals and log Z under log tables; `threads` is called if tables are large.

        Raises:
            UnfinishedError: if the flag `stop` was raised.
        """
        if not self.small:
            large = SPARE.take(self.program, self.table_starts)
            try:
                return self._run_in_chunks(log_values, large, threads(), self.program, stop)
            finally:
                SPARE.give(large)
        # Small graphs take microseconds, so avoid entering an unnecessary context.
        if not ALLOWANCE.spent and ALLOWANCE.take(self.seconds_interpreted):
            with interpreted():
                return self._run_alone(log_values, stop)
        return self._run_alone(log_values, stop)

    def solve(self, graph: FactorGraph, threads: Threads, stop: Flag = NEVER) -> Solved:
        """Eliminate the variables of a graph of this structure."""
        return self.cost, self.run(graph.log_values, threads, stop)

    @property
    def seconds_interpreted(self) -> float:
        """Predicted seconds of a run without machine code; see `inference.exact.small`."""
        return running_seconds(self.table_starts, self.program, self.cost.operations)

    def _run_alone(self, log_values: NDArray[np.float64], stop: Flag) -> Run:
        if FEWEST_SHARED_BYTES <= self.cost.bytes <= MOST_SHARED_BYTES:
            work = SHARED.take(self.program, self.table_starts)
            result = self._run(log_values, work, self.program, stop)
            SHARED.give(self.program, work)
            return result
        try:
            work = self._spare.pop()
        except IndexError:
            work = new_workspace(self.program, self.table_starts)
        result = self._run(log_values, work, self.program, stop)
        self._spare.append(work)
        return result

    def run_in_turn(
        self, rows: Iterable[NDArray[np.float64]], threads: Threads, stop: Flag = NEVER
    ) -> Iterator[Run]:
        """Yield the result of `run` for each of several log tables, in one workspace.

        Allocating memory for large tables costs as much as a run in it.
        """
        if self.small:
            yield from (self.run(log_values, threads, stop) for log_values in rows)
            return
        large = SPARE.take(self.program, self.table_starts)
        for log_values in rows:
            yield self._run_in_chunks(log_values, large, threads(), self.program, stop)
        SPARE.give(large)

    def run_each(self, rows: Sequence[NDArray[np.float64]]) -> Iterator[Fields]:
        """Return the result of `run` for each of many log tables, for small tables."""
        count = len(rows)
        codes = np.empty(count, dtype=np.int64)
        log_zs = np.empty(count)
        scaled = np.empty(count, dtype=np.bool_)
        marginals = np.empty((count, self.n_states))
        run_for_each(
            self.program,
            self.table_starts,
            self.tree.constant_factors,
            joined(rows),
            codes,
            log_zs,
            scaled,
            marginals,
        )
        marginals.flags.writeable = False
        return zip(codes.tolist(), log_zs.tolist(), marginals, scaled.tolist(), strict=True)

    def runs_beside(self, share: float) -> bool:
        """Return whether the tables are small, and fit the share."""
        return self.small and self.cost.bytes <= share

    def calibrate(
        self, log_values: NDArray[np.float64], threads: Threads
    ) -> tuple[Run, NDArray[np.float64]]:
        """Return the result of `run`, and the beliefs of the clusters."""
        # Without matrix products, so that all tables are written.
        written = self.program._replace(products=self.program.products[:0])
        if self.small:
            work = new_workspace(written, self.table_starts)
            return self._run(log_values, work, written), work.tables
        large = large_workspace(written, self.table_starts)
        return self._run_in_chunks(log_values, large, threads(), written), large.tables

    def _run_in_chunks(
        self,
        log_values: NDArray[np.float64],
        work: Workspace,
        threads: int,
        program: TreeProgram,
        stop: Flag = NEVER,
    ) -> Run:
        marginals = np.zeros(self.n_states)
        code, log_z, scaled = run_in_chunks(
            program,
            self.tree,
            self.cardinalities,
            self.table_starts,
            read_only(log_values),
            work._replace(stop=stop),
            marginals,
            threads,
        )
        _check_that_it_ended(code)
        return Run(code, log_z, marginals, scaled)

    def _run(
        self,
        log_values: NDArray[np.float64],
        work: Workspace,
        program: TreeProgram,
        stop: Flag = NEVER,
    ) -> Run:
        marginals = np.empty(self.n_states)
        table_starts = self.table_starts
        log_values = read_only(log_values)
        if stop is not NEVER:
            work = work._replace(stop=stop)
        code, log_z = propagate(program, table_starts, log_values, work, marginals)
        scaled = code != UNDERFLOW
        if not scaled:
            constants = self.tree.constant_factors
            code, log_z = propagate_log(
                program, table_starts, log_values, constants, work, marginals
            )
        _check_that_it_ended(code)
        return Run(code, log_z, marginals, scaled)


def _check_that_it_ended(code: int) -> None:
    if code == STOPPED:
        raise UnfinishedError("elimination was stopped")


def _planted(
    graph: FactorGraph, order: NDArray[np.int64], max_entries: float
) -> tuple[bool, ClusterTree, TreeProgram, Prediction]:
    """Return the first fields of a `Plan` from an elimination order."""
    arrays = graph.cardinalities, graph.scope_starts, graph.scope_variables, graph.table_starts
    fits, tree, program, cost = plant_program(*arrays, order, max_entries)
    prediction = Prediction.of(Cost(*cost))
    largest = prediction.log2_largest_table
    # Small tables are not rearranged, and a call of a kernel counts in graphs of microseconds.
    if fits and largest > LOG2_REARRANGED and worth_joining(graph.cardinalities, largest):
        tree, program = join_program(*arrays, ClusterTree(*tree))
    program = TreeProgram(*program)
    if fits and max(prediction.operations, 100.0 * len(program.steps)) >= FEWEST_OPERATIONS:
        work = scaled_work(program, len(graph.log_values), prediction.bytes)
        prediction = prediction.with_work(work)
    return fits, ClusterTree(*tree), program, prediction


def runs_of(
    graphs: Sequence[FactorGraph], seed: int, restarts: int, effort: float, max_entries: float
) -> list[tuple[Run, Prediction] | None]:
    """Plan and run graphs without evidence; graphs of the same structure are adjacent.

    The settings are those of `Plan.of`. No plan is cached.

    Returns:
        The run of each graph, and its prediction; None for a graph that must be solved separately,
        because its tables are large or conditioning may be cheaper.
    """
    count = len(graphs)
    stacked = Stacked.of(graphs)
    planning = Planning(
        seed=seed,
        restarts=restarts,
        effort=effort,
        most_entries=max_entries,
        largest_table=LOG2_CHUNKED_TABLE,
        fewest_factors=FEWEST_FACTORS,
        most_work=_OPERATIONS_AT_A_TIME,
    )
    answers = Runs(
        codes=np.empty(count, dtype=np.int64),
        log_zs=np.empty(count),
        scaled=np.empty(count, dtype=np.bool_),
        costs=np.empty((count, 4)),
        marginals=np.empty(stacked.arrays.state_starts[-1]),
    )
    done = 0
    while done < count:
        done = plan_and_run_each(stacked.arrays, planning, done, answers)
    answers.marginals.flags.writeable = False
    parts = np.split(answers.marginals, stacked.arrays.state_starts[1:-1])
    runs = map(Run, answers.codes.tolist(), answers.log_zs.tolist(), parts, answers.scaled.tolist())
    return [
        None if run.code == APART else (run, Prediction.of(Cost(int(cost[0]), *cost[1:])))
        for run, cost in zip(runs, answers.costs.tolist(), strict=True)
    ]


def posterior_of(graph: FactorGraph, stats: Mapping[str, Any], run: Fields) -> Posterior:
    """Return the posterior from a run, with the `stats` of its plan.

    Raises:
        ZeroPartitionError: if no assignment has positive potential.
    """
    code, log_z, marginals, scaled = run
    if code == ZERO:
        raise zero_partition()
    return Posterior(
        Marginals.of(graph, marginals),
        log_z,
        _KIND,
        _STATUS,
        {**stats, "arithmetic": _ARITHMETIC[scaled]},
        "exact",
    )


def results_of(
    graphs: Iterable[FactorGraph], stats: Mapping[str, Any], runs: Iterable[Fields]
) -> list[Result]:
    """Return posteriors from runs, with the `stats` of their plan, or errors."""
    return [
        zero_partition() if run[0] == ZERO else posterior_of(graph, stats, run)
        for graph, run in zip(graphs, runs, strict=True)
    ]


class KeptPlans:
    """Cache of plans of the most recent structures, with limits on number and memory."""

    def __init__(self) -> None:
        self._plans: OrderedDict[Key, tuple[Plan, float]] = OrderedDict()
        self._bytes = 0.0
        self._asked: dict[int, None] = {}
        self._lock = Lock()

    def get(self, key: Key) -> Plan | None:
        """Return the plan of a structure under settings of `exact`, if it is cached."""
        with self._lock:
            kept = self._plans.get(key)
            if kept is None:
                return None
            self._plans.move_to_end(key)
            return kept[0]

    def asked_before(self, key: Key) -> bool:
        """Return whether the structure was requested before."""
        with self._lock:
            number = hash(key)
            if number in self._asked:
                return True
            self._asked[number] = None
            if len(self._asked) > _MOST_REMEMBERED:
                del self._asked[next(iter(self._asked))]
            return False

    def clear(self) -> None:
        """Forget every plan and every structure."""
        with self._lock:
            self._plans.clear()
            self._bytes = 0.0
            self._asked.clear()

    def keep(self, key: Key, plan: Plan) -> None:
        """Cache a plan, unless it is large, and drop the least recently used ones."""
        size = plan.bytes
        if size > _MOST_BYTES / 4:
            return
        with self._lock:
            if key in self._plans:
                return
            self._plans[key] = plan, size
            self._bytes += size
            while self._bytes > _MOST_BYTES or len(self._plans) > MOST_KEPT:
                self._bytes -= self._plans.popitem(last=False)[1][1]


KEPT = KeptPlans()


def forget_plans() -> None:
    """Drop the plans and the memory that earlier runs kept, so that the next run makes its own."""
    KEPT.clear()
    SPARE.clear()
    SHARED.clear()


def by_structure(graphs: Sequence[FactorGraph]) -> list[list[int]]:
    """Return groups of numbers of the graphs with the same scopes and cardinalities."""
    # Graphs of one fact graph share arrays and need no comparison; often they are adjacent.
    seen: dict[tuple[int, int, int], list[int]] = {}
    cardinalities = starts = variables = None
    numbers: list[int] = []
    for number, graph in enumerate(graphs):
        if (
            graph.scope_variables is not variables
            or graph.scope_starts is not starts
            or graph.cardinalities is not cardinalities
        ):
            cardinalities, starts = graph.cardinalities, graph.scope_starts
            variables = graph.scope_variables
            numbers = seen.setdefault((id(cardinalities), id(starts), id(variables)), [])
        numbers.append(number)
    if len(seen) == 1:
        return list(seen.values())
    # Hashing all arrays of a structure takes as long as solving a small graph. Compare the last
    # scopes first, in which most structures differ.
    similar: dict[tuple[int, int, bytes], list[list[int]]] = {}
    for numbers in seen.values():
        variables = graphs[numbers[0]].scope_variables
        factors = len(graphs[numbers[0]].scope_starts)
        key = (len(variables), factors, variables[-_COMPARED_FIRST:].tobytes())
        similar.setdefault(key, []).append(numbers)
    return list(chain.from_iterable(_alike(graphs, members) for members in similar.values()))


def _alike(graphs: Sequence[FactorGraph], members: list[list[int]]) -> Iterable[list[int]]:
    """Return groups of graphs that share arrays, merged if their structures are equal."""
    if len(members) == 1:
        return members
    first, *others = (graphs[numbers[0]] for numbers in members)
    cardinalities, starts, variables = first.structure
    if all(
        other.scope_variables.tobytes() == variables
        and other.scope_starts.tobytes() == starts
        and other.cardinalities.tobytes() == cardinalities
        for other in others
    ):
        return [list(chain.from_iterable(members))]
    groups: dict[Structure, list[int]] = {}
    for numbers in members:
        groups.setdefault(graphs[numbers[0]].structure, []).extend(numbers)
    return groups.values()
