"""Arrays in the form that kernels pass to one another, compiled by `inference.kernels.rules`."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Kind = TypeVar("Kind", bound=np.generic)
Lent = TypeVar("Lent")


def read_only(array: NDArray[Kind]) -> NDArray[Kind]:
    """Return a read-only view of an array.

    A graph's arrays are read-only already, so one compiled form of a kernel serves both.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def lent(lent: Lent) -> Lent:
    """An array, or a tuple of arrays, whose references are not counted.

    A kernel counts one more reference to each array that it is given, once a call, and to each that
    it takes out of a tuple, in each round of a loop. These are atomic operations, which take longer
    than the rest of a small kernel. The caller holds the arrays until the kernel returns, so that
    it need not count what it is given as an argument. It must not lend anything else, since memory
    without references is freed, and for the same reason not return a lent array or a part of it.
    An `inlined_kernel` has no arguments of its own, and must not lend.
    """
    return lent


def population_count(word: np.uint64) -> int:
    """Count the bits of a word that are set: one instruction of a processor."""
    return int(word).bit_count()
