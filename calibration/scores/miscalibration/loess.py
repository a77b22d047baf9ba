"""Local regression of labels on p (Cleveland, Devlin and Grosse 1988), as R's loess computes it."""

from __future__ import annotations

import numpy as np

from calibration.forecasts import Sample
from calibration.validation import Floats

_SPAN = 0.75
"""Share of the atoms that each local fit uses, R's default."""

_PAIRS_AT_ONCE = 1 << 20
_SINGULAR = 1e-10
"""Relative: local designs whose smaller eigenvalues are below this have fewer distinct p than
columns; those directions are left out, as R does."""


def loess_curve(sample: Sample) -> Floats:
    """Share of true atoms at each distinct probability, (m,), in [0, 1].

    A quadratic is fitted around each point to the nearest `_SPAN` of the atoms, with
    tricube weights; nothing is interpolated between points, and no point is taken for an outlier.

    Args:
        sample: the sample; a weight counts as so many atoms.
    """
    p, weight = sample.p[sample.present], sample.weight[sample.present]
    share = sample.true[sample.present] / weight
    # As many atoms as R takes; at least one.
    nearest = max(1.0, np.floor(sample.total * _SPAN + 1e-5))
    fitted = np.empty(p.size)
    rows_at_once = max(1, _PAIRS_AT_ONCE // p.size)
    for begin in range(0, p.size, rows_at_once):
        rows = slice(begin, begin + rows_at_once)
        fitted[rows] = _local_weights(p[rows], p, weight, nearest) @ share
    curve = np.interp(sample.p, p, np.clip(fitted, 0, 1))
    return np.asarray(curve)


def loess_matrix(p: Floats, weight: Floats) -> Floats:
    """What the share of true atoms at each p adds to the curve at each, (m, m), before it is cut.

    Args:
        p: distinct probabilities, ascending, (m,).
        weight: weight of each, above 0, (m,).
    """
    return _local_weights(p, p, weight, weight.sum() * _SPAN)


def _local_weights(at: Floats, p: Floats, weight: Floats, nearest: float) -> Floats:
    """What each value adds to the quadratic fitted around each place there, (k, m)."""
    offset = p - at[:, np.newaxis]
    distance = np.abs(offset)
    order = np.argsort(distance, axis=1, kind="stable")
    reached = np.cumsum(weight[order], axis=1)
    last = np.argmax(reached >= nearest * (1 - 1e-12), axis=1)
    reach = np.take_along_axis(distance, order, axis=1)[np.arange(at.size), last]
    # A tie of enough atoms at the place itself is fitted by their share.
    reach = np.where(reach > 0, reach, 1.0)[:, np.newaxis]
    scaled = offset / reach
    size = np.abs(scaled)
    tricube = np.where(size < 0.999, (1 - size**3) ** 3, 0.0)
    local = weight * np.where(size <= 0.001, 1.0, tricube)
    columns = np.stack([np.ones_like(scaled), scaled, scaled**2])
    gram = np.einsum("rkn,kn,skn->krs", columns, local, columns)
    inverse = np.linalg.pinv(gram, rcond=_SINGULAR, hermitian=True)
    return np.asarray(np.einsum("kr,rkn,kn->kn", inverse[:, 0], columns, local))
