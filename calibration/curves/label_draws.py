"""Random labels of calibrated forecasts, with the data's correlation within responses."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from calibration.forecasts import Forecasts, Sample
from calibration.scores.families.corp import isotonic_fit
from calibration.validation import Floats


def calibrated(points: Forecasts, n_draws: int, seed: int) -> Iterator[Sample]:
    """Yield samples of the same forecasts whose labels are drawn with probability p.

    An atom is true if a uniform number is below its p. With probability s all atoms of a response
    use the response's number; otherwise an atom has its own. Each atom is then true with
    probability p, and the labels of two atoms of a response have the correlation
    s^2 exp(-|difference of logits|/2). `shared_share` estimates s, which is 0 without responses.

    Args:
        points: the forecasts.
        n_draws: number of samples.
        seed: seed of the draws.
    """
    generator = np.random.default_rng(seed)
    share = shared_share(points, generator) if points.clustered else 0.0
    p = points.p_of_atoms
    weight = points.sample().weight
    for _ in range(n_draws):
        number = generator.random(p.size)
        if share > 0:
            common = generator.random(points.n_responses)[points.response]
            number = np.where(generator.random(p.size) < share, common, number)
        true = np.add.reduceat(points.weights * (number < p), points.first)
        yield Sample(points, weight, true)


def shared_share(points: Forecasts, generator: np.random.Generator) -> float:
    """Parameter s of `calibrated` that reproduces the data's correlation within responses.

    The correlation is the mean product of two atoms' Pearson residuals from the isotonic fit,
    over pairs within responses. Its value for s = 1 is the mean of exp(-|difference of logits|/2)
    over such pairs, estimated from one random pair per atom.

    Args:
        points: the forecasts, with responses.
        generator: draws the pairs.
    """
    whole = points.sample()
    fit = isotonic_fit(whole)
    share_true = np.zeros(points.p.size)
    lengths = np.diff(np.append(fit.first, whole.present.size))
    share_true[whole.present] = np.repeat(fit.value, lengths)
    expected = np.repeat(share_true, points.sizes)
    # If the fit is 0 or 1, labels have no variance.
    varying = (expected > 0) & (expected < 1) & (points.weights > 0)
    expected, response = expected[varying], points.response[varying]
    residual = (points.y[varying] - expected) / np.sqrt(expected * (1 - expected))
    sizes = np.bincount(response, minlength=points.n_responses)
    partners = sizes[response] - 1
    n_pairs = float(partners.sum())
    if n_pairs == 0:
        return 0.0
    sums = np.bincount(response, weights=residual, minlength=points.n_responses)
    correlation = (float((sums**2).sum()) - float((residual**2).sum())) / n_pairs
    largest = _mean_of_pairs(expected, response, sizes, generator) / n_pairs
    return math.sqrt(min(max(correlation / largest, 0.0), 1.0))


def _mean_of_pairs(
    expected: Floats,
    response: np.ndarray[tuple[int], np.dtype[np.int64]],
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]],
    generator: np.random.Generator,
) -> float:
    """Estimate of the sum over ordered pairs of exp(-|difference of logits|/2)."""
    order = np.argsort(response, kind="stable")
    logits = (np.log(expected) - np.log1p(-expected))[order]
    of_response = response[order]
    size = sizes[of_response]
    begin = (np.cumsum(sizes) - sizes)[of_response]
    position = np.arange(order.size) - begin
    # Choose one of the other atoms of the response uniformly.
    step = 1 + (generator.random(order.size) * (size - 1)).astype(np.int64)
    partner = begin + (position + step) % size
    likeness = np.exp(-np.abs(logits - logits[partner]) / 2)
    return float(((size - 1) * likeness).sum())
