"""Backend: settings of one inference algorithm, with the methods that run it.

`solve` is what every algorithm has. The other methods are optional: what an algorithm overrides,
the rest of the project uses, and where it does not, the rest does without.
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
    """An algorithm cannot answer for this graph: the message says why and names alternatives."""


class TooLargeError(InferenceError):
    """An exact algorithm would take more memory, or more time, than it may use.

    Attributes:
        prediction: what it would take; None where that is not known.
    """

    def __init__(self, message: str, prediction: PredictedCost | None = None) -> None:
        super().__init__(message)
        self.prediction = prediction


class ZeroPartitionError(InferenceError):
    """Every assignment has potential zero: the graph and its evidence contradict each other."""


Result = Posterior | FactormodelsError
"""What became of one graph of a batch: its posterior, or the error that it alone would raise."""


@dataclass(frozen=True)
class PredictedCost:
    """What inference in a graph would cost, to an order of magnitude.

    Attributes:
        seconds: time on one core.
        bytes: memory of all tables; None where it is not known.
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
"""From log tables, laid out as those of one graph, to beliefs at these tables."""


class Recorder(Protocol):
    """What is called with the name and posterior of an algorithm that ended.

    Its processor time in seconds is that since the call began where it is left out.
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
    """Settings of an inference algorithm; subclasses are frozen dataclasses with defaults.

    Settings that `inference.settings.setting` declares are checked when one is built.
    A subclass implements `solve` for graphs without evidence. `infer` does what must be the same
    for every algorithm: evidence is absorbed before, and observed variables get their certain
    marginals back after. `is_ready`, `solve_batch`, `solve_settings`, `prepare_beliefs`,
    `predict` and `solve_traced` are for algorithms that can do more; `inference.conformance` holds
    each to its word. A subclass of another backend that has a `solve` of its own inherits none of
    these.

    Attributes:
        identical_batches: whether its own `solve_batch` and `solve_settings` give the numbers of
            `solve` to the last bit. A study, whose batches depend on the clock, uses them then.
    """

    name: ClassVar[str]
    identical_batches: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_settings(self, self.name)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "solve" in vars(cls):
            # It is another algorithm than its base class: what that could do besides, it cannot.
            for optional in _OPTIONAL:
                if optional not in vars(cls):
                    setattr(cls, optional, vars(Backend)[optional])

    def infer(self, graph: FactorGraph) -> Posterior:
        """Posterior of `graph` given its evidence.

        Raises:
            InputError: if `graph` is not a factor graph; the message says how to make one of it.
            ZeroPartitionError: if the graph gives every assignment potential zero.
            InferenceError: if this algorithm cannot answer; the message names alternatives.
        """
        start = time.perf_counter()
        absorbed = checked_graph(graph).absorb_evidence()
        return complete(graph, self.solve(absorbed), self.name, start)

    def solve_traced(self, graph: FactorGraph, record: Recorder) -> Posterior:
        """Posterior of a graph without evidence, as `solve` gives it, and what leads to it.

        By default that is one step, the posterior itself. An algorithm that runs others overrides
        it.

        Args:
            graph: the graph.
            record: is called with the name, the posterior and the processor time in seconds of each
                algorithm, when it ends.
        """
        posterior = self.solve(graph)
        record(self.name, posterior)
        return posterior

    def attempt(self, graph: FactorGraph) -> Result:
        """What `infer` returns, or the error that it raises."""
        try:
            return self.infer(graph)
        except FactormodelsError as error:
            return error

    @abstractmethod
    def solve(self, graph: FactorGraph) -> Posterior:
        """Posterior of a graph without evidence."""

    def is_ready(self, graphs: Sequence[FactorGraph]) -> bool:  # noqa: ARG002
        """Whether it answers these graphs in milliseconds with nothing to load or to compile."""
        return False

    def solve_batch(self, graphs: Sequence[FactorGraph], threads: int = 1) -> list[Result]:
        """Posterior of each of many graphs without evidence, or its error, in order.

        By default each graph is answered on its own. An algorithm overrides this to share work
        between graphs; the name of the backend is added to its posteriors, and the time where their
        stats have none.

        Args:
            graphs: one graph or more; some may have one structure. A sequence, not always a list:
                evidence is absorbed when a graph or a slice is taken.
            threads: how many threads may be used.
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
        """Posterior of a graph without evidence under many log tables, or the errors.

        By default that is the batch of the graphs with these tables.

        Args:
            graph: the graph, whose own log tables play no part.
            log_values: float64 (n_settings, n_entries), read-only, at least one setting; every row
                is laid out as `graph.log_values`.
            threads: how many threads may be used.
        """
        return self.solve_batch([replace(graph, log_values=row) for row in log_values], threads)

    def prepare_beliefs(self, graph: FactorGraph) -> BeliefFunction | None:  # noqa: ARG002
        """Beliefs of factors as a function of the log tables of a graph without evidence.

        None, the default, where the algorithm has no beliefs of this graph's factors that are the
        derivative of its log Z. What depends on the structure alone is done once, here. The
        function raises what `solve` raises.

        Args:
            graph: the graph, whose own log tables play no part.
        """
        return None

    def predict(self, graph: FactorGraph) -> PredictedCost | None:  # noqa: ARG002
        """What `infer` would cost for a graph with or without evidence; None: not known.

        It looks at structure, evidence and where tables are zero, and runs no inference.
        """
        return None


def complete(graph: FactorGraph, solved: Posterior, name: str, start: float) -> Posterior:
    """Posterior of a graph from that of the graph without its evidence.

    Args:
        graph: the graph.
        solved: the posterior without evidence.
        name: name of the backend.
        start: when it began, by `time.perf_counter`.
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
    """Error that every backend raises where the partition function is zero."""
    return ZeroPartitionError(
        "the partition function is zero: no assignment satisfies all factors and the evidence; "
        "remove contradictory evidence or zeros from the tables"
    )
