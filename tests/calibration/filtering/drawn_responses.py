"""Simulated responses for tests of filters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from calibration.validation import Floats, Integers

CLAIMS = 8


class Drawn(NamedTuple):
    """Claims of simulated responses.

    Attributes:
        p: probabilities (n_claims,).
        y: labels (n_claims,).
        responses: response of each claim.
        saturated: whether the response is of the kind with saturated probabilities.
    """

    p: Floats
    y: Floats
    responses: Integers
    saturated: np.ndarray


def two_kinds(n: int, seed: int) -> Drawn:
    """Responses of which each tenth has the probability .99 for claims of which a fifth is true.

    The probabilities of the others are calibrated and at most .99.
    """
    generator = np.random.default_rng(seed)
    saturated = np.arange(n) % 10 == 0
    log_odds = generator.normal(1.0, 0.7, n)[:, None] + generator.normal(0, 1.8, (n, CLAIMS))
    p = np.clip(np.round(expit(log_odds), 3), 0.01, 0.99)
    y = generator.random((n, CLAIMS)) < np.where(saturated[:, None], 0.2, expit(log_odds))
    p[saturated] = 0.99
    return Drawn(
        p.ravel(),
        y.ravel().astype(np.float64),
        np.repeat(np.arange(n), CLAIMS),
        np.repeat(saturated, CLAIMS),
    )
