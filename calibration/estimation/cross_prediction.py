"""Predictions of judges that were trained on the labels, in folds of responses.

Source: cross-prediction-powered inference, Zrnic and Candès 2024. Each labeled item is predicted by
the judge of the folds without it. The judge's prediction for the item is compared with the same
judge's predictions for all items: judges of different folds have different levels, since a fold of
many true claims removes them from its judge's training data, and these levels are not surprises of
the items.

A score of the judges, such as their Brier score, needs two corrections:

- Items without a label are predicted by the mean of the judges. Its squared error is smaller than
  the judges' mean squared error by the variance among judges, for any labels (Krogh and Vedelsby
  1995). Accuracy and AUROC have no such identity.
- The labels of each fold also train the judges of the others. If labels of folds k and l err in the
  same direction, each makes the other's judge worse, so that losses of different responses are
  correlated. `training_variance` adds this covariance to the variance of residuals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimation.quantities import Quantity
from calibration.estimation.ranking import Auroc, auroc, soft_auroc
from calibration.grouping import group_by_response
from calibration.validation import Floats, Integers

_LEAST_FOLDS = 4
"""Minimum number of folds whose mutual effects can be separated from the effects of single
folds."""


@dataclass(frozen=True, eq=False)
class FoldJudges:
    """Probabilities by judges, each trained without one fold.

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
    of_mean = quantity(judges.p.mean(axis=0))
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
    weights = np.where(whole.labeled, whole.weights, 0.0)
    parts = weights / max(float(weights @ whole.size), np.finfo(float).tiny)

    def changes(judge: Quantity) -> Floats:
        """Part of each fold in the value by a judge minus the value by the mean of judges."""
        less = np.where(whole.labeled & ~without, judge.observed - of_mean.observed, 0.0)
        of_folds = np.bincount(np.maximum(fold, 0), parts * less, minlength=len(by_judge))
        return of_folds.astype(np.float64)

    return replace(
        whole,
        observed=whole.observed - _loss_of_each(by_judge, of_mean, without) * whole.size,
        predicted=whole.predicted + offsets * sizes,
        training_variance=training_variance(np.array([changes(each) for each in by_judge]).T),
    )


def _loss_of_each(by_judge: list[Quantity], of_mean: Quantity, without: Any) -> float:
    """Mean loss of single judges minus the loss of their mean, over all items.

    It is 0 if every item has a fold, and where it depends on the labels.
    """
    if of_mean.numerators is None or not without.any():
        return 0.0
    if_true, if_false = (
        np.mean([each.numerators[side] for each in by_judge if each.numerators], axis=0)
        - of_mean.numerators[side]
        for side in (0, 1)
    )
    if not np.allclose(if_true, if_false, rtol=0.0, atol=1e-12):
        return 0.0
    return float(if_true[without].sum() / of_mean.predicted_size.sum())


def cross_ranked(judges: FoldJudges, labels: Any, responses: ArrayLike, **options: Any) -> Auroc:
    """Return the AUROC of claims that are ranked by the judges of their folds.

    Args:
        judges: the judges of the claims.
        labels: labels (n,), as in `share`.
        responses: response ids (n,).
        options: further arguments of `auroc`.
    """
    quantity = auroc(judges.on_one_scale(), labels, responses, **options)
    known = quantity.labeled
    ranks = judges.of(np.flatnonzero(known))
    y, weights = quantity.claims.y[known], quantity.weights[known]
    mean = judges.p.mean(axis=0)
    quantiles, of_mean = np.sort(mean), mean[known]
    scaled = [np.interp(by_judge[known], np.sort(by_judge), quantiles) for by_judge in judges.p]

    def area(number: int, by_judge: Floats) -> float:
        """AUROC with the claims of a fold ranked by another judge."""
        p = np.where(ranks.fold == number, by_judge, quantity.claims.p[known])
        return soft_auroc(p, y, weights)[0]

    folds = range(len(judges.p))
    changes = [[area(k, by_judge) - area(k, of_mean) for by_judge in scaled] for k in folds]
    return replace(quantity, training_variance=training_variance(np.array(changes)))


def training_variance(changes: Floats) -> float:
    """Variance of a score of judges that is not in the residuals of their responses.

    Let d_kl be the change in fold k's part of the score due to the labels of fold l, which train
    the judge of fold k. The variance of all changes is the sum of (d_kl + d_lk)² over pairs;
    residuals contain d_kl² + d_lk² of it. The remainder is twice the covariance of d_kl and d_lk.
    Effects of single folds are removed first, as in a round robin (Warner, Kenny and Stoto 1979),
    which requires four folds; with fewer, they are not removed.

    Args:
        changes: float64 (n_folds, n_folds), part of fold k in the score by the judge without fold
            l, minus that part by the mean of all judges; the diagonal is ignored.
    """
    n = len(changes)
    # The mean of the judges saw fold l in all but one of them.
    d = np.where(np.eye(n, dtype=bool), 0.0, changes) * (n / (n - 1))
    if n < _LEAST_FOLDS:
        return max(float((d * d.T).sum()), 0.0)
    rows, columns = d.sum(axis=1) / (n - 1), d.sum(axis=0) / (n - 1)
    mean, scale = rows.mean(), (n - 1) / (n * (n - 2))
    of_row = scale * ((n - 1) * rows + columns - n * mean)
    of_column = scale * ((n - 1) * columns + rows - n * mean)
    rest = d - mean - of_row[:, None] - of_column
    np.fill_diagonal(rest, 0.0)
    # Mean squares of sums and differences within pairs, by their degrees of freedom.
    alike = float(((rest + rest.T) ** 2).sum()) / 4 / (n * (n - 3) / 2)
    unlike = float(((rest - rest.T) ** 2).sum()) / 4 / ((n - 1) * (n - 2) / 2)
    covariance = (alike - unlike) / 2
    return max(n * (n - 1) * covariance, 0.0)
