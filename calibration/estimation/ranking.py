"""AUROC from few labels: the separation of true from false claims by all probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.estimation.linear import Linear, Linearized, placed
from calibration.estimation.quantities import GivenClaims, given_claims
from calibration.forecasts import with_ties
from calibration.grouping import Grouping
from calibration.validation import Floats
from factormodels.errors import InputError


def auroc(p: ArrayLike, y: Any, responses: Any, **given: Any) -> Auroc:
    """Area under the ROC curve of all claims; arguments as in `share`.

    Its predicted value is the area if each claim is true with its probability.
    """
    claims = given_claims(p, y, responses, **given)
    return Auroc(claims, claims.grouping, claims.weights)


@dataclass(frozen=True, eq=False)
class Auroc(Linearized):
    """An area under the ROC curve.

    Attributes:
        claims: the claims.
        grouping: grouping of the claims by response.
        weights: float64 (n,), as in `Linearized`.
        training_variance: as in `Linear`.
    """

    claims: GivenClaims
    grouping: Grouping
    weights: Floats
    title: str = "AUROC"
    lowest: float = 0.0
    highest: float = 1.0
    by_left_out: bool = True
    training_variance: float = 0.0

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Mask of the labeled claims, bool (n,)."""
        return self.claims.labeled

    def linear(self, power: float) -> Linear:
        """Contributions of the claims, which do not depend on `power` (Obuchowski 1997).

        Raises:
            InputError: if all labels are the same.
        """
        del power
        known, claims = self.labeled, self.claims
        p, y, weights = claims.p[known], claims.y[known], self.weights[known]
        # Not compared by sums, which rounding could make different.
        if not ((weights * y).any() and (weights * (1 - y)).any()):
            raise InputError(
                f"{self.title}: all labels that count are the same; label more, as --choose says"
            )
        observed, labels, _ = soft_auroc(p, y, weights)
        sampled, predictions, slopes = soft_auroc(p, p, weights)
        predicted, everywhere, _ = soft_auroc(claims.p, claims.p, np.ones_like(claims.p))
        of_true, of_false = weights * y, weights * (1 - y)
        return Linear(
            observed=observed,
            sampled=sampled,
            predicted=predicted,
            labels=placed(known, labels),
            predictions=placed(known, predictions),
            everywhere=everywhere,
            shares=placed(known, (of_true / of_true.sum() + of_false / of_false.sum()) / 2),
            open_variance=float(slopes**2 @ (p * (1 - p))),
            training_variance=self.training_variance,
        )


def soft_auroc(p: Floats, truth: Floats, weights: Floats) -> tuple[float, Floats, Floats]:
    """AUROC of claims that are each true with a probability, and its first-order contributions.

    Args:
        p: probabilities that rank the claims, (n,); ties count half.
        truth: probability that each is true, (n,), in [0, 1].
        weights: number of claims that each represents, (n,).

    Returns:
        The area; the contribution of each claim, (n,), summing to 0; and the derivatives with
        respect to `truth`. The area is 1/2 if all claims are true, or all are false.
    """
    tied = with_ties(p)
    order = np.argsort(tied, kind="stable")
    ordered = tied[order]
    below, up_to = (np.searchsorted(ordered, tied, side=side) for side in ("left", "right"))
    true, false = weights * truth, weights * (1 - truth)
    n_true, n_false = true.sum(), false.sum()
    if not (n_true > 0 and n_false > 0):
        return 0.5, np.zeros_like(p), np.zeros_like(p)
    reached = [np.append(0.0, np.cumsum(each[order])) for each in (true, false)]
    false_below = (reached[1][below] + reached[1][up_to]) / 2
    true_above = n_true - (reached[0][below] + reached[0][up_to]) / 2
    area = float(true @ false_below / (n_true * n_false))
    if_true = (false_below / n_false - area) / n_true
    if_false = (true_above / n_true - area) / n_false
    return area, true * if_true + false * if_false, weights * (if_true - if_false)
