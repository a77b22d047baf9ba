"""How kernels are compiled and how their machine code is kept between runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on its first call, and keep the machine code on disk.

    Kernels release the interpreter lock and follow NumPy's rules for division. Numba keeps code
    by the file of the function alone, though it holds whatever that function calls; here a change
    to any file of this folder makes all of it stale, so that no old callee survives in a caller.
    """
    return _compiled(function, fastmath=False)


def reassociating_kernel(function: Callable[..., Any]) -> Any:
    """Compile as `kernel` does, with sums in the order that suits vector instructions."""
    return _compiled(function, fastmath={"reassoc", "nsz", "contract"})


def _compiled(function: Callable[..., Any], fastmath: bool | set[str]) -> Any:
    dispatcher = njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)(function)
    index = dispatcher._cache._cache_file  # type: ignore[attr-defined]
    index._source_stamp = (index._source_stamp, _sources_digest())
    return dispatcher


@cache
def _sources_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
