"""Parametric recalibration: temperature scaling, Platt scaling, beta calibration."""

from __future__ import annotations

import numpy as np

from calibration.estimate import ScoreStatus
from calibration.forecasts import LOGIT_CLIP, Sample, clipped_logits, logit_clip, logits_of
from calibration.recalibration.base import Recalibrator, require_both_classes
from calibration.scores.families.logistic import threshold_parts
from calibration.scores.logistic import fit_logistic, sigmoid
from calibration.validation import Floats
from factormodels.errors import InputError

_PARTED = (
    "a threshold on the probability separates true from false atoms, so that no map is the most "
    "likely; {}"
)


class PlattRecalibrator(Recalibrator):
    """Platt scaling: logit q = intercept + slope logit p, by maximum likelihood (Platt 1999).

    Args:
        smooth: whether to replace true and false by (N+ + 1)/(N+ + 2) and 1/(N- + 2), where N+ and
            N- are their numbers, as Platt proposes. Without smoothing, labels that a threshold on
            p separates raise an error.
        clip: p is moved into [clip, 1 - clip] before its logit is taken.

    Attributes:
        slope_: the slope.
        intercept_: the intercept.
    """

    def __init__(self, smooth: bool = True, clip: float = LOGIT_CLIP) -> None:
        self.smooth = smooth
        self.clip = clip

    def _learn(self, sample: Sample) -> None:
        clip = logit_clip(self.clip)
        require_both_classes(sample)
        _require_several_values(sample)
        true = sample.true
        if self.smooth:
            of_true = (sample.total_true + 1) / (sample.total_true + 2)
            of_false = 1 / (sample.total_false + 2)
            true = sample.true * of_true + sample.false * of_false
        logits = clipped_logits(sample.forecasts, clip)
        columns = np.stack([np.ones_like(logits), logits])
        fit = fit_logistic(columns, sample.weight, true)
        if fit.status is not ScoreStatus.OK:
            raise InputError(_PARTED.format("set smooth=True"))
        self.intercept_, self.slope_ = (float(value) for value in fit.coefficients)

    def _map(self, p: Floats) -> Floats:
        return sigmoid(self.intercept_ + self.slope_ * logits_of(p, self.clip))


class TemperatureRecalibrator(Recalibrator):
    """Temperature scaling: logit q = logit p / temperature (Guo et al. 2017, section 4.2).

    Args:
        clip: p is moved into [clip, 1 - clip] before its logit is taken.

    Attributes:
        temperature_: the temperature, above 1 if p is too extreme; inf, so that q = 1/2, if labels
            are negatively related to p.
    """

    def __init__(self, clip: float = LOGIT_CLIP) -> None:
        self.clip = clip

    def _learn(self, sample: Sample) -> None:
        logits = clipped_logits(sample.forecasts, logit_clip(self.clip))
        require_both_classes(sample)
        _refuse_right_sides(sample, logits)
        fit = fit_logistic(logits[np.newaxis], sample.weight, sample.true)
        # There is no maximum if every p is on the wrong side of 1/2 for its label.
        inverse = float(fit.coefficients[0]) if fit.status is ScoreStatus.OK else 0.0
        self.temperature_ = 1 / inverse if inverse > 0 else np.inf

    def _map(self, p: Floats) -> Floats:
        return sigmoid(logits_of(p, self.clip) / self.temperature_)


class BetaRecalibrator(Recalibrator):
    """Beta calibration: logit q = a ln p - b ln(1 - p) + c (Kull, Silva Filho and Flach 2017).

    Args:
        clip: p is moved into [clip, 1 - clip] before its logarithms are taken.

    Attributes:
        a_: coefficient of ln p, at least 0, so that the map is monotone.
        b_: coefficient of -ln(1 - p), at least 0.
        c_: the constant.
    """

    def __init__(self, clip: float = LOGIT_CLIP) -> None:
        self.clip = clip

    def _learn(self, sample: Sample) -> None:
        inside = np.clip(sample.p, logit_clip(self.clip), 1 - self.clip)
        require_both_classes(sample)
        _require_several_values(sample)
        if threshold_parts(sample)[0]:
            raise InputError(_PARTED.format("give more atoms"))
        columns = np.stack([np.log(inside), -np.log1p(-inside), np.ones_like(inside)])
        self.a_, self.b_, self.c_ = map(float, _monotone(columns, sample))

    def _map(self, p: Floats) -> Floats:
        inside = np.clip(p, self.clip, 1 - self.clip)
        return sigmoid(self.a_ * np.log(inside) - self.b_ * np.log1p(-inside) + self.c_)


def _monotone(columns: Floats, sample: Sample) -> Floats:
    """Maximum likelihood coefficients (k,) of columns (k, m), all but the last at least 0.

    The likelihood is concave. If its maximum has a negative coefficient or does not exist, the
    constrained maximum has a coefficient of 0.
    """
    free = fit_logistic(columns, sample.weight, sample.true)
    if free.status is ScoreStatus.OK and (free.coefficients[:-1] >= 0).all():
        return free.coefficients
    candidates = []
    for dropped in range(len(columns) - 1):
        kept = np.delete(columns, dropped, axis=0)
        coefficients = _monotone(kept, sample)
        linear = coefficients @ kept
        likelihood = float(sample.true @ linear - sample.weight @ np.logaddexp(0, linear))
        candidates.append((likelihood, np.insert(coefficients, dropped, 0.0)))
    return max(candidates, key=lambda candidate: candidate[0])[1]


def _refuse_right_sides(sample: Sample, logits: Floats) -> None:
    against = ((sample.true > 0) & (logits < 0)) | ((sample.false > 0) & (logits > 0))
    if not against.any():
        raise InputError(
            "no probability is on the wrong side of 1/2 for its label, so that no map that keeps "
            "1/2 is the most likely; give more atoms"
        )


def _require_several_values(sample: Sample) -> None:
    if sample.is_constant:
        raise InputError(
            f"X is {float(sample.p[sample.present[0]])!r} throughout; give at least two different "
            "probabilities"
        )
