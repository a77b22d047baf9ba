"""Posterior: the result type of every inference algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factormodels.nouns import counted
from factormodels.object_repr import Preview, Previewed

if TYPE_CHECKING:
    import pandas as pd

    from factormodels.factor_graph import FactorGraph

_FLOAT64 = np.dtype(np.float64)
_SHOWN_STATES = 6


class LogZKind(StrEnum):
    """The kind of a reported log partition function."""

    EXACT = "exact"
    UPPER = "upper"
    LOWER = "lower"
    BETHE = "bethe"
    ELBO = "elbo"
    ESTIMATE = "estimate"
    NONE = "none"


class Status(StrEnum):
    """The status of an algorithm at the end of its run."""

    EXACT = "exact"
    CONVERGED = "converged"
    NOT_CONVERGED = "not_converged"
    INTERRUPTED = "interrupted"


class Marginals(Previewed, Mapping[str, NDArray[np.float64]]):
    """Marginal distributions by name of variable, in the graph's order, over one flat array.

    Attributes:
        names: names of the variables.
        flat: float64, the probability vectors one after another, read-only.
        starts: int64 (n_variables + 1,); variable v has ``flat[starts[v]:starts[v + 1]]``.
    """

    # Slots hold what every posterior of a batch needs; values computed on demand have none.
    __slots__ = ("_cardinalities", "_given_index", "flat", "names")

    def __init__(
        self,
        names: tuple[str, ...],
        cardinalities: NDArray[np.int64],
        values: NDArray[np.float64],
        index: Mapping[str, int] | None = None,
    ) -> None:
        self.names = names
        self._cardinalities = cardinalities
        if (
            not isinstance(values, np.ndarray)  # A list, say, or an array of another library.
            or values.flags.writeable
            or not values.flags.c_contiguous
            or values.dtype is not _FLOAT64
        ):
            values = np.ascontiguousarray(values, dtype=np.float64)
            values.flags.writeable = False
        self.flat = values
        self._given_index = index

    @classmethod
    def of(cls, graph: FactorGraph, values: NDArray[np.float64]) -> Marginals:
        """Return marginals of the variables of a graph from a flat array."""
        # Reuse an existing index of names; otherwise it is created on demand.
        return cls(graph.names, graph.cardinalities, values, vars(graph).get("index"))

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Start of each variable's vector, int64 (n_variables + 1,); computed on demand."""
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

    def of_state(self, state: int, names: Sequence[str] | None = None) -> NDArray[np.float64]:
        """Return the probability of one state for several variables, by default all."""
        if names is None:
            return self.flat[self.starts[:-1] + state]
        if tuple(names) == self.names[: len(names)]:
            # Fast path for the first variables, since claims precede their evidence.
            counts = self._cardinalities[: len(names)]
            if state >= 0 and (counts > state).all():
                first: NDArray[np.float64] = self.flat[np.cumsum(counts) - counts + state]
                return first
        chosen = [self._index[name] for name in names]
        if state < 0 or (self._cardinalities[chosen] <= state).any():
            return np.array([self[name][state] for name in names], dtype=np.float64)
        return self.flat[self.starts[chosen] + state]

    def to_frame(self) -> pd.DataFrame:
        """Return a row per variable: its name, then the probabilities p0, p1, ... of its states.

        Entries of states that a variable does not have are NaN.
        """
        import pandas as pd

        cardinalities = np.diff(self.starts)
        widest = int(cardinalities.max(initial=0))
        values = np.full((len(self.names), widest), np.nan)
        values[np.arange(widest) < cardinalities[:, None]] = self.flat
        frame = pd.DataFrame(values, columns=[f"p{state}" for state in range(widest)])
        frame.insert(0, "variable", list(self.names))
        return frame

    def preview(self, most: int) -> Preview:
        """Return the number of variables and the probabilities of the first ones."""
        return self._preview(f"Marginals of {counted(len(self.names), 'variable')}", most)

    def _preview(self, heading: str, most: int) -> Preview:
        vectors = [(name, self[name][:_SHOWN_STATES]) for name in self.names[:most]]
        widest = max((len(vector) for _, vector in vectors), default=0)
        rows = [
            (name, *(f"{p:.4f}" for p in vector), *[""] * (widest - len(vector)))
            for name, vector in vectors
        ]
        titles = ("variable", *(f"p{state}" for state in range(widest)))
        return Preview(heading, titles, rows, len(self.names))


@dataclass(frozen=True, repr=False, init=False, slots=True)
class Posterior(Previewed):
    """The result of an inference algorithm for a factor graph.

    Attributes:
        marginals: one probability vector per variable, by name and in order.
        log_z: natural logarithm of the partition function (with evidence: of the evidence's
            unnormalized probability), or None if the algorithm gives none.
        log_z_kind: whether `log_z` is exact, a bound, or an estimate, and of which kind.
        status: status at the end of the run; failure to converge is a status, not an exception.
        stats: further results: seconds, iterations, residual_trace, induced_width, seed and others.
            `seconds` is the elapsed time of the whole call: evidence, planning and Python code as
            well as kernels, and loading or compiling them at the first call. In a batch it is an
            equal share of the time of graphs that are solved together.
        backend: name of the algorithm.
    """

    marginals: Marginals
    log_z: float | None
    log_z_kind: LogZKind
    status: Status
    stats: Mapping[str, Any]
    backend: str

    def __init__(
        self,
        marginals: Marginals,
        log_z: float | None,
        log_z_kind: LogZKind,
        status: Status,
        stats: Mapping[str, Any] | None = None,
        backend: str = "",
    ) -> None:
        # Batches create one every few microseconds; the generated constructor of a frozen class
        # takes twice as long.
        _set_marginals(self, marginals)
        _set_log_z(self, log_z)
        _set_log_z_kind(self, log_z_kind)
        _set_status(self, status)
        _set_stats(self, {} if stats is None else stats)
        _set_backend(self, backend)

    @property
    def answered_by(self) -> str:
        """Name of the algorithm whose marginals these are; for `auto`, the chosen one."""
        return str(self.stats.get("marginals_by", self.backend))

    @property
    def lower_bound(self) -> float | None:
        """Certified lower bound on log Z if `log_z` is an upper bound; None without one."""
        if self.log_z_kind is not LogZKind.UPPER:
            return None
        lower = float(self.stats.get("lower", -np.inf))
        return lower if lower > -np.inf else None

    @property
    def trace(self) -> Any:
        """The `inference.trace.Trace` of the results and times of each algorithm.

        None unless `infer` was called with `trace=True`.
        """
        return self.stats.get("trace")

    def to_frame(self) -> pd.DataFrame:
        """Return the marginals, a row per variable; see `Marginals.to_frame`."""
        return self.marginals.to_frame()

    def preview(self, most: int) -> Preview:
        """Return the algorithm, status and log Z of this posterior, and the first marginals."""
        log_z = ""
        if self.log_z is not None:
            rounded = round(self.log_z, 6) + 0.0  # shows -0.0 as 0
            log_z = f", log Z {rounded:.6f} ({self.log_z_kind})"
        heading = (
            f"Posterior of {counted(len(self.marginals), 'variable')} "
            f"by {self.answered_by or 'no backend'}: {self.status}{log_z}"
        )
        return self.marginals._preview(heading, most)


_set_marginals, _set_log_z, _set_log_z_kind, _set_status, _set_stats, _set_backend = (
    vars(Posterior)[field.name].__set__ for field in fields(Posterior)
)
