"""Numbers of values that the footer of a Parquet file declares, by column.

pyarrow provides them too, but crashes if a bit of a column's metadata is flipped (with version 26,
4 of 6 processes that read 150 damaged footers each were aborted). The footer is a structure of
Thrift's compact protocol, of which everything except these numbers is skipped.

Source: apache/parquet-format, `parquet.thrift` (FileMetaData, RowGroup, ColumnChunk,
ColumnMetaData), and the specification of Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

_TAIL = 8
"""Bytes of the footer's length and of the following magic word."""

_ROW_GROUPS, _COLUMNS, _METADATA, _NUM_VALUES = 4, 1, 3, 5
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64 = 1, 2, 3, 4, 5, 6
_DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 7, 8, 9, 10, 11, 12
_FIXED = MappingProxyType({_BYTE: 1, _DOUBLE: 8})


def declared_values(content: bytes) -> list[list[int]]:
    """Return the number of values of each column, including nulls and elements of lists, by row
    group.

    Raises:
        ValueError: if the footer is damaged.
    """
    length = int.from_bytes(content[-_TAIL:-4], "little")
    start = len(content) - _TAIL - length
    if start < 0:
        raise ValueError("its footer lies before its start")
    reader = _Reader(content[start:-_TAIL])
    try:
        return [
            [
                reader.number()
                for _ in reader.fields(_COLUMNS)
                for _ in reader.elements()
                for _ in reader.fields(_METADATA)
                for _ in reader.fields(_NUM_VALUES)
            ]
            for _ in reader.fields(_ROW_GROUPS)
            for _ in reader.elements()
        ]
    except IndexError:
        raise ValueError("its footer is cut off") from None


class _Reader:
    """A position in a structure of Thrift's compact protocol, advanced by reading."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def number(self) -> int:
        """Read a whole number."""
        word = self._word()
        return (word >> 1) ^ -(word & 1)

    def fields(self, wanted: int) -> Iterator[None]:
        """Yield at each field with a given number in a structure, whose value the caller then
        reads.
        """
        number = 0
        while header := self._byte():
            number = number + (header >> 4) if header >> 4 else self.number()
            if number == wanted:
                yield
            else:
                self._skip(header & 15)

    def elements(self) -> Iterator[None]:
        """Yield at each element of a list; the caller then reads it."""
        count, _ = self._list()
        for _ in range(count):
            yield

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _word(self) -> int:
        word = shift = 0
        while (byte := self._byte()) >= 128:
            word |= (byte & 127) << shift
            shift += 7
        return word | byte << shift

    def _list(self) -> tuple[int, int]:
        """Return the length of a list and the type of its elements."""
        header = self._byte()
        return (self._word() if header >> 4 == 15 else header >> 4), header & 15

    def _skip(self, kind: int) -> None:
        if kind in (_I16, _I32, _I64):
            self._word()
        elif kind in _FIXED:
            self._at += _FIXED[kind]
        elif kind == _BINARY:
            length = self._word()
            self._at += length
        elif kind in (_LIST, _SET):
            count, inner = self._list()
            self._skip_all(count, (inner,))
        elif kind == _MAP:
            if count := self._word():
                kinds = self._byte()
                self._skip_all(count, (kinds >> 4, kinds & 15))
        elif kind == _STRUCT:
            for _ in self.fields(-1):
                raise ValueError("its footer has a field of a number below 0")
        elif kind not in (_TRUE, _FALSE):
            raise ValueError(f"its footer has a field of the unknown kind {kind}")

    def _skip_all(self, count: int, kinds: tuple[int, ...]) -> None:
        for _ in range(count):
            for kind in kinds:
                # In a list, a truth value is a separate byte.
                self._skip(_BYTE if kind in (_TRUE, _FALSE) else kind)
            if self._at > len(self._content):
                raise IndexError
