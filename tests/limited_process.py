"""Child processes that compute one call after another.

Compiled code cannot be interrupted, and a library may take all the memory there is or end its
process: in a process of its own, its time and memory are limited, and its death is an error.
"""

from __future__ import annotations

import fcntl
import gc
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from factormodels.errors import FactormodelsError

REFUSED, FAILED, TIMED_OUT, OUT_OF_MEMORY = "refused", "failed", "time-out", "out of memory"

_PATIENCE = 5.0
"""Seconds that a process gets to end by itself."""


class ChildError(Exception):
    """A call in a child has no result.

    Attributes:
        kind: "refused" (an error written for the user), "failed" (any other), "time-out" or
            "out of memory".
        reason: one line: what happened.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind = kind
        self.reason = reason


class Child:
    """Process that computes calls; interrupts from the terminal do not reach it.

    Functions and arguments are pickled; the first argument of a function is a dictionary that the
    process keeps from call to call. A child that was ended answers no further calls.
    """

    def __init__(self, *, quiet: bool = True) -> None:
        """Start the process.

        Args:
            quiet: drop what it prints on standard output, and its warnings.
        """
        # Not fork: the threads and locks of OpenMP, JAX and others do not survive it.
        context = multiprocessing.get_context("spawn")
        collections = gc.get_threshold()
        self._connection, connection = context.Pipe()
        # Nothing is ever sent through it: it is closed when this process ends, however it does.
        life, self._life = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_serve, args=(connection, life, quiet, collections), daemon=True
        )
        # An interrupt reaches all processes of a terminal; this one ends the others. Theirs are
        # blocked from the first instruction on.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # With our copy open as well, the pipe would never report that the child has died.
        connection.close()
        life.close()
        self._unanswered = 0

    @property
    def alive(self) -> bool:
        """True if it can be called."""
        return self._process.is_alive()

    def fileno(self) -> int:
        """The descriptor that becomes readable when it answers or dies."""
        return self._connection.fileno()

    def call(
        self, function: Callable[..., Any], *arguments: Any, limit: float | None = None
    ) -> Any:
        """``function(kept, *arguments)``, computed in the child.

        Args:
            function: a function that can be pickled.
            arguments: what it is given after the dictionary that is kept.
            limit: seconds after which the child is ended.

        Raises:
            ChildError: if the function raises, or the child ends, or is ended, before it returns.
        """
        self.send(function, *arguments)
        return self.receive(limit)

    def send(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Begin a call; `receive` returns what comes of it, of several in their order."""
        self._unanswered += 1
        # If it has died, the end of its pipe says so to who receives.
        with suppress(BrokenPipeError, ConnectionResetError):
            self._connection.send((function, arguments))

    def receive(self, limit: float | None = None) -> Any:
        """The result of the call that was begun.

        Args:
            limit: seconds after which the child is ended.

        Raises:
            ChildError: as `call` does.
        """
        try:
            if not self._connection.poll(limit):
                self.close()
                raise ChildError(TIMED_OUT, f"no answer within {limit:g} s")
            kind, result = self._connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join(_PATIENCE)
            code = self._process.exitcode
            self.close()
            # The kernel's remedy for a lack of memory, and a library's, are the same signals.
            killed = code in (-signal.SIGKILL, -signal.SIGABRT)
            reason = f"its process ended with code {code}"
            raise ChildError(OUT_OF_MEMORY if killed else FAILED, reason) from None
        self._unanswered -= 1
        if kind is None:
            return result
        raise ChildError(kind, result)

    def close(self) -> None:
        """End the process: it may tidy up, unless it is busy."""
        if not self._unanswered:
            with suppress(OSError):
                self._connection.send(None)
            self._process.join(_PATIENCE)
        self._process.kill()
        self._process.join(_PATIENCE)
        self._connection.close()
        self._life.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def limit_memory(kept: dict[str, Any], allowed: int) -> None:  # noqa: ARG001
    """Let this process take at most `allowed` bytes more than it has taken, where that can be set.

    An allocation beyond fails, as it does where memory ends, and other processes keep theirs.
    """
    taken = status_bytes("VmSize")
    if taken is not None:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        # The limit is on address space, of which libraries reserve much at import; only growth
        # counts.
        wanted = taken + allowed
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def status_bytes(field: str) -> int | None:
    """A size from the process's status, such as VmRSS or VmHWM; None where there is none."""
    with suppress(OSError), open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123
        for line in status:
            name, _, value = line.partition(":")
            if name == field:
                return int(value.split()[0]) * 1024
    return None


def _end_with(life: Connection) -> None:
    """Have this process ended by the kernel when the other end of a pipe is closed.

    Whatever it is at: compiled code lets no thread of Python look after its parent.
    """
    # A signal whose default is to end the process, sent when the state of the pipe changes.
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGIO})
    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    # It may have been closed before anyone was told of that.
    if life.poll():
        os._exit(1)


def _serve(
    connection: Connection, life: Connection, quiet: bool, collections: tuple[int, int, int]
) -> None:
    """Answer calls until the other end of the pipe says that there are no more, or is closed.

    Circles of objects are looked for as seldom as in the process that started this one.
    """
    _end_with(life)
    gc.set_threshold(*collections)
    # It starts with interrupts blocked; a library that unblocks them must not let one through.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if quiet:
        warnings.simplefilter("ignore")
        # The descriptor rather than sys.stdout, since compiled libraries print too.
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), 1)
    # What one call builds, such as a graph or a warm backend, the next ones can use.
    kept: dict[str, Any] = {}
    while True:
        try:
            call = connection.recv()
            # The polite end, sent by `close`.
            if call is None:
                # Nor before it ends: libraries have made hundreds of thousands of objects.
                gc.freeze()
                return
            function, arguments = call
            connection.send(_answer(function, kept, arguments))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _answer(
    function: Callable[..., Any], kept: dict[str, Any], arguments: tuple[Any, ...]
) -> tuple[str | None, Any]:
    """(None, result) or (kind, reason): nothing that a call raises ends the process."""
    try:
        return None, function(kept, *arguments)
    # Raised by a function that knows what kind of failure it met, such as its own time limit.
    except ChildError as error:
        return error.kind, error.reason
    except FactormodelsError as error:
        return REFUSED, " ".join(str(error).split())
    except MemoryError:
        return OUT_OF_MEMORY, "it needs more memory than it may take"
    except Exception as error:
        words = " ".join(str(error).split())
        return FAILED, f"{type(error).__name__}: {words[:200]}"
