"""Report: every score of one or more models on one table of claims, with intervals and tests.

from calibration import report
found = report(frame, p="p", y="label", response="answer", model="model", recalibrate=["platt"])
found.to_frame(), found.tests, found.figures(), found.recalibrated["GPT-4"]
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.forecasts import (
    LOGIT_CLIP,
    Extremes,
    clipped_weight,
    extremes_named,
    forecasts,
    pooled,
)
from calibration.grouping import response_ids
from calibration.intervals import IntervalSettings
from calibration.labels import LabelPolicy, labelled_atoms
from calibration.scores.coverage import COVERS
from calibration.scores.logistic_calibration import LOGIT_SCORES
from calibration.scores.registry import scores_named
from calibration.scores.summary import EstimatedScore, estimate_scores
from calibration.significance.table import MethodTable, compare_methods
from calibration.tabular import Tabular
from calibration.validation import check_lengths, is_missing
from factormodels.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from calibration.curves import CorpCurve, RiskCurve

REPORTED = (
    *("brier", "corp_brier_miscalibration", "corp_brier_discrimination", "corp_brier_uncertainty"),
    *("log_loss", "auroc", "ece", "smooth_ece", "calibration_slope", "calibration_intercept"),
    *("accuracy", "aurc"),
)
"""The scores of a report unless it is told which."""

TESTED = ("brier", "log_loss", "auroc", "ece", "accuracy")
"""Those of them that are tested unless it is told which."""

AS_GIVEN = "as given"
"""Name of probabilities beside their recalibrations."""

MOST_DRAWN = 6
"""Models in one figure: more curves than colours tell nothing."""


@dataclass(frozen=True)
class ReportedModel:
    """The row of one model.

    Attributes:
        name: its name.
        n_claims: number of its labelled claims.
        n_unlabelled: number of its claims that have no label.
        n_responses: number of responses that hold a labelled claim.
        n_extreme: number of labelled claims whose p has no logit, being 0 or 1 to six decimals.
        scores: its scores by name.
    """

    name: str
    n_claims: int
    n_unlabelled: int
    n_responses: int
    n_extreme: int
    scores: Mapping[str, EstimatedScore]


@dataclass(frozen=True, repr=False)
class CalibrationReport(Tabular):
    """Scores of models with intervals over responses, and paired tests between them.

    Attributes:
        models: a row per model, in order of first appearance.
        scores: names of the scores, in order.
        tests: every model but the reference against it, over the claims that all models have;
            None for a single model, or where claims cannot be paired.
        level: nominal coverage of the intervals.
        remarks: what a reader must know, a sentence each.
        recalibrated: by model, a report of its probabilities as given and of their recalibrations,
            if any were requested.
        intervals: how intervals and bands are made.
        unlabelled: what claims without a label count as.
        claims: what each model says of its claims.
    """

    models: tuple[ReportedModel, ...]
    scores: tuple[str, ...]
    tests: MethodTable | None
    level: float
    remarks: tuple[str, ...]
    recalibrated: Mapping[str, CalibrationReport] = field(default_factory=dict)
    intervals: IntervalSettings = field(default_factory=IntervalSettings, repr=False)
    unlabelled: str = LabelPolicy.EXCLUDE
    claims: Mapping[str, _Judged] = field(default_factory=dict, repr=False)

    def rows(self) -> list[dict[str, Any]]:
        """One row per model: every score, with its ends and more under SCORE_lower and so on.

        SCORE_coverage is what the interval covers in simulations, where that is not its level.
        """
        return [
            {
                "model": each.name,
                "n_claims": each.n_claims,
                "n_unlabelled": each.n_unlabelled,
                "n_responses": each.n_responses,
                "n_extreme": each.n_extreme,
            }
            | {
                key: value
                for name, score in each.scores.items()
                for key, value in (
                    (name, score.value),
                    (f"{name}_lower", score.lower),
                    (f"{name}_upper", score.upper),
                    (f"{name}_coverage", score.coverage),
                    (f"{name}_status", str(score.status)),
                )
            }
            for each in self.models
        ]

    def curves(self) -> tuple[dict[str, CorpCurve], dict[str, RiskCurve]]:
        """Reliability, and risk against coverage, by model, with bands over responses.

        Where there are more models than `MOST_DRAWN`, of those with the lowest Brier scores.
        """
        from calibration.curves import corp_curve, risk_curve
        from calibration.scores.pointwise import mean_loss

        def brier(name: str) -> float:
            part = self.claims[name]
            return mean_loss(
                forecasts(part.p, part.y, None, None, self.unlabelled).sample(), "brier"
            )

        names = list(self.claims)
        if len(names) > MOST_DRAWN:
            names = sorted(names, key=brier)[:MOST_DRAWN]
        parts = {name: self.claims[name] for name in names}
        settings: dict[str, Any] = {
            "n_bootstrap": self.intervals.n_bootstrap,
            "seed": self.intervals.seed,
            "level": self.level,
            "unlabelled": self.unlabelled,
        }
        return (
            {k: corp_curve(v.p, v.y, responses=v.responses, **settings) for k, v in parts.items()},
            {k: risk_curve(v.p, v.y, responses=v.responses, **settings) for k, v in parts.items()},
        )

    def figures(self) -> dict[str, Figure]:
        """The curves of `curves` drawn: ``reliability`` and ``risk_coverage``."""
        from calibration.figures import corp_diagram, risk_coverage_figure

        reliability, risks = self.curves()
        return {
            "reliability": corp_diagram(reliability),
            "risk_coverage": risk_coverage_figure(risks),
        }

    def stars(self, model: str, score: str) -> str:
        """Marks of the corrected p-value against the reference, if there was a test."""
        if self.tests is None or score not in self.tests.measures:
            return ""
        return self.tests.cell(model, score).stars


def report(
    frame: Any,
    p: str | Sequence[str] = "p",
    y: str = "y",
    response: str | None = "response",
    model: str | None = None,
    *,
    claim: str | None = None,
    fold: str | None = None,
    scores: Sequence[str] = REPORTED,
    tested: Sequence[str] = TESTED,
    reference: str | None = None,
    correction: str | None = "holm",
    n_resamples: int = 10_000,
    recalibrate: Sequence[str] = (),
    n_folds: int = 5,
    intervals: IntervalSettings | None = None,
    extremes: str = Extremes.CLIP,
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> CalibrationReport:
    """Scores of one or more models on a table of claims, with intervals and paired tests.

    The table is long, a row per claim and model, or wide, with a column of probabilities per model.
    Tests are over the claims that all models have. In a long table claims are identified by the
    column `claim`; without it those of a response are paired in their order, which all models must
    have in common: as many claims, with the same labels.

    Args:
        frame: a data frame, columns by name, or rows as dicts.
        p: column of the probabilities of being true; several columns, one per model, if wide.
        y: column of the labels, True or False, None where unlabelled.
        response: column of the response ids; None if every claim is a response of its own.
        model: column of the model's name, if long; None for one model.
        claim: column of claim ids, unique within a response and model.
        fold: column of the folds, if probabilities are cross-fitted: AUROC is then within folds.
        scores: names of scores, of `calibration.scores.REGISTRY`.
        tested: names of the scores that are tested between models; none for no tests.
        reference: the model that the others are tested against; None for the first.
        correction: of the p-values, as in `compare_methods`.
        n_resamples: permutations of each test, as in `compare_methods`.
        recalibrate: recalibrations of each model, as in `recalibration_report`.
        n_folds: folds of responses of these.
        intervals: how intervals are made, and the seed of everything.
        extremes: what becomes of p of 0 and 1 where a score needs their logit: ``clip``, or
            ``leave-out``; the report says how many there are.
        unlabelled: what claims without a label count as, as in `apply_policy`.

    Raises:
        InputError: for a column that is not there, bad values, or unknown names.
    """
    scores_named(scores)
    treatment = extremes_named(extremes)
    settings = IntervalSettings() if intervals is None else intervals
    table = _data_frame(frame)
    judged = _models(table, p, y, response, model, claim, fold)
    found = tuple(
        _reported(name, part, tuple(scores), settings, treatment, unlabelled)
        for name, part in judged.items()
    )
    remarks = _remarks(found, settings, treatment, response is not None, fold is not None)
    tests = None
    if len(judged) > 1 and tested:
        paired = _paired(judged)
        if isinstance(paired, str):
            remarks.append(paired)
        else:
            any_model = next(iter(paired.values()))
            shared = any_model.y.size
            if any(part.y.size > shared for part in judged.values()):
                remarks.append(
                    f"Models are tested on the {shared:,} claims that all of them have, of "
                    f"{', '.join(f'{part.y.size:,} of {name}' for name, part in judged.items())}."
                )
            # Claims that all models have, in one order, have been estimated already.
            same = (
                treatment is Extremes.CLIP
                and set(tested) <= set(scores)
                and all(
                    np.array_equal(own.p, judged[name].p)
                    and own.y.size == judged[name].y.size
                    and np.array_equal(own.responses, judged[name].responses)
                    for name, own in paired.items()
                )
            )
            tests = compare_methods(
                {name: part.p for name, part in paired.items()},
                any_model.y,
                any_model.responses,
                folds=any_model.folds,
                reference=reference,
                measures=tested,
                correction=correction,
                n_resamples=n_resamples,
                intervals=settings,
                unlabelled=unlabelled,
                estimated={each.name: each.scores for each in found} if same else None,
            )
            remarks.append(tests.stars_note())
    recalibrated = {
        name: recalibration_report(
            *(part.p, part.y, part.responses),
            recalibrate,
            n_folds=n_folds,
            scores=scores,
            tested=tested,
            correction=correction,
            n_resamples=n_resamples,
            intervals=settings,
            unlabelled=unlabelled,
        )
        for name, part in judged.items()
        if recalibrate
    }
    return CalibrationReport(
        models=found,
        scores=tuple(scores),
        tests=tests,
        level=settings.level,
        remarks=tuple(remarks),
        recalibrated=recalibrated,
        intervals=settings,
        unlabelled=str(unlabelled),
        claims=judged,
    )


def recalibration_report(
    p: ArrayLike,
    y: Any,
    responses: Any,
    recalibrate: Sequence[str],
    *,
    n_folds: int = 5,
    scores: Sequence[str] = REPORTED,
    tested: Sequence[str] = TESTED,
    correction: str | None = "holm",
    n_resamples: int = 10_000,
    intervals: IntervalSettings | None = None,
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> CalibrationReport:
    """Probabilities as given beside their recalibrations, each learned on other responses.

    Recalibrations are tested against `AS_GIVEN`. ``best`` is chosen within each fold, among those
    that are named beside it and leaving probabilities alone, or among all, so that no claim decides
    on the map it is judged by. A map that cannot be learned is left out with a remark.

    Args:
        p: probabilities (n,).
        y: labels (n,), True or False, None where unlabelled.
        responses: response ids (n,), which no fold splits.
        recalibrate: names of `calibration.recalibration.RECALIBRATORS`, with - for _ if you like.
        n_folds: folds of responses; fewer where there are fewer responses.
        scores: as in `report`; so are the others.

    Raises:
        InputError: for an unknown name, bad arrays or bad settings.
    """
    from calibration.recalibration import RECALIBRATORS, BestRecalibrator, cross_fit

    settings = IntervalSettings() if intervals is None else intervals
    names = {name.replace("-", "_"): name for name in recalibrate}
    groups = len(set(response_ids(responses)))
    for key, name in names.items():
        if key not in RECALIBRATORS:
            raise InputError(f"recalibrate has {name!r}; use some of {', '.join(RECALIBRATORS)}")
    inner = ["none", *(key for key in names if key != "best")]
    found: dict[str, Any] = {AS_GIVEN: p}
    fold, missing = None, []
    for key, name in names.items():
        candidates = inner if len(inner) > 1 else None
        best = key == "best"
        estimator = (
            BestRecalibrator(candidates, seed=settings.seed) if best else RECALIBRATORS[key]()
        )
        try:
            fitted = cross_fit(
                *(estimator, p, y, responses, min(n_folds, groups), settings.seed),
                unlabelled=unlabelled,
            )
        except InputError as error:
            # Too few claims for one map are no reason to lose the others.
            missing.append(f"{name} cannot be learned ({error}).")
            continue
        found[name], fold = fitted.p, fitted.fold
    table = {**found, "y": y, "response": responses}
    told = report(
        table if fold is None else {**table, "fold": fold},
        p=list(found),
        response="response",
        fold=None if fold is None else "fold",
        scores=scores,
        tested=tested if len(found) > 1 else (),
        reference=AS_GIVEN,
        correction=correction,
        n_resamples=n_resamples,
        intervals=settings,
        unlabelled=unlabelled,
    )
    return replace(told, remarks=(*told.remarks, *missing))


@dataclass(frozen=True, eq=False)
class _Judged:
    """What one model says of its claims; arrays of objects (n_claims,) as the table has them."""

    p: NDArray[Any]
    y: NDArray[Any]
    responses: NDArray[Any]
    claims: list[Hashable] | None
    folds: NDArray[Any] | None


def _data_frame(frame: Any) -> pd.DataFrame:
    import pandas as pd

    if isinstance(frame, pd.DataFrame):
        table = frame
    else:
        try:
            table = pd.DataFrame(frame)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"frame is not a table ({error}); give a data frame, columns by name, or rows as "
                "dicts"
            ) from None
    if table.empty:
        raise InputError("frame is empty; give a row per claim")
    return table


def _models(
    table: pd.DataFrame,
    p: str | Sequence[str],
    y: str,
    response: str | None,
    model: str | None,
    claim: str | None,
    fold: str | None,
) -> dict[str, _Judged]:
    """What each model says, by its name."""
    columns = [p] if isinstance(p, str) else list(p)
    for argument, wanted in (("p", columns), ("y", [y]), ("response", [response]),
                            ("model", [model]), ("claim", [claim]), ("fold", [fold])):  # fmt: skip
        for name in wanted:
            if name is not None and name not in table:
                raise InputError(
                    f"frame has no column {name!r}; set {argument} to one of "
                    f"{', '.join(map(str, table.columns))}"
                )
    if not columns or len(set(columns)) < len(columns):
        raise InputError(f"p is {columns!r}; give one column of probabilities, or each once")
    if model is not None and len(columns) > 1:
        raise InputError("p names several columns and model another; give one or the other")

    def judged(part: pd.DataFrame, column: str) -> _Judged:
        responses = np.arange(len(part)) if response is None else _objects(part[response])
        claims = None if claim is None else response_ids(_objects(part[claim]), "claim")
        folds = None if fold is None else _objects(part[fold])
        return _Judged(_objects(part[column]), _objects(part[y]), responses, claims, folds)

    if model is None:
        return {column: judged(table, column) for column in columns}
    names = _objects(table[model])
    for place, name in enumerate(names):
        if is_missing(name):
            raise InputError(f"column {model!r} is empty in row {place}; name the model")
    texts = [str(name) for name in names]
    return {
        name: judged(table[[text == name for text in texts]], columns[0])
        for name in dict.fromkeys(texts)
    }


def _objects(column: Any) -> NDArray[Any]:
    """Values of a column, what is missing as None."""
    values = column.to_numpy(dtype=object)
    return np.array([None if is_missing(value) else value for value in values], dtype=object)


def _reported(
    name: str,
    part: _Judged,
    scores: tuple[str, ...],
    settings: IntervalSettings,
    extremes: Extremes,
    unlabelled: str,
) -> ReportedModel:
    try:
        atoms = labelled_atoms(part.p, part.y, unlabelled)
        found = estimate_scores(
            *(part.p, part.y, part.responses, scores),
            unlabelled=unlabelled,
            folds=part.folds,
            intervals=settings,
            extremes=extremes,
        )
        sample = pooled(part.p, part.y, None, unlabelled)
    except InputError as error:
        raise InputError(f"model {name!r}: {error}") from None
    return ReportedModel(
        name=name,
        n_claims=atoms.p.size,
        n_unlabelled=atoms.n_unlabelled,
        n_responses=len(atoms.grouping(part.responses).responses),
        n_extreme=int(clipped_weight(sample)),
        scores=found,
    )


def _paired(judged: Mapping[str, _Judged]) -> dict[str, _Judged] | str:
    """The claims that all models have, in one order; or why they cannot be paired."""
    keys = {}
    for name, part in judged.items():
        own = _claim_keys(part)
        if len(set(own)) < len(own):
            raise InputError(
                f"model {name!r} has a claim twice; give each claim of a response once"
            )
        keys[name] = own
    first, *others = keys.values()
    if next(iter(judged.values())).claims is None and any(set(own) != set(first) for own in others):
        return (
            "Models are not tested against each other, for they have different numbers of claims; "
            "name the column of claim ids."
        )
    of_others = [set(own) for own in others]
    shared = [key for key in first if all(key in own for own in of_others)]
    if not shared:
        return "Models are not tested against each other, for they have no claim in common."
    paired = {}
    for name, part in judged.items():
        place = {key: position for position, key in enumerate(keys[name])}
        rows = np.array([place[key] for key in shared])
        folds = None if part.folds is None else part.folds[rows]
        paired[name] = _Judged(part.p[rows], part.y[rows], part.responses[rows], None, folds)
    base, *rest = paired.values()
    if any(each.y.tolist() != base.y.tolist() for each in rest):
        return (
            "Models are not tested against each other, for claims that should be the same have "
            "different labels."
        )
    return paired


def _claim_keys(part: _Judged) -> list[tuple[Hashable, Hashable]]:
    """(response, claim) of every row; the claim's number in its response where it has no id."""
    responses = response_ids(part.responses)
    if part.claims is not None:
        check_lengths(claims=len(part.claims), responses=len(responses))
        return list(zip(responses, part.claims, strict=True))
    seen: dict[Hashable, int] = {}
    keys: list[tuple[Hashable, Hashable]] = []
    for each in responses:
        seen[each] = seen.get(each, 0) + 1
        keys.append((each, seen[each]))
    return keys


def _remarks(
    models: Sequence[ReportedModel],
    settings: IntervalSettings,
    extremes: Extremes,
    clustered: bool,
    folds: bool,
) -> list[str]:
    """What a reader must know of the scores, a sentence each."""
    unit = "responses" if clustered else "claims, taken as independent"
    remarks = [f"In brackets: {100 * settings.level:g}% intervals over {unit}."]
    if any(math.isfinite(own.coverage) for each in models for own in each.scores.values()):
        remarks.append(COVERS)
    if any(each.n_unlabelled for each in models):
        remarks.append(f"Claims without a label: {_counts(models, 'n_unlabelled')}.")
    of_logits = any(LOGIT_SCORES & set(each.scores) for each in models)
    if of_logits and any(each.n_extreme for each in models):
        become = f"moved to {LOGIT_CLIP:g} and 1 - {LOGIT_CLIP:g}"
        if extremes is Extremes.LEAVE_OUT:
            become = "left out"
        remarks.append(
            f"Claims with p of 0 or 1, {become} where a score needs their logit: "
            f"{_counts(models, 'n_extreme')}."
        )
    if folds and any("auroc" in each.scores for each in models):
        remarks.append("Probabilities are cross-fitted: AUROC compares claims of one fold.")
    return remarks


def _counts(models: Sequence[ReportedModel], name: str) -> str:
    return ", ".join(
        f"{getattr(each, name):,} of {each.name}" for each in models if getattr(each, name)
    )
