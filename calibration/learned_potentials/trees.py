"""Sums over hidden causes: claims below nested groups, exactly, for a batch of potentials at once.

A claim has log odds u; each group on a level above has a hidden binary cause, whose log odds by
itself are the bias of the level, and a cause and what stands below it agree with exp(J) times the
weight of differing, J being the coupling of the level. The graph is a forest, so that one pass
upwards gives log Z and one downwards every marginal (Pearl 1988, chapter 4). All arrays of the
passes have a leading axis of b potentials, which are learned or applied together: folds, penalties,
seeds.
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
    """Which cause stands above which claim or cause.

    Attributes:
        parents: of each level from the claims upwards, int64: the cause above each of its nodes.
        sizes: number of causes on each level above the claims.
    """

    parents: tuple[Integers, ...]
    sizes: tuple[int, ...]


def forest_of(levels: Sequence[tuple[str, Integers]]) -> Forest:
    """The forest of nested groups of n claims, from the finest level to the coarsest.

    Args:
        levels: name of each level, and the group of each claim on it, int64 (n,) from 0 upwards.

    Raises:
        InputError: if a group of one level has claims of two groups of the next.
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
    """Natural logarithm of the sum over all claims and causes, (b,).

    Args:
        log_odds: of each claim being true, (b, n).
        couplings: of each level, (b, levels).
        biases: log odds of the causes of each level by themselves, (b, levels).
        forest: what stands above what.
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
    """Posterior log odds of every claim, (b, n); arguments as those of `log_partition`."""
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
    """Log odds of each level by what stands below it, and what each level tells the next."""
    fields, messages = [log_odds], []
    for level, (above, size) in enumerate(zip(forest.parents, forest.sizes, strict=True)):
        messages.append(_through(fields[-1], couplings[:, level : level + 1]))
        fields.append(_summed(messages[-1], above, size) + biases[:, level : level + 1])
    return fields, messages


def _through(field: Tensor, coupling: Tensor) -> Tensor:
    """Log odds that a neighbour is true, of one whose log odds are a field."""
    import torch

    # tanh(m / 2) = tanh(J / 2) tanh(h / 2): half as dear as the two sums of exponentials.
    return 2.0 * torch.atanh(torch.tanh(coupling / 2) * torch.tanh(field / 2))


def _summed(values: Tensor, group: Integers, size: int) -> Tensor:
    import torch

    return values.new_zeros(len(values), size).index_add(1, torch.from_numpy(group), values)
