"""Units: one response in one cell each. A queue hands them out as tasks, which run them.

A task holds all that its units need, since it runs in whatever process it is sent to, and its
results come back as bytes.
"""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.columns.cell_names import RECORDED
from experiments.study.data import Related, StudyData, related_graph
from experiments.study.design import GraphView, StudyCell
from experiments.study.packed_graphs import PackedGraphs
from experiments.study.rows import ABSENT, FAILED
from factormodels.compile import CompiledFacts
from factormodels.errors import FactormodelsError, MissingDependencyError
from factormodels.extraction.stages.relations import unanswered_atoms
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.io.tables.arrow import record_batch
from inference import Backend, Posterior
from inference.warm_up import small_graph, warm_up

if TYPE_CHECKING:
    import pyarrow as pa

    from experiments.study.prepared.learned_priors import CrossFittedPriors

logger = logging.getLogger(__name__)

TASK_SECONDS = 1.0
"""Seconds after which a task returns its finished units, to limit the loss if a process dies."""

_FIRST_UNITS = 32
_MOST_UNITS = 16_384
_QUICK_TASK = 0.25 * TASK_SECONDS
"""Sizes of tasks: of the first, of the largest, and the seconds below which a task is quick."""

_RESPONSES_AT_ONCE = 512
"""Responses of a task whose graphs are in memory together: some ten megabytes of small ones."""

_QUICK_BATCH = 0.1
_MOST_IN_BATCH = 64
"""Among quick units a slow one may follow, which then holds back no more than these."""


@dataclass(frozen=True)
class Task:
    """Some units of a dataset.

    Attributes:
        responses: positions of their responses in the dataset, ascending.
        graphs: these responses; packed where the dataset is.
        cells: their cells, by position in the study.
        units: int64 (n_units, 2), the positions here of each one's response and cell, in order.
        learned: priors that were learned for these responses.
        related: these responses with relations that were found anew, if the study asks for them.
    """

    responses: tuple[int, ...]
    graphs: Sequence[FactGraph]
    cells: tuple[tuple[int, StudyCell], ...]
    units: NDArray[np.int64]
    learned: tuple[CrossFittedPriors, ...] = ()
    related: tuple[Related, ...] = ()

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.units)


@dataclass(frozen=True)
class UnitResult:
    """Result of a unit.

    Attributes:
        cell: position of its cell in the study.
        response: position of its response in the dataset.
        status: how it ended, `FAILED` if its backend raised, `ABSENT` without its library.
        p: float64 (n_atoms,), the posteriors of the atoms; empty if it failed.
        seconds: of inference.
        log_z: natural logarithm of the partition function, or an estimate.
        log_z_kind: which of these.
        log_z_lower: a lower bound on it, where `log_z` is an upper one.
        answered_by: the algorithm that gave `p`, which of `auto` is the one that it chose.
        error: why it failed.
    """

    cell: int
    response: int
    status: str
    p: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    seconds: float | None = None
    log_z: float | None = None
    log_z_kind: str | None = None
    log_z_lower: float | None = None
    answered_by: str | None = None
    error: str | None = None


class TaskQueue:
    """The units that are still to be done, in the study's order of datasets.

    Tasks grow while they are quick, so that sending them costs little, and shrink when they are
    slow, so that little is lost with a process; no number depends on their size.
    """

    def __init__(
        self,
        data: Sequence[StudyData],
        cells: Sequence[StudyCell],
        wanted: Iterable[int],
        done: Sequence[NDArray[np.bool_]],
        learned: Sequence[CrossFittedPriors] = (),
    ) -> None:
        """Note what is to be done.

        Args:
            data: the datasets.
            cells: the cells of the study.
            wanted: positions of the cells to be done now.
            done: per cell, whether a unit is done, bool (n_responses,).
            learned: the learned priors of the cells to be done.
        """
        self._learned = learned
        self._data = data
        self._cells = cells
        self._units = _FIRST_UNITS
        chosen = sorted(set(wanted))
        self._coming = self._open(chosen, done)
        self._waiting: deque[_Units] = deque()
        self._given: dict[int, _Units] = {}
        self.left = sum(int((~done[i]).sum()) for i in chosen)

    def _open(self, wanted: Sequence[int], done: Sequence[NDArray[np.bool_]]) -> Iterator[_Units]:
        """Yield the open units of a dataset, a block of responses after the other.

        Within a block the units of a cell follow each other, so that a task finishes long
        stretches of a cell, which are few parts, and yet has several cells that share graphs.
        """
        for number, dataset in enumerate(self._data):
            dataset_cells = np.array(
                [i for i in wanted if self._cells[i].dataset == dataset.name], np.int64
            )
            if not len(dataset_cells):
                continue
            block = max(_RESPONSES_AT_ONCE, math.ceil(_MOST_UNITS / len(dataset_cells)))
            for start in range(0, len(dataset.graphs), block):
                # Rows are the dataset's wanted cells, columns responses.
                open_ = ~np.stack([done[i][start : start + block] for i in dataset_cells])
                rows, responses = np.nonzero(open_)
                if len(responses):
                    yield _Units(number, np.stack([start + responses, dataset_cells[rows]], axis=1))

    def take(self) -> Task | None:
        """Take the next task; None if there is none at present."""
        waiting = self._waiting or deque(itertools.islice(self._coming, 1))
        if not waiting:
            return None
        self._waiting, all_ = waiting, waiting.popleft()
        size = 1 if all_.singly else self._units
        units, rest = (replace(all_, pairs=part) for part in np.split(all_.pairs, [size]))
        if len(rest.pairs):
            waiting.appendleft(rest)
        dataset = self._data[units.dataset]
        places, of_response = np.unique(units.pairs[:, 0], return_inverse=True)
        cells, of_cell = np.unique(units.pairs[:, 1], return_inverse=True)
        responses = tuple(places.tolist())
        task = Task(
            responses,
            dataset.graphs.part(responses)
            if isinstance(dataset.graphs, PackedGraphs)
            else tuple(dataset.graphs[response] for response in responses),
            tuple((cell, self._cells[cell]) for cell in cells.tolist()),
            # By response: graphs of one structure follow each other.
            np.stack([of_response, of_cell], axis=1)[np.lexsort([of_cell, of_response])],
            tuple(o.of(responses) for o in self._learned if o.request.dataset == dataset.name),
            tuple(dataset.related[r] for r in responses) if dataset.related else (),
        )
        # By identity, since hashing a task would hash all its graphs. Whoever took the task holds
        # on to it until it is settled, so the id stays its own.
        self._given[id(task)] = units
        return task

    def settle(self, task: Task, answer: TimedAnswer) -> None:
        """Note what a task has done; what it has not comes next."""
        units = self._given.pop(id(task))
        done = decode(answer.units)
        finished = np.stack([done[name].to_numpy() for name in ("response", "cell")], axis=1)
        # A number for each pair, in which pairs can be looked up together.
        sent, answered = (pairs @ [len(self._cells), 1] for pairs in (units.pairs, finished))
        left = replace(units, pairs=units.pairs[~np.isin(sent, answered)])
        self.left -= task.n_units - len(left.pairs)
        if len(left.pairs):
            self._waiting.appendleft(left)
            # It ran out of time before its units were done.
            self._units = max(1, self._units // 2)
        elif answer.seconds < _QUICK_TASK:
            self._units = min(2 * self._units, _MOST_UNITS)

    def died(self, task: Task) -> bool:
        """Note that a process died over a task; return whether its unit is to be given up.

        Several units are then tried one by one, so that the one that ends its process is known.
        """
        units = self._given.pop(id(task))
        if task.n_units == 1:
            self.left -= 1
            return True
        self._waiting.appendleft(replace(units, singly=True))
        return False


class TimedAnswer(NamedTuple):
    """Answer of a process to a task."""

    units: bytes
    """Results of its units, encoded."""

    seconds: float
    """How long it ran, without what a cluster took to send it and to begin: tasks that grew by that
    time too would stay as small as the first where processes are far away."""


def run_task(task: Task) -> TimedAnswer:
    """Results of the units of a task, or of as many as fit into `TASK_SECONDS`.

    At least one batch of units is run. Whatever a backend raises is recorded and ends its unit
    alone: a night of work must not be lost to one graph.
    """
    began = time.perf_counter()
    results: list[UnitResult] = []
    sizes: dict[_Algorithm, int] = {}
    for start in range(0, len(task.responses), _RESPONSES_AT_ONCE):
        # At most this many responses have graphs in memory, however long the task is.
        responses = range(start, min(start + _RESPONSES_AT_ONCE, len(task.responses)))
        graphs = _Graphs(task, responses)
        ends = np.searchsorted(task.units[:, 0], [responses.start, responses.stop])
        for batch in _batches(task, task.units[slice(*ends)], sizes):
            results += _run_batch(task, batch, graphs)
            # Checked after the batch rather than before, so that even the slowest task makes
            # progress.
            if time.perf_counter() - began > TASK_SECONDS:
                return TimedAnswer(encode(results), time.perf_counter() - began)
    return TimedAnswer(encode(results), time.perf_counter() - began)


def encode(results: Sequence[UnitResult]) -> bytes:
    """Results as bytes, which `decode` reads."""
    import pyarrow as pa

    # A list column made of offsets and one flat array needs no Python object per number.
    lengths = [len(result.p) for result in results]
    values = np.concatenate([result.p for result in results]) if results else np.zeros(0)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns: list[Any] = [
        [getattr(result, name) for result in results] for name in schema().names[:-1]
    ]
    arrays = [
        pa.array(column, kind) for column, kind in zip(columns, schema().types[:-1], strict=True)
    ]
    arrays.append(pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)))
    batch = pa.record_batch(arrays, schema=schema())
    # Without the schema, which is the same for every record and would be most of a small one.
    return bytes(batch.serialize())


def decode(encoded: bytes) -> pa.Table:
    """The results that `encode` wrote, a row each."""
    import pyarrow as pa

    return pa.Table.from_batches([record_batch(encoded, schema())])


def schema() -> pa.Schema:
    """The columns of encoded results; `UnitResult` describes them."""
    import pyarrow as pa

    return pa.schema(
        [
            ("cell", pa.int32()),
            ("response", pa.int32()),
            ("status", pa.string()),
            ("seconds", pa.float64()),
            ("log_z", pa.float64()),
            ("log_z_kind", pa.string()),
            ("log_z_lower", pa.float64()),
            ("answered_by", pa.string()),
            ("error", pa.string()),
            pa.field("p", pa.list_(pa.float64()), nullable=True),
        ]
    )


def infer_many(backend: Backend, graphs: Sequence[FactorGraph]) -> list[Posterior | Exception]:
    """The posterior of each graph, or the error of the backend in its place.

    Graphs of one structure, as priors and strengths make them, are planned once, where the batch
    gives the very bits that the graphs give one by one.
    """
    # A result must not depend on which graphs happened to share a batch.
    if len(graphs) > 1 and backend.identical_batches:
        from inference.batch import batch_results

        try:
            # A graph that raises fails the whole batch. One by one, the others keep their results.
            return list(batch_results(graphs, backend))
        except Exception:
            logger.debug("a batch of %d failed, one by one follows", len(graphs), exc_info=True)
    return [_attempt(backend, graph) for graph in graphs]


def warm_up_units(backends: Iterable[Backend]) -> None:
    """Have backends answer as they do in units, so that no unit's seconds hold a compilation.

    Those that are asked for batches answer one as well, of graphs of one structure and of two.
    """
    graph = small_graph()
    for backend in backends:
        warm_up(backend)
        if backend.identical_batches:
            infer_many(backend, [graph, graph, graph.with_evidence({0: 1})])


def factor_graph(facts: CompiledFacts, view: GraphView) -> FactorGraph:
    """The factor graph of a view of a response.

    Args:
        facts: the relations that `view` names of a response, compiled.
        view: encoding, priors and strength.
    """
    priors = probabilities = None
    if view.prior.atom is not None or view.prior.context is not None:
        # The compiled form is shared by all settings of a response.
        priors = facts.priors.copy()
        if view.prior.atom is not None:
            priors[facts.is_atom] = view.prior.atom
        if view.prior.context is not None:
            priors[~facts.is_atom] = view.prior.context
    if view.strength != 1.0:
        probabilities = strengthened(facts.probabilities, view.strength)
    return facts.to_factor_graph(priors, probabilities, view.encoding)


def strengthened(probabilities: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
    """Probabilities (m,) whose log odds are multiplied.

    Above 1 the relation model is taken for surer than it says, below 1 for less sure; 0 and 1 stay.
    """
    # Going to log odds and back would change the last bits.
    if strength == 1.0:
        return probabilities
    with np.errstate(divide="ignore", over="ignore"):
        # Probabilities of 0 and 1 have infinite log odds, which come back as exactly 0 and 1.
        log_odds = strength * (np.log(probabilities) - np.log1p(-probabilities))
        return 1.0 / (1.0 + np.exp(-log_odds))


def sentence(error: Exception) -> str:
    """Recorded text of an error: its message, and its type if it is not ours."""
    text = " ".join(str(error).split())
    return text if isinstance(error, FactormodelsError) else f"{type(error).__name__}: {text}"


@dataclass(frozen=True, eq=False)
class _Units:
    """Some units of a dataset.

    Attributes:
        dataset: position of the dataset.
        pairs: int64 (n, 2), positions of the response and the cell of each, cell by cell.
        singly: whether each is a task of its own, since a process died over some of them.
    """

    dataset: int
    pairs: NDArray[np.int64]
    singly: bool = False


_Unit = tuple[int, int]
"""Positions within a task: of the response, of the cell."""


_Algorithm = tuple[str, int]
"""Title and seed: a study has a seeded algorithm once for each seed."""


class _Graphs:
    """The views and factor graphs of some of a task's responses, each built once for all backends.

    Attributes:
        facts: the responses as recorded, by position within the task.
    """

    def __init__(self, task: Task, responses: range) -> None:
        chosen = task.graphs[responses.start : responses.stop]
        self.facts = dict(zip(responses, chosen, strict=True))
        self._learned: dict[tuple[str, ...], CrossFittedPriors] = {
            cross.request.view_key: cross for cross in task.learned
        }
        self._related = task.related
        self._views: dict[tuple[int, tuple[str, ...]], FactGraph] = {}
        self._factor_graphs: dict[tuple[int, GraphView], FactorGraph] = {}

    def __call__(self, response: int, view: GraphView) -> FactorGraph:
        key = (response, view)
        if key not in self._factor_graphs:
            # Learned parameters, unlike set ones, belong to one encoding and change relations too.
            learned = view.prior.learned is not None
            part = (
                *(view.variant, view.relation_model),
                *((view.encoding, view.prior.title) if learned else ()),
            )
            chosen = (response, part)
            if chosen not in self._views:
                graph = related_graph(
                    self.facts[response],
                    self._related[response] if self._related else {},
                    view.relation_model,
                    view.variant,
                    view.conventions,
                )
                if learned:
                    graph = self._learned[part].graph(response, graph, self.facts[response])
                self._views[chosen] = graph
            facts = self._views[chosen].compiled_for(view.encoding)
            self._factor_graphs[key] = factor_graph(facts, view)
        return self._factor_graphs[key]


def _batches(
    task: Task, chosen: NDArray[np.int64], sizes: dict[_Algorithm, int]
) -> Iterator[list[_Unit]]:
    """Yield units of a task in batches of one algorithm, longer ones while they are quick.

    Settings of the same response follow each other, since their graphs have one structure.

    Args:
        task: the task.
        chosen: which of its units, int64 (n, 2).
        sizes: units in the next batch of each algorithm that is known, kept up to date.
    """
    # Only graphs that one backend infers can share a batch.
    by_algorithm: dict[_Algorithm, list[_Unit]] = {}
    keys = [(cell.algorithm.title, cell.algorithm.seed) for _, cell in task.cells]
    for response, position in chosen.tolist():
        by_algorithm.setdefault(keys[position], []).append((response, position))
    for key, units in by_algorithm.items():
        start = 0
        while start < len(units):
            # At first nothing is known of how slow the algorithm is on these graphs.
            size = sizes.get(key, 1)
            began = time.perf_counter()
            # The batch is run while this generator is suspended, so the clock measures the batch.
            yield units[start : start + size]
            start += size
            quick = time.perf_counter() - began < _QUICK_BATCH
            sizes[key] = min(2 * size, _MOST_IN_BATCH) if quick else max(1, size // 2)


def _run_batch(task: Task, units: Sequence[_Unit], graphs: _Graphs) -> list[UnitResult]:
    """The results of units of one algorithm; a graph that cannot be built fails alone."""
    algorithm = task.cells[units[0][1]][1].algorithm
    outcomes: dict[_Unit, Posterior | Exception] = {}
    asked: list[_Unit] = []
    built: list[FactorGraph] = []
    for unit in units:
        try:
            # A missing library fails the units that need it; the rest of the study runs.
            if algorithm.backend is None:
                raise MissingDependencyError(algorithm.error)
            built.append(graphs(unit[0], task.cells[unit[1]][1].view))
            asked.append(unit)
        except Exception as error:
            outcomes[unit] = error
    if algorithm.backend is not None:
        outcomes.update(zip(asked, infer_many(algorithm.backend, built), strict=True))
    return [_result(task, unit, graphs.facts[unit[0]], outcomes[unit]) for unit in units]


def _result(
    task: Task, unit: _Unit, graph: FactGraph, outcome: Posterior | Exception
) -> UnitResult:
    """An outcome as a result: a posterior with finite marginals, or a failure."""
    cell, response = task.cells[unit[1]][0], task.responses[unit[0]]
    if isinstance(outcome, Posterior):
        p = outcome.marginals.of_state(1, graph.atom_ids)
        # NaN must not get through: in the rows it would mean that there is no verdict on the claim.
        if np.isfinite(p).all():
            lacking = _unanswered(task, unit, graph)
            if lacking:
                # Such a claim is unknown, like a claim without an assessor's verdict.
                p[[atom in lacking for atom in graph.atom_ids]] = np.nan
            return UnitResult(
                cell=cell,
                response=response,
                status=str(outcome.status),
                p=p,
                seconds=outcome.stats.get("seconds"),
                log_z=outcome.log_z,
                log_z_kind=str(outcome.log_z_kind),
                log_z_lower=outcome.lower_bound,
                answered_by=outcome.answered_by,
            )
        outcome = ArithmeticError("a marginal is not a finite number")
    logger.debug("response %d failed in cell %d", response, cell, exc_info=outcome)
    status = ABSENT if isinstance(outcome, MissingDependencyError) else FAILED
    return UnitResult(cell, response, status, error=sentence(outcome))


def _unanswered(task: Task, unit: _Unit, graph: FactGraph) -> frozenset[str]:
    """Atoms all of whose requested relations are missing."""
    view, seen = task.cells[unit[1]][1].view, graph
    if view.relation_model != RECORDED:
        related = task.related[unit[0]][view.relation_model, view.variant]
        # A text takes the place of a graph only if inference had none.
        seen = graph if isinstance(related, str) else related
    return unanswered_atoms(seen)


def _attempt(backend: Backend, graph: FactorGraph) -> Posterior | Exception:
    try:
        return backend.infer(graph)
    except Exception as error:
        return error
