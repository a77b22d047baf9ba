"""Ways through `exact`: how graphs of one structure are solved, at what cost, and why so.

`Plan` eliminates, `Conditioned` sums over a cover, `Clamped` over a few variables and `Restricted`
over the states that zeros leave possible; `Refused` looks at each graph for one of the last two.
`Planner.way` chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.exact.conditioning import Conditioning, condition
from inference.exact.kernels.propagation import DONE, ZERO
from inference.exact.prediction import Prediction
from inference.possible_states import Support

Threads = Callable[[], int]
"""How many threads may be used, asked for where tables are large."""


class Run(NamedTuple):
    """What a run found: a code of the kernels, log Z, marginals, and the arithmetic."""

    code: int
    log_z: float
    marginals: NDArray[np.float64]
    scaled: bool


Solved = tuple[Prediction, Run]
"""What it cost, as predicted of the way that was gone in the end, and what was found."""


class Way(Protocol):
    """One way through `exact`, for all graphs of a structure or, where zeros count, for one."""

    @property
    def cost(self) -> Prediction:
        """What it is predicted to cost."""

    @property
    def reason(self) -> str:
        """Why it is gone, or why not, in a clause."""

    def solve(self, graph: FactorGraph, threads: Threads) -> Solved:
        """Log Z and marginals of a graph without evidence.

        Raises:
            TooLargeError: if no way is left that fits the limits.
            ZeroPartitionError: if no state of a variable is possible.
        """


@dataclass(frozen=True, eq=False)
class Conditioned:
    """Conditioning where elimination costs more.

    Attributes:
        cost: of conditioning, with the width and the tables of elimination.
        conditioning: how it goes.
        instead: the way of a graph of which a product could underflow.
    """

    cost: Prediction
    conditioning: Conditioning
    instead: Callable[[FactorGraph], Way]

    @property
    def reason(self) -> str:
        """That it takes little time."""
        return self.cost.reason

    def solve(self, graph: FactorGraph, threads: Threads) -> Solved:
        """Sum over the states of the cover, or go the other way."""
        sums = condition(graph, self.conditioning, threads())
        if sums is None:
            return self.instead(graph).solve(graph, threads)
        code = ZERO if sums[0] == -np.inf else DONE
        return self.cost, Run(code, *sums, scaled=True)


@dataclass(frozen=True, eq=False)
class Restricted:
    """A sum over the possible states of one graph.

    Attributes:
        support: what is possible.
        way: how what is left is solved.
    """

    support: Support
    way: Way

    @property
    def cost(self) -> Prediction:
        """What the possible states cost."""
        return self.way.cost

    @property
    def reason(self) -> str:
        """Why they are summed as they are."""
        return self.way.reason

    def solve(self, graph: FactorGraph, threads: Threads) -> Solved:  # noqa: ARG002 - it has one
        """Solve what is left, and give what is impossible a probability of 0."""
        cost, run = self.way.solve(self.support.graph, threads)
        if run.code == DONE:
            log_z = run.log_z + self.support.log_constant
            run = run._replace(log_z=log_z, marginals=self.support.expand(run.marginals))
        return cost, run
