"""pgmpy's variable elimination, a reference by other hands: exact marginals and log Z.

pgmpy eliminates; this module lets it do so for any factor graph. Left to itself, pgmpy 1.1.2
multiplies potentials, which underflow near 1,000 factors, and keeps factors in sets that compare
them by value, so that of two equal factors one is lost. So its factors hold logarithms here and are
equal only to themselves. It eliminates every variable anew for each query, which a large graph
cannot afford: such graphs are refused.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, InferenceError, TooLargeError, zero_partition
from inference.peers.limits import require_tables
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.settings import setting

with warnings.catch_warnings():
    # pgmpy imports a module of its own that it has deprecated.
    warnings.filterwarnings(
        "ignore", message="`pgmpy.estimators.StructureScore` is deprecated", category=FutureWarning
    )
    import pgmpy
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteMarkovNetwork

_TABLES_AT_ONCE = 6
"""Copies of the largest table that pgmpy and numpy hold while it is multiplied and summed."""

_MOST_VARIABLES = 150
"""A query eliminates all other variables of its component, so that time grows with the square."""


@dataclass(frozen=True)
class PgmpyVariableElimination(Backend):
    """pgmpy's VariableElimination: one query per variable, in log space.

    Each query eliminates all other variables of its connected component, of which there may be 150
    at most.

    Attributes:
        memory_limit: bytes that the tables of a query may take.

    Source: sum-product variable elimination, Koller & Friedman 2009, "Probabilistic Graphical
    Models", algorithm 9.1, as pgmpy implements it; the elimination order is that of 'exact'.
    """

    name: ClassVar[str] = "pgmpy"

    memory_limit: int = setting(2 * 2**30, above=0)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Exact posterior of a graph without evidence.

        Raises:
            TooLargeError: if a component has too many variables, or the tables would not fit the
                memory limit.
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if pgmpy is set to torch or to single precision.
        """
        _require_double_precision()
        cardinalities = graph.cardinalities.tolist()
        vectors = [np.full(count, 1.0 / count) for count in cardinalities]
        factors, log_terms = _log_factors(graph)
        components = _connected(factors)
        # What is asked for stays in every table of its query.
        copies = _TABLES_AT_ONCE * max(cardinalities, default=1)
        order, width = require_tables("pgmpy", graph, copies, self.memory_limit)
        spread = 0.0
        for component, own_factors in components:
            own_order = [variable for variable in order if variable in component]
            elimination = _Elimination(own_factors)
            log_zs = []
            for variable in own_order:
                log_table = elimination.log_marginal(variable, own_order)
                log_z = float(np.logaddexp.reduce(log_table))
                if log_z == -np.inf:
                    raise zero_partition()
                vectors[variable] = np.exp(log_table - log_z)
                log_zs.append(log_z)
            log_terms.append(log_zs[0])
            spread = max(spread, max(log_zs) - min(log_zs))
        bound = {variable for component, _ in components for variable in component}
        log_terms += [math.log(n) for v, n in enumerate(cardinalities) if v not in bound]
        if -np.inf in log_terms:
            raise zero_partition()
        return Posterior(
            marginals=Marginals.of(graph, np.concatenate([np.zeros(0), *vectors])),
            log_z=math.fsum(log_terms),
            log_z_kind=LogZKind.EXACT,
            status=Status.EXACT,
            stats={
                "pgmpy": pgmpy.__version__,
                "induced_width": width,
                "components": len(components),
                "log_z_spread": spread,
            },
        )


class _LogFactor(DiscreteFactor):  # type: ignore[misc]
    """A pgmpy factor whose values are logarithms, equal to itself alone."""

    def __init__(
        self, variables: Sequence[int], log_table: NDArray[np.float64], serial: int
    ) -> None:
        super().__init__(variables, log_table.shape, log_table)
        self.serial = serial

    def copy(self) -> _LogFactor:
        duplicate: _LogFactor = super().copy()
        duplicate.serial = self.serial
        return duplicate

    def product(self, phi1: _LogFactor, inplace: bool = True) -> _LogFactor | None:
        """Multiply potentials: pgmpy adds the logarithms."""
        product: _LogFactor | None = self.sum(phi1, inplace=inplace)
        return product

    def marginalize(self, variables: Iterable[int], inplace: bool = True) -> _LogFactor | None:
        """Sum potentials out: pgmpy adds them, each relative to the largest of its sum."""
        factor = self if inplace else self.copy()
        axes = tuple(factor.variables.index(variable) for variable in variables)
        peaks = factor.values.max(axis=axes, keepdims=True)
        peaks[peaks == -np.inf] = 0.0
        factor.values = np.exp(factor.values - peaks)
        super(_LogFactor, factor).marginalize(variables)
        with np.errstate(divide="ignore"):  # log 0 is -inf, a legal value
            factor.values = np.log(factor.values) + peaks.squeeze(axes)
        return None if inplace else factor

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return self.serial


class _Elimination(VariableElimination):  # type: ignore[misc]
    """pgmpy's elimination on the factors of a piece."""

    def __init__(self, factors: Sequence[_LogFactor]) -> None:
        network = DiscreteMarkovNetwork()
        for factor in factors:
            network.add_nodes_from(factor.variables)
            network.add_edges_from(combinations(factor.variables, 2))
        # Not by add_factors, which builds the set of all nodes anew for each factor.
        network.factors.extend(factors)
        super().__init__(network)
        self._initialize_structures()

    def _get_working_factors(self, evidence: None) -> dict[int, set[tuple[_LogFactor, int]]]:  # noqa: ARG002
        # pgmpy pairs the factors with None, whose hash is an address before Python 3.12: sets
        # would be walked, and sums rounded, in another order in each process.
        return {v: {(factor, -1) for factor in factors} for v, factors in self.factors.items()}

    def log_marginal(self, target: int, order: Sequence[int]) -> NDArray[np.float64]:
        """Unnormalised log marginal of a variable; all others are eliminated in `order`."""
        factor: _LogFactor = self._variable_elimination(
            [target],
            "marginalize",
            elimination_order=[variable for variable in order if variable != target],
            show_progress=False,
        )
        result: NDArray[np.float64] = factor.values
        return result


def _log_factors(graph: FactorGraph) -> tuple[list[_LogFactor], list[float]]:
    """Factors on variables of several states, and the constants that are left over."""
    factors: list[_LogFactor] = []
    constants = []
    for serial, (scope, log_table) in enumerate(graph.factors()):
        free = [variable for variable in scope if graph.cardinalities[variable] > 1]
        if free:
            factors.append(_LogFactor(free, log_table.squeeze(), serial))
        else:
            constants.append(log_table.item())
    return factors, constants


def _connected(factors: Sequence[_LogFactor]) -> list[tuple[set[int], list[_LogFactor]]]:
    """Variables and factors of each connected component.

    Raises:
        TooLargeError: if one has too many variables.
    """
    links = nx.Graph()
    for factor in factors:
        nx.add_path(links, factor.variables)
    parts: list[tuple[set[int], list[_LogFactor]]] = [
        (part, []) for part in nx.connected_components(links)
    ]
    position = {variable: at for at, (part, _) in enumerate(parts) for variable in part}
    for factor in factors:
        parts[position[factor.variables[0]]][1].append(factor)
    count = max((len(part) for part, _ in parts), default=0)
    if count > _MOST_VARIABLES:
        raise TooLargeError(
            f"'pgmpy' eliminates every variable anew for each query and takes {_MOST_VARIABLES} "
            f"variables that are connected at most, and this graph has {count:,}; use backend "
            "'exact', or 'lbp' for an estimate"
        )
    return parts


def _require_double_precision() -> None:
    backend, precision = pgmpy.config.get_backend(), pgmpy.config.get_dtype()
    if backend != "numpy" or np.dtype(precision) != np.float64:
        raise InferenceError(
            f"pgmpy is set to compute with {backend} in {precision} in this process; call "
            "pgmpy.config.set_backend('numpy') before the backend 'pgmpy' is used"
        )
