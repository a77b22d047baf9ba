"""The agenda of a run: the units that are still to be done, handed out as tasks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.run.cross_fits import CrossFit
from experiments.run.units import TASK_SECONDS, Task
from experiments.study.data import StudyData
from experiments.study.design import StudyCell

_FIRST_UNITS = 32
_MOST_UNITS = 16_384
_QUICK_TASK = 0.25 * TASK_SECONDS


@dataclass(frozen=True)
class _Block:
    """Every pair of some responses of a dataset and some of its cells.

    Attributes:
        dataset: position of the dataset.
        responses: positions of the responses.
        cells: positions of the cells.
        deaths: how many processes died over them.
    """

    dataset: int
    responses: tuple[int, ...]
    cells: tuple[int, ...]
    deaths: int = 0


class Agenda:
    """The units to be done, in the study's order of datasets and responses.

    Tasks grow while they are quick, so that sending them costs little, and shrink when they are
    slow, so that little is lost with a process; no number depends on their size.
    """

    def __init__(
        self,
        data: Sequence[StudyData],
        cells: Sequence[StudyCell],
        wanted: Iterable[int],
        done: Sequence[NDArray[np.bool_]],
        learned: Sequence[CrossFit] = (),
    ) -> None:
        """Note what is to be done.

        Args:
            data: the datasets.
            cells: the cells of the study.
            wanted: positions of the cells to be done now.
            done: per dataset, whether a unit is done, bool (n_cells, n_responses).
            learned: the learned priors of the cells to be done.
        """
        self._learned = learned
        self._data = data
        self._cells = cells
        self._units = _FIRST_UNITS
        self._blocks: deque[_Block] = deque()
        self._given: dict[int, tuple[_Block, float]] = {}
        self.left = 0
        chosen = set(wanted)
        for number, dataset in enumerate(data):
            own = [i for i in chosen if cells[i].dataset == dataset.name]
            open_ = ~done[number][sorted(own)]
            remaining = {
                response: tuple(np.asarray(sorted(own))[open_[:, response]].tolist())
                for response in np.flatnonzero(open_.any(axis=0)).tolist()
            }
            self._blocks.extend(_blocks(number, remaining))
            self.left += int(open_.sum())

    def take(self) -> Task | None:
        """Return the next task, or None if there is none at present."""
        if not self._blocks:
            return None
        block = self._blocks.popleft()
        block, *rest = _cut(block, 1 if block.deaths else self._units)
        self._blocks.extendleft(reversed(rest))
        name, graphs = self._data[block.dataset].name, self._data[block.dataset].graphs
        related = self._data[block.dataset].related
        task = Task(
            block.responses,
            tuple(graphs[response] for response in block.responses),
            tuple((cell, self._cells[cell]) for cell in block.cells),
            tuple(one.of(block.responses) for one in self._learned if one.dataset == name),
            tuple(related[response] for response in block.responses) if related else (),
        )
        self._given[id(task)] = (block, time.monotonic())
        return task

    def settle(self, task: Task, done: Iterable[tuple[int, int]]) -> None:
        """Note what a task has done; what it has not comes next.

        Args:
            task: the task.
            done: (cell, response) of the units that it finished.
        """
        block, began = self._given.pop(id(task))
        finished = set(done)
        self.left -= len(finished)
        if len(finished) < task.n_units:
            remaining = {
                response: tuple(cell for cell in block.cells if (cell, response) not in finished)
                for response in block.responses
            }
            self._blocks.extendleft(reversed(list(_blocks(block.dataset, remaining))))
            self._units = max(1, self._units // 2)
        elif time.monotonic() - began < _QUICK_TASK:
            self._units = min(2 * self._units, _MOST_UNITS)

    def died(self, task: Task) -> bool:
        """Note that a process died over a task; return whether its one unit is to be given up.

        The units are then tried one by one, so that one of them ends its process alone; a unit
        that did so twice is given up.
        """
        block, _ = self._given.pop(id(task))
        if task.n_units == 1 and block.deaths:
            self.left -= 1
            return True
        parts = _cut(block, 1)
        self._blocks.extendleft(
            _Block(part.dataset, part.responses, part.cells, part.deaths + 1)
            for part in reversed(parts)
        )
        return False


def _cut(block: _Block, units: int) -> list[_Block]:
    """Return a block cut into a first part of at most so many units, and what is left of it."""
    n_cells = len(block.cells)
    if len(block.responses) * n_cells <= units:
        return [block]
    if n_cells > units:
        first, rest = block.responses[:1], block.responses[1:]
        parts = [(first, block.cells[:units]), (first, block.cells[units:]), (rest, block.cells)]
    else:
        count = max(1, units // n_cells)
        parts = [(block.responses[:count], block.cells), (block.responses[count:], block.cells)]
    return [
        _Block(block.dataset, responses, cells, block.deaths)
        for responses, cells in parts
        if responses and cells
    ]


def _blocks(dataset: int, remaining: dict[int, tuple[int, ...]]) -> Iterable[_Block]:
    """Yield blocks that hold the remaining cells of every response."""
    run: list[int] = []
    cells: tuple[int, ...] = ()
    for response, own in remaining.items():
        if run and own != cells:
            yield _Block(dataset, tuple(run), cells)
            run = []
        if own:
            run.append(response)
            cells = own
    if run:
        yield _Block(dataset, tuple(run), cells)
