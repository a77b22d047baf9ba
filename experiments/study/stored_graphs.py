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
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import fact_graph_object
from factormodels.io.json_text import text_of

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
        columns = {name: pa.array(open_[name], getattr(pa, _KINDS[name])()) for name in _KINDS}
        n_atoms = np.array([len(graph.atom_ids) for graph in graphs], dtype=np.int64)
        return KnownClaims._made({name: [column] for name, column in columns.items()}, n_atoms)

    @staticmethod
    def joined(parts: Sequence[KnownClaims]) -> KnownClaims:
        """Those of the responses of all parts, one after the other."""
        chunks = {
            name: [c for part in parts for c in getattr(part, name).chunks] for name in _KINDS
        }
        return KnownClaims._made(chunks, np.concatenate([part.n_atoms for part in parts]))

    @staticmethod
    def _made(chunks: dict[str, list[Any]], n_atoms: NDArray[np.int64]) -> KnownClaims:
        import pyarrow as pa

        columns = {
            name: pa.chunked_array(chunks[name], getattr(pa, kind)())
            for name, kind in _KINDS.items()
        }
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
        self._bounds = np.concatenate([[0], ends])
        self.claims = claims
        self.sha256 = sha256
        self.distinct = distinct

    def __len__(self) -> int:
        return len(self._bounds) - 1

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
        starts, ends = self._bounds[chosen], self._bounds[chosen + 1]
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
    digest, end = hashlib.sha256(), 0
    ends: list[NDArray[np.int64]] = []
    claims: list[KnownClaims] = []
    hashes = array("q")
    with tempfile.TemporaryFile(buffering=1 << 20) as file:
        for part in parts:
            ends.append(end + part.graphs.ends)
            end += file.write(part.graphs.blob)
            digest.update(part.text)
            claims.append(part.claims)
            hashes.extend(map(hash, part.claims.response.to_pylist()))
        file.flush()
        descriptor = os.dup(file.fileno())
    return StoredGraphs(
        descriptor,
        np.concatenate(ends),
        KnownClaims.joined(claims),
        digest.hexdigest(),
        # Ids whose hashes differ differ too. That two share one is hardly ever chance.
        distinct=_distinct(np.frombuffer(hashes, dtype=np.int64)),
    )


def _distinct(numbers: NDArray[np.int64]) -> bool:
    ordered = np.sort(numbers)
    return bool((ordered[1:] != ordered[:-1]).all())


_KINDS = {"response": "string", "atom": "string", "label": "bool_", "annotation": "string"}
