"""Labels: what human annotation says of each atom, and what an unlabelled atom counts as."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.grouping import response_ids
from calibration.validation import Floats, check_lengths, label_array, probability_array
from factormodels.errors import InputError

__all__ = ["LabelPolicy", "Labelled", "apply_policy", "label_array", "label_policy"]


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
        responses: response ids (n,), or None if none were given.
        n_unlabelled: number of atoms that had no label before the policy.
    """

    p: Floats
    y: Floats
    responses: tuple[Hashable, ...] | None
    n_unlabelled: int


def label_policy(policy: str) -> LabelPolicy:
    """Return the policy of a name.

    Raises:
        InputError: if there is no policy of that name.
    """
    try:
        return LabelPolicy(policy)
    except ValueError:
        names = ", ".join(LabelPolicy)
        raise InputError(f"label policy is {policy!r}; choose one of {names}") from None


def apply_policy(
    p: ArrayLike, y: Any, responses: Any = None, policy: str = LabelPolicy.EXCLUDE
) -> Labelled:
    """Return the atoms that scores are computed over, all of them labelled.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,): True or False (1 or 0), and None or nan where unlabelled.
        responses: response ids (n,), or None.
        policy: what unlabelled atoms count as: ``exclude`` leaves them out, ``false`` and
            ``true`` label them so, ``error`` refuses them.

    Raises:
        InputError: for bad arrays, lengths that differ, an unknown policy, or an unlabelled atom
            under ``error``.
    """
    chosen = label_policy(policy)
    probabilities, labels = probability_array(p), label_array(y)
    check_lengths(p=probabilities.size, y=labels.size)
    ids = None
    if responses is not None:
        ids = response_ids(responses)
        check_lengths(p=probabilities.size, responses=len(ids))
    unlabelled = np.isnan(labels)
    n_unlabelled = int(unlabelled.sum())
    if n_unlabelled and chosen is LabelPolicy.ERROR:
        raise InputError(
            f"y[{int(np.argmax(unlabelled))}] is unlabelled, as are {n_unlabelled} of "
            f"{labels.size} atoms; label them, or choose a label policy other than 'error'"
        )
    if chosen is LabelPolicy.EXCLUDE:
        kept = ~unlabelled
        probabilities, labels = probabilities[kept], labels[kept]
        ids = None if ids is None else list(compress(ids, kept.tolist()))
    else:
        labels[unlabelled] = 1.0 if chosen is LabelPolicy.TRUE else 0.0
    return Labelled(probabilities, labels, None if ids is None else tuple(ids), n_unlabelled)
