"""Replicates of a statistic; whole responses are redrawn, since their atoms are dependent.

    replicates(statistic, response_weights(n_responses, n_bootstrap=1000, seed=0))

A statistic is a function from weights of responses, (b, n_responses), to a row of values for each
of the b replicates: `RatioSums.replicates` for sums over responses, `of_samples` for scores of
forecasts, or any other function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from calibration.forecasts import Forecasts, Sample
from calibration.validation import Floats

Statistic = Callable[[Floats], Floats]
"""Function from response weights, (b, n_responses), to values, (b, k), nan if undefined."""

Ends = tuple[Floats, Floats]
"""Least and largest values, float64 (k,) each."""

JACKKNIFE_GROUPS = 100
"""Maximum number of groups of responses that the jackknife leaves out.

Sums over groups have the same expected skewness as sums over responses.
"""

_DRAWS_AT_ONCE = 1_000_000

_RANDOM_RESAMPLES = 200


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
    for rows in _block_sizes(n_bootstrap, n_responses):
        draws = generator.integers(0, n_responses, size=(rows, n_responses))
        draws += np.arange(rows)[:, np.newaxis] * n_responses
        counts = np.bincount(draws.ravel(), minlength=rows * n_responses)
        yield counts.reshape(rows, n_responses).astype(np.float64)


def drawn_weights(
    generator: np.random.Generator, n_bootstrap: int, n_responses: int, n_drawn: int
) -> Floats:
    """Number of draws of each response in replicates of any size, (n_bootstrap, n_responses).

    Unlike `response_weights`, which starts its own generator, draws of several data sets can follow
    each other, as where training data and new data are redrawn together.

    Args:
        generator: the generator.
        n_bootstrap: number of replicates.
        n_responses: number of responses, each drawn with equal probability, with replacement.
        n_drawn: number of draws in a replicate.
    """
    shares = np.full(n_responses, 1.0 / n_responses)
    return generator.multinomial(n_drawn, shares, n_bootstrap).astype(np.float64)


def jackknife_weights(n_responses: int, seed: int) -> Iterator[Floats]:
    """Yield samples that each lack one group of responses: 0 for its responses, 1 for the others.

    Groups are single responses if there are at most `JACKKNIFE_GROUPS`, otherwise random groups of
    about equal numbers of responses.

    Args:
        n_responses: number of responses.
        seed: seed of the grouping.

    Yields:
        float64 (n_groups_of_block, n_responses).
    """
    n_groups = min(n_responses, JACKKNIFE_GROUPS)
    group = np.random.default_rng(seed).permutation(np.arange(n_responses) % n_groups)
    start = 0
    for rows in _block_sizes(n_groups, n_responses):
        numbers = np.arange(start, start + rows)
        yield (group != numbers[:, np.newaxis]).astype(np.float64)
        start += rows


def jackknife_error(left_out: Floats) -> Floats:
    """Standard errors from the finite values of the jackknife's samples, (k,).

    Args:
        left_out: values of the samples of `jackknife_weights`, (n_groups, k).
    """
    finite = np.isfinite(left_out)
    count = finite.sum(axis=0)
    mean = np.where(finite, left_out, 0.0).sum(axis=0) / np.maximum(count, 1)
    squares = np.where(finite, left_out - mean, 0.0) ** 2
    error = np.sqrt((count - 1) / np.maximum(count, 1) * squares.sum(axis=0))
    return np.asarray(np.where(count > 1, error, np.nan))


def jackknife(
    statistic: Statistic, values: Floats, n_responses: int, seed: int
) -> tuple[Floats, Floats, int]:
    """Standard errors of values, influence of each response, and number of groups left out.

    Args:
        statistic: the values, of response weights.
        values: values in the data, (k,).
        n_responses: number of responses.
        seed: seed of the groups of `jackknife_weights`.

    Returns:
        Standard errors, float64 (k,); influences, float64 (n_responses, k), in which a response has
        the influence of its group; and the number of groups.
    """
    weights = np.concatenate(list(jackknife_weights(n_responses, seed)))
    without = replicates(statistic, [weights])
    influence = (weights == 0.0).T.astype(np.float64) @ np.nan_to_num(values - without)
    return jackknife_error(without), influence, len(without)


def reach(statistic: Statistic, influence: Floats, wanted: Ends) -> Ends:
    """Smallest and largest values of resamples, searched as far as `wanted`, (k,) each; infinite if
    there are none.

    The first resamples consist of the responses with the largest influence, or the smallest: half
    of all responses, a quarter, and so on down to one. If these do not reach the wanted ends,
    random resamples follow.

    Args:
        statistic: the values, of response weights.
        influence: influence of each response on each value, up to a factor, (n_responses, k).
        wanted: lower and upper ends at which the search may stop, (k,) each.
    """
    n_responses, n_values = influence.shape
    if n_responses < 2:
        return np.full(n_values, -np.inf), np.full(n_values, np.inf)
    order = np.argsort(np.nan_to_num(influence), axis=0).T
    rows = []
    for ranked in (*order, *order[:, ::-1]):
        kept = n_responses
        while kept > 1:
            kept //= 2
            weights = np.zeros(n_responses)
            weights[ranked[:kept]] = n_responses // kept
            weights[ranked[: n_responses % kept]] += 1
            rows.append(weights)
    lowest, highest = _finite_range(statistic(np.array(rows)))
    if (wanted[0] < lowest).any() or (wanted[1] > highest).any():
        # Draw for responses in the order of their influence, so that their order in the data has no
        # effect, and in the reverse order, so that the opposite difference has the opposite result.
        # Rounding must not order equal influences.
        influences = np.round(np.nan_to_num(influence), 12).T
        for way in (influences, -influences):
            places = np.argsort(np.lexsort(way))
            draws = response_weights(n_responses, _RANDOM_RESAMPLES, seed=0)
            drawn = replicates(statistic, (weights[:, places] for weights in draws))
            low, high = _finite_range(drawn)
            lowest, highest = np.minimum(lowest, low), np.maximum(highest, high)
    none = lowest > highest
    return np.where(none, -np.inf, lowest), np.where(none, np.inf, highest)


def _finite_range(values: Floats) -> Ends:
    """Smallest and largest finite value of each column, (k,) each."""
    finite = np.isfinite(values)
    return (
        np.where(finite, values, np.inf).min(axis=0),
        np.where(finite, values, -np.inf).max(axis=0),
    )


def replicates(statistic: Statistic, weights: Iterable[Floats]) -> Floats:
    """Values of a statistic in every replicate, (n_replicates, k).

    Args:
        statistic: the statistic.
        weights: blocks of response weights, as from `response_weights` and `jackknife_weights`.
    """
    return np.concatenate([statistic(block) for block in weights])


def of_samples(
    points: Forecasts, scores: Callable[[Sample], Floats], workers: int = 1
) -> Statistic:
    """Statistic that scores the forecasts of each replicate one by one.

    Args:
        points: the forecasts.
        scores: scores of a sample, (k,); called from several threads if `workers` > 1.
        workers: number of threads; the values do not depend on it.
    """

    def of_one(weights: Floats) -> Floats:
        sample = points.sample(weights)
        if sample.total <= 0:
            # Only atoms of weight 0 were drawn.
            return np.full_like(scores(points.sample()), np.nan)
        return scores(sample)

    def of_block(weights: Floats) -> Floats:
        if workers == 1:
            return np.array([of_one(row) for row in weights])
        from inference.thread_team import map_in_threads

        rows = range(len(weights))
        return np.array(map_in_threads(lambda row: of_one(weights[row]), rows, workers))

    return of_block


def _block_sizes(n_rows: int, n_responses: int) -> Iterator[int]:
    """Yield the numbers of rows into which replicates are split to limit memory."""
    block = max(1, _DRAWS_AT_ONCE // n_responses)
    for start in range(0, n_rows, block):
        yield min(block, n_rows - start)
