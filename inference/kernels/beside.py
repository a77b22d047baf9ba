"""Compilation of kernels in a second process, while this one compiles others, at a first use.

Numba compiles under a lock of the process, so that threads would take turns. A first use of `exact`
on an empty cache compiles what plans a graph and then what solves it. The second process compiles
the latter meanwhile, and this one reads it from disk. Neither waits for the other's kernels: what
the second process needs planned, it interprets. Joins and the walk in log space, which not every
graph needs, are compiled here.

On two idle cores the first posteriors of FR2 with 20 claims and 60 passages (density .1) take
11.9 s by the clock and 17.2 s of processor time in two processes, and 13.9 s of both in one; with
density .3 they take 12.9, 18.9 and 15.0 s (medians of three turns).

The second process imports the library and nothing of the caller: it is an interpreter with one
line of Python, not a copy of this process, so that no main module runs again. A process that cannot
be started, fails, or is killed costs nothing but its time: this process then compiles everything.
"""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import subprocess
import sys
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from inference.thread_team import available_processors

logger = logging.getLogger(__name__)


class KernelPart(NamedTuple):
    """Kernels that a second process compiles.

    Attributes:
        begins: module and name of the kernel at whose compilation the process starts.
        modules: modules whose kernels the process compiles.
        statement: line of Python that the process runs.
    """

    begins: tuple[str, str]
    modules: frozenset[str]
    statement: str


PARTS = (
    KernelPart(
        ("inference.exact.kernels.ordering", "order_components"),
        frozenset(f"inference.exact.kernels.{name}" for name in ("products", "propagation")),
        "from inference.warm_up import warm_up_runs; warm_up_runs()",
    ),
)
"""Parts of the kernels of `exact`: planning and solving share none that takes long."""

_AS_HERE = "import sys; sys.path[:] = sys.argv[1:]; "
"""The second process imports from the folders from which this one imports."""


class _Processes:
    """Second processes of this one, by their part."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._started: dict[KernelPart, subprocess.Popen[bytes] | None] = {}

    def start(self, part: KernelPart) -> None:
        """Start the process of a part, once, if a processor is free for it."""
        with self._lock:
            if part not in self._started:
                self._started[part] = _started(part) if _is_worthwhile() else None

    def finish(self, module: str) -> bool:
        """Wait for the process that compiles a module's kernels; return whether it has."""
        with self._lock:
            process = next((p for part, p in self._started.items() if module in part.modules), None)
        return process is not None and process.wait() == 0

    def end(self) -> None:
        """End what still runs."""
        for process in filter(None, self._started.values()):
            process.kill()
            process.wait()


_PROCESSES = _Processes()
atexit.register(_PROCESSES.end)


def compiled_beside(module: str, name: str) -> bool:
    """Return whether a second process has compiled a kernel that was not on disk.

    The first kernel of a part starts its process; kernels of the part wait until it ends.

    Args:
        module, name: of the kernel.
    """
    for part in PARTS:
        if part.begins == (module, name):
            _PROCESSES.start(part)
    return _PROCESSES.finish(module)


def _is_worthwhile() -> bool:
    """Return whether a processor is free, and this process is no worker among others.

    An application that embeds Python is no interpreter, whatever `sys.executable` names.
    """
    return (
        available_processors() > 1
        and multiprocessing.parent_process() is None
        and Path(sys.executable or "").name.startswith("python")
    )


def _started(part: KernelPart) -> subprocess.Popen[bytes] | None:
    """Start the process of a part, without output, or return None if there can be none."""
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-c", _AS_HERE + part.statement, *sys.path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        logger.debug("no second process compiles kernels: %s", error)
        return None
