"""Responses of a dataset: a few in memory, many in a temporary file, read as they are asked for.

What every response is asked for again and again (its id, its atoms' ids and labels) is kept as
columns beside the file.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import fact_graph_object
from factormodels.io.json_text import text_of
from factormodels.io.long_columns import joined, pieces, stored_table, texts_differ

if TYPE_CHECKING:
    import pyarrow as pa

HELD = 4096
"""Responses that a dataset holds in memory as they are; of more, all are in a file."""

PART = 512
"""Responses that are made into bytes together: some megabytes of small ones."""


@dataclass(frozen=True, eq=False)
class KnownClaims:
    """What tidy rows say of the claims of a dataset, whatever judges them.

    Attributes:
        response: texts (n_responses,), the ids.
        n_atoms: int64 (n_responses,).
        starts: int64 (n_responses,), the first row of each; one without atoms has one row.
        atom: texts (n_rows,), the ids; null in the row of a response without atoms.
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
    def of(graphs: Sequence[FactGraph]) -> KnownClaims:
        """Those of some responses."""
        if isinstance(graphs, StoredGraphs):
            return graphs.claims
        import pyarrow as pa

        open_: dict[str, list[Any]] = {name: [] for name in _KINDS}
        for graph in graphs:
            open_["response"].append(graph.id)
            open_["atom"] += graph.atom_ids or [None]
            open_["label"] += graph.column("atoms", "label") or [None]
            open_["annotation"] += graph.column("atoms", "annotation") or [None]
        columns = {
            name: pa.chunked_array([open_[name]], getattr(pa, kind)())
            for name, kind in _KINDS.items()
        }
        n_atoms = np.array([len(graph.atom_ids) for graph in graphs], dtype=np.int64)
        n_rows = np.maximum(n_atoms, 1)
        return KnownClaims(n_atoms=n_atoms, starts=np.cumsum(n_rows) - n_rows, **columns)


class StoredGraphs(Sequence[FactGraph]):
    """Fact graphs in a temporary file, which is gone with this object.

    Attributes:
        claims: the columns of their claims.
        sha256: hash of their JSON.
        distinct: whether it is known that no two have one id.
    """

    def __init__(
        self,
        descriptor: int,
        ends: NDArray[np.int64],
        claims: KnownClaims,
        sha256: str,
        *,
        distinct: bool,
    ) -> None:
        """Take over a file of pickled graphs.

        Args:
            descriptor: the file's, which is closed with this object.
            ends: int64 (n,), where each of them ends.
            claims: the columns of their claims.
            sha256: hash of their JSON.
            distinct: whether it is known that no two have one id.
        """
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)
        self._ends = ends
        self.claims = claims
        self.sha256 = sha256
        self.distinct = distinct

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> FactGraph: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FactGraph]: ...
    def __getitem__(self, index: int | slice) -> FactGraph | Sequence[FactGraph]:
        if isinstance(index, slice):
            return self.part(range(len(self))[index])
        position = range(len(self))[index]
        return self.part([position])[0]

    def __iter__(self) -> Iterator[FactGraph]:
        for start in range(0, len(self), HELD):
            yield from self.part(range(start, min(start + HELD, len(self))))

    def part(self, positions: Sequence[int]) -> PackedGraphs:
        """Some of the graphs, to be sent elsewhere as they are in the file."""
        chosen = np.asarray(positions, dtype=np.int64)
        ends = self._ends[chosen]
        starts = np.where(chosen > 0, self._ends[chosen - 1], 0)
        number = self._descriptor
        if len(chosen) and (np.diff(chosen) == 1).all():
            # Neighbours are one piece of the file.
            blob = os.pread(number, int(ends[-1] - starts[0]), int(starts[0]))
        else:
            blob = b"".join(
                os.pread(number, end - start, start)
                for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
            )
        return PackedGraphs(blob, np.cumsum(ends - starts))


@dataclass(frozen=True, eq=False)
class PackedGraphs(Sequence[FactGraph]):
    """Pickled fact graphs one after another; each is unpickled when it is asked for.

    Attributes:
        blob: the graphs.
        ends: int64 (n,), where each of them ends.
    """

    blob: bytes
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, index: int) -> FactGraph: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FactGraph]: ...
    def __getitem__(self, index: int | slice) -> FactGraph | Sequence[FactGraph]:
        positions = range(len(self))[index]
        if isinstance(positions, int):
            return self._unpickled(positions)
        return tuple(map(self._unpickled, positions))

    def _unpickled(self, position: int) -> FactGraph:
        start = self.ends[position - 1] if position else 0
        # Of this process, or of the one that sent the task: no data of others.
        graph: FactGraph = pickle.loads(memoryview(self.blob)[start : self.ends[position]])
        return graph


@dataclass(frozen=True, eq=False)
class DatasetPart:
    """Responses that follow each other in a dataset, as bytes, and what is kept of them beside.

    Attributes:
        graphs: the responses.
        text: their JSON, which the dataset's hash is of.
        claims: the columns of their claims.
    """

    graphs: PackedGraphs
    text: bytes
    claims: KnownClaims

    @staticmethod
    def of(graphs: Sequence[FactGraph]) -> DatasetPart:
        """Some responses as a part.

        Raises:
            InputError: if their metadata hold what JSON cannot.
        """
        pickled = [pickle.dumps(graph, pickle.HIGHEST_PROTOCOL) for graph in graphs]
        return DatasetPart(
            PackedGraphs(
                b"".join(pickled), np.cumsum([len(one) for one in pickled], dtype=np.int64)
            ),
            b"".join(map(hashed_text, graphs)),
            KnownClaims.of(graphs),
        )


def hashed_text(graph: FactGraph) -> bytes:
    """The JSON of a fact graph, as the hash of a dataset takes it, response by response.

    Raises:
        InputError: if its metadata hold what JSON cannot.
    """
    text = text_of(fact_graph_object(graph), f"fact graph {graph.id!r}")
    # The line feed marks where one graph ends, which the text of the graphs alone would not. Text
    # from the web may hold lone surrogates, which UTF-8 alone refuses.
    return f"{text}\n".encode("utf-8", "surrogatepass")


def gathered(graphs: Iterable[FactGraph]) -> tuple[FactGraph, ...] | StoredGraphs:
    """The graphs that an iterator yields: in memory, or in a temporary file if they are many."""
    coming = iter(graphs)
    held = tuple(islice(coming, HELD + 1))
    if len(held) <= HELD:
        return held
    # Not held any longer than it takes to write them.
    first, held = iter(held), ()
    all_ = chain(first, coming)
    return stored(map(DatasetPart.of, iter(lambda: tuple(islice(all_, PART)), ())))


def stored(parts: Iterable[DatasetPart]) -> StoredGraphs:
    """The graphs of the parts of a dataset, at least one, in a temporary file."""
    digest = hashlib.sha256()
    with tempfile.TemporaryFile(buffering=1 << 20) as file:
        table = stored_table(_written(parts, file, digest), _schema())
        file.flush()
        descriptor = os.dup(file.fileno())
    claims = _claims_of(table)
    return StoredGraphs(
        descriptor,
        _numbers(table["end"]),
        claims,
        digest.hexdigest(),
        distinct=texts_differ(claims.response),
    )


def _schema() -> pa.Schema:
    """A row for every response: what is kept of its claims, and where it ends in the file."""
    import pyarrow as pa

    kinds = {name: getattr(pa, kind)() for name, kind in _KINDS.items()}
    own = [("response", kinds.pop("response")), ("n_atoms", pa.int64()), ("end", pa.int64())]
    return pa.schema([*own, *((name, pa.list_(kind)) for name, kind in kinds.items())])


def _written(
    parts: Iterable[DatasetPart], file: IO[bytes], digest: hashlib._Hash
) -> Iterator[pa.RecordBatch]:
    """Write the graphs of parts, and yield what is kept of each part."""
    import pyarrow as pa

    end, schema = 0, _schema()
    for part in parts:
        claims, ends = part.claims, end + part.graphs.ends
        end += file.write(part.graphs.blob)
        digest.update(part.text)
        starts = pa.array(np.append(claims.starts, len(claims.atom)), pa.int32())
        yield pa.record_batch(
            [
                *(claims.response.combine_chunks(), pa.array(claims.n_atoms), pa.array(ends)),
                *(
                    pa.ListArray.from_arrays(starts, getattr(claims, name).combine_chunks())
                    for name in schema.names[3:]
                ),
            ],
            schema=schema,
        )


def _claims_of(table: pa.Table) -> KnownClaims:
    """The columns of claims, where the table has them."""
    import pyarrow as pa

    n_atoms = _numbers(table["n_atoms"])

    def starts() -> Iterator[NDArray[np.int64]]:
        start = 0
        for piece in pieces(len(n_atoms)):
            n_rows = np.maximum(n_atoms[piece], 1)
            ends = start + np.cumsum(n_rows)
            yield ends - n_rows
            start = ends[-1]

    flat = {
        field.name: pa.chunked_array(
            [chunk.values for chunk in table[field.name].chunks], field.type.value_type
        )
        for field in list(table.schema)[3:]
    }
    return KnownClaims(response=table["response"], n_atoms=n_atoms, starts=joined(starts()), **flat)


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Whole numbers as an array."""
    return joined(chunk.to_numpy() for chunk in column.chunks)


_KINDS = {"response": "string", "atom": "string", "label": "bool_", "annotation": "string"}
