"""Exact derivatives with respect to every log table: of log Z, first and second, and of log P.

log Z is the cumulant function of an exponential family, whose statistics indicate the applicable
entry of every table. Its first derivatives are their means, the beliefs; its second derivatives are
their covariance (Wainwright & Jordan 2008, "Graphical models, exponential families, and variational
inference", proposition 3.1). A row of the covariance is the change of the beliefs when the entry is
the only one of its factor, times the entry's own belief: exact, without finite differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import ZeroPartitionError
from inference.evidence import without_evidence
from inference.exact.backend import CalibratedTree, Exact
from inference.memory import require
from inference.tasks.components import connected_components, turns


class ValueAndGradient(NamedTuple):
    """A number and its derivatives.

    Attributes:
        value: the number.
        gradient: float64, its derivative with respect to each entry of `graph.log_values`.
    """

    value: float
    gradient: NDArray[np.float64]


def log_partition(graph: FactorGraph, exact: Exact | None = None) -> ValueAndGradient:
    """Return log Z and its gradient: the joint distributions of the factors' scopes.

    With evidence, log Z includes the evidence. Entries that contradict the
    evidence have gradient 0, as have entries of log potential -inf.

    Args:
        graph: the factor graph, with or without evidence.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Raises:
        TooLargeError: if the tables would exceed the memory limit.
        ZeroPartitionError: if no assignment has positive potential.

    Source: Darwiche 2003, "A differential approach to inference in Bayesian networks".
    """
    return log_partition_function(graph, exact)(graph.log_values)


def log_probability(
    graph: FactorGraph,
    assignment: Mapping[str, int] | Mapping[int, int],
    exact: Exact | None = None,
) -> ValueAndGradient:
    """Return the log probability of states of some variables given the evidence, and its gradient.

    Both are differences between log Z with these states observed and log Z. The sum over labeled
    responses is the log likelihood of the labels.

    Args:
        graph: the factor graph, with or without evidence.
        assignment: states by name or position of the variable.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Raises:
        InputError: for an unknown variable, a state that does not exist or contradicts evidence.
        TooLargeError: if the tables would exceed the memory limit.
        ZeroPartitionError: if the evidence, or the assignment given it, has probability zero: its
            logarithm has no gradient.
    """
    clamped_graph = graph.with_evidence(assignment)
    whole = log_partition(graph, exact)
    try:
        clamped = log_partition(clamped_graph, exact)
    except ZeroPartitionError:
        raise ZeroPartitionError(
            f"the assignment {dict(assignment)} has probability zero given the evidence, and its "
            "logarithm has no gradient; leave it out, or remove zeros from the tables"
        ) from None
    return ValueAndGradient(clamped.value - whole.value, clamped.gradient - whole.gradient)


def log_partition_function(
    graph: FactorGraph, exact: Exact | None = None
) -> Callable[[NDArray[np.float64]], ValueAndGradient]:
    """Return log Z and its gradient as a function of the log tables, planned once.

    Args:
        graph: the factor graph, with or without evidence; its own log tables are ignored.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        A function of log tables laid out as `graph.log_values`. It raises `InputError` if their
        number differs from the graph's, or one is NaN or +inf, and the errors of `log_partition`.
    """
    absorbed, kept = without_evidence(graph)
    calibrate = (exact or Exact()).planned(absorbed)

    def evaluate(log_values: NDArray[np.float64]) -> ValueAndGradient:
        _check_shape(graph, log_values)
        calibrated = calibrate(log_values[kept])
        gradient = np.zeros(len(log_values))
        gradient[kept] = calibrated.factor_beliefs()
        return ValueAndGradient(calibrated.log_z, gradient)

    return evaluate


def log_partition_hessian(graph: FactorGraph, exact: Exact | None = None) -> NDArray[np.float64]:
    """Return second derivatives of log Z with respect to every two entries of the log tables.

    Entries with log potential -inf, and entries that contradict the evidence, have 0. The
    computation takes about as many passes as the largest connected component has entries.

    Args:
        graph: the factor graph, with or without evidence.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        float64 (n_entries, n_entries), laid out as `graph.log_values` on both axes.

    Raises:
        TooLargeError: if the tables or the derivatives would exceed the memory limit.
        ZeroPartitionError: if no assignment has positive potential.
    """
    return hessian_function(graph, exact)(graph.log_values)


def hessian_function(
    graph: FactorGraph, exact: Exact | None = None
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Return `log_partition_hessian` as a function of the log tables, planned once.

    Args:
        graph: the factor graph, with or without evidence; its own log tables are ignored.
        exact: settings of `exact`: memory limit, seed and restarts of the order.
    """
    exact = exact or Exact()
    absorbed, kept = without_evidence(graph)
    size = len(graph.log_values)

    @cache
    def structure() -> tuple[Callable[[NDArray[np.float64]], CalibratedTree], NDArray[np.int64]]:
        # Computed on demand, at the first second derivative.
        return exact.planned(absorbed), factor_components(absorbed)

    def evaluate(log_values: NDArray[np.float64]) -> NDArray[np.float64]:
        _check_shape(graph, log_values)
        calibrate, owners = structure()
        of_entry = np.repeat(owners, np.diff(absorbed.table_starts))
        allowed, instead = exact.allowance(), "observe variables"
        require(8.0 * size**2, allowed, f"the second derivatives by {size:,} entries", instead)
        statistics = Statistics(
            absorbed.table_starts,
            owners,
            lambda tables: calibrate(tables).factor_beliefs(),
            log_values[kept],
        )
        result = np.zeros((size, size))
        for entries, rows in statistics.covariances(np.ones(len(kept), dtype=np.bool_)):
            for entry in entries.tolist():
                near = np.flatnonzero(of_entry == of_entry[entry])
                result[kept[entry], kept[near]] = statistics.beliefs[entry] * rows[near]
        # The statistics of a factor sum to 1, and their covariances with any other sum to 0.
        fixed = kept[statistics.fixed]
        for start, stop, entry in zip(
            absorbed.table_starts[:-1], absorbed.table_starts[1:], fixed, strict=True
        ):
            result[entry] = -result[kept[start:stop]].sum(axis=0)
        # Both halves are computed and differ by rounding.
        result += result.T.copy()
        result *= 0.5
        return result

    return evaluate


class Statistics:
    """Indicators of the applicable entry of each factor, with their means and covariances.

    Attributes:
        beliefs: float64 (n_entries,), their means.
        fixed: int64 (n_factors,), the most probable entry of each factor, whose covariances follow
            from those of the others.
    """

    def __init__(
        self,
        table_starts: NDArray[np.int64],
        components: NDArray[np.int64],
        beliefs_at: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        log_values: NDArray[np.float64],
    ) -> None:
        """Compute the means.

        Args:
            table_starts: int64 (n_factors + 1,), where the tables begin.
            components: int64 (n_factors,), the connected component of each factor.
            beliefs_at: the exact beliefs at log tables, laid out alike.
            log_values: float64 (n_entries,), the log tables.
        """
        self._starts, self._components = table_starts, components
        self._beliefs_at, self._log_values = beliefs_at, log_values
        self.beliefs = beliefs_at(log_values)
        sizes = np.diff(table_starts)
        self._factor = np.repeat(np.arange(len(sizes)), sizes)
        # The last entry of each factor in an order by factor, then belief.
        self.fixed = np.lexsort((self.beliefs, self._factor))[table_starts[1:] - 1]

    def covariances(
        self, wanted: NDArray[np.bool_]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield entries of different components, and the change of the beliefs caused by each.

        The change times the entry's own belief is its covariance with each entry of its component.

        Args:
            wanted: bool (n_entries,), the requested entries; entries of belief 0, which have none,
                and the `fixed` ones are left out.
        """
        asked = wanted & (self.beliefs > 0.0)
        asked[self.fixed] = False
        entries = np.flatnonzero(asked)
        for turn in turns(self._components[self._factor[entries]]):
            chosen = entries[turn]
            excluded = np.zeros(len(self._components), dtype=np.bool_)
            excluded[self._factor[chosen]] = True
            tables = np.where(excluded[self._factor], -np.inf, self._log_values)
            tables[chosen] = self._log_values[chosen]
            tables.flags.writeable = False
            yield chosen, self._beliefs_at(tables) - self.beliefs

    def covariance(
        self, weights: NDArray[np.float64], rates: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the covariance (k, k) of k weighted sums of the statistics, added over components.

        Args:
            weights: float64 (n_entries, k), of each sum.
            rates: float64, multiplier of each component's contribution.
        """
        # Equal weights of all entries of a factor do not vary.
        relative = weights - weights[self.fixed][self._factor]
        of_entry = self._components[self._factor]
        total = np.zeros((weights.shape[1],) * 2)
        counted = relative.any(axis=1) & (rates[of_entry] != 0.0)
        for entries, rows in self.covariances(counted):
            moved = np.stack(
                [np.bincount(of_entry, rows * column, len(rates)) for column in relative.T], axis=1
            )
            scale = self.beliefs[entries] * rates[of_entry[entries]]
            total += (scale[:, None] * relative[entries]).T @ moved[of_entry[entries]]
        return (total + total.T) / 2.0


def factor_components(graph: FactorGraph) -> NDArray[np.int64]:
    """Return the component number of every factor; one without variables has its own."""
    arities = np.diff(graph.scope_starts)
    firsts = np.repeat(graph.scope_starts[:-1], arities)
    variables = graph.scope_variables
    joined = np.stack([variables[firsts], variables], axis=1)
    components = connected_components(graph.n_variables, joined)
    result = graph.n_variables + np.arange(graph.n_factors)
    some = arities > 0
    result[some] = components[variables[graph.scope_starts[:-1][some]]]
    return result


def _check_shape(graph: FactorGraph, log_values: NDArray[np.float64]) -> None:
    if log_values.shape != graph.log_values.shape:
        raise InputError(
            f"log tables of shape {log_values.shape} were given; this graph has "
            f"{len(graph.log_values)} entries, factor after factor"
        )
