"""Declared sizes of compressed buffers in Arrow messages, read before decompression.

pyarrow decompresses a batch when it reads it, and a few megabytes of ZSTD may contain hundreds of
gigabytes. A compressed buffer begins with its decompressed length, and the position of buffers is
given by the preceding message, a flatbuffer.

Source: the Apache Arrow columnar format, "Serialization and Interprocess Communication" with
`Message.fbs` and `File.fbs`, and the internals of FlatBuffers: tables find fields by offsets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_ARROW_FILE = b"ARROW1"
_CONTINUATION = 0xFFFFFFFF
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_BLOCK_BYTES, _BUFFER_BYTES = 24, 16
_NOT_COMPRESSED = -1


def unpacked_sizes(content: bytes) -> Iterator[int]:
    """Yield the decompressed length of each compressed buffer of an Arrow file or stream.

    Raises:
        ValueError: if the content is damaged.
    """
    try:
        yield from _unpacked_sizes(content)
    except struct.error as error:
        raise ValueError(f"a message is cut off: {error}") from None


def _unpacked_sizes(content: bytes) -> Iterator[int]:
    starts = _of_file(content) if content.startswith(_ARROW_FILE) else _of_stream(content)
    for start in starts:
        metadata, body = _message(content, start)
        kind = metadata.number(1, "<B")
        if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
            continue
        batch = metadata.table(2)
        if batch is not None and kind == _DICTIONARY_BATCH:
            batch = batch.table(1)
        if batch is None or batch.table(3) is None:
            continue
        for at in batch.vector(2, _BUFFER_BYTES):
            offset, length = struct.unpack_from("<qq", content, at)
            if length and offset >= 0:
                (unpacked,) = struct.unpack_from("<q", content, body + offset)
                if unpacked != _NOT_COMPRESSED:
                    yield max(unpacked, 0)


@dataclass(frozen=True)
class _Table:
    """A table of a flatbuffer, whose fields are found by an index of offsets."""

    content: bytes
    start: int

    def field(self, index: int) -> int | None:
        """Return the position of a field; None if it has its default."""
        (back,) = struct.unpack_from("<i", self.content, self.start)
        offsets = self.start - back
        if offsets < 0:
            raise ValueError("a table lies before its file")
        (size,) = struct.unpack_from("<H", self.content, offsets)
        if 4 + 2 * index >= size:
            return None
        (offset,) = struct.unpack_from("<H", self.content, offsets + 4 + 2 * index)
        return self.start + offset if offset else None

    def number(self, index: int, form: str) -> int:
        """Return the number in a field; 0 by default."""
        at = self.field(index)
        return 0 if at is None else int(struct.unpack_from(form, self.content, at)[0])

    def table(self, index: int) -> _Table | None:
        """Return the table that a field refers to."""
        at = self.field(index)
        return None if at is None else _referred(self.content, at)

    def vector(self, index: int, width: int) -> range:
        """Return the positions of the elements of a vector of structs of a given width."""
        at = self.field(index)
        if at is None:
            return range(0)
        start = _referred(self.content, at).start
        (length,) = struct.unpack_from("<I", self.content, start)
        if start + 4 + length * width > len(self.content):
            raise ValueError("a list of the metadata ends beyond its file")
        return range(start + 4, start + 4 + length * width, width)


def _referred(content: bytes, at: int) -> _Table:
    (offset,) = struct.unpack_from("<I", content, at)
    return _Table(content, at + offset)


def _message(content: bytes, start: int) -> tuple[_Table, int]:
    """Return the message that begins at a position, and the start of its body."""
    (length,) = struct.unpack_from("<I", content, start)
    start += 4
    # Before version 0.15, messages began with their length.
    if length == _CONTINUATION:
        (length,) = struct.unpack_from("<I", content, start)
        start += 4
    return _referred(content, start), start + length


def _of_file(content: bytes) -> Iterator[int]:
    """Yield the positions of the messages that the footer of a file lists."""
    (length,) = struct.unpack_from("<i", content, len(content) - len(_ARROW_FILE) - 4)
    start = len(content) - len(_ARROW_FILE) - 4 - length
    if length <= 0 or start < 0:
        raise ValueError("its footer lies before its start")
    footer = _referred(content, start)
    for index in (2, 3):
        for at in footer.vector(index, _BLOCK_BYTES):
            (offset,) = struct.unpack_from("<q", content, at)
            if offset < 0:
                raise ValueError("a batch lies before its file")
            yield offset


def _of_stream(content: bytes) -> Iterator[int]:
    """Yield the positions of the messages of a stream, up to its end."""
    start = 0
    while start + 8 <= len(content):
        first, second = struct.unpack_from("<II", content, start)
        if (second if first == _CONTINUATION else first) == 0:
            return
        yield start
        metadata, body = _message(content, start)
        length = metadata.number(3, "<q")
        if length < 0:
            raise ValueError("the body of a message has a length below 0")
        start = body + length
