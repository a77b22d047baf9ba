"""Prediction of the cost of exact inference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from inference.backend import PredictedCost
from inference.exact.kernels.cluster_tree import Cost
from inference.exact.kernels.program import (
    CHILDREN,
    CONSTANT,
    CONTIGUOUS,
    FORM,
    INPUTS,
    KIND,
    ONE_QUARTET,
    PRODUCT,
    QUARTETS,
    SCATTERED,
    TABLE,
    TARGET,
    TreeProgram,
)

Method = Literal["elimination", "conditioning", "clamping"]

BYTES_PER_ENTRY = 8

REFERENCE = "the reference processor"

STEPS_PER_SECOND = 1e9
"""Counted steps of the search for an elimination order per second."""

SECONDS_PER_OPERATION = 3e-10
"""Reference seconds of a multiplication or addition, if the kernel that does it is unknown. It is
.08 to .8 ns in the networks that the constants below are fitted to."""

FEWEST_OPERATIONS = 4e6
"""Operations, about a millisecond, from which on a program's steps are counted by kind."""

# Reference seconds, fitted by non-negative least squares of relative errors to the times of 44
# programs on one core of an Intel Xeon at 2.1 GHz with AVX-512; they are within a factor 1.7.
_PER_CLUSTER = 8e-8
_PER_QUARTET = 1.8e-8
_PER_OWN_ENTRY = 1.3e-9
_PER_ENTRY = {SCATTERED: 8.4e-10, QUARTETS: 5.2e-10, CONTIGUOUS: 1e-10, CONSTANT: 1e-10}
_PER_STREAMED_ENTRY = 1.3e-9
_PER_PRODUCT = 3.5e-10
_PER_POTENTIAL = 1.5e-9
_PER_LOG_ENTRY = 7.2e-9
_PER_FRESH_BYTE = 1e-10

_STREAMED = 2**17
"""Entries, 1 MiB, from which on a table does not stay in a core's cache between the passes."""


class Work(NamedTuple):
    """Reference seconds of a run by kind of work; each machine has a separate speed for each kind.

    Attributes:
        steps: fixed costs of the clusters, and exponentials of the potentials.
        entries: arithmetic on the entries of tables.
        streamed: reading and writing tables beyond a core's cache.
        products: clusters that are summed as products of matrices.
        logs: the walk in log space.
        states: conditioning.
        fresh: first use of the tables' memory.
    """

    steps: float = 0.0
    entries: float = 0.0
    streamed: float = 0.0
    products: float = 0.0
    logs: float = 0.0
    states: float = 0.0
    fresh: float = 0.0

    @property
    def seconds(self) -> float:
        """Sum of all kinds."""
        return float(sum(self))

    def times(self, runs: int) -> Work:
        """Return the work of several runs in the same memory."""
        return Work(*(runs * seconds for seconds in self))._replace(fresh=self.fresh)


_NOTHING = Work()


def scaled_work(program: TreeProgram, potentials: int, in_bytes: float) -> Work:
    """Return the work of a scaled walk of a program.

    Args:
        program: the program.
        potentials: number of entries of the factors.
        in_bytes: memory of all tables and messages.
    """
    steps, inputs = program.steps, program.inputs
    sizes = np.diff(steps[:, TABLE]).astype(np.float64)
    counts = np.diff(steps[:, INPUTS])
    multiplied = (steps[:-1, PRODUCT] >= 0) & (len(program.products) > 0)
    quartets = ~multiplied & (steps[:-1, FORM] == ONE_QUARTET)
    plain = ~multiplied & ~quartets
    # Of each input: its cluster's entries once on the way up, and once more if it is answered.
    passed = np.repeat(np.where(plain, sizes, 0.0), counts) * (1.0 + (inputs[:, TARGET] >= 0))
    entries = _PER_OWN_ENTRY * float(sizes[plain].sum())
    for kind, seconds in _PER_ENTRY.items():
        entries += seconds * float(passed[inputs[:, KIND] == kind].sum())
    in_quartets = int(quartets.sum() + counts[quartets].sum())
    return Work(
        steps=_PER_CLUSTER * (len(sizes) - int(quartets.sum()))
        + _PER_QUARTET * in_quartets
        + _PER_POTENTIAL * potentials,
        entries=entries,
        streamed=_PER_STREAMED_ENTRY * float(sizes[plain & (sizes > _STREAMED)].sum()),
        products=3.0 * _PER_PRODUCT * float(sizes[multiplied].sum()),
        fresh=fresh_work(in_bytes).fresh,
    )


def log_work(program: TreeProgram, in_bytes: float) -> Work:
    """Return the work of the walk of a program in log space, as `scaled_work` does."""
    steps = program.steps
    inputs, children = np.diff(steps[:, INPUTS]), steps[1:, INPUTS] - steps[:-1, CHILDREN]
    passes = np.diff(steps[:, TABLE]).astype(np.float64) * (inputs + 2 * children + 3)
    return fresh_work(in_bytes)._replace(logs=_PER_LOG_ENTRY * float(passes.sum()))


def fresh_work(in_bytes: float) -> Work:
    """Return the work of the first use of some bytes of memory."""
    return Work(fresh=_PER_FRESH_BYTE * in_bytes)


@dataclass(frozen=True)
class Prediction(PredictedCost):
    """Predicted cost of exact inference in a graph.

    Attributes:
        seconds: time of the method on one core of the reference processor, counted, so that it is
            the same on every machine; `inference.exact.speed` converts it to this machine's time.
        bytes: memory of all its tables and messages.
        induced_width: maximum number of variables of a message, by the best elimination order
            found.
        log2_largest_table: log2 of the entries of the largest table of that order.
        method: elimination; conditioning if that takes less time or fits the memory; or clamping if
            elimination exceeds the memory. Width and tables are then those of the
            remaining graph, as they are if only the possible states fit.
        operations: multiplications and additions of elimination.
        work: the seconds by kind.
    """

    bytes: float
    induced_width: int
    log2_largest_table: float
    method: Method = "elimination"
    operations: float = 0.0
    work: Work = _NOTHING

    @classmethod
    def of(cls, cost: Cost) -> Prediction:
        """Return the prediction from the kernels' counts of entries and operations."""
        # Made once, since replacing a field takes a tenth of the plan of a small graph.
        seconds = cost.work * SECONDS_PER_OPERATION
        return cls(
            seconds,
            cost.entries * BYTES_PER_ENTRY,
            int(cost.width),
            cost.log2_largest,
            operations=cost.work,
            work=Work(entries=seconds),
        )

    def with_work(self, work: Work, method: Method | None = None) -> Prediction:
        """Return the prediction with other work, and with another method if one is given."""
        return replace(self, seconds=work.seconds, work=work, method=method or self.method)

    @property
    def described(self) -> str:
        """Name of the method, with the induced width."""
        return f"exact {self.method}, of induced width {self.induced_width},"

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
