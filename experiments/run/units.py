"""Units: one response in one cell. A task runs some of them, in whatever process it is sent to."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from experiments.results.rows import FAILED
from experiments.run.view_graphs import ViewArrays, factor_graph, view_arrays
from experiments.study.data import Related, related_graph
from experiments.study.design import GraphView, StudyCell
from factormodels.errors import FactormodelsError, MissingDependencyError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from inference import Backend, Posterior

if TYPE_CHECKING:
    import pyarrow as pa

    from experiments.run.cross_fits import CrossFit

logger = logging.getLogger(__name__)

TASK_SECONDS = 1.0
"""After so long a task hands back what it has finished: a process takes no more with it."""

_BATCHED = ("exact", "lbp")
"""Backends whose posteriors in a batch are those of single graphs to the last bit."""

_QUICK_BATCH = 0.1
_MOST_IN_BATCH = 64
"""Among quick units a slow one may follow, which then holds back no more than these."""


@dataclass(frozen=True)
class Task:
    """Some responses of a dataset in some of its cells: every pair of them is a unit.

    Attributes:
        responses: positions of the responses in their dataset.
        graphs: these responses.
        cells: the cells, by position in the study.
        learned: priors that were learned for these responses.
        related: these responses with relations that were found anew, if the study asks for them.
    """

    responses: tuple[int, ...]
    graphs: tuple[FactGraph, ...]
    cells: tuple[tuple[int, StudyCell], ...]
    learned: tuple[CrossFit, ...] = ()
    related: tuple[Related, ...] = ()

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.responses) * len(self.cells)


@dataclass(frozen=True)
class UnitResult:
    """What became of one unit.

    Attributes:
        cell: position of its cell in the study.
        response: position of its response in the dataset.
        status: how it ended, `FAILED` if its backend raised.
        p: float64 (n_atoms,), the posteriors of the atoms; empty if it failed.
        seconds: of inference.
        log_z: natural logarithm of the partition function, or an estimate.
        log_z_kind: which of these.
        error: why it failed.
    """

    cell: int
    response: int
    status: str
    p: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    seconds: float | None = None
    log_z: float | None = None
    log_z_kind: str | None = None
    error: str | None = None


def run_task(task: Task, seconds: float = TASK_SECONDS) -> bytes:
    """Return what became of the units of a task, encoded, or of as many as fit into some seconds.

    At least one batch of units is run. Whatever a backend raises is recorded and ends its unit
    alone: a night of work must not be lost to one graph.
    """
    end = time.perf_counter() + seconds
    graphs = _Graphs(task.graphs, task.learned, task.related)
    results: list[UnitResult] = []
    for batch in _batches(task):
        results += _run_batch(task, batch, graphs)
        if time.perf_counter() > end:
            break
    return encode(results)


def encode(results: Sequence[UnitResult]) -> bytes:
    """Return results as bytes, which `decode` reads."""
    import pyarrow as pa

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
    return bytes(batch.serialize())


def decode(encoded: bytes) -> pa.RecordBatch:
    """Return the results that `encode` wrote, a row each.

    Raises:
        pyarrow.ArrowInvalid: if the bytes are none of its.
    """
    import pyarrow as pa

    return pa.ipc.read_record_batch(pa.py_buffer(encoded), schema())


def schema() -> pa.Schema:
    """Return the columns of encoded results; `UnitResult` says what they mean."""
    import pyarrow as pa

    return pa.schema(
        [
            ("cell", pa.int32()),
            ("response", pa.int32()),
            ("status", pa.string()),
            ("seconds", pa.float64()),
            ("log_z", pa.float64()),
            ("log_z_kind", pa.string()),
            ("error", pa.string()),
            pa.field("p", pa.list_(pa.float64()), nullable=True),
        ]
    )


def infer_many(backend: Backend, graphs: Sequence[FactorGraph]) -> list[Posterior | Exception]:
    """Return the posterior of each graph, or what the backend raised in its place.

    Graphs of one structure, as priors and strengths make them, are planned once, where the batch
    gives the very bits that the graphs give one by one.
    """
    if len(graphs) > 1 and backend.name in _BATCHED:
        from inference.batch import infer_batch

        try:
            return list(infer_batch(graphs, backend, threads=1))
        except Exception:
            logger.debug("a batch of %d failed, one by one follows", len(graphs), exc_info=True)
    return [_attempt(backend, graph) for graph in graphs]


_Unit = tuple[int, int]
"""Positions within a task: of the response, of the cell."""


class _Graphs:
    """The views and factor graphs of a task's responses, each built once for all backends."""

    def __init__(
        self,
        graphs: Sequence[FactGraph],
        learned: Sequence[CrossFit],
        related: Sequence[Related],
    ) -> None:
        self._graphs = graphs
        self._learned: dict[tuple[str, ...], CrossFit] = {cross.key: cross for cross in learned}
        self._related = related
        self._views: dict[tuple[int, tuple[str, ...]], ViewArrays] = {}
        self._factor_graphs: dict[tuple[int, GraphView], FactorGraph] = {}

    def __call__(self, response: int, view: GraphView) -> FactorGraph:
        key = (response, view)
        if key not in self._factor_graphs:
            # What is learned, unlike what is set, is of one encoding and moves relations too.
            learned = view.prior.learned is not None
            part = (
                *(view.variant, view.relation_model),
                *((view.encoding, view.prior.title) if learned else ()),
            )
            chosen = (response, part)
            if chosen not in self._views:
                graph = related_graph(
                    self._graphs[response],
                    self._related[response] if self._related else {},
                    view.relation_model,
                    view.variant,
                )
                if learned:
                    graph = self._learned[part].graph(response, graph)
                self._views[chosen] = view_arrays(graph)
            self._factor_graphs[key] = factor_graph(self._views[chosen], view)
        return self._factor_graphs[key]


def _batches(task: Task) -> Iterator[list[_Unit]]:
    """Yield the units of a task in batches of one algorithm, longer ones while they are quick.

    Settings of the same response follow each other, since their graphs have one structure.
    """
    by_algorithm: dict[tuple[str, int], list[int]] = {}
    for position, (_, cell) in enumerate(task.cells):
        algorithm = cell.algorithm
        by_algorithm.setdefault((algorithm.title, algorithm.seed), []).append(position)
    for positions in by_algorithm.values():
        units = [(r, position) for r in range(len(task.responses)) for position in positions]
        start, size = 0, 1
        while start < len(units):
            began = time.perf_counter()
            yield units[start : start + size]
            start += size
            quick = time.perf_counter() - began < _QUICK_BATCH
            size = min(2 * size, _MOST_IN_BATCH) if quick else max(1, size // 2)


def _run_batch(task: Task, units: Sequence[_Unit], graphs: _Graphs) -> list[UnitResult]:
    algorithm = task.cells[units[0][1]][1].algorithm
    outcomes: dict[_Unit, Posterior | Exception] = {}
    asked: list[_Unit] = []
    built: list[FactorGraph] = []
    for unit in units:
        try:
            if algorithm.backend is None:
                raise MissingDependencyError(algorithm.error)
            built.append(graphs(unit[0], task.cells[unit[1]][1].view))
            asked.append(unit)
        except Exception as error:
            outcomes[unit] = error
    if algorithm.backend is not None:
        outcomes.update(zip(asked, infer_many(algorithm.backend, built), strict=True))
    return [_result(task, unit, outcomes[unit]) for unit in units]


def _result(task: Task, unit: _Unit, outcome: Posterior | Exception) -> UnitResult:
    cell, response = task.cells[unit[1]][0], task.responses[unit[0]]
    if isinstance(outcome, Posterior):
        p = outcome.marginals.of_state(1, task.graphs[unit[0]].atom_ids)
        if np.isfinite(p).all():
            return UnitResult(
                cell=cell,
                response=response,
                status=str(outcome.status),
                p=p,
                seconds=outcome.stats.get("seconds"),
                log_z=outcome.log_z,
                log_z_kind=str(outcome.log_z_kind),
            )
        outcome = ArithmeticError("a marginal is not a finite number")
    logger.debug("response %d failed in cell %d", response, cell, exc_info=outcome)
    return UnitResult(cell, response, FAILED, error=sentence(outcome))


def _attempt(backend: Backend, graph: FactorGraph) -> Posterior | Exception:
    try:
        return backend.infer(graph)
    except Exception as error:
        return error


def sentence(error: Exception) -> str:
    """Return what is recorded of an error: its own words, and its kind where it is none of ours."""
    text = " ".join(str(error).split())
    return text if isinstance(error, FactormodelsError) else f"{type(error).__name__}: {text}"
