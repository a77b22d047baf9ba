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
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, InferenceError, TooLargeError, zero_partition
from inference.memory import check_limit
from inference.peers.tree_decomposition import Bag, Tree, elimination_order, tree_decomposition
from inference.posterior import LogZKind, Marginals, Posterior, Status

with warnings.catch_warnings():
    # pgmpy imports a module of its own that it has deprecated.
    warnings.filterwarnings(
        "ignore", message="`pgmpy.estimators.StructureScore` is deprecated", category=FutureWarning
    )
    import pgmpy
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteMarkovNetwork

_BYTES_PER_ENTRY = 8
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
    Models", algorithm 9.1, as pgmpy implements it; elimination orders by networkx.
    """

    name: ClassVar[str] = "pgmpy"

    memory_limit: int = 2 * 2**30

    def __post_init__(self) -> None:
        check_limit(self.name, self.memory_limit)

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
        bound: set[int] = set()
        width, spread = 0, 0.0
        components = _connected(factors)
        for component in components:
            tree = _affordable_tree(component, cardinalities, self.memory_limit)
            width = max(width, *(len(bag) - 1 for bag in tree))
            elimination = _Elimination(component)
            log_zs = []
            for bag in tree:
                for variable in bag - bound:
                    bound.add(variable)
                    log_table = elimination.log_marginal(variable, tree, bag)
                    log_z = float(np.logaddexp.reduce(log_table))
                    if log_z == -np.inf:
                        raise zero_partition()
                    vectors[variable] = np.exp(log_table - log_z)
                    log_zs.append(log_z)
            log_terms.append(log_zs[0])
            spread = max(spread, max(log_zs) - min(log_zs))
        log_terms += [math.log(n) for v, n in enumerate(cardinalities) if v not in bound]
        if -np.inf in log_terms:
            raise zero_partition()
        return Posterior(
            marginals=Marginals(
                graph.names,
                graph.cardinalities,
                np.concatenate([np.zeros(0), *vectors]),
                graph.index,
            ),
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

    def log_marginal(self, target: int, tree: Tree, root: Bag) -> NDArray[np.float64]:
        """Unnormalised log marginal of a variable; no table holds more than a bag of `tree`.

        `root` holds the target.
        """
        order = [variable for variable in elimination_order(tree, root) if variable != target]
        found: _LogFactor = self._variable_elimination(
            [target], "marginalize", elimination_order=order, show_progress=False
        )
        result: NDArray[np.float64] = found.values
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


def _connected(factors: Sequence[_LogFactor]) -> list[list[_LogFactor]]:
    """Factors of each connected component."""
    links = nx.Graph()
    for factor in factors:
        nx.add_path(links, factor.variables)
    position = {v: at for at, part in enumerate(nx.connected_components(links)) for v in part}
    parts: defaultdict[int, list[_LogFactor]] = defaultdict(list)
    for factor in factors:
        parts[position[factor.variables[0]]].append(factor)
    return list(parts.values())


def _affordable_tree(
    factors: Sequence[_LogFactor], cardinalities: Sequence[int], memory_limit: int
) -> Tree:
    """Tree decomposition of a connected component.

    Raises:
        TooLargeError: if there are too many variables, or the tables do not fit the limit.
    """
    count = len({variable for factor in factors for variable in factor.variables})
    if count > _MOST_VARIABLES:
        raise TooLargeError(
            f"'pgmpy' eliminates every variable anew for each query and takes {_MOST_VARIABLES} "
            f"variables that are connected at most, and this graph has {count:,}; use backend "
            "'exact', or 'lbp' for an estimate"
        )

    def entries(bag: Iterable[int]) -> int:
        return math.prod(cardinalities[variable] for variable in bag)

    def admit(bag: Collection[int]) -> None:
        _require_memory(_TABLES_AT_ONCE * entries(bag), len(bag), memory_limit)

    tree = tree_decomposition([factor.variables for factor in factors], admit)
    sizes = [entries(bag) for bag in tree]
    # The sums of earlier eliminations stay alive; together they are smaller than the bags.
    needed = sum(sizes) + _TABLES_AT_ONCE * max(sizes)
    _require_memory(needed, max(map(len, tree)), memory_limit)
    return tree


def _require_memory(entries: int, variables: int, memory_limit: int) -> None:
    if entries * _BYTES_PER_ENTRY <= memory_limit:
        return
    exponent = math.log2(entries * _BYTES_PER_ENTRY) - 30.0
    size = f"{2.0**exponent:,.2g} GiB" if exponent < 20.0 else f"2^{exponent:.0f} GiB"
    raise TooLargeError(
        f"pgmpy's variable elimination meets a table over {variables} variables and would take "
        f"about {size}, but {memory_limit / 2**30:,.2g} GiB are allowed; use backend 'exact', "
        "which needs less, or 'lbp' for an estimate, observe variables, or raise memory_limit "
        "(in bytes)"
    )


def _require_double_precision() -> None:
    backend, precision = pgmpy.config.get_backend(), pgmpy.config.get_dtype()
    if backend != "numpy" or np.dtype(precision) != np.float64:
        raise InferenceError(
            f"pgmpy is set to compute with {backend} in {precision} in this process; call "
            "pgmpy.config.set_backend('numpy') before the backend 'pgmpy' is used"
        )
