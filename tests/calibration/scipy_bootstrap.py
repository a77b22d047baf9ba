"""SciPy's bootstrap of a ratio of sums over responses, which the intervals are held against."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def scipy_bootstrap(above: ArrayLike, below: ArrayLike, method: str = "percentile") -> Any:
    """Return SciPy's result at the level 0.9 from 20,000 replicates."""
    from scipy.stats import bootstrap

    return bootstrap(
        (np.asarray(above, dtype=float), np.asarray(below, dtype=float)),
        lambda a, b, axis=-1: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        confidence_level=0.9,
        method=method,
        rng=np.random.default_rng(1),
    )
