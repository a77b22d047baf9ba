"""Predictions of judges that were trained on the labels, in folds of responses.

Source: cross-prediction-powered inference, Zrnic and Candès 2024. Each labeled item is predicted by
the judge of the folds without it. The judge's prediction for the item is compared with the same
judge's predictions for all items: judges of different folds have different levels, since a fold of
many true claims removes them from its judge's training data, and these levels are not surprises of
the items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimation.quantities import Quantity
from calibration.grouping import group_by_response
from calibration.validation import Floats, Integers


@dataclass(frozen=True, eq=False)
class FoldJudges:
    """Probabilities by judges, each of which was trained without one fold.

    Attributes:
        fold: int64 (n,), the fold of each claim; -1 for claims of responses without a label.
        p: float64 (n_folds, n), P(true) of each claim by the judge trained on the other folds.
    """

    fold: Integers
    p: Floats

    def of(self, claims: ArrayLike) -> FoldJudges:
        """Return the probabilities of some claims, given by their positions."""
        positions = np.asarray(claims)
        return FoldJudges(self.fold[positions], self.p[:, positions])

    def unseen(self) -> Floats:
        """Return P(true) of each claim by the judge of its fold, or the mean over judges without a
        fold, (n,).
        """
        p: Floats = self.p.mean(axis=0)
        kept = np.flatnonzero(self.fold >= 0)
        p[kept] = self.p[self.fold[kept], kept]
        return p

    def on_one_scale(self) -> Floats:
        """Return `unseen` with each judge's probabilities mapped to quantiles of the mean, (n,).

        A claim keeps its rank among all claims under the judge of its fold, so that claims of
        different folds are ranked regardless of the levels of their judges.
        """
        p: Floats = self.p.mean(axis=0)
        quantiles = np.sort(p)
        for number, by_judge in enumerate(self.p):
            in_fold = self.fold == number
            p[in_fold] = np.interp(by_judge[in_fold], np.sort(by_judge), quantiles)
        return p


def cross_predicted(
    quantity: Callable[[Floats], Quantity], judges: FoldJudges, responses: ArrayLike
) -> Quantity:
    """Return a quantity whose predictions have the same mean under each judge.

    With f_k the predictions of judge k, and m_k their mean over all items, an item of fold k is
    predicted to be f_k - m_k + m. Here m is the mean prediction of the items without a fold, or the
    mean of m_k if every item has a fold.

    Args:
        quantity: function from probabilities, (n,), to the quantity.
        judges: the judges of its claims.
        responses: response ids of the claims, (n,).
    """
    whole = quantity(judges.unseen())
    by_judge = [quantity(p) for p in judges.p]
    grouping = group_by_response(responses)
    of_response = np.full(len(grouping.responses), -1)
    of_response[grouping.index] = judges.fold
    fold, sizes = of_response[whole.grouping.index], whole.predicted_size
    means = np.array([each.predicted.sum() / each.predicted_size.sum() for each in by_judge])
    without = fold < 0
    level = float(means.mean())
    if sizes[without].sum() > 0:
        level = float(whole.predicted[without].sum() / sizes[without].sum())
    offsets = np.where(without, 0.0, level - means[fold])
    return replace(whole, predicted=whole.predicted + offsets * sizes)
