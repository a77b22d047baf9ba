"""Bounds on marginals of a graph some of whose tables are open: each is one of several.

The odds of a variable are those of the root of its tree of self-avoiding walks (Weitz 2006), on
which messages are monotone in every message that they are made of and, between two tables, in the
mixture of these. A box of messages can therefore be passed towards the root, and what a table may
be widens the box (Mooij and Kappen 2008, "Bounds on marginal probability distributions").
Where few tables are open and exact inference is quick, every choice of them is computed instead: a
marginal is a ratio of linear functions of the weights of one pair's tables, so that none between
is beyond these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import TooLargeError, ZeroPartitionError
from inference.batch import infer_settings
from inference.exact.backend import Exact
from inference.tasks.components import connected_components

Floats = NDArray[np.float64]

_LEAST_LOG = -1e3
"""A table's zero: so much smaller than its largest entry that no float tells it from nothing."""

_ANY_ODDS = 1e5
"""Log odds of a variable of which nothing is known: beyond what any table can turn."""

_LENGTHS = (2, 4, 6, 8, 12)
"""Lengths of walks that are tried: longer ones know more, and close more cycles."""

_MOST_CHOICES = 150
"""Choices of a table for every open pair that are computed; three relations have 125."""

_MOST_SECONDS = 2.0
"""What all choices together are predicted to take at most."""

_SEARCH_SECONDS = 0.5
"""What the search for an order of elimination may take before."""


def open_marginals(graph: FactorGraph, tables: Mapping[tuple[int, int], Floats]) -> Floats:
    """Bounds on P(x = 1) of every variable, whichever of its tables each open pair has.

    They hold for each choice of a table per pair, and for each weighted mean of two of its tables,
    such as those of a relation at probabilities between two. They are attained, by one choice each,
    where at most 150 choices are predicted to take two seconds by exact inference, and in a forest
    without a path longer than twelve; elsewhere they may be wider, since whatever may come from
    beyond a walk's end, or from where it may close a cycle, is let in.

    Args:
        graph: two states per variable, tables over two variables at most.
        tables: log tables of each open pair of variables, (k, 2, 2), indexed [table, state of the
            first, state of the second]; they come beside those that the graph has.

    Returns:
        float64 (n_variables, 2), lower and upper; NaN where no open table bears on a variable.

    Raises:
        InputError: for more states or larger tables.
    """
    if (graph.cardinalities != 2).any() or (np.diff(graph.scope_starts) > 2).any():
        raise InputError(
            "bounds under open tables are for variables with two states and tables over two of "
            "them at most; give such a graph"
        )
    walks = _walks(graph, tables)
    n = graph.n_variables
    components = connected_components(n, walks.pairs)
    touched = np.isin(components, components[[one for pair in tables for one in pair]])
    bounds = np.full((n, 2), np.nan)
    if touched.any() and (attained := _attained(graph, tables)) is not None:
        return np.where(touched[:, None], attained, np.nan)
    if touched.any():
        closing = _closing(n, walks.pairs, components)
        # All of them hold, so that the closest of each side does.
        found = np.stack([_odds(walks, closing, length) for length in _LENGTHS])
        bounds[touched, 0] = found[:, touched, 0].max(axis=0)
        bounds[touched, 1] = found[:, touched, 1].min(axis=0)
    # Half the odds, so that no exponential overflows.
    probabilities: Floats = 0.5 * (1.0 + np.tanh(bounds / 2.0))
    return probabilities


def _attained(graph: FactorGraph, tables: Mapping[tuple[int, int], Floats]) -> Floats | None:
    """Least and largest P(x = 1) over all choices, (n_variables, 2); None if they are too many.

    None, too, where a choice leaves no assignment possible.
    """
    n_choices = prod(map(len, tables.values()))
    if n_choices > _MOST_CHOICES:
        return None
    log_values = [np.concatenate(each, axis=None) for each in product(*tables.values())]
    observed = np.flatnonzero(graph.evidence != UNOBSERVED)
    opened = FactorGraph.from_factors(
        graph.cardinalities,
        [*graph.factors(), *((pair, choices[0]) for pair, choices in tables.items())],
        log=True,
    ).with_evidence(dict(zip(observed.tolist(), graph.evidence[observed].tolist(), strict=True)))
    known = np.tile(opened.log_values[: len(graph.log_values)], (n_choices, 1))
    exact = Exact(seconds_limit=_MOST_SECONDS / n_choices, search_seconds=_SEARCH_SECONDS)
    try:
        found = infer_settings(opened, np.concatenate([known, log_values], axis=1), exact)
    except (TooLargeError, ZeroPartitionError):
        return None
    p = np.array([one.marginals.of_state(1) for one in found])
    return np.stack([p.min(axis=0), p.max(axis=0)], axis=1)


def _odds(walks: _Walks, closing: NDArray[np.int64], length: int) -> Floats:
    """Bounds on the log odds of every variable (n, 2), by walks of a length.

    Args:
        walks: the graph.
        closing: (n,) of `_closing`.
        length: how many steps are followed; beyond, any odds are possible.
    """
    hull = walks.messages(np.tile([-_ANY_ODDS, _ANY_ODDS], (len(walks.sources), 1)))
    messages = hull
    for depth in range(length - 1, 0, -1):
        # Of the neighbours of a variable so deep, its parent aside, so many may be on the walk.
        ends = np.where(closing == 0, 0, (depth - 1) // np.maximum(closing, 1))[walks.sources]
        odds = walks.sums(messages)[walks.sources] - messages[walks.backwards]
        odds[:, 0] -= walks.largest(messages[:, 0] - hull[:, 0], ends)
        odds[:, 1] += walks.largest(hull[:, 1] - messages[:, 1], ends)
        messages = walks.messages(odds)
    return walks.sums(messages)


@dataclass(frozen=True)
class _Walks:
    """A graph of pairs as directed edges, each unordered pair once: first all, then all backwards.

    Attributes:
        odds: (n,) log odds of each variable by itself.
        pairs: (m, 2) the variables that each pair joins.
        tables: (2 m, k, 2, 2) log tables, indexed [edge, table, state of source, of target].
    """

    odds: Floats
    pairs: NDArray[np.int64]
    tables: Floats

    @property
    def sources(self) -> NDArray[np.int64]:
        """Where each edge begins."""
        return np.concatenate([self.pairs[:, 0], self.pairs[:, 1]])

    @property
    def targets(self) -> NDArray[np.int64]:
        """Where each edge ends."""
        return np.concatenate([self.pairs[:, 1], self.pairs[:, 0]])

    @property
    def backwards(self) -> NDArray[np.int64]:
        """The edge in the other direction."""
        return np.roll(np.arange(2 * len(self.pairs)), len(self.pairs))

    def sums(self, messages: Floats) -> Floats:
        """Log odds of each variable by messages along each edge, (n, 2)."""
        return self.odds[:, None] + np.stack(
            [np.bincount(self.targets, one, len(self.odds)) for one in messages.T], axis=1
        )

    def largest(self, values: Floats, counts: NDArray[np.int64]) -> Floats:
        """Of each edge, the sum of the largest values on edges into its source but its own, (2 m,).

        Args:
            values: (2 m,) a value, at least 0, of each edge.
            counts: (2 m,) how many are summed.
        """
        order = np.lexsort((-values, self.targets))
        firsts = np.searchsorted(self.targets[order], np.arange(len(self.odds) + 1))
        before = np.concatenate([[0.0], np.cumsum(values[order])])
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order)) - firsts[self.targets[order]]
        # Where its own is among the largest, one more is taken in its place.
        own = ranks[self.backwards] < counts
        starts, ends = firsts[self.sources], firsts[self.sources + 1]
        sums = before[np.minimum(starts + counts + own, ends)] - before[starts]
        rest: Floats = sums - np.where(own, values[self.backwards], 0.0)
        return rest

    def messages(self, boxes: Floats) -> Floats:
        """Least and largest log odds that each edge gives its target, (2 m, 2).

        Args:
            boxes: (2 m, 2) least and largest log odds of its source without it.
        """
        odds = np.clip(boxes, -_ANY_ODDS, _ANY_ODDS)[:, None, :]
        table = self.tables[..., None]
        found = np.logaddexp(odds + table[:, :, 1, 1], table[:, :, 0, 1]) - np.logaddexp(
            odds + table[:, :, 1, 0], table[:, :, 0, 0]
        )
        return np.stack([found.min(axis=(1, 2)), found.max(axis=(1, 2))], axis=1)


def _walks(graph: FactorGraph, tables: Mapping[tuple[int, int], Floats]) -> _Walks:
    odds = np.zeros(graph.n_variables)
    known: dict[tuple[int, int], Floats] = {}
    for scope, table in graph.factors():
        if len(scope) == 1:
            table = _finite(table)
            odds[scope[0]] += table[1] - table[0]
        elif scope:
            pair, turned = _in_order(scope[0], scope[1], table)
            known[pair] = known.get(pair, np.zeros((2, 2))) + _finite(turned)
    for variable in np.flatnonzero(graph.evidence != UNOBSERVED):
        odds[variable] = _ANY_ODDS if graph.evidence[variable] else -_ANY_ODDS
    several = {pair: table[None] for pair, table in known.items()}
    for (first, second), choices in tables.items():
        pair, turned = _in_order(first, second, choices)
        finite = _finite(turned)
        # Open twice, as where both orders of a pair are: any of one with any of the other.
        beside = several.get(pair, np.zeros((1, 2, 2)))
        several[pair] = (finite[:, None] + beside).reshape(-1, 2, 2)
    most = max((len(choices) for choices in several.values()), default=1)
    padded = np.zeros((len(several), most, 2, 2))
    for row, choices in enumerate(several.values()):
        padded[row] = choices[np.minimum(np.arange(most), len(choices) - 1)]
    pairs = np.array(list(several), dtype=np.int64).reshape(-1, 2)
    return _Walks(odds, pairs, np.concatenate([padded, padded.swapaxes(2, 3)]))


def _in_order(first: int, second: int, table: Floats) -> tuple[tuple[int, int], Floats]:
    if first < second:
        return (first, second), table
    return (second, first), table.swapaxes(-1, -2)


def _finite(table: Floats) -> Floats:
    largest = table.max(axis=(-2, -1) if table.ndim > 1 else 0, keepdims=True)
    finite: Floats = np.maximum(table - largest, _LEAST_LOG)
    return finite


def _closing(n: int, pairs: NDArray[np.int64], components: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many steps apart the variables of a walk are that may be neighbours of one, (n,).

    None are in a forest, which is 0; where every cycle is even every second one may be, else all.
    """
    variables = np.bincount(components, minlength=n)
    edges = np.bincount(components[pairs[:, 0]], minlength=n)
    # Two copies of each variable, joined crosswise, hang together where a cycle is odd.
    shifts = np.array([[0, n], [n, 0]])
    crossed = np.concatenate([pairs + shift for shift in shifts])
    copies = connected_components(2 * n, crossed)
    odd = copies[:n] == copies[n:]
    forest = (edges < variables)[components]
    return np.where(forest, 0, np.where(odd, 1, 2))
