"""How often intervals hold a known truth, where atoms of a response are alike.

    python -m tests.calibration.coverage_simulation

runs the whole simulation, some minutes; a test runs a short one.

Forecasts: logit p = response effect + noise, normal with variances 0.5 and 1.75. Labels: true if
a normal number lies below the quantile of the true probability sigmoid(INTERCEPT + SLOPE logit p),
where the normal numbers of one response have the correlation CORRELATION. Each atom's true
probability given its p is then exactly that, whatever the correlation: slope and intercept of the
population are SLOPE and INTERCEPT, and its Brier score is an integral over logit p.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass

import numpy as np

from calibration import score_table
from calibration.scores.logistic import sigmoid
from calibration.validation import Floats, Integers

SLOPE, INTERCEPT, CORRELATION = 0.8, 0.2, 0.4
RESPONSE_VARIANCE, ATOM_VARIANCE = 0.5, 1.75
SCORES = ("brier", "calibration_slope", "calibration_intercept")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Coverage:
    """How often the intervals of one score held the truth.

    Attributes:
        score: name of the score.
        interval: ``percentile``, ``basic`` or ``bca``.
        resampled: what the bootstrap drew, ``responses`` or ``atoms``.
        share: share of the simulations whose interval held the truth.
    """

    score: str
    interval: str
    resampled: str
    share: float


def truths() -> dict[str, float]:
    """Return what the scores are in the population."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    logits = nodes * np.sqrt(RESPONSE_VARIANCE + ATOM_VARIANCE)
    p, true = sigmoid(logits), sigmoid(INTERCEPT + SLOPE * logits)
    losses = true * (1 - p) ** 2 + (1 - true) * p**2
    return {
        "brier": float(weights @ losses / weights.sum()),
        "calibration_slope": SLOPE,
        "calibration_intercept": INTERCEPT,
    }


def draw(generator: np.random.Generator, n_responses: int) -> tuple[Floats, Floats, Integers]:
    """Return probabilities, labels and response ids of responses of 3 to 20 atoms."""
    sizes = generator.integers(3, 21, n_responses)
    responses = np.repeat(np.arange(n_responses), sizes)
    shared = generator.normal(size=n_responses)[responses] * np.sqrt(RESPONSE_VARIANCE)
    logits = shared + generator.normal(size=responses.size) * np.sqrt(ATOM_VARIANCE)
    true = sigmoid(INTERCEPT + SLOPE * logits)
    return sigmoid(logits), alike_labels(generator, true, responses, CORRELATION), responses


def alike_labels(
    generator: np.random.Generator, true: Floats, responses: Integers, correlation: float
) -> Floats:
    """Return labels of these probabilities, whose normal numbers are alike within a response."""
    from scipy.special import ndtr

    common = generator.normal(size=responses.max() + 1)[responses]
    own = generator.normal(size=responses.size)
    number = ndtr(np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own)
    labels: Floats = (number < true).astype(np.float64)
    return labels


def coverage(
    n_simulations: int, n_responses: int, n_bootstrap: int, *, bca: bool = False, seed: int = 0
) -> list[Coverage]:
    """Return how often intervals over responses, and over atoms, hold the truth.

    Args:
        n_simulations: number of simulated data sets.
        n_responses: number of responses of each.
        n_bootstrap: number of bootstrap replicates of each interval.
        bca: whether to look at BCa intervals too.
        seed: seed of the data sets; the bootstrap of each has its number as seed.
    """
    truth = truths()
    kinds = ("percentile", "basic", "bca") if bca else ("percentile", "basic")
    held = {
        (score, kind, drawn): 0
        for score in SCORES
        for kind in kinds
        for drawn in ("responses", "atoms")
    }
    for number in range(n_simulations):
        p, y, responses = draw(np.random.default_rng([seed, number]), n_responses)
        for ids in (responses, None):
            rows = score_table(
                p, y, None, ids, n_bootstrap, number, scores=SCORES, bca=bca, workers=1
            )
            for row in rows:
                for kind in kinds:
                    lower = getattr(row, f"{kind}_lower")
                    upper = getattr(row, f"{kind}_upper")
                    key = row.score, kind, row.resampled
                    held[key] += bool(lower <= truth[row.score] <= upper)
    return [Coverage(*key, count / n_simulations) for key, count in held.items()]


def main() -> None:
    """Run the whole simulation and log one line per score and interval."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    for row in coverage(2000, n_responses=150, n_bootstrap=400, bca=True):
        logger.info("%-22s %-10s over %-9s %.3f", row.score, row.interval, row.resampled, row.share)


if __name__ == "__main__":
    main()
