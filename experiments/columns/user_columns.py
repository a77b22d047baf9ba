"""A user's numbers and groups for `fit`, from a table with a row per claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from calibration.learned_potentials import UserColumns
from experiments.columns.cells import truth
from experiments.columns.options import LabelColumns
from experiments.columns.reader import TableReader
from experiments.columns.roles import CLAIM, LABEL, RESPONSE
from experiments.columns.sources import table_of
from factormodels.claims import Atom
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    from experiments.columns.sources import Data

# No option of `fit` names these columns.
_RESPONSE, _CLAIM, _LABEL = (replace(role, option="") for role in (RESPONSE, CLAIM, LABEL))


@dataclass(frozen=True, eq=False)
class UserTable:
    """A user's table.

    Attributes:
        columns: its numbers and groups, by response and claim.
        graphs: its claims with their labels, by response; empty if labels were not requested.
        remark: remark on columns recognized by name, or an empty string.
    """

    columns: UserColumns
    graphs: tuple[FactGraph, ...]
    remark: str


def read_user_table(
    data: Data, numbers: Sequence[str], groups: Sequence[str], *, labels: bool | None = None
) -> UserTable:
    """Read numbers and groups from a table, and the labels of its claims.

    Args:
        data: the table: its file, a data frame, records, or findings with claims.
        numbers: columns of numbers.
        groups: columns whose values define groups.
        labels: True to read claims with labels, which must exist; False to read claims whose labels
            may be missing; None to skip them.

    Raises:
        InputError: if the table cannot be read or lacks a column, a claim occurs twice, or a cell
            is not a number or a name.
    """
    reader = TableReader(table_of(data))
    columns = reader.columns
    response, claim = columns.required(_RESPONSE), columns.required(_CLAIM)
    number_columns = [columns.given("--numbers", name) for name in numbers]
    group_columns = [columns.given("--groups", name) for name in groups]
    rows: dict[tuple[str, str], tuple[float, ...]] = {}
    members: dict[tuple[str, str], tuple[str, ...]] = {}
    for index in range(len(reader)):
        key = reader.name(index, response, "response"), reader.name(index, claim, "claim")
        if key in rows:
            raise InputError(
                f"{reader.locate(index, claim)}: the claim {key[1]!r} of response {key[0]!r} "
                "occurs a second time; give one row per claim"
            )
        rows[key] = tuple(
            reader.filled_number(index, column, "--numbers") for column in number_columns
        )
        members[key] = tuple(
            reader.name(index, column, f"group of {column!r}") for column in group_columns
        )
    graphs = () if labels is None else _labeled(reader, [*rows], labeled=labels)
    user_columns = UserColumns(reader.table.source, tuple(numbers), rows, tuple(groups), members)
    return UserTable(user_columns, graphs, columns.remark())


def _labeled(
    reader: TableReader, keys: Sequence[tuple[str, str]], *, labeled: bool
) -> tuple[FactGraph, ...]:
    """The claims of the rows with their labels, as responses without texts.

    Args:
        reader: the table.
        keys: response and claim of every row.
        labeled: whether there must be labels.
    """
    columns = reader.columns
    label = columns.required(_LABEL) if labeled else columns.optional(_LABEL)
    read = reader.labels(label, LabelColumns(), labeled=labeled)
    atoms: dict[str, list[Atom]] = {}
    for (response, claim), meaning in zip(keys, read.meanings, strict=True):
        atoms.setdefault(response, []).append(Atom(claim, label=truth(meaning)))
    return tuple(FactGraph(name, tuple(each)) for name, each in atoms.items())
