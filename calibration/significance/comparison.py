"""One method against another in any measure: the difference, its interval, its tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

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
from calibration.significance.differences import difference_of
from calibration.significance.outcome import Alternative
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
from calibration.validation import member_named, whole_number
from factormodels.errors import InputError

MEANS_OVER_RESPONSES = tuple(score.name for score in OF_RESPONSES)
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
    n_resamples: int = 10_000,
    intervals: IntervalSettings | None = None,
    settings: SampleSettings = DEFAULT_SETTINGS,
) -> list[Difference]:
    """One method against another in every measure; they may have judged other claims.

    Args:
        first: labelled claims under one method.
        second: under the other, of the same responses in the same order.
        measures: some of `REGISTRY`.
        test, alternative, n_resamples: as in `calibration.score`.
        intervals: level of the intervals, their replicates, and the seed of everything.
        settings: what scores of samples are computed with.

    Raises:
        InputError: for unknown names, or responses that differ.
    """
    chosen, kind = scores_named(measures), paired_test_named(test, measures)
    check_alternative(alternative, chosen)
    intervals = IntervalSettings() if intervals is None else intervals
    if tuple(first.grouping.responses) != tuple(second.grouping.responses):
        raise InputError("the two methods judge different responses; give the responses of both")
    n_resamples = whole_number(n_resamples, "n_resamples", 1)
    found = {
        measure.name: difference_of(measure, first, second, intervals, settings)
        for measure in chosen
    }
    tested = _Tests(first, second, kind, alternative, n_resamples, intervals.seed, settings)
    defined = [each for each in chosen if math.isfinite(found[each.name].value)]
    used = resamples_used(kind, found[chosen[0].name].n, n_resamples)
    for name, (p_value, status) in tested.p_values(defined).items():
        own = found[name]
        if own.status == ScoreStatus.OK and status != ScoreStatus.OK:
            own = replace(own, status=status)
        found[name] = replace(own, p_value=p_value, n_resamples=used)
    return [replace(found[each.name], better=_is_better(each, found[each.name])) for each in chosen]


def _is_better(measure: ScoreDefinition, found: Difference) -> bool | None:
    """Whether the first is better; neither in measures without a good direction."""
    if measure.higher_is_better is None:
        return None
    return (found.value > 0) if measure.higher_is_better else (found.value < 0)


def resamples_used(kind: PairedTest, n_responses: int, asked: int) -> int:
    """In how many swaps or replicates the p-values of a test are counted; 0 for Student's."""
    if kind is PairedTest.T:
        return 0
    return asked if kind is PairedTest.BOOTSTRAP else swaps(n_responses, asked)[0]


@dataclass(frozen=True, eq=False)
class _Tests:
    """Tests of two methods, as `compare_judged` has its arguments."""

    first: JudgedClaims
    second: JudgedClaims
    kind: PairedTest
    alternative: str
    n_resamples: int
    seed: int
    settings: SampleSettings

    def p_values(self, measures: Sequence[ScoreDefinition]) -> dict[str, tuple[float, ScoreStatus]]:
        """p-value and status of the test of every measure, all of which are defined."""
        found = {}
        for measure in measures:
            if measure.ratio is not None:
                result = self._of_sums(measure)
                found[measure.name] = (result.p_value, result.status)
        others = [measure for measure in measures if measure.ratio is None]
        if not others:
            return found
        if len(self.first.grouping.responses) < 2:
            return found | {measure.name: (math.nan, ScoreStatus.TOO_FEW) for measure in others}
        names = [measure.name for measure in others]
        sides = [_side(self.alternative, measure) for measure in others]
        given = self.first, self.second, names, sides
        how: dict[str, Any] = {"seed": self.seed, "settings": self.settings}
        if self.kind is PairedTest.BOOTSTRAP:
            tests = bootstrap_scores(*given, n_bootstrap=self.n_resamples, **how)
        else:
            tests = permute_scores(*given, n_permutations=self.n_resamples, **how)
        p_values = tests.p_values.tolist()
        return found | {
            name: (p_value, ScoreStatus.OK) for name, p_value in zip(names, p_values, strict=True)
        }

    def _of_sums(self, measure: ScoreDefinition) -> Difference:
        side = _side(self.alternative, measure)
        sums, against = measure.sums(self.first), measure.sums(self.second)
        if self.kind is PairedTest.T:
            own = [(part.numerator / part.denominator)[:, 0] for part in (sums, against)]
            return paired_t_test(own[0], own[1], alternative=side)
        how: dict[str, Any] = {"alternative": side, "seed": self.seed}
        if self.kind is PairedTest.BOOTSTRAP:
            return bootstrap_difference(sums, against, n_bootstrap=self.n_resamples, **how)
        return permute_difference(sums, against, n_permutations=self.n_resamples, **how)


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
