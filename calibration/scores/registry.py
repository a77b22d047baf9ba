"""Every score by name: what it means, which way is better, and how its interval is made.

A score has one name wherever it is asked for or given: the rows of `score_table`, the fields of
`summarise`, the columns of `compare_methods`, the `measures` of a study. This is the one place that
says what a table calls it and how its one interval is made, chosen by how often it holds the truth
(`calibration.scores.intervals.coverage`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType

from calibration.intervals import IntervalMethod, Scale


@dataclass(frozen=True)
class ScoreDefinition:
    """What is known of a score before it is computed.

    Attributes:
        name: its name.
        title: what a table calls it.
        meaning: what it is, in a line.
        higher_is_better: which way is better; None where neither is.
        needs_labels: whether it compares probabilities with labels.
        scale: what values it takes.
        interval: how its interval is made.
        range: least and largest value that it can have.
    """

    name: str
    title: str
    meaning: str
    higher_is_better: bool | None
    needs_labels: bool
    scale: Scale
    interval: IntervalMethod
    range: tuple[float, float]


_HIGHER, _LOWER, _NEITHER = True, False, None
_LABELS, _NO_LABELS = True, False
_SHARE, _UNIT = Scale.PROBABILITY, Scale.UNIT
_COUNT, _NUMBER = Scale.POSITIVE, Scale.NUMBER
_SUMS, _JACKKNIFE, _INVERSION, _BASE_RATE = (
    *(IntervalMethod.DELTA, IntervalMethod.JACKKNIFE),
    *(IntervalMethod.INVERSION, IntervalMethod.BASE_RATE),
)
_ANY, _POSITIVE, _FROM_0_TO_1 = (-math.inf, math.inf), (0.0, math.inf), (0.0, 1.0)
_BRIER_PART, _LOG_PART = (0.0, 0.25), (0.0, math.log(2))
_ERROR, _AREA = (_NUMBER, _INVERSION, _FROM_0_TO_1), (_UNIT, _JACKKNIFE, _FROM_0_TO_1)
_GAIN, _SPREAD = (_NUMBER, _INVERSION, _BRIER_PART), (_NUMBER, _BASE_RATE, _BRIER_PART)
_COEFFICIENT, _TEST = (_NUMBER, _JACKKNIFE, _ANY), (_NUMBER, IntervalMethod.NONE, _ANY)

_SUMMARISED = (
    ("precision",          "Pr",        _NO_LABELS, _SHARE,  _HIGHER,
     "share of atoms with p > 1/2, mean over responses"),
    ("f1_at_k",            "F1@K",      _NO_LABELS, _UNIT,  _HIGHER,
     "harmonic mean of Pr and recall up to K, over responses"),
    ("entropy",            "E",         _NO_LABELS, _COUNT, _NEITHER,
     "mean of -p log10 p, mean over responses"),
    ("precision_mae",      "MAE",       _LABELS,    _UNIT,  _LOWER,
     "mean over responses of |Pr - Pr*|"),
    ("f1",                 "F1",        _LABELS,    _UNIT,  _HIGHER,
     "F1 of the class of true atoms"),
    ("brier",              "Brier",     _LABELS,    _UNIT,  _LOWER,
     "mean of (p - y)^2"),
    ("log_loss",           "Log loss",  _LABELS,    _COUNT, _LOWER,
     "mean of -ln of the probability of the label, in nats"),
    ("accuracy",           "Accuracy",  _LABELS,    _SHARE,  _HIGHER,
     "share of atoms judged as their label says"),
    ("expected_precision", "E[Pr]",     _NO_LABELS, _UNIT,  _HIGHER,
     "mean of p, mean over responses"),
    ("mean_surprisal",     "Surprisal", _NO_LABELS, _COUNT, _LOWER,
     "mean of -log10 p, mean over responses"),
    ("human_precision",    "Pr*",       _LABELS,    _SHARE,  _NEITHER,
     "share of atoms labelled true, mean over responses"),
    ("supported",          "#S",        _NO_LABELS, _COUNT, _HIGHER,
     "number of atoms with p > 1/2, mean over responses"),
    ("contradicted",       "#C",        _NO_LABELS, _COUNT, _LOWER,
     "number of atoms with p < 1/2, mean over responses"),
    ("undecided",          "#U",        _NO_LABELS, _COUNT, _NEITHER,
     "number of atoms with p = 1/2, mean over responses"),
)  # fmt: skip
"""The scores of `summarise`: name, title, whether it needs labels, what values it takes, which way
is better, meaning. They are ratios of sums over responses, or functions of some."""

_TABULATED = (
    ("spherical", "Spherical", _LOWER, _UNIT, _SUMS, _FROM_0_TO_1,
     "mean of one minus the spherical score"),
    ("murphy_reliability", "Reliability", _LOWER, *_ERROR,
     "Brier score, part due to miscalibration of bins"),
    ("murphy_resolution", "Resolution", _HIGHER, *_GAIN,
     "Brier score, part that bins with other shares take off"),
    ("murphy_uncertainty", "Uncertainty", _NEITHER, *_SPREAD,
     "Brier score of the base rate"),
    ("murphy_within_bin", "Within bins", _NEITHER, _NUMBER, _JACKKNIFE, (-1.0, 1.0),
     "Brier score, part due to p that differ within bins"),
    ("murphy_reliability_corrected", "Reliability, corrected", _LOWER, *_ERROR,
     "the same, corrected for bias"),
    ("murphy_resolution_corrected", "Resolution, corrected", _HIGHER, *_GAIN,
     "the same, corrected for bias"),
    ("murphy_uncertainty_corrected", "Uncertainty, corrected", _NEITHER, *_SPREAD,
     "the same, corrected for bias"),
    ("corp_brier_miscalibration", "Miscalibration (Brier)", _LOWER, *_ERROR,
     "Brier score that isotonic recalibration takes off"),
    ("corp_brier_discrimination", "Discrimination (Brier)", _HIGHER, *_GAIN,
     "Brier score of the base rate less the recalibrated one"),
    ("corp_brier_uncertainty", "Uncertainty (Brier)", _NEITHER, *_SPREAD,
     "Brier score of the base rate"),
    ("corp_log_loss_miscalibration", "Miscalibration (log loss)", _LOWER,
     _NUMBER, _INVERSION, _POSITIVE,
     "log loss that isotonic recalibration takes off"),
    ("corp_log_loss_discrimination", "Discrimination (log loss)", _HIGHER,
     _NUMBER, _INVERSION, _LOG_PART,
     "log loss of the base rate less the recalibrated one"),
    ("corp_log_loss_uncertainty", "Uncertainty (log loss)", _NEITHER,
     _NUMBER, _BASE_RATE, _LOG_PART,
     "log loss of the base rate"),
    ("ece", "ECE", _LOWER, *_ERROR,
     "expected calibration error, bins of equal width"),
    ("ece_equal_mass", "ECE, equal mass", _LOWER, *_ERROR,
     "expected calibration error, bins of equal weight"),
    ("ece_debiased", "ECE, debiased", _LOWER, *_ERROR,
     "the same, less the bias of a normal share"),
    ("ece_sweep", "ECE, sweep", _LOWER, *_ERROR,
     "expected calibration error, as many bins as keep shares ascending"),
    ("ece_classwise", "ECE, classwise", _LOWER, *_ERROR,
     "mean over classes of the error of their probability"),
    ("ece_confidence", "ECE, confidence", _LOWER, *_ERROR,
     "expected calibration error of the verdict's confidence"),
    ("maximum_calibration_error", "MCE", _LOWER, *_ERROR,
     "largest error over bins of equal width"),
    ("rms_calibration_error", "RMSCE", _LOWER, *_ERROR,
     "root mean square error, bins of equal weight"),
    ("rms_calibration_error_debiased", "RMSCE, debiased", _LOWER, *_ERROR,
     "the same, less the variance of shares"),
    ("smooth_ece", "Smooth ECE", _LOWER, *_ERROR,
     "calibration error smoothed by a kernel as wide as itself"),
    ("calibration_slope", "Slope", _NEITHER, *_COEFFICIENT,
     "slope of labels on logit p"),
    ("calibration_intercept", "Intercept", _NEITHER, *_COEFFICIENT,
     "intercept of the same fit"),
    ("calibration_in_the_large", "In the large", _NEITHER, *_COEFFICIENT,
     "intercept if the slope is 1"),
    ("ici", "ICI", _LOWER, *_ERROR,
     "mean distance of p from a flexible calibration curve"),
    ("e50", "E50", _LOWER, *_ERROR,
     "median of that distance"),
    ("e90", "E90", _LOWER, *_ERROR,
     "90 % quantile of that distance"),
    ("emax", "Emax", _LOWER, *_ERROR,
     "largest such distance"),
    ("spiegelhalter_z", "Z", _NEITHER, *_TEST,
     "Spiegelhalter's Z, atoms independent"),
    ("spiegelhalter_p", "p of Z", _NEITHER, *_TEST,
     "its two-sided p-value"),
    ("hosmer_lemeshow", "Hosmer-Lemeshow", _LOWER, *_TEST,
     "Hosmer-Lemeshow chi squared, atoms independent"),
    ("hosmer_lemeshow_p", "p of Hosmer-Lemeshow", _NEITHER, *_TEST,
     "its p-value"),
    ("auroc", "AUROC", _HIGHER, _UNIT, IntervalMethod.OBUCHOWSKI, _FROM_0_TO_1,
     "area under the ROC curve"),
    ("auprc", "AUPRC", _HIGHER, *_AREA,
     "average precision"),
    ("aurc", "AURC", _LOWER, *_AREA,
     "area under the risk-coverage curve of verdicts"),
    ("excess_aurc", "Excess AURC", _LOWER, *_AREA,
     "the same, less the least that its errors allow"),
    ("aurc_claims", "AURC of claims", _LOWER, *_AREA,
     "area under the risk-coverage curve of claims kept by p"),
    ("excess_aurc_claims", "Excess AURC of claims", _LOWER, *_AREA,
     "the same, less the least that its false claims allow"),
)  # fmt: skip
"""The other scores of `score_table`, which need labels: name, title, which way is better, on what
scale its interval is symmetric, how it is made, least and largest value, meaning."""

REGISTRY = MappingProxyType(
    {
        name: ScoreDefinition(
            name,
            title,
            meaning,
            better,
            labels,
            scale,
            _SUMS,
            _POSITIVE if scale is _COUNT else _FROM_0_TO_1,
        )
        for name, title, labels, scale, better, meaning in _SUMMARISED
    }
    | {
        name: ScoreDefinition(name, title, meaning, better, _LABELS, scale, interval, bounds)
        for name, title, better, scale, interval, bounds, meaning in _TABULATED
    }
)
"""Every score by its name."""

MEASURES = tuple(name for name, *_ in _SUMMARISED)
"""Names of the scores of `summarise`, in the order of a table of methods."""

DEFAULT_MEASURES = MEASURES[:8]
"""Those that a table shows unless it is told which."""
