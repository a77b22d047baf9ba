"""The table of methods and measures, with intervals, and stars that have been corrected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from numpy.typing import ArrayLike

from calibration.intervals import IntervalSettings
from calibration.labels import LabelPolicy
from calibration.scores.coverage import COVERS
from calibration.scores.definition import JudgedClaims, ScoreDefinition
from calibration.scores.registry import REGISTRY, USUAL_MEASURES, judged_claims, scores_named
from calibration.scores.summary import EstimatedScore, estimates_of
from calibration.significance.comparison import (
    PairedTest,
    check_alternative,
    compare_judged,
    paired_test_named,
    resamples_used,
)
from calibration.significance.corrections import Correction, adjust, stars
from calibration.significance.differences import ScoreDifference
from calibration.significance.outcome import Alternative, reason_of
from calibration.tabular import Tabular
from calibration.validation import member_named, whole_number
from factormodels.errors import InputError


@dataclass(frozen=True)
class MethodCell:
    """One method under one measure; nan where a number is not defined.

    Attributes:
        method: the method.
        measure: the measure.
        estimate: its value.
        lower: lower end of its interval over responses.
        upper: upper end.
        coverage: what such an interval covers in simulations where that is not its level, as
            `coverage_warning` gives it; else nan.
        difference: the method's value less the reference's; nan for the reference.
        difference_lower: lower end of the difference's interval, paired by response.
        difference_upper: its upper end.
        difference_coverage: what intervals of such a difference cover where that is not their
            level; else nan.
        p_value: of the paired test against the reference, nan for the reference.
        corrected: the p-value corrected for all comparisons of the table; nan without correction.
        better: whether the difference is in the measure's good direction; None for the reference,
            and of measures that have none.
        stars: marks of the corrected p-value, empty without correction.
        equivalence_p: of two one-sided tests that the difference is within the measure's margin.
        equivalence_corrected: the same corrected for all such tests of the table.
        status: of the comparison, or of the value: ``reference`` or ``ok`` where all is defined.
        reason: why something is not, in words.
    """

    method: str
    measure: str
    estimate: float
    lower: float
    upper: float
    coverage: float
    difference: float
    difference_lower: float
    difference_upper: float
    difference_coverage: float
    p_value: float
    corrected: float
    better: bool | None
    stars: str
    equivalence_p: float
    equivalence_corrected: float
    status: str
    reason: str


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
        n_resamples: how many swaps, or replicates of the bootstrap, each was counted in; 0 for
            Student's test.
        n_responses: number of responses.
        n_claims: number of labelled claims.
        n_unlabelled: number of claims that had no label.
        level: nominal coverage of the intervals.
        margins: by measure the least difference that would matter, if equivalence was tested.
        within_folds: whether AUROC is within folds.
    """

    methods: tuple[str, ...]
    measures: tuple[str, ...]
    reference: str
    cells: tuple[MethodCell, ...]
    test: str
    alternative: str
    correction: str | None
    n_comparisons: int
    n_resamples: int
    n_responses: int
    n_claims: int
    level: float
    n_unlabelled: int = 0
    margins: Mapping[str, float] = field(default_factory=dict)
    within_folds: bool = False

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
        """What a reader must know of the intervals and the stars, in a few sentences."""
        size = f"{self.n_claims:,} claims in {self.n_responses:,} responses"
        if self.n_unlabelled:
            size += f", {self.n_unlabelled:,} of the claims given having no label"
        sentences = [
            f"{100 * self.level:g}% intervals over responses; {size}.",
            self.stars_note(),
        ]
        if self.margins:
            margins = ", ".join(
                f"{margin:g} in {REGISTRY[name].title}" for name, margin in self.margins.items()
            )
            sentences.append(f"Equivalence was tested for margins of {margins}.")
        if self.within_folds:
            sentences.append("Probabilities are cross-fitted: AUROC compares claims of one fold.")
        if any(math.isfinite(cell.coverage) for cell in self.cells):
            sentences.append(COVERS)
        return " ".join([*sentences, *self._undefined()])

    def stars_note(self) -> str:
        """What the stars mean."""
        if self.correction is None:
            return "P-values are not corrected, so that none is marked."
        side = "two-sided" if self.alternative == Alternative.TWO_SIDED else "one-sided"
        counted = ""
        if self.n_resamples:
            drawn = "swaps" if self.test == PairedTest.PERMUTATION else "replicates"
            counted = f" ({self.n_resamples:,} {drawn})"
        return (
            f"* p < 0.05, ** p < 0.01, *** p < 0.001 against {self.reference}, {side} {self.test} "
            f"tests{counted} paired by response, corrected over {self.n_comparisons} comparisons "
            f"({self.correction})."
        )

    def _undefined(self) -> list[str]:
        """A sentence for every cell that has no value."""
        return [
            f"{REGISTRY[cell.measure].title} of {cell.method}: {cell.status.replace('_', ' ')} "
            f"({cell.reason})."
            for cell in self.cells
            if not math.isfinite(cell.estimate)
        ]


def compare_methods(
    methods: Mapping[str, ArrayLike],
    y: Any,
    responses: Any,
    *,
    reference: str | None = None,
    measures: Sequence[str] = USUAL_MEASURES,
    test: str = PairedTest.PERMUTATION,
    alternative: str = Alternative.TWO_SIDED,
    correction: str | None = "holm",
    margins: Mapping[str, float] | None = None,
    folds: Any = None,
    k: str | float = "median",
    n_resamples: int = 10_000,
    intervals: IntervalSettings | None = None,
    unlabelled: str = LabelPolicy.EXCLUDE,
    estimated: Mapping[str, Mapping[str, EstimatedScore]] | None = None,
) -> MethodTable:
    """Methods and measures with intervals, each method tested against a reference.

    A cell that is not defined, such as the log loss where a claim is certain and wrong, has a
    status that says why; that is not an error.

    Args:
        methods: probabilities (n_claims,) by the name of the method, all of the same claims.
        y: labels (n_claims,), True or False, None where unlabelled.
        responses: response ids (n_claims,).
        reference: the method that the others are tested against; None for the first.
        measures: which measures, of `calibration.scores.REGISTRY`.
        test: ``permutation``, which swaps the two methods in whole responses; ``bootstrap``; or
            ``t`` for measures that are means over responses (`MEANS_OVER_RESPONSES`).
        alternative: ``two-sided``, or ``better`` to test only whether a method is better.
        correction: ``holm``, ``benjamini-hochberg``, or None for uncorrected p-values without
            stars.
        margins: by measure the least difference that would matter, for tests of equivalence.
        folds: fold of each claim, (n_claims,), if probabilities are cross-fitted; AUROC is then
            within folds, as in `calibration.scores.auroc`.
        k: how the K of F1@K is chosen, as in `choose_k`.
        n_resamples: permutations, or replicates of the bootstrap test, of every measure; all 2^R
            permutations where that is no more.
        intervals: how intervals are made, and the seed of everything.
        unlabelled: what claims without a label count as, as in `apply_policy`: left out by
            default.
        estimated: measures of these claims by method, if `estimates_of` has already computed
            them with these settings.

    Raises:
        InputError: for bad arrays, lengths that differ, fewer than two methods, or unknown names.
    """
    chosen, kind = scores_named(measures), paired_test_named(test, measures)
    check_alternative(alternative, chosen)
    method = None if correction is None else member_named(Correction, correction, "correction")
    n_resamples = whole_number(n_resamples, "n_resamples", 1)
    settings = IntervalSettings() if intervals is None else intervals
    if len(methods) < 2:
        raise InputError("methods holds fewer than two; give probabilities of two or more by name")
    base = next(iter(methods)) if reference is None else reference
    if base not in methods:
        raise InputError(f"reference is {base!r}; choose one of {', '.join(methods)}")
    judged: dict[str, JudgedClaims] = {}
    how: dict[str, Any] = {"k": k, "folds": folds, "unlabelled": unlabelled}
    for name, p in methods.items():
        try:
            # The remark on unlabelled claims is made once, not for each method.
            judged[name] = judged_claims(p, y, responses, **how, told=bool(judged))
        except InputError as error:
            raise InputError(f"method {name!r}: {error}") from None
    cells = []
    for name, claims in judged.items():
        known = estimated[name] if estimated else estimates_of(claims, chosen, settings)
        own = _cells(name, {measure.name: known[measure.name] for measure in chosen})
        if name != base:
            against = compare_judged(
                claims,
                judged[base],
                measures,
                test=kind,
                alternative=alternative,
                margins=margins,
                n_resamples=n_resamples,
                settings=settings,
            )
            own = [
                _compared(cell, measure, found)
                for cell, measure, found in zip(own, chosen, against, strict=True)
            ]
        cells += own
    n_comparisons = sum(not math.isnan(cell.p_value) for cell in cells)
    if method is not None:
        corrected = adjust([cell.p_value for cell in cells], method)
        equivalent = adjust([cell.equivalence_p for cell in cells], method)
        cells = [
            replace(
                cell,
                corrected=float(value),
                stars=stars(float(value)),
                equivalence_corrected=float(other),
            )
            for cell, value, other in zip(cells, corrected, equivalent, strict=True)
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
        n_resamples=resamples_used(kind, len(any_method.grouping.responses), n_resamples),
        n_responses=len(any_method.grouping.responses),
        n_claims=any_method.y.size,
        level=settings.level,
        n_unlabelled=any_method.n_unlabelled,
        margins=dict(margins or {}),
        within_folds=folds is not None and "auroc" in measures,
    )


def _cells(method: str, estimated: Mapping[str, EstimatedScore]) -> list[MethodCell]:
    """Cells of one method, not compared yet."""
    nothing = dict.fromkeys(
        ("difference", "difference_lower", "difference_upper", "difference_coverage", "p_value",
         "corrected", "equivalence_p", "equivalence_corrected"),
        math.nan,
    )  # fmt: skip
    return [
        MethodCell(
            method=method,
            measure=name,
            estimate=each.value,
            lower=each.lower,
            upper=each.upper,
            coverage=each.coverage,
            **nothing,
            better=None,
            stars="",
            status="reference" if math.isfinite(each.value) else str(each.status),
            reason=reason_of(each.status),
        )
        for name, each in estimated.items()
    ]


def _compared(cell: MethodCell, measure: ScoreDefinition, found: ScoreDifference) -> MethodCell:
    # Neither where a value is missing, and of measures without a good direction.
    better: bool | None = None
    if measure.higher_is_better is not None:
        better = (found.difference > 0) if measure.higher_is_better else (found.difference < 0)
    return replace(
        cell,
        difference=found.difference,
        difference_lower=found.lower,
        difference_upper=found.upper,
        difference_coverage=found.coverage,
        p_value=found.p_value,
        better=better,
        equivalence_p=found.equivalence_p,
        status=found.status,
        reason=found.reason or cell.reason,
    )
