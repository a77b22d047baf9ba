"""How much memory Python and Arrow take."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa


@contextmanager
def at_most(allowed: int) -> Iterator[None]:
    """Assert that the block never holds more than so many bytes of Python's beyond those before."""
    tracemalloc.start()
    try:
        yield
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken <= allowed


def held_by_arrow() -> int:
    """Bytes that Arrow holds, once what earlier tests left is gone and its threads have let go."""
    gc.collect()
    readings = [-1]
    while len(readings) < 6 or len(set(readings[-5:])) > 1:
        time.sleep(0.005)
        readings.append(pa.total_allocated_bytes())
    return readings[-1]
