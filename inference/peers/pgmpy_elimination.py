"""pgmpy's variable elimination, a reference by other hands: exact marginals and log Z.

pgmpy eliminates; this module lets it do so for any factor graph. Left to itself, pgmpy 1.1.2
multiplies potentials, which underflow near 1,000 factors; keeps factors in sets that compare
them by value, so that of two equal factors one is lost; and eliminates every variable anew for
each query, which a large graph cannot afford. So its factors hold logarithms here and are equal
only to themselves, and large connected components are cut into pieces, each of which gets the
rest of its component as factors that pgmpy has computed.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, InferenceError, TooLargeError, zero_partition
from inference.memory import check_limit
from inference.peers.tree_decomposition import (
    Bag,
    Tree,
    centre_of,
    elimination_order,
    halves,
    tree_decomposition,
)
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

_PIECE_BAGS = 8
"""Bags of a piece that is not cut further; the cost hardly depends on it."""


@dataclass(frozen=True)
class PgmpyVariableElimination(Backend):
    """pgmpy's VariableElimination: one query per variable, in log space.

    A connected component of at most `cut_above` variables is queried whole: each query eliminates
    all its other variables. A larger one is halved at a bag of its tree decomposition until the
    pieces are small; what is cut off stays as one factor over that bag, found by the same
    elimination. Nothing is approximated, and n variables take O(n log n) eliminations instead of
    O(n^2).

    Attributes:
        cut_above: number of variables beyond which a connected component is cut, at least 2.
        memory_limit: bytes that the tables of a query may take.

    Source: sum-product variable elimination, Koller & Friedman 2009, "Probabilistic Graphical
    Models", algorithm 9.1, as pgmpy implements it; elimination orders by networkx.
    """

    name: ClassVar[str] = "pgmpy"

    cut_above: int = 150
    memory_limit: int = 2 * 2**30

    def __post_init__(self) -> None:
        if self.cut_above < 2:
            raise InputError(f"cut_above is {self.cut_above}; 'pgmpy' needs at least 2")
        check_limit(self.name, self.memory_limit)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Exact posterior of a graph without evidence.

        Raises:
            TooLargeError: if the tables would not fit the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if pgmpy is set to torch or to single precision.
        """
        _require_double_precision()
        cardinalities = graph.cardinalities.tolist()
        vectors = [np.full(count, 1.0 / count) for count in cardinalities]
        factors, log_terms = _log_factors(graph)
        components = [
            _component(part, cardinalities, self.memory_limit) for part in _connected(factors)
        ]
        bound = {variable for component in components for _, variable in component.wanted}
        log_terms += [math.log(n) for v, n in enumerate(cardinalities) if v not in bound]
        spread = 0.0
        for component in components:
            whole = len(component.wanted) <= self.cut_above
            bags = len(component.tree) if whole else min(_PIECE_BAGS, self.cut_above)
            log_zs = []
            for variable, log_table in _log_tables(component, bags):
                log_z = float(np.logaddexp.reduce(log_table))
                if log_z == -np.inf:
                    raise zero_partition()
                vectors[variable] = np.exp(log_table - log_z)
                log_zs.append(log_z)
            log_terms.append(log_zs[0])
            spread = max(spread, max(log_zs) - min(log_zs))
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
                "induced_width": max((_width(part.tree) for part in components), default=0),
                "components": len(components),
                "cut_components": sum(len(c.wanted) > self.cut_above for c in components),
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

    def factor_over(self, targets: Iterable[int], tree: Tree, root: Bag) -> _LogFactor:
        """Product of the factors summed over all variables but those of `targets`.

        No table holds more than a bag of `tree`, if `root` holds the targets.
        """
        kept = [variable for variable in targets if variable in self.variables]
        order = [v for v in elimination_order(tree, root) if v in self.variables]
        result: _LogFactor = self._variable_elimination(
            kept,
            "marginalize",
            elimination_order=[variable for variable in order if variable not in kept],
            show_progress=False,
        )
        return result


@dataclass(frozen=True)
class _Piece:
    """A connected part of a component, with the rest of the component as factors.

    Attributes:
        tree: its tree decomposition.
        factors: its factors, each with a bag that holds the scope.
        wanted: the variables to be queried in it, each with a bag that holds it.
    """

    tree: Tree
    factors: list[tuple[Bag, _LogFactor]]
    wanted: list[tuple[Bag, int]]


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


def _component(
    factors: Sequence[_LogFactor], cardinalities: Sequence[int], memory_limit: int
) -> _Piece:
    """Connected component as one piece, or refuse it for its size."""
    tree = _affordable_tree(factors, cardinalities, memory_limit)
    bags_of: defaultdict[int, list[Bag]] = defaultdict(list)
    for bag in tree:
        for variable in bag:
            bags_of[variable].append(bag)
    homes = []
    for factor in factors:
        candidates = min((bags_of[variable] for variable in factor.variables), key=len)
        homes.append(next(bag for bag in candidates if bag.issuperset(factor.variables)))
    return _Piece(
        tree=tree,
        factors=list(zip(homes, factors, strict=True)),
        wanted=[(bags[0], variable) for variable, bags in bags_of.items()],
    )


def _affordable_tree(
    factors: Sequence[_LogFactor], cardinalities: Sequence[int], memory_limit: int
) -> Tree:
    def entries(bag: Iterable[int]) -> int:
        return math.prod(cardinalities[variable] for variable in bag)

    def admit(bag: Collection[int]) -> None:
        _require_memory(_TABLES_AT_ONCE * entries(bag), len(bag), memory_limit)

    tree = tree_decomposition([factor.variables for factor in factors], admit)
    sizes = [entries(bag) for bag in tree]
    # The sums of earlier eliminations stay alive; together they are smaller than the bags.
    needed = sum(sizes) + _TABLES_AT_ONCE * max(sizes)
    _require_memory(needed, _width(tree) + 1, memory_limit)
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


def _log_tables(component: _Piece, largest: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield each variable with its unnormalised log marginal, from pieces of few bags.

    Args:
        component: a connected component.
        largest: the number of bags from which on a piece is not cut further, at least 2.
    """
    pieces = [component]
    while pieces:
        piece = pieces.pop()
        if len(piece.tree) > largest:
            pieces.extend(_cut(piece))
            continue
        elimination = _Elimination([factor for _, factor in piece.factors])
        for bag, variable in piece.wanted:
            yield variable, elimination.factor_over([variable], piece.tree, bag).values


def _cut(piece: _Piece) -> list[_Piece]:
    """Halve a piece at its most central bag; each half gets the other as a factor over that bag.

    The bag separates the halves: such a factor, the sum of one half over all variables outside
    the bag, is all that the other half needs of it.
    """
    centre = centre_of(piece.tree)
    half = halves(piece.tree, centre)
    first, second = (_side(piece, centre, half, which) for which in (0, 1))
    pieces = []
    for side, other in ((first, second), (second, first)):
        if side.wanted:
            factors = list(side.factors)
            if other.factors:
                elimination = _Elimination([factor for _, factor in other.factors])
                factors.append((centre, elimination.factor_over(centre, other.tree, centre)))
            pieces.append(replace(side, factors=factors))
    return pieces


def _side(piece: _Piece, centre: Bag, half: dict[Bag, int], which: int) -> _Piece:
    """One half of a piece, in which the central bag is a leaf or has fewer branches."""
    tree = {bag: near for bag, near in piece.tree.items() if half[bag] == which}
    tree[centre] = [bag for bag in piece.tree[centre] if half[bag] == which]
    return _Piece(
        tree=tree,
        factors=[(bag, factor) for bag, factor in piece.factors if half[bag] == which],
        wanted=[(bag, variable) for bag, variable in piece.wanted if half[bag] == which],
    )


def _width(tree: Tree) -> int:
    return max(map(len, tree)) - 1


def _require_double_precision() -> None:
    backend, precision = pgmpy.config.get_backend(), pgmpy.config.get_dtype()
    if backend != "numpy" or np.dtype(precision) != np.float64:
        raise InferenceError(
            f"pgmpy is set to compute with {backend} in {precision} in this process; call "
            "pgmpy.config.set_backend('numpy') before the backend 'pgmpy' is used"
        )
