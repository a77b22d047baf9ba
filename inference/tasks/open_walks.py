"""Bounds on marginals by walks toward a variable, for any values of some tables of pairs.

The odds of a variable are those of the root of its tree of self-avoiding walks (Weitz 2006), on
which messages are monotone in every incoming message and, between two tables, in their mixture. A
box of messages can therefore be passed toward the root, and open tables widen the box (Mooij and
Kappen 2008, "Bounds on marginal probability distributions").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from factormodels.arrays import Floats
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.tasks.components import connected_components

_LEAST_LOG = -1e3
"""Log entry that replaces a zero, negligible in double precision beside the largest entry."""

_ANY_ODDS = 1e5
"""Log odds of an unknown variable, larger than any table can compensate."""

_LENGTHS = (2, 4, 6, 8, 12)
"""Lengths of walks: longer ones use more of the graph, and close more cycles."""


@dataclass(frozen=True)
class Walks:
    """A pairwise graph as directed edges: all unordered pairs forwards, then all backwards.

    Attributes:
        odds: (n,) log odds of each variable by itself.
        pairs: (m, 2) the variables that each pair joins.
        tables: (2 m, k, 2, 2) log tables, indexed [edge, table, state of source, of target].
    """

    odds: Floats
    pairs: NDArray[np.int64]
    tables: Floats

    @classmethod
    def of(cls, graph: FactorGraph, tables: Mapping[tuple[int, int], Floats]) -> Walks:
        """Return the walks of a graph with open tables, which are added to its own."""
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
            # A pair that is open in both orders has every combination of the two tables.
            beside = several.get(pair, np.zeros((1, 2, 2)))
            several[pair] = (finite[:, None] + beside).reshape(-1, 2, 2)
        most = max((len(choices) for choices in several.values()), default=1)
        padded = np.zeros((len(several), most, 2, 2))
        for row, choices in enumerate(several.values()):
            padded[row] = choices[np.minimum(np.arange(most), len(choices) - 1)]
        pairs = np.array(list(several), dtype=np.int64).reshape(-1, 2)
        return cls(odds, pairs, np.concatenate([padded, padded.swapaxes(2, 3)]))

    def bounds(self) -> Floats:
        """Return the minimum and maximum P(x = 1) of every variable, (n, 2)."""
        # All bounds hold, so the tightest on each side holds too.
        odds = np.stack([self._odds_by(length) for length in _LENGTHS])
        closest = np.stack([odds[..., 0].max(axis=0), odds[..., 1].min(axis=0)], axis=1)
        # The tanh form avoids overflow of exponentials.
        bounds: Floats = 0.5 * (1.0 + np.tanh(closest / 2.0))
        return bounds

    @cached_property
    def components(self) -> NDArray[np.int64]:
        """Number of the connected component of each variable, (n,)."""
        return connected_components(len(self.odds), self.pairs)

    @property
    def sources(self) -> NDArray[np.int64]:
        """Source variable of each edge."""
        return np.concatenate([self.pairs[:, 0], self.pairs[:, 1]])

    @property
    def targets(self) -> NDArray[np.int64]:
        """Target variable of each edge."""
        return np.concatenate([self.pairs[:, 1], self.pairs[:, 0]])

    @property
    def backwards(self) -> NDArray[np.int64]:
        """Index of the reverse of each edge."""
        return np.roll(np.arange(2 * len(self.pairs)), len(self.pairs))

    def sums(self, messages: Floats) -> Floats:
        """Return log odds of each variable from messages along each edge, (n, 2)."""
        return self.odds[:, None] + np.stack(
            [np.bincount(self.targets, column, len(self.odds)) for column in messages.T], axis=1
        )

    def largest(self, values: Floats, counts: NDArray[np.int64]) -> Floats:
        """Return, for each edge, a sum of the largest values on other edges into its source, (2
        m,).

        Args:
            values: (2 m,) a nonnegative value of each edge.
            counts: (2 m,) number of values to sum.
        """
        order = np.lexsort((-values, self.targets))
        firsts = np.searchsorted(self.targets[order], np.arange(len(self.odds) + 1))
        before = np.concatenate([[0.0], np.cumsum(values[order])])
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order)) - firsts[self.targets[order]]
        # If the edge's own value is among the largest, the next one replaces it.
        includes_own = ranks[self.backwards] < counts
        starts, ends = firsts[self.sources], firsts[self.sources + 1]
        sums = before[np.minimum(starts + counts + includes_own, ends)] - before[starts]
        rest: Floats = sums - np.where(includes_own, values[self.backwards], 0.0)
        return rest

    def messages(self, boxes: Floats) -> Floats:
        """Return the minimum and maximum log odds that each edge sends to its target, (2 m, 2).

        Args:
            boxes: (2 m, 2) minimum and maximum log odds of its source without the edge.
        """
        odds = np.clip(boxes, -_ANY_ODDS, _ANY_ODDS)[:, None, :]
        table = self.tables[..., None]
        sent = np.logaddexp(odds + table[:, :, 1, 1], table[:, :, 0, 1]) - np.logaddexp(
            odds + table[:, :, 1, 0], table[:, :, 0, 0]
        )
        return np.stack([sent.min(axis=(1, 2)), sent.max(axis=(1, 2))], axis=1)

    def _odds_by(self, length: int) -> Floats:
        """Return bounds on the log odds of every variable, (n, 2), by walks of a length.

        Beyond that number of steps, any odds are possible.
        """
        closing = _closing(len(self.odds), self.pairs, self.components)
        hull = self.messages(np.tile([-_ANY_ODDS, _ANY_ODDS], (len(self.sources), 1)))
        messages = hull
        for depth in range(length - 1, 0, -1):
            # Maximum number of neighbors, besides the parent, that may be on the walk at this
            # depth.
            ends = np.where(closing == 0, 0, (depth - 1) // np.maximum(closing, 1))[self.sources]
            odds = self.sums(messages)[self.sources] - messages[self.backwards]
            odds[:, 0] -= self.largest(messages[:, 0] - hull[:, 0], ends)
            odds[:, 1] += self.largest(hull[:, 1] - messages[:, 1], ends)
            messages = self.messages(odds)
        return self.sums(messages)


def _in_order(first: int, second: int, table: Floats) -> tuple[tuple[int, int], Floats]:
    if first < second:
        return (first, second), table
    return (second, first), table.swapaxes(-1, -2)


def _finite(table: Floats) -> Floats:
    largest = table.max(axis=(-2, -1) if table.ndim > 1 else 0, keepdims=True)
    finite: Floats = np.maximum(table - largest, _LEAST_LOG)
    return finite


def _closing(n: int, pairs: NDArray[np.int64], components: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distance between variables of a walk that may be neighbors of the same one, (n,).

    It is 0 in a forest, which has none; 2 if every cycle is even; and 1 otherwise.
    """
    variables = np.bincount(components, minlength=n)
    edges = np.bincount(components[pairs[:, 0]], minlength=n)
    # Two copies of each variable, joined crosswise, are connected if a cycle is odd.
    shifts = np.array([[0, n], [n, 0]])
    crossed = np.concatenate([pairs + shift for shift in shifts])
    copies = connected_components(2 * n, crossed)
    odd = copies[:n] == copies[n:]
    forest = (edges < variables)[components]
    return np.where(forest, 0, np.where(odd, 1, 2))
