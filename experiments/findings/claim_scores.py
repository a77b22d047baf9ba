"""Scores of posteriors of labeled claims, and their differences, as rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.grouping import Grouping, group_by_response
from calibration.validation import Floats, Integers
from experiments.findings.interval_values import N_BOOTSTRAP as CHANGE_BOOTSTRAP
from experiments.findings.interval_values import Value
from experiments.findings.table import named
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph


@dataclass(frozen=True, eq=False)
class LabeledAtoms:
    """The labeled atoms of responses, in order.

    Attributes:
        labels: float64 (n,), 1 for true, 0 for false.
        responses: response id of each, (n,).
        kept: bool (n_all,), whether each of all atoms is one of them.
    """

    labels: Floats
    responses: NDArray[Any]
    kept: NDArray[np.bool_]

    @property
    def grouping(self) -> Grouping:
        """The responses that the atoms belong to."""
        return group_by_response(self.responses)


N_BOOTSTRAP = 500
"""Number of replicates for scores that are refitted in each replicate."""

LEAST = 1e-6
"""Log losses are computed from probabilities clipped to between this and 1 minus this."""


def labeled_atoms(graphs: Sequence[FactGraph], where: str) -> LabeledAtoms:
    """The labeled atoms of responses.

    Raises:
        InputError: if there is none; the message contains `where`.
    """
    atoms = [(graph.id, atom.label) for graph in graphs for atom in graph.atoms]
    kept = np.array([label is not None for _, label in atoms], dtype=np.bool_)
    if not kept.any():
        raise InputError(f"{where}: no atom has a human label; give labeled data")
    labels = np.array([label is True for _, label in atoms], dtype=np.float64)
    responses = np.array([response for response, _ in atoms])
    return LabeledAtoms(labels[kept], responses[kept], kept)


def scores_with_intervals(
    p: Floats,
    atoms: LabeledAtoms,
    names: Sequence[str],
    seed: int,
    folds: Integers | None = None,
    least: float = LEAST,
) -> dict[str, float]:
    """Scores of `calibration.scores.REGISTRY`, each with an interval over responses.

    In the log loss, a claim that is certain and wrong costs as much as one with a probability a
    millionth away from certainty, so that a single claim cannot make the loss infinite.

    Args:
        p: posterior of each labeled atom, (n,).
        atoms: the atoms.
        names: names of the scores.
        seed: seed of the bootstrap.
        folds: fold of each atom, (n,), if `p` is cross-fitted: AUROC is within folds.
        least: log losses are computed from probabilities clipped to between this and 1 minus this;
            0: `p` is not clipped.

    Returns:
        NAME, NAME_lower and NAME_upper of each score, without the prefix "calibration_".
    """
    from calibration.intervals import IntervalSettings
    from calibration.scoring import score

    settings = IntervalSettings(n_bootstrap=N_BOOTSTRAP, seed=seed)
    row: dict[str, float] = {}
    for name in names:
        inside = np.clip(p, least, 1 - least) if name == "log_loss" else p
        judged = inside, atoms.labels, atoms.responses
        scored = score(*judged, scores=[name], folds=folds, intervals=settings)[name]
        ends = (scored.value, scored.lower, scored.upper)
        row |= named(name.removeprefix("calibration_"), ends)
    return row


def score_change(
    score: str,
    p: Floats,
    other: Floats,
    atoms: LabeledAtoms,
    seed: int,
    folds: Integers | None = None,
) -> Value:
    """Difference of a score between two sets of posteriors, (n,) each, paired over responses.

    Arguments are those of `scores_with_intervals`.
    """
    from calibration.significance import score_difference

    if score == "log_loss":
        p, other = (np.clip(each, LEAST, 1 - LEAST) for each in (p, other))
    difference = score_difference(
        *(score, p, other, atoms.labels, atoms.responses),
        folds=folds,
        n_bootstrap=CHANGE_BOOTSTRAP,
        seed=seed,
    )
    return difference.value, difference.lower, difference.upper


RANKED = ("brier", "log_loss", "auroc")
"""Scores by which methods are compared."""


def score_rows(
    predictions: Mapping[str, Floats], atoms: LabeledAtoms, folds: Integers, seed: int
) -> list[dict[str, Any]]:
    """Scores of cross-fitted methods with intervals over responses, a row for each method.

    `slope` is the calibration slope, if a method's probabilities differ by more than 0.05; `mean`
    is their mean.

    Args:
        predictions: probability of each labeled atom by method, (n,).
        atoms: the labeled atoms.
        folds: fold of each, (n,): AUROC is within folds.
        seed: seed of the bootstrap.
    """
    rows = []
    for name, p in predictions.items():
        row: dict[str, Any] = {"method": name, "n_atoms": len(p)}
        row |= scores_with_intervals(p, atoms, RANKED, seed, folds)
        row |= named("slope", [np.nan] * 3)
        if float(np.ptp(p)) > 0.05:
            row |= scores_with_intervals(p, atoms, ("calibration_slope",), seed)
        rows.append(row | {"mean": float(p.mean())})
    return rows


def difference_rows(
    predictions: Mapping[str, Floats],
    references: Sequence[str],
    atoms: LabeledAtoms,
    folds: Integers,
    seed: int,
) -> list[dict[str, Any]]:
    """Differences between the scores of each method and of some reference methods, paired over
    responses.

    Args:
        predictions: probability of each labeled atom by method, (n,).
        references: methods, with which all others are compared; methods without predictions are
            left out.
        atoms: the labeled atoms.
        folds: fold of each, (n,): AUROC is within folds.
        seed: seed of the bootstrap.
    """
    rows = []
    for other in (name for name in references if name in predictions):
        for name, p in predictions.items():
            if name != other:
                row: dict[str, Any] = {"method": name, "other": other}
                for score in RANKED:
                    change = score_change(score, p, predictions[other], atoms, seed, folds)
                    row |= named(score, change)
                rows.append(row)
    return rows
