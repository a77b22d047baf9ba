"""Resampling: bootstrap replicates that draw whole responses, since their atoms are dependent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibration.validation import Floats

_DRAWS_AT_ONCE = 4_000_000


def response_weights(n_responses: int, n_bootstrap: int, seed: int) -> Iterator[Floats]:
    """Yield how often each response is drawn in each bootstrap replicate, block by block.

    Args:
        n_responses: number of responses, each drawn with equal probability, with replacement.
        n_bootstrap: number of replicates over all blocks.
        seed: seed of the generator; the same seed gives the same replicates.

    Yields:
        float64 (n_replicates_of_block, n_responses); each row sums to `n_responses`.
    """
    generator = np.random.default_rng(seed)
    block = max(1, _DRAWS_AT_ONCE // n_responses)
    for start in range(0, n_bootstrap, block):
        rows = min(block, n_bootstrap - start)
        draws = generator.integers(0, n_responses, size=(rows, n_responses))
        draws += np.arange(rows)[:, np.newaxis] * n_responses
        counts = np.bincount(draws.ravel(), minlength=rows * n_responses)
        yield counts.reshape(rows, n_responses).astype(np.float64)
