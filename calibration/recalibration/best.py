"""Choice of a recalibrator by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from calibration.folds import folds_of
from calibration.forecasts import Sample, forecasts, pooled
from calibration.labels import LabelPolicy
from calibration.recalibration.base import Recalibrator
from calibration.recalibration.nonparametric import HistogramRecalibrator, IsotonicRecalibrator
from calibration.recalibration.parametric import (
    BetaRecalibrator,
    PlattRecalibrator,
    TemperatureRecalibrator,
)
from calibration.recalibration.venn_abers import VennAbersRecalibrator
from calibration.scores.families.pointwise import LOSSES, mean_loss
from calibration.validation import Floats, whole_number
from factormodels.errors import InputError

CANDIDATES: Mapping[str, type[Recalibrator]] = MappingProxyType(
    {
        "platt": PlattRecalibrator,
        "temperature": TemperatureRecalibrator,
        "beta": BetaRecalibrator,
        "isotonic": IsotonicRecalibrator,
        "histogram": HistogramRecalibrator,
        "venn_abers": VennAbersRecalibrator,
    }
)
"""Recalibrators among which `BestRecalibrator` chooses, by their names in configurations."""


class BestRecalibrator(Recalibrator):
    """The recalibrator with the smallest out-of-sample loss, refitted to all atoms.

    Every candidate is cross-fitted over folds of responses and scored on held-out atoms. Ties go to
    the earlier candidate. A candidate that cannot be fitted in some fold is skipped. In `cross_fit`
    the choice is made within each outer fold, so that held-out atoms do not influence it.

    Args:
        candidates: names in `CANDIDATES`, or None for all; ``none`` leaves probabilities unchanged.
        loss: loss that determines the choice, ``log_loss`` or ``brier``.
        n_folds: number of inner folds, reduced to the number of responses if that is smaller.
        seed: seed of the folds.

    Attributes:
        chosen_: name of the chosen candidate.
        scores_: mean out-of-sample loss by name; inf if the candidate could not be fitted in a
            fold.
        best_: the fitted recalibrator; None if probabilities stay unchanged.
    """

    takes_responses = True

    def __init__(
        self,
        candidates: Sequence[str] | None = None,
        loss: str = "log_loss",
        n_folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.candidates = candidates
        self.loss = loss
        self.n_folds = n_folds
        self.seed = seed

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        responses: Any = None,
        unlabeled: str = LabelPolicy.EXCLUDE,
    ) -> Self:
        """Choose and learn the map.

        Args:
            X: probabilities in [0, 1], (n,) or (n, 1).
            y: labels (n,), True or False, None where unlabeled.
            sample_weight: weights (n,), the number of atoms that each represents; None for 1 each.
            responses: response ids (n,), kept together in folds; None if atoms are independent.
            unlabeled: treatment of atoms without a label, as in `apply_policy`.

        Raises:
            InputError: as `Recalibrator.fit`, for unknown names, or if no candidate can be fitted.
        """
        p = self._probabilities(X, reset=True)
        points = forecasts(p, self._labels(y), sample_weight, responses, unlabeled)
        self._learn(points.sample())
        self.n_unlabeled_ = points.n_unlabeled
        return self

    def _learn(self, sample: Sample) -> None:
        makers, points = self._makers(), sample.forecasts
        n_folds = min(whole_number(self.n_folds, "n_folds", 2), points.n_responses)
        if n_folds < 2:
            raise InputError("one response cannot be cross-validated; name a recalibrator")
        p, fold = points.p_of_atoms, folds_of(points.grouping, n_folds, self.seed)
        self.scores_ = {
            name: _loss_out_of_sample(maker, p, points.y, points.weights, fold, self.loss)
            for name, maker in makers.items()
        }
        self.chosen_ = min(self.scores_, key=lambda name: self.scores_[name])
        if not np.isfinite(self.scores_[self.chosen_]):
            raise InputError(
                f"none of {', '.join(makers)} can be fitted in {n_folds} folds; give more atoms"
            )
        maker = makers[self.chosen_]
        self.best_ = None if maker is None else clone(maker).fit(p, points.y, points.weights)

    def _map(self, p: Floats) -> Floats:
        return p.copy() if self.best_ is None else self.best_.predict(p)

    def _makers(self) -> dict[str, Recalibrator | None]:
        """Unfitted candidates by name."""
        if self.loss not in LOSSES:
            raise InputError(f"loss is {self.loss!r}; choose one of {', '.join(LOSSES)}")
        known: dict[str, type[Recalibrator] | None] = {"none": None, **CANDIDATES}
        names = list(known) if self.candidates is None else self.candidates
        if isinstance(names, str) or not names or not set(names) <= set(known):
            raise InputError(f"candidates is {names!r}; give a list of some of {', '.join(known)}")
        makers = {name: known[name] for name in names}
        return {name: None if maker is None else maker() for name, maker in makers.items()}


def _loss_out_of_sample(
    maker: Recalibrator | None, p: Floats, y: Floats, weights: Floats, fold: Any, loss: str
) -> float:
    """Mean out-of-sample loss of a recalibrator; inf if it cannot be fitted in a fold."""
    predicted = p.copy()
    for number in range(int(fold.max()) + 1):
        inside = fold == number
        if maker is None or not weights[inside].any():
            continue
        try:
            learned = clone(maker).fit(p[~inside], y[~inside], weights[~inside])
        except InputError:
            return float("inf")
        predicted[inside] = learned.predict(p[inside])
    return mean_loss(pooled(predicted, y, weights), loss)
