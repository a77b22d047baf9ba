"""Random numbers whose whole state is one word, so that every run repeats from its seed (compiled).

Source: splitmix64, Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators".
"""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import inner_kernel, kernel

_TO_UNIT = 1.0 / 9007199254740992.0
"""2^-53: the top 53 bits of a word make every double in [0, 1) that is a multiple of it."""


@inner_kernel
def next_word(state):
    """Return a random word, and advance `state`, uint64 (1,)."""
    # A Weyl sequence, by the odd number nearest to 2^64 over the golden ratio, and a mixing of its
    # bits.
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner_kernel
def uniform(state):
    """Return a random number in [0, 1), and advance `state`, uint64 (1,)."""
    return np.float64(next_word(state) >> np.uint64(11)) * _TO_UNIT


@inner_kernel
def below(state, count):
    """Return a random whole number from 0 to count - 1, and advance `state`, uint64 (1,)."""
    return np.int64(uniform(state) * count)


@kernel
def shuffle(state, items):
    """Put `items` in a random order (Fisher and Yates).

    Args:
        state: uint64 (1,), state of the random numbers, advanced.
        items: (n,), of any type, reordered in place.
    """
    # Each place, from the last, takes one of the items that are left.
    for i in range(len(items) - 1, 0, -1):
        j = below(state, i + 1)
        items[i], items[j] = items[j], items[i]
