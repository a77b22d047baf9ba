"""Workspaces of large tables: in huge pages, with the last one cached for the next run."""

from __future__ import annotations

from threading import Lock, Timer

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.program import TreeProgram
from inference.exact.kernels.propagation import Workspace, workspace_sizes
from inference.memory import allowance

_SECONDS = 10.0
"""Seconds for which a workspace is cached."""

_SHARE = 1.0 / 8.0
"""Maximum share of the default memory of tables for a cached workspace."""


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
        if kept is None or any(len(a) < n for a, n in zip(kept[:4], sizes, strict=True)):
            return large_workspace(program, table_starts)
        values, answers, tables, spans = (a[:n] for a, n in zip(kept[:4], sizes, strict=True))
        return Workspace(values, answers, tables, spans, kept.stop)

    def give(self, work: Workspace) -> None:
        """Cache a workspace for some seconds, unless it is a large part of the memory."""
        if sum(array.nbytes for array in work) <= _SHARE * allowance(None).bytes:
            # The arrays may be views of a larger workspace.
            values, answers, tables, spans = (a if a.base is None else a.base for a in work[:4])
            self._exchange(Workspace(values, answers, tables, spans, work.stop))

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
