"""What exact inference would cost, before it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from inference.backend import PredictedCost
from inference.exact.kernels.cluster_tree import Cost

Method = Literal["elimination", "conditioning", "clamping"]

BYTES_PER_ENTRY = 8

STEPS_PER_SECOND = 1e9
"""Steps of the search for an elimination order, as they are counted, that take a second."""

SECONDS_PER_OPERATION = 2.5e-9
"""Order of magnitude of one multiplication or addition of the kernels on a current processor."""


@dataclass(frozen=True)
class Prediction(PredictedCost):
    """What exact inference in a graph would cost.

    Attributes:
        seconds: order of magnitude of the time of the method, on one core.
        bytes: memory of all its tables and messages.
        induced_width: most variables that a message holds, by the best elimination order found.
        log2_largest_table: log2 of the entries of the largest table of that order.
        method: elimination, or conditioning where that takes less time or fits the memory, or
            clamping where elimination misses the memory by little; width and tables are then of
            what is left, as they are where only the states that are possible fit.
    """

    bytes: float
    induced_width: int
    log2_largest_table: float
    method: Method = "elimination"

    @classmethod
    def of(cls, cost: Cost) -> Prediction:
        """Prediction for what the kernels count: entries, and operations."""
        seconds = cost.work * SECONDS_PER_OPERATION
        return cls(seconds, cost.entries * BYTES_PER_ENTRY, int(cost.width), cost.log2_largest)

    @property
    def reason(self) -> str:
        """Why exact inference answers, in a clause."""
        return reason_of(self.method, self.seconds)

    def stats(self, seed: int) -> dict[str, Any]:
        """What a posterior tells of its run, but for its arithmetic and the seconds it took."""
        return {
            "method": self.method,
            "induced_width": self.induced_width,
            "largest_table": round(2.0**self.log2_largest_table),
            "predicted_bytes": round(self.bytes),
            "predicted_seconds": self.seconds,
            "seed": seed,
        }


def reason_of(method: str, seconds: float) -> str:
    """Why exact inference answers by a method that is predicted to take so long, in a clause."""
    return f"exact {method} takes about {seconds:.2g} s"
