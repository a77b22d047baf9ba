"""Index arrays of a factor graph, padded to sizes that many graphs share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.messages.kernels.entries import Entries, possible_entries, table_sources
from inference.messages.kernels.reduction import Reduced
from inference.messages.reduction import reduced

_SMALLEST_SIZES = (32, 64, 64, 128)
"""States, message entries, table entries and terms of the smallest size: as a graph of 16 binary
variables and 16 pairs has them. All are doubled together, so that few sizes are compiled for."""


class Structure(NamedTuple):
    """Who is joined to whom: index arrays, padded to sizes that many graphs share.

    Padding stands last and is marked as not `real`. Its messages stay 0; padded terms lead from
    the last entry, of value 0, to the last message.

    Attributes:
        state_variable: (n_states,), the variable of every possible state.
        message_state, message_first: (n_messages,), the state of every entry of a message, and the
            first entry of the same message.
        entry_messages: (n_entries, widest scope), the message entries that belong to an entry of a
            table; n_messages where the scope is smaller.
        entry_factor: (n_entries,), the factor of every entry.
        term_entry, term_message: (n_terms,), which entries add to which entry of a message, in
            ascending order of the latter.
        real_variables: bool (n_variables,).
        real_messages: bool (n_messages,).
        real_factors: bool (n_factors,).
    """

    state_variable: Any
    message_state: Any
    message_first: Any
    entry_messages: Any
    entry_factor: Any
    term_entry: Any
    term_message: Any
    real_variables: Any
    real_messages: Any
    real_factors: Any


@dataclass(frozen=True, eq=False)
class Model:
    """A reduced graph and its possible entries."""

    reduced: Reduced
    entries: Entries

    @classmethod
    def of(cls, graph: FactorGraph) -> Model:
        model = reduced(graph)
        return cls(model, possible_entries(graph.cardinalities, model))

    @property
    def constant(self) -> float:
        """The log potential of everything that is fixed."""
        fixed = self.reduced.fixed
        at = (self.reduced.state_starts[:-1] + fixed)[fixed >= 0]
        return float(self.reduced.constant + self.reduced.unary[at].sum())

    def known(self) -> NDArray[np.float64]:
        """Marginals of all states, as far as they are fixed."""
        flat = np.zeros(len(self.reduced.unary))
        fixed = self.reduced.fixed
        flat[(self.reduced.state_starts[:-1] + fixed)[fixed >= 0]] = 1.0
        return flat

    @property
    def sizes(self) -> tuple[int, ...]:
        """Padded numbers of states, message entries, table entries, terms and the widest scope."""
        entries = self.entries
        arities = np.diff(self.reduced.scope_starts)
        counts = (
            len(entries.states),
            len(entries.message_states),
            len(entries.entries),
            int((np.diff(entries.entry_starts) * arities).sum()),
        )
        # One place at least is left over for padding to refer to.
        doublings = max(
            (count // least).bit_length()
            for count, least in zip(counts, _SMALLEST_SIZES, strict=True)
        )
        padded = [least << doublings for least in _SMALLEST_SIZES]
        return (*padded, 1 << (entries.entry_messages.shape[1] - 1).bit_length())

    def structure(self) -> Structure:
        """Padded index arrays."""
        n_states, n_messages, n_entries, n_terms, widest = self.sizes
        entries = self.entries
        n_factors = len(entries.entry_starts) - 1
        per_slot = np.diff(entries.message_starts)
        members = entries.entry_messages
        terms = np.flatnonzero(members.ravel() < len(entries.message_states))
        terms = terms[np.argsort(members.ravel()[terms], kind="stable")]
        _, variable = np.unique(entries.state_variables, return_inverse=True)
        joined = np.full((n_entries, widest), n_messages)
        joined[: len(members), : members.shape[1]] = np.where(
            members < len(entries.message_states), members, n_messages
        )
        return Structure(
            state_variable=_padded(variable, n_states, n_states - 1),
            message_state=_padded(entries.message_states, n_messages, n_states - 1),
            message_first=_padded(
                np.repeat(entries.message_starts[:-1], per_slot), n_messages, n_messages - 1
            ),
            entry_messages=joined.astype(np.int32),
            entry_factor=_padded(
                np.repeat(np.arange(n_factors), np.diff(entries.entry_starts)),
                n_entries,
                n_entries - 1,
            ),
            term_entry=_padded(terms // members.shape[1], n_terms, n_entries - 1),
            term_message=_padded(members.ravel()[terms], n_terms, n_messages - 1),
            real_variables=np.arange(n_states) <= variable.max(initial=-1),
            real_messages=np.arange(n_messages) < len(entries.message_states),
            real_factors=np.arange(n_entries) < n_factors,
        )

    def numbers(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Padded log tables: of the factors, and of the states."""
        n_states, _, n_entries, *_ = self.sizes
        values, unary = np.zeros(n_entries), np.zeros(n_states)
        values[: len(self.entries.entries)] = self.reduced.log_values[self.entries.entries]
        unary[: len(self.entries.states)] = self.reduced.unary[self.entries.states]
        return values, unary

    def sums(self, graph: FactorGraph) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """Which log tables of a graph add up to the padded ones and the constant after."""
        model, entries = self.reduced, self.entries
        n_states, _, n_entries, *_ = self.sizes
        targets, sources = table_sources(
            graph.cardinalities,
            graph.scope_starts,
            graph.scope_variables,
            graph.table_starts,
            model,
        )
        n_values, count = len(model.log_values), n_entries + n_states + 1
        place = np.full(n_values + len(model.unary) + 1, -1)
        place[entries.entries] = np.arange(len(entries.entries))
        place[n_values + entries.states] = n_entries + np.arange(len(entries.states))
        fixed = (model.state_starts[:-1] + model.fixed)[model.fixed >= 0]
        place[n_values + fixed] = count - 1
        place[-1] = count - 1
        used = place[targets] >= 0
        return sources[used], place[targets[used]], count

    def sums_of(self, graph: FactorGraph, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """What many settings of the log tables of a graph add up to.

        Args:
            graph: the graph of this model.
            rows: (n_settings, n_entries), zeros where the graph has zeros.

        Returns:
            (n_settings, n): the padded tables of the factors, those of the states, the constant.
        """
        sources, targets, count = self.sums(graph)
        order = np.argsort(targets, kind="stable")
        filled, firsts = np.unique(targets[order], return_index=True)
        result = np.zeros((len(rows), count))
        if len(filled):
            result[:, filled] = np.add.reduceat(rows[:, sources[order]], firsts, axis=1)
        return result


def _padded(values: NDArray[np.int64], size: int, filler: int) -> NDArray[np.int32]:
    result = np.full(size, filler, dtype=np.int32)
    result[: len(values)] = values
    return result
