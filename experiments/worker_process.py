"""The first call in every process of `parallel_map.processes`.

The module imports nothing of this project, so that a new process arrives here within hundredths of
a second: until then it would outlive a parent that is killed.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal

_PR_SET_PDEATHSIG = 1


def begin_worker(parent: int, collections: tuple[int, int, int]) -> None:
    """Let a new process end with its parent, and collect garbage as seldom as that does.

    Args:
        parent: the parent's process id.
        collections: the parent's thresholds of garbage collection.
    """
    # Interrupts are blocked yet; a library that lets them through must not end it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Killed by the kernel when its parent ends, at whatever compiled code it is then.
    system = ctypes.CDLL(None)
    if hasattr(system, "prctl"):
        system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have ended before that was asked for.
    if os.getppid() != parent:
        os._exit(1)
    gc.set_threshold(*collections)
