"""Human labels of atoms, and the treatment of atoms without a label."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.grouping import Grouping, group_by_response
from calibration.validation import (
    Floats,
    check_lengths,
    label_array,
    member_named,
    probability_array,
    weight_array,
)
from factormodels.errors import InputError
from factormodels.nouns import counted

logger = logging.getLogger(__name__)


class LabelPolicy(StrEnum):
    """Treatment of atoms without a label in scores that need labels."""

    EXCLUDE = "exclude"
    FALSE = "false"
    TRUE = "true"
    ERROR = "error"


@dataclass(frozen=True, eq=False)
class Labeled:
    """Atoms with labels, after a `LabelPolicy` was applied.

    Attributes:
        p: float64 (n,), probabilities that the atoms are true. Empty if every atom was unlabeled
            and excluded.
        y: float64 (n,), labels: 1 true, 0 false.
        n_unlabeled: number of atoms without a label before the policy.
        kept: bool (n_given,), mask of these atoms among all atoms of the input.
    """

    p: Floats
    y: Floats
    n_unlabeled: int
    kept: NDArray[np.bool_]

    def grouping(self, responses: Any, name: str = "responses") -> Grouping:
        """Grouping of these atoms by response.

        Args:
            responses: ids (n_given,) of all atoms of the input.
            name: name of the argument in errors.

        Raises:
            InputError: for bad ids, or if their number is not n_given.
        """
        grouping = group_by_response(responses, name)
        check_lengths(p=self.kept.size, **{name: grouping.index.size})
        return grouping if self.kept.all() else grouping.of(self.kept)

    def weights(self, weights: ArrayLike | None) -> Floats:
        """Weights of these atoms, float64 (n,).

        Args:
            weights: weights (n_given,) of all atoms of the input; None for 1 each.

        Raises:
            InputError: for bad weights, or if the weights of these atoms are all zero.
        """
        if weights is None:
            counts = np.ones_like(self.y)
        else:
            counts = weight_array(weights, self.kept.size)[self.kept]
        if not counts.sum() > 0:
            raise InputError(
                "weights of all labeled atoms are zero; give at least one a weight above 0"
            )
        return counts


def apply_policy(p: ArrayLike, y: Any, policy: str = LabelPolicy.EXCLUDE) -> Labeled:
    """Apply a policy to unlabeled atoms.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,): True or False (1 or 0), and None or nan where unlabeled.
        policy: treatment of unlabeled atoms: ``exclude`` leaves them out, ``false`` and ``true``
            assign that label, ``error`` raises an error.

    Raises:
        InputError: for bad arrays, different lengths, an unknown policy, or an unlabeled atom
            under ``error``.
    """
    chosen = member_named(LabelPolicy, policy, "label policy")
    probabilities, labels = probability_array(p), label_array(y)
    check_lengths(p=probabilities.size, y=labels.size)
    unlabeled = np.isnan(labels)
    n_unlabeled = int(unlabeled.sum())
    if n_unlabeled and chosen is LabelPolicy.ERROR:
        raise InputError(
            f"y[{int(np.argmax(unlabeled))}] is unlabeled, as are {n_unlabeled} of "
            f"{counted(labels.size, 'atom')}; label them, or choose a label policy other than "
            "'error'"
        )
    if chosen is LabelPolicy.EXCLUDE:
        kept = ~unlabeled
    else:
        kept = np.ones(labels.size, dtype=bool)
        if n_unlabeled:
            default = 1.0 if chosen is LabelPolicy.TRUE else 0.0
            labels = np.where(unlabeled, default, labels)
    if not kept.all():
        probabilities, labels = probabilities[kept], labels[kept]
    return Labeled(probabilities, labels, n_unlabeled, kept)


def labeled_atoms(p: ArrayLike, y: Any, unlabeled: str = LabelPolicy.EXCLUDE) -> Labeled:
    """Labeled atoms for a score that needs labels; logs a remark on unlabeled atoms.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), None or nan where unlabeled.
        unlabeled: treatment of unlabeled atoms, as in `apply_policy`.

    Raises:
        InputError: as `apply_policy`, and if no atom has a label.
    """
    atoms = apply_policy(p, y, unlabeled)
    remark_unlabeled(atoms.n_unlabeled, atoms.kept.size, unlabeled)
    if not atoms.p.size:
        raise InputError(
            f"none of the {counted(atoms.kept.size, 'atom')} has a label; label some, or set "
            "unlabeled to "
            "'false' or 'true'"
        )
    return atoms


def remark_unlabeled(n_unlabeled: int, n_atoms: int, policy: str) -> None:
    """Log the number and the treatment of atoms without a label, if there are any."""
    if n_unlabeled:
        become = "are left out" if policy == LabelPolicy.EXCLUDE else f"count as {policy}"
        logger.info("%d of %d atoms have no label and %s", n_unlabeled, n_atoms, become)
