"""Factor graphs: discrete variables and log tables over subsets of them, in flat arrays."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factormodels.arrays import (
    check_axes,
    frozen,
    log_potentials,
    number_array,
    partition,
    whole_scope,
)
from factormodels.errors import InputError, unknown_name
from factormodels.nouns import counted
from factormodels.object_repr import Preview, Previewed

if TYPE_CHECKING:
    import pandas as pd

UNOBSERVED = -1
"""Entry of `FactorGraph.evidence` for a variable that is not observed."""

_UNOBSERVED_BYTES = np.int64(UNOBSERVED).tobytes()

NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
"""Pattern of state names that are numbers."""

_SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class FactorGraph(Previewed):
    """An immutable factor graph over discrete variables.

    Build one with `FactorGraph.from_factors`; the constructor takes flat arrays, and is meant for
    readers and generators of large graphs. Arrays are made read-only. Two factors may share a
    scope, a scope may be empty (a constant), and a table may hold log 0 = -inf.

    Attributes:
        names: one name per variable, in a fixed order.
        cardinalities: int64 (n_variables,), number of states of each variable, at least 1.
        scope_starts: int64 (n_factors + 1,); factor f has scope
            ``scope_variables[scope_starts[f]:scope_starts[f + 1]]``.
        scope_variables: int64, indices of variables, factor after factor.
        table_starts: int64 (n_factors + 1,), the same for `log_values`.
        log_values: float64, natural logarithms of the potentials, factor after factor, the last
            variable of a scope varying fastest (as in the UAI format).
        evidence: int64 (n_variables,), observed state of each variable or `UNOBSERVED`.
        state_names: names of the states of each variable, in order; None if states are numbers.

    Raises:
        InputError: if the arrays do not describe a factor graph.
    """

    names: tuple[str, ...]
    cardinalities: NDArray[np.int64]
    scope_starts: NDArray[np.int64]
    scope_variables: NDArray[np.int64]
    table_starts: NDArray[np.int64]
    log_values: NDArray[np.float64]
    evidence: NDArray[np.int64]
    state_names: tuple[tuple[str, ...], ...] | None = None

    def __post_init__(self) -> None:
        self._freeze()
        _validate(self)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickling and deep-copying drop the read-only flag of arrays.
        self.__dict__.update(state)
        self._freeze()

    def _freeze(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        for name, dtype in _ARRAYS.items():
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))

    @classmethod
    def unchecked(
        cls, *, names: tuple[str, ...], log_values: NDArray[np.float64], **arrays: NDArray[np.int64]
    ) -> FactorGraph:
        """Return a graph of fields that are valid by construction, with read-only arrays.

        Compiled facts use it, since their factor graphs under different settings share all fields
        but `log_values`.
        """
        graph = object.__new__(cls)
        graph.__dict__.update(names=names, log_values=log_values, **arrays)
        return graph

    def _evolve(self, **changes: Any) -> FactorGraph:
        # Changes are valid by construction, so a large graph needs no new validation, and its
        # index, which depends on names alone, is kept.
        derived = object.__new__(type(self))
        derived.__dict__.update({**self.__dict__, **changes})
        derived.__dict__.pop("structure", None)
        derived._freeze()
        return derived

    @classmethod
    def from_factors(
        cls,
        cardinalities: Sequence[int] | NDArray[np.int64],
        factors: Iterable[tuple[Sequence[int], ArrayLike]],
        *,
        names: Sequence[str] | None = None,
        log: bool = False,
        state_names: Sequence[Sequence[str]] | None = None,
    ) -> FactorGraph:
        """Build a factor graph from (scope, table) pairs.

        Args:
            cardinalities: number of states of each variable.
            factors: pairs of a scope (indices of variables) and a table whose axes follow the
                scope, or the same values flattened with the last variable fastest.
            names: one name per variable; "0", "1", ... if omitted.
            log: whether the tables hold natural logarithms rather than potentials.
            state_names: names of the states of each variable; numbers from 0 if omitted.

        Raises:
            InputError: if a table does not fit its scope, a potential is negative or NaN, a scope
                repeats a variable or refers to an unknown variable, or names repeat.
        """
        cards = np.asarray(cardinalities)
        if cards.size and cards.dtype.kind not in "iu":
            raise InputError(
                f"the cardinalities {cardinalities!r} are not whole numbers; "
                "give the number of states of each variable"
            )
        scopes: list[tuple[int, ...]] = []
        tables: list[NDArray[np.float64]] = []
        for number, (scope, table) in enumerate(factors):
            where = f"factor {number}"
            scopes.append(whole_scope(scope, where))
            values = number_array(table, where)
            check_axes(values, scopes[-1], cards, where)
            tables.append(values.ravel())
        log_values = np.concatenate(tables) if log and tables else np.zeros(0)
        if not log:
            log_values = log_potentials(tables, "factor {}".format)
        return cls(
            names=tuple(names) if names is not None else default_names(len(cards)),
            cardinalities=cards,
            scope_starts=partition([len(scope) for scope in scopes]),
            scope_variables=np.array([v for scope in scopes for v in scope], dtype=np.int64),
            table_starts=partition([table.size for table in tables]),
            log_values=log_values,
            evidence=np.full(len(cards), UNOBSERVED, dtype=np.int64),
            state_names=None if state_names is None else tuple(map(tuple, state_names)),
        )

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.names)

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return len(self.scope_starts) - 1

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Position of each variable by name."""
        return positions(self.names)

    @cached_property
    def structure(self) -> tuple[bytes, bytes, bytes]:
        """Key shared by graphs that differ only in names, tables and evidence.

        It consists of the bytes of `cardinalities`, `scope_starts` and `scope_variables`.
        """
        return (
            self.cardinalities.tobytes(),
            self.scope_starts.tobytes(),
            self.scope_variables.tobytes(),
        )

    @property
    def has_evidence(self) -> bool:
        """True if any variable is observed."""
        # Comparing bytes is ten times as fast as comparing arrays.
        return self.evidence.tobytes() != _UNOBSERVED_BYTES * len(self.evidence)

    def scope(self, factor: int) -> tuple[int, ...]:
        """Return the scope of factor number `factor` as indices of variables."""
        start, stop = self.scope_starts[factor : factor + 2]
        return tuple(self.scope_variables[start:stop].tolist())

    def log_table(self, factor: int) -> NDArray[np.float64]:
        """Return the log table of factor number `factor`, one axis per variable of its scope."""
        start, stop = self.table_starts[factor : factor + 2]
        return self.log_values[start:stop].reshape(self.cardinalities[list(self.scope(factor))])

    def factors(self) -> Iterator[tuple[tuple[int, ...], NDArray[np.float64]]]:
        """Yield (scope, log table) of every factor, in order."""
        for factor in range(self.n_factors):
            yield self.scope(factor), self.log_table(factor)

    def log_potential(self, states: Sequence[int] | NDArray[np.int64]) -> float:
        """Return the sum of log tables at a full assignment (unnormalized log probability).

        Args:
            states: state of every variable, in order. The result is -inf for states that contradict
                the evidence.
        """
        assignment = np.asarray(states, dtype=np.int64)
        observed = self.evidence != UNOBSERVED
        if np.any(assignment[observed] != self.evidence[observed]):
            return -np.inf
        entries = self.table_starts[:-1].copy()
        arities = np.diff(self.scope_starts)
        places = np.zeros_like(entries)
        for axis in range(int(arities.max(initial=0))):
            deep = np.flatnonzero(arities > axis)
            variables = self.scope_variables[self.scope_starts[deep] + axis]
            places[deep] = places[deep] * self.cardinalities[variables] + assignment[variables]
        # Sum sequentially, so that the last digits equal those of a loop over the factors.
        return float(sum(self.log_values[entries + places].tolist()))

    def with_log_values(self, log_values: NDArray[np.float64]) -> FactorGraph:
        """Return this graph with other log tables, which are valid and read-only."""
        graph = object.__new__(type(self))
        graph.__dict__.update({**self.__dict__, "log_values": log_values})
        return graph

    def with_evidence(
        self, states: Mapping[str, int | str] | Mapping[str, int] | Mapping[int, int]
    ) -> FactorGraph:
        """Return this graph with variables observed (hard evidence), added to earlier evidence.

        Args:
            states: observed state by name or index of the variable: the state's number, or its name
                if states have names. If the names of a variable's states are other numbers, such as
                1 and 2, a state must be given by its name, as text.

        Raises:
            InputError: for an unknown variable or name of a state, a state out of range, a number
                that could be a name, or a state that contradicts earlier evidence.
        """
        evidence = self.evidence.copy()
        for variable, state in states.items():
            position = self._position(variable)
            name = self.names[position]
            if isinstance(state, str) and self.state_names is not None:
                state = self._state(position, state)
            elif isinstance(variable, str):
                self._check_unambiguous(position, state)
            if isinstance(state, bool | np.bool_) or not isinstance(state, int | np.integer):
                raise InputError(
                    f"evidence on {name!r}: the state {state!r} is not a whole number; "
                    "give the number of the state that was observed"
                )
            count = int(self.cardinalities[position])
            if not 0 <= state < count:
                raise InputError(
                    f"evidence on {name!r}: state {state} does not exist; "
                    f"its states are 0 to {count - 1}"
                )
            if evidence[position] not in (UNOBSERVED, state):
                raise InputError(
                    f"evidence on {name!r}: state {state} contradicts the state "
                    f"{evidence[position]} observed before; keep one"
                )
            evidence[position] = state
        return self._evolve(evidence=evidence)

    def with_soft_evidence(
        self, likelihoods: Mapping[str, ArrayLike] | Mapping[int, ArrayLike]
    ) -> FactorGraph:
        """Return this graph with a likelihood vector multiplied into each given variable.

        Args:
            likelihoods: by name or index of the variable, one non-negative number per state,
                proportional to the probability of what was observed given that state.

        Raises:
            InputError: for an unknown variable or a vector of wrong length or sign.
        """
        scopes, tables = [], []
        for variable, likelihood in likelihoods.items():
            position = self._position(variable)
            where = f"soft evidence on {self.names[position]!r}"
            scopes.append(position)
            tables.append(number_array(likelihood, where).ravel())
            if tables[-1].size != self.cardinalities[position]:
                raise InputError(
                    f"{where} has {counted(tables[-1].size, 'value')}; "
                    f"give one for each of its {counted(self.cardinalities[position], 'state')}"
                )
        if not tables:
            return self
        added = log_potentials(
            tables, lambda number: f"soft evidence on {self.names[scopes[number]]!r}"
        )
        lengths = [table.size for table in tables]
        return self._evolve(
            scope_starts=np.append(
                self.scope_starts, self.scope_starts[-1] + np.arange(1, len(scopes) + 1)
            ),
            scope_variables=np.append(self.scope_variables, scopes),
            table_starts=np.append(self.table_starts, self.table_starts[-1] + np.cumsum(lengths)),
            log_values=np.append(self.log_values, added),
        )

    def absorb_evidence(self) -> FactorGraph:
        """Return the evidence-free graph in which every observed variable has a single state.

        Variables keep their names and positions; tables keep only the observed states. The log
        partition function is that of this graph given its evidence.
        """
        if not self.has_evidence:
            return self
        observed = self.evidence != UNOBSERVED
        keep = self._consistent_entries(observed)
        named = None
        if self.state_names is not None:
            named = tuple(
                (names[state],) if state != UNOBSERVED else names
                for names, state in zip(self.state_names, self.evidence.tolist(), strict=True)
            )
        kept = np.concatenate([[0], np.cumsum(keep)])
        return self._evolve(
            cardinalities=np.where(observed, 1, self.cardinalities),
            table_starts=kept[self.table_starts],
            log_values=self.log_values[keep],
            evidence=np.full(self.n_variables, UNOBSERVED, dtype=np.int64),
            state_names=named,
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the factors as rows of number, scope (names of variables) and log table (an
        array).

        The array has an axis per variable of the scope, as `log_table` returns it.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "factor": np.arange(self.n_factors),
                "scope": pd.Series([self._named(f) for f in range(self.n_factors)], dtype=object),
                "log_table": pd.Series([table for _, table in self.factors()], dtype=object),
            }
        )

    def preview(self, most: int) -> Preview:
        """Return the heading of this graph and its first factors."""
        observed = int(np.count_nonzero(self.evidence != UNOBSERVED))
        heading = (
            f"FactorGraph: {counted(self.n_variables, 'variable')} ({observed:,} observed), "
            f"{counted(self.n_factors, 'factor')}, "
            f"{counted(len(self.log_values), 'number')} in their tables"
        )
        rows = [
            (str(factor), _listed(self._named(factor)), _values(self.log_table(factor)))
            for factor in range(min(most, self.n_factors))
        ]
        return Preview(heading, ("factor", "scope", "log table"), rows, self.n_factors)

    def _named(self, factor: int) -> tuple[str, ...]:
        return tuple(self.names[variable] for variable in self.scope(factor))

    def _consistent_entries(self, observed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        # One vectorized pass per position in a scope, from the last, whose variable has stride 1. A
        # Python loop over the factors would be too slow for a million of them.
        keep = np.ones(len(self.log_values), dtype=bool)
        arities = np.diff(self.scope_starts)
        sizes = np.diff(self.table_starts)
        stride = np.ones(self.n_factors, dtype=np.int64)
        for back in range(1, int(arities.max(initial=0)) + 1):
            factors = np.flatnonzero(arities >= back)
            variables = self.scope_variables[self.scope_starts[factors + 1] - back]
            seen = observed[variables]
            touched, variable = factors[seen], variables[seen]
            size = sizes[touched]
            entry = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
            state = entry // np.repeat(stride[touched], size)
            state %= np.repeat(self.cardinalities[variable], size)
            wrong = state != np.repeat(self.evidence[variable], size)
            keep[(entry + np.repeat(self.table_starts[touched], size))[wrong]] = False
            stride[factors] *= self.cardinalities[variables]
        return keep

    def _state(self, position: int, state: str) -> int:
        """Return the number of a state by its name; refuse an unknown name."""
        states = (self.state_names or ())[position]
        if state not in states:
            unknown = unknown_name(f"the state {state!r}", state, states)
            raise InputError(f"evidence on {self.names[position]!r}: {unknown}")
        return states.index(state)

    def _check_unambiguous(self, position: int, state: object) -> None:
        """Refuse the number of a state if the names of the states are other numbers."""
        named = () if self.state_names is None else self.state_names[position]
        if any(_differs(name, number) for number, name in enumerate(named)):
            raise InputError(
                f"evidence on {self.names[position]!r}: {state} may be the number of a state, "
                f"counted from 0, or its name; its states are named {_listed(named)}, so give a "
                f'name as text, such as "{named[0]}"'
            )

    def _position(self, variable: Any) -> int:
        if isinstance(variable, str):
            if variable not in self.index:
                raise InputError(unknown_name(f"the variable {variable!r}", variable, self.names))
            return self.index[variable]
        if isinstance(variable, bool | np.bool_) or not isinstance(variable, int | np.integer):
            raise InputError(
                f"{variable!r} names no variable; give its name or its number in the graph"
            )
        if not 0 <= variable < self.n_variables:
            raise InputError(
                f"there is no variable number {variable}; they run from 0 to {self.n_variables - 1}"
            )
        return int(variable)


_ARRAYS = {
    "cardinalities": np.int64,
    "scope_starts": np.int64,
    "scope_variables": np.int64,
    "table_starts": np.int64,
    "log_values": np.float64,
    "evidence": np.int64,
}


def positions(names: Sequence[str]) -> dict[str, int]:
    """Return the position of each name.

    Raises:
        InputError: if a name is given twice.
    """
    result = dict(zip(names, range(len(names)), strict=True))
    if len(result) != len(names):
        repeated = Counter(names).most_common(1)[0][0]
        raise InputError(f"the variable name {repeated!r} is given twice; names are unique")
    return result


def default_names(count: int) -> tuple[str, ...]:
    """Return names for `count` unnamed variables: "0", "1", ..."""
    return tuple(map(str, range(count)))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown}, ... ({len(names)} in all)"


def _values(table: NDArray[np.float64]) -> str:
    shown = " ".join(f"{value:.4g}" for value in table.flat[:_SHOWN])
    return shown if table.size <= _SHOWN else f"{shown} ... ({table.size} in all)"


def _validate(graph: FactorGraph) -> None:
    count = len(graph.names)
    if len(graph.cardinalities) != count or len(graph.evidence) != count:
        raise InputError(
            f"{count} names, {len(graph.cardinalities)} cardinalities and {len(graph.evidence)} "
            "evidence entries were given; give one of each per variable"
        )
    if not all(issubclass(kind, str) for kind in set(map(type, graph.names))):
        odd = next(name for name in graph.names if not isinstance(name, str))
        raise InputError(f"the variable name {odd!r} is not text; put it in quotes")
    # Building the index refuses duplicate names.
    if graph.index and graph.cardinalities.min() < 1:
        at = int(np.argmin(graph.cardinalities))
        raise InputError(
            f"variable {graph.names[at]!r} has {counted(graph.cardinalities[at], 'state')}; "
            "a variable has at least 1"
        )
    _validate_state_names(graph)
    _validate_scopes(graph)
    _validate_tables(graph)


def _differs(name: str, number: int) -> bool:
    """Return whether the name of a state is a number other than the number of the state."""
    return re.fullmatch(NUMBER, name) is not None and float(name) != number


def _validate_state_names(graph: FactorGraph) -> None:
    if graph.state_names is None:
        return
    if len(graph.state_names) != graph.n_variables:
        raise InputError(
            f"state names were given for {len(graph.state_names)} of {graph.n_variables} "
            "variables; give them for each, or for none"
        )
    for name, states, count in zip(
        graph.names, graph.state_names, graph.cardinalities.tolist(), strict=True
    ):
        if len(states) != count or not all(isinstance(state, str) for state in states):
            raise InputError(
                f"variable {name!r} has {counted(count, 'state')}, and {list(states)!r} do not "
                "name them; give "
                "a text for each"
            )
        if len(set(states)) < len(states):
            raise InputError(f"variable {name!r} has two states with the same name; rename one")


def _validate_scopes(graph: FactorGraph) -> None:
    starts, variables = graph.scope_starts, graph.scope_variables
    if not len(starts) or starts[0] != 0 or starts[-1] != len(variables):
        raise InputError("scope_starts does not partition scope_variables; rebuild the graph")
    if np.any(np.diff(starts) < 0):
        raise InputError("scope_starts does not partition scope_variables; rebuild the graph")
    if not len(variables):
        return
    outside = (variables < 0) | (variables >= graph.n_variables)
    if outside.any():
        at = int(np.argmax(outside))
        factor = int(np.searchsorted(starts, at, side="right")) - 1
        raise InputError(
            f"factor {factor} refers to variable {variables[at]}, which does not exist; "
            f"variables run from 0 to {graph.n_variables - 1}"
        )
    # Scopes of one variable cannot repeat it; leaving them out shortens the sort of a large graph.
    arities = np.diff(starts)
    owner = np.repeat(np.arange(graph.n_factors), np.where(arities > 1, arities, 0))
    keys = np.sort(owner * graph.n_variables + variables[np.repeat(arities > 1, arities)])
    repeated = np.flatnonzero(keys[1:] == keys[:-1])
    if repeated.size:
        factor, variable = divmod(int(keys[repeated[0]]), graph.n_variables)
        raise InputError(
            f"the scope of factor {factor} names variable {graph.names[variable]!r} twice; "
            "a scope holds each variable once"
        )


def _validate_tables(graph: FactorGraph) -> None:
    starts = graph.table_starts
    if len(starts) != graph.n_factors + 1 or starts[0] != 0 or starts[-1] != len(graph.log_values):
        raise InputError("table_starts does not partition log_values; rebuild the graph")
    # In floating point, because the product over an absurdly large scope may overflow an integer.
    sizes = np.ones(graph.n_factors, dtype=np.float64)
    filled = np.diff(graph.scope_starts) > 0
    if filled.any():
        sizes[filled] = np.multiply.reduceat(
            graph.cardinalities[graph.scope_variables].astype(np.float64),
            graph.scope_starts[:-1][filled],
        )
    wrong = np.flatnonzero(np.diff(starts) != sizes)
    if wrong.size:
        factor = int(wrong[0])
        raise InputError(
            f"factor {factor} has a table of "
            f"{counted(starts[factor + 1] - starts[factor], 'entry', 'entries')}; "
            f"its scope requires {sizes[factor]:.0f}"
        )
    bad = np.isnan(graph.log_values) | (graph.log_values == np.inf)
    if bad.any():
        at = int(np.argmax(bad))
        factor = int(np.searchsorted(starts, at, side="right")) - 1
        raise InputError(
            f"factor {factor}: entry {at - starts[factor]} of its log table is "
            f"{graph.log_values[at]}; a log potential is a number or -inf"
        )
    impossible = (graph.evidence < UNOBSERVED) | (graph.evidence >= graph.cardinalities)
    if impossible.any():
        at = int(np.argmax(impossible))
        raise InputError(
            f"evidence on {graph.names[at]!r}: state {graph.evidence[at]} does not exist; "
            f"its states are 0 to {graph.cardinalities[at] - 1}"
        )


def digest(graphs: Sequence[FactorGraph]) -> str:
    """Return a digest of the numbers of graphs, independent of the names of variables."""
    state = hashlib.sha256()
    for graph in graphs:
        for array in (
            graph.cardinalities,
            graph.scope_starts,
            graph.scope_variables,
            graph.evidence,
        ):
            state.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
        # The last digits of logarithms vary between mathematical libraries.
        rounded = np.round(graph.log_values, 9) + 0.0
        state.update(np.ascontiguousarray(rounded, dtype="<f8").tobytes())
    return state.hexdigest()[:16]
