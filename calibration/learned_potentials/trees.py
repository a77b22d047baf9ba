"""Exact sums over the hidden causes of nested groups of claims, for batches of potentials.

A claim has log odds u. Each group on a higher level has a hidden binary cause with the level's bias
as its log odds. The weight of agreement between a cause and a node below it is exp(J) times the
weight of disagreement, where J is the coupling of the level. The graph is a forest: an upward pass
gives log Z, and a downward pass gives all marginals (Pearl 1988, chapter 4). All arrays have a
leading axis of b potentials, such as folds, penalties and seeds, which are computed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibration.validation import Integers
from factormodels.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Forest:
    """Parents of claims and causes.

    Attributes:
        parents: for each level from the claims upwards, the parent of each node, int64.
        sizes: number of causes on each level above the claims.
    """

    parents: tuple[Integers, ...]
    sizes: tuple[int, ...]


def forest_of(levels: Sequence[tuple[str, Integers]]) -> Forest:
    """Build the forest of nested groups of n claims, from the finest level to the coarsest.

    Args:
        levels: name of each level, and the group of each claim, int64 (n,), numbered from 0.

    Raises:
        InputError: if a group of a level has claims from two groups of the next level.
    """
    parents: list[Integers] = []
    sizes: list[int] = []
    for level, (name, group) in enumerate(levels):
        above = group
        if level:
            finer, below = levels[level - 1]
            above = np.zeros(sizes[-1], np.int64)
            above[below] = group
            if not np.array_equal(above[below], group):
                raise InputError(
                    f"the causes {finer!r} and {name!r} are not nested: a group of {finer!r} has "
                    f"claims of several groups of {name!r}; give the finest first, or leave one out"
                )
        parents.append(above)
        sizes.append(int(group.max(initial=-1)) + 1)
    return Forest(tuple(parents), tuple(sizes))


def log_partition(log_odds: Tensor, couplings: Tensor, biases: Tensor, forest: Forest) -> Tensor:
    """Natural logarithm of the sum over all states of claims and causes, (b,).

    Args:
        log_odds: log odds of each claim, (b, n).
        couplings: coupling of each level, (b, levels).
        biases: log odds of the causes of each level, (b, levels).
        forest: parents of claims and causes.
    """
    import torch

    fields, _ = _upward(log_odds, couplings, biases, forest)
    total = torch.logaddexp(fields[-1], torch.zeros_like(fields[-1])).sum(1)
    for level, field in enumerate(fields[:-1]):
        half = (couplings[:, level : level + 1] / 2).expand_as(field)
        total = total + torch.logaddexp(half, field - half).sum(1)
    return total


def marginal_log_odds(
    log_odds: Tensor, couplings: Tensor, biases: Tensor, forest: Forest
) -> Tensor:
    """Posterior log odds of every claim, (b, n); arguments as in `log_partition`."""
    fields, messages = _upward(log_odds, couplings, biases, forest)
    down = fields[-1] * 0.0
    for level in reversed(range(len(messages))):
        shared = (fields[level + 1] + down)[:, forest.parents[level]]
        cavity = shared - messages[level]
        down = _through(cavity, couplings[:, level : level + 1])
    return log_odds + down


def _upward(
    log_odds: Tensor, couplings: Tensor, biases: Tensor, forest: Forest
) -> tuple[list[Tensor], list[Tensor]]:
    """Log odds of each level given the nodes below it, and the messages from each level upwards."""
    fields, messages = [log_odds], []
    for level, (above, size) in enumerate(zip(forest.parents, forest.sizes, strict=True)):
        messages.append(_through(fields[-1], couplings[:, level : level + 1]))
        fields.append(_summed(messages[-1], above, size) + biases[:, level : level + 1])
    return fields, messages


def _through(field: Tensor, coupling: Tensor) -> Tensor:
    """Log odds of a node induced by a neighbor with log odds `field`."""
    import torch

    # tanh(m / 2) = tanh(J / 2) tanh(h / 2), at half the cost of two sums of exponentials.
    return 2.0 * torch.atanh(torch.tanh(coupling / 2) * torch.tanh(field / 2))


def _summed(values: Tensor, group: Integers, size: int) -> Tensor:
    import torch

    return values.new_zeros(len(values), size).index_add(1, torch.from_numpy(group), values)
