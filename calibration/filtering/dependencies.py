"""Scores under which a claim is kept only with the claims that it depends on.

Source: Rubin-Toles, Gambhir, Ramji, Roth and Goel 2025, "Conformal Language Model Reasoning with
Coherent Factuality".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.validation import Floats, Integers, probability_array
from factormodels.errors import InputError


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Edges of the dependency graphs of responses.

    Attributes:
        claims: int64 (n_edges,), the position of each dependent claim.
        on: int64 (n_edges,), the position of the claim that it depends on.
    """

    claims: Integers
    on: Integers

    def of(self, kept: NDArray[np.bool_]) -> Dependencies:
        """Dependencies among the claims of a mask, (n,), by their positions there."""
        position = np.cumsum(kept) - 1
        inside = kept[self.claims] & kept[self.on]
        return Dependencies(position[self.claims[inside]], position[self.on[inside]])


def supported_scores(p: ArrayLike, dependencies: Dependencies) -> Floats:
    """Lowest score among each claim and all claims that it depends on, directly or not, (n,).

    Thresholds on these scores keep the same claims as the subgraph algorithm of Rubin-Toles et al.
    (2025), which includes the claims whose risk is within a threshold and then removes each claim
    without all of its ancestors. Kept sets are nested in the threshold, and each contains the
    ancestors of its claims. In an approximate deducibility graph such a set is coherently factual
    (each claim follows from the question, the truth and the claims before it) if its claims are
    true. Split conformal prediction on these scores with precision 1 therefore guarantees a
    coherently factual set with probability 1 - alpha, the paper's main theorem.

    Claims on a cycle, such as equivalent claims, are kept or dropped together. The paper requires
    graphs without cycles.

    Args:
        p: scores (n,) in [0, 1].
        dependencies: the edges.

    Raises:
        InputError: for bad scores, or an edge to a position outside 0 to n - 1.
    """
    scores = probability_array(p).copy()
    for positions in (dependencies.claims, dependencies.on):
        if positions.size and not 0 <= positions.min() <= positions.max() < scores.size:
            raise InputError(
                f"dependencies hold the position {positions.max()} or {positions.min()}; give "
                f"positions from 0 to {scores.size - 1}"
            )
    while True:
        lowered = scores.copy()
        np.minimum.at(lowered, dependencies.claims, scores[dependencies.on])
        if np.array_equal(lowered, scores):
            return scores
        scores = lowered
