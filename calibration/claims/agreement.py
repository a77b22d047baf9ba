"""Agreement of verdicts with human verdicts, and edits of claim sets (FaStfact, table 2)."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from calibration.validation import is_number
from factormodels.errors import InputError
from factormodels.nouns import counted

LABEL_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "supported": "supported",
        "refuted": "non-supported",
        "conflicting evidence": "non-supported",
        "not enough evidence": "non-supported",
        "non-supported": "non-supported",
        "irrelevant": "irrelevant",
        "unverifiable": "irrelevant",
    }
)
"""Type of each verdict, on which scores depend (FaStfact, section 4.3 and table 2).

Unverifiable claims, like irrelevant ones, are left out of scores.
"""

REVISED_FROM = 0.5
"""Default similarity from which two different claims count as a revised claim."""


@dataclass(frozen=True)
class Agreement:
    """Shares of claims on which two lists of verdicts agree.

    Attributes:
        exact: share with the same label.
        type: share with the same type of label.
        n: number of claims.
    """

    exact: float
    type: float
    n: int


@dataclass(frozen=True)
class ClaimEdits:
    """Edits that change one set of claims into another.

    Attributes:
        unchanged: pairs (index before, index after) of equal claims.
        revised: pairs of claims that are similar but not equal.
        removed: indices of claims that are only in the first set.
        added: indices of claims that are only in the second set.
        similarity: sum of the similarities of unchanged and revised pairs, the largest possible.
    """

    unchanged: tuple[tuple[int, int], ...]
    revised: tuple[tuple[int, int], ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]
    similarity: float

    def counts(self) -> dict[str, int]:
        """Numbers of claims by edit, in the order of FaStfact's table 2."""
        return {
            "removed": len(self.removed),
            "added": len(self.added),
            "revised": len(self.revised),
            "unchanged": len(self.unchanged),
        }


def label_agreement(
    labels: Sequence[str], human: Sequence[str], types: Mapping[str, str] = LABEL_TYPES
) -> Agreement:
    """Agreement of verdicts with human verdicts, exactly and by type (FaStfact, table 2).

    Args:
        labels: the verdict on each claim.
        human: the human verdict on each claim.
        types: type of each label.

    Raises:
        InputError: for lists of different lengths, empty ones, or a label without a type.
    """
    if len(labels) != len(human) or not labels:
        raise InputError(
            f"there are {counted(len(labels), 'label')} and {counted(len(human), 'human label')}; "
            "give one of each per claim, for at least one claim"
        )
    for label in (*labels, *human):
        if label not in types:
            raise InputError(f"the label {label!r} has no type; use one of {', '.join(types)}")
    pairs = list(zip(labels, human, strict=True))
    return Agreement(
        exact=sum(a == b for a, b in pairs) / len(pairs),
        type=sum(types[a] == types[b] for a, b in pairs) / len(pairs),
        n=len(pairs),
    )


def token_similarity(first: str, second: str) -> float:
    """Jaccard similarity of the words of two texts, in [0, 1]; 1 only for equal texts.

    Case, Unicode form and punctuation are ignored.
    """
    a, b = _words(first), _words(second)
    if a == b:
        return 1.0
    shared = set(a) & set(b)
    # The same words in another order, or repeated, form a different claim.
    return min(len(shared) / len(set(a) | set(b)), math.nextafter(1.0, 0.0))


def claim_edits(
    before: Sequence[str],
    after: Sequence[str],
    similarity: Callable[[str, str], float] = token_similarity,
    *,
    revised_from: float = REVISED_FROM,
) -> ClaimEdits:
    """Edits between two sets of claims, by an optimal matching.

    The one-to-one matching with the largest sum of similarities is used, without pairs below
    `revised_from`. A pair with similarity 1 is unchanged. Equal claims are always paired with each
    other.

    Args:
        before: the original claims, such as those of a method.
        after: the corrected claims.
        similarity: function of two texts to [0, 1], where 1 means the same claim.
        revised_from: smallest similarity of a revised claim, in (0, 1].

    Raises:
        InputError: if `revised_from` or a similarity is out of range.
    """
    from scipy.optimize import linear_sum_assignment

    if not is_number(revised_from) or not 0 < revised_from <= 1:
        raise InputError(f"revised_from is {revised_from!r}; give a number above 0, at most 1")
    matrix = np.array([[similarity(a, b) for b in after] for a in before], dtype=np.float64)
    matrix = matrix.reshape(len(before), len(after))
    _check_similarities(matrix)
    worth = np.where(matrix >= revised_from, matrix, 0.0)
    # An equal pair has priority over any number of revised pairs.
    rows, columns = linear_sum_assignment(
        worth + (matrix == 1.0) * (1.0 + min(matrix.shape, default=0)), maximize=True
    )
    pairs = [
        (int(i), int(j)) for i, j in zip(rows, columns, strict=True) if matrix[i, j] >= revised_from
    ]
    unchanged = tuple(pair for pair in pairs if matrix[pair] == 1.0)
    revised = tuple(pair for pair in pairs if matrix[pair] != 1.0)
    return ClaimEdits(
        unchanged=unchanged,
        revised=revised,
        removed=tuple(sorted(set(range(len(before))) - {i for i, _ in pairs})),
        added=tuple(sorted(set(range(len(after))) - {j for _, j in pairs})),
        similarity=float(sum(matrix[pair] for pair in pairs)),
    )


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold())


def _check_similarities(matrix: NDArray[np.float64]) -> None:
    bad = ~((matrix >= 0) & (matrix <= 1))
    if bad.any():
        i, j = np.argwhere(bad)[0].tolist()
        raise InputError(
            f"the similarity of claim {i} before and claim {j} after is {float(matrix[i, j])!r}; "
            "give a measure between 0 and 1"
        )
