"""The table of methods and measures, with intervals, and stars that have been corrected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from numpy.typing import ArrayLike

from calibration.intervals import IntervalSettings, RatioEstimand, RatioSums, estimate_all
from calibration.labels import LabelPolicy, apply_policy, labelled_atoms
from calibration.significance.corrections import adjust, correction_named, stars
from calibration.significance.measures import (
    MEASURES,
    JudgedClaims,
    Measure,
    measures_named,
    response_k,
)
from calibration.significance.outcome import Alternative, SignificanceTest
from calibration.significance.paired import (
    bootstrap_difference,
    paired_t_test,
    permute_difference,
)
from calibration.tabular import Tabular
from calibration.validation import whole_number
from factormodels.errors import InputError


class PairedTest(StrEnum):
    """Which test compares a method with the reference."""

    PERMUTATION = "permutation"
    BOOTSTRAP = "bootstrap"
    T = "t"
    """FactReasoner's, on one number per response; for measures that are means over responses."""


@dataclass(frozen=True)
class MethodCell:
    """One method under one measure.

    Attributes:
        method: the method.
        measure: the measure.
        estimate: its value.
        lower: lower end of its interval over responses.
        upper: upper end.
        difference: the method's value less the reference's; nan for the reference.
        p_value: of the paired test against the reference, nan for the reference.
        corrected: the p-value corrected for all comparisons of the table; nan without correction.
        better: whether the difference is in the measure's good direction; None for the reference.
        stars: marks of the corrected p-value, empty without correction.
        status: of the test, or "reference".
    """

    method: str
    measure: str
    estimate: float
    lower: float
    upper: float
    difference: float
    p_value: float
    corrected: float
    better: bool | None
    stars: str
    status: str


@dataclass(frozen=True, repr=False)
class MethodTable(Tabular):
    """Methods and measures.

    Attributes:
        methods: names of the methods, in order.
        measures: names of the measures, in order.
        reference: the method that the others are tested against.
        cells: every cell, method by method.
        test: which paired test.
        alternative: ``two-sided``, or ``better`` for one-sided tests in each measure's good
            direction.
        correction: ``holm``, ``benjamini-hochberg``, or None.
        n_comparisons: how many p-values were corrected together.
        n_responses: number of responses.
        n_claims: number of labelled claims.
        n_unlabelled: number of claims that had no label.
        level: nominal coverage of the intervals.
    """

    methods: tuple[str, ...]
    measures: tuple[str, ...]
    reference: str
    cells: tuple[MethodCell, ...]
    test: str
    alternative: str
    correction: str | None
    n_comparisons: int
    n_responses: int
    n_claims: int
    level: float
    n_unlabelled: int = 0

    def cell(self, method: str, measure: str) -> MethodCell:
        """One cell.

        Raises:
            InputError: if the table has no such cell.
        """
        for cell in self.cells:
            if (cell.method, cell.measure) == (method, measure):
                return cell
        raise InputError(
            f"there is no cell of {method!r} and {measure!r}; methods are "
            f"{', '.join(self.methods)}, measures {', '.join(self.measures)}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """One row per cell."""
        return [asdict(cell) for cell in self.cells]

    def note(self) -> str:
        """What a reader must know of the intervals and the stars, in a sentence or two."""
        size = f"{self.n_claims:,} claims in {self.n_responses:,} responses"
        if self.n_unlabelled:
            size += f", {self.n_unlabelled:,} of the claims given having no label"
        intervals = f"{100 * self.level:g}% intervals over responses; {size}."
        if self.correction is None:
            return f"{intervals} P-values are not corrected, so that none is marked."
        side = "two-sided" if self.alternative == Alternative.TWO_SIDED else "one-sided"
        return (
            f"{intervals} * p < 0.05, ** p < 0.01, *** p < 0.001 against {self.reference}, "
            f"{side} {self.test} tests paired by response, corrected over "
            f"{self.n_comparisons} comparisons ({self.correction})."
        )


def compare_methods(
    methods: Mapping[str, ArrayLike],
    y: Any,
    responses: Any,
    *,
    reference: str | None = None,
    measures: Sequence[str] = tuple(MEASURES),
    test: str = PairedTest.PERMUTATION,
    alternative: str = Alternative.TWO_SIDED,
    correction: str | None = "holm",
    k: str | float = "median",
    n_resamples: int = 10_000,
    intervals: IntervalSettings | None = None,
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> MethodTable:
    """Methods and measures with intervals, each method tested against a reference.

    Args:
        methods: probabilities (n_claims,) by the name of the method, all of the same claims.
        y: labels (n_claims,), True or False, None where unlabelled.
        responses: response ids (n_claims,).
        reference: the method that the others are tested against; None for the first.
        measures: which measures, of `MEASURES`.
        test: ``permutation``, ``bootstrap`` or ``t``; the last for measures that are means over
            responses (precision, f1_at_k, precision_mae).
        alternative: ``two-sided``, or ``better`` to test only whether a method is better.
        correction: ``holm``, ``benjamini-hochberg``, or None for uncorrected p-values without
            stars.
        k: how the K of F1@K is chosen, as in `choose_k`.
        n_resamples: permutations, or replicates of the bootstrap test.
        intervals: how intervals are made, and the seed of everything.
        unlabelled: what claims without a label count as, as in `apply_policy`: left out by
            default.

    Raises:
        InputError: for bad arrays, lengths that differ, fewer than two methods, or unknown names.
    """
    chosen, kind = measures_named(measures), _test(test, measures)
    if alternative not in (Alternative.TWO_SIDED, "better"):
        raise InputError(f"alternative is {alternative!r}; choose 'two-sided' or 'better'")
    method = None if correction is None else correction_named(correction)
    n_resamples = whole_number(n_resamples, "n_resamples", 1)
    settings = IntervalSettings() if intervals is None else intervals
    if len(methods) < 2:
        raise InputError("methods holds fewer than two; give probabilities of two or more by name")
    base = next(iter(methods)) if reference is None else reference
    if base not in methods:
        raise InputError(f"reference is {base!r}; choose one of {', '.join(methods)}")
    judged, n_unlabelled = _judged(methods, y, responses, k, unlabelled)

    cells = []
    for name, claims in judged.items():
        for measure in chosen:
            sums, against = measure.sums(claims), measure.sums(judged[base])
            cell = _estimated(name, measure, sums, settings)
            if name != base:
                result = _tested(kind, measure, sums, against, alternative, n_resamples, settings)
                cell = _compared(cell, measure, result)
            cells.append(cell)
    n_comparisons = sum(not math.isnan(cell.p_value) for cell in cells)
    if method is not None:
        corrected = adjust([cell.p_value for cell in cells], method)
        cells = [
            replace(cell, corrected=float(value), stars=stars(float(value)))
            for cell, value in zip(cells, corrected, strict=True)
        ]
    any_method = judged[base]
    return MethodTable(
        methods=tuple(methods),
        measures=tuple(measure.name for measure in chosen),
        reference=base,
        cells=tuple(cells),
        test=kind,
        alternative=alternative,
        correction=None if method is None else str(method),
        n_comparisons=n_comparisons,
        n_responses=len(any_method.grouping.responses),
        n_claims=any_method.y.size,
        level=settings.level,
        n_unlabelled=n_unlabelled,
    )


def compare_judged(
    first: JudgedClaims,
    second: JudgedClaims,
    measure: str,
    *,
    test: str = PairedTest.PERMUTATION,
    alternative: str = Alternative.TWO_SIDED,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> SignificanceTest:
    """Test of one method against another, which may have judged other claims.

    Args:
        first: labelled claims under one method.
        second: under the other, of the same responses in the same order.
        measure: one of `MEASURES`.
        test, alternative, n_resamples: as in `compare_methods`.
        seed: seed of the permutations or replicates.

    Raises:
        InputError: for unknown names, or responses that differ.
    """
    (chosen,), kind = measures_named([measure]), _test(test, [measure])
    if first.grouping.responses != second.grouping.responses:
        raise InputError("the two methods judge different responses; give the responses of both")
    return _tested(
        kind,
        chosen,
        chosen.sums(first),
        chosen.sums(second),
        alternative,
        whole_number(n_resamples, "n_resamples", 1),
        IntervalSettings(seed=seed),
    )


def _judged(
    methods: Mapping[str, ArrayLike], y: Any, responses: Any, k: str | float, unlabelled: str
) -> tuple[dict[str, JudgedClaims], int]:
    """Labelled claims under each method, and how many claims have no label."""
    judged: dict[str, JudgedClaims] = {}
    for name, p in methods.items():
        try:
            # The remark on unlabelled claims is made once, not for each method.
            atoms = (
                labelled_atoms(p, y, unlabelled)
                if not judged
                else apply_policy(p, y, policy=unlabelled)
            )
            grouping = atoms.grouping(responses)
        except InputError as error:
            raise InputError(f"method {name!r}: {error}") from None
        judged[name] = JudgedClaims(atoms.p, atoms.y, grouping, response_k(k, grouping))
    return judged, atoms.n_unlabelled


def _estimated(
    method: str, measure: Measure, sums: RatioSums, settings: IntervalSettings
) -> MethodCell:
    estimates = estimate_all((RatioEstimand(measure.name, sums, measure.scale),), settings)[0]
    return MethodCell(
        method=method,
        measure=measure.name,
        estimate=float(estimates.estimate[0]),
        lower=float(estimates.lower[0]),
        upper=float(estimates.upper[0]),
        difference=math.nan,
        p_value=math.nan,
        corrected=math.nan,
        better=None,
        stars="",
        status="reference",
    )


def _tested(
    kind: PairedTest,
    measure: Measure,
    sums: RatioSums,
    against: RatioSums,
    alternative: str,
    n_resamples: int,
    settings: IntervalSettings,
) -> SignificanceTest:
    side = Alternative.TWO_SIDED
    if alternative == "better":
        side = Alternative.GREATER if measure.higher_is_better else Alternative.LESS
    if kind is PairedTest.T:
        own = [(part.numerator / part.denominator)[:, 0] for part in (sums, against)]
        return paired_t_test(own[0], own[1], alternative=side, level=settings.level)
    if kind is PairedTest.BOOTSTRAP:
        return bootstrap_difference(
            sums,
            against,
            alternative=side,
            n_bootstrap=n_resamples,
            seed=settings.seed,
            level=settings.level,
        )
    return permute_difference(
        sums, against, alternative=side, n_permutations=n_resamples, seed=settings.seed
    )


def _compared(cell: MethodCell, measure: Measure, result: SignificanceTest) -> MethodCell:
    return replace(
        cell,
        difference=result.estimate,
        p_value=result.p_value,
        better=bool(result.estimate > 0) == measure.higher_is_better and result.estimate != 0,
        status=str(result.status),
    )


MEANS_OVER_RESPONSES = ("precision", "f1_at_k", "precision_mae")
"""Measures with one number per response, which Student's test takes."""


def _test(test: str, measures: Sequence[str]) -> PairedTest:
    try:
        kind = PairedTest(test)
    except ValueError:
        names = ", ".join(PairedTest)
        raise InputError(f"test is {test!r}; choose one of {names}") from None
    pooled = [name for name in measures if name not in MEANS_OVER_RESPONSES]
    if kind is PairedTest.T and pooled:
        raise InputError(
            f"test is 't', but {', '.join(pooled)} are pooled over claims; choose 'permutation' or "
            f"'bootstrap', or measures among {', '.join(MEANS_OVER_RESPONSES)}"
        )
    return kind
