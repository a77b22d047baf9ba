"""How well sigma predicts factuality: on other responses, and where the factuality shifts.

Half of the responses give SK and SU, the other half the factuality, in many splits and both ways.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.intervals import (
    IntervalSettings,
    jackknife,
    percentile_interval,
    reach,
    redrawn_interval,
    student_quantile,
)
from calibration.self_knowledge.balance import judged_counts, laws_of, ratio
from calibration.self_knowledge.claims import Claims, Neither, as_claims, position_names
from calibration.self_knowledge.formula import emq, rogan_gladen, sigma, sigma_slopes
from calibration.self_knowledge.positions import DEFAULT_INTERVALS, N_POSITIONS, OVERALL
from calibration.tabular import Frame
from calibration.validation import Floats, open_interval, probability_array, whole_number
from factormodels.errors import InputError
from factormodels.io.claim_records import ClaimRecord, Setting, setting_named
from factormodels.nouns import counted

PREDICTORS = ("sigma", "rogan_gladen", "emq", "factuality")
"""What predicts the factuality of the other half: sigma; Rogan and Gladen's estimate and EMQ, from
the law of judgements here and the judgements there; the factuality here."""


RIVALS = (("sigma", "factuality"), ("emq", "factuality"), ("sigma", "emq"))
"""Pairs of predictors whose errors are compared: the first less the second."""


def prediction_errors(
    counts: Floats,
    positions: tuple[str, ...] = (OVERALL,),
    *,
    n_splits: int = 200,
    seed: int = 0,
    level: float = 0.95,
) -> Frame:
    """Root mean square errors of `out_of_sample_counts` with intervals, and their differences.

    A row per position: rmse_PREDICTOR, and FIRST_less_SECOND of `RIVALS`, each with the ends of its
    interval as NAME_lower and NAME_upper. Intervals are of the jackknife over responses, with
    Student's t with R - 2 degrees.

    Args:
        counts: as there.
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
        found, target = _predictions(totals, _judged(others)), _factuality(others)
        defined = ~np.isnan(found["sigma"] - target)
        square = {name: _root_mean_square(found[name] - target, defined) for name in PREDICTORS}
        return np.stack([*square.values(), *(square[one] - square[two] for one, two in RIVALS)])

    names = [
        *(f"rmse_{name}" for name in PREDICTORS),
        *(f"{one}_less_{two}" for one, two in RIVALS),
    ]
    values = errors(np.ones(n_responses))
    error, _, _ = jackknife(
        lambda weights: np.stack([errors(each).reshape(-1) for each in weights]),
        *(values.reshape(-1), n_responses, 0),
    )
    half = (student_quantile(level, n_responses - 2) * error).reshape(values.shape)
    lower, upper = values - half, values + half
    # No root mean square is negative.
    lower[: len(PREDICTORS)] = np.maximum(lower[: len(PREDICTORS)], 0.0)
    return _with_ends(positions, names, values, lower, upper)


def transfer_errors(
    here: Floats,
    there: Floats,
    position: str = OVERALL,
    *,
    intervals: IntervalSettings = DEFAULT_INTERVALS,
) -> Frame:
    """Errors of predictions of one factuality from the labels of other claims, one row.

    Sigma and the factuality are those here; Rogan-Gladen and EMQ take the law of judgements here
    and the judgements there. Columns are those of `PREDICTORS`, of each prediction less the
    factuality there, and `target`, that factuality, each with its ends as in `prediction_errors`.

    Args:
        here: counts (n_responses, 2, n_kinds) of labelled claims, as `judged_counts` makes them.
        there: counts of the claims to predict for, of the same responses in the same order; those
            of a response that is not there, or not here, are 0.
        position: what the cell is called.
        intervals: replicates, seed and level; the intervals are percentiles, over responses.
    """

    def errors(weights: Floats) -> Floats:
        totals, others = (np.tensordot(weights, counts, axes=1) for counts in (here, there))
        target = _factuality(others)
        found = _predictions(totals, _judged(others))
        return np.stack([target, *(found[name] - target for name in PREDICTORS)], axis=-1)

    values = errors(np.ones((1, here.shape[0])))
    lower, upper = redrawn_interval(errors, here.shape[0], intervals)
    names = ["target", *PREDICTORS]
    return _with_ends((position,), names, values.T, lower[:, None], upper[:, None])


def _with_ends(
    positions: tuple[str, ...], names: list[str], values: Floats, lower: Floats, upper: Floats
) -> Frame:
    """Errors whose arrays have a row per name, with their ends."""
    columns: dict[str, Floats] = {}
    for place, name in enumerate(names):
        columns |= {name: values[place], f"{name}_lower": lower[place]}
        columns[f"{name}_upper"] = upper[place]
    return Frame(position=positions, **columns)


def _judged(totals: Floats) -> Floats:
    """Share of each kind of judgement among the claims of counts, (..., n_kinds)."""
    return ratio(totals.sum(axis=-2), _sizes(totals)[..., None])


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
    """How sigma of half of the responses compares to the factuality of the other half.

    Columns, a row per position and last overall: difference, mean over splits of sigma here less
    the factuality there; standard_error of that mean, clustered by response; lower and upper, ends
    of its interval by Student's t with R - 2 degrees, cut where no resample of the responses
    reaches; p_value, of the test that the mean is 0, two-sided; n_responses with claims;
    rmse_PREDICTOR, root mean square error of each prediction of the factuality there; n_undefined,
    number of the 2 n_splits predictions in which sigma or the factuality is not defined, which are
    left out; n_splits, each used both ways.

    The mean difference over splits is tested with the linearised contributions of the responses,
    averaged over the same splits: more splits make it steadier and do not make it look surer than
    the responses allow. Its hypothesis is that of `in_sample_balance`, that false positives and
    false negatives are equally frequent; what only this can tell is the error of the prediction,
    next to that of estimates that use the judgements of the other half.

    Args:
        records: the claims of at least four responses.
        setting: how the model was asked.
        n_positions: number of bins.
        neither: what the judgement "neither" counts as, as in `self_knowledge`.
        n_splits: number of splits in two halves, each used both ways.
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
    """`out_of_sample` from counts (n_responses, n_cells, 2, n_kinds) of judgements.

    The counts are those of `judged_counts`; n_kinds is 2 where there is no third judgement.

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

    def of_resamples(weights: Floats) -> Floats:
        """The mean difference, (b, n_cells), where each response counts so many times."""
        return np.stack([_mean_difference(here, each[:, None, None, None] * counts)
                         for each in weights])  # fmt: skip

    ends = np.nan_to_num(mean - half), np.nan_to_num(mean + half)
    lowest, highest = reach(of_resamples, contributions, ends)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.abs(mean / error)
    from scipy.special import stdtr

    return Frame(
        position=positions,
        difference=mean,
        standard_error=error,
        lower=np.maximum(mean - half, lowest),
        upper=np.minimum(mean + half, highest),
        p_value=2 * stdtr(np.where(touching > 2, touching - 2, np.nan), -statistic),
        n_responses=touching,
        **{
            f"rmse_{name}": _root_mean_square(predictions[name] - target, defined)
            for name in PREDICTORS
        },
        n_undefined=(~defined).sum(axis=0),
        n_splits=int(n_splits),
    )


def label_shift(
    records: Claims | Iterable[ClaimRecord],
    setting: str = Setting.NONE_OF_THE_ABOVE,
    *,
    prevalences: ArrayLike | None = None,
    neither: str = Neither.INCORRECT,
    n_splits: int = 200,
    seed: int = 0,
    level: float = 0.95,
) -> Frame:
    """Predictions of the factuality of the other half, reweighted to given ones.

    Columns, a row per predictor and prevalence: mean, over splits, of the prediction; lower and
    upper, ends of the middle `level` of the predictions over splits, their spread and no interval
    of their mean; root_mean_square_error, against the prevalence.

    Supported claims of the other half are weighted up or down so that the factuality becomes each
    of `prevalences`; the law of judgements given truth stays, as in a subject that the model knows
    better or worse but judges alike. Sigma rests on that law alone: it stays where it is, while
    estimates that use the judgements follow.

    Args:
        records: the claims of at least four responses.
        setting: how the model was asked.
        prevalences: factualities in [0, 1]; None for 0.05, 0.10, ..., 0.95.
        neither: what the judgement "neither" counts as, as in `self_knowledge`.
        n_splits: number of splits in two halves, each used both ways.
        seed: seed of the splits.
        level: share of the predictions within the spread that is reported.

    Raises:
        InputError: for too few records or responses, a prevalence outside [0, 1], or unknown
            settings.
    """
    level = open_interval(level, "level", 0, 1)
    grid = np.linspace(0.05, 0.95, 19) if prevalences is None else prevalences
    prevalence = probability_array(grid, "prevalences")
    counts = judged_counts(as_claims(records), setting_named(setting), 1, neither)[:, -1:]
    here = _halves(counts.shape[0], n_splits, seed)
    law = _conditional(_sums(1 - here, counts))
    share = prevalence[:, np.newaxis]
    shifted = share * law[..., 0, :] + (1 - share) * law[..., 1, :]
    predictions = _predictions(_sums(here, counts), shifted)
    found = []
    for name in PREDICTORS:
        drawn = np.broadcast_to(predictions[name], (here.shape[0], prevalence.size))
        defined = ~np.isnan(drawn)
        errors = _root_mean_square(drawn - prevalence, defined)
        found.append((_mean(drawn, defined), *percentile_interval(drawn, level), errors))
    mean, lower, upper, errors = (np.concatenate(each) for each in zip(*found, strict=True))
    return Frame(
        predictor=np.repeat(PREDICTORS, prevalence.size),
        prevalence=np.tile(prevalence, len(PREDICTORS)),
        mean=mean,
        lower=lower,
        upper=upper,
        root_mean_square_error=errors,
    )


def _halves(n_responses: int, n_splits: int, seed: int) -> Floats:
    """Which responses are in the first half, (2 n_splits, n_responses), both ways."""
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


def _conditional(totals: Floats) -> Floats:
    """Law of judgements on supported and on unsupported claims, (..., 2, n_kinds)."""
    return ratio(totals, totals.sum(axis=-1, keepdims=True))


def _predictions(totals: Floats, judged: Floats) -> dict[str, Floats]:
    """Each prediction from the counts here and the shares of judgements there."""
    laws, conditional = laws_of(totals), _conditional(totals)
    return {
        "sigma": sigma(*laws),
        "rogan_gladen": rogan_gladen(judged[..., 0], *laws),
        "emq": emq(conditional[..., 0, :], conditional[..., 1, :], judged),
        "factuality": _factuality(totals),
    }


def _contributions(
    counts: Floats, here: Floats, totals: Floats, others: Floats, target: Floats, defined: Any
) -> Floats:
    """Linearised contribution of each response to the mean difference, (R, n_cells)."""
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


def _mean_difference(here: Floats, counts: Floats) -> Floats:
    """Mean over splits of sigma here less the factuality there, (n_cells,)."""
    known, unknown = laws_of(_sums(here, counts))
    difference = sigma(known, unknown) - _factuality(_sums(1 - here, counts))
    return _mean(difference, ~np.isnan(difference))


def _mean(values: Floats, defined: Any) -> Floats:
    return ratio(np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0))


def _root_mean_square(errors: Floats, defined: Any) -> Floats:
    return np.sqrt(_mean(errors**2, defined & ~np.isnan(errors)))
