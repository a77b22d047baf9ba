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


def covariance(pairs: AskablePairs, variances: Floats, one: Integers, other: Integers) -> Floats:
    """(n, m): covariances, without noise, of the scores of n pairs with those of m.

    Args:
        pairs: the pairs.
        variances: float64 (7,), of `EFFECTS` and of noise.
        one: int64 (n,), numbers of the first pairs.
        other: int64 (m,), numbers of the others.
    """
    distance = np.abs(pairs.sentence[one][:, None] - pairs.sentence[other])
    same = distance == 0
    found: Floats = variances[2] + variances[4] * same + variances[5] * np.exp(-distance / REACH)
    found *= pairs.passage[one][:, None] == pairs.passage[other]
    found += variances[0] + variances[3] * same
    found += variances[1] * (pairs.claim[one][:, None] == pairs.claim[other])
    return found


def _sums_of_products(pairs: AskablePairs, weights: Floats) -> Floats:
    """(8,): sums of weights' products over any two pairs, by how much of each of `EFFECTS` they
    have in common; then over each pair with itself; then as nearness, the last effect, squared."""
    passages, sentences = int(pairs.passage.max()) + 1, np.unique(pairs.sentence)
    sentence = np.searchsorted(sentences, pairs.sentence)
    both = np.bincount(
        sentence * passages + pairs.passage, weights, sentences.size * passages
    ).reshape(sentences.size, passages)
    near = np.exp(-np.abs(sentences[:, None] - sentences) / REACH)
    return np.array([
        weights.sum() ** 2,
        (np.bincount(pairs.claim, weights) ** 2).sum(),
        (both.sum(axis=0) ** 2).sum(),
        (both.sum(axis=1) ** 2).sum(),
        (both**2).sum(),
        (both * (near @ both)).sum(),
        weights @ weights,
        (both * (near**2 @ both)).sum(),
    ])  # fmt: skip


_MEET = np.array([
    [0, 1, 2, 3, 4, 5, 6],
    [1, 1, 6, 1, 6, 6, 6],
    [2, 6, 2, 4, 4, 5, 6],
    [3, 1, 4, 3, 4, 4, 6],
    [4, 6, 4, 4, 4, 4, 6],
    [5, 6, 5, 4, 4, 7, 6],
    [6, 6, 6, 6, 6, 6, 6],
])  # fmt: skip
"""The product of what two pairs share by two effects, or noise, as a place of `_sums_of_products`:
a claim stands in one sentence, and a claim and a passage are one pair."""


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
        products += _sums_of_products(pairs, np.ones(pairs.size))[_MEET] / pairs.size
        right += _sums_of_products(pairs, rest)[:size] / pairs.size
    # Where responses have one sentence or passage each, effects cannot be told apart.
    products += 1e-9 * np.trace(products) / size * np.eye(size)
    root = np.linalg.cholesky(products)
    variances, _ = nnls(root.T, np.linalg.solve(root, right))
    variances[-1] = max(variances[-1], 1e-3)
    return mean, variances


class FieldState:
    """The field of one response, conditioned on the answers so far.

    The joint covariance is never formed: each answer leaves one row, the covariances with its
    score over the root of its variance, and what all of them explain is the sum of their products
    (a Cholesky factor of what was asked, grown row by row).

    Attributes:
        mean: float64 (n,), expected score of every pair.
        variance: float64 (n,), its variance without noise.
        noise: variance of the noise.
        asked: bool (n,), whether it was asked.
    """

    def __init__(self, pairs: AskablePairs, mean: Floats, variances: Floats) -> None:
        self.mean: Floats = pairs.columns @ mean
        self.variance: Floats = np.full(pairs.size, variances[:-1].sum())
        self.noise = float(variances[-1])
        self.asked = np.zeros(pairs.size, dtype=np.bool_)
        self._pairs, self._variances = pairs, variances
        self._live = np.arange(pairs.size)
        self._told: list[int] = []
        self._factor: list[Floats] = []
        self._rows: Floats = np.empty((16, pairs.size))

    def tell(self, pair: int, score: float) -> None:
        """Condition on the score that a pair was answered with."""
        place = int(np.searchsorted(self._live, pair))
        self.asked[pair] = True
        if place == self._live.size or self._live[place] != pair:
            return
        before = self._rows[: len(self._told)]
        row = covariance(self._pairs, self._variances, np.array([pair]), self._live)[0]
        known = before[:, place].copy()
        row -= known @ before
        spread = max(float(row[place]), 0.0) + self.noise
        self.mean[self._live] += row * ((score - self.mean[pair]) / spread)
        row /= np.sqrt(spread)
        self.variance[self._live] = np.maximum(self.variance[self._live] - row**2, 0.0)
        if len(self._told) == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[len(self._told)] = row
        self._told.append(pair)
        self._factor.append(np.append(known, np.sqrt(spread)))

    def follow(self, wanted: NDArray[np.bool_]) -> None:
        """Leave pairs that nothing hangs on as they are from now on: answers move the others alone.

        Args:
            wanted: bool (n,), the pairs that are followed; what was left stays so.
        """
        kept = wanted[self._live] & ~self.asked[self._live]
        if kept.sum() <= 0.8 * kept.size:
            self._rows = self._rows[:, kept]
            self._live = self._live[kept]

    def draw(self, count: int, seed: int) -> Floats:
        """(count, n) standard normal numbers, correlated as the scores of the pairs now are.

        Effects and noise are drawn as before any answer; less what the answers so far would have
        told of that draw, what is left has the conditional law (Matheron's rule).
        """
        from scipy.linalg import solve_triangular

        generator = np.random.default_rng(seed)
        noise = generator.standard_normal((count, self.mean.size))
        drawn: Floats = noise.copy()
        kept = ~self.asked[self._live]
        live, told = self._live[kept], np.array(self._told, dtype=np.int64)
        if not live.size:
            return drawn
        noise *= np.sqrt(self.noise)
        field = _drawn_effects(self._pairs, self._variances, count, generator)
        if told.size:
            factor = np.zeros((told.size, told.size))
            for number, row in enumerate(self._factor):
                factor[number, : row.size] = row
            seen = solve_triangular(factor, (field + noise)[:, told].T, lower=True)
            explained = seen.T @ self._rows[: told.size, kept]
        else:
            explained = 0.0
        left = field[:, live] - explained + noise[:, live]
        drawn[:, live] = left / np.sqrt(self.variance[live] + self.noise)
        return drawn


def _drawn_effects(
    pairs: AskablePairs, variances: Floats, count: int, generator: np.random.Generator
) -> Floats:
    """(count, n): the scores of the pairs without mean and noise, drawn `count` times."""
    sentences, sentence = np.unique(pairs.sentence, return_inverse=True)
    passages = int(pairs.passage.max()) + 1
    near = np.exp(-np.abs(sentences[:, None] - sentences) / REACH)
    # By passage, sentence and both; the last also as a process along the text.
    root = np.linalg.cholesky(near + 1e-9 * np.eye(sentences.size))
    both = generator.standard_normal((count, passages, sentences.size)) * np.sqrt(variances[4])
    both += np.sqrt(variances[5]) * (generator.standard_normal(both.shape) @ root.T)
    both += np.sqrt(variances[2]) * generator.standard_normal((count, passages, 1))
    both += np.sqrt(variances[3]) * generator.standard_normal((count, 1, sentences.size))
    both += np.sqrt(variances[0]) * generator.standard_normal((count, 1, 1))
    claims = generator.standard_normal((count, int(pairs.claim.max()) + 1))
    found: Floats = both[:, pairs.passage, sentence]
    found += np.sqrt(variances[1]) * claims[:, pairs.claim]
    return found
