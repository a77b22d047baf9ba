"""Prediction of the cost of exact inference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from inference.backend import PredictedCost
from inference.exact.kernels.cluster_tree import Cost

Method = Literal["elimination", "conditioning", "clamping"]

BYTES_PER_ENTRY = 8

STEPS_PER_SECOND = 1e9
"""Counted steps of the search for an elimination order per second."""

SECONDS_PER_OPERATION = 2.5e-9
"""Approximate seconds of a multiplication or addition of the kernels on a current processor."""


@dataclass(frozen=True)
class Prediction(PredictedCost):
    """Predicted cost of exact inference in a graph.

    Attributes:
        seconds: order of magnitude of the time of the method, on one core.
        bytes: memory of all its tables and messages.
        induced_width: maximum number of variables of a message, by the best elimination order
            found.
        log2_largest_table: log2 of the entries of the largest table of that order.
        method: elimination; conditioning if that takes less time or fits the memory; or clamping if
            elimination slightly exceeds the memory. Width and tables are then those of the
            remaining graph, as they are if only the possible states fit.
    """

    bytes: float
    induced_width: int
    log2_largest_table: float
    method: Method = "elimination"

    @classmethod
    def of(cls, cost: Cost) -> Prediction:
        """Return the prediction from the kernels' counts of entries and operations."""
        seconds = cost.work * SECONDS_PER_OPERATION
        return cls(seconds, cost.entries * BYTES_PER_ENTRY, int(cost.width), cost.log2_largest)

    @property
    def reason(self) -> str:
        """Clause that states why exact inference answers."""
        return reason_of(self.method, self.seconds)

    def stats(self, seed: int) -> dict[str, Any]:
        """Return the `stats` of a run, except for its arithmetic and duration."""
        return {
            "method": self.method,
            "induced_width": self.induced_width,
            "largest_table": round(2.0**self.log2_largest_table),
            "predicted_bytes": round(self.bytes),
            "predicted_seconds": self.seconds,
            "seed": seed,
        }


def reason_of(method: str, seconds: float) -> str:
    """Return the clause that exact inference answers by a method with a predicted time."""
    return f"exact {method} takes about {seconds:.2g} s"
