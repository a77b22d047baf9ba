"""Limits on the memory of tables: a given one, or a share of the available memory."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from inference.backend import TooLargeError

SHARE = 0.75
"""Share of the available memory that tables may take by default."""

_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


@dataclass(frozen=True)
class MemoryAllowance:
    """Bytes that tables may take, and the reason of this limit.

    Attributes:
        bytes: number of bytes.
        reason: reason of the limit, as a phrase for a message.
    """

    bytes: int
    reason: str

    def __str__(self) -> str:
        return f"{memory_size(self.bytes)} are allowed ({self.reason})"


def allowance(limit: int | None) -> MemoryAllowance:
    """Return the memory for tables: the limit, or three quarters of the available memory.

    Available memory is the minimum of the machine's, which includes caches that it can release, and
    of the remainder of the limits of this process's control groups.
    """
    if limit is not None:
        return MemoryAllowance(limit, "by memory_limit")
    return _share_of_free(int(time.monotonic()))


@lru_cache(maxsize=1)
def _share_of_free(_second: int) -> MemoryAllowance:
    """Return the default allowance, cached for a second, since small graphs take less time."""
    import psutil

    available = psutil.virtual_memory().available
    reason = "three quarters of the memory that this machine has available"
    for left in _left_in_groups(_OWN_GROUPS, _GROUPS):
        if left < available:
            available = left
            reason = "three quarters of what the limit of the control group leaves"
    return MemoryAllowance(int(SHARE * available), reason)


def require(needed: float, allowed: MemoryAllowance, what: str, instead: str) -> None:
    """Check that a number of bytes is allowed.

    Raises:
        TooLargeError: with a message that `what` would take them, and the advice `instead`.
    """
    if needed > allowed.bytes:
        raise TooLargeError(
            f"{what} would take {memory_size(needed)}, but {allowed}; {instead}, or raise "
            "memory_limit (in bytes)"
        )


def memory_size(count: float) -> str:
    """Return a number of bytes as a phrase: MiB below one GiB, powers of two from 2^20 GiB on."""
    if count < 2.0**30:
        return f"{count / 2.0**20:,.3g} MiB"
    exponent = math.log2(count) - 30.0
    return f"{2.0**exponent:,.4g} GiB" if exponent < 20.0 else f"2^{exponent:.0f} GiB"


def _left_in_groups(listing: Path, groups: Path) -> Iterator[int]:
    """Yield the remaining bytes of the limit of every control group above this process.

    Cached pages of files, which the kernel can release, do not count as used.
    """
    try:
        lines = listing.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = groups, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = groups / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = root / path.strip("/")
        # In a container the path is the host's, and only the root is visible.
        for folder in (group, *group.parents) if group.exists() else (root,):
            left = _left(folder, *names)
            if left is not None:
                yield left
            if folder == root:
                break


def _left(folder: Path, limit: str, usage: str, reclaimable: str) -> int | None:
    """Return the remainder of a group's limit; None if it has none."""
    try:
        most = (folder / limit).read_text().strip()
        if most == "max":
            return None
        used = int((folder / usage).read_text())
        for line in (folder / "memory.stat").read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == reclaimable:
                used -= int(value)
        return max(int(most) - used, 0)
    except (OSError, ValueError):
        return None
