"""Backend: settings of an inference algorithm, with the methods that run it.

Every algorithm implements `solve`. The other methods are optional: the rest of the project uses
the methods that an algorithm overrides, and has a default for the others.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import FactormodelsError
from factormodels.factor_graph import FactorGraph
from inference.evidence import checked_graph, errors_with_observed, with_observed
from inference.posterior import Posterior
from inference.settings import check_settings
from inference.thread_team import run_in_ranges


class InferenceError(FactormodelsError):
    """An algorithm cannot answer for this graph; the message gives the reason and alternatives."""


class TooLargeError(InferenceError):
    """An exact algorithm would exceed its limit of memory or time.

    Attributes:
        prediction: its predicted cost; None if unknown.
    """

    def __init__(self, message: str, prediction: PredictedCost | None = None) -> None:
        super().__init__(message)
        self.prediction = prediction


class ZeroPartitionError(InferenceError):
    """Every assignment has potential zero: the graph and its evidence are contradictory."""


Result = Posterior | FactormodelsError
"""The posterior of a graph of a batch, or the error that this graph alone would raise."""


@dataclass(frozen=True)
class PredictedCost:
    """Predicted cost of inference in a graph, to an order of magnitude.

    Attributes:
        seconds: time on one core.
        bytes: memory of all tables; None if unknown.
    """

    seconds: float
    bytes: float | None


@dataclass(frozen=True, eq=False)
class FactorBeliefs:
    """A posterior with the beliefs of its factors, which are the gradient of its log Z.

    Attributes:
        posterior: marginals, log Z and status.
        entries: float64 (n_entries,), laid out as `graph.log_values`: the joint distribution of
            every factor's scope, and so the derivative of log Z by each entry; 0 where that is
            -inf.
    """

    posterior: Posterior
    entries: NDArray[np.float64]


BeliefFunction = Callable[[NDArray[np.float64]], FactorBeliefs]
"""Function from log tables, laid out as those of a graph, to beliefs."""


class Recorder(Protocol):
    """Callback with the name and posterior of an algorithm that ended.

    `seconds` is its processor time; by default, the time since the call began.
    """

    def __call__(
        self, algorithm: str, posterior: Posterior, seconds: float | None = None
    ) -> object: ...


_OPTIONAL = (
    *("identical_batches", "is_ready", "solve_batch", "solve_settings", "prepare_beliefs"),
    *("predict", "solve_traced"),
)


@dataclass(frozen=True)
class Backend(ABC):
    """Base class of inference algorithms and their settings; subclasses are frozen dataclasses.

    Settings declared by `inference.settings.setting` are checked at construction.

    A subclass implements `solve` for graphs without evidence. `infer` does the steps that are the
    same for every algorithm: it absorbs evidence first, and restores the certain marginals of
    observed variables afterward. `is_ready`, `solve_batch`, `solve_settings`, `prepare_beliefs`,
    `predict` and `solve_traced` are optional optimizations; `inference.conformance` checks each of
    them. A subclass of another backend that overrides `solve` inherits none of these.

    Attributes:
        identical_batches: whether `solve_batch` and `solve_settings` return the numbers of `solve`
            to the last bit. Studies, whose batches depend on the clock, use them only then.
    """

    name: ClassVar[str]
    identical_batches: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_settings(self, self.name)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "solve" in vars(cls):
            # A different algorithm, for which the optional methods of its base class are wrong.
            for optional in _OPTIONAL:
                if optional not in vars(cls):
                    setattr(cls, optional, vars(Backend)[optional])

    def infer(self, graph: FactorGraph) -> Posterior:
        """Return the posterior of `graph` given its evidence.

        Raises:
            InputError: if `graph` is not a factor graph; the message explains how to convert it.
            ZeroPartitionError: if every assignment has potential zero.
            InferenceError: if this algorithm cannot answer; the message names alternatives.
        """
        start = time.perf_counter()
        absorbed = checked_graph(graph).absorb_evidence()
        return complete(graph, self.solve(absorbed), self.name, start)

    def solve_traced(self, graph: FactorGraph, record: Recorder) -> Posterior:
        """Return the result of `solve` for a graph without evidence, and record the steps that lead
        to it.

        By default there is one step, the posterior itself. Override this method in an algorithm
        that runs others.

        Args:
            graph: the graph.
            record: called with the name, the posterior and the processor time in seconds of each
                algorithm, when it ends.
        """
        posterior = self.solve(graph)
        record(self.name, posterior)
        return posterior

    def attempt(self, graph: FactorGraph) -> Result:
        """Return the result of `infer`, or the error that it raises."""
        try:
            return self.infer(graph)
        except FactormodelsError as error:
            return error

    @abstractmethod
    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the posterior of a graph without evidence."""

    def is_ready(self, graphs: Sequence[FactorGraph]) -> bool:  # noqa: ARG002
        """Return whether these graphs take milliseconds, without loading or compiling code."""
        return False

    def solve_batch(self, graphs: Sequence[FactorGraph], threads: int = 1) -> list[Result]:
        """Return the posterior of each of many graphs without evidence, or its error, in order.

        By default each graph is solved separately. Override this method to share work between
        graphs; the name of the backend is added to the posteriors, and the time if their stats have
        none.

        Args:
            graphs: one graph or more, of equal or different structures. A sequence that may not be
                a list: evidence is absorbed when a graph or a slice is accessed.
            threads: maximum number of threads.
        """
        results: list[Any] = [None] * len(graphs)

        def run(first: int, last: int) -> None:
            for number in range(first, last):
                results[number] = self.attempt(graphs[number])

        run_in_ranges(run, len(graphs), threads, at_once=True)
        return results

    def solve_settings(
        self, graph: FactorGraph, log_values: NDArray[np.float64], threads: int = 1
    ) -> list[Result]:
        """Return the posterior of a graph without evidence under each of many log tables, or its
        error.

        By default this solves the batch of the graphs with these tables.

        Args:
            graph: the graph, whose own log tables are ignored.
            log_values: float64 (n_settings, n_entries), read-only, at least one setting; every row
                is laid out as `graph.log_values`.
            threads: maximum number of threads.
        """
        return self.solve_batch([replace(graph, log_values=row) for row in log_values], threads)

    def prepare_beliefs(self, graph: FactorGraph) -> BeliefFunction | None:  # noqa: ARG002
        """Return the beliefs of factors as a function of the log tables of a graph without
        evidence.

        Return None, the default, if the algorithm has no beliefs of this graph's factors that are
        the derivative of its log Z. Computations that depend on the structure only are done once,
        here. The function raises the errors of `solve`.

        Args:
            graph: the graph, whose own log tables are ignored.
        """
        return None

    def predict(self, graph: FactorGraph) -> PredictedCost | None:  # noqa: ARG002
        """Return the predicted cost of `infer` for a graph with or without evidence; None if
        unknown.

        The prediction depends on the structure, the evidence and the zeros of tables, and runs no
        inference.
        """
        return None


def complete(graph: FactorGraph, solved: Posterior, name: str, start: float) -> Posterior:
    """Return the posterior of a graph, given the posterior without its evidence.

    Args:
        graph: the graph.
        solved: the posterior without evidence.
        name: name of the backend.
        start: start of the run, by `time.perf_counter`.
    """
    marginals = solved.marginals
    has_evidence = graph.has_evidence
    if has_evidence:
        marginals = with_observed(graph, marginals)
    stats = {**solved.stats, "seconds": time.perf_counter() - start}
    if has_evidence and "standard_errors" in stats:
        stats["standard_errors"] = errors_with_observed(graph, stats["standard_errors"])
    return Posterior(marginals, solved.log_z, solved.log_z_kind, solved.status, stats, name)


def zero_partition() -> ZeroPartitionError:
    """Return the error that every backend raises if the partition function is zero."""
    return ZeroPartitionError(
        "the partition function is zero: no assignment satisfies all factors and the evidence; "
        "remove contradictory evidence or zeros from the tables"
    )
