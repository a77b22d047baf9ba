"""Frustration: how far a graph of pairs is from one in which all relations can be satisfied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.messages.kernels.frustration import count_cycles, signs
from inference.messages.kernels.reduction import Reduced
from inference.messages.reduction import reduced


@dataclass(frozen=True)
class Frustration:
    """Signs of a graph's pairs and of its cycles.

    A pair is negative if its two variables rather differ than agree (its log odds ratio is below
    0), a cycle is frustrated if an odd number of its pairs is negative. A graph is balanced if no
    cycle is frustrated, which holds if and only if no cycle of one basis is (Harary 1953); flipping
    the states of some variables then makes every pair positive, so whatever holds for attractive
    models holds for it. In particular the Bethe log Z of every fixed point of belief propagation
    is at most log Z (Ruozzi 2012).

    Attributes:
        positive, negative: number of pairs of each sign; independent pairs have none.
        cycles: size of the fundamental cycle basis of a breadth-first spanning forest.
        frustrated: how many cycles of that basis are frustrated. The number depends on the
            forest, and so on the order of the variables; whether it is 0 does not.
    """

    positive: int
    negative: int
    cycles: int
    frustrated: int

    @property
    def share(self) -> float:
        """The share of frustrated cycles in the basis; 0 if there is no cycle."""
        return self.frustrated / self.cycles if self.cycles else 0.0

    @property
    def attractive(self) -> bool:
        """Whether no pair is negative."""
        return self.negative == 0

    @property
    def balanced(self) -> bool:
        """Whether no cycle is frustrated."""
        return self.frustrated == 0


def frustration(graph: FactorGraph) -> Frustration:
    """Frustration of a graph of pairs of binary variables, given its evidence.

    Constants and factors of one variable do not matter, nor does a larger factor of which the
    evidence leaves two variables; several factors on one pair are multiplied.

    Raises:
        InputError: if a factor joins more than two variables, or one of more than two states.
        ZeroPartitionError: if zeros leave some variable without a state.
    """
    absorbed = graph.absorb_evidence()
    result = frustration_of(absorbed.cardinalities, reduced(absorbed))
    if result is None:
        raise InputError(
            "frustration is defined for pairs of binary variables, and this graph has a factor of "
            "more variables or states; observe variables or use a pairwise model"
        )
    return result


def frustration_of(cardinalities: NDArray[np.int64], model: Reduced) -> Frustration | None:
    """Frustration of a reduced graph, None if it is not one of binary pairs."""
    if np.any(np.diff(model.scope_starts) != 2) or np.any(
        cardinalities[model.scope_variables] != 2
    ):
        return None
    sign = signs(model)
    cycles, frustrated = count_cycles(model, sign)
    return Frustration(
        positive=int(np.count_nonzero(sign > 0)),
        negative=int(np.count_nonzero(sign < 0)),
        cycles=cycles,
        frustrated=frustrated,
    )
