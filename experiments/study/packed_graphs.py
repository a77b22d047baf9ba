"""Responses of a dataset: kept as objects if few, packed and unpacked on demand if many.

Frequently used values (ids of responses, ids and labels of atoms) are columns. Packed graphs are
also a column: a small response takes 6 kB as an object and 0.6 kB packed.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import fact_graph_object
from factormodels.io.json import text_of

if TYPE_CHECKING:
    import pyarrow as pa

HELD = 4096
"""Largest number of responses kept as objects; larger datasets are packed."""

PART = 512
"""Number of responses that are packed together: some megabytes of small ones."""


@dataclass(frozen=True, eq=False)
class KnownClaims:
    """Columns of the tidy rows that describe the claims of a dataset in every cell.

    Attributes:
        response: texts (n_responses,), the ids.
        n_atoms: int64 (n_responses,).
        starts: int64 (n_responses,), the first row of each; a response without atoms has one row.
        atom: texts (n_rows,), the ids; null for a response without atoms.
        label: bool (n_rows,), null where there is none.
        annotation: texts (n_rows,), null where there is none.
    """

    response: pa.ChunkedArray
    n_atoms: NDArray[np.int64]
    starts: NDArray[np.int64]
    atom: pa.ChunkedArray
    label: pa.ChunkedArray
    annotation: pa.ChunkedArray

    @staticmethod
    def of(graphs: Iterable[FactGraph]) -> KnownClaims:
        """Columns of the claims of some responses."""
        import pyarrow as pa

        return KnownClaims.of_table(pa.Table.from_batches([_claims(graphs)]))

    @staticmethod
    def of_table(table: pa.Table) -> KnownClaims:
        """Columns of the claims from a table with a row per response."""
        import pyarrow as pa

        n_atoms = table["n_atoms"].to_numpy()
        n_rows = np.maximum(n_atoms, 1)

        flat = {
            name: pa.chunked_array(
                [chunk.values for chunk in table[name].chunks], table[name].type.value_type
            )
            for name in _OF_ATOMS
        }
        return KnownClaims(
            response=table["response"], n_atoms=n_atoms, starts=np.cumsum(n_rows) - n_rows, **flat
        )


class PackedGraphs(Sequence[FactGraph]):
    """Pickled fact graphs; each is unpickled on access.

    The content comes from this process, or from the process that sent the task.
    """

    def __init__(self, pickled: tuple[bytes, ...] | pa.ChunkedArray) -> None:
        """Wrap graphs that are pickled one by one."""
        self._pickled = pickled

    def __len__(self) -> int:
        return len(self._pickled)

    @overload
    def __getitem__(self, index: int) -> FactGraph: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FactGraph]: ...
    def __getitem__(self, index: int | slice) -> FactGraph | Sequence[FactGraph]:
        positions = range(len(self))[index]
        if isinstance(positions, int):
            return _unpacked(self._bytes(positions))
        return tuple(_unpacked(self._bytes(position)) for position in positions)

    def __iter__(self) -> Iterator[FactGraph]:
        packed: Any = self._pickled
        parts = [packed] if isinstance(packed, tuple) else packed.chunks
        for part in parts:
            yield from (
                _unpacked(pickled if isinstance(pickled, bytes) else pickled.as_py())
                for pickled in part
            )

    def part(self, positions: Iterable[int]) -> PackedGraphs:
        """Some of the graphs, still packed, for another process."""
        return PackedGraphs(tuple(map(self._bytes, positions)))

    def _bytes(self, position: int) -> bytes:
        pickled = self._pickled[position]
        return pickled if isinstance(pickled, bytes) else pickled.as_py()


def _unpacked(pickled: bytes) -> FactGraph:
    graph: FactGraph = pickle.loads(pickled)
    return graph


@dataclass(frozen=True, eq=False)
class PackedPart:
    """Consecutive responses of a dataset, with their columns.

    Attributes:
        table: a row per response: columns of its claims, and the pickled graph.
        text: their JSON, for the dataset's hash.
    """

    table: pa.RecordBatch
    text: bytes

    @staticmethod
    def of(graphs: Sequence[FactGraph]) -> PackedPart:
        """Pack some responses as a part.

        Raises:
            InputError: if metadata have a value that JSON cannot represent.
        """
        import pyarrow as pa

        packed = pa.array(
            [pickle.dumps(graph, pickle.HIGHEST_PROTOCOL) for graph in graphs], pa.binary()
        )
        table = _claims(graphs).append_column("graph", packed)
        return PackedPart(table, b"".join(map(hashed_text, graphs)))


@dataclass(frozen=True, eq=False)
class Responses:
    """The responses of a dataset.

    Attributes:
        graphs: the fact graphs.
        sha256: hash of their JSON.
        claims: the columns of their claims, if there are many responses.
        distinct: True if ids are known to be unique.
    """

    graphs: Sequence[FactGraph]
    sha256: str
    claims: KnownClaims | None = None
    distinct: bool = False

    @staticmethod
    def of(graphs: Iterable[FactGraph]) -> Responses:
        """Collect graphs from an iterator, packed if there are many."""
        coming = iter(graphs)
        in_memory = tuple(islice(coming, HELD + 1))
        if len(in_memory) <= HELD:
            digest = hashlib.sha256()
            for graph in in_memory:
                digest.update(hashed_text(graph))
            return Responses(in_memory, digest.hexdigest())
        # Release the objects as soon as they are packed.
        first, in_memory = iter(in_memory), ()
        all_ = chain(first, coming)
        return Responses.of_parts(map(PackedPart.of, iter(lambda: tuple(islice(all_, PART)), ())))

    @staticmethod
    def of_parts(parts: Iterable[PackedPart]) -> Responses:
        """Responses of the parts of a dataset, at least one, packed."""
        import pyarrow as pa
        import pyarrow.compute as pc

        digest = hashlib.sha256()
        coming = iter(parts)
        first = next(coming)

        def tables() -> Iterator[pa.RecordBatch]:
            for part in chain([first], coming):
                digest.update(part.text)
                yield part.table

        table = pa.Table.from_batches(list(tables()), first.table.schema)
        claims = KnownClaims.of_table(table)
        return Responses(
            PackedGraphs(table["graph"]),
            digest.hexdigest(),
            claims,
            distinct=pc.count_distinct(claims.response).as_py() == len(claims.response),
        )


def hashed_text(graph: FactGraph) -> bytes:
    """The JSON of a fact graph, as input of a dataset's hash.

    Raises:
        InputError: if its metadata have a value that JSON cannot represent.
    """
    text = text_of(fact_graph_object(graph), f"fact graph {graph.id!r}")
    # The line feed separates graphs, which their concatenated text would not. Text from the web may
    # contain lone surrogates, which plain UTF-8 refuses.
    return f"{text}\n".encode("utf-8", "surrogatepass")


def _claims(graphs: Iterable[FactGraph]) -> pa.RecordBatch:
    """A row per response, with lists of the kept fields of its atoms."""
    import pyarrow as pa

    rows: dict[str, list[Any]] = {name: [] for name in ("response", "n_atoms", *_OF_ATOMS)}
    for graph in graphs:
        rows["response"].append(graph.id)
        rows["n_atoms"].append(len(graph.atom_ids))
        rows["atom"].append(graph.atom_ids or [None])
        rows["label"].append(graph.column("atoms", "label") or [None])
        rows["annotation"].append(graph.column("atoms", "annotation") or [None])
    kinds = {"response": pa.string(), "n_atoms": pa.int64()}
    kinds |= {name: pa.list_(getattr(pa, kind)()) for name, kind in _OF_ATOMS.items()}
    return pa.record_batch([pa.array(rows[name], kind) for name, kind in kinds.items()], [*kinds])


_OF_ATOMS = {"atom": "string", "label": "bool_", "annotation": "string"}
