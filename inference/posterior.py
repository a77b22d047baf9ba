"""Posterior: the one result type of every inference algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


class LogZKind(StrEnum):
    """What a reported log partition function is."""

    EXACT = "exact"
    UPPER = "upper"
    LOWER = "lower"
    BETHE = "bethe"
    ELBO = "elbo"
    NONE = "none"


class Status(StrEnum):
    """How a run of an algorithm ended."""

    EXACT = "exact"
    CONVERGED = "converged"
    NOT_CONVERGED = "not_converged"
    INTERRUPTED = "interrupted"


class Marginals(Mapping[str, NDArray[np.float64]]):
    """Marginal distributions by name of variable, in the graph's order, over one flat array.

    Attributes:
        names: names of the variables.
        flat: float64, the probability vectors one after another, read-only.
        starts: int64 (n_variables + 1,); variable v has ``flat[starts[v]:starts[v + 1]]``.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        cardinalities: NDArray[np.int64],
        values: NDArray[np.float64],
        index: Mapping[str, int] | None = None,
    ) -> None:
        self.names = names
        self._cardinalities = cardinalities
        self.flat = np.ascontiguousarray(values, dtype=np.float64)
        self.flat.flags.writeable = False
        self._given_index = index

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the vector of each variable begins; made when it is asked for first."""
        starts = np.zeros(len(self.names) + 1, dtype=np.int64)
        np.cumsum(self._cardinalities, out=starts[1:])
        return starts

    @cached_property
    def _index(self) -> Mapping[str, int]:
        if self._given_index is not None:
            return self._given_index
        return {name: position for position, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """Return the probability of each state of the variable `name`."""
        position = self._index[name]
        return self.flat[self.starts[position] : self.starts[position + 1]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Marginals({len(self.names)} variables)"

    def of_state(self, state: int, names: Sequence[str] | None = None) -> NDArray[np.float64]:
        """Return the probability of one state for several variables (all of them by default)."""
        if names is None:
            return self.flat[self.starts[:-1] + state]
        return np.array([self[name][state] for name in names], dtype=np.float64)


@dataclass(frozen=True)
class Posterior:
    """What an inference algorithm found out about a factor graph.

    Attributes:
        marginals: one probability vector per variable, by name and in order.
        log_z: natural logarithm of the partition function (with evidence: of the evidence's
            unnormalised probability), or None if the algorithm gives none.
        log_z_kind: whether `log_z` is exact, a bound, or which estimate.
        status: how the run ended; failure to converge is a status, not an exception.
        stats: what else the algorithm reports: seconds, iterations, residual_trace,
            induced_width, seed and the like.
        backend: name of the algorithm.
    """

    marginals: Marginals
    log_z: float | None
    log_z_kind: LogZKind
    status: Status
    stats: Mapping[str, Any] = field(default_factory=dict)
    backend: str = ""
