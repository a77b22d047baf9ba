"""Peak memory of a call beyond the memory of its process before."""

from __future__ import annotations

import ctypes
import gc
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")

_FORGET_PEAK = "5"
"""Value that makes Linux reset a process's peak memory (proc_pid_clear_refs)."""


@contextmanager
def older_objects_kept() -> Iterator[None]:
    """Search only objects made within the block for garbage, which takes a fraction of the time."""
    gc.collect()
    frozen_before = gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        # Objects that other code has frozen cannot be distinguished, and stay frozen.
        if not frozen_before:
            gc.unfreeze()


def with_peak(call: Callable[[], Result]) -> tuple[Result, float]:
    """Call a function; return its result and its peak memory in bytes.

    The peak is the resident memory of this process minus the memory resident before the call,
    without memory of processes that the call starts. It is nan if the system does not report it, as
    outside Linux.
    """
    gc.collect()
    _return_free_memory()
    try:
        _RESET.write_text(_FORGET_PEAK)
        before = _resident("VmRSS")
    except OSError:
        return call(), math.nan
    result = call()
    return result, max(_resident("VmHWM") - before, 0.0)


def _return_free_memory() -> None:
    """Return freed memory to the system, which a later call would otherwise reuse unseen."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _resident(name: str) -> float:
    """Bytes of resident memory: `VmRSS` now, `VmHWM` at the peak; nan if unknown."""
    match = re.search(rf"^{name}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    return math.nan if match is None else 1024.0 * int(match[1])
