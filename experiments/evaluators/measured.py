"""The measures of the papers as one row, which tables of studies and assessments share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.intervals import IntervalSettings
from calibration.scores.registry import MEASURES
from calibration.scoring import score

COLUMNS = (
    *("n_responses", "n_atoms", "n_labelled", "label_policy", "supported", "contradicted"),
    *("undecided", "precision", "human_precision", "precision_mae", "f1_at_k", "k_policy", "k"),
    *("entropy", "mean_surprisal", "expected_precision", "f1", "accuracy", "brier", "log_loss"),
)
"""Columns of such a row: sizes, settings, and `MEASURES` (FactReasoner, tables 3 to 7)."""


def measured(
    p: ArrayLike,
    y: Any,
    responses: Any,
    *,
    policy: str = "exclude",
    k: str | float = "median",
    intervals: IntervalSettings | None = None,
) -> dict[str, Any]:
    """The measures of a method on a dataset by name; nan where a number is not defined.

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        y: labels (n,), True or False, None where unlabelled.
        responses: response ids (n,).
        policy: what unlabelled atoms count as in scores that need labels.
        k: how the K of F1@K is chosen, as in `calibration.scores.choose_k`.
        intervals: how intervals are made; with them, MEASURE_lower and MEASURE_upper follow.

    Raises:
        InputError: for bad arrays, or unlabelled atoms under the policy "error".
    """
    found = score(p, y, responses, scores=MEASURES, k=k, intervals=intervals, unlabelled=policy)
    (model,) = found.models
    n_atoms = len(np.asarray(p))
    row: dict[str, Any] = {
        "n_responses": model.scores["precision"].n,
        "n_atoms": n_atoms,
        "n_labelled": n_atoms - model.n_unlabelled,
        "label_policy": str(policy),
        "k_policy": str(k),
        "k": model.k,
        **{name: own.value for name, own in model.scores.items()},
    }
    row = {name: row[name] for name in COLUMNS}
    if intervals is not None:
        # Ends beside their measure, by name, as every reader of summary.csv looks them up.
        for name, own in model.scores.items():
            row |= {f"{name}_lower": own.lower, f"{name}_upper": own.upper}
    return row
