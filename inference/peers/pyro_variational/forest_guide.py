"""A forest-structured distribution in torch, and its joint distribution on any few variables.

The guide is a product of conditional distributions, one for every node of a forest given its
parent variable. What it says of variables far apart follows from the conditionals along the paths
between them: paths of 1, 2, 4, ... steps are multiplied once for all nodes, every longer one is
put together from these, and where paths meet they are multiplied entry by entry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.peers.pyro_variational.bound import Term
from inference.peers.pyro_variational.entries import FactorGroup, factor_groups
from inference.peers.pyro_variational.forest import TOP, Forest, virtual_tree

_ROOT = -1
"""The place above a path that begins at the top."""

_UNUSED = -2
"""The place above a place that a factor does not need."""


@dataclass(frozen=True, eq=False)
class ForestGuide:
    """What is fixed of a forest-structured distribution over the variables of a graph.

    Tensors over states of nodes are filled up to the largest number of states of a node.

    Attributes:
        allowed: bool (n_nodes, parent states, states), the entries of conditionals that the
            zeros of the forest's factors leave possible.
        rows: int64 (n_nodes, states), the state of the parent variable in each state of the
            parent node.
        ancestors: int64 (n_levels, n_nodes), the node 1, 2, 4, ... steps above.
        n_paths: how many paths are needed.
        path_steps: for every power of two, the paths that have a step of that length, and the
            node at which it ends.
        groups: what to do for every group of factors of equal arity and size.
    """

    allowed: torch.Tensor
    rows: torch.Tensor
    ancestors: torch.Tensor
    n_paths: int
    path_steps: list[tuple[torch.Tensor, torch.Tensor]]
    groups: list[_Terms]

    def log_conditionals(self, parameters: torch.Tensor) -> torch.Tensor:
        """Log conditionals, (restarts, n_nodes, parent states, states), from log-odds."""
        return torch.log_softmax(parameters.masked_fill(~self.allowed, -torch.inf), dim=-1)

    def terms(self, parameters: list[torch.Tensor]) -> list[Term]:
        """Terms of the bound: expected log tables, and the entropy node by node."""
        log_conditionals = self.log_conditionals(parameters[0])
        surprises = -log_conditionals.masked_fill(~self.allowed, 0.0)
        paths = self._paths(log_conditionals.exp())
        terms = []
        for group in self.groups:
            values = group.log_values.expand(len(surprises), -1, -1)
            if group.owned is not None:
                nodes, rows, columns = group.owned
                values = values + surprises[:, nodes, rows, columns] * group.owning
            terms.append(Term(group.joint(paths), values))
        return terms

    def _paths(self, conditionals: torch.Tensor) -> torch.Tensor:
        """Return, (restarts, n_paths, states, states), the transitions along all paths."""
        states = conditionals.shape[-1]
        index = self.rows[None, :, :, None].expand(len(conditionals), -1, -1, states)
        step = conditionals.gather(2, index)
        paths = torch.eye(states, dtype=step.dtype).expand(len(step), self.n_paths, states, states)
        for level, (chosen, ends) in enumerate(self.path_steps):
            if level > 0:
                step = step[:, self.ancestors[level - 1]] @ step
            longer = step[:, ends] @ paths[:, chosen]
            paths = paths.index_copy(1, chosen, longer)
        return paths


@dataclass(frozen=True, eq=False)
class _Terms:
    """A group of factors, and how the paths to the variables of each of them meet.

    Places are the nodes at which the paths of a factor meet or end, lower ones first.

    Attributes:
        factors: int64 (n,), their numbers.
        log_values: (n, entries), their log tables; 0 in place of -inf, which the guide never
            meets.
        indicators: (n, entries, places, states), 1 for the states of a node that agree with an
            entry.
        paths: int64 (n, places), the path that ends at each node.
        above: int64 (n, places), the place at which that path begins.
        owned: node (n, 1), row and column (n, entries) of the entries in the conditionals; None
            if no factor of the group gives a node its conditional.
        owning: bool (n, 1), whether a factor does.
    """

    factors: NDArray[np.int64]
    log_values: torch.Tensor
    indicators: torch.Tensor
    paths: torch.Tensor
    above: torch.Tensor
    owned: tuple[torch.Tensor, ...] | None
    owning: torch.Tensor

    def joint(self, paths: torch.Tensor) -> torch.Tensor:
        """Guide's joint distribution on every scope, (restarts, n, entries)."""
        places = self.paths.shape[1]
        below = [self.indicators[None, :, :, place] for place in range(places)]
        result = torch.ones((), dtype=paths.dtype)
        for place in range(places):
            above = self.above[:, place]
            # Upward from the node: for every state at the beginning of the path, the probability
            # of what is asked of the nodes from here down.
            message = below[place] @ paths[:, self.paths[:, place]].transpose(-1, -2)
            for upper in range(place + 1, places):
                here = above == upper
                if here.any():
                    below[upper] = torch.where(
                        here[:, None, None], below[upper] * message, below[upper]
                    )
            root = above == _ROOT
            if root.any():
                result = torch.where(root[:, None], result * message[..., 0], result)
        return result


def forest_guide(graph: FactorGraph, forest: Forest) -> ForestGuide:
    """Guide on a graph.

    Args:
        graph: a factor graph whose last factors are one for each variable, in order; zeros are in
            the factors of the forest alone.
        forest: its spanning forest.
    """
    counts, digits = _node_states(graph, forest)
    states = digits.shape[1]
    rows = np.zeros((len(counts), states), dtype=np.int64)
    inner = forest.parent_variables >= 0
    rows[inner] = digits[forest.parent_variables[inner]]
    # What no entry names stays out of the way: everything is in state 0.
    allowed = np.zeros((len(counts), int(graph.cardinalities.max()), states), dtype=bool)
    allowed[:, :, 0] = True
    ancestors = forest.ancestors()
    path_numbers: dict[tuple[int, int], int] = {}
    groups = []
    for group in factor_groups(graph):
        owned = owned_entries(graph, forest, group)
        owning = owned.nodes > TOP
        index = owned.nodes[owning, None], owned.rows[owning], owned.columns[owning]
        allowed[index] = group.log_values[owning] > -np.inf
        meetings = [
            virtual_tree(forest, ancestors, sorted(set(forest.node_of[scope].tolist())))
            for scope in group.variables
        ]
        groups.append(_terms(forest, group, owned, meetings, path_numbers, counts, digits))
    ends, begins = np.array(list(path_numbers), dtype=np.int64).reshape(-1, 2).T
    return ForestGuide(
        allowed=torch.as_tensor(allowed),
        rows=torch.as_tensor(rows),
        ancestors=torch.as_tensor(ancestors),
        n_paths=len(ends),
        path_steps=_path_steps(ends, forest.depths[ends] - forest.depths[begins], ancestors),
        groups=groups,
    )


@dataclass(frozen=True, eq=False)
class OwnedEntries:
    """Where in the conditionals of nodes the entries of a group of factors are.

    Attributes:
        nodes: int64 (n,), the node whose conditional is over the factor's scope; 0 if there is
            none.
        rows: int64 (n, entries), the state of the node's parent variable; 0 for roots.
        columns: int64 (n, entries), the state of the node; 0 where there is none.
    """

    nodes: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]


def owned_entries(graph: FactorGraph, forest: Forest, group: FactorGroup) -> OwnedEntries:
    """Where the entries of a group of factors are in the conditionals of a forest.

    Args:
        graph: a factor graph whose last factors are one for each variable, in order.
        forest: its spanning forest.
        group: some of its factors.
    """
    owner = np.full(graph.n_factors, TOP, dtype=np.int64)
    inner = np.flatnonzero(forest.factors >= 0)
    owner[forest.factors[inner]] = inner
    for root in np.flatnonzero(forest.parents == TOP)[1:]:
        owner[graph.n_factors - graph.n_variables + forest.variables[root][0]] = root
    nodes = owner[group.factors]
    rows = np.zeros(group.log_values.shape, dtype=np.int64)
    columns = np.zeros_like(rows)
    for slot in range(group.variables.shape[1]):
        variables = group.variables[:, slot, None]
        is_parent = variables == forest.parent_variables[nodes, None]
        states = group.states[:, :, slot]
        rows = np.where(is_parent, states, rows)
        columns = np.where(is_parent, columns, columns * graph.cardinalities[variables] + states)
    columns[nodes == TOP] = 0
    return OwnedEntries(nodes, rows, columns)


def _node_states(graph: FactorGraph, forest: Forest) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many states every node has, and each variable's state in those of its node."""
    shapes = [tuple(graph.cardinalities[list(held)].tolist()) for held in forest.variables]
    counts = np.array([math.prod(shape) for shape in shapes])
    digits = np.zeros((graph.n_variables, int(counts.max())), dtype=np.int64)
    for held, shape, count in zip(forest.variables, shapes, counts, strict=True):
        for variable, column in zip(held, np.indices(shape).reshape(len(held), count), strict=True):
            digits[variable, :count] = column
    return counts, digits


def _terms(
    forest: Forest,
    group: FactorGroup,
    owned: OwnedEntries,
    meetings: list[list[tuple[int, int]]],
    path_numbers: dict[tuple[int, int], int],
    counts: NDArray[np.int64],
    digits: NDArray[np.int64],
) -> _Terms:
    n, entries = group.log_values.shape
    places = max(map(len, meetings))
    paths = np.zeros((n, places), dtype=np.int64)
    above = np.full((n, places), _UNUSED, dtype=np.int64)
    place_of = np.zeros(group.variables.shape, dtype=np.int64)
    indicators = np.zeros((n, entries, places, digits.shape[1]))
    for number, meeting in enumerate(meetings):
        at = {node: place for place, (node, _) in enumerate(meeting)}
        for place, (node, upper) in enumerate(meeting):
            paths[number, place] = path_numbers.setdefault((node, upper), len(path_numbers))
            above[number, place] = _ROOT if upper == TOP else at[upper]
            indicators[number, :, place, : counts[node]] = 1.0
        place_of[number] = [at[node] for node in forest.node_of[group.variables[number]]]
    for slot in range(group.variables.shape[1]):
        agrees = digits[group.variables[:, slot], None] == group.states[:, :, slot, None]
        indicators[np.arange(n), :, place_of[:, slot]] *= agrees
    owning = owned.nodes > TOP
    return _Terms(
        log_values=torch.as_tensor(np.where(np.isneginf(group.log_values), 0.0, group.log_values)),
        factors=group.factors,
        indicators=torch.as_tensor(indicators),
        paths=torch.as_tensor(paths),
        above=torch.as_tensor(above),
        owned=tuple(map(torch.as_tensor, (owned.nodes[:, None], owned.rows, owned.columns)))
        if owning.any()
        else None,
        owning=torch.as_tensor(owning[:, None]),
    )


def _path_steps(
    ends: NDArray[np.int64], lengths: NDArray[np.int64], ancestors: NDArray[np.int64]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Paths that have a step of 1, 2, 4, ... and the node at which that step ends."""
    steps = []
    at = ends.copy()
    for level in range(int(lengths.max(initial=0)).bit_length()):
        chosen = np.flatnonzero(lengths >> level & 1)
        steps.append((torch.as_tensor(chosen), torch.as_tensor(at[chosen])))
        at[chosen] = ancestors[level, at[chosen]]
    return steps
