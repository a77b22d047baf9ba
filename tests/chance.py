"""Checks of counts against the law they are drawn from."""

from __future__ import annotations

import math

DEVIATIONS = 5.0
"""How many standard deviations a statistic may lie from its mean.

Seeds are fixed, so a test does not flicker; a sound law would be refused for one seed in two
million, and the faults that the tests are made for lie far beyond.
"""


def assert_share(successes: int, trials: int, probability: float) -> None:
    """Check that a count is likely for independent trials with a probability."""
    spread = DEVIATIONS * math.sqrt(trials * probability * (1.0 - probability)) + 1e-9
    assert abs(successes - trials * probability) <= spread


def least_held(draws: int) -> float:
    """Smallest number of nominal .95 intervals that must cover the truth, among a number of draws.

    2.8 standard errors of the share below .95: .92 of 400 draws, which refuse intervals that hold
    .90 nine times in ten, and .88 of 80, which refuse intervals that hold .85 eight times in ten.
    Sound intervals would be refused for four seeds in a thousand; seeds are fixed.
    """
    return draws * (0.95 - 2.8 * math.sqrt(0.95 * 0.05 / draws))
