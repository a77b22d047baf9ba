"""Observed states in the rows of a table, for all spellings of states."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError, unknown_name
from factormodels.factor_graph import NUMBER, UNOBSERVED, FactorGraph
from factormodels.words import ABSENT, folded, state_of_truth

if TYPE_CHECKING:
    import pandas as pd

_MISSING = (*ABSENT, "none", "?", "*")
"""Spellings of a missing observation, unless a state has that name."""

Place = Callable[[int, str], str]
"""Function from the number of a row and the name of a column to the place in an error."""


def as_frame(table: Any) -> pd.DataFrame:
    """Return a table as a pandas data frame: a row for each case, a column for each variable.

    Args:
        table: a data frame of pandas or polars, an Arrow table, or an iterable of mappings.

    Raises:
        InputError: if a row is not a mapping, or two columns have the same name.
    """
    import pandas as pd

    from factormodels.io.tables.data_table import given_rows

    if isinstance(table, pd.DataFrame):
        frame = table
    else:
        rows = given_rows([table] if isinstance(table, Mapping) else table)
        for number, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise InputError(
                    f"row {number} of the evidence is a {type(row).__name__}; give a data frame, "
                    "or a mapping of variables to states for each row"
                )
        frame = pd.DataFrame(rows)
    names = list(map(str, frame.columns))
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise InputError(f"two columns have the name {repeated[0]!r}; give each its own")
    return frame


def observed_states(
    graph: FactorGraph, frame: pd.DataFrame, locate: Place | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the variables that a table or the graph observes, and their states in each row.

    A cell is the name of a state. If no state name of its variable is a number, it may also be the
    state's number, counted from 0; true and false mean the states with such names, or 1 and 0.

    Args:
        graph: the graph, whose own evidence applies to every row.
        frame: a row for each case, a column for each variable; a missing cell is not observed.
        locate: place of a cell in errors; by default the label of its row.

    Returns:
        Positions of the variables, int64 (n_observed,), and their states or `UNOBSERVED`, int32
        (n_rows, n_observed).

    Raises:
        InputError: for a column that is not a variable, a cell that is not one of its states, or a
            cell that contradicts the evidence of the graph.
    """
    if not len(frame.columns):
        raise InputError("the table of evidence has no column; name a variable in its first row")
    where = locate or (lambda row, name: f"row {frame.index[row]}, column {name!r}")
    positions = []
    for column in map(str, frame.columns):
        if column not in graph.index:
            raise InputError(unknown_name(f"the column {column!r}", column, graph.names))
        positions.append(graph.index[column])
    fixed = [v for v in np.flatnonzero(graph.evidence != UNOBSERVED) if v not in positions]
    states = np.full((len(frame), len(positions) + len(fixed)), UNOBSERVED, dtype=np.int32)
    for number, position in enumerate(positions):
        name = graph.names[position]
        seen = _column_states(graph, position, frame.iloc[:, number], where)
        before = graph.evidence[position]
        if before != UNOBSERVED:
            wrong = (seen != UNOBSERVED) & (seen != before)
            if wrong.any():
                raise InputError(
                    f"{where(int(np.argmax(wrong)), name)}: it contradicts the state "
                    f"{_called(graph, position, before)} observed in every row; keep one"
                )
            seen[:] = before
        states[:, number] = seen
    states[:, len(positions) :] = graph.evidence[fixed]
    return np.array([*positions, *fixed], dtype=np.int64), states


def _column_states(
    graph: FactorGraph, position: int, cells: pd.Series, where: Place
) -> NDArray[np.int32]:
    """Return the state in each cell of a column, or `UNOBSERVED`, int32 (n_rows,)."""
    codes, values = _distinct(cells)
    of_value = np.full(len(values) + 1, UNOBSERVED, dtype=np.int32)
    for number, value in enumerate(values):
        try:
            state = _state_of(graph, position, value)
        except InputError as error:
            row = int(np.argmax(codes == number))
            raise InputError(f"{where(row, graph.names[position])}: {error}") from None
        of_value[number] = UNOBSERVED if state is None else state
    # Missing cells have the code -1, which selects the last value.
    result: NDArray[np.int32] = of_value[codes]
    return result


def _distinct(cells: pd.Series) -> tuple[NDArray[np.int64], Sequence[Any]]:
    """Return the index of each cell's value, -1 if missing, and the distinct values."""
    import pandas as pd

    if cells.dtype == object:
        # Types are part of the key, since True equals 1.
        numbers: dict[tuple[type, Any], int] = {}
        codes = np.empty(len(cells), dtype=np.int64)
        for row, value in enumerate(cells.tolist()):
            try:
                codes[row] = numbers.setdefault((type(value), value), len(numbers))
            except TypeError:
                codes[row] = numbers.setdefault((str, repr(value)), len(numbers))
        return codes, [value for _, value in numbers]
    codes, values = pd.factorize(cells)
    return codes, list(values)


def _state_of(graph: FactorGraph, position: int, value: Any) -> int | None:
    """Return the number of the state that a cell names; None if the cell is missing.

    Raises:
        InputError: if it names no state.
    """
    named = None if graph.state_names is None else graph.state_names[position]
    count = int(graph.cardinalities[position])
    state = None
    if isinstance(value, str):
        text = value.strip()
        for name in (value, text):
            if named is not None and name in named:
                return named.index(name)
        if folded(text) in _MISSING or text in _MISSING:
            return None
        if text.casefold() in ("true", "false"):
            state = _of_truth(named, count, truth=text.casefold() == "true")
        elif re.fullmatch(NUMBER, text):
            state = _of_number(named, count, float(text))
    elif isinstance(value, bool | np.bool_):
        state = _of_truth(named, count, truth=bool(value))
    elif isinstance(value, int | float | np.number):
        if math.isnan(float(value)):
            return None
        state = _of_number(named, count, float(value))
    elif value is None or not _is_present(value):
        return None
    if state is None:
        shown = value if isinstance(value, str) else str(value)
        if named is None:
            last = count - 1
            raise InputError(f"there is no state {shown}; its states are 0 to {last}")
        raise InputError(unknown_name(f"the state {shown!r}", shown, named))
    return state


def _is_present(value: Any) -> bool:
    """Return whether a value that is neither text nor number is present, unlike NaT and NA."""
    import pandas as pd

    return not (pd.api.types.is_scalar(value) and pd.isna(value))


def _of_truth(named: tuple[str, ...] | None, count: int, *, truth: bool) -> int | None:
    if named is None:
        return int(truth) if int(truth) < count else None
    name = state_of_truth(named, truth=truth)
    return None if name is None else named.index(name)


def _of_number(named: tuple[str, ...] | None, count: int, value: float) -> int | None:
    """Return the state with a number as its name, or at that position if no name is a number."""
    numeric = [
        (number, float(name))
        for number, name in enumerate(named or ())
        if re.fullmatch(NUMBER, name)
    ]
    if numeric:
        equal = [number for number, of_name in numeric if of_name == value]
        return equal[0] if len(equal) == 1 else None
    return int(value) if value.is_integer() and 0 <= value < count else None


def _called(graph: FactorGraph, position: int, state: int) -> str:
    return str(state) if graph.state_names is None else repr(graph.state_names[position][state])
