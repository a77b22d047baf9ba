"""Progress reports for a watcher, such as a command's terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from factormodels.extraction.language_model.accounting import Ledger

Response = TypeVar("Response")

Finished = Callable[[Any], None]
"""Function called with each finished item: a response, None for a failed one, or progress."""


class Watcher:
    """Receiver of progress reports; the default methods ignore them."""

    def step(self, text: str) -> None:
        """Receive the name of the next step."""

    def notice(self, text: str) -> None:
        """Receive a message to show at once, such as an address."""

    def steps(self, what: str, total: int) -> AbstractContextManager[Callable[[], None]]:
        """Watch steps while a block runs; the block calls the given function after each."""
        del what, total
        return nullcontext(lambda: None)

    def units(self, study: str, left: int, kept: int) -> AbstractContextManager[Finished]:
        """Watch the units of a study while a block runs; `kept` units were finished before."""
        del study, left, kept
        return nullcontext(lambda _: None)

    def texts(
        self, study: str, ledger: Ledger, total: int
    ) -> AbstractContextManager[Callable[[], None]]:
        """Watch the calls about a study's texts; the ledger counts the answers."""
        del study, ledger, total
        return nullcontext(lambda: None)

    def responses(self, total: int, ledger: Ledger) -> AbstractContextManager[Finished]:
        """Watch responses while a block runs; the ledger counts the model's answers."""
        del total, ledger
        return nullcontext(lambda _: None)

    def limit_reached(self, ledger: Ledger) -> None:
        """Receive the calls and costs up to a limit that was reached."""


_WATCHER: ContextVar[Watcher] = ContextVar("watcher", default=Watcher())  # noqa: B039


def watcher() -> Watcher:
    """Current watcher."""
    return _WATCHER.get()


def tell(text: str) -> None:
    """Report the next step."""
    _WATCHER.get().step(text)


def each_response(responses: Sequence[Response]) -> Iterator[Response]:
    """Yield responses one by one, and report each to the watcher first."""
    for number, response in enumerate(responses, 1):
        tell(f"response {number} of {len(responses)}")
        yield response


@contextmanager
def watched(by: Watcher) -> Iterator[None]:
    """Set the watcher of a block."""
    token = _WATCHER.set(by)
    try:
        yield
    finally:
        _WATCHER.reset(token)
