"""Scores of one or more models on the same data, with intervals and paired tests.

from calibration import score
score(p, y, responses)["brier"].interval
table = score("p", "label", "answer", data=frame, model="model")
table.to_frame(), table.remarks, table.figures()
score(long_frame, by=["dataset", "backend"]).to_frame()
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibration.cells import CLAIM_COLUMNS
from calibration.estimate import ABOVE_INTERVAL, Difference, Estimate
from calibration.forecasts import LOGIT_CLIP, Extremes, logit_clip
from calibration.grouping import response_ids
from calibration.intervals import (
    RARE_KIND,
    RARE_KIND_OF_ERRORS,
    IntervalSettings,
    effective_number,
    missing_kind_warning,
    unseen_share,
)
from calibration.labels import LabelPolicy, remark_unlabeled
from calibration.scores.coverage import COVERS
from calibration.scores.definition import JudgedClaims, SampleSettings, ScoreDefinition
from calibration.scores.estimates import (
    estimates_of,
    judged_claims,
    labeled_claims,
    without_labels,
)
from calibration.scores.families.pointwise import brier
from calibration.scores.measures import warn_where_entropy_misorders
from calibration.scores.registry import REGISTRY, USUAL_SCORES, scores_named
from calibration.significance.comparison import (
    PairedTest,
    check_alternative,
    compare_judged,
    least_p_value,
    paired_test_named,
    resamples_used,
)
from calibration.significance.corrections import (
    Correction,
    adjust,
    least_corrected,
    stars,
    stars_legend,
    unattainable_stars,
)
from calibration.significance.outcome import Alternative
from calibration.tabular import Tabular
from calibration.validation import is_missing, member_named, whole_number
from factormodels.errors import InputError
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from calibration.curves import CorpCurve, ReliabilityBins, RiskCurve

MOST_DRAWN = 6
"""Largest number of models in a figure; more curves would need more colors than the palette has."""

DEFAULT_INTERVALS = IntervalSettings()

T = TypeVar("T")


@dataclass(frozen=True)
class ScoredModel:
    """The scores of one model.

    Attributes:
        name: name of the model.
        n_claims: number of claims in the scores that need labels.
        n_unlabeled: number of claims without a label.
        n_responses: number of responses with at least one of the `n_claims` claims.
        effective: number of responses of equal size with the same information (Kish 1965); 0
            without labels.
        n_extreme: number of labeled claims whose p is 0 or 1 to six decimals, so that its logit is
            clipped.
        k: K of F1@K; nan if it differs between responses.
        scores: scores by name.
        differences: model minus reference, by score; empty for the reference and without tests.
        cell: for a cell of a long frame, the values of the columns that identify it.
    """

    name: str
    n_claims: int
    n_unlabeled: int
    n_responses: int
    effective: float
    n_extreme: int
    k: float
    scores: Mapping[str, Estimate]
    differences: Mapping[str, Difference] = field(default_factory=dict)
    cell: Mapping[str, Any] = field(default_factory=dict)

    def may_lack_kinds(self, level: float, score: str | None = None) -> bool:
        """True if the coverage of intervals is uncertain: a kind of response may be missing.

        Args:
            level: nominal coverage.
            score: name of a score; None for scores whose sums of errors have signs.
        """
        inverted = score is not None and REGISTRY[score].deviations is not None
        # A few responses may have most of a calibration error.
        rare_kind = RARE_KIND_OF_ERRORS if inverted else RARE_KIND
        return self.effective > 0 and unseen_share(self.effective, level) > rare_kind


@dataclass(frozen=True, repr=False)
class ScoreTable(Tabular):
    """Scores of models with intervals over responses, and paired tests between them.

    Attributes:
        models: the scores of each model, in order of first appearance.
        scores: names of the scores, in order.
        tested: names of the scores in which models are compared with the reference; empty for a
            single model, or if claims cannot be paired.
        reference: name of the model that the others are compared with.
        n_comparisons: number of p-values that were corrected together.
        level: nominal coverage of the intervals.
        remarks: notes for the reader, one sentence each.
        stars_note: explanation of the stars; empty without tests.
        drawn: by model, its claims and the settings of its bands, as arguments of `curves`.
    """

    models: tuple[ScoredModel, ...]
    scores: tuple[str, ...]
    tested: tuple[str, ...]
    reference: str
    n_comparisons: int
    level: float
    remarks: tuple[str, ...]
    stars_note: str
    drawn: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)

    def __getitem__(self, name: str | tuple[str, str]) -> Estimate:
        """Return a score, by its name if there is a single model, else by (model, score).

        Raises:
            InputError: if no model or score has that name.
        """
        if isinstance(name, str) and len(self.models) > 1:
            raise InputError(f"there are several models; give one of them as [MODEL, {name!r}]")
        model, score = (self.models[0].name, name) if isinstance(name, str) else name
        return self._found(model, score, {each.name: each.scores for each in self.models})

    def difference(self, model: str, score: str) -> Difference:
        """Return the difference of a model from the reference in a score.

        Raises:
            InputError: if they were not compared.
        """
        return self._found(model, score, {each.name: each.differences for each in self.models})

    def stars(self, model: str, score: str) -> str:
        """Stars for the corrected p-value against the reference; empty without a test."""
        differences = next((each.differences for each in self.models if each.name == model), {})
        return stars(differences[score].corrected) if score in differences else ""

    def _found(self, model: str, score: str, known: Mapping[str, Mapping[str, T]]) -> T:
        if score in known.get(model, {}):
            return known[model][score]
        raise InputError(
            f"there is no {score!r} of {model!r}; models are {', '.join(known)}, scores "
            f"{', '.join(self.scores)}, compared with {self.reference} {', '.join(self.tested)}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per model and score; cells of a long frame have columns, not names.

        `coverage` is the interval's coverage in simulations, if it differs from the nominal level.
        If models were compared, further columns hold the difference from the reference.
        """
        return [
            {
                **(model.cell or {"model": model.name}),
                "score": name,
                "value": estimate.value,
                "lower": estimate.lower,
                "upper": estimate.upper,
                "standard_error": estimate.standard_error,
                "coverage": estimate.coverage,
                "status": str(estimate.status),
                "n_claims": model.n_claims,
                "n_unlabeled": model.n_unlabeled,
                "n_responses": estimate.n,
                **({} if not self.tested else _difference_row(model.differences.get(name))),
                "reason": estimate.reason or estimate.no_interval,
            }
            for model in self.models
            for name, estimate in model.scores.items()
        ]

    def curves(self) -> tuple[dict[str, CorpCurve], dict[str, RiskCurve]]:
        """Reliability curves and risk-coverage curves by model, with bands over responses.

        If there are more than `MOST_DRAWN` models, only the models with the lowest Brier scores
        have curves.
        """
        from calibration.curves import corp_curve, risk_curve

        return (
            {name: corp_curve(**self.drawn[name]) for name in self._shown},
            {name: risk_curve(**self.drawn[name]) for name in self._shown},
        )

    def bins(self) -> dict[str, ReliabilityBins]:
        """Ten reliability bins of equal count for each model of `curves`, with intervals.

        Empty if claims have weights.
        """
        from calibration.curves import reliability_bins

        if any(self.drawn[name].get("weights") is not None for name in self._shown):
            return {}
        return {
            name: reliability_bins(
                **{key: value for key, value in self.drawn[name].items() if key != "weights"},
                strategy="quantile",
            )
            for name in self._shown
        }

    @property
    def _shown(self) -> list[str]:
        """Names of the models that figures show."""
        names = list(self.drawn)
        if len(names) > MOST_DRAWN:
            names = sorted(names, key=self._brier)[:MOST_DRAWN]
        return names

    def _brier(self, name: str) -> float:
        part = self.drawn[name]
        return brier(part["p"], part["y"], unlabeled=part["unlabeled"])

    def figures(self) -> dict[str, Figure]:
        """Figures of the curves and bins, under the names ``reliability`` and ``risk_coverage``."""
        from calibration.figures import corp_diagram, risk_coverage_figure

        reliability, risks = self.curves()
        return {
            "reliability": corp_diagram(reliability, bins=self.bins()),
            "risk_coverage": risk_coverage_figure(risks),
        }


def _difference_row(difference: Difference | None) -> dict[str, Any]:
    """Columns of a difference; nan and empty if it is None."""
    difference = Difference("", math.nan) if difference is None else difference
    return {
        "difference": difference.value,
        "difference_lower": difference.lower,
        "difference_upper": difference.upper,
        "difference_coverage": difference.coverage,
        "p_value": difference.p_value,
        "corrected": difference.corrected,
        "stars": stars(difference.corrected),
        "better": difference.better,
        "why": difference.reason,
    }


def score(
    p: Any,
    y: Any = None,
    responses: Any = None,
    *,
    data: Any = None,
    by: str | Sequence[str] | None = None,
    model: str | None = None,
    claim: str | None = None,
    weights: Any = None,
    folds: Any = None,
    scores: Sequence[str] = USUAL_SCORES,
    tested: Sequence[str] | None = None,
    reference: str | None = None,
    test: str | None = PairedTest.PERMUTATION,
    alternative: str = Alternative.TWO_SIDED,
    correction: str | None = Correction.HOLM,
    n_resamples: int = 10_000,
    k: str | float = "median",
    intervals: IntervalSettings | None = DEFAULT_INTERVALS,
    n_bins: int = 10,
    clip: float = LOGIT_CLIP,
    extremes: str = Extremes.CLIP,
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> ScoreTable:
    """Score one or more models, with intervals over responses and paired tests between models.

    Pass arrays, or names of columns of `data`. A table is long, with a row per claim and model, or
    wide, with a column of probabilities per model. Tests use the claims that all models have. In a
    long table the column `claim` identifies claims. Without it, the claims of a response are paired
    in their order; all models must then have the same number of claims with the same labels.

    Pass a long frame of cells, such as the rows of a study, as the first argument:
    ``score(frame, by=["dataset", "backend"])``. Its columns are p, label, response and claim (or
    atom), unless other columns are named. Each combination of values of `by` is a cell, which is
    scored like a model. Claims without a probability are left out and counted.

    A score that is not defined is nan or infinite and has a status with the reason; no error is
    raised. Scores that need no labels use all claims.

    Args:
        p: probabilities (n,) in [0, 1] of being true; a dict of such arrays by model; the name of
            their column, or a list of columns, one per model; or a long frame.
        y: labels (n,), True or False, None where unlabeled; None if no claim has a label.
        responses: response ids (n,). Without them, claims are treated as independent, and intervals
            are too short if claims of a response are correlated.
        data: a data frame, columns by name, or rows as dicts; None if arrays are passed.
        by: columns whose values name the cells of a long frame. Cells are tested only against
            `reference`, the values of a cell joined by ", ", and only within the same value of a
            column named dataset, data, benchmark or split.
        model: column of model names of a long table.
        claim: column of claim ids, unique within a response and model.
        weights: weights (n,), the number of claims that each represents; None for 1 each.
        folds: fold of each claim, (n,), if probabilities are cross-fitted. AUROC then compares
            claims within folds, as in `calibration.scores.auroc`.
        scores: names of scores in `calibration.scores.REGISTRY`.
        tested: names of the scores in which models are compared; None for all scores that can
            differ between models of the same claims.
        reference: name of the model that the others are compared with; None for the first.
        test: ``permutation``, which swaps two models in whole responses; ``bootstrap``; ``t`` for
            scores that are means over responses; None for no comparison.
        alternative: ``two-sided``, or ``better`` for the one-sided test that a model is better.
        correction: ``holm``, ``benjamini-hochberg``, or None for uncorrected p-values without
            stars.
        n_resamples: number of permutations or bootstrap replicates per score. If R responses have
            at most that many permutations, all 2^R are used.
        k: choice of the K of F1@K, as in `calibration.scores.choose_k`.
        intervals: settings of the intervals, and the seed of all resampling; None for no intervals.
        n_bins: number of bins of calibration errors.
        clip: scores that need the logit of p move p into [clip, 1 - clip] first.
        extremes: treatment of p outside that range: ``clip``, or ``leave-out`` as in val.prob of
            the R package rms.
        unlabeled: treatment of claims without a label, as in `calibration.apply_policy`.

    Raises:
        InputError: for bad arrays, a missing column, different lengths, unknown names, or a bad
            setting.
    """
    chosen, treatment = scores_named(scores), member_named(Extremes, extremes, "extremes")
    scoring = _Scoring(
        scores=chosen,
        tested=_compared_names(chosen, tested),
        test=test,
        alternative=alternative,
        correction=correction,
        n_resamples=n_resamples,
        k=k,
        intervals=intervals,
        samples=SampleSettings(whole_number(n_bins, "n_bins", 1), logit_clip(clip), treatment),
        unlabeled=unlabeled,
    )
    if data is not None or hasattr(p, "columns"):
        given = _given_table(p, y, responses, data, by, model, claim, weights, folds)
    elif model is not None or claim is not None or by is not None:
        raise InputError("by, model and claim name columns of a table; give it as data")
    else:
        of_each = p if isinstance(p, Mapping) else {"p": p}
        given = _GivenModels(
            {
                str(name): _Given(probabilities, y, responses, folds, weights)
                for name, probabilities in of_each.items()
            }
        )
    if by is not None and reference is None:
        # The first of many cells is rarely a meaningful reference.
        scoring = replace(scoring, test=None)
    base = next(iter(given.models), "") if reference is None else reference
    if base not in given.models:
        raise InputError(f"reference is {reference!r}; choose one of {', '.join(given.models)}")
    scored_models, judged, without = _scored_models(given, scoring)
    first = given.models[scored_models[0].name]
    if first.y is not None:
        remark_unlabeled(scored_models[0].n_unlabeled, len(first.p), unlabeled)
    remarks = _remarks(
        scored_models,
        *(intervals, treatment, first.responses is not None, first.folds is not None),
    )
    remarks += [*given.left_out, *without]
    compared = _compared(given, judged, base, scoring)
    bands = scoring.bands
    drawn = {"n_bootstrap": bands.n_bootstrap, "seed": bands.seed, "level": bands.level}
    return ScoreTable(
        models=tuple(
            replace(each, differences=compared.differences.get(each.name, {}))
            for each in scored_models
        ),
        scores=tuple(scores),
        tested=scoring.tested if compared.differences else (),
        reference=base,
        n_comparisons=compared.n_comparisons,
        level=bands.level,
        remarks=(*remarks, *compared.remarks),
        stars_note=compared.stars_note,
        drawn={
            name: {**part.arrays(), **drawn, "unlabeled": unlabeled}
            for name, part in given.models.items()
        },
    )


@dataclass(frozen=True)
class _Scoring:
    """Settings of `score`, under the names of its arguments.

    Attributes:
        tested: names of the compared scores.
        samples: settings of scores of samples.
    """

    scores: tuple[ScoreDefinition, ...]
    tested: tuple[str, ...]
    test: str | None
    alternative: str
    correction: str | None
    n_resamples: int
    k: str | float
    intervals: IntervalSettings | None
    samples: SampleSettings
    unlabeled: str

    @property
    def bands(self) -> IntervalSettings:
        """Settings of the intervals of differences and of the bands of curves."""
        return self.intervals or DEFAULT_INTERVALS


@dataclass(frozen=True)
class _GivenModels:
    """The claims that `score` is given.

    Attributes:
        models: the claims of each model, by its name.
        cells: the values that identify each cell of a long frame, by its name.
        left_out: sentences on omitted claims.
        uneven: True if claims are identified only by their order, and models have different
            numbers of claims.
        of_table: True if claims of models are to be matched.
    """

    models: dict[str, _Given]
    cells: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: Sequence[str] = ()
    uneven: bool = False
    of_table: bool = False


@dataclass(frozen=True)
class _Compared:
    """Differences of models from the reference, by model and score, with sentences on them."""

    differences: Mapping[str, Mapping[str, Difference]] = field(default_factory=dict)
    n_comparisons: int = 0
    stars_note: str = ""
    remarks: Sequence[str] = ()


def _given_table(
    p: Any,
    y: Any,
    responses: Any,
    data: Any,
    by: str | Sequence[str] | None,
    model: str | None,
    claim: str | None,
    weights: Any,
    folds: Any,
) -> _GivenModels:
    """Claims of a table, by model or by cell; arguments as in `score`."""
    of_cells = by is not None or hasattr(p, "columns")
    if hasattr(p, "columns"):
        data, p, y, responses, claim = _long_frame(p, y, responses, claim)
    table, uneven = _data_frame(data), False
    cells: dict[str, dict[str, Any]] = {}
    left_out: list[str] = []
    if by is not None:
        if model is not None:
            raise InputError("by names the columns of cells and model another; give one")
        table, cells, claim, left_out, uneven = _with_cells(table, p, by, responses, claim)
        model = _CELL
    models = _from_table(table, p, y, responses, model, claim, weights, folds)
    for name, part in models.items() if of_cells else ():
        # Otherwise cells with the same values of `by` would be pooled.
        _check_once(name, part.keys(), "name in by every column that tells its rows apart")
    return _GivenModels(models, cells, left_out, uneven, of_table=True)


def _scored_models(
    given: _GivenModels, scoring: _Scoring
) -> tuple[list[ScoredModel], dict[str, JudgedClaims | None], list[str]]:
    """Scores of the models, their labeled claims, and sentences on cells without labels."""
    scored_models: list[ScoredModel] = []
    judged: dict[str, JudgedClaims | None] = {}
    without = []
    for name, part in given.models.items():
        try:
            every = part.claims(scoring.k)
            judged[name] = labeled_claims(every, scoring.unlabeled, scoring.k)
            need_labels = all(each.needs_labels for each in scoring.scores)
            if given.cells and judged[name] is None and need_labels:
                without.append(f"{name}: no claim has a label, so nothing is scored.")
                continue
            scored = _scored(name, every, judged[name], scoring)
            scored_models.append(replace(scored, cell=given.cells.get(name, {})))
        except InputError as error:
            raise InputError(
                f"model {name!r}: {error}" if len(given.models) > 1 else f"{error}"
            ) from None
    if not scored_models:
        raise InputError("no cell has a claim with a probability and a label; label some")
    return scored_models, judged, without


def _compared(
    given: _GivenModels, judged: Mapping[str, JudgedClaims | None], base: str, scoring: _Scoring
) -> _Compared:
    """Compare the models with the reference, if there is a test.

    Raises:
        InputError: for an unknown test, correction or alternative.
    """
    if scoring.test is None or len(given.models) < 2 or not scoring.tested:
        return _Compared()
    kind = paired_test_named(scoring.test, scoring.tested)
    n_resamples = whole_number(scoring.n_resamples, "n_resamples", 1)
    correction = (
        None
        if scoring.correction is None
        else member_named(Correction, scoring.correction, "correction")
    )
    check_alternative(scoring.alternative, scores_named(scoring.tested, "tested"))
    checked = replace(scoring, test=kind, correction=correction, n_resamples=n_resamples)
    # Models passed as arrays differ only in their probabilities.
    same_data = _of_the_same_data(given.models, given.cells, base)
    paired: Mapping[str, _Given] | str = _UNEVEN
    if not given.uneven:
        paired = _paired(same_data) if given.of_table else given.models
    if isinstance(paired, str):
        return _Compared(remarks=[paired])
    sides = {
        name: judged[name]
        if part is given.models[name]
        else labeled_claims(part.claims(scoring.k), scoring.unlabeled, scoring.k)
        for name, part in paired.items()
    }
    differences, n_comparisons = _differences(sides, base, checked)
    note = _stars_note(sides[base], base, n_comparisons, checked)
    remarks = [*_left_out(same_data, paired, scoring.unlabeled), note]
    return _Compared(differences, n_comparisons, note, remarks)


@dataclass(frozen=True, eq=False)
class _Given:
    """Arguments of `score` for the claims of one model, arrays (n_claims,)."""

    p: Any
    y: Any
    responses: Any
    folds: Any = None
    weights: Any = None
    claim_ids: list[Hashable] | None = None

    def claims(self, k: str | float) -> JudgedClaims:
        """Check and return all claims."""
        return judged_claims(
            self.p, self.y, self.responses, weights=self.weights, folds=self.folds, k=k
        )

    def arrays(self) -> dict[str, Any]:
        """The arrays by name, as arguments of the functions for curves."""
        return {name: getattr(self, name) for name in ("p", "y", "responses", "weights")}

    def taken(self, rows: NDArray[np.int64]) -> _Given:
        """The given rows, without claim ids."""
        p, y, responses, folds, weights = (
            None if each is None else each[rows]
            for each in (self.p, self.y, self.responses, self.folds, self.weights)
        )
        return _Given(p, y, responses, folds, weights)

    def n_usable(self, unlabeled: str) -> int:
        """Number of claims that scores and tests use under a policy for missing labels."""
        if unlabeled != LabelPolicy.EXCLUDE or self.y is None:
            return len(self.p)
        return sum(not is_missing(each) for each in self.y)

    def keys(self) -> list[tuple[Hashable, Hashable]]:
        """(response, claim) of every row; claims without ids are numbered within their response."""
        ids = range(len(self.p)) if self.responses is None else response_ids(self.responses)
        if self.claim_ids is not None:
            return list(zip(ids, self.claim_ids, strict=True))
        seen: dict[Hashable, int] = {}
        keys: list[tuple[Hashable, Hashable]] = []
        for each in ids:
            seen[each] = seen.get(each, 0) + 1
            keys.append((each, seen[each]))
        return keys


def _scored(
    name: str,
    every: JudgedClaims,
    labeled: JudgedClaims | None,
    scoring: _Scoring,
) -> ScoredModel:
    """Scores of one model.

    Raises:
        InputError: if no claim has a label and every score needs one.
    """
    scores = scoring.scores
    if labeled is None and all(each.needs_labels for each in scores):
        raise InputError(
            f"none of the {counted(every.p.size, 'atom')} has a label; label some, or set "
            "unlabeled to "
            "'false' or 'true'"
        )
    estimates = without_labels(scores)
    for needed, claims in ((False, every), (True, labeled)):
        wanted = [each for each in scores if each.needs_labels is needed]
        if wanted and claims is not None:
            estimates |= estimates_of(claims, wanted, scoring.intervals, scoring.samples)
    if "entropy" in estimates:
        warn_where_entropy_misorders(every.p)
    n_extreme = 0
    if labeled is not None:
        extreme = (labeled.p < LOGIT_CLIP) | (labeled.p > 1 - LOGIT_CLIP)
        n_extreme = int(extreme.sum())
    return ScoredModel(
        name=name,
        n_claims=0 if labeled is None else labeled.p.size,
        n_unlabeled=int(np.isnan(every.y).sum()),
        n_responses=0 if labeled is None else len(labeled.grouping.responses),
        effective=0.0
        if labeled is None
        else float(effective_number(labeled.grouping.sizes.astype(np.float64))),
        n_extreme=n_extreme,
        k=float(every.k[0]) if np.ptp(every.k) == 0 else math.nan,
        scores={each.name: estimates[each.name] for each in scores},
    )


def _differences(
    sides: Mapping[str, JudgedClaims | None],
    base: str,
    scoring: _Scoring,
) -> tuple[dict[str, dict[str, Difference]], int]:
    """Differences from the reference by model and score, corrected, and the number of tests."""
    reference = sides[base]
    compared = [
        (name, each)
        for name, side in sides.items()
        if name != base and side is not None and reference is not None
        for each in compare_judged(
            *(side, reference, scoring.tested),
            test=str(scoring.test),
            alternative=scoring.alternative,
            n_resamples=scoring.n_resamples,
            intervals=scoring.bands,
            settings=scoring.samples,
        )
    ]
    p_values = np.array([each.p_value for _, each in compared])
    corrected = np.full(p_values.size, np.nan)
    if scoring.correction is not None:
        corrected = adjust(p_values, scoring.correction)
    by_model: dict[str, dict[str, Difference]] = {}
    for (name, each), value in zip(compared, corrected.tolist(), strict=True):
        by_model.setdefault(name, {})[each.name] = replace(each, corrected=value)
    return by_model, int(np.isfinite(p_values).sum())


def _stars_note(
    reference: JudgedClaims | None, base: str, n_comparisons: int, scoring: _Scoring
) -> str:
    """Sentence that explains the stars."""
    if reference is None:
        return "Models are not tested against each other, because no claim has a label."
    if scoring.correction is None:
        return "P-values are not corrected, so that none is marked."
    test, alternative = PairedTest(str(scoring.test)), scoring.alternative
    side = "two-sided" if alternative == Alternative.TWO_SIDED else "one-sided"
    n_responses = len(reference.grouping.responses)
    used = resamples_used(test, n_responses, scoring.n_resamples)
    least = least_corrected(
        least_p_value(test, n_responses, used, alternative), n_comparisons, scoring.correction
    )
    legend, missing = stars_legend(least), unattainable_stars(least)
    drawn = "swaps" if test is PairedTest.PERMUTATION else "replicates"
    few = f", too few for {missing}" if legend and missing else ""
    times = f" ({used:,} {drawn}{few})" if used else ""
    compared = counted(n_comparisons, "comparison")
    return (
        f"{legend or 'No star is possible'} against {base}, {side} {test} tests{times} paired by "
        f"response, corrected over {compared}, shown or not ({scoring.correction.title()})."
    )


def _compared_names(
    scores: Sequence[ScoreDefinition], tested: Sequence[str] | None
) -> tuple[str, ...]:
    """Names of the compared scores; by default all that can differ for the same claims."""
    if tested is not None:
        return tuple(each.name for each in scores_named(tested, "tested")) if tested else ()
    return tuple(each.name for each in scores if not each.of_labels)


_CELL = "(cell)"
"""Column of cell names."""

_DATA = ("dataset", "data", "benchmark", "split")
"""Columns that identify the data: equal claim ids under different values are different claims."""


def _long_frame(
    frame: Any, y: str | None, responses: str | None, claim: str | None
) -> tuple[Any, str, str | None, str | None, str | None]:
    """The frame, and the names of its columns p, label, response and claim, None if missing."""
    named = {"y": y, "responses": responses, "claim": claim}
    for argument, column in named.items():
        if column is not None and not isinstance(column, str):
            raise InputError(f"p is a table, so that {argument} names a column of it; give a name")

    def known(*names: str) -> str | None:
        return next((name for name in names if name in frame.columns), None)

    return (
        frame,
        "p",
        y or known("label"),
        responses or known("response"),
        claim or known(*CLAIM_COLUMNS),
    )


def _with_cells(
    table: pd.DataFrame,
    p: Any,
    by: str | Sequence[str],
    response: str | None,
    claim: str | None,
) -> tuple[pd.DataFrame, dict[str, dict[str, Any]], str, list[str], bool]:
    """Rows that have a probability, with columns of cell names and of claim ids.

    Returns:
        The rows; the values of each cell by its name; the column of claim ids, which differ
        between data; sentences on omitted claims; and whether claims are identified only by their
        order while cells of the same data have different numbers of claims.
    """
    columns = [by] if isinstance(by, str) else list(by)
    for name in (*columns, p, *filter(None, (response, claim))):
        if name not in table:
            raise InputError(
                f"data has no column {name!r}; set by to some of "
                f"{', '.join(map(str, table.columns))}"
            )
    if not columns:
        raise InputError("by names no column; name the columns that identify a cell")
    keys = list(zip(*(_objects(table[name]) for name in columns), strict=True))
    names = [", ".join(map(str, key)) for key in keys]
    of_name = dict(zip(names, keys, strict=True))
    for name, key in zip(names, keys, strict=True):
        if of_name[name] != key:
            first_cell, two = (", ".join(map(repr, each)) for each in (of_name[name], key))
            raise InputError(
                f"two cells are called {name!r}, with {first_cell} and with {two} in "
                f"{', '.join(columns)}; give them other values"
            )
    cells = {name: dict(zip(columns, key, strict=True)) for name, key in of_name.items()}
    judged = table[p].notna().to_numpy()
    left_out = []
    missing = Counter(name for name, known in zip(names, judged, strict=True) if not known)
    if missing:
        left_out.append(f"Claims without a probability, left out: {_listed(missing)}.")
    data = [at for at, name in enumerate(columns) if name in _DATA]
    owners = [None] * len(table) if response is None else _objects(table[response])
    uneven = False
    if claim is not None:
        ids: list[Hashable] = list(_objects(table[claim]))
    else:
        # Number the claims within their response, or within the cell if there are no responses.
        seen: Counter[tuple[str, Hashable]] = Counter()
        ids = []
        for name, owner in zip(names, owners, strict=True):
            ids.append(seen[name, owner])
            seen[name, owner] += 1
        numbers: dict[str, set[Hashable]] = {name: set() for name in cells}
        for (name, owner), number in seen.items():
            numbers[name].add((owner, number))
        of_data = {name: tuple(of_name[name][at] for at in data) for name in cells}
        first = dict(zip(reversed(of_data.values()), reversed(of_data), strict=True))
        uneven = any(numbers[name] != numbers[first[key]] for name, key in of_data.items())
    claim_keys = [
        str((*(key[at] for at in data), claim_id)) for key, claim_id in zip(keys, ids, strict=True)
    ]
    with_names = table.assign(**{_CELL: names, _CLAIM: claim_keys})
    return with_names[judged], cells, _CLAIM, left_out, uneven


def _of_the_same_data(
    inputs: Mapping[str, _Given], cells: Mapping[str, Mapping[str, Any]], base: str
) -> dict[str, _Given]:
    """Models whose data are those of the reference; all models if there are no cells."""
    if base not in cells:
        return dict(inputs)
    data = {column: value for column, value in cells[base].items() if column in _DATA}
    return {
        name: part
        for name, part in inputs.items()
        if all(cells[name][column] == value for column, value in data.items())
    }


_CLAIM = "(claim)"
"""Column of claim ids that differ between data."""


def _data_frame(data: Any) -> pd.DataFrame:
    import pandas as pd

    if isinstance(data, pd.DataFrame):
        table = data
    else:
        try:
            table = pd.DataFrame(data)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"data is not a table ({error}); give a data frame, columns by name, or rows as "
                "dicts"
            ) from None
    if table.empty:
        raise InputError("data is empty; give a row per claim")
    return table


def _from_table(
    table: pd.DataFrame,
    p: str | Sequence[str],
    y: str | None,
    response: str | None,
    model: str | None,
    claim: str | None,
    weights: str | None,
    folds: str | None,
) -> dict[str, _Given]:
    """Claims of each model, by its name."""
    columns = [p] if isinstance(p, str) else list(p)
    named: dict[str, Sequence[str | None]] = {"p": columns, "y": [y], "responses": [response]}
    named |= {"model": [model], "claim": [claim], "weights": [weights], "folds": [folds]}
    for argument, wanted in named.items():
        for name in wanted:
            if name is not None and name not in table:
                raise InputError(
                    f"data has no column {name!r}; set {argument} to one of "
                    f"{', '.join(map(str, table.columns))}"
                )
    if not columns or len(set(columns)) < len(columns):
        raise InputError(f"p is {columns!r}; give one column of probabilities, or each once")
    if model is not None and len(columns) > 1:
        raise InputError("p names several columns and model another; give one or the other")

    def input_of(part: pd.DataFrame, column: str) -> _Given:
        labels, ids, fold = (
            None if name is None else _objects(part[name]) for name in (y, response, folds)
        )
        counts = None if weights is None else part[weights].to_numpy()
        claims = None if claim is None else response_ids(_objects(part[claim]), "claim")
        return _Given(_objects(part[column]), labels, ids, fold, counts, claims)

    if model is None:
        return {column: input_of(table, column) for column in columns}
    names = _objects(table[model])
    for row, name in enumerate(names):
        if is_missing(name):
            raise InputError(f"column {model!r} is empty in row {row}; name the model")
    texts = [str(name) for name in names]
    return {
        name: input_of(table[[text == name for text in texts]], columns[0])
        for name in dict.fromkeys(texts)
    }


def _objects(column: Any) -> NDArray[Any]:
    """Values of a column, with None for missing values."""
    values = column.to_numpy(dtype=object)
    return np.array([None if is_missing(value) else value for value in values], dtype=object)


_UNEVEN = (
    "Models are not tested against each other, because they have different numbers of claims; name "
    "the column of claim ids."
)


def _paired(inputs: Mapping[str, _Given]) -> dict[str, _Given] | str:
    """Claims that all models have, in the same order; or the reason why they cannot be paired."""
    keys = {name: part.keys() for name, part in inputs.items()}
    for name, claim_keys in keys.items():
        _check_once(name, claim_keys, "give each claim of a response once")
    first, *others = keys.values()
    nameless = all(part.claim_ids is None for part in inputs.values())
    responses = [{response for response, _ in claim_keys} for claim_keys in keys.values()]
    if others and not set.intersection(*responses):
        return (
            "Models are not tested against each other, because they have no response in common; "
            "name the column of responses, if there is one."
        )
    if nameless and any(set(claim_keys) != set(first) for claim_keys in others):
        return _UNEVEN
    of_others = [set(claim_keys) for claim_keys in others]
    shared = [key for key in first if all(key in claim_keys for claim_keys in of_others)]
    if not shared or not others:
        return "Models are not tested against each other, because they have no claim in common."
    paired = {}
    for name, part in inputs.items():
        # Rows that are all shared and in this order need no second check.
        paired[name] = part
        if keys[name] != shared:
            row_of = {key: position for position, key in enumerate(keys[name])}
            paired[name] = part.taken(np.array([row_of[key] for key in shared]))
    base, *rest = (part.y for part in paired.values())
    if base is not None and any(each.tolist() != base.tolist() for each in rest):
        return (
            "Models are not tested against each other, because claims that should be the same "
            "have different labels, or labels in only some of them"
            + ("; name the column of claim ids." if nameless else ".")
        )
    return paired


def _check_once(name: str, keys: Sequence[Hashable], remedy: str) -> None:
    if len(set(keys)) < len(keys):
        raise InputError(f"model {name!r} has a claim twice; {remedy}")


def _left_out(
    inputs: Mapping[str, _Given], paired: Mapping[str, _Given], unlabeled: str
) -> list[str]:
    """Remark for models that are compared on fewer claims than some of them have."""
    common = next(iter(paired.values()))
    if all(len(part.p) == len(common.p) for part in inputs.values()):
        return []
    of_each = ", ".join(f"{part.n_usable(unlabeled):,} of {name}" for name, part in inputs.items())
    all_count = all(part.n_usable(unlabeled) == len(part.p) for part in inputs.values())
    labeled = "" if all_count else "labeled "
    shared = counted(common.n_usable(unlabeled), f"{labeled}claim")
    return [f"Models are tested on the {shared} that all of them have, of {of_each}."]


def _remarks(
    models: Sequence[ScoredModel],
    intervals: IntervalSettings | None,
    extremes: Extremes,
    clustered: bool,
    folds: bool,
) -> list[str]:
    """Notes on the scores, one sentence each."""
    remarks = []
    if intervals is not None:
        unit = "responses" if clustered else "claims, taken as independent"
        remarks.append(f"In brackets: {100 * intervals.level:g}% intervals over {unit}.")
        remarks += _few_responses(models, intervals.level, unit.partition(",")[0])
    if any(estimate.value > estimate.upper for each in models for estimate in each.scores.values()):
        remarks.append(ABOVE_INTERVAL)
    if any(
        math.isfinite(estimate.coverage) for each in models for estimate in each.scores.values()
    ):
        remarks.append(COVERS)
    if any(each.n_unlabeled for each in models):
        remarks.append(f"Claims without a label: {_counts(models, 'n_unlabeled')}.")
    scored = models[0].scores
    if any(REGISTRY[name].of_logits for name in scored) and any(each.n_extreme for each in models):
        become = f"moved to {LOGIT_CLIP:g} and 1 - {LOGIT_CLIP:g}"
        if extremes is Extremes.LEAVE_OUT:
            become = "left out"
        remarks.append(
            f"Claims with a probability of 0 or 1, {become} where a score needs their logit: "
            f"{_counts(models, 'n_extreme')}."
        )
    if folds and "auroc" in scored:
        remarks.append("Probabilities are cross-fitted: AUROC compares claims of one fold.")
    return remarks


def _few_responses(models: Sequence[ScoredModel], level: float, unit: str) -> list[str]:
    """Remark on intervals whose coverage is uncertain, since they are of few responses."""
    fewest = min(models, key=lambda each: each.effective)
    unsure = [
        REGISTRY[name].title
        for name, estimate in fewest.scores.items()
        if math.isfinite(estimate.lower) and fewest.may_lack_kinds(level, name)
    ]
    all_unsure = fewest.may_lack_kinds(level)
    if not (all_unsure or unsure):
        return []
    which = "The intervals" if all_unsure else f"Intervals ({', '.join(unsure)})"
    return [missing_kind_warning(which, fewest.effective, level, unit=unit)]


def _counts(models: Sequence[ScoredModel], name: str) -> str:
    counts = {each.name: getattr(each, name) for each in models}
    return _listed({model: count for model, count in counts.items() if count})


def _listed(counts: Mapping[str, int]) -> str:
    """Text of counts by name, or of their sum if there are many names."""
    if len(counts) > MOST_DRAWN:
        return f"{sum(counts.values()):,} in {len(counts):,} models"
    return ", ".join(f"{count:,} of {name}" for name, count in counts.items())
