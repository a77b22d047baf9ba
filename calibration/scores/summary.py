"""Measures and scores of one method from the atoms of many responses, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibration.forecasts import Extremes, ScoreStatus, extremes_named
from calibration.grouping import group_by_response
from calibration.intervals import IntervalMethod, IntervalSettings, RatioEstimand, estimate_all
from calibration.labels import Labelled, LabelPolicy, apply_policy, remark_unlabelled
from calibration.scores.coverage import coverage_warning
from calibration.scores.definition import JudgedClaims, ScoreDefinition
from calibration.scores.measures import choose_k, warn_where_entropy_misorders
from calibration.scores.registry import MEASURES, REGISTRY, scores_named
from calibration.scores.score_intervals import auroc_interval
from calibration.scores.table import score_table
from calibration.tabular import Tabular
from calibration.validation import (
    Floats,
    Integers,
    check_lengths,
    label_array,
    probability_array,
)

_COUNTS = ("supported", "contradicted", "undecided")


@dataclass(frozen=True, eq=False, repr=False)
class ResponseMeasures(Tabular):
    """The measures of every response, which need no labels. Arrays have shape (n_responses,).

    Attributes:
        responses: response ids, in order of first appearance.
        n_atoms: number of atoms.
        supported: number of atoms with P > 1/2.
        contradicted: number of atoms with P < 1/2.
        undecided: number of atoms with P = 1/2, up to the tolerance.
        precision: Pr = supported / n_atoms.
        k: the K of F1@K.
        f1_at_k: harmonic mean of Pr and R_K, 0 where no atom is supported.
        entropy: E, the mean of -P log10 P.
        mean_surprisal: the mean of -log10 P.
        expected_precision: the mean of P.
    """

    columns: ClassVar = (
        *("responses", "n_atoms", "supported", "contradicted", "undecided", "precision", "k"),
        *("f1_at_k", "entropy", "mean_surprisal", "expected_precision"),
    )

    responses: Sequence[Hashable]
    n_atoms: Integers
    supported: Integers
    contradicted: Integers
    undecided: Integers
    precision: Floats
    k: Floats
    f1_at_k: Floats
    entropy: Floats
    mean_surprisal: Floats
    expected_precision: Floats


@dataclass(frozen=True)
class Summary(Tabular):
    """How one method does on one dataset; nan where a number is not defined.

    Attributes:
        n_responses: number of responses.
        n_atoms: number of atoms, labelled or not.
        n_labelled: number of atoms that have a human label.
        label_policy: what the other atoms count as in the scores.
        supported: mean over responses of the number of atoms with P > 1/2 (#S).
        contradicted: mean over responses of the number of atoms with P < 1/2 (#C).
        undecided: mean over responses of the number of atoms with P = 1/2 (#U).
        precision: mean over responses of Pr, over all atoms.
        human_precision: mean of Pr*, the share labelled true, over responses with labelled atoms.
        precision_mae: mean over the same responses of |Pr - Pr*|, both over labelled atoms.
        f1_at_k: mean over responses of F1@K.
        k_policy: how K was chosen.
        k: the K of every response; nan if it differs between them.
        entropy: mean over responses of E, base 10. It does not order responses by truth.
        mean_surprisal: mean over responses of the mean of -log10 P.
        expected_precision: mean over responses of the mean of P.
        f1: F1 of the true class, pooled over labelled atoms.
        accuracy: share of labelled atoms judged as their label says, pooled.
        brier: Brier score, pooled over labelled atoms.
        log_loss: log loss in nats, pooled over labelled atoms.
    """

    n_responses: int
    n_atoms: int
    n_labelled: int
    label_policy: str
    supported: float
    contradicted: float
    undecided: float
    precision: float
    human_precision: float
    precision_mae: float
    f1_at_k: float
    k_policy: str
    k: float
    entropy: float
    mean_surprisal: float
    expected_precision: float
    f1: float
    accuracy: float
    brier: float
    log_loss: float

    @property
    def n_unlabelled(self) -> int:
        """The number of atoms that have no human label."""
        return self.n_atoms - self.n_labelled

    def rows(self) -> list[dict[str, Any]]:
        """One row."""
        return [asdict(self)]


def measure_responses(
    p: ArrayLike, responses: Any, *, k: str | float = "median"
) -> ResponseMeasures:
    """Measures of `calibration.scores.measures` for every response at once.

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        responses: response ids (n,).
        k: how the K of F1@K is chosen, as in `choose_k`.

    Raises:
        InputError: for bad arrays, lengths that differ, or an unknown `k`.
    """
    judged = _all_claims(p, None, responses, k)
    warn_where_entropy_misorders(judged.p)
    own: dict[str, Any] = {}
    for name in ResponseMeasures.columns:
        if name in REGISTRY and (ratio := REGISTRY[name].ratio) is not None:
            values = ratio(judged).numerator[:, 0]
            own[name] = values.astype(np.int64) if name in _COUNTS else values
    return ResponseMeasures(
        responses=judged.grouping.responses, n_atoms=judged.grouping.sizes, k=judged.k, **own
    )


def summarise(
    p: ArrayLike,
    y: Any,
    responses: Any,
    *,
    unlabelled: str = LabelPolicy.EXCLUDE,
    k: str | float = "median",
) -> Summary:
    """Summary of a method on a dataset (the columns of FactReasoner, tables 3 to 7).

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        y: labels (n,): True or False (1 or 0), None or nan where unlabelled; or None if the
            dataset has no labels at all.
        responses: response ids (n,).
        unlabelled: what atoms without a label count as in scores that need one, as in
            `apply_policy`: left out by default. Measures that need no labels are over all atoms.
        k: how the K of F1@K is chosen, as in `choose_k`.

    Raises:
        InputError: for bad arrays, lengths that differ, unlabelled atoms where `unlabelled` is
            ``error``, or an unknown policy or `k`.
    """
    every = _all_claims(p, y, responses, k)
    scored = apply_policy(every.p, every.y, policy=unlabelled)
    if y is not None:
        remark_unlabelled(scored, unlabelled)
    warn_where_entropy_misorders(every.p)
    labelled = _labelled(every, scored)
    values = {}
    for name in MEASURES:
        own = labelled if REGISTRY[name].needs_labels else every
        values[name] = math.nan if own is None else REGISTRY[name].value(own).value
    return Summary(
        n_responses=len(every.grouping.responses),
        n_atoms=every.p.size,
        n_labelled=every.p.size - scored.n_unlabelled,
        label_policy=str(unlabelled),
        k_policy=str(k),
        k=float(every.k[0]) if np.ptp(every.k) == 0 else math.nan,
        **values,
    )


@dataclass(frozen=True)
class EstimatedScore:
    """One score of one method; nan where a number is not defined.

    Attributes:
        value: the score.
        lower: lower end of its interval over responses.
        upper: its upper end.
        status: ``ok``, ``clipped``, or why there is no value.
        coverage: what intervals of this score cover where that is not what they promise, as
            `coverage_warning` gives it; else nan.
    """

    value: float
    lower: float
    upper: float
    status: ScoreStatus
    coverage: float = math.nan


NO_LABELS = EstimatedScore(math.nan, math.nan, math.nan, ScoreStatus.NO_LABELS)
"""A score that needs labels where there are none."""


def estimate_scores(
    p: ArrayLike,
    y: Any,
    responses: Any,
    scores: Sequence[str] = MEASURES,
    *,
    unlabelled: str = LabelPolicy.EXCLUDE,
    k: str | float = "median",
    folds: Any = None,
    intervals: IntervalSettings | None = None,
    extremes: str = Extremes.CLIP,
) -> dict[str, EstimatedScore]:
    """Any scores of one method by name, each with its one interval over responses.

    What varies is the response: its claims are dependent. Scores that need no labels are over all
    claims, as in `summarise`.

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        y: labels (n,), as for `summarise`; None if there are none.
        responses: response ids (n,).
        scores: names of `calibration.scores.REGISTRY`.
        unlabelled: what atoms without a label count as, as for `summarise`.
        k: how the K of F1@K is chosen.
        folds: fold of each atom, (n,), if `p` is cross-fitted: AUROC is then within folds.
        intervals: how intervals are made.
        extremes: what becomes of p of 0 and 1 where a score needs their logit.

    Raises:
        InputError: as `summarise`, and for an unknown score.
    """
    chosen = scores_named(scores)
    settings, treatment = intervals or IntervalSettings(), extremes_named(extremes)
    every = _all_claims(p, y, responses, k)
    scored = apply_policy(every.p, every.y, policy=unlabelled)
    labelled = _labelled(every, scored, folds)
    found = dict.fromkeys(scores, NO_LABELS)
    for needed, claims in ((False, every), (True, labelled)):
        own = [score for score in chosen if score.needs_labels is needed]
        if own and claims is not None:
            found |= estimates_of(claims, own, settings, treatment)
    return found


def estimates_of(
    claims: JudgedClaims,
    scores: Sequence[ScoreDefinition],
    settings: IntervalSettings,
    extremes: Extremes = Extremes.CLIP,
) -> dict[str, EstimatedScore]:
    """Scores of claims by name, with their intervals; AUROC within folds if there are any.

    Args:
        claims: the claims, all labelled where a score needs that.
        scores: the scores.
        settings: how intervals are made; the one that a score has is the same whatever they say.
        extremes: what becomes of p of 0 and 1 where a score needs their logit.
    """
    delta = replace(settings, method=IntervalMethod.DELTA)
    found: dict[str, EstimatedScore] = {}
    others = []
    for score in scores:
        if score.ratio is None and (score.within_folds is None or claims.folds is None):
            others.append(score.name)
            continue
        value, status = score.value(claims, extremes)
        ends = math.nan, math.nan
        if math.isfinite(value) and score.ratio is not None:
            # One after the other: each has sums of every response.
            ratio = RatioEstimand(score.name, score.sums(claims), score.scale)
            (interval,) = estimate_all([ratio], delta)
            ends = float(interval.lower[0]), float(interval.upper[0])
        elif math.isfinite(value):
            own = auroc_interval(
                claims.p, claims.y, claims.grouping, settings.level, folds=claims.folds
            )
            ends = own.lower, own.upper
        found[score.name] = EstimatedScore(value, *ends, status)
    if others:
        for row in score_table(
            *(claims.p, claims.y, None, claims.grouping.index),
            *(settings.n_bootstrap, settings.seed),
            scores=others,
            level=settings.level,
            extremes=extremes,
        ):
            status = ScoreStatus(row.status)
            found[row.score] = EstimatedScore(row.value, row.lower, row.upper, status)
    n_responses = len(claims.grouping.responses)
    for name, each in found.items():
        if math.isfinite(each.value):
            coverage = coverage_warning(name, n_responses, settings.level)
            found[name] = replace(each, coverage=coverage)
    return {score.name: found[score.name] for score in scores}


def _all_claims(p: ArrayLike, y: Any, responses: Any, k: str | float) -> JudgedClaims:
    """All claims of a method, checked; labels are nan where there are none."""
    probabilities = probability_array(p)
    labels = np.full(probabilities.size, np.nan) if y is None else label_array(y)
    grouping = group_by_response(responses)
    check_lengths(p=probabilities.size, y=labels.size, responses=grouping.index.size)
    return JudgedClaims(probabilities, labels, grouping, choose_k(k, grouping.sizes))


def _labelled(every: JudgedClaims, scored: Labelled, folds: Any = None) -> JudgedClaims | None:
    """Those claims that scores which need labels are over, if there are any."""
    if not scored.p.size:
        return None
    grouping = every.grouping if scored.kept.all() else every.grouping.of(scored.kept)
    fold = None if folds is None else scored.grouping(folds, "folds").index
    # Scores that need labels ask for no K.
    return JudgedClaims(scored.p, scored.y, grouping, choose_k(1, grouping.sizes), fold)
