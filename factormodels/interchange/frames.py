"""Fact graphs as data frames, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from factormodels.claims import Atom, Context, Relation
from factormodels.fact_graph import FactGraph
from factormodels.interchange.records import Record, checked_record

if TYPE_CHECKING:
    import pandas as pd


class FactGraphFrames(NamedTuple):
    """A fact graph as three data frames, one row per atom, context and relation, in order.

    Attributes:
        atoms: columns named as the fields of `Atom`.
        contexts: columns named as the fields of `Context`.
        relations: columns named as the fields of `Relation`.
    """

    atoms: pd.DataFrame
    contexts: pd.DataFrame
    relations: pd.DataFrame


def to_frames(graph: FactGraph) -> FactGraphFrames:
    """Atoms, contexts and relations of a fact graph as data frames."""
    return FactGraphFrames(
        _frame(graph.atoms, Atom),
        _frame(graph.contexts, Context),
        _frame(graph.relations, Relation),
    )


def from_frames(
    id: str,
    atoms: pd.DataFrame,
    contexts: pd.DataFrame | None = None,
    relations: pd.DataFrame | None = None,
    *,
    query: str = "",
    response: str = "",
    topic: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> FactGraph:
    """Fact graph that data frames describe; `to_frames` is the inverse.

    Only what has no default need be a column: `id` of atoms and contexts; `source`, `target`,
    `kind` and `probability` of relations. A cell that is missing (None or NaN) stands for the
    default.

    Args:
        id: name of the response.
        atoms, contexts, relations: one row each, columns named as the fields of `Atom`, `Context`
            and `Relation`.
        query, response, topic, metadata: as `FactGraph` has them.

    Raises:
        InputError: for an unknown or a missing column, or rows that make no fact graph.
    """
    return FactGraph(
        id,
        atoms=_records(atoms, Atom, "atoms"),
        contexts=_records(contexts, Context, "contexts"),
        relations=_records(relations, Relation, "relations"),
        query=query,
        response=response,
        topic=topic,
        metadata=metadata or {},
    )


def _frame(records: Sequence[Record], kind: type[Record]) -> pd.DataFrame:
    import pandas as pd

    columns = {
        field.name: pd.Series([getattr(record, field.name) for record in records], dtype=object)
        for field in fields(kind)
    }
    frame = pd.DataFrame(columns)
    for name in ("prior", "probability"):
        if name in frame:
            frame[name] = frame[name].astype(float)
    if "kind" in frame:
        frame["kind"] = frame["kind"].map(str)
    if "sentence" in frame:
        frame["sentence"] = frame["sentence"].astype("Int64")
    return frame


def _records(frame: pd.DataFrame | None, kind: type[Record], what: str) -> tuple[Record, ...]:
    if frame is None:
        return ()
    rows = frame.to_dict("records")
    return tuple(
        checked_record(
            {str(name): value for name, value in row.items()}, kind, f"{what}, row {number}"
        )
        for number, row in enumerate(rows)
    )
