"""The processes that run a large study make its data: the same, and none in the first process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from experiments.runner import runner
from experiments.runner.runner import Execution, StudyDesign, design, run_study
from experiments.runner.workers import EarlyWorkers
from experiments.study import data, stored_graphs
from experiments.study.reading import load_study
from experiments.study.stored_graphs import DatasetPart, PackedGraphs
from factormodels import write_many
from factormodels.errors import InputError
from factormodels.synthetic import labelled_responses
from tests.experiments.conftest import study_file
from tests.experiments.runner.test_runner import assert_same_files, stopping

pytestmark = [pytest.mark.kill, pytest.mark.slow]

STUDY = """
study: s
datasets:
  - name: made
    synthetic:
      {n_responses: 90, n_atoms: [0, 4], contexts_per_atom: 2, density: 0.2, unlabelled: 0.2}
  - path: read.jsonl
backends: [exact, {backend: lbp, settings: {damping: 0.5}}]
outputs: [csv, latex, markdown]
"""


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (data, stored_graphs):
        monkeypatch.setattr(module, "HELD", 20)
        monkeypatch.setattr(module, "PART", 16)
    monkeypatch.setattr(data, "_MANY_BYTES", 100)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    graphs = labelled_responses(50, n_atoms=(1, 3), contexts_per_atom=1, seed=8)
    write_many(graphs, tmp_path / "read.jsonl")
    return study_file(tmp_path, STUDY)


@pytest.fixture
def here(study: Path, tmp_path: Path) -> Path:
    """The folder of a run in one process, without a pause."""
    run_study(design(load_study(str(study))), tmp_path / "here", Execution(workers=1))
    return tmp_path / "here"


@contextmanager
def designed(study: Path, workers: int) -> Iterator[tuple[StudyDesign, EarlyWorkers]]:
    with EarlyWorkers(workers) as early:
        yield design(load_study(str(study)), early), early


@pytest.mark.parametrize("workers", [2, 3])
def test_the_first_process_makes_no_data(
    study: Path, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a response is made in the first process")

    # They are started anew, and so have nothing of this.
    monkeypatch.setattr(DatasetPart, "of", refuse)
    monkeypatch.setattr(data, "_graphs", refuse)
    monkeypatch.setattr(PackedGraphs, "_unpickled", refuse)
    with designed(study, workers) as (planned, early):
        assert len(early.waiting) == workers
        run_study(planned, tmp_path / "out", Execution(workers=workers), early=early)
    assert_same_files(here, tmp_path / "out")
    monkeypatch.undo()
    assert [one.sha256 for one in planned.data] == [
        one.sha256 for one in design(load_study(str(study))).data
    ]


def test_an_interrupted_run_goes_on_with_the_same_data(
    study: Path, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    where = Execution(workers=2)
    with designed(study, 2) as (planned, early):
        interrupted = partial(run_study, planned, out, where, monitor=lambda *_: stopping(40))
        with pytest.raises(KeyboardInterrupt):
            interrupted(early=early)
    with designed(study, 2) as (planned, early):
        assert 40 <= sum(runner.n_finished(out, planned)) < 280
        run_study(planned, out, where, resume=True, early=early)
    assert_same_files(here, out)
    # Nothing is left: the processes have made the data, and get nothing else to do.
    monkeypatch.setattr(EarlyWorkers, "take", None)
    with designed(study, 2) as (planned, early):
        run_study(planned, out, where, resume=True, early=early)
        assert len(early.waiting) == 2
    assert_same_files(here, out)


def _part(first_process: int, deadly: int, number: int) -> DatasetPart:
    """A part of as many responses as its number says, over which any other process dies."""
    if number == deadly and os.getpid() != first_process:
        os.kill(os.getpid(), signal.SIGKILL)
    return DatasetPart.of(labelled_responses(number, n_atoms=1, contexts_per_atom=1, seed=0))


@pytest.mark.parametrize("numbers", [range(1, 9), [3] * 5, [3], []])
def test_what_a_process_dies_over_is_made_here(numbers: range | list[int]) -> None:
    with EarlyWorkers(2) as early:
        assert early.each is not None
        parts = early.each(partial(_part, os.getpid(), 3), numbers)
        assert [len(part.graphs) for part in parts] == list(numbers)
        assert all(child.alive for child in early.waiting)
        assert len(early.waiting) == max(0, min(2, len(numbers)) - list(numbers).count(3))


def _refusing(number: int) -> DatasetPart:
    if number == 2:
        raise InputError("the sentence\nof the part")
    return _part(0, 0, number)


def test_an_error_is_that_of_the_first_process_and_ends_those_at_work() -> None:
    with EarlyWorkers(3) as early:
        assert early.each is not None
        parts = iter(early.each(_refusing, range(1, 9)))
        assert np.array_equal(next(parts).claims.n_atoms, [1])
        with pytest.raises(InputError, match="the sentence\nof the part"):
            next(parts)
        assert not early.waiting
        again = early.each(partial(_part, 0, 0), range(1, 4))
        assert [len(part.graphs) for part in again] == [1, 2, 3]


def test_few_data_start_no_process_and_what_is_started_is_ended(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with designed(study, 3) as (planned, early):
        begun = early.waiting
        assert [child.alive for child in begun] == [True] * 3
        run_study(planned, tmp_path / "out", Execution(workers=2), early=early)
        assert len(early.waiting) == 1
    assert not any(child.alive for child in begun)
    monkeypatch.undo()
    with designed(study, 3) as (_, early):
        assert not early.waiting
    for count in (None, 1):
        assert EarlyWorkers(count).each is None
