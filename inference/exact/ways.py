"""Ways of solution of `exact` for graphs of one structure, with their costs and reasons.

`Plan` eliminates, `Conditioned` sums over a cover, `Clamped` over some variables, and `Restricted`
over the possible states; `Refused` tries the last two for each graph. `Planner.way` chooses.
Callers use the methods of `Way` and never check which of the five it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.exact.conditioning import Conditioning, condition
from inference.exact.kernels.propagation import DONE, ZERO
from inference.exact.prediction import Prediction
from inference.possible_states import Support
from inference.stop import NEVER

Threads = Callable[[], int]
"""Function that returns the number of threads, called if tables are large."""

Flag = NDArray[np.int64]
"""Array (1,), nonzero when a run must end; see `inference.stop`."""


class Run(NamedTuple):
    """Result of a run: code of the kernels, log Z, marginals, and the arithmetic."""

    code: int
    log_z: float
    marginals: NDArray[np.float64]
    scaled: bool


Fields = tuple[int, float, NDArray[np.float64], bool]
"""The fields of a `Run`."""

Solved = tuple[Prediction, Run]
"""Predicted cost of the way that was used in the end, and the result."""


class Way(Protocol):
    """Protocol of ways of solution for all graphs of a structure or, with zeros, for one graph."""

    @property
    def cost(self) -> Prediction:
        """Predicted cost."""

    @property
    def reason(self) -> str:
        """Clause that states why it is used, or why not."""

    def cost_of(self, graph: FactorGraph) -> Prediction:
        """Return the predicted cost of one graph."""

    def solve(self, graph: FactorGraph, threads: Threads, stop: Flag = NEVER) -> Solved:
        """Return log Z and marginals of a graph without evidence.

        Raises:
            TooLargeError: if no way fits the limits.
            ZeroPartitionError: if a variable has no possible state.
            UnfinishedError: if the flag `stop` was raised.
        """

    def settled(self, graph: FactorGraph, *, removed: bool = False) -> Way:
        """Return the way of one graph, which its zeros may decide.

        Args:
            graph: a graph without evidence.
            removed: whether its impossible states were removed before.

        Raises:
            TooLargeError: if no way fits the limits.
            ZeroPartitionError: if a variable has no possible state.
        """

    def run_each(self, rows: Sequence[NDArray[np.float64]]) -> Iterator[Fields] | None:
        """Return the results for each of many log tables, in one call of compiled code.

        Return None if graphs are solved one by one.
        """

    def runs_beside(self, share: float) -> bool:
        """Return whether graphs may be solved side by side, each in a share of the memory."""


class OneByOne:
    """Defaults of a way that solves one graph at a time, with all memory and threads."""

    def settled(self: Way, graph: FactorGraph, *, removed: bool = False) -> Way:  # noqa: ARG002
        """Return the way itself, which is the same for every graph."""
        return self

    def run_each(self, rows: Sequence[NDArray[np.float64]]) -> Iterator[Fields] | None:  # noqa: ARG002
        """Return None."""
        return None

    def runs_beside(self, share: float) -> bool:  # noqa: ARG002
        """Return false."""
        return False


@dataclass(frozen=True, eq=False)
class Conditioned(OneByOne):
    """Conditioning, if elimination costs more.

    Attributes:
        cost: cost of conditioning, with the width and the tables of elimination.
        conditioning: the sum over a cover.
        instead: way of solution for graphs in which a product could underflow.
    """

    cost: Prediction
    conditioning: Conditioning
    instead: Callable[[FactorGraph], Way]

    @property
    def reason(self) -> str:
        """Clause that states the predicted time."""
        return self.cost.reason

    def cost_of(self, graph: FactorGraph) -> Prediction:  # noqa: ARG002 - it is that of all
        """Return the predicted cost, which is the same for all graphs."""
        return self.cost

    def solve(self, graph: FactorGraph, threads: Threads, stop: Flag = NEVER) -> Solved:
        """Sum over the states of the cover, or use the other way."""
        sums = condition(graph, self.conditioning, threads(), stop)
        if sums is None:
            return self.instead(graph).solve(graph, threads, stop)
        code = ZERO if sums[0] == -np.inf else DONE
        return self.cost, Run(code, *sums, scaled=True)

    def runs_beside(self, share: float) -> bool:  # noqa: ARG002 - it takes almost no memory
        """Return true."""
        return True


@dataclass(frozen=True, eq=False)
class Restricted(OneByOne):
    """Sum over the possible states of one graph.

    Attributes:
        support: the possible states.
        way: way of solution of the remaining graph.
    """

    support: Support
    way: Way

    @property
    def cost(self) -> Prediction:
        """Predicted cost for the possible states."""
        return self.way.cost

    @property
    def reason(self) -> str:
        """Clause that states why they are summed in this way."""
        return self.way.reason

    def cost_of(self, graph: FactorGraph) -> Prediction:  # noqa: ARG002 - it has one
        """Return the predicted cost of the remaining graph."""
        return self.way.cost_of(self.support.graph)

    def solve(
        self,
        graph: FactorGraph,  # noqa: ARG002 - it has one
        threads: Threads,
        stop: Flag = NEVER,
    ) -> Solved:
        """Solve the remaining graph, and give impossible states probability 0."""
        cost, run = self.way.solve(self.support.graph, threads, stop)
        if run.code == DONE:
            log_z = run.log_z + self.support.log_constant
            run = run._replace(log_z=log_z, marginals=self.support.expand(run.marginals))
        return cost, run
