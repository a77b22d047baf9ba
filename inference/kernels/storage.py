"""Disk cache of kernels' machine code, read only if it is current.

Numba offers `cache=True`, but caches code by the file of the function alone, although the code
includes all called functions. This module patches private parts of Numba. If a release has renamed
one, nothing is cached: each process recompiles its kernels, with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit

from inference.kernels.beside import compiled_beside
from inference.kernels.compiler_lock import is_compiling
from inference.thread_team import call_in_thread

logger = logging.getLogger("inference.kernels.compiling")


def keep_on_disk(dispatcher: Any, sources: str) -> bool:
    """Read a kernel's machine code from disk only if it is whole and its sources are unchanged.

    Args:
        dispatcher: a kernel that Numba keeps on disk.
        sources: digest of every file whose code is part of the kernel's.

    Returns:
        True if that was possible. If not, `dispatcher` is unchanged and must not be used.
    """
    if not runtime_is_started():
        return False
    try:
        kept = dispatcher._cache
        index = kept._cache_file
        stamp = (index._source_stamp, sources)
        methods = {
            "_load_index": _tolerant(index._load_index),
            "_load_data": _undamaged(index._load_data),
            "save": _kept_if_possible(index.save),
        }
        vars(kept)["load_overload"] = _without_rules(kept._load_overload, dispatcher.py_func)
    except AttributeError:
        return False
    index._source_stamp = stamp
    vars(index).update(methods)
    return True


@cache
def runtime_is_started() -> bool:
    """Start the part of Numba without which machine code from disk does not run.

    Returns:
        False if this Numba has other names for it.
    """
    try:
        from numba.core.runtime.nrt import rtsys

        dispatcher: Any = njit(_nothing)
        rtsys.initialize(dispatcher.targetctx)
    except (ImportError, AttributeError):
        return False
    return True


@cache
def load_rules() -> None:
    """Load Numba's rules in another thread, where no interrupt of this one reaches it.

    Numba fills tables before its first compilation. A table that an interrupt left half filled
    would fail every later compilation of the process.
    """
    dispatcher: Any = njit(_nothing)
    if is_compiling():
        dispatcher()
    else:
        call_in_thread(dispatcher)


class RulesNotLoadedError(Exception):
    """A kernel is not on disk, and `load_rules` has not been called."""


def _nothing() -> None:
    """Return nothing: the smallest function to compile."""


def _without_rules(
    load_overload: Callable[[Any, Any], Any], function: Callable[..., Any]
) -> Callable[[Any, Any], Any]:
    """Reading of machine code from disk without what Numba needs to compile.

    Before it looks on disk, Numba loads all its rules for typing and compiling, and with them
    SciPy's linear algebra: half of the time of a first answer. Code on disk needs none of them, and
    other code is compiled once `load_rules` has loaded them, unless a second process has compiled
    it.
    """

    def load(signature: Any, context: Any) -> Any:
        code = load_overload(signature, context)
        # Where nothing can be kept, nothing comes from another process.
        keeps = not warn_of_no_storage.cache_info().currsize
        if code is None and keeps and compiled_beside(function.__module__, function.__name__):
            code = load_overload(signature, context)
        if code is None and not load_rules.cache_info().currsize:
            raise RulesNotLoadedError
        return code

    return load


def _tolerant(load_index: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    """Reading of what is on disk: nothing where it is damaged or names a type that is gone."""

    def load() -> dict[Any, Any]:
        try:
            return load_index()
        # Numba unpickles the types of arguments before it looks whether the code is stale, and
        # unpickling raises whatever damage leads it to.
        except Exception:
            return {}

    return load


def _undamaged(load_data: Callable[[str], Any]) -> Callable[[str], Any]:
    """Reading of machine code, where Numba compiles anew what cannot be read from disk."""

    def load(name: str) -> Any:
        try:
            return load_data(name)
        except Exception as error:
            raise OSError(f"{name} is damaged") from error

    return load


def _kept_if_possible(save: Callable[..., None]) -> Callable[..., None]:
    """Keeping of machine code on disk, without which everything is computed all the same."""

    def keep(*code: Any) -> None:
        try:
            save(*code)
        except OSError as error:
            reason = error.strerror or str(error)
            warn_of_no_storage(reason, "make room, or name another folder in NUMBA_CACHE_DIR")

    return keep


@cache
def warn_of_no_storage(reason: str, fix: str) -> None:
    """Warn once per process that kernels are not kept on disk, with the reason and the fix."""
    logger.warning(
        "compiled kernels cannot be kept on disk (%s) and are recompiled at every start; %s",
        reason,
        fix,
    )
