"""A process of its own: results, errors of every kind, limits of time and memory."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factormodels.errors import InputError
from tests.experiments.conftest import environment
from tests.limited_process import (
    FAILED,
    OUT_OF_MEMORY,
    REFUSED,
    TIMED_OUT,
    Child,
    ChildError,
    limit_memory,
    status_bytes,
)

pytestmark = pytest.mark.kill


SELDOM = (60_000, 15, 30)


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    """A process, started by one that seldom looks for circles of objects."""
    usual = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        started = Child()
    finally:
        gc.set_threshold(*usual)
    with started:
        yield started


def count(kept: dict[str, Any], by: int) -> tuple[int, int]:
    kept["count"] = kept.get("count", 0) + by
    return kept["count"], os.getpid()


def refuse(_kept: dict[str, Any]) -> None:
    raise InputError("the input is wrong; mend it")


def fail(_kept: dict[str, Any]) -> None:
    raise ZeroDivisionError("a division")


def sleep(_kept: dict[str, Any], seconds: float) -> None:
    time.sleep(seconds)


def end(_kept: dict[str, Any], code: int) -> None:
    os._exit(code)


def allocate(_kept: dict[str, Any], size: int) -> int:
    return int(np.ones(size, dtype=np.uint8).sum())


def test_it_computes_elsewhere_and_keeps_what_it_is_told_to(child: Child) -> None:
    first, process = child.call(count, 2)
    assert child.call(count, 3) == (first + 3, process)
    assert process != os.getpid()


def collections(_kept: dict[str, Any]) -> tuple[int, int, int]:
    return gc.get_threshold()


def test_it_looks_for_circles_as_seldom_as_what_started_it(child: Child) -> None:
    assert child.call(collections) == SELDOM


@pytest.mark.parametrize(
    ("function", "kind", "reason"),
    [
        (refuse, REFUSED, "the input is wrong; mend it"),
        (fail, FAILED, "ZeroDivisionError: a division"),
    ],
)
def test_errors_come_back_and_leave_it_alive(
    child: Child, function: Any, kind: str, reason: str
) -> None:
    with pytest.raises(ChildError) as caught:
        child.call(function)
    assert (caught.value.kind, caught.value.reason) == (kind, reason)
    assert child.alive


def test_time_and_an_end_of_its_own_end_it() -> None:
    with Child() as child:
        with pytest.raises(ChildError) as caught:
            child.call(sleep, 60.0, limit=0.2)
        assert (caught.value.kind, caught.value.reason) == (TIMED_OUT, "no answer within 0.2 s")
        assert not child.alive
    with Child() as child, pytest.raises(ChildError) as caught:
        child.call(end, 3)
    assert (caught.value.kind, caught.value.reason) == (FAILED, "its process ended with code 3")


def test_memory_beyond_the_limit_is_an_error_and_less_is_not() -> None:
    if status_bytes("VmSize") is None:
        pytest.skip("this system does not tell the size of a process")
    with Child() as child:
        child.call(limit_memory, 2**28)
        assert child.call(allocate, 2**20) == 2**20
        with pytest.raises(ChildError) as caught:
            child.call(allocate, 2**29)
        assert caught.value.kind == OUT_OF_MEMORY
        assert child.alive


def test_an_interrupt_does_not_reach_it(child: Child) -> None:
    before, process = child.call(count, 1)
    os.kill(process, signal.SIGINT)
    assert child.call(count, 1) == (before + 1, process)


def test_whichever_of_several_answers_first_is_reported(child: Child) -> None:
    with Child() as other:
        other.call(count, 0)
        other.send(sleep, 60.0)
        child.send(count, 0)
        assert wait([other.fileno(), child.fileno()]) == [child.fileno()]
        child.receive()


ORPHANING = """
import os, sys
from tests.limited_process import Child
from tests.test_limited_process import count, spin, sleep
if __name__ == "__main__":
    children = [Child() for _ in range(3)]
    print(*(child.call(count, 1)[1] for child in children), flush=True)
    children[0].send(spin)
    children[1].send(sleep, 600.0)
    sys.stdin.read()
"""


def spin(kept: dict[str, Any]) -> None:  # noqa: ARG001
    """Compute for ten minutes without letting go of the interpreter."""
    import ctypes

    # PyDLL keeps the lock of the interpreter while the function of the C library runs.
    ctypes.PyDLL(None).sleep(600)


def test_children_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "orphaning.py"
    script.write_text(ORPHANING)
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as parent:
        assert parent.stdout is not None
        children = [int(word) for word in parent.stdout.readline().split()]
        assert len(children) == 3
        time.sleep(0.5)
        handles = [os.pidfd_open(child) for child in children]
        parent.kill()
        # The handle of a process is readable once it has ended, whoever its parent is; by
        # themselves they would end in ten minutes, or never.
        for handle in handles:
            assert wait([handle], timeout=30.0), "a child lives on"
            os.close(handle)
