"""Convergence diagnostics of Markov chains: split R-hat and effective sample size.

Both are computed for the indicator of a state, which is 0 or 1. Rank normalization, which makes
them robust for other quantities, only shifts and scales such a series, so that neither number
changes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_COLUMNS_AT_ONCE = 256
"""Number of series whose spectra are in memory together."""


def split_chains(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return chains cut in half, (2 * chains, draws // 2, ...); an odd draw in the middle is left
    out.

    Args:
        series: (chains, draws, ...), at least 4 draws.
    """
    half = series.shape[1] // 2
    return np.concatenate([series[:, :half], series[:, -half:]])


def split_r_hat(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the potential scale reduction of the half-chains.

    It is the square root of the ratio of the variance of all draws to the variance within
    half-chains: 1 if the halves agree. NaN for a series that is constant in all chains, infinite
    for one that is constant in each at different values.

    Args:
        series: (chains, draws, ...), at least 4 draws.

    Source: Vehtari et al. 2021, "Rank-normalization, folding, and localization", equations 1 to 4.
    """
    halves = split_chains(series)
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        result: NDArray[np.float64] = np.sqrt(_pooled_variance(halves, within) / within)
    return result


def effective_sample_size(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the number of independent draws that would estimate the mean as well as the chains do.

    Autocorrelations are summed up to the first pair of lags whose sum is not positive, with sums
    that may not rise (Geyer 1992). The result is at most S log10 S for S draws in total. Chains are
    not split: cut them in half with `split_chains` first if drift is to reduce the result. NaN for
    a series that is constant in all chains.

    Args:
        series: (chains, draws, ...), at least 4 draws.

    Source: Vehtari et al. 2021, equations 10 to 13.
    """
    chains, draws = series.shape[:2]
    flat = series.reshape(chains, draws, -1)
    columns = [
        _effective(flat[:, :, first : first + _COLUMNS_AT_ONCE])
        for first in range(0, flat.shape[2], _COLUMNS_AT_ONCE)
    ]
    return np.concatenate([np.zeros(0), *columns]).reshape(series.shape[2:])


def _effective(series: NDArray[np.float64]) -> NDArray[np.float64]:
    chains, draws = series.shape[:2]
    within = series.var(axis=1, ddof=1).mean(axis=0)
    centered = series - series.mean(axis=1, keepdims=True)
    # With zero padding to twice the length, the correlation does not wrap around.
    length = 1 << (2 * draws - 1).bit_length()
    spectrum = np.fft.rfft(centered, length, axis=1)
    power = (spectrum * spectrum.conj()).real.mean(axis=0)
    autocovariance = np.fft.irfft(power, length, axis=0)[:draws] / draws
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1.0 - (within - autocovariance) / _pooled_variance(series, within)
    correlation[0] = np.where(np.isnan(correlation[0]), np.nan, 1.0)
    pairs = draws // 2
    sums = correlation[: 2 * pairs : 2] + correlation[1 : 2 * pairs : 2]
    sums[1:] = np.minimum.accumulate(np.maximum(sums[1:], 0.0), axis=0)
    time = 2.0 * sums.sum(axis=0) - 1.0
    total = chains * draws
    result: NDArray[np.float64] = total / np.maximum(time, 1.0 / math.log10(total))
    return result


def _pooled_variance(
    series: NDArray[np.float64], within: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the estimate of the variance that includes differences between chains."""
    chains, draws = series.shape[:2]
    pooled = (draws - 1) / draws * within
    if chains > 1:
        pooled = pooled + series.mean(axis=1).var(axis=0, ddof=1)
    result: NDArray[np.float64] = pooled
    return result
