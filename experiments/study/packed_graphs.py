"""Responses of a dataset: kept as objects if few, packed and unpacked on demand if many.

Frequently used values (ids of responses, ids and labels of atoms) are columns. Packed graphs are
compressed in blocks, since responses of a dataset are alike: a small response takes 4.4 kB as an
object, 0.6 kB pickled and 0.1 kB packed (docs/results/house.md).
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
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

_BLOCK_BYTES = 1 << 22
"""Largest size of a block of graphs before compression, unless one graph is larger."""

_CODEC = "zstd"


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


@dataclass(frozen=True, eq=False)
class GraphBlock:
    """Pickled fact graphs that are compressed together.

    Attributes:
        compressed: their bytes, one after another.
        ends: int64 (n_graphs,), the end of each in the bytes before compression.
    """

    compressed: bytes
    ends: NDArray[np.int64]

    @staticmethod
    def of(pickles: Sequence[bytes]) -> GraphBlock:
        """Compress pickled graphs, at least one."""
        import pyarrow as pa

        compressed = pa.compress(b"".join(pickles), codec=_CODEC, asbytes=True)
        return GraphBlock(compressed, np.cumsum([len(each) for each in pickles], dtype=np.int64))

    def pickles(self) -> list[bytes]:
        """The pickled graphs."""
        import pyarrow as pa

        ends = self.ends.tolist()
        whole = pa.decompress(self.compressed, ends[-1], codec=_CODEC, asbytes=True)
        return [whole[start:end] for start, end in pairwise([0, *ends])]


def _blocks(pickles: Iterable[bytes]) -> Iterator[GraphBlock]:
    """Yield blocks of at most `PART` graphs and, unless a graph is larger, `_BLOCK_BYTES`."""
    block: list[bytes] = []
    size = 0
    for pickled in pickles:
        if block and (len(block) == PART or size + len(pickled) > _BLOCK_BYTES):
            yield GraphBlock.of(block)
            block, size = [], 0
        block.append(pickled)
        size += len(pickled)
    if block:
        yield GraphBlock.of(block)


class PackedGraphs(Sequence[FactGraph]):
    """Fact graphs in compressed blocks; each is unpickled on access.

    The content comes from this process, or from the process that sent the task.
    """

    def __init__(self, blocks: Iterable[GraphBlock]) -> None:
        """Wrap the blocks of a dataset, in the order of its responses."""
        self._blocks = tuple(blocks)
        self._ends = np.cumsum([len(block.ends) for block in self._blocks], dtype=np.int64)
        # The last block that was read: most accesses are to adjacent responses.
        self._read: tuple[int, list[bytes]] = (-1, [])

    def __reduce__(self) -> tuple[type[PackedGraphs], tuple[tuple[GraphBlock, ...]]]:
        return PackedGraphs, (self._blocks,)

    def __len__(self) -> int:
        return int(self._ends[-1]) if self._blocks else 0

    @overload
    def __getitem__(self, index: int) -> FactGraph: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FactGraph]: ...
    def __getitem__(self, index: int | slice) -> FactGraph | Sequence[FactGraph]:
        positions = range(len(self))[index]
        if isinstance(positions, int):
            return _unpacked(self._pickled(positions))
        return tuple(_unpacked(self._pickled(position)) for position in positions)

    def __iter__(self) -> Iterator[FactGraph]:
        for block in self._blocks:
            yield from map(_unpacked, block.pickles())

    def part(self, positions: Iterable[int]) -> PackedGraphs:
        """Some of the graphs, still packed, for another process."""
        return PackedGraphs(_blocks(map(self._pickled, positions)))

    def _pickled(self, position: int) -> bytes:
        number = int(np.searchsorted(self._ends, position, side="right"))
        if self._read[0] != number:
            self._read = number, self._blocks[number].pickles()
        return self._read[1][position - int(self._ends[number])]


def _unpacked(pickled: bytes) -> FactGraph:
    graph: FactGraph = pickle.loads(pickled)
    return graph


@dataclass(frozen=True, eq=False)
class PackedPart:
    """Consecutive responses of a dataset, with their columns.

    Attributes:
        table: a row per response: columns of its claims.
        blocks: their graphs.
        text: their JSON, for the dataset's hash.
    """

    table: pa.RecordBatch
    blocks: tuple[GraphBlock, ...]
    text: bytes

    @staticmethod
    def of(graphs: Sequence[FactGraph]) -> PackedPart:
        """Pack some responses as a part.

        Raises:
            InputError: if metadata have a value that JSON cannot represent.
        """
        blocks = _blocks(pickle.dumps(graph, pickle.HIGHEST_PROTOCOL) for graph in graphs)
        return PackedPart(_claims(graphs), tuple(blocks), b"".join(map(hashed_text, graphs)))


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
        tables: list[pa.RecordBatch] = []
        blocks: list[GraphBlock] = []
        for part in parts:
            digest.update(part.text)
            tables.append(part.table)
            blocks += part.blocks
        claims = KnownClaims.of_table(pa.Table.from_batches(tables))
        return Responses(
            PackedGraphs(blocks),
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
