"""Progress reports, sent to a watcher: a command's terminal, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from factormodels.extraction.language_model.accounting import Ledger

Response = TypeVar("Response")

Finished = Callable[[Any], None]
"""Called with what is finished: a response, None for one that failed, or progress of units."""


class Watcher:
    """Receiver of progress reports; methods that are not overridden ignore them."""

    def step(self, text: str) -> None:
        """Hear what is done next."""

    def notice(self, text: str) -> None:
        """Hear what must be known at once, such as an address."""

    def steps(self, what: str, total: int) -> AbstractContextManager[Callable[[], None]]:
        """Watch steps while a block runs, which calls what it is given after each."""
        del what, total
        return nullcontext(lambda: None)

    def units(self, study: str, left: int, kept: int) -> AbstractContextManager[Finished]:
        """Watch units of a study while a block runs, of which some were kept before."""
        del study, left, kept
        return nullcontext(lambda _: None)

    def texts(
        self, study: str, ledger: Ledger, total: int
    ) -> AbstractContextManager[Callable[[], None]]:
        """Watch what is asked about a study's texts, whose answers the ledger counts."""
        del study, ledger, total
        return nullcontext(lambda: None)

    def responses(self, total: int, ledger: Ledger) -> AbstractContextManager[Finished]:
        """Watch responses while a block runs, whose model's answers the ledger counts."""
        del total, ledger
        return nullcontext(lambda _: None)

    def limit_reached(self, ledger: Ledger) -> None:
        """Hear what was asked and paid until a limit was reached."""


_WATCHER: ContextVar[Watcher] = ContextVar("watcher", default=Watcher())  # noqa: B039


def watcher() -> Watcher:
    """Whoever watches now."""
    return _WATCHER.get()


def tell(text: str) -> None:
    """Say what is done next."""
    _WATCHER.get().step(text)


def each_response(responses: Sequence[Response]) -> Iterator[Response]:
    """Yield responses one by one, and report each to the watcher first."""
    for number, response in enumerate(responses, 1):
        tell(f"response {number} of {len(responses)}")
        yield response


@contextmanager
def watched(by: Watcher) -> Iterator[None]:
    """Let somebody be told what the block does."""
    token = _WATCHER.set(by)
    try:
        yield
    finally:
        _WATCHER.reset(token)
