"""One method against another in any measure: the difference, its interval, its tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from calibration.intervals import IntervalSettings
from calibration.scores.coverage import coverage_warning
from calibration.scores.definition import JudgedClaims, ScoreDefinition
from calibration.scores.registry import scores_named
from calibration.significance.differences import jackknife_ends, score_difference
from calibration.significance.outcome import (
    Alternative,
    SignificanceStatus,
    SignificanceTest,
    reason_of,
)
from calibration.significance.paired import (
    bootstrap_difference,
    paired_difference,
    paired_t_test,
    permute_difference,
    swaps,
)
from calibration.significance.sample_tests import (
    bootstrap_scores,
    difference_statistic,
    permute_scores,
)
from calibration.validation import is_number, member_named, whole_number
from factormodels.errors import InputError

MEANS_OVER_RESPONSES = (
    *("precision", "f1_at_k", "precision_mae", "expected_precision", "entropy", "mean_surprisal"),
    *("human_precision", "supported", "contradicted", "undecided"),
)
"""Measures with one number per response, which Student's test takes."""


class PairedTest(StrEnum):
    """Which test compares a method with the reference."""

    PERMUTATION = "permutation"
    BOOTSTRAP = "bootstrap"
    T = "t"
    """FactReasoner's, on one number per response; for measures that are means over responses."""


@dataclass(frozen=True)
class Comparison:
    """One measure of a first method against a second, over the same responses; nan where undefined.

    Attributes:
        measure: the measure.
        first: its value under the first method.
        second: under the second.
        difference: the first less the second.
        lower: lower end of the difference's interval, paired by response.
        upper: its upper end.
        coverage: what such an interval covers in simulations where that is not its level, as
            `coverage_warning` gives it; else nan.
        p_value: of the paired test of no difference.
        n_resamples: how many swaps, or replicates of the bootstrap, it was counted in; 0 for
            Student's test.
        equivalence_p: of two one-sided tests that the difference is within its margin; nan where
            no margin was given.
        status: ``ok``, or why a number is missing.
        reason: the same in words; empty where nothing is missing.
    """

    measure: str
    first: float
    second: float
    difference: float
    lower: float
    upper: float
    coverage: float
    p_value: float
    n_resamples: int
    equivalence_p: float
    status: str
    reason: str


def compare_judged(
    first: JudgedClaims,
    second: JudgedClaims,
    measures: Sequence[str],
    *,
    test: str = PairedTest.PERMUTATION,
    alternative: str = Alternative.TWO_SIDED,
    margins: Mapping[str, float] | None = None,
    n_resamples: int = 10_000,
    settings: IntervalSettings | None = None,
) -> list[Comparison]:
    """One method against another in every measure; they may have judged other claims.

    Args:
        first: labelled claims under one method.
        second: under the other, of the same responses in the same order.
        measures: some of `REGISTRY`.
        test, alternative, margins, n_resamples: as in `compare_methods`.
        settings: level of the intervals, their replicates, and the seed of everything.

    Raises:
        InputError: for unknown names, or responses that differ.
    """
    chosen, kind = scores_named(measures), paired_test_named(test, measures)
    check_alternative(alternative, chosen)
    checked = _margins(margins, measures)
    settings = IntervalSettings() if settings is None else settings
    if tuple(first.grouping.responses) != tuple(second.grouping.responses):
        raise InputError("the two methods judge different responses; give the responses of both")
    n_resamples = whole_number(n_resamples, "n_resamples", 1)
    found = {
        measure.name: _difference(measure, first, second, checked.get(measure.name), settings)
        for measure in chosen
    }
    defined = [each for each in chosen if math.isfinite(found[each.name].difference)]
    p_values = _p_values(defined, first, second, kind, alternative, n_resamples, settings.seed)
    used = resamples_used(kind, len(first.grouping.responses), n_resamples)
    for name, (p_value, status) in p_values.items():
        own = found[name]
        if own.status == SignificanceStatus.OK and status != SignificanceStatus.OK:
            own = replace(own, status=status, reason=reason_of(status))
        found[name] = replace(own, p_value=p_value, n_resamples=used)
    return [found[measure.name] for measure in chosen]


def resamples_used(kind: PairedTest, n_responses: int, asked: int) -> int:
    """In how many swaps or replicates the p-values of a test are counted; 0 for Student's."""
    if kind is PairedTest.T:
        return 0
    return asked if kind is PairedTest.BOOTSTRAP else swaps(n_responses, asked)[0]


def _difference(
    measure: ScoreDefinition,
    first: JudgedClaims,
    second: JudgedClaims,
    margin: float | None,
    settings: IntervalSettings,
) -> Comparison:
    """Difference in one measure with its interval, not tested yet but for equivalence."""
    values = [measure.value(side) for side in (first, second)]
    nothing = dict.fromkeys(
        ("difference", "lower", "upper", "coverage", "p_value", "equivalence_p"), math.nan
    )
    comparison = Comparison(
        measure=measure.name, first=values[0].value, second=values[1].value, **nothing,
        n_resamples=0, status=str(SignificanceStatus.OK), reason="",
    )  # fmt: skip
    bad = next((each.status for each in values if not math.isfinite(each.value)), None)
    if bad is not None:
        return replace(comparison, status=str(bad), reason=reason_of(bad))
    comparison = replace(comparison, difference=values[0].value - values[1].value)
    n_responses = len(first.grouping.responses)
    error, interval, status = _interval(measure, first, second, comparison.difference, settings)
    comparison = replace(comparison, lower=interval[0], upper=interval[1])
    # Of different claims of each method no interval was simulated.
    if not math.isnan(interval[0]) and _same_claims(first, second):
        covers = coverage_warning(measure.name, n_responses, settings.level, difference=True)
        comparison = replace(comparison, coverage=covers)
    if status != SignificanceStatus.OK:
        comparison = replace(comparison, status=status, reason=reason_of(status))
    if margin is not None:
        p_value = equivalence_p_value(comparison.difference, error, n_responses, margin)
        comparison = replace(comparison, equivalence_p=p_value)
    return comparison


def equivalence_p_value(difference: float, error: float, n_responses: int, margin: float) -> float:
    """P-value of two one-sided tests by Student's t that a difference is within a margin.

    It is the larger of the two (Schuirmann 1987); nan for fewer than two responses. Without an
    error, of responses that all differ alike, it is 0 for no difference, and else nan.

    Args:
        difference: the first method's value less the second's.
        error: its standard error over responses.
        n_responses: number of responses.
        margin: the least difference that would matter, above 0.
    """
    if n_responses < 2:
        return math.nan
    if not error > 0:
        return 0.0 if difference == 0 else math.nan
    from scipy.special import stdtr

    return float(stdtr(n_responses - 1, (abs(difference) - margin) / error))


def _same_claims(first: JudgedClaims, second: JudgedClaims) -> bool:
    return np.array_equal(first.grouping.index, second.grouping.index) and np.array_equal(
        first.y, second.y
    )


_Interval = tuple[float, tuple[float, float], str]
"""Standard error, both ends, status."""


def _interval(
    measure: ScoreDefinition,
    first: JudgedClaims,
    second: JudgedClaims,
    difference: float,
    settings: IntervalSettings,
) -> _Interval:
    """Interval of a difference, paired by response."""
    if measure.ratio is None and _same_claims(first, second):
        found = score_difference(
            measure.name,
            first.p,
            second.p,
            first.y,
            first.grouping.index,
            folds=first.folds,
            level=settings.level,
            n_bootstrap=settings.n_bootstrap,
            seed=settings.seed,
        )
        return found.standard_error, (found.lower, found.upper), found.status
    if measure.ratio is not None:
        sums, against = measure.sums(first), measure.sums(second)
        result = bootstrap_difference(
            *(sums, against),
            n_bootstrap=settings.n_bootstrap,
            seed=settings.seed,
            level=settings.level,
        )
        error = paired_difference(sums, against)[1]
        return error, (result.lower, result.upper), str(result.status)
    n_responses = len(first.grouping.responses)
    if n_responses < 2:
        return math.nan, (math.nan, math.nan), str(SignificanceStatus.TOO_FEW)
    statistic = difference_statistic(first, second, measure.name)
    lower, upper, error = jackknife_ends(
        statistic, difference, n_responses, settings.seed, settings.level
    )
    varies = not math.isnan(lower)
    status = SignificanceStatus.OK if varies else SignificanceStatus.NO_VARIATION
    return error, (lower, upper), str(status)


def _p_values(
    measures: Sequence[ScoreDefinition],
    first: JudgedClaims,
    second: JudgedClaims,
    kind: PairedTest,
    alternative: str,
    n_resamples: int,
    seed: int,
) -> dict[str, tuple[float, str]]:
    """p-value and status of the test of every measure, all of which are defined."""
    found = {}
    for measure in measures:
        if measure.ratio is not None:
            result = _tested(measure, first, second, kind, alternative, n_resamples, seed)
            found[measure.name] = (result.p_value, str(result.status))
    others = [measure for measure in measures if measure.ratio is None]
    if not others:
        return found
    if len(first.grouping.responses) < 2:
        few = (math.nan, str(SignificanceStatus.TOO_FEW))
        return found | {measure.name: few for measure in others}
    names = [measure.name for measure in others]
    sides = [_side(alternative, measure) for measure in others]
    if kind is PairedTest.BOOTSTRAP:
        tests = bootstrap_scores(first, second, names, sides, n_bootstrap=n_resamples, seed=seed)
    else:
        tests = permute_scores(first, second, names, sides, n_permutations=n_resamples, seed=seed)
    ok = str(SignificanceStatus.OK)
    return found | {
        name: (float(p_value), ok) for name, p_value in zip(names, tests.p_values, strict=True)
    }


def _tested(
    measure: ScoreDefinition,
    first: JudgedClaims,
    second: JudgedClaims,
    kind: PairedTest,
    alternative: str,
    n_resamples: int,
    seed: int,
) -> SignificanceTest:
    side = _side(alternative, measure)
    sums, against = measure.sums(first), measure.sums(second)
    if kind is PairedTest.T:
        own = [(part.numerator / part.denominator)[:, 0] for part in (sums, against)]
        return paired_t_test(own[0], own[1], alternative=side)
    if kind is PairedTest.BOOTSTRAP:
        return bootstrap_difference(
            sums, against, alternative=side, n_bootstrap=n_resamples, seed=seed
        )
    return permute_difference(
        sums, against, alternative=side, n_permutations=n_resamples, seed=seed
    )


def _side(alternative: str, measure: ScoreDefinition) -> Alternative:
    if alternative == Alternative.TWO_SIDED:
        return Alternative.TWO_SIDED
    return Alternative.GREATER if measure.higher_is_better else Alternative.LESS


def check_alternative(alternative: str, measures: Sequence[ScoreDefinition]) -> None:
    """Check that every measure has the alternative, ``two-sided`` or ``better``.

    Raises:
        InputError: for another one, or a measure of which neither way is better.
    """
    if alternative not in (Alternative.TWO_SIDED, "better"):
        raise InputError(f"alternative is {alternative!r}; choose 'two-sided' or 'better'")
    neither = [measure.name for measure in measures if measure.higher_is_better is None]
    if alternative == "better" and neither:
        raise InputError(
            f"alternative is 'better', but neither way is for {', '.join(neither)}; choose "
            "'two-sided', or leave them out"
        )


def _margins(margins: Mapping[str, float] | None, measures: Sequence[str]) -> dict[str, float]:
    checked = {}
    for name, margin in (margins or {}).items():
        if name not in measures:
            raise InputError(
                f"margins has {name!r}, which is not compared; choose some of {', '.join(measures)}"
            )
        if not is_number(margin) or not 0 < margin < math.inf:
            raise InputError(
                f"margins[{name!r}] is {margin!r}; give the least difference that would matter, a "
                "number above 0"
            )
        checked[name] = float(margin)
    return checked


def paired_test_named(test: str, measures: Sequence[str]) -> PairedTest:
    """Paired test of a name.

    Raises:
        InputError: if there is none, or it does not take one of the measures.
    """
    kind = member_named(PairedTest, test, "test")
    pooled = [name for name in measures if name not in MEANS_OVER_RESPONSES]
    if kind is PairedTest.T and pooled:
        raise InputError(
            f"test is 't', but {', '.join(pooled)} are pooled over claims; choose 'permutation' or "
            f"'bootstrap', or measures among {', '.join(MEANS_OVER_RESPONSES)}"
        )
    return kind
