"""Errors of sigma as a prediction of the factuality of other responses.

SK and SU come from one half of the responses and factuality from the other half, in many splits
and in both directions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from calibration.intervals import jackknife, reach, student_quantile
from calibration.self_knowledge.balance import judged_counts, laws_of, ratio
from calibration.self_knowledge.claims import Claims, Neither, as_claims, position_names
from calibration.self_knowledge.formula import rogan_gladen, sigma, sigma_slopes
from calibration.self_knowledge.positions import N_POSITIONS, OVERALL
from calibration.significance.student import student_p_values
from calibration.tabular import Frame
from calibration.validation import Floats, open_interval, whole_number
from factormodels.errors import InputError
from factormodels.io.claim_records import ClaimRecord, Setting, setting_named
from factormodels.nouns import counted

PREDICTORS = ("sigma", "rogan_gladen", "factuality")
"""Predictors of the factuality of the other half: sigma of the first half; the Rogan-Gladen
estimate from SK and SU of the first half and judgments of the other; factuality of the first."""

RIVALS = (("sigma", "factuality"),)
"""Pairs of predictors whose errors are compared, first minus second."""


def prediction_errors(
    counts: Floats,
    positions: tuple[str, ...] = (OVERALL,),
    *,
    n_splits: int = 200,
    seed: int = 0,
    level: float = 0.95,
) -> Frame:
    """Root mean square errors of `out_of_sample_counts` with intervals, and their differences.

    Each row is a position, with columns rmse_PREDICTOR and FIRST_minus_SECOND for `RIVALS`, and the
    ends of their intervals as NAME_lower and NAME_upper. Intervals use the jackknife over R
    responses and Student's t with R - 2 degrees of freedom.

    Args:
        counts: counts as in `out_of_sample_counts`.
        positions: names of the cells.
        n_splits: number of splits in two halves, each used both ways.
        seed: seed of the splits.
        level: nominal coverage of the intervals.

    Raises:
        InputError: for fewer than four responses, or settings outside their ranges.
    """
    here, n_responses = _halves(counts.shape[0], n_splits, seed), counts.shape[0]

    def errors(weights: Floats) -> Floats:
        """Each error in each cell, (n_errors, n_cells)."""
        weighted = weights[:, None, None, None] * counts
        totals, others = _sums(here, weighted), _sums(1 - here, weighted)
        predicted, target = _predictions(totals, _judged(others)), _factuality(others)
        defined = ~np.isnan(predicted["sigma"] - target)
        square = {name: _root_mean_square(predicted[name] - target, defined) for name in PREDICTORS}
        return np.stack(
            [*square.values(), *(square[predictor] - square[rival] for predictor, rival in RIVALS)]
        )

    names = [
        *(f"rmse_{name}" for name in PREDICTORS),
        *(f"{predictor}_minus_{rival}" for predictor, rival in RIVALS),
    ]
    values = errors(np.ones(n_responses))
    error, _, _ = jackknife(
        lambda weights: np.stack([errors(each).reshape(-1) for each in weights]),
        *(values.reshape(-1), n_responses, 0),
    )
    half = (student_quantile(level, n_responses - 2) * error).reshape(values.shape)
    lower, upper = values - half, values + half
    # A root mean square is not negative.
    lower[: len(PREDICTORS)] = np.maximum(lower[: len(PREDICTORS)], 0.0)
    return _with_ends(positions, names, values, lower, upper)


def _with_ends(
    positions: tuple[str, ...], names: list[str], values: Floats, lower: Floats, upper: Floats
) -> Frame:
    """Table of errors with the ends of their intervals; arrays have a row per name."""
    columns: dict[str, Floats] = {}
    for row, name in enumerate(names):
        columns |= {name: values[row], f"{name}_lower": lower[row]}
        columns[f"{name}_upper"] = upper[row]
    return Frame(position=positions, **columns)


def _judged(totals: Floats) -> Floats:
    """Share of claims judged correct, from counts."""
    return ratio(totals[..., 0].sum(axis=-1), _sizes(totals))


def out_of_sample(
    records: Claims | Iterable[ClaimRecord],
    setting: str = Setting.NONE_OF_THE_ABOVE,
    *,
    n_positions: int = N_POSITIONS,
    neither: str = Neither.INCORRECT,
    n_splits: int = 200,
    seed: int = 0,
    level: float = 0.95,
) -> Frame:
    """Compare sigma of half of the responses with the factuality of the other half.

    Columns, with a row per position and overall last: difference, mean over splits of sigma of one
    half minus factuality of the other; standard_error of that mean, clustered by response; lower
    and upper, ends of its interval by Student's t with R - 2 degrees of freedom for R responses,
    clipped to the range of resamples; p_value, of the two-sided test that the mean is 0;
    n_responses with claims; rmse_PREDICTOR, root mean square error of each prediction;
    n_undefined, number of the 2 n_splits predictions without a defined sigma or factuality, which
    are left out; n_splits, each used in both directions.

    The test of the mean difference uses the linearized contributions of the responses, averaged
    over the same splits. More splits reduce the noise of the estimate, but do not reduce the
    standard error below the standard error over responses. The hypothesis is the same as in
    `in_sample_balance`: false positives and false negatives are equally frequent. In addition, this
    function reports the errors of the prediction and of an estimate from the judgments of the other
    half.

    Args:
        records: the claims of at least four responses.
        setting: setting in which the model was asked.
        n_positions: number of bins.
        neither: treatment of the judgment "neither", as in `self_knowledge`.
        n_splits: number of splits in two halves, each used in both directions.
        seed: seed of the splits.
        level: nominal coverage of the interval.

    Raises:
        InputError: for too few records or responses, or unknown settings.
    """
    claims, names = as_claims(records), position_names(n_positions)
    counts = judged_counts(claims, setting_named(setting), n_positions, neither)
    return out_of_sample_counts(
        counts, (*names, OVERALL), n_splits=n_splits, seed=seed, level=level
    )


def out_of_sample_counts(
    counts: Floats,
    positions: tuple[str, ...] = (OVERALL,),
    *,
    n_splits: int = 200,
    seed: int = 0,
    level: float = 0.95,
) -> Frame:
    """`out_of_sample` from counts of judgments, (n_responses, n_cells, 2, n_kinds).

    The counts are those of `judged_counts`; n_kinds is 2 if there is no judgment "neither".

    Raises:
        InputError: for fewer than four responses, or settings outside their ranges.
    """
    level = open_interval(level, "level", 0, 1)
    here = _halves(counts.shape[0], n_splits, seed)
    totals, others = _sums(here, counts), _sums(1 - here, counts)
    target = _factuality(others)
    predictions = _predictions(totals, _judged(others))
    difference = predictions["sigma"] - target
    defined = ~np.isnan(difference)

    touching = (_sizes(counts) > 0).sum(axis=0)
    contributions = _contributions(counts, here, totals, others, target, defined)
    factor = np.where(touching > 2, touching / np.maximum(touching - 2, 1), np.nan)
    error = np.sqrt(factor * (contributions**2).sum(axis=0))
    mean = _mean(difference, defined)
    half = student_quantile(level, touching - 2) * error

    kinds = _by_label(counts)

    def of_resamples(weights: Floats) -> Floats:
        """Mean difference, (b, n_cells), under weights of the responses."""
        return np.stack([_mean_difference(here, each[:, None, None] * kinds) for each in weights])

    ends = np.nan_to_num(mean - half), np.nan_to_num(mean + half)
    lowest, highest = reach(of_resamples, contributions, ends)
    return Frame(
        position=positions,
        difference=mean,
        standard_error=error,
        lower=np.maximum(mean - half, lowest),
        upper=np.minimum(mean + half, highest),
        p_value=student_p_values(mean, error, np.where(touching > 2, touching - 2, np.nan)),
        n_responses=touching,
        **{
            f"rmse_{name}": _root_mean_square(predictions[name] - target, defined)
            for name in PREDICTORS
        },
        n_undefined=(~defined).sum(axis=0),
        n_splits=int(n_splits),
    )


def _halves(n_responses: int, n_splits: int, seed: int) -> Floats:
    """Indicators of the first half, (2 n_splits, n_responses), in both directions."""
    n_splits = whole_number(n_splits, "n_splits", 1)
    seed = whole_number(seed, "seed", 0)
    if n_responses < 4:
        raise InputError(
            f"there are {counted(n_responses, 'response')}; a split in halves needs at least 4"
        )
    generator = np.random.default_rng(seed)
    ranks = generator.random((n_splits, n_responses)).argsort(axis=1).argsort(axis=1)
    first = (ranks < n_responses // 2).astype(np.float64)
    return np.concatenate([first, 1 - first])


def _sums(half: Floats, counts: Floats) -> Floats:
    """Counts over the responses of each half, (n_halves, n_cells, 2, n_kinds)."""
    return np.tensordot(half, counts, axes=1)


def _sizes(counts: Floats) -> Floats:
    return np.asarray(counts.sum(axis=(-2, -1)))


def _factuality(totals: Floats) -> Floats:
    return ratio(totals[..., 0, :].sum(axis=-1), _sizes(totals))


def _predictions(totals: Floats, judged_correct: Floats) -> dict[str, Floats]:
    """Predictions from the counts of one half and the share judged correct in the other."""
    laws = laws_of(totals)
    return {
        "sigma": sigma(*laws),
        "rogan_gladen": rogan_gladen(judged_correct, *laws),
        "factuality": _factuality(totals),
    }


def _contributions(
    counts: Floats, here: Floats, totals: Floats, others: Floats, target: Floats, defined: Any
) -> Floats:
    """Linearized contribution of each response to the mean difference, (R, n_cells)."""
    known, unknown = laws_of(totals)
    slopes = sigma_slopes(known, unknown)
    supported, unsupported = np.moveaxis(counts.sum(axis=-1), -1, 0)
    right, right_no = counts[..., 0, 0], unsupported - counts[..., 1, 0]
    sizes = totals.sum(axis=-1)

    used = defined / np.maximum(defined.sum(axis=0), 1)

    def part(half: Floats, slope: Any, size: Floats, value: Floats, above: Any, below: Any) -> Any:
        """Sum over halves of the slope times (above - value below) / size."""
        weight = np.where(defined, used * slope / np.maximum(size, 1), 0.0)
        return above * (half.T @ weight) - below * (half.T @ np.where(defined, weight * value, 0.0))

    there = 1 - here
    return np.asarray(
        part(here, slopes[0], sizes[..., 0], known, right, supported)
        + part(here, slopes[1], sizes[..., 1], unknown, right_no, unsupported)
        - part(there, 1.0, _sizes(others), target, supported, supported + unsupported)
    )


def _by_label(counts: Floats) -> Floats:
    """Counts of supported claims judged correct, supported claims, unsupported claims not judged
    correct, and unsupported claims, (R, 4, n_cells)."""
    supported, unsupported = np.moveaxis(counts.sum(axis=-1), -1, 0)
    right, wrong_yes = counts[..., 0, 0], counts[..., 1, 0]
    return np.stack([right, supported, unsupported - wrong_yes, unsupported], axis=1)


def _mean_difference(here: Floats, kinds: Floats) -> Floats:
    """Mean over splits of sigma of one half minus factuality of the other, (n_cells,).

    Args:
        here: indicators of the first half, as of `_halves`.
        kinds: counts as of `_by_label`.
    """
    right, supported, right_no, unsupported = np.moveaxis(_sums(here, kinds), 1, 0)
    # The second half of the rows has each split in the other direction.
    others, others_no = (np.roll(each, len(here) // 2, axis=0) for each in (supported, unsupported))
    predicted = sigma(ratio(right, supported), ratio(right_no, unsupported))
    difference = predicted - ratio(others, others + others_no)
    return _mean(difference, ~np.isnan(difference))


def _mean(values: Floats, defined: Any) -> Floats:
    return ratio(np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0))


def _root_mean_square(errors: Floats, defined: Any) -> Floats:
    return np.sqrt(_mean(errors**2, defined & ~np.isnan(errors)))
