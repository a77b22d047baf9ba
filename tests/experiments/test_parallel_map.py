"""Map over processes and Dask: results, deaths, errors, and remaining processes."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from experiments.parallel_map import (
    WorkerError,
    map_in_order,
    map_tasks,
    processes,
    without_notices,
)
from factormodels.errors import InputError
from tests.experiments.conftest import environment
from tests.experiments.small_tasks import die, square
from tests.processes import run_python

pytestmark = [pytest.mark.kill, pytest.mark.slow]


# A task that ends its process stands beside others in the first case, and alone in the third.
@pytest.mark.parametrize(
    "numbers", [range(1, 19), pytest.param([3] * 3, marks=pytest.mark.nightly), [3], []]
)
def test_a_task_over_which_a_process_dies_is_done_here(numbers: range | list[int]) -> None:
    with processes(2) as workers:
        squares = map_in_order(partial(square, os.getpid(), 3), numbers, workers)
        assert list(squares) == [number**2 for number in numbers]


def test_a_task_that_ends_its_process_is_distinguished_from_those_beside_it() -> None:
    numbers = iter(range(9))
    with processes(3) as workers:
        call = partial(square, os.getpid(), 4)
        outcomes = dict(map_tasks(call, partial(next, numbers, None), workers))
    assert outcomes == {number: None if number == 4 else number**2 for number in range(9)}


def test_a_task_that_a_result_makes_is_run() -> None:
    waiting = [3]
    seen: Counter[int] = Counter()
    with processes(2) as workers:
        call = partial(square, 0, -40)
        for number, result in map_tasks(call, lambda: waiting.pop() if waiting else None, workers):
            assert result == number**2
            seen[number] += 1
            waiting.extend([number - 1] * 2 if number else [])
    assert seen == {3: 1, 2: 2, 1: 4, 0: 8}


def test_an_error_is_that_of_the_process() -> None:
    with processes(3) as workers:
        squares = map_in_order(partial(square, 0, -2), range(1, 30), workers)
        with pytest.raises(InputError, match="the sentence\nof the task"):
            list(squares)
        again = map_in_order(partial(square, 0, -40), range(1, 4), workers)
        assert list(again) == [1, 4, 9]


def test_a_process_that_cannot_start_ends_the_map() -> None:
    with processes(2) as workers, pytest.raises(WorkerError, match="one worker"):
        list(map_tasks(square, partial(next, iter([1, 2]), None), workers, die))  # type: ignore[arg-type]


ORPHANING = """
import ctypes, os, sys, time
from experiments.parallel_map import processes
def spin():
    ctypes.PyDLL(None).sleep(600)  # It keeps the lock of the interpreter meanwhile.
if __name__ == "__main__":
    with processes(3) as workers:
        print(*(workers.submit(os.getpid).result() for _ in range(9)), flush=True)
        for function, *arguments in ((spin,), (time.sleep, 600)):
            workers.submit(function, *arguments)
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


def test_a_new_process_imports_little_before_it_is_bound_to_the_first_one() -> None:
    # What a worker of the command imports until `begin_worker`: as long as that takes, it outlives
    # a first process that is killed.
    output, _ = run_python(
        "import runpy, sys; runpy.run_module('experiments', run_name='__mp_main__'); "
        "import experiments.worker_process; "
        "print(*sorted(n for n in sys.modules if n.split('.')[0] in "
        "('experiments', 'factormodels', 'inference', 'calibration', 'numpy')))"
    )
    assert output.split() == ["experiments", "experiments.worker_process"]


def test_notices_of_a_library_are_silent_in_the_block_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger("test-parallel-map")
    logger.setLevel(logging.INFO)
    with without_notices("test-parallel-map"):
        logger.warning("a result is computed again")
        logger.error("the scheduler is gone")
    logger.warning("afterwards")
    assert [record.getMessage() for record in caplog.records] == [
        "the scheduler is gone",
        "afterwards",
    ]
    assert logger.level == logging.INFO
