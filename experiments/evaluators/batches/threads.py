"""Threads that apply a function to many items, and wait for models and servers concurrently."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from factormodels.extraction.relation_models.base import (
        Judgment,
        Missing,
        RelationModel,
        TextPair,
    )

Item = TypeVar("Item")
Result = TypeVar("Result")
Given = ParamSpec("Given")

_PATIENCE = 0.5
"""Seconds without a result after which threads are assumed to wait."""


AT_WORK = "a response is worked on"
"""Name of the threads, to detect remaining threads at the end of the process."""


class OneAtATime(Generic[Given, Result]):
    """A function that only one thread at a time can execute.

    Args:
        function: the function.
        prepare: preparation before the first call.
    """

    def __init__(
        self, function: Callable[Given, Result], prepare: Callable[[], None] = lambda: None
    ) -> None:
        self._function = function
        self._prepare: Callable[[], None] | None = prepare
        self._alone = threading.Lock()

    def prepare(self) -> None:
        """Prepare the first call, unless this has been done."""
        with self._alone:
            self._make_ready()

    def __call__(self, *given: Given.args, **named: Given.kwargs) -> Result:
        """Result of the function."""
        with self._alone:
            self._make_ready()
            return self._function(*given, **named)

    def _make_ready(self) -> None:
        if self._prepare is not None:
            prepare, self._prepare = self._prepare, None
            prepare()


@dataclass(frozen=True)
class LocalRelations:
    """A local relation model that serves one thread at a time.

    A call then has all processors for itself; the tokenizers of transformers are not thread-safe.

    Attributes:
        model: the model.
    """

    model: RelationModel
    _alone: Any = field(default_factory=threading.Lock, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[LocalRelations], tuple[RelationModel]]:
        # Locks cannot be pickled.
        return LocalRelations, (self.model,)

    @property
    def name(self) -> str:
        """The model's name in tables and manifests."""
        return self.model.name

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        """Return an answer per pair, in order."""
        with self._alone:
            return self.model.judge(pairs)


def as_ready(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    count: int,
    stop: threading.Event,
    meanwhile: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, Result]]:
    """Yield (index of an item, result of the function) as results are ready.

    Raises the first exception. When the iteration ends, `stop` is set and threads take no further
    items; the process can end without waiting for them.

    Args:
        function: function to call; with `count` 1 in this thread.
        items: its arguments, taken in their order.
        count: number of threads.
        stop: event that signals to the function that its results are no longer needed.
        meanwhile: called in this thread while the threads wait for a server before the first
            result.
    """
    try:
        if count <= 1 or len(items) <= 1:
            for position, item in enumerate(items):
                yield position, function(item)
            return
        ready: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()
        queue, taking = iter(enumerate(items)), threading.Lock()

        def work() -> None:
            while not stop.is_set():
                with taking:
                    position, item = next(queue, (-1, None))
                if item is None:
                    return
                try:
                    ready.put((position, function(item), None))
                except BaseException as error:
                    # The iterating thread raises any exception.
                    ready.put((position, None, error))
                    return

        for _ in range(min(count, len(items))):
            # Daemon threads: an interrupt does not wait for a slow server.
            context = contextvars.copy_context()
            threading.Thread(target=context.run, args=(work,), name=AT_WORK, daemon=True).start()
        first = None
        try:
            first = ready.get(timeout=_PATIENCE)
        except Empty:
            meanwhile()
        for _ in items:
            (position, result, error), first = first or ready.get(), None
            if error is not None:
                raise error
            yield position, result  # type: ignore[misc]
    finally:
        stop.set()
