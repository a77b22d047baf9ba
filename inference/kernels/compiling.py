"""Compilation of kernels, and the cache of their machine code between runs.

This loads Numba, and is loaded when the first kernel is called.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from threading import Timer, current_thread, main_thread
from typing import Any, Literal

from numba import __version__ as numba_version
from numba import njit, types

from inference.kernels import rules  # noqa: F401 - how views and counts of bits are compiled
from inference.kernels.interrupts import guard_interrupts
from inference.kernels.preparation import PREPARATION
from inference.kernels.storage import (
    RulesNotLoadedError,
    keep_on_disk,
    load_rules,
    warn_of_no_storage,
)
from inference.kernels.symbols import link_by_symbol

Listener: Any = object
install_listener: Any = None
# A release of Numba may announce its compilations in another way.
with suppress(ImportError):
    from numba.core.event import Listener, install_listener

logger = logging.getLogger(__name__)

_IMPORT = re.compile(r"^\s*(?:from|import)\s+([\w.]+)", re.MULTILINE)

_MEASURED = "10 to 60 seconds"
"""Compilation of `exact` for a small graph, and of `auto` for one of 120 variables that it cannot
answer exactly."""

PATIENCE = 2.0
"""Seconds after which a compilation is announced; reading machine code from disk never is."""

_SHORT = 400
"""Bytes of Python's code up to which a kernel is linked into what calls it, as suits inner loops; a
longer one is called by symbol. No backend or task was slower than with all of them linked."""


def dispatcher_of(
    function: Callable[..., Any],
    fastmath: bool | set[str],
    inline: Literal["never", "always"],
    inner: bool,
) -> Any:
    """Numba's dispatcher of a kernel, with machine code cached on disk.

    Args:
        function: the kernel as it is written.
        fastmath, inline: as Numba takes them.
        inner: whether kernels alone call it.
    """
    decorate = partial(
        njit,
        nogil=True,
        error_model="numpy",
        fastmath=fastmath,
        inline=inline,
        **_without_wrappers(inner),
    )
    dispatcher = decorate(cache=True)(function)
    kept = keep_on_disk(dispatcher, _sources_digest(Path(function.__code__.co_filename)))
    if kept:
        link_by_symbol(dispatcher, called=len(function.__code__.co_code) > _SHORT)
    else:
        # Numba alone would not notice that what a kernel calls has changed.
        dispatcher = decorate(cache=False)(function)
    if inner:
        vars(dispatcher).update(
            _insert=_not_callable, _compile_for_args=_refused(function.__name__)
        )
    compile_or_load, compile_within = _prepared(dispatcher, kept)
    vars(dispatcher).update(compile=compile_or_load, compile_within=compile_within)
    template = getattr(dispatcher, "get_call_template", None)
    if not fastmath and template is not None:
        vars(dispatcher)["get_call_template"] = _without_literals(template)
    return dispatcher


def _without_wrappers(inner: bool) -> dict[str, bool]:
    """Options of `njit` that its manual does not list, where this Numba has them.

    Nothing calls a kernel by way of C, and Python none of the inner ones.
    """
    try:
        from numba.core.cpu import CPUTargetOptions
    except ImportError:
        return {}
    wanted = {"no_cfunc_wrapper": True, "no_cpython_wrapper": inner}
    return {name: value for name, value in wanted.items() if hasattr(CPUTargetOptions, name)}


def _not_callable(*overload: Any) -> None:
    """Keep machine code from where a dispatcher looks when Python calls it."""


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise TypeError(
            f"the kernel {name!r} is an inner one: kernels call it, and Python does not"
        )

    return refuse


def _as_given(kind: Any) -> Any:
    return kind


_plain: Callable[[Any], Any] = getattr(types, "unliteral", _as_given)
"""The type of a number of which one that is written out is an instance; a Numba without it compiles
more often."""


def _without_literals(get_call_template: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that types calls between kernels without literal numbers.

    Numba would compile what is called once for 0, once for 1 and once for a variable.
    """

    def get(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        plain = {name: _plain(each) for name, each in keywords.items()}
        return get_call_template(tuple(map(_plain, arguments)), plain)

    return get


def _prepared(dispatcher: Any, kept: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Methods of a dispatcher that load machine code from disk, or compile what is not there.

    Returns:
        The method `compile`, and one for a kernel that is loaded for its caller. Numba's lock is
        then taken already, so that rules cannot be loaded in another thread: it leaves that to the
        caller's method, by an exception.
    """
    compile_ = dispatcher.compile

    def compile_within(signature: Any) -> Any:
        with (
            _interrupts_raised(),
            _garbage_kept(),
            PREPARATION.counted(),
            _announced(dispatcher, kept),
        ):
            return compile_(signature)

    def compile_or_load(signature: Any) -> Any:
        guard_interrupts()
        if kept:
            with suppress(RulesNotLoadedError):
                return compile_within(signature)
        with PREPARATION.counted():
            load_rules()
        return compile_within(signature)

    return compile_or_load, compile_within


@contextmanager
def _announced(dispatcher: Any, kept: bool) -> Iterator[None]:
    """Announce the compilation of a kernel in the block; machine code on disk is not announced.

    A Numba without these events does not say which of the two it does: then nothing is announced,
    but that machine code is not kept.
    """
    announcement = _Announcement(dispatcher, kept)
    if install_listener is None:
        announcement.warn_where_not_kept()
        yield
        return
    try:
        with install_listener("numba:compile", announcement):
            yield
    finally:
        announcement.timer.cancel()


class _Announcement(Listener):  # type: ignore[misc] # a class of Numba's, or `object`
    """Announcement of one compilation among all events of Numba."""

    def __init__(self, dispatcher: Any, kept: bool) -> None:
        self._kernel = dispatcher
        self._kept = kept
        self._thread = current_thread()
        # A kernel may be compiled for other arguments amid its compilation.
        self._depth = 0
        self._start = 0.0
        self.timer = Timer(PATIENCE, _announce)
        self.timer.daemon = True

    def _is_watched(self, event: Any) -> bool:
        return event.data.get("dispatcher") is self._kernel and current_thread() is self._thread

    def on_start(self, event: Any) -> None:
        """Start the timer of the announcement."""
        if not self._is_watched(event):
            return
        self._depth += 1
        if self._depth == 1:
            self.warn_where_not_kept()
            self._start = time.perf_counter()
            self.timer.start()

    def warn_where_not_kept(self) -> None:
        """Warn once per process if this Numba's machine code is not kept on disk."""
        if not self._kept:
            warn_of_no_storage(
                f"it is not known how Numba {numba_version} keeps them",
                "install the newest release of Numba that is accepted here",
            )

    def on_end(self, event: Any) -> None:
        """Log the duration of the compilation."""
        if not self._is_watched(event):
            return
        self._depth -= 1
        if self._depth == 0:
            self.timer.cancel()
            taken = {"seconds": time.perf_counter() - self._start}
            logger.info("compiled %s", self._kernel.__name__, extra=taken)


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Collect no garbage in the block.

    A compilation makes millions of objects and drops few of them before its end: looking through
    them time and again took a seventh of it, and what is kept meanwhile 250 MB at most.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _interrupts_raised() -> Iterator[None]:
    """Raise exceptions of callbacks in the block after the block, where they can be caught.

    LLVM calls Python for each object that it has made, and Python calls finalizers. An exception of
    a signal handler there is printed with a traceback and dropped, so that an interrupt would be
    lost. Signals are handled in the main thread alone.
    """
    if current_thread() is not main_thread():
        yield
        return
    before = sys.unraisablehook
    lost: list[BaseException] = []

    def keep(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_value is None or isinstance(unraisable.exc_value, Exception):
            before(unraisable)
        else:
            lost.append(unraisable.exc_value)

    sys.unraisablehook = keep
    try:
        yield
    finally:
        sys.unraisablehook = before
        if lost:
            raise lost.pop().with_traceback(None)


@cache
def _announce() -> None:
    logger.warning(
        "compiling kernels: once, for they are kept on disk; a backend took %s of processor time "
        "where it was measured",
        _MEASURED,
    )


@cache
def _sources_digest(path: Path) -> str:
    """Digest of a file of kernels and of all such files that it imports, directly or not."""
    known: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file not in known:
            known.add(file)
            waiting.extend(_imported(file))
    digest = hashlib.sha256()
    for file in sorted(known):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _imported(path: Path) -> list[Path]:
    """Files in folders `kernels` that a file imports; of a package, all that it holds."""
    files: list[Path] = []
    for name in _IMPORT.findall(path.read_text()):
        parts = name.split(".")
        if "kernels" not in parts:
            continue
        for above in path.parents:
            target = above.joinpath(*parts)
            if target.with_suffix(".py").exists() or target.is_dir():
                files += [target.with_suffix(".py")] if not target.is_dir() else target.glob("*.py")
                break
    return files
