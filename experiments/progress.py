"""What is being done just now, told to whoever watches: a command's bar, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_WATCHER: ContextVar[Callable[[str], None] | None] = ContextVar("watcher", default=None)


def tell(text: str) -> None:
    """Say what is done next."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(text)


@contextmanager
def watched(watcher: Callable[[str], None]) -> Iterator[None]:
    """Let `watcher` be told what the block does, step by step."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)
