"""Units (a response in a cell), and a queue that groups them into tasks.

A task contains everything that its units need, because it can run in any process; its results are
returned as bytes.
"""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.columns.cell_names import ABSENT, FAILED, RECORDED
from experiments.study.cells import GraphView, StudyCell
from experiments.study.data import Related, StudyData, related_graph
from experiments.study.packed_graphs import PackedGraphs
from factormodels.compile import CompiledFacts, factor_graphs
from factormodels.errors import FactormodelsError, MissingDependencyError
from factormodels.extraction.stages.relations import unanswered_atoms
from factormodels.fact_graph import FactGraph, compiled_each
from factormodels.factor_graph import FactorGraph
from factormodels.io.tables.arrow import record_batch
from inference import Backend, Posterior
from inference.warm_up import small_graph, warm_up

if TYPE_CHECKING:
    import pyarrow as pa

    from experiments.study.prepared.learned_priors import CrossFittedPriors

logger = logging.getLogger(__name__)

TASK_SECONDS = 1.0
"""Seconds after which a task returns its finished units, which limits the loss if a process dies.
"""

_FIRST_UNITS = 32
_MOST_UNITS = 16_384
_QUICK_TASK = 0.5 * TASK_SECONDS
"""Sizes of the first and of the largest task, and seconds below which a task is quick."""

_RESPONSES_AT_ONCE = 512
"""Number of responses whose graphs are in memory together: tens of megabytes of small ones."""

_QUICK_BATCH = 0.1
_MOST_IN_BATCH = 64
"""Largest batch of quick units, which limits the delay by a slow unit among them."""


_Algorithm = tuple[str, int]
"""Title and seed, which identify an algorithm of a study."""


@dataclass(frozen=True)
class Task:
    """Some units of a dataset.

    Attributes:
        responses: indices of their responses in the dataset, ascending.
        graphs: these responses, packed if the dataset is.
        cells: their cells, by index in the study.
        units: int64 (n_units, 2), indices into `responses` and `cells` for each unit, in order.
        learned: learned priors of these responses.
        related: these responses with new relations, if the study has any.
        batches: size of the next batch of each algorithm, from earlier tasks of the dataset.
    """

    responses: tuple[int, ...]
    graphs: Sequence[FactGraph]
    cells: tuple[tuple[int, StudyCell], ...]
    units: NDArray[np.int64]
    learned: tuple[CrossFittedPriors, ...] = ()
    related: tuple[Related, ...] = ()
    batches: Mapping[_Algorithm, int] = field(default_factory=dict)

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.units)


class UnitResult(NamedTuple):
    """Result of a unit.

    Attributes:
        cell: position of its cell in the study.
        response: position of its response in the dataset.
        status: status of the posterior; `FAILED` if the backend raised, `ABSENT` without its
            library.
        p: float64 (n_atoms,), the posteriors of the atoms; empty if it failed.
        seconds: seconds of inference.
        log_z: natural logarithm of the partition function, or an estimate.
        log_z_kind: kind of `log_z`.
        log_z_lower: a lower bound, if `log_z` is an upper bound.
        answered_by: the algorithm of `p`; for `auto`, the chosen one.
        error: reason of a failure.
    """

    cell: int
    response: int
    status: str
    p: NDArray[np.float64] = np.zeros(0)
    seconds: float | None = None
    log_z: float | None = None
    log_z_kind: str | None = None
    log_z_lower: float | None = None
    answered_by: str | None = None
    error: str | None = None


class TaskQueue:
    """Queue of open units, in the study's order of datasets.

    Tasks grow while they are quick, to limit the cost of sending, and shrink when they are slow, to
    limit the loss with a process. Results do not depend on their size.
    """

    def __init__(
        self,
        data: Sequence[StudyData],
        cells: Sequence[StudyCell],
        wanted: Iterable[int],
        done: Sequence[NDArray[np.bool_]],
        learned: Sequence[CrossFittedPriors] = (),
    ) -> None:
        """Create the queue.

        Args:
            data: the datasets.
            cells: the cells of the study.
            wanted: indices of the cells to run.
            done: per cell, whether a unit is done, bool (n_responses,).
            learned: the learned priors of these cells.
        """
        self._learned = learned
        self._data = data
        self._cells = cells
        self._units = _FIRST_UNITS
        chosen = sorted(set(wanted))
        self._coming = self._open(chosen, done)
        self._waiting: deque[_Units] = deque()
        self._given: dict[int, _Units] = {}
        self._batches: dict[int, Mapping[_Algorithm, int]] = {}
        self.left = sum(int((~done[i]).sum()) for i in chosen)

    def _open(self, wanted: Sequence[int], done: Sequence[NDArray[np.bool_]]) -> Iterator[_Units]:
        """Yield the open units of a dataset, by blocks of responses.

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
                # Rows are the dataset's requested cells, columns its responses.
                open_ = ~np.stack([done[i][start : start + block] for i in dataset_cells])
                rows, responses = np.nonzero(open_)
                if len(responses):
                    yield _Units(number, np.stack([start + responses, dataset_cells[rows]], axis=1))

    def take(self) -> Task | None:
        """Take the next task; None if there is currently none."""
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
            # Sort by response, so that graphs with the same structure are adjacent.
            np.stack([of_response, of_cell], axis=1)[np.lexsort([of_cell, of_response])],
            tuple(o.of(responses) for o in self._learned if o.request.dataset == dataset.name),
            tuple(dataset.related[r] for r in responses) if dataset.related else (),
            self._batches.get(units.dataset, {}),
        )
        # Identify tasks by id, since hashing would hash all graphs. The caller keeps the task until
        # it is settled, so the id stays unique.
        self._given[id(task)] = units
        return task

    def settle(self, task: Task, answer: TimedAnswer) -> None:
        """Record the finished units of a task; its open units come next."""
        units = self._given.pop(id(task))
        if answer.batches is not None:
            self._batches[units.dataset] = answer.batches
        done = decode(answer.units)
        finished = np.stack([done[name].to_numpy() for name in ("response", "cell")], axis=1)
        # Encode each pair as a number, to look pairs up together.
        sent, answered = (pairs @ [len(self._cells), 1] for pairs in (units.pairs, finished))
        left = replace(units, pairs=units.pairs[~np.isin(sent, answered)])
        self.left -= task.n_units - len(left.pairs)
        if len(left.pairs):
            self._waiting.appendleft(left)
            # The task ran out of time before its units were done.
            self._units = max(1, self._units // 2)
        elif answer.seconds < _QUICK_TASK:
            self._units = min(2 * self._units, _MOST_UNITS)

    def died(self, task: Task) -> bool:
        """Record that a process died during a task; return True if its unit has failed.

        Several units are then run one by one, to identify the unit that ends its process.
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
    """Encoded results of its units."""

    seconds: float
    """Run time in seconds without the latency of a cluster: with latency included, tasks for remote
    processes would never grow."""

    batches: Mapping[_Algorithm, int] | None = None
    """Size of the next batch of each algorithm, so that small tasks do not start with one unit
    again."""


def run_task(task: Task) -> TimedAnswer:
    """Run the units of a task, or as many as fit into `TASK_SECONDS`.

    At least one batch of units is run. An exception of a backend is recorded and fails only its
    unit, so that a single graph cannot end a long run.
    """
    began = time.perf_counter()
    results: list[UnitResult] = []
    sizes = dict(task.batches)
    for start in range(0, len(task.responses), _RESPONSES_AT_ONCE):
        # This limits the responses with graphs in memory, independent of the task's length.
        responses = range(start, min(start + _RESPONSES_AT_ONCE, len(task.responses)))
        graphs = _Graphs(task, responses)
        ends = np.searchsorted(task.units[:, 0], [responses.start, responses.stop])
        for batch in _batches(task, task.units[slice(*ends)], sizes):
            results += _run_batch(task, batch, graphs)
            # Check after the batch, so that even the slowest task makes progress.
            if time.perf_counter() - began > TASK_SECONDS:
                return TimedAnswer(encode(results), time.perf_counter() - began, sizes)
    return TimedAnswer(encode(results), time.perf_counter() - began, sizes)


def encode(results: Sequence[UnitResult]) -> bytes:
    """Encode results as bytes, which `decode` reads."""
    import pyarrow as pa

    # Without results there are no columns.
    columns = dict(zip(UnitResult._fields, zip(*results, strict=True), strict=bool(results)))
    # A list column from offsets and a flat array needs no Python object per number.
    p = columns.get("p", ())
    values = np.concatenate(p) if p else np.zeros(0)
    offsets = np.concatenate([[0], np.cumsum(list(map(len, p)))]).astype(np.int32)
    arrays = [
        _arrow_column(columns.get(name, ()), kind)
        for name, kind in zip(schema().names[:-1], schema().types[:-1], strict=True)
    ]
    flat = pa.Array.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(values)])
    list_buffers = [None, pa.py_buffer(offsets)]
    arrays.append(pa.Array.from_buffers(schema().types[-1], len(p), list_buffers, children=[flat]))
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema())
    # Leave the schema out: it is always the same and would dominate small records.
    return bytes(batch.serialize())


def _arrow_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column of numbers or texts; None is null.

    `pa.array` would import pandas, which a worker process needs for nothing else, and which takes
    longer than all its other imports.
    """
    import pyarrow as pa

    valid = None
    if None in values:
        blank = "" if kind == pa.string() else 0
        present = [value is not None for value in values]
        valid = pa.py_buffer(np.packbits(present, bitorder="little"))
        values = [blank if value is None else value for value in values]
    if kind == pa.string():
        texts = [value.encode() for value in values]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        buffers = [pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    else:
        buffers = [pa.py_buffer(np.array(values, kind.to_pandas_dtype()))]
    return pa.Array.from_buffers(kind, len(values), [valid, *buffers])


def decode(encoded: bytes) -> pa.Table:
    """Decode the bytes of `encode`, a row per result."""
    import pyarrow as pa

    return pa.Table.from_batches([record_batch(encoded, schema())])


@cache
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
    """The posterior of each graph, or the backend's error.

    Graphs with the same structure, as from different priors and strengths, are planned once if the
    batch returns exactly the same bits as single graphs.
    """
    # Results must not depend on the composition of batches.
    if len(graphs) > 1 and backend.identical_batches:
        from inference.batch import batch_results

        try:
            # A graph that raises fails the whole batch, so run the graphs one by one to keep the
            # other results.
            return list(batch_results(graphs, backend))
        except Exception:
            logger.debug("a batch of %d failed, one by one follows", len(graphs), exc_info=True)
    return [_attempt(backend, graph) for graph in graphs]


def warm_up_units(backends: Iterable[Backend]) -> None:
    """Warm backends up, so that no unit's seconds include compilation.

    Backends with batches also answer batches of graphs with one and with two structures.
    """
    graph = small_graph()
    for backend in backends:
        warm_up(backend)
        if backend.identical_batches:
            infer_many(backend, [graph, graph, graph.with_evidence({0: 1})])


def factor_graph(facts: CompiledFacts, view: GraphView) -> FactorGraph:
    """The factor graph of a view of a response.

    Args:
        facts: the compiled relations of a response that `view` names.
        view: encoding, priors and strength.
    """
    (graph,) = view_graphs([facts], view)
    return graph


def view_graphs(each: Sequence[CompiledFacts], view: GraphView) -> list[FactorGraph]:
    """The factor graphs of a view of several responses, built in one step."""
    priors = probabilities = None
    if view.prior.atom is not None or view.prior.context is not None:
        # All settings of a response share the compiled form.
        priors = np.concatenate([facts.priors for facts in each])
        is_atom = np.concatenate([facts.is_atom for facts in each])
        if view.prior.atom is not None:
            priors[is_atom] = view.prior.atom
        if view.prior.context is not None:
            priors[~is_atom] = view.prior.context
    if view.strength != 1.0:
        stated = np.concatenate([facts.probabilities for facts in each])
        probabilities = strengthened(stated, view.strength)
    return factor_graphs(each, priors, probabilities, view.encoding)


def strengthened(probabilities: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
    """Probabilities (m,) whose log odds are multiplied.

    A strength above 1 increases the confidence of the relation model, below 1 decreases it; 0 and 1
    stay.
    """
    # Going to log odds and back would change the last bits.
    if strength == 1.0:
        return probabilities
    with np.errstate(divide="ignore", over="ignore"):
        # Probabilities of 0 and 1 have infinite log odds, which come back as exactly 0 and 1.
        log_odds = strength * (np.log(probabilities) - np.log1p(-probabilities))
        return 1.0 / (1.0 + np.exp(-log_odds))


def sentence(error: Exception) -> str:
    """Recorded text of an error: its message, with its type for foreign errors."""
    text = " ".join(str(error).split())
    return text if isinstance(error, FactormodelsError) else f"{type(error).__name__}: {text}"


@dataclass(frozen=True, eq=False)
class _Units:
    """Some units of a dataset.

    Attributes:
        dataset: position of the dataset.
        pairs: int64 (n, 2), indices of response and cell, ordered by cell.
        singly: True if each is a task of its own, because a process died during some of them.
    """

    dataset: int
    pairs: NDArray[np.int64]
    singly: bool = False


_Unit = tuple[int, int]
"""Indices of response and cell within a task."""


class _Graphs:
    """Views and factor graphs of some of a task's responses, built once for all backends.

    Attributes:
        facts: the recorded responses, by index within the task.
    """

    def __init__(self, task: Task, responses: range) -> None:
        chosen = task.graphs[responses.start : responses.stop]
        self.facts = dict(zip(responses, chosen, strict=True))
        self._learned: dict[tuple[str, ...], CrossFittedPriors] = {
            cross.request.view_key: cross for cross in task.learned
        }
        self._related = task.related
        self._views = [cell.view for _, cell in task.cells]
        # Cells of several algorithms share a view. Numbers are faster to look up than keys.
        numbers: dict[GraphView, int] = {}
        self._view_numbers = [numbers.setdefault(view, len(numbers)) for view in self._views]
        self._seen: dict[tuple[int, tuple[str, ...]], FactGraph] = {}
        self._factor_graphs: dict[tuple[int, int], FactorGraph] = {}

    def of(self, units: Sequence[_Unit]) -> list[FactorGraph | Exception]:
        """The factor graph of each unit, or the error of building it; new graphs are built
        together."""
        keys = [(response, self._view_numbers[cell]) for response, cell in units]
        errors: dict[tuple[int, int], Exception] = {}
        new: dict[int, dict[tuple[int, int], FactGraph]] = {}
        for key, (response, cell) in zip(keys, units, strict=True):
            if key not in self._factor_graphs:
                try:
                    seen = self._seen_by(response, self._views[cell])
                except Exception as error:
                    errors[key] = error
                else:
                    new.setdefault(cell, {})[key] = seen
        for cell, graphs in new.items():
            built = _built(list(graphs.values()), self._views[cell])
            for key, outcome in zip(graphs, built, strict=True):
                if isinstance(outcome, FactorGraph):
                    self._factor_graphs[key] = outcome
                else:
                    errors[key] = outcome
        return [self._factor_graphs.get(key) or errors[key] for key in keys]

    def _seen_by(self, response: int, view: GraphView) -> FactGraph:
        """A view of a response, before priors and strength are applied."""
        # Learned parameters, unlike fixed ones, belong to an encoding and also change relations.
        learned = view.prior.learned is not None
        part = (
            *(view.variant, view.relation_model),
            *((view.encoding, view.prior.title) if learned else ()),
        )
        chosen = (response, part)
        if chosen not in self._seen:
            graph = related_graph(
                self.facts[response],
                self._related[response] if self._related else {},
                view.relation_model,
                view.variant,
                view.conventions,
            )
            if learned:
                graph = self._learned[part].graph(response, graph, self.facts[response])
            self._seen[chosen] = graph
        return self._seen[chosen]


def _built(seen: Sequence[FactGraph], view: GraphView) -> list[FactorGraph | Exception]:
    """The factor graph of each of several viewed graphs, or the error of building it."""
    try:
        return list(view_graphs(compiled_each(seen, view.encoding), view))
    except Exception as error:
        if len(seen) == 1:
            return [error]
        # If one fails, build the others one by one.
        return [graph for each in seen for graph in _built([each], view)]


def _batches(
    task: Task, chosen: NDArray[np.int64], sizes: dict[_Algorithm, int]
) -> Iterator[list[_Unit]]:
    """Yield units of a task in batches of one algorithm, which grow while they are quick.

    Settings of the same response are adjacent, since their graphs have the same structure.

    Args:
        task: the task.
        chosen: units of the task, int64 (n, 2).
        sizes: size of the next batch of each known algorithm; updated in place.
    """
    # Only graphs for the same backend can share a batch.
    by_algorithm: dict[_Algorithm, list[_Unit]] = {}
    keys = [(cell.algorithm.title, cell.algorithm.seed) for _, cell in task.cells]
    for response, position in chosen.tolist():
        by_algorithm.setdefault(keys[position], []).append((response, position))
    for key, units in by_algorithm.items():
        start = 0
        while start < len(units):
            # At first the speed of the algorithm on these graphs is unknown.
            size = sizes.get(key, 1)
            began = time.perf_counter()
            # The batch is run while this generator is suspended, so the clock measures the batch.
            yield units[start : start + size]
            start += size
            quick = time.perf_counter() - began < _QUICK_BATCH
            sizes[key] = min(2 * size, _MOST_IN_BATCH) if quick else max(1, size // 2)


def _run_batch(task: Task, units: Sequence[_Unit], graphs: _Graphs) -> list[UnitResult]:
    """The results of units of one algorithm; a graph that cannot be built fails only its unit."""
    algorithm = task.cells[units[0][1]][1].algorithm
    if algorithm.backend is None:
        # A missing library fails only the units that need it.
        return [
            _result(task, unit, graphs.facts[unit[0]], MissingDependencyError(algorithm.error))
            for unit in units
        ]
    built = graphs.of(units)
    answers = iter(
        infer_many(algorithm.backend, [each for each in built if isinstance(each, FactorGraph)])
    )
    outcomes = [next(answers) if isinstance(each, FactorGraph) else each for each in built]
    return [
        _result(task, unit, graphs.facts[unit[0]], outcome, p)
        for unit, outcome, p in zip(
            units, outcomes, _of_atoms(units, outcomes, graphs), strict=True
        )
    ]


def _of_atoms(
    units: Sequence[_Unit], outcomes: Sequence[object], graphs: _Graphs
) -> list[NDArray[np.float64] | None]:
    """The finite posteriors of the atoms of each unit, or None."""
    facts = (graphs.facts[response].atom_ids for response, _ in units)
    p = [
        outcome.marginals.of_state(1, atoms) if isinstance(outcome, Posterior) else None
        for outcome, atoms in zip(outcomes, facts, strict=True)
    ]
    # NaN must not pass: in the rows it means that the claim has no verdict.
    given = [each for each in p if each is not None]
    if given and not np.isfinite(np.concatenate(given)).all():
        p = [None if each is None or not np.isfinite(each).all() else each for each in p]
    return p


def _result(
    task: Task,
    unit: _Unit,
    graph: FactGraph,
    outcome: Posterior | Exception,
    p: NDArray[np.float64] | None = None,
) -> UnitResult:
    """Convert an outcome to a result: a posterior with finite marginals of atoms, or a failure."""
    cell, response = task.cells[unit[1]][0], task.responses[unit[0]]
    if isinstance(outcome, Posterior) and p is not None:
        lacking = _unanswered(task, unit, graph)
        if lacking:
            # The claim is unknown, like a claim without an assessor's verdict.
            p[[atom in lacking for atom in graph.atom_ids]] = np.nan
        return UnitResult(
            cell,
            response,
            str(outcome.status),
            p,
            outcome.stats.get("seconds"),
            outcome.log_z,
            str(outcome.log_z_kind),
            outcome.lower_bound,
            outcome.answered_by,
        )
    error = (
        ArithmeticError("a marginal is not a finite number")
        if isinstance(outcome, Posterior)
        else outcome
    )
    logger.debug("response %d failed in cell %d", response, cell, exc_info=error)
    status = ABSENT if isinstance(error, MissingDependencyError) else FAILED
    return UnitResult(cell, response, status, error=sentence(error))


def _unanswered(task: Task, unit: _Unit, graph: FactGraph) -> frozenset[str]:
    """Atoms all of whose requested relations are missing."""
    view, seen = task.cells[unit[1]][1].view, graph
    if view.relation_model != RECORDED:
        related = task.related[unit[0]][view.relation_model, view.variant]
        # A text replaces a graph only if inference had none.
        seen = graph if isinstance(related, str) else related
    return unanswered_atoms(seen)


def _attempt(backend: Backend, graph: FactorGraph) -> Posterior | Exception:
    try:
        return backend.infer(graph)
    except Exception as error:
        return error
