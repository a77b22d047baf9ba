"""Cross-fitted recalibrations of probabilities, by name.

Isotonic regression is scikit-learn's, recalibrators are scikit-learn estimators, and `cross_fit`
accepts any other of its estimators; folds consist of responses. ``CalibratedClassifierCV`` is not a
replacement: it also accepts folds of responses, but averages the maps of all folds, so that a claim
is recalibrated by maps that were trained on its label. On the 4,886 biographical claims of the
embedded data (factscore) its isotonic map has a Brier score of 0.1709 on its training claims, and
`cross_fit` has 0.1727 (on factcheck-bench 0.0924 and 0.0962). It has no beta, histogram or
Venn-Abers map, and refuses claims without a label, which are recalibrated here. Both import
scikit-learn in a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from calibration.grouping import response_ids
from calibration.labels import LabelPolicy
from calibration.recalibration.base import Recalibrator
from calibration.recalibration.best import CANDIDATES, BestRecalibrator
from calibration.recalibration.cross_fitting import cross_fit
from calibration.validation import Integers
from factormodels.errors import InputError

RECALIBRATORS: dict[str, type[Recalibrator]] = {**CANDIDATES, "best": BestRecalibrator}
"""Recalibrators by their names in configurations."""

AS_GIVEN = "as given"
"""Name of the unchanged probabilities."""


@dataclass(frozen=True, eq=False)
class Recalibrations:
    """Recalibrations of a model's probabilities, for comparison by `calibration.score`.

    Attributes:
        p: probabilities (n,) by name, starting with `AS_GIVEN`.
        folds: int64 (n,), the fold of each claim; None if nothing was learned.
        missing: sentences on recalibrators that could not be fitted, with the reason.
    """

    p: Mapping[str, Any]
    folds: Integers | None
    missing: tuple[str, ...]


def recalibrations(
    p: ArrayLike,
    y: Any,
    responses: Any,
    names: Sequence[str],
    *,
    n_folds: int = 5,
    seed: int = 0,
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> Recalibrations:
    """Cross-fit the named recalibrators, and return their probabilities with the original ones.

    ``best`` is chosen within each fold, so that held-out claims do not influence it. The choice is
    among the other names and unchanged probabilities, or among all recalibrators if there is no
    other name.

    Args:
        p: probabilities (n,).
        y: labels (n,), True or False, None where unlabeled.
        responses: response ids (n,), kept together in folds.
        names: names in `calibration.recalibration.RECALIBRATORS`; - may replace _.
        n_folds: number of folds, reduced to the number of responses if that is smaller.
        seed: seed of the folds.
        unlabeled: treatment of claims without a label, as in `apply_policy`.

    Raises:
        InputError: for an unknown name, bad arrays or bad settings.
    """
    keys = {name.replace("-", "_"): name for name in names}
    n_groups = len(set(response_ids(responses)))
    for key, name in keys.items():
        if key not in RECALIBRATORS:
            raise InputError(f"recalibrate has {name!r}; use some of {', '.join(RECALIBRATORS)}")
    inner = ["none", *(key for key in keys if key != "best")]
    candidates = inner if len(inner) > 1 else None
    probabilities: dict[str, Any] = {AS_GIVEN: p}
    folds, missing = None, []
    for key, name in keys.items():
        best = key == "best"
        estimator = BestRecalibrator(candidates, seed=seed) if best else RECALIBRATORS[key]()
        if n_groups < 2:
            missing.append(
                f"{name} cannot be learned (all claims are of one response, which no fold splits; "
                "give at least 2 responses)."
            )
            continue
        arguments = estimator, p, y, responses, min(n_folds, n_groups), seed
        try:
            fitted = cross_fit(*arguments, unlabeled=unlabeled)
        except InputError as error:
            # A map that cannot be fitted does not prevent the others.
            missing.append(f"{name} cannot be learned ({error}).")
            continue
        probabilities[name], folds = fitted.p, fitted.fold
    return Recalibrations(probabilities, folds, tuple(missing))
