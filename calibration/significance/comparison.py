"""Comparison of two methods in any measure: the difference, its interval and its test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

from calibration.estimate import Difference, ScoreStatus
from calibration.intervals import IntervalSettings
from calibration.scores.definition import (
    DEFAULT_SETTINGS,
    JudgedClaims,
    SampleSettings,
    ScoreDefinition,
)
from calibration.scores.families.responses import FAMILY as OF_RESPONSES
from calibration.scores.registry import scores_named
from calibration.significance.bootstrap import bootstrap_difference, bootstrap_scores
from calibration.significance.differences import difference_of
from calibration.significance.outcome import Alternative
from calibration.significance.permutation import permute_difference, permute_scores, swaps
from calibration.significance.student import paired_t_test
from calibration.validation import member_named, whole_number
from factormodels.errors import InputError

MEANS_OVER_RESPONSES = tuple(score.name for score in OF_RESPONSES)
"""Measures that are means of a number per response, as Student's test requires."""


class PairedTest(StrEnum):
    """Test that compares a method with the reference."""

    PERMUTATION = "permutation"
    BOOTSTRAP = "bootstrap"
    T = "t"
    """Student's test of a number per response (FactReasoner); only for means over responses."""


def compare_judged(
    first: JudgedClaims,
    second: JudgedClaims,
    measures: Sequence[str],
    *,
    test: str = PairedTest.PERMUTATION,
    alternative: str = Alternative.TWO_SIDED,
    n_resamples: int = 10_000,
    intervals: IntervalSettings | None = None,
    settings: SampleSettings = DEFAULT_SETTINGS,
) -> list[Difference]:
    """Compare two methods in several measures; their claims may differ.

    Args:
        first: labeled claims under one method.
        second: labeled claims under the other, of the same responses in the same order.
        measures: names of scores in `REGISTRY`.
        test, alternative, n_resamples: as in `calibration.score`.
        intervals: level and replicates of the intervals, and the seed of all resampling.
        settings: settings of the scores of samples.

    Raises:
        InputError: for unknown names, or responses that differ.
    """
    chosen, kind = scores_named(measures), paired_test_named(test, measures)
    check_alternative(alternative, chosen)
    intervals = IntervalSettings() if intervals is None else intervals
    if tuple(first.grouping.responses) != tuple(second.grouping.responses):
        raise InputError("the two methods judge different responses; give the responses of both")
    n_resamples = whole_number(n_resamples, "n_resamples", 1)
    differences = {
        measure.name: difference_of(measure, first, second, intervals, settings)
        for measure in chosen
    }
    defined = [each for each in chosen if math.isfinite(differences[each.name].value)]
    sides = [_side(alternative, each) for each in defined]
    used = resamples_used(kind, differences[chosen[0].name].n, n_resamples)
    for name, p_value, status in _p_values(
        *(first, second, defined, kind, sides, n_resamples, intervals.seed, settings)
    ):
        difference = differences[name]
        if difference.status == ScoreStatus.OK and status != ScoreStatus.OK:
            difference = replace(difference, status=status)
        differences[name] = replace(difference, p_value=p_value, n_resamples=used)
    return [
        replace(differences[each.name], better=_is_better(each, differences[each.name]))
        for each in chosen
    ]


def _is_better(measure: ScoreDefinition, difference: Difference) -> bool | None:
    """Return whether the first method is better; None if the measure has no good direction."""
    if measure.higher_is_better is None:
        return None
    return (difference.value > 0) if measure.higher_is_better else (difference.value < 0)


def resamples_used(kind: PairedTest, n_responses: int, asked: int) -> int:
    """Number of swaps or replicates of a test; 0 for Student's test."""
    if kind is PairedTest.T:
        return 0
    return asked if kind is PairedTest.BOOTSTRAP else swaps(n_responses, asked)[0]


def least_p_value(kind: PairedTest, n_responses: int, used: int, alternative: str) -> float:
    """Smallest p-value that a test can have.

    An exact permutation test counts the data themselves and, two-sided, all responses swapped.
    Other resampling adds 1 to both counts.

    Args:
        kind: the test.
        n_responses: number of responses.
        used: number of swaps or replicates, as `resamples_used` returns it.
        alternative: ``two-sided``, or one-sided.
    """
    if kind is PairedTest.T:
        return 0.0
    if kind is PairedTest.PERMUTATION and used == 2**n_responses:
        return (2 if alternative == Alternative.TWO_SIDED else 1) / used
    return 1 / (used + 1)


def _p_values(
    first: JudgedClaims,
    second: JudgedClaims,
    measures: Sequence[ScoreDefinition],
    kind: PairedTest,
    sides: Sequence[Alternative],
    n_resamples: int,
    seed: int,
    settings: SampleSettings,
) -> Iterator[tuple[str, float, ScoreStatus]]:
    """Yield name, p-value and status of the test of every measure; all measures must be defined."""
    others = []
    for measure, side in zip(measures, sides, strict=True):
        if measure.ratio is None:
            others.append((measure.name, side))
            continue
        sums, against = measure.sums(first), measure.sums(second)
        if kind is PairedTest.T:
            means = [(part.numerator / part.denominator)[:, 0] for part in (sums, against)]
            result = paired_t_test(means[0], means[1], alternative=side)
        elif kind is PairedTest.BOOTSTRAP:
            result = bootstrap_difference(
                sums, against, alternative=side, n_bootstrap=n_resamples, seed=seed
            )
        else:
            result = permute_difference(
                sums, against, alternative=side, n_permutations=n_resamples, seed=seed
            )
        yield measure.name, result.p_value, result.status
    if not others:
        return
    names, alternatives = [name for name, _ in others], [side for _, side in others]
    if len(first.grouping.responses) < 2:
        yield from ((name, math.nan, ScoreStatus.TOO_FEW) for name in names)
        return
    test = bootstrap_scores if kind is PairedTest.BOOTSTRAP else permute_scores
    p_values = test(first, second, names, alternatives, n_resamples, seed, settings)
    yield from ((name, p, ScoreStatus.OK) for name, p in zip(names, p_values.tolist(), strict=True))


def _side(alternative: str, measure: ScoreDefinition) -> Alternative:
    if alternative == Alternative.TWO_SIDED:
        return Alternative.TWO_SIDED
    return Alternative.GREATER if measure.higher_is_better else Alternative.LESS


def check_alternative(alternative: str, measures: Sequence[ScoreDefinition]) -> None:
    """Check that every measure has the alternative, ``two-sided`` or ``better``.

    Raises:
        InputError: for another alternative, or a measure without a good direction under ``better``.
    """
    if alternative not in (Alternative.TWO_SIDED, "better"):
        raise InputError(f"alternative is {alternative!r}; choose 'two-sided' or 'better'")
    neither = [measure.name for measure in measures if measure.higher_is_better is None]
    if alternative == "better" and neither:
        raise InputError(
            f"alternative is 'better', but neither way is for {', '.join(neither)}; choose "
            "'two-sided', or leave them out"
        )


def paired_test_named(test: str, measures: Sequence[str]) -> PairedTest:
    """Paired test with a given name.

    Raises:
        InputError: for an unknown name, or a measure that the test does not support.
    """
    kind = member_named(PairedTest, test, "test")
    pooled = [name for name in measures if name not in MEANS_OVER_RESPONSES]
    if kind is PairedTest.T and pooled:
        raise InputError(
            f"test is 't', but {', '.join(pooled)} are pooled over claims; choose 'permutation' or "
            f"'bootstrap', or measures among {', '.join(MEANS_OVER_RESPONSES)}"
        )
    return kind
