"""The choice of an algorithm by what a graph would cost: exact, or the tightest bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, PredictedCost, TooLargeError
from inference.exact.backend import Exact
from inference.mini_buckets.wmb import WeightedMiniBuckets
from inference.posterior import Posterior

_MOST_SECONDS = 120.0
"""Even a budget that is smaller is exceeded by so much before a graph is refused."""

_I_BOUNDS = (20, 18, 16, 14, 12, 10, 8, 6, 4, 2)


@dataclass(frozen=True)
class Auto(Backend):
    """Exact elimination if it fits the budget, otherwise weighted mini-buckets within it.

    The choice goes by predicted operations, not by the clock, so it is the same on every run:
    the posterior of a bound carries the gap between the upper and the lower one, and `stats`
    says what was chosen and why.

    Attributes:
        seconds: budget of time; predictions are orders of magnitude.
        memory_limit: bytes that the tables may take; None: three quarters of the free memory.
        seed: seed of the search for an elimination order.
    """

    name: ClassVar[str] = "auto"

    seconds: float = 10.0
    memory_limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.seconds > 0.0:
            raise InputError(f"the budget of {self.seconds} seconds of 'auto' is not positive")
        self._exact()

    def solve(self, graph: FactorGraph) -> Posterior:
        """Posterior of a graph without evidence, exact or bounded.

        Raises:
            TooLargeError: if a single factor is too large for a table, or even the loosest bound
                would take minutes and more than the budget.
            ZeroPartitionError: if no assignment has positive potential.
        """
        chosen, _, reason = self._choice(graph)
        posterior = chosen.solve(graph)
        stats = {**posterior.stats, "chosen": repr(chosen), "reason": reason}
        return replace(posterior, stats=stats)

    def predict(self, graph: FactorGraph) -> PredictedCost:
        """What the algorithm that is chosen for a graph would cost."""
        return self._choice(graph)[1]

    def _choice(self, graph: FactorGraph) -> tuple[Backend, PredictedCost, str]:
        """What answers for a graph, what it would cost, and why it was chosen."""
        exact = self._exact()
        prediction = exact.predict(graph)
        fits = prediction.bytes <= exact.allowed_bytes()
        if fits and prediction.seconds <= self.seconds:
            reason = f"exact {prediction.method} takes about {prediction.seconds:.2g} s"
            return exact, prediction, reason
        lack = (
            f"about {prediction.seconds:.2g} s of {self.seconds:g} s"
            if fits
            else f"{prediction.bytes / 2**30:.3g} GiB"
        )
        reason = f"exact elimination, of induced width {prediction.induced_width}, needs {lack}"
        # What certainly takes too long is not predicted: in a dense graph that takes long itself.
        tried = [WeightedMiniBuckets(seed=self.seed, i_bound=i_bound) for i_bound in _I_BOUNDS]
        absorbed = graph.absorb_evidence()
        least = tried[-1].least_seconds(absorbed)
        if least > max(self.seconds, _MOST_SECONDS):
            raise TooLargeError(
                f"{reason}, and the loosest bound takes more than {least:,.0f} s; use backend "
                f"'lbp' for an estimate, or give more seconds than {self.seconds:g}"
            )
        for chosen in tried:
            last = chosen is tried[-1]
            if not last and chosen.least_seconds(absorbed) > self.seconds:
                continue
            cost = chosen.predict(graph)
            if cost.seconds <= self.seconds:
                break
        return chosen, cost, reason

    def _exact(self) -> Exact:
        return Exact(seed=self.seed, memory_limit=self.memory_limit)
