"""Probabilities as given beside their recalibrations by name, each learned on other responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from calibration.grouping import response_ids
from calibration.labels import LabelPolicy
from calibration.recalibration.cross_fitting import cross_fit
from calibration.validation import Integers
from factormodels.errors import InputError

AS_GIVEN = "as given"
"""Name of probabilities beside their recalibrations."""


@dataclass(frozen=True, eq=False)
class Recalibrations:
    """What `calibration.score` compares, of one model.

    Attributes:
        p: by name, `AS_GIVEN` first, probabilities (n,).
        folds: int64 (n,), the fold of each claim; None where nothing was learned.
        missing: what cannot be learned and why, a sentence each.
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
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> Recalibrations:
    """Probabilities as given and their recalibrations, cross-fitted.

    ``best`` is chosen within each fold, among those that are named beside it and leaving
    probabilities alone, or among all, so that no claim decides on the map it is judged by.

    Args:
        p: probabilities (n,).
        y: labels (n,), True or False, None where unlabelled.
        responses: response ids (n,), which no fold splits.
        names: names of `calibration.recalibration.RECALIBRATORS`, with - for _ if you like.
        n_folds: folds of responses; fewer where there are fewer responses.
        seed: seed of the folds.
        unlabelled: what claims without a label count as, as in `apply_policy`.

    Raises:
        InputError: for an unknown name, bad arrays or bad settings.
    """
    from calibration.recalibration import RECALIBRATORS, BestRecalibrator

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
            fitted = cross_fit(*arguments, unlabelled=unlabelled)
        except InputError as error:
            # Too few claims for one map are no reason to lose the others.
            missing.append(f"{name} cannot be learned ({error}).")
            continue
        probabilities[name], folds = fitted.p, fitted.fold
    return Recalibrations(probabilities, folds, tuple(missing))
