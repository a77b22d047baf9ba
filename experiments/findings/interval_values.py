"""Means and differences with intervals over graphs or responses, as rows of tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.grouping import Grouping
from calibration.intervals import (
    Estimand,
    IntervalMethod,
    IntervalSettings,
    PairedDifference,
    RatioSums,
    Scale,
    estimate_all,
    percentile_interval,
    replicates,
    response_weights,
)
from calibration.scores.registry import REGISTRY
from experiments.findings.table import ENDS, data_frame, named
from experiments.findings.text import ABSENT

if TYPE_CHECKING:
    import pandas as pd

Value = tuple[float, float, float]
"""A number and the ends of its interval; NaN if there is none."""

N_BOOTSTRAP = 2000
LEVEL = 0.95

ROUNDING = 1e-12
"""A smaller difference of scores of size 1 counts as none."""


def mean_of_clusters(totals: ArrayLike, sizes: ArrayLike, seed: int) -> Value:
    """The mean of values that come in clusters, with its 95% bootstrap interval.

    Args:
        totals: sum of the values of each graph or response, (n,).
        sizes: number of values of each, (n,).
        seed: seed of the bootstrap over clusters.
    """
    return _estimated(_ratio(totals, sizes), seed)


def mean_loss_of_clusters(losses: ArrayLike, grouping: Grouping) -> Value:
    """The mean of nonnegative losses, such as the log loss, with its 95% interval over responses.

    Args:
        losses: loss of each claim or pair, (n,).
        grouping: their responses.
    """
    losses = np.asarray(losses, dtype=np.float64)
    mean = _ratio(grouping.sums(losses), grouping.sizes, REGISTRY["log_loss"].scale)
    return _of_one(mean, IntervalSettings(IntervalMethod.DELTA, level=LEVEL))


def means_of_clusters(
    frame: pd.DataFrame, by: list[str], sums: Mapping[str, tuple[str, str]], seed: int
) -> pd.DataFrame:
    """Means of a long frame with their intervals, a row for each combination of the keys.

    Args:
        frame: one row per graph or response and combination.
        by: the keys.
        sums: columns of totals and of sizes by the name of the mean, as for `mean_of_clusters`; a
            missing total is left out.
        seed: seed of the bootstrap over clusters.
    """
    rows = []
    for key, group in frame.groupby(by, sort=False):
        row: dict[str, Any] = dict(zip(by, key, strict=True)) | {"n_graphs": len(group)}
        for name, (totals, sizes) in sums.items():
            known = group[group[totals].notna()]
            row |= named(name, mean_of_clusters(known[totals], known[sizes], seed))
        rows.append(row)
    return data_frame(rows)


def difference_of_clusters(
    first: tuple[ArrayLike, ArrayLike], second: tuple[ArrayLike, ArrayLike], seed: int
) -> Value:
    """Mean of the first minus mean of the second, over the same resampled clusters.

    Args:
        first: totals and sizes of the clusters, as for `mean_of_clusters`.
        second: the same for the other side, in the same order of clusters.
        seed: seed of the bootstrap over clusters.
    """
    return _estimated(PairedDifference(_ratio(*second), _ratio(*first)), seed)


def kendall(first: ArrayLike, second: ArrayLike, seed: int) -> Value:
    """Kendall's tau-b of two measures of the same responses, with its bootstrap interval.

    Responses are resampled; two draws of the same response are tied in both measures. The result is
    NaN if one of the measures does not vary. Source: Kendall 1945, Biometrika 33.

    Args:
        first: one measure of each response, (n,).
        second: the other, (n,).
        seed: seed of the bootstrap over responses.
    """
    # tau-b = sum of products of signs over pairs / geometric mean of the numbers of untied pairs in
    # each measure. All three sums are quadratic forms w' M w in the numbers of draws w of
    # responses, so that a replicate needs no new matrix of signs.
    signs = [_signs(np.asarray(each, dtype=np.float64)) for each in (first, second)]
    products = signs[0] * signs[1], np.abs(signs[0]), np.abs(signs[1])
    n = len(signs[0])

    def tau(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        agree, untied, other = (
            ((weights @ each) * weights).sum(axis=1, keepdims=True) for each in products
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((untied > 0) & (other > 0), agree / np.sqrt(untied * other), np.nan)

    drawn = replicates(tau, response_weights(n, N_BOOTSTRAP, seed))
    lower, upper = percentile_interval(drawn, LEVEL)
    return tau(np.ones((1, n))).item(), lower.item(), upper.item()


def tiny(value: float, sign: str = "") -> str:
    """A number of any magnitude with two digits; rounding errors are shown as 0.

    Args:
        value: the number.
        sign: "+" to always show its sign.
    """
    if math.isnan(value):
        return ABSENT
    return "0" if abs(value) < ROUNDING else f"{value:{sign}.1e}"


def interval_text(frame: pd.DataFrame, name: str, sign: str = "") -> list[str]:
    """The numbers of a column as `tiny` shows them, with their intervals where there are any.

    Args:
        frame: holds the numbers under `name`, the ends of their intervals under NAME_lower and
            NAME_upper.
        name: the numbers' name.
        sign: as in `tiny`.
    """
    texts = []
    for value, *ends in frame[[f"{name}{end}" for end in ENDS]].to_numpy(float):
        bare = any(map(math.isnan, ends)) or all(abs(end) < ROUNDING for end in ends)
        between = ", ".join(tiny(end, sign) for end in ends)
        texts.append(tiny(value, sign) + ("" if bare else f" [{between}]"))
    return texts


def _ratio(totals: ArrayLike, sizes: ArrayLike, scale: Scale = Scale.NUMBER) -> RatioSums:
    above, below = (np.asarray(each, dtype=np.float64)[:, np.newaxis] for each in (totals, sizes))
    return RatioSums(above, below, "mean", scale)


def _estimated(estimand: Estimand, seed: int) -> Value:
    return _of_one(estimand, IntervalSettings(n_bootstrap=N_BOOTSTRAP, seed=seed, level=LEVEL))


def _of_one(estimand: Estimand, settings: IntervalSettings) -> Value:
    (estimate,) = estimate_all((estimand,), settings)
    return float(estimate.estimate[0]), float(estimate.lower[0]), float(estimate.upper[0])


def _signs(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sign(values[:, np.newaxis] - values)
