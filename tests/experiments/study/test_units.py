"""The agenda: every unit is handed out until it is done, once, whatever becomes of its tasks."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from experiments.columns.cell_names import FAILED
from experiments.study.data import load_data
from experiments.study.design import algorithms, cells
from experiments.study.reading import load_study
from experiments.study.units import (
    Task,
    TaskQueue,
    TimedAnswer,
    UnitResult,
    decode,
    encode,
    warm_up_units,
)
from factormodels.factor_graph import FactorGraph
from inference import Backend, Posterior
from inference.backend import Result
from inference.exact.backend import Exact
from tests.experiments.conftest import study_file

STUDY = """
study: s
datasets: [demonstration, worked-examples]
variants: [FR1, FR2]
backends: [exact, {backend: lbp, only: {variants: [FR2]}}]
"""


MANY = """
study: s
datasets:
  - name: made
    synthetic: {n_responses: 1000, n_atoms: [1, 3], contexts_per_atom: 1, density: 0.1}
backends: [exact]
"""


def units_of(task: Task) -> list[tuple[str, int, int]]:
    pairs = [(task.cells[c], task.responses[r]) for r, c in task.units.tolist()]
    return [(cell.dataset, c, r) for (c, cell), r in pairs]


@pytest.mark.parametrize("seed", range(8))
def test_every_unit_is_done_once(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    loaded = load_study(str(study_file(tmp_path_factory.mktemp("s"), STUDY)))
    data = load_data(loaded)
    chosen = cells(loaded.study, algorithms(loaded))
    generator = np.random.default_rng(seed)
    sizes = {dataset.name: len(dataset.graphs) for dataset in data}
    done = [generator.random(sizes[cell.dataset]) < 0.3 for cell in chosen]
    wanted = [0, 2, *range(3, len(chosen))]
    expected = {
        (chosen[c].dataset, c, r) for c in wanted for r in np.flatnonzero(~done[c]).tolist()
    }
    queue = TaskQueue(data, chosen, wanted, done)
    assert queue.left == len(expected)
    finished: Counter[tuple[str, int, int]] = Counter()
    given_up: set[tuple[str, int, int]] = set()
    in_hand: list[Task] = []
    while True:
        task = queue.take() if len(in_hand) < 3 else None
        if task is not None:
            in_hand.append(task)
            if generator.random() < 0.5:
                continue
        if not in_hand:
            break
        task = in_hand.pop(int(generator.integers(len(in_hand))))
        units = units_of(task)
        if generator.random() < 0.2:
            # A unit is given up once it ended a process as a task of its own.
            assert queue.died(task) == (len(units) == 1)
            given_up.update(units if len(units) == 1 else ())
        else:
            # A task may run out of time, and hand back a part.
            kept = units[: int(generator.integers(1, len(units) + 1))]
            finished.update(kept)
            answered = encode([UnitResult(c, r, "exact") for _, c, r in kept])
            queue.settle(task, TimedAnswer(answered, seconds=0.1))
    assert set(finished) | given_up == expected
    assert not set(finished) & given_up
    assert set(finished.values()) <= {1}
    assert queue.left == 0


def test_tasks_grow_by_the_time_that_they_run_and_not_by_that_of_the_way(tmp_path: Path) -> None:
    loaded = load_study(str(study_file(tmp_path, MANY)))
    data, chosen = load_data(loaded), cells(loaded.study, algorithms(loaded))

    def sizes(seconds: float) -> list[int]:
        queue = TaskQueue(data, chosen, [0], [np.zeros(1000, dtype=np.bool_)])
        # Several are under way, so that each waits for those before it.
        under_way = deque(filter(None, (queue.take() for _ in range(4))))
        seen = []
        while under_way:
            task = under_way.popleft()
            seen.append(task.n_units)
            units = [UnitResult(c, r, "exact") for _, c, r in units_of(task)]
            queue.settle(task, TimedAnswer(encode(units), seconds))
            under_way.extend(filter(None, [queue.take()]))
        return seen

    assert max(sizes(0.1)) > 4 * sizes(0.1)[0]
    assert max(sizes(0.5)) == sizes(0.5)[0]


def test_results_come_back_to_the_last_bit() -> None:
    p = np.array([0.1, 1 / 3, np.nextafter(0.5, 1)])
    results = [
        UnitResult(0, 3, "exact", p, 0.25, -1.5, "exact"),
        UnitResult(7, 0, FAILED, error="why"),
        UnitResult(2, 1, "converged", p[:0], None, None, "none"),
    ]
    batch = decode(encode(results)).to_pylist()
    assert [unit["p"] for unit in batch] == [p.tolist(), [], []]
    for unit, result in zip(batch, results, strict=True):
        for name in ("cell", "response", "status", "seconds", "log_z", "log_z_kind", "error"):
            assert unit[name] == getattr(result, name)
    assert decode(encode([])).num_rows == 0


def test_results_are_encoded_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    # Both import it, for half a second of every process.
    for name in ("array", "scalar"):
        monkeypatch.delattr(f"pyarrow.{name}")
    encode([UnitResult(7, 0, FAILED, error="why"), UnitResult(0, 3, "exact", np.zeros(2), 0.25)])


@dataclass(frozen=True)
class Counting(Backend):
    """Exact inference that says how many graphs it is asked for at a time."""

    name: ClassVar[str] = "counting"
    identical_batches: ClassVar[bool] = True
    asked: ClassVar[list[int]] = []

    def solve(self, graph: FactorGraph) -> Posterior:
        self.asked.append(1)
        return Exact().solve(graph)

    def solve_batch(self, graphs: Sequence[FactorGraph], threads: int = 1) -> list[Result]:
        self.asked.append(len(graphs))
        return Exact().solve_batch(graphs, threads)


@dataclass(frozen=True)
class OneByOne(Counting):
    """The same, never asked for a batch by a study."""

    identical_batches: ClassVar[bool] = False
    asked: ClassVar[list[int]] = []


def test_kernels_are_compiled_before_the_first_unit() -> None:
    warm_up_units([Counting(), OneByOne()])
    assert Counting.asked[0] == 1
    assert max(Counting.asked) > 1
    assert OneByOne.asked == [1]
