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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.columns.cell_names import RECORDED
from experiments.study.data import Related, StudyData, related_graph
from experiments.study.design import GraphView, StudyCell
from experiments.study.packed_graphs import PackedGraphs
from experiments.study.rows import ABSENT, FAILED
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
"""Seconds after which a task returns its finished units, to limit the loss if a process dies."""

_FIRST_UNITS = 32
_MOST_UNITS = 16_384
_QUICK_TASK = 0.5 * TASK_SECONDS
"""Sizes of tasks: of the first, of the largest, and the seconds below which a task is quick."""

_RESPONSES_AT_ONCE = 512
"""Responses of a task whose graphs are in memory together: some ten megabytes of small ones."""

_QUICK_BATCH = 0.1
_MOST_IN_BATCH = 64
"""Among quick units a slow one may follow, which then holds back no more than these."""


_Algorithm = tuple[str, int]
"""Title and seed: a study has a seeded algorithm once for each seed."""


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
        batches: units in the next batch of each algorithm, as earlier tasks of the dataset left it.
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
    p: NDArray[np.float64] = np.zeros(0)
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
        self._batches: dict[int, Mapping[_Algorithm, int]] = {}
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
            self._batches.get(units.dataset, {}),
        )
        # By identity, since hashing a task would hash all its graphs. Whoever took the task holds
        # on to it until it is settled, so the id stays its own.
        self._given[id(task)] = units
        return task

    def settle(self, task: Task, answer: TimedAnswer) -> None:
        """Note what a task has done; what it has not comes next."""
        units = self._given.pop(id(task))
        if answer.batches is not None:
            self._batches[units.dataset] = answer.batches
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

    batches: Mapping[_Algorithm, int] | None = None
    """Units in the next batch of each algorithm: small tasks would otherwise begin with one."""


def run_task(task: Task) -> TimedAnswer:
    """Results of the units of a task, or of as many as fit into `TASK_SECONDS`.

    At least one batch of units is run. Whatever a backend raises is recorded and ends its unit
    alone: a night of work must not be lost to one graph.
    """
    began = time.perf_counter()
    results: list[UnitResult] = []
    sizes = dict(task.batches)
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
                return TimedAnswer(encode(results), time.perf_counter() - began, sizes)
    return TimedAnswer(encode(results), time.perf_counter() - began, sizes)


def encode(results: Sequence[UnitResult]) -> bytes:
    """Results as bytes, which `decode` reads."""
    import pyarrow as pa

    # Without results there are no columns either.
    columns = dict(zip(UnitResult._fields, zip(*results, strict=True), strict=bool(results)))
    # A list column made of offsets and one flat array needs no Python object per number.
    p = columns.get("p", ())
    values = np.concatenate(p) if p else np.zeros(0)
    offsets = np.concatenate([[0], np.cumsum(list(map(len, p)))]).astype(np.int32)
    arrays: list[Any] = [
        pa.array(columns.get(name, ()), kind)
        for name, kind in zip(schema().names[:-1], schema().types[:-1], strict=True)
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
    (graph,) = view_graphs([facts], view)
    return graph


def view_graphs(each: Sequence[CompiledFacts], view: GraphView) -> list[FactorGraph]:
    """The factor graphs of a view of several responses, made in one step, as `factor_graph`."""
    priors = probabilities = None
    if view.prior.atom is not None or view.prior.context is not None:
        # The compiled form is shared by all settings of a response.
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
        self._views = [cell.view for _, cell in task.cells]
        # Cells of several algorithms share a view. A number is looked up sooner than its keys.
        numbers: dict[GraphView, int] = {}
        self._view_numbers = [numbers.setdefault(view, len(numbers)) for view in self._views]
        self._seen: dict[tuple[int, tuple[str, ...]], FactGraph] = {}
        self._factor_graphs: dict[tuple[int, int], FactorGraph] = {}

    def of(self, units: Sequence[_Unit]) -> list[FactorGraph | Exception]:
        """The factor graph of each unit, or why it cannot be built; new ones are made together."""
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
        """A view of a response, before its priors and strength."""
        # Learned parameters, unlike set ones, belong to one encoding and change relations too.
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
    """The factor graph of each of several graphs that a view shows, or why it has none."""
    try:
        return list(view_graphs(compiled_each(seen, view.encoding), view))
    except Exception as error:
        if len(seen) == 1:
            return [error]
        # One of them has none. One by one, the others keep theirs.
        return [graph for each in seen for graph in _built([each], view)]


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
    if algorithm.backend is None:
        # A missing library fails the units that need it; the rest of the study runs.
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
    """The posteriors of the atoms of each unit, finite; None without."""
    facts = (graphs.facts[response].atom_ids for response, _ in units)
    p = [
        outcome.marginals.of_state(1, atoms) if isinstance(outcome, Posterior) else None
        for outcome, atoms in zip(outcomes, facts, strict=True)
    ]
    # NaN must not get through: in the rows it would mean that there is no verdict on the claim.
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
    """An outcome as a result: a posterior with finite marginals of atoms, or a failure."""
    cell, response = task.cells[unit[1]][0], task.responses[unit[0]]
    if isinstance(outcome, Posterior) and p is not None:
        lacking = _unanswered(task, unit, graph)
        if lacking:
            # Such a claim is unknown, like a claim without an assessor's verdict.
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
        # A text takes the place of a graph only if inference had none.
        seen = graph if isinstance(related, str) else related
    return unanswered_atoms(seen)


def _attempt(backend: Backend, graph: FactorGraph) -> Posterior | Exception:
    try:
        return backend.infer(graph)
    except Exception as error:
        return error
