"""Labels: what human annotation says of each atom, and what an unlabelled atom counts as."""

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
    """What an atom without a human label counts as in scores that need one."""

    EXCLUDE = "exclude"
    FALSE = "false"
    TRUE = "true"
    ERROR = "error"


@dataclass(frozen=True, eq=False)
class Labelled:
    """Atoms that all have a label, after a policy for those that had none.

    Attributes:
        p: float64 (n,), probabilities that the atoms are true. May be empty, if every atom was
            unlabelled and excluded.
        y: float64 (n,), labels: 1 true, 0 false.
        n_unlabelled: number of atoms that had no label before the policy.
        kept: bool (n_given,), which of the atoms that were given these are.
    """

    p: Floats
    y: Floats
    n_unlabelled: int
    kept: NDArray[np.bool_]

    def grouping(self, responses: Any, name: str = "responses") -> Grouping:
        """Which of these atoms belong to which response.

        Args:
            responses: ids (n_given,) of all atoms that were given.
            name: what an error calls the argument.

        Raises:
            InputError: for bad ids, or another number of them.
        """
        grouping = group_by_response(responses, name)
        check_lengths(p=self.kept.size, **{name: grouping.index.size})
        return grouping if self.kept.all() else grouping.of(self.kept)

    def weights(self, weights: ArrayLike | None) -> Floats:
        """How many atoms each of these counts as, float64 (n,).

        Args:
            weights: those of all atoms that were given, (n_given,), or None for one each.

        Raises:
            InputError: for bad weights, or if these atoms have none.
        """
        if weights is None:
            counts = np.ones_like(self.y)
        else:
            counts = weight_array(weights, self.kept.size)[self.kept]
        if not counts.sum() > 0:
            raise InputError(
                "weights of all labelled atoms are zero; give at least one a weight above 0"
            )
        return counts


def apply_policy(p: ArrayLike, y: Any, policy: str = LabelPolicy.EXCLUDE) -> Labelled:
    """The atoms that scores are computed over, all of them labelled.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,): True or False (1 or 0), and None or nan where unlabelled.
        policy: what unlabelled atoms count as: ``exclude`` leaves them out, ``false`` and
            ``true`` label them so, ``error`` refuses them.

    Raises:
        InputError: for bad arrays, lengths that differ, an unknown policy, or an unlabelled atom
            under ``error``.
    """
    chosen = member_named(LabelPolicy, policy, "label policy")
    probabilities, labels = probability_array(p), label_array(y)
    check_lengths(p=probabilities.size, y=labels.size)
    unlabelled = np.isnan(labels)
    n_unlabelled = int(unlabelled.sum())
    if n_unlabelled and chosen is LabelPolicy.ERROR:
        raise InputError(
            f"y[{int(np.argmax(unlabelled))}] is unlabelled, as are {n_unlabelled} of "
            f"{counted(labels.size, 'atom')}; label them, or choose a label policy other than "
            "'error'"
        )
    if chosen is LabelPolicy.EXCLUDE:
        kept = ~unlabelled
    else:
        kept = np.ones(labels.size, dtype=bool)
        if n_unlabelled:
            default = 1.0 if chosen is LabelPolicy.TRUE else 0.0
            labels = np.where(unlabelled, default, labels)
    if not kept.all():
        probabilities, labels = probabilities[kept], labels[kept]
    return Labelled(probabilities, labels, n_unlabelled, kept)


def labelled_atoms(p: ArrayLike, y: Any, unlabelled: str = LabelPolicy.EXCLUDE) -> Labelled:
    """The atoms of a score that needs labels; a remark says what becomes of unlabelled ones.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), None or nan where unlabelled.
        unlabelled: what those count as, as in `apply_policy`.

    Raises:
        InputError: as `apply_policy`, and if no atom has a label.
    """
    atoms = apply_policy(p, y, unlabelled)
    remark_unlabelled(atoms.n_unlabelled, atoms.kept.size, unlabelled)
    if not atoms.p.size:
        raise InputError(
            f"none of the {counted(atoms.kept.size, 'atom')} has a label; label some, or set "
            "unlabelled to "
            "'false' or 'true'"
        )
    return atoms


def remark_unlabelled(n_unlabelled: int, n_atoms: int, policy: str) -> None:
    """Log how many atoms have no label and what they count as, if there are any."""
    if n_unlabelled:
        become = "are left out" if policy == LabelPolicy.EXCLUDE else f"count as {policy}"
        logger.info("%d of %d atoms have no label and %s", n_unlabelled, n_atoms, become)
