"""A Gaussian field over the scores of pairs: what answers so far say of those not yet asked.

The score of a pair, the log odds of entailment that a relation model would give, is a mean of its
columns, plus effects of its response, claim, passage and sentence, and of sentence and passage
together, plus noise. All effects are normal; their variances are learned across responses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.validation import Floats, Integers

EFFECTS = ("response", "claim", "passage", "sentence", "sentence and passage", "near and passage")
"""What pairs can share, in the order of the variances; noise comes last. Near: how close their
sentences are, exp(-distance / `REACH`)."""

REACH = 1.5
"""Sentences after which what two claims of one passage have in common has fallen to 1/e."""

_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class AskablePairs:
    """The pairs of one response that can be asked.

    Attributes:
        claim: int64 (n,), number of each pair's claim.
        passage: int64 (n,), number of its passage.
        sentence: int64 (n,), number of the sentence that the claim is from.
        columns: float64 (n, d), what is known of the pair without asking; the first is 1.
        prior: float64 (n_claims,), log odds of each claim before any answer.
    """

    claim: Integers
    passage: Integers
    sentence: Integers
    columns: Floats
    prior: Floats

    @property
    def size(self) -> int:
        """The number of pairs."""
        return int(self.claim.size)


def shared(pairs: AskablePairs) -> list[Floats]:
    """For each of `EFFECTS`, (n, n): how much of it two pairs have in common."""
    claim, passage, sentence = (
        each[:, None] == each[None] for each in (pairs.claim, pairs.passage, pairs.sentence)
    )
    distance = np.abs(pairs.sentence[:, None] - pairs.sentence[None])
    ones = np.ones(claim.shape, dtype=np.bool_)
    parts: list[NDArray[np.generic]] = [ones, claim, passage, sentence, sentence & passage]
    return [
        *(part.astype(np.float64) for part in parts),
        passage * np.exp(-distance / REACH),
    ]


def learn_variances(
    responses: Sequence[AskablePairs], scores: Sequence[Floats]
) -> tuple[Floats, Floats]:
    """Coefficients of the columns, (d,), and the variances of `EFFECTS` and of noise, (7,).

    Least squares; then products of residuals of two pairs are regressed on what these share, with
    no variance below 0 and every response weighing as its number of pairs (Haseman and Elston
    1972).

    Args:
        responses: pairs that were all asked.
        scores: for each response, (n,): what was answered.
    """
    from scipy.optimize import nnls

    columns = np.concatenate([pairs.columns for pairs in responses])
    square = columns.T @ columns + _RIDGE * np.eye(columns.shape[1])
    mean = np.linalg.solve(square, columns.T @ np.concatenate(scores))
    size = len(EFFECTS) + 1
    products, right = np.zeros((size, size)), np.zeros(size)
    for pairs, score in zip(responses, scores, strict=True):
        if not pairs.size:
            continue
        rest = score - pairs.columns @ mean
        flat = np.stack([part.ravel() for part in (*shared(pairs), np.eye(pairs.size))])
        products += flat @ flat.T / pairs.size
        right += flat @ np.outer(rest, rest).ravel() / pairs.size
    # Where responses have one sentence or passage each, effects cannot be told apart.
    products += 1e-9 * np.trace(products) / size * np.eye(size)
    root = np.linalg.cholesky(products)
    variances, _ = nnls(root.T, np.linalg.solve(root, right))
    variances[-1] = max(variances[-1], 1e-3)
    return mean, variances


class FieldState:
    """The field of one response, conditioned on the answers so far.

    Attributes:
        mean: float64 (n,), expected score of every pair.
        variance: float64 (n,), its variance without noise.
        noise: variance of the noise.
        asked: bool (n,), whether it was asked.
    """

    def __init__(self, pairs: AskablePairs, mean: Floats, variances: Floats) -> None:
        self.mean: Floats = pairs.columns @ mean
        self._live = np.arange(pairs.size)
        self._joint: Floats = np.asfortranarray(
            sum(v * part for v, part in zip(variances, shared(pairs), strict=False))
        )
        self.variance: Floats = self._joint.diagonal().copy()
        self.noise = float(variances[-1])
        self.asked = np.zeros(pairs.size, dtype=np.bool_)

    def tell(self, pair: int, score: float) -> None:
        """Condition on the score that a pair was answered with."""
        from scipy.linalg.blas import dger

        place = int(np.searchsorted(self._live, pair))
        self.asked[pair] = True
        if place == self._live.size or self._live[place] != pair:
            return
        row = self._joint[:, place].copy()
        spread = row[place] + self.noise
        self.mean[self._live] += row * ((score - self.mean[pair]) / spread)
        self._joint = dger(-1.0 / spread, row, row, a=self._joint, overwrite_a=True)
        self.variance[self._live] = np.maximum(self._joint.diagonal(), 0.0)

    def follow(self, wanted: NDArray[np.bool_]) -> None:
        """Leave pairs that nothing hangs on as they are from now on: answers move the others alone.

        Args:
            wanted: bool (n,), the pairs that are followed; what was left stays so.
        """
        kept = wanted[self._live] & ~self.asked[self._live]
        if kept.sum() <= 0.8 * kept.size:
            places = np.flatnonzero(kept)
            self._joint = np.asfortranarray(self._joint[np.ix_(places, places)])
            self._live = self._live[places]

    def draw(self, count: int, seed: int) -> Floats:
        """(count, n) standard normal numbers, correlated as the scores of the pairs now are."""
        generator = np.random.default_rng(seed)
        drawn: Floats = generator.standard_normal((count, self.mean.size))
        kept = np.flatnonzero(~self.asked[self._live])
        if kept.size:
            joint = self._joint[np.ix_(kept, kept)] + self.noise * np.eye(kept.size)
            scale = np.sqrt(joint.diagonal())
            root = np.linalg.cholesky(joint / np.outer(scale, scale))
            live = self._live[kept]
            drawn[:, live] = drawn[:, live] @ root.T
        return drawn
