"""Tests of the claims of the Self-Known paper, each with a reference, a statistic and a verdict.

A claim of a direction holds if the interval over responses lies on its side of the null value, and
is rejected if it lies on the other. A claim of equality holds within a margin if the interval lies
inside the margin, and is rejected if the interval lies outside it; an interval across the end of
the margin decides nothing. Claims about the derivation are decided by algebra.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from calibration.intervals import (
    Estimand,
    Estimates,
    IntervalSettings,
    PairedDifference,
    RatioSums,
    Scale,
    Smooth,
    estimate_all,
    wilson_interval,
)
from calibration.self_knowledge.claims import (
    IRRELEVANT,
    SUPPORTED,
    UNSUPPORTED,
    Average,
    Claims,
    Neither,
    as_claims,
)
from calibration.self_knowledge.formula import sigma
from calibration.self_knowledge.positions import DEFAULT_INTERVALS, N_POSITIONS
from calibration.self_knowledge.prediction import out_of_sample
from calibration.self_knowledge.quantities import flip_estimands, judgment_estimands, shares
from calibration.validation import Floats
from factormodels.io.claim_records import ClaimRecord, Setting, setting_named

MARGIN = 0.05
"""Difference of shares that counts as equal, where the paper says equal, similar or almost none."""

_FEWEST_CELLS = 3
"""Minimum number of cells of positions for a correlation over cells."""

_STEP = 1e-5
"""Step of derivatives of statistics in their ratios; errors are about its square."""


class ClaimVerdict(StrEnum):
    """Outcome of a test of a claim."""

    HOLDS = "holds"
    REJECTED = "rejected"
    UNDECIDED = "undecided"
    """The interval lies on both sides."""
    FALSE = "false by algebra"
    """No data can make it true."""
    NOT_TESTABLE = "not testable"


class Expects(StrEnum):
    """Side of the null value on which a claim expects a statistic."""

    ABOVE = "above"
    BELOW = "below"
    NEAR = "near"
    FAR = "far"


@dataclass(frozen=True)
class PaperClaim:
    """A claim of the paper, tested.

    Attributes:
        statement: the claim.
        section: section, equation or figure of the paper.
        test: the statistic, and the value that the claim expects.
        estimate: the statistic; nan if it is not defined.
        lower: lower end of its interval over responses; nan without one.
        upper: upper end.
        n_responses: number of responses that contribute to it.
        verdict: outcome.
        why: reason why it is not testable, or false; empty if the interval decides.
    """

    statement: str
    section: str
    test: str
    estimate: float
    lower: float
    upper: float
    n_responses: int
    verdict: ClaimVerdict
    why: str = ""


@dataclass(frozen=True)
class _Asked:
    """A claim with its statistic, before intervals.

    Attributes:
        statement: the claim.
        section: section, equation or figure of the paper.
        test: the statistic, and the value that the claim expects.
        expects: side of `null` on which the claim expects the statistic.
        statistic: the statistic, in one cell, or the reason why there is none.
        null: value that the statistic is compared with.
    """

    statement: str
    section: str
    test: str
    expects: Expects
    statistic: Estimand | str
    null: float = 0.0


def paper_claims(
    records: Claims | Iterable[ClaimRecord],
    setting: str = Setting.NONE_OF_THE_ABOVE,
    *,
    n_positions: int = N_POSITIONS,
    neither: str = Neither.INCORRECT,
    has_positions: bool = True,
    n_splits: int = 200,
    intervals: IntervalSettings = DEFAULT_INTERVALS,
) -> list[PaperClaim]:
    """Test each claim of the paper that labeled and judged claims can test.

    Args:
        records: the claims.
        setting: setting in which the model was asked, for claims about SK, SU and sigma.
        n_positions: number of bins of positions, over which SK and SU are correlated with F.
        neither: treatment of the judgment "neither", as in `self_knowledge`.
        has_positions: whether the sentences of the claims are known.
        n_splits: number of splits in halves for the prediction out of sample.
        intervals: settings of the intervals over responses.

    Returns:
        The claims in the order of the paper. Intervals hold for each claim by itself.

    Raises:
        InputError: for no records, no judgment in the setting, or unknown settings.
    """
    claims, chosen = as_claims(records), setting_named(setting)
    asked = [
        *_of_positions(claims, has_positions=has_positions),
        *_of_settings(claims, neither),
        *_of_flips(claims, neither, has_positions=has_positions),
        *_of_judgments(claims, chosen, n_positions, neither, has_positions=has_positions),
    ]
    statistics = [each.statistic for each in asked if isinstance(each.statistic, Estimand)]
    estimated = iter(estimate_all(statistics, intervals))
    rows = []
    for each in asked:
        if isinstance(each.statistic, str):
            rows.append(_untestable(each))
            continue
        value = next(estimated)
        rows.append(_decided(each, _ends(value), int(value.n_responses[0])))
    return [*rows, *_of_formula(claims, chosen, neither, n_splits, intervals)]


def verdict_of(
    expects: Expects, null: float, estimate: float, lower: float, upper: float
) -> ClaimVerdict:
    """Return the verdict of an interval on a claim.

    Args:
        expects: side of the null value that the claim names.
        null: the null value.
        estimate: the statistic.
        lower: lower end of its interval.
        upper: upper end.
    """
    if math.isnan(lower) or math.isnan(upper) or math.isnan(estimate):
        return ClaimVerdict.UNDECIDED
    above, below = lower > null, upper < null
    inside = null - MARGIN <= lower and upper <= null + MARGIN
    outside = lower > null + MARGIN or upper < null - MARGIN
    holds, rejected = {
        Expects.ABOVE: (above, below),
        Expects.BELOW: (below, above),
        Expects.NEAR: (inside, outside),
        Expects.FAR: (above or below, inside and not (above or below)),
    }[expects]
    if holds:
        return ClaimVerdict.HOLDS
    return ClaimVerdict.REJECTED if rejected else ClaimVerdict.UNDECIDED


def _decided(asked: _Asked, ends: tuple[float, float, float], n_responses: int) -> PaperClaim:
    verdict = verdict_of(asked.expects, asked.null, *ends)
    return PaperClaim(asked.statement, asked.section, asked.test, *ends, n_responses, verdict)


def _untestable(asked: _Asked) -> PaperClaim:
    nothing = (math.nan,) * 3
    why = str(asked.statistic)
    verdict = ClaimVerdict.NOT_TESTABLE
    return PaperClaim(asked.statement, asked.section, asked.test, *nothing, 0, verdict, why)


# --- Statistics -------------------------------------------------------------------------------


def _overall(claims: Claims, numerator: Floats, denominator: Floats) -> RatioSums:
    """Ratio of sums over all claims, in one cell."""
    sums = shares(claims, numerator, denominator, 1, Average.CLAIM)
    return RatioSums(sums.numerator[:, -1:], sums.denominator[:, -1:])


def _cell(sums: Estimand, at: int = -1) -> RatioSums:
    """Return one cell of a ratio."""
    if not isinstance(sums, RatioSums):
        raise TypeError(f"{sums.name} is not a ratio")
    chosen = slice(at, None) if at == -1 else slice(at, at + 1)
    return RatioSums(sums.numerator[:, chosen], sums.denominator[:, chosen], sums.name)


def _slopes(value: Callable[..., Floats]) -> Callable[..., tuple[Floats, ...]]:
    """Return the partial derivatives of a function of ratios, by central differences."""

    def derivatives(*values: Floats) -> tuple[Floats, ...]:
        moved = []
        for at, each in enumerate(values):
            ends = []
            for sign in (1, -1):
                shifted = [*values]
                shifted[at] = each + sign * _STEP
                ends.append(value(*shifted))
            moved.append((ends[0] - ends[1]) / (2 * _STEP))
        return tuple(moved)

    return derivatives


def _smooth(name: str, parts: Sequence[RatioSums], value: Callable[..., Floats]) -> Smooth:
    return Smooth(name, tuple(parts), value, _slopes(value), Scale.NUMBER)


def _trend(
    responses: np.ndarray, n_responses: int, x: Floats, y: Floats, kept: np.ndarray
) -> Estimand:
    """Slope of the least-squares line of y on x over the kept items: the change from 0 to 1."""
    index, x, y = responses[kept], x[kept], y[kept]

    def summed(values: Floats) -> Floats:
        sums = np.bincount(index, values, minlength=n_responses)
        return np.asarray(sums, np.float64)[:, np.newaxis]

    ones = summed(np.ones_like(x))
    parts = [RatioSums(summed(values), ones) for values in (x, y, x * y, x * x)]

    def slope(mean_x: Floats, mean_y: Floats, mean_xy: Floats, mean_xx: Floats) -> Floats:
        variance = mean_xx - mean_x**2
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(variance > 0, (mean_xy - mean_x * mean_y) / variance, np.nan)

    return _smooth("trend", parts, slope)


def _trend_of_claims(claims: Claims, values: Floats, kept: np.ndarray) -> Estimand:
    return _trend(claims.grouping.index, claims.n_responses, _position(claims), values, kept)


def _position(claims: Claims) -> Floats:
    """Relative position of the sentence of each claim."""
    return (claims.sentence_index / claims.sentence_total)[claims.sentence]


def _correlation(first: Sequence[RatioSums], second: Sequence[RatioSums]) -> Estimand:
    """Pearson's correlation of two shares over cells."""
    n = len(first)

    def correlation(*values: Floats) -> Floats:
        x, y = np.stack(values[:n]), np.stack(values[n:])
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        spread = np.sqrt((x * x).sum(axis=0) * (y * y).sum(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(spread > 0, (x * y).sum(axis=0) / spread, np.nan)

    return _smooth("correlation", (*first, *second), correlation)


# --- Claims -----------------------------------------------------------------------------------

_NO_POSITIONS = "the sentences of claims are not known"
_BOTH_SETTINGS = "the model was not asked in both settings"


def _of_positions(claims: Claims, *, has_positions: bool) -> list[_Asked]:
    """Claims about labels by position (section 2.1)."""
    relevant = claims.label != IRRELEVANT
    supported = (claims.label == SUPPORTED).astype(np.float64)
    unsupported = (claims.label == UNSUPPORTED).astype(np.float64)
    counts = np.bincount(claims.sentence, unsupported, minlength=claims.sentence_response.size)
    number = np.asarray(counts, np.float64)
    position = claims.sentence_index / claims.sentence_total
    every = np.ones(len(number), dtype=np.bool_)
    return [
        _Asked(
            "factuality is lower in later sentences",
            "abstract; 2.1; 5.2.2",
            "slope of truth < 0",
            Expects.BELOW,
            _trend_of_claims(claims, supported, relevant) if has_positions else _NO_POSITIONS,
        ),
        _Asked(
            "later sentences have more unsupported claims",
            "abstract; 2.1; 5.2.2",
            "slope of unsupported claims > 0",
            Expects.ABOVE,
            _trend(claims.sentence_response, claims.n_responses, position, number, every)
            if has_positions
            else _NO_POSITIONS,
        ),
    ]


def _known_and_unknown(
    claims: Claims, setting: Setting, neither: str
) -> tuple[RatioSums, RatioSums] | None:
    """SK and SU in a setting; None if the model was not asked in it."""
    correct, present = claims.judged_correct(setting, neither)
    supported = (present & (claims.label == SUPPORTED)).astype(np.float64)
    unsupported = (present & (claims.label == UNSUPPORTED)).astype(np.float64)
    if not supported.any() or not unsupported.any():
        return None
    return (
        _overall(claims, supported * correct, supported),
        _overall(claims, unsupported * (1 - correct), unsupported),
    )


def _of_settings(claims: Claims, neither: str) -> list[_Asked]:
    """Claims about the three settings (section 3)."""
    direct, question, none_of = (
        _known_and_unknown(claims, setting, neither)
        for setting in (
            Setting.DIRECT_ASKING,
            Setting.QUESTION_ANSWERING,
            Setting.NONE_OF_THE_ABOVE,
        )
    )
    rows = []
    for at, name in enumerate(("SK", "SU")):
        similar: Estimand | str = _BOTH_SETTINGS
        if direct is not None and question is not None:
            similar = PairedDifference(direct[at], question[at])
        differs: Estimand | str = _BOTH_SETTINGS
        if question is not None and none_of is not None:
            differs = PairedDifference(question[at], none_of[at])
        rows += [
            _Asked(
                f"{name} is similar in settings (a) and (b)",
                "3, figure 2",
                f"{name} (b) - {name} (a) near 0",
                Expects.NEAR,
                similar,
            ),
            _Asked(
                f"{name} differs between settings (b) and (c)",
                "3, figure 2",
                f"{name} (c) - {name} (b) not 0",
                Expects.FAR,
                differs,
            ),
        ]
    return rows


def _of_flips(claims: Claims, neither: str, *, has_positions: bool) -> list[_Asked]:
    """Claims about flips from setting (b) to setting (c) (section 3, figure 2d)."""
    before, after = Setting.QUESTION_ANSWERING, Setting.NONE_OF_THE_ABOVE
    correct_before, present_before = claims.judged_correct(before, neither)
    correct_after, present_after = claims.judged_correct(after, neither)
    both = present_before & present_after
    kinds = [both & (claims.label == code) for code in (SUPPORTED, UNSUPPORTED)]
    known = all(kind.any() for kind in kinds)
    more: Estimand | str = _BOTH_SETTINGS
    hardly: Estimand | str = _BOTH_SETTINGS
    rising: Estimand | str = _BOTH_SETTINGS
    if known:
        estimands = flip_estimands(claims, before, after, 1, Average.CLAIM, neither, False)
        supported, unsupported = map(_cell, estimands)
        more, hardly = PairedDifference(unsupported, supported), unsupported
        flipped = ((correct_before == 1) & (correct_after == 0)).astype(np.float64)
        rising = _trend_of_claims(claims, flipped, kinds[0]) if has_positions else _NO_POSITIONS
    section = "3, figure 2"
    return [
        _Asked(
            "supported claims flip more often than unsupported ones",
            *(section, "flips, supported - unsupported > 0"),
            Expects.ABOVE,
            more,
        ),
        _Asked(
            "unsupported claims hardly flip",
            *(section, f"flips of unsupported claims < {MARGIN:g}"),
            Expects.BELOW,
            hardly,
            MARGIN,
        ),
        _Asked(
            "supported claims flip more often in later sentences",
            *(section, "slope of flips > 0"),
            Expects.ABOVE,
            rising,
        ),
    ]


def _of_judgments(
    claims: Claims, setting: Setting, n_positions: int, neither: str, *, has_positions: bool
) -> list[_Asked]:
    """Claims about SK and SU (abstract, sections 3 and 5.2.2)."""
    factuality, _, known, unknown, *_ = judgment_estimands(
        claims, setting, n_positions, Average.CLAIM, neither
    )
    correct, present = claims.judged_correct(setting, neither)
    laws = _known_and_unknown(claims, setting, neither)
    missing = "no supported or no unsupported claim was judged"
    if laws is None:
        self_known: Estimand | str = missing
        self_unknown: Estimand | str = missing
    else:
        self_known, self_unknown = (
            RatioSums(each.numerator, each.denominator, scale=Scale.PROBABILITY) for each in laws
        )
    cells = [at for at in range(n_positions) if _defined((known, unknown), at)]
    with_known: Estimand | str = _NO_POSITIONS
    with_unknown: Estimand | str = _NO_POSITIONS
    if has_positions:
        with_known = with_unknown = (
            f"fewer than {_FEWEST_CELLS} positions have both kinds of claims"
        )
        if len(cells) >= _FEWEST_CELLS:
            true = [_cell(factuality, at) for at in cells]
            false = [
                RatioSums(each.denominator - each.numerator, each.denominator) for each in true
            ]
            with_known = _correlation([_cell(known, at) for at in cells], true)
            with_unknown = _correlation([_cell(unknown, at) for at in cells], false)
    rows = [
        _Asked(
            "SK is below 1: models judge true claims false",
            *("abstract; 1", "SK < 1"),
            Expects.BELOW,
            self_known,
            1.0,
        ),
        _Asked(
            "SU is above 0",
            *("abstract; 1", "SU > 0"),
            Expects.ABOVE,
            self_unknown,
        ),
        _Asked(
            "a higher SK goes with a higher factuality",
            *("abstract; 4; 5.2.2", "correlation of SK and F > 0"),
            Expects.ABOVE,
            with_known,
        ),
        _Asked(
            "a higher SU goes with a lower factuality",
            *("abstract; 4; 5.2.2", "correlation of SU and 1 - F > 0"),
            Expects.ABOVE,
            with_unknown,
        ),
    ]
    for name, code, judged in (
        ("SK", SUPPORTED, correct),
        ("SU", UNSUPPORTED, 1 - correct),
    ):
        kept = present & (claims.label == code)
        trend: Estimand | str = _NO_POSITIONS if has_positions is False else missing
        if has_positions and kept.any():
            trend = _trend_of_claims(claims, judged, kept)
        rows.append(
            _Asked(
                f"{name} is much the same at all positions",
                "abstract; 5.2.2",
                f"slope of {name} near 0",
                Expects.NEAR,
                trend,
            )
        )
    return rows


def _defined(estimands: Sequence[Estimand], at: int) -> bool:
    """Return whether all ratios have claims in a cell."""
    return all(not math.isnan(float(each.estimate()[at])) for each in estimands)


def _of_formula(
    claims: Claims, setting: Setting, neither: str, n_splits: int, intervals: IntervalSettings
) -> list[PaperClaim]:
    """Claims about equation 3 and its derivation (section 4, section 5.2.2)."""
    correct, present = claims.judged_correct(setting, neither)
    judged = (present & (claims.label != IRRELEVANT)).astype(np.float64)
    true = _overall(claims, judged * (claims.label == SUPPORTED), judged)
    share = _overall(claims, judged * correct, judged)
    premise, factuality = estimate_all([PairedDifference(true, share), true], intervals)
    n_responses = int(premise.n_responses[0])
    equal = _Asked(
        "the share judged correct is the factuality, P(d=1|y) = σ",
        "4, equation 1",
        "q - F near 0",
        Expects.NEAR,
        _UNJUDGED,
    )
    estimates = _Asked(
        "σ is the factuality",
        "4, equation 3",
        "σ here - F there near 0",
        Expects.NEAR,
        _TOO_FEW if judged.any() else _UNJUDGED,
    )
    tested = _decided(equal, _ends(premise), n_responses) if judged.any() else _untestable(equal)
    rows = [tested]
    rows.append(
        PaperClaim(
            "P(y), P(y correct) and P(y wrong) are alike",
            "4, equation 2",
            "F and 1 - F near 1",
            *(*_ends(factuality), n_responses),
            ClaimVerdict.FALSE,
            "the two add up to 1 and cannot both be near 1",
        )
    )
    if judged.any() and claims.n_responses >= _FEWEST_TO_SPLIT:
        split = out_of_sample(
            claims,
            setting,
            n_positions=1,
            neither=neither,
            n_splits=n_splits,
            seed=intervals.seed,
            level=intervals.level,
        ).rows()[-1]
        gap = float(split["difference"]), float(split["lower"]), float(split["upper"])
        rows.append(_decided(estimates, gap, n_responses))
    else:
        rows.append(_untestable(estimates))
    laws = _known_and_unknown(claims, setting, neither)
    unknown = 0.0 if laws is None else float(laws[1].estimate()[0])
    rows.append(
        PaperClaim(
            "SK = 1 and SU = 0 are necessary for a factuality of 1",
            "5.2.2",
            f"σ by equation 3 at SK = 1, SU = {unknown:.3f}",
            *(float(sigma(1.0, unknown)), math.nan, math.nan, n_responses),
            ClaimVerdict.FALSE,
            "equation 3 gives 1 for SK = 1 and any SU below 1",
        )
    )
    return rows


def _ends(estimates: Estimates) -> tuple[float, float, float]:
    """Estimate and interval of the only cell.

    If a difference is 0 in all n responses, resampling does not show its spread. The interval is
    then Wilson's upper bound on the share of responses that differ, 0 of n, each by at most 1.
    """
    value, lower, upper = (
        float(each[0]) for each in (estimates.estimate, estimates.lower, estimates.upper)
    )
    if value == 0.0 and math.isnan(lower) and estimates.standard_error[0] == 0.0:
        _, ends = wilson_interval(np.zeros(1), estimates.n_responses[:1], estimates.level)
        return value, -float(ends[0]), float(ends[0])
    return value, lower, upper


_FEWEST_TO_SPLIT = 4
_TOO_FEW = "there are fewer than four responses"
_UNJUDGED = "no labeled claim was judged"
