"""Memory of Python and Arrow, and a disk with little space."""

from __future__ import annotations

import gc
import resource
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from tests.limited_process import status_bytes


@contextmanager
def at_most(allowed: int) -> Iterator[None]:
    """Assert that the block never allocates more than a number of bytes in Python."""
    tracemalloc.start()
    try:
        yield
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken <= allowed


@contextmanager
def writing_at_most(allowed: int) -> Iterator[None]:
    """Limit files to a number of bytes within the block, like a full disk.

    Nor is bytecode written: Python would keep half of a module that is first imported there, and
    every later process would fail on it.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    writes_no_bytecode = sys.dont_write_bytecode
    resource.setrlimit(resource.RLIMIT_FSIZE, (allowed, before[1]))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes_no_bytecode
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def bytes_read() -> int:
    """Bytes that this process has read so far, from wherever."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def peak_anew() -> int:
    """Have the peak of this process's memory counted from now on, and return its memory."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return status_bytes("VmHWM") or 0
    return status_bytes("VmRSS") or 0


def held_by_arrow() -> int:
    """Bytes that Arrow holds, once what earlier tests left is gone and its threads have let go."""
    gc.collect()
    readings = [-1]
    while len(readings) < 6 or len(set(readings[-5:])) > 1:
        time.sleep(0.005)
        readings.append(pa.total_allocated_bytes())
    return readings[-1]
