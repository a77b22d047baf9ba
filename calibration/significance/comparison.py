"""One method against another in any measure: the difference, its interval, its tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from calibration.intervals import IntervalSettings
from calibration.scores.definition import JudgedClaims, ScoreDefinition
from calibration.scores.registry import scores_named
from calibration.significance.differences import ScoreDifference, difference_of
from calibration.significance.outcome import Alternative, SignificanceStatus, SignificanceTest
from calibration.significance.paired import (
    bootstrap_difference,
    paired_t_test,
    permute_difference,
    swaps,
)
from calibration.significance.sample_tests import (
    bootstrap_scores,
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
) -> list[ScoreDifference]:
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
    found = {}
    for measure in chosen:
        own = difference_of(measure, first, second, settings)
        if (margin := checked.get(measure.name)) is not None:
            numbers = own.difference, own.standard_error, own.n_responses
            own = replace(own, equivalence_p=equivalence_p_value(*numbers, margin))
        found[measure.name] = own
    defined = [each for each in chosen if math.isfinite(found[each.name].difference)]
    p_values = _p_values(defined, first, second, kind, alternative, n_resamples, settings.seed)
    used = resamples_used(kind, len(first.grouping.responses), n_resamples)
    for name, (p_value, status) in p_values.items():
        own = found[name]
        if own.status == SignificanceStatus.OK and status != SignificanceStatus.OK:
            own = replace(own, status=status)
        found[name] = replace(own, p_value=p_value, n_resamples=used)
    return [found[measure.name] for measure in chosen]


def resamples_used(kind: PairedTest, n_responses: int, asked: int) -> int:
    """In how many swaps or replicates the p-values of a test are counted; 0 for Student's."""
    if kind is PairedTest.T:
        return 0
    return asked if kind is PairedTest.BOOTSTRAP else swaps(n_responses, asked)[0]


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
    if not error > 0 or math.isnan(difference):
        return 0.0 if difference == 0 else math.nan
    from scipy.special import stdtr

    return float(stdtr(n_responses - 1, (abs(difference) - margin) / error))


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
