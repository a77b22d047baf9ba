"""Processes of this machine: they make the data of a large study, run its units, and may die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np
import pytest

from experiments.evaluators.dask_cluster import WorkerError
from experiments.study import data, packed_graphs, runner
from experiments.study.packed_graphs import PackedPart
from experiments.study.reading import load_study
from experiments.study.runner import design, run_study
from experiments.study.units import Task
from experiments.study.workers import in_processes, made_in_order, process_pool
from factormodels import write_many
from factormodels.errors import InputError
from factormodels.synthetic import labelled_responses
from tests.experiments.conftest import environment, study_file
from tests.experiments.study.test_runner import assert_same_files, stopping

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
    for module in (data, packed_graphs):
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
    run_study(design(load_study(str(study))), tmp_path / "here", workers=1)
    return tmp_path / "here"


@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_the_first_process_makes_no_data(
    study: Path, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a response is made in the first process")

    # They are started anew, and so have nothing of this.
    monkeypatch.setattr(PackedPart, "of", refuse)
    monkeypatch.setattr(data, "_graphs", refuse)
    monkeypatch.setattr(packed_graphs, "_unpacked", refuse)
    with process_pool(workers) as pool:
        planned = design(load_study(str(study)), pool)
        run_study(planned, tmp_path / "out", workers=workers, pool=pool)
    assert_same_files(here, tmp_path / "out")
    monkeypatch.undo()
    assert [one.sha256 for one in planned.data] == [
        one.sha256 for one in design(load_study(str(study))).data
    ]


def test_an_interrupted_run_goes_on_with_the_same_data(
    study: Path, here: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with process_pool(2) as pool:
        planned = design(load_study(str(study)), pool)
        with pytest.raises(KeyboardInterrupt):
            run_study(planned, out, workers=2, monitor=lambda *_: stopping(40), pool=pool)
    for left in (True, False):
        with process_pool(2) as pool:
            planned = design(load_study(str(study)), pool)
            assert 40 <= sum(runner.n_finished(out, planned)) <= 280
            assert (sum(runner.n_finished(out, planned)) < 280) == left
            run_study(planned, out, workers=2, resume=True, pool=pool)
        assert_same_files(here, out)


def _part(first_process: int, deadly: int, number: int) -> PackedPart:
    """A part of as many responses as its number says, over which any other process dies."""
    if number == deadly and os.getpid() != first_process:
        os.kill(os.getpid(), signal.SIGKILL)
    return PackedPart.of(labelled_responses(number, n_atoms=1, contexts_per_atom=1, seed=0))


@pytest.mark.parametrize("numbers", [range(1, 19), [3] * 5, [3], []])
def test_what_a_process_dies_over_is_made_here(numbers: range | list[int]) -> None:
    with process_pool(2) as pool:
        parts = made_in_order(pool, partial(_part, os.getpid(), 3), numbers)
        assert [part.table.num_rows for part in parts] == list(numbers)


def _refusing(number: int) -> PackedPart:
    if number == 2:
        raise InputError("the sentence\nof the part")
    return _part(0, 0, number)


def test_an_error_is_that_of_the_process() -> None:
    with process_pool(3) as pool:
        parts = made_in_order(pool, _refusing, range(1, 30))
        assert next(parts).table["n_atoms"].to_pylist() == [1]
        with pytest.raises(InputError, match="the sentence\nof the part"):
            next(parts)
        again = made_in_order(pool, partial(_part, 0, 0), range(1, 4))
        assert [part.table.num_rows for part in again] == [1, 2, 3]


class Failing:
    """What ends the process that unpickles it, as a library may that is loaded there."""

    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (3,)


def test_a_process_that_cannot_start_ends_the_run() -> None:
    tasks = iter([Task((0,), (), (), np.zeros((1, 2), dtype=np.int64))])
    outcomes = in_processes(lambda: next(tasks, None), 2, [Failing()])  # type: ignore[list-item]
    with pytest.raises(WorkerError, match="ended before it could start; run with --workers 1"):
        list(outcomes)


ORPHANING = """
import ctypes, os, sys, time
from experiments.study.workers import process_pool
def spin():
    ctypes.PyDLL(None).sleep(600)  # It keeps the lock of the interpreter meanwhile.
if __name__ == "__main__":
    with process_pool(3) as pool:
        print(*(pool.submit(os.getpid).result() for _ in range(9)), flush=True)
        for function, *arguments in ((spin,), (time.sleep, 600)):
            pool.submit(function, *arguments)
        sys.stdin.read()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_processes_end_with_the_first_one_and_with_the_block(tmp_path: Path, killed: bool) -> None:
    script = tmp_path / "orphaning.py"
    script.write_text(ORPHANING)
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as first:
        assert first.stdin is not None
        assert first.stdout is not None
        handles = [os.pidfd_open(int(word)) for word in {*first.stdout.readline().split()}]
        time.sleep(0.5)
        if killed:
            first.kill()
        else:
            first.stdin.close()
        # The handle of a process is readable once it has ended, whoever its parent is; by
        # themselves they would end in ten minutes, or never.
        for handle in handles:
            assert wait([handle], timeout=30.0), "a process lives on"
            os.close(handle)
