"""How kernels are compiled and how their machine code is kept between runs."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any

from numba import njit

logger = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds after which a compilation is announced; machine code from disk takes a tenth of that."""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on its first call, and keep the machine code on disk.

    Kernels release the interpreter lock and follow NumPy's rules for division. Numba keeps code
    by the file of the function alone, though it holds whatever that function calls; here a change
    to any file in a folder `kernels` makes all of it stale, so that no old callee survives in a
    caller.
    A compilation that takes long is announced by a warning of this module's logger, once a process.
    """
    return _compiled(function, fastmath=False)


def reassociating_kernel(function: Callable[..., Any]) -> Any:
    """Compile as `kernel` does, with sums in the order that suits vector instructions."""
    return _compiled(function, fastmath={"reassoc", "nsz", "contract"})


def _compiled(function: Callable[..., Any], fastmath: bool | set[str]) -> Any:
    dispatcher = njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)(function)
    index = dispatcher._cache._cache_file  # type: ignore[attr-defined]
    vars(index)["_load_index"] = _tolerant(index._load_index)
    index._source_stamp = (index._source_stamp, _sources_digest())
    vars(dispatcher)["compile"] = _announced(dispatcher.compile)
    return dispatcher


def _tolerant(load_index: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    """Reading of what is on disk, which is nothing where it names a type that is gone."""

    def load() -> dict[Any, Any]:
        try:
            return load_index()
        # Numba unpickles the types of arguments before it looks whether the code is stale.
        except (AttributeError, ImportError):
            return {}

    return load


def _announced(compile_: Callable[..., Any]) -> Callable[..., Any]:
    def compile_and_announce(signature: Any) -> Any:
        timer = Timer(PATIENCE, _announce)
        timer.daemon = True
        timer.start()
        try:
            return compile_(signature)
        finally:
            timer.cancel()

    return compile_and_announce


@cache
def _announce() -> None:
    logger.warning("compiling kernels: once, up to a minute; later calls start fast")


@cache
def _sources_digest() -> str:
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for path in sorted(path for path in package.rglob("*.py") if "kernels" in path.parts):
        digest.update(path.read_bytes())
    return digest.hexdigest()
