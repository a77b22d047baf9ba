"""The only module that opens files for reading.

It accepts regular files, and standard input by the name `-`: a pipe would block forever, and a
device has no end. Compressed files are decompressed while they are read, and reading stops at the
size limit, so that neither a file nor its decompressed content fills the memory. The limit also
applies to the number of values made from a file, since a few bytes may describe billions of them.
"""

from __future__ import annotations

import codecs
import errno
import itertools
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import BinaryIO

from factormodels.errors import InputError

Source = str | os.PathLike[str]

STANDARD_INPUT = "-"

MOST_HELD = 128 * 2**20
"""Maximum decompressed bytes of a file in memory, and of a line of a file that is read by lines."""

STREAMED = 16
"""Size limit of files that are read line by line, divided by the limit of files in memory."""

VALUE_BYTES = 16
"""Bytes of the size limit per value: 8,388,608 values for 128 MiB."""

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 2**20
_MOST_BLANK = 100_000
_NOT_BLANK = re.compile(rb"\S")
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

_most_held: ContextVar[int] = ContextVar("most_held", default=MOST_HELD)


@contextmanager
def size_limit(most: int) -> Iterator[None]:
    """Limit the decompressed size of files that are read within the block to `most` bytes.

    Files that are read line by line may have `STREAMED` times as many.
    """
    token = _most_held.set(most)
    try:
        yield
    finally:
        _most_held.reset(token)


def parse_size(text: str) -> int:
    """Return the bytes that a text such as 500000, 200MB or 2G means.

    Raises:
        InputError: if it is not a size.
    """
    units: dict[str, int] = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
    number = text.strip().upper().removesuffix("IB").removesuffix("B")
    unit = number[-1:] if number[-1:] in units else ""
    digits = number.removesuffix(unit).strip()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 15 or not int(digits):
        raise InputError(f"{text!r} is not a size; write bytes, or a number with K, M or G: 500M")
    size: int = int(digits) * 1024 ** units[unit]
    return size


def size_text(size: int) -> str:
    """Return a number of bytes in words: 128 MiB."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**power and not size % 1024**power:
            return f"{size // 1024**power:,} {unit}"
    return f"{size:,} bytes"


def refuse_larger(size: int, source: Source) -> None:
    """Check that data to be kept in memory are within `size_limit`.

    Args:
        size: decompressed bytes.
        source: the file, for messages.

    Raises:
        InputError: if they are larger.
    """
    most = _most_held.get()
    if size > most:
        raise InputError(_too_large(source, "it holds", size, most))


def most_held() -> int:
    """Return the maximum number of bytes of one file in memory by `size_limit`."""
    return _most_held.get()


def most_values() -> int:
    """Return the maximum number of values made from one file by `size_limit`."""
    return _most_held.get() // VALUE_BYTES


def refuse_more_values(values: float, source: Source, counted: str = "") -> None:
    """Check that a file has no more values than `size_limit` allows, before they are made.

    A value is a cell of a table, or a scalar, list or object within one: each is a Python object,
    however few bytes of the file describe it.

    Args:
        values: number of values.
        source: the file, for messages.
        counted: calculation of the number, such as "5 rows × 2 columns"; by default the number.

    Raises:
        InputError: if there are more than `most_values`.
    """
    most = most_values()
    if values <= most:
        return
    needed = -(-int(min(values, 2.0**60)) * VALUE_BYTES // 2**20)
    raise InputError(
        f"{source_name(source)}: it holds {counted or f'{values:,.0f} values'}, and "
        f"{size_text(_most_held.get())} allow {most:,} values; if that is right, allow more with "
        f"the option --max-size before the command (factormodels --max-size {needed}M ...)"
    )


def refuse_larger_table(rows: int, columns: int, source: Source) -> None:
    """Check that a table has no more cells than `size_limit` allows, before its rows are made.

    Raises:
        InputError: as in `refuse_more_values`. A row without columns counts as one value.
    """
    counted = f"{rows:,} row{'s' * (rows != 1)} × {columns:,} column{'s' * (columns != 1)}"
    refuse_more_values(rows * max(columns, 1), source, counted)


def exists(path: Source) -> bool:
    """Return whether a file or folder exists; False for an invalid name."""
    try:
        os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return False
    return True


def check_regular(path: Source) -> None:
    """Check that an existing path is a regular file, before a library opens it.

    Raises:
        InputError: for a folder, a pipe, a socket or a device.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        return
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: {_unfit(mode)}")


def read_whole(source: Source) -> bytes:
    """Read the content of a file, decompressed if it is gzip.

    Raises:
        InputError: if the file does not exist, is not regular, cannot be read or decompressed, or
            exceeds the size limit.
    """
    return _whole(_chunks(source, _most_held.get()), source)


def read_lines(source: Source, *, in_memory: bool = False) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their line feeds, decompressed, one in memory at a
    time.

    Only line feeds separate lines, since JSON text may contain other Unicode line separators.

    Args:
        source: the file; `-` is standard input.
        in_memory: whether the results of all lines will be in memory together, so that the limit
            for files in memory applies.

    Raises:
        InputError: as in `read_whole`, or if a line is too long or not UTF-8.
    """
    return _lines(_chunks(source, _most_together(in_memory=in_memory)), source, in_memory=in_memory)


def read_text_or_lines(
    source: Source,
    in_lines: Callable[[Sequence[str]], bool],
    *,
    binary: Callable[[bytes], bool],
    in_memory: bool,
) -> str | Iterator[str] | bytes:
    """Read the text of a UTF-8 file, or its lines as `read_lines` yields them, depending on its
    beginning.

    Args:
        source: the file; `-` is standard input.
        in_lines: returns whether a file consists of lines, given the first two nonblank ones (fewer
            if the file has fewer).
        binary: returns whether a file with this beginning is not text, so that its bytes are
            returned.
        in_memory: as in `read_lines`.

    Raises:
        InputError: as in `read_lines`.
    """
    chunks = _chunks(source, _most_together(in_memory=in_memory))
    begun = bytearray()
    filled: list[str] = []
    start = 0
    for chunk in chunks:
        if not begun and binary(chunk):
            return _whole(itertools.chain([chunk], chunks), source)
        begun += chunk
        refuse_larger(len(begun), source)
        # Skip blank parts in one step, since a file may have gigabytes of them.
        while len(filled) < 2 and (word := _NOT_BLANK.search(begun, start)):
            end = begun.find(b"\n", max(word.start(), len(begun) - len(chunk)))
            if end < 0:
                break
            start = begun.rfind(b"\n", 0, word.start()) + 1
            filled.append(decoded(bytes(begun[start : end + 1]), source, start))
            start = end + 1
        if len(filled) == 2:
            break
        if word is None:
            start = len(begun)
    if len(filled) < 2 and _NOT_BLANK.search(begun, start):
        filled.append(decoded(bytes(begun[start:]), source, start))
    rest = itertools.chain([bytes(begun)], chunks)
    if in_lines(filled):
        return _lines(rest, source, in_memory=in_memory)
    return decoded(_whole(rest, source), source)


def _most_together(*, in_memory: bool) -> int:
    """Return the maximum bytes of all lines of a file, in memory together or one by one."""
    return _most_held.get() * (1 if in_memory else STREAMED)


def _whole(chunks: Iterable[bytes], source: Source) -> bytes:
    content = bytearray()
    for chunk in chunks:
        content += chunk
        refuse_larger(len(content), source)
    return bytes(content)


def _lines(chunks: Iterable[bytes], source: Source, *, in_memory: bool) -> Iterator[str]:
    most, most_together = _most_held.get(), _most_together(in_memory=in_memory)
    before = taken = blank = 0
    rest: list[bytes] = []
    for chunk in chunks:
        taken += len(chunk)
        if taken > most_together:
            raise InputError(_too_large(source, "it holds", taken, most_together))
        *whole, last = chunk.split(b"\n")
        for line in whole:
            rest.append(line)
            joined = b"".join(rest)
            blank = 0 if joined.strip() else blank + 1
            if blank > _MOST_BLANK:
                raise InputError(
                    f"{source_name(source)}: more than {_MOST_BLANK:,} blank lines in a row; "
                    "remove them"
                )
            yield decoded(joined, source, before)
            before += len(joined) + 1
            rest = []
        rest.append(last)
        # Only the incomplete line counts.
        if taken - before > most:
            raise InputError(_too_large(source, "a line of it holds", taken - before, most))
    if joined := b"".join(rest):
        yield decoded(joined, source, before)


def first_line(source: Source) -> str:
    """Return the first nonblank line of a UTF-8 file; empty if there is none.

    Raises:
        InputError: as in `read_lines`.
    """
    return next((line for line in read_lines(source) if line.strip()), "")


_BINARY_FILES: Mapping[bytes, tuple[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            # Stata up to version 12: the version, the byte order, and a fixed byte.
            [
                b"<stata_dta>",
                *(bytes((version, order, 1)) for version in (113, 114, 115) for order in (1, 2)),
            ],
            ("a Stata file", "pandas.read_stata(FILE)"),
        ),
        b"$FL2@(#)": ("an SPSS file", "pandas.read_spss(FILE)"),
        b"ORC": ("an ORC file", "pandas.read_orc(FILE)"),
        b"\x89HDF": ("an HDF5 file", "pandas.read_hdf(FILE)"),
        bytes(12) + b"\xc2\xea\x81\x60": ("a SAS file", "pandas.read_sas(FILE)"),
        **dict.fromkeys(
            [bytes((0x80, protocol)) for protocol in range(2, 6)],
            ("a Python pickle, which can run arbitrary code", "pandas.read_pickle(FILE)"),
        ),
    }
)
"""First bytes of binary files, their format, and the function that reads them."""


def _refuse_binary(content: bytes, source: Source) -> None:
    """Refuse a binary file of another program, with advice on how to export it."""
    for magic, (kind, reader) in _BINARY_FILES.items():
        if content.startswith(magic):
            raise InputError(
                f"{source_name(source)}: this is {kind}; save its table as Parquet, which keeps "
                f"names of classes: {reader}.to_parquet('table.parquet')"
            )


def decoded(content: bytes, source: Source, before: int = 0) -> str:
    """Return the text of UTF-8 bytes, without a byte order mark at the start of a file.

    Args:
        content: the bytes.
        source: their file, for messages.
        before: number of bytes before them in the file.

    Raises:
        InputError: if they are not UTF-8; the message names the format of a known binary file.
    """
    marked = not before and content.startswith(codecs.BOM_UTF8)
    try:
        return (content[len(codecs.BOM_UTF8) :] if marked else content).decode()
    except UnicodeDecodeError as error:
        if not before:
            _refuse_binary(content, source)
        if not before and content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InputError(
                f"{source_name(source)}: it is UTF-16, as a spreadsheet's Unicode text is; save "
                "the file as UTF-8 (CSV UTF-8 in a spreadsheet)"
            ) from None
        at = before + error.start + (len(codecs.BOM_UTF8) if marked else 0)
        raise InputError(
            f"{source_name(source)}: byte {at} ({error.object[error.start]:#04x}) is not UTF-8; "
            "save the file as UTF-8"
        ) from None


def source_name(source: Source) -> str:
    """Return the name of a file in messages."""
    return "standard input" if os.fspath(source) == STANDARD_INPUT else str(source)


def _chunks(source: Source, most: int) -> Iterator[bytes]:
    """Yield the content of a file in pieces, decompressed if it is gzip.

    An uncompressed file beyond the limit is refused before it is read.
    """
    with opened(source) as file:
        try:
            first = file.read(_CHUNK)
            if not first.startswith(_GZIP_MAGIC):
                if (size := _size(file)) > most:
                    raise InputError(_too_large(source, "it holds", size, most))
                while first:
                    yield first
                    first = file.read(_CHUNK)
                return
            yield from _unpacked(first, file, source)
        except OSError as error:
            raise InputError(_unreadable(source, error)) from None


def _size(file: BinaryIO) -> int:
    """Return the bytes of a regular file; 0 for other files, whose size is unknown."""
    try:
        status = os.fstat(file.fileno())
    # Standard input may be replaced by an object without a descriptor, as in notebooks.
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _unpacked(first: bytes, file: BinaryIO, source: Source) -> Iterator[bytes]:
    packed = first
    try:
        # A file may consist of several members, followed by zeros.
        while packed.strip(b"\0"):
            member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
            while not member.eof:
                if not packed:
                    raise EOFError("it ends within its compressed data")
                if piece := member.decompress(packed, _CHUNK):
                    yield piece
                packed = member.unconsumed_tail or (b"" if member.eof else file.read(_CHUNK))
            packed = member.unused_data or file.read(_CHUNK)
    except (EOFError, zlib.error) as error:
        raise InputError(
            f"{source_name(source)}: its gzip compression is damaged ({error}); fetch or pack the "
            "file again"
        ) from None


@contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """Open a regular file, or standard input, for reading bytes.

    Raises:
        InputError: if the file does not exist, is not regular, or cannot be opened.
    """
    if os.fspath(source) == STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.closed:
            raise InputError("standard input is closed; name a file")
        yield sys.stdin.buffer
        return
    try:
        # Without this flag, opening a pipe would wait for its writer.
        descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        raise InputError(f"{os.fspath(source)!r} is not a path; check it") from None
    except OSError as error:
        raise InputError(_unreadable(source, error)) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise InputError(f"{source}: {_unfit(mode)}")
    with open(descriptor, "rb") as file:  # noqa: PTH123
        yield file


def _unfit(mode: int) -> str:
    kind = next((name for test, name in _KINDS if test(mode)), "no regular file")
    if kind == "a folder":
        return "this is a folder; name a file in it"
    return f"this is {kind}; name a regular file, or - for standard input"


def _unreadable(source: Source, error: OSError) -> str:
    where = source_name(source)
    if isinstance(error, FileNotFoundError):
        return f"{where}: there is no such file; check the path"
    if error.errno == errno.ENXIO:
        return f"{where}: this is a socket or a device; name a regular file"
    if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
        return f"{where}: there can be no such file ({error.strerror}); check the path"
    advice = system_advice(error, "check the file and its disk")
    return f"{where}: cannot be read ({error.strerror}); {advice}"


def system_advice(error: OSError, otherwise: str) -> str:
    """Return advice for a user on an error of the system, by its number.

    Args:
        error: the error.
        otherwise: advice on an error that concerns only this file or folder.
    """
    return _ADVICE.get(error.errno or 0, otherwise)


_ADVICE = MappingProxyType(
    {
        errno.EMFILE: "close other files of this process, or allow more: ulimit -n 4096",
        errno.ENFILE: "close other programs, which have too many files open",
        errno.ENOMEM: "close other programs to free memory",
        errno.EACCES: "check its permissions and those of its folders",
        errno.EPERM: "check its permissions and those of its folders",
        errno.ENOTDIR: "check the path: a part of it is a file, not a folder",
        errno.EISDIR: "name a file: this is a folder",
        errno.ENAMETOOLONG: "give a shorter name",
        errno.ELOOP: "check the path: its links lead in a circle",
        errno.ENOSPC: "free some space on the disk, or write to another",
        errno.EDQUOT: "free some space of your quota, or write to another disk",
        errno.EFBIG: "write to a disk, or with a limit (ulimit -f), that allows larger files",
        errno.EROFS: "write to another disk: this one can only be read",
        errno.EIO: "check the disk, which is faulty",
        errno.ESTALE: "check the network drive, and try again",
    }
)


def _too_large(source: Source, what: str, size: int, most: int) -> str:
    # The limit of files that are read line by line is a multiple of the option's.
    needed = size * _most_held.get() // most
    return (
        f"{source_name(source)}: {what} more than {size_text(most)}; if that is right, allow it "
        f"with the option --max-size before the command (factormodels --max-size "
        f"{needed // 2**30 + 1}G ...)"
    )
