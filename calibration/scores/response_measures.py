"""Measures of every response, which need no labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.scores.estimates import judged_claims
from calibration.scores.families.responses import FAMILY
from calibration.scores.measures import warn_where_entropy_misorders
from calibration.tabular import Frame

_COUNTS = ("supported", "contradicted", "undecided")
_MEASURES = (*_COUNTS, "precision", "f1_at_k", "entropy", "mean_surprisal", "expected_precision")


def measure_responses(p: ArrayLike, responses: Any, *, k: str | float = "median") -> Frame:
    """Measures of `calibration.scores.measures` for every response, as a table.

    The table has a row per response and these columns: responses, ids in order of first appearance;
    n_atoms; supported, contradicted and undecided, numbers of atoms with P above, below and at 1/2;
    precision, Pr = supported / n_atoms; k, the K of F1@K; f1_at_k; entropy, E; mean_surprisal;
    expected_precision, the mean of P.

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        responses: response ids (n,).
        k: choice of the K of F1@K, as in `choose_k`.

    Raises:
        InputError: for bad arrays, different lengths, or an unknown `k`.
    """
    judged = judged_claims(p, None, responses, k=k)
    warn_where_entropy_misorders(judged.p)
    measures = {
        each.name: each.ratio(judged).numerator[:, 0]
        for each in FAMILY
        if each.name in _MEASURES and each.ratio is not None
    }
    measures |= {name: measures[name].astype(np.int64) for name in _COUNTS}
    # Convert one by one, so that NumPy does not coerce the ids to a common type.
    ids = np.fromiter(judged.grouping.responses, dtype=object)
    columns = {"responses": ids, "n_atoms": judged.grouping.sizes, "k": judged.k, **measures}
    names = ("responses", "n_atoms", *_MEASURES[:4], "k", *_MEASURES[4:])
    return Frame(**{name: columns[name] for name in names})
