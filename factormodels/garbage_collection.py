"""Garbage collection while large libraries are imported."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Disable cyclic garbage collection while the block imports.

    Imports create objects that persist; scanning them repeatedly takes a quarter of the import of
    litellm, and a twentieth of the processor time of a command on a small graph.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Counting frozen objects takes time proportional to their number, so do it once.
        if not gc.get_freeze_count():
            # Move all objects out of reach of the next collections.
            gc.freeze()
            gc.unfreeze()
        if collects:
            gc.enable()
