"""How well sigma predicts the factuality of other responses.

Half of the responses give SK and SU, the other half the factuality, in many splits and both ways.
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
from calibration.tabular import Frame
from calibration.validation import Floats, open_interval, whole_number
from factormodels.errors import InputError
from factormodels.io.claim_records import ClaimRecord, Setting, setting_named
from factormodels.nouns import counted

PREDICTORS = ("sigma", "rogan_gladen", "factuality")
"""What predicts the factuality of the other half: sigma; Rogan and Gladen's estimate, from the law
of judgements here and the judgements there; the factuality here."""

RIVALS = (("sigma", "factuality"),)
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
        predicted, target = _predictions(totals, _judged(others)), _factuality(others)
        defined = ~np.isnan(predicted["sigma"] - target)
        square = {name: _root_mean_square(predicted[name] - target, defined) for name in PREDICTORS}
        return np.stack(
            [*square.values(), *(square[predictor] - square[rival] for predictor, rival in RIVALS)]
        )

    names = [
        *(f"rmse_{name}" for name in PREDICTORS),
        *(f"{predictor}_less_{rival}" for predictor, rival in RIVALS),
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


def _with_ends(
    positions: tuple[str, ...], names: list[str], values: Floats, lower: Floats, upper: Floats
) -> Frame:
    """Errors whose arrays have a row per name, with their ends."""
    columns: dict[str, Floats] = {}
    for row, name in enumerate(names):
        columns |= {name: values[row], f"{name}_lower": lower[row]}
        columns[f"{name}_upper"] = upper[row]
    return Frame(position=positions, **columns)


def _judged(totals: Floats) -> Floats:
    """Share judged correct among the claims of counts."""
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
    next to that of an estimate that uses the judgements of the other half.

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


def _predictions(totals: Floats, judged_correct: Floats) -> dict[str, Floats]:
    """Each prediction from the counts here and the share judged correct there."""
    laws = laws_of(totals)
    return {
        "sigma": sigma(*laws),
        "rogan_gladen": rogan_gladen(judged_correct, *laws),
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
