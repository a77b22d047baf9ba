"""The measures of every response, which need no labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibration.scores.estimates import judged_claims
from calibration.scores.families.responses import FAMILY
from calibration.scores.measures import warn_where_entropy_misorders
from calibration.tabular import Tabular
from calibration.validation import Floats, Integers

_COUNTS = ("supported", "contradicted", "undecided")


@dataclass(frozen=True, eq=False, repr=False)
class ResponseMeasures(Tabular):
    """The measures of every response, which need no labels. Arrays have shape (n_responses,).

    Attributes:
        responses: response ids, in order of first appearance.
        n_atoms: number of atoms.
        supported: number of atoms with P > 1/2.
        contradicted: number of atoms with P < 1/2.
        undecided: number of atoms with P = 1/2, up to the tolerance.
        precision: Pr = supported / n_atoms.
        k: the K of F1@K.
        f1_at_k: harmonic mean of Pr and R_K, 0 where no atom is supported.
        entropy: E, the mean of -P log10 P.
        mean_surprisal: the mean of -log10 P.
        expected_precision: the mean of P.
    """

    columns: ClassVar = (
        *("responses", "n_atoms", "supported", "contradicted", "undecided", "precision", "k"),
        *("f1_at_k", "entropy", "mean_surprisal", "expected_precision"),
    )

    responses: Sequence[Hashable]
    n_atoms: Integers
    supported: Integers
    contradicted: Integers
    undecided: Integers
    precision: Floats
    k: Floats
    f1_at_k: Floats
    entropy: Floats
    mean_surprisal: Floats
    expected_precision: Floats


def measure_responses(
    p: ArrayLike, responses: Any, *, k: str | float = "median"
) -> ResponseMeasures:
    """Measures of `calibration.scores.measures` for every response at once.

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        responses: response ids (n,).
        k: how the K of F1@K is chosen, as in `choose_k`.

    Raises:
        InputError: for bad arrays, lengths that differ, or an unknown `k`.
    """
    judged = judged_claims(p, None, responses, k=k)
    warn_where_entropy_misorders(judged.p)
    own: dict[str, Any] = {}
    for score in FAMILY:
        if score.name in ResponseMeasures.columns and score.ratio is not None:
            values = score.ratio(judged).numerator[:, 0]
            own[score.name] = values.astype(np.int64) if score.name in _COUNTS else values
    return ResponseMeasures(
        responses=judged.grouping.responses, n_atoms=judged.grouping.sizes, k=judged.k, **own
    )
