"""How much memory Python takes while something runs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


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
