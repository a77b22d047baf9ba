"""Workspaces that runs of any structure share: the last of large tables, in huge pages, and a few
of smaller ones."""

from __future__ import annotations

from collections import deque
from threading import Lock, Timer

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.program import TreeProgram
from inference.exact.kernels.propagation import Workspace, new_workspace, workspace_sizes
from inference.memory import allowance

_SECONDS = 10.0
"""Seconds for which a workspace is cached."""

_SHARE = 1.0 / 8.0
"""Maximum share of the default memory of tables for a cached workspace."""


FEWEST_SHARED_BYTES, MOST_SHARED_BYTES = 2**17, 2**24
"""Bytes of tables from which, and up to which, a workspace is shared: the least threshold of glibc
for mapped memory, and the size above which no plan is cached."""

_MOST_SHARED = 4
"""Maximum number of shared workspaces."""


def large_workspace(program: TreeProgram, table_starts: NDArray[np.int64]) -> Workspace:
    """Return a workspace for a program with large tables."""
    # NumPy requests huge pages, without which page faults take as long as the arithmetic.
    values, answers, tables, spans = map(np.empty, workspace_sizes(program, table_starts))
    return Workspace(values, answers, tables, spans, np.zeros(1, dtype=np.int64))


class SpareWorkspace:
    """Cache of the workspace of the last run with large tables, for the next run that fits into it.

    New memory from the operating system must be cleared and, on a virtual machine, often fetched
    from the host, which takes several times as long as the arithmetic.
    """

    def __init__(self) -> None:
        self._kept: Workspace | None = None
        self._timer: Timer | None = None
        self._lock = Lock()

    def take(self, program: TreeProgram, table_starts: NDArray[np.int64]) -> Workspace:
        """Return a workspace for a program, for exclusive use until `give`."""
        kept = self._exchange(None)
        sizes = workspace_sizes(program, table_starts)
        return (kept and _part(kept, sizes)) or large_workspace(program, table_starts)

    def give(self, work: Workspace) -> None:
        """Cache a workspace for some seconds, unless it is a large part of the memory."""
        if sum(array.nbytes for array in work) <= _SHARE * allowance(None).bytes:
            self._exchange(_whole(work))

    def clear(self) -> None:
        """Free the workspace that is kept."""
        self._exchange(None)

    def _exchange(self, work: Workspace | None) -> Workspace | None:
        """Cache another workspace, or none; return the previous one."""
        timer = Timer(_SECONDS, self._exchange, [None]) if work is not None else None
        with self._lock:
            kept, self._kept = self._kept, work
            before, self._timer = self._timer, timer
        if before is not None:
            before.cancel()
        if timer is not None:
            timer.daemon = True
            timer.start()
        return kept


SPARE = SpareWorkspace()


class SharedWorkspaces:
    """Cache of a few workspaces of small tables, of which a run takes the last.

    Above a size that depends on the memory that the process has freed, `malloc` maps new memory for
    an array, and clearing its pages takes longer than a run: the first run of a structure on a grid
    of 10 by 10 variables took .29 or .66 ms. Below `FEWEST_SHARED_BYTES` it maps none.
    """

    def __init__(self) -> None:
        # Threads append and remove without a lock; a full queue drops its oldest.
        self._kept: deque[tuple[TreeProgram, Workspace]] = deque(maxlen=_MOST_SHARED)

    def take(self, program: TreeProgram, table_starts: NDArray[np.int64]) -> Workspace:
        """Return a workspace for a program, for exclusive use until `give`."""
        try:
            last, kept = self._kept.pop()
        except IndexError:
            return new_workspace(program, table_starts)  # type: ignore[no-any-return]
        if last is program:
            return kept
        fits = _part(_whole(kept), workspace_sizes.py_func(program, table_starts))
        return fits or new_workspace(program, table_starts)

    def give(self, program: TreeProgram, work: Workspace) -> None:
        """Cache the workspace of a program, which the next run of the program takes as it is."""
        self._kept.append((program, work))

    def clear(self) -> None:
        """Free all workspaces."""
        self._kept.clear()


SHARED = SharedWorkspaces()


def _part(work: Workspace, sizes: tuple[int, ...]) -> Workspace | None:
    """Return the first entries of a workspace's arrays, or None if one of them has fewer."""
    if any(len(array) < size for array, size in zip(work[:4], sizes, strict=True)):
        return None
    values, answers, tables, spans = (a[:n] for a, n in zip(work[:4], sizes, strict=True))
    return Workspace(values, answers, tables, spans, work.stop)


def _whole(work: Workspace) -> Workspace:
    """Return the workspace of whose arrays those of another are views, or itself."""
    # The base of a kernel's array is memory of Numba's.
    values, answers, tables, spans = (
        a.base if isinstance(a.base, np.ndarray) else a for a in work[:4]
    )
    return Workspace(values, answers, tables, spans, work.stop)
