"""The one gate through which files are opened for reading, whatever reads them.

Only regular files pass, and standard input by the name `-`: a pipe would block for ever, a device
has no end. Packed files are unpacked as they are read, and nobody reads on beyond the size that is
allowed, so that neither a file nor what it unpacks to fills the memory. The same size limits the
number of values that are made of a file: a few bytes may describe billions of them.
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
"""Bytes, unpacked, that a file may have to be held in memory, and a line of a file of lines."""

STREAMED = 16
"""So many times as much may pass through memory line by line."""

VALUE_BYTES = 16
"""Bytes of the size limit that one value takes: of 128 MiB, 8,388,608 values."""

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
    """Let files that are read within the block have at most `most` bytes, unpacked.

    What is read line by line may have `STREAMED` times as many.
    """
    token = _most_held.set(most)
    try:
        yield
    finally:
        _most_held.reset(token)


def parse_size(text: str) -> int:
    """Bytes that a text such as 500000, 200MB or 2G means.

    Raises:
        InputError: if it means none.
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
    """A number of bytes in words: 128 MiB."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**power and not size % 1024**power:
            return f"{size // 1024**power:,} {unit}"
    return f"{size:,} bytes"


def refuse_larger(size: int, source: Source) -> None:
    """Refuse what is to be held in memory and is larger than `size_limit` allows.

    Args:
        size: its bytes, unpacked.
        source: its file, for messages.

    Raises:
        InputError: if it is.
    """
    most = _most_held.get()
    if size > most:
        raise InputError(_too_large(source, "it holds", size, most))


def most_held() -> int:
    """Return the number of bytes that `size_limit` lets one file hold in memory."""
    return _most_held.get()


def most_values() -> int:
    """Return the number of values that `size_limit` lets be made of one file."""
    return _most_held.get() // VALUE_BYTES


def refuse_more_values(values: float, source: Source, counted: str = "") -> None:
    """Refuse a file of more values than `size_limit` allows, before they are made.

    A value is a cell of a table, or a scalar, list or object within one: each is an object of
    Python's, however few bytes of the file describe it.

    Args:
        values: number of values.
        source: the file, for messages.
        counted: how the number arises, such as "5 rows × 2 columns"; the number itself if omitted.

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
    """Refuse a table with more cells than `size_limit` allows, before its rows are made.

    Raises:
        InputError: as `refuse_more_values` does. A row without columns counts as one value.
    """
    counted = f"{rows:,} row{'s' * (rows != 1)} × {columns:,} column{'s' * (columns != 1)}"
    refuse_more_values(rows * max(columns, 1), source, counted)


def exists(path: Source) -> bool:
    """Whether there is a file or folder; not, for what can be the name of none."""
    try:
        os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return False
    return True


def check_regular(path: Source) -> None:
    """Refuse what is there and is not a regular file, before a library opens it.

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
    """Content of a file, unpacked if it is compressed with gzip.

    Raises:
        InputError: if there is no such file, it is no regular one, it cannot be read or unpacked,
            or has more than the limit of bytes.
    """
    return _whole(_chunks(source, _most_held.get()), source)


def read_lines(source: Source, *, in_memory: bool = False) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their line feeds, unpacked, one held at a time.

    Only line feeds part lines: a JSON text may hold other line separators of Unicode raw.

    Args:
        source: the file; `-` is standard input.
        in_memory: whether what comes of all lines will be in memory together, so that the file may
            be no larger than one that is held as a whole.

    Raises:
        InputError: as `read_whole` does, or if a line is too long or not UTF-8.
    """
    return _lines(_chunks(source, _most_together(in_memory=in_memory)), source, in_memory=in_memory)


def read_text_or_lines(
    source: Source,
    in_lines: Callable[[Sequence[str]], bool],
    *,
    binary: Callable[[bytes], bool],
    in_memory: bool,
) -> str | Iterator[str] | bytes:
    """Text of a UTF-8 file; its lines, as `read_lines` yields them, where its beginning says so.

    Args:
        source: the file; `-` is standard input.
        in_lines: whether a file is one of lines, given the first two that are not blank (fewer,
            where the file has fewer).
        binary: whether a file that begins with these bytes is no text, so that they are returned
            as they are.
        in_memory: as in `read_lines`.

    Raises:
        InputError: as `read_lines` does.
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
        # What is blank is passed over at once: a file may hold gigabytes of it.
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
    """Bytes of all lines of a file that may be held together, or pass one after the other."""
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
                    f"{source_name(source)}: more than {_MOST_BLANK:,} blank lines stand together; "
                    "remove them"
                )
            yield decoded(joined, source, before)
            before += len(joined) + 1
            rest = []
        rest.append(last)
        # Nothing before the line that is not whole yet counts.
        if taken - before > most:
            raise InputError(_too_large(source, "a line of it holds", taken - before, most))
    if joined := b"".join(rest):
        yield decoded(joined, source, before)


def first_line(source: Source) -> str:
    """The first line of a UTF-8 file that is not blank; nothing if there is none.

    Raises:
        InputError: as `read_lines` does.
    """
    return next((line for line in read_lines(source) if line.strip()), "")


_BINARY_FILES: Mapping[bytes, tuple[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            # Up to version 12 of Stata: the version, the order of bytes, and a fixed byte.
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
            ("a pickle of Python, which can run what it likes", "pandas.read_pickle(FILE)"),
        ),
    }
)
"""What binary files begin with, what they are, and what reads them."""


def _refuse_binary(content: bytes, source: Source) -> None:
    """Refuse a binary file that another program has to export, with what to do."""
    for magic, (kind, reader) in _BINARY_FILES.items():
        if content.startswith(magic):
            raise InputError(
                f"{source_name(source)}: this is {kind}; save its table as Parquet, which keeps "
                f"names of classes: {reader}.to_parquet('table.parquet')"
            )


def decoded(content: bytes, source: Source, before: int = 0) -> str:
    """Text of UTF-8 bytes, without a mark of their order at the start of a file.

    Args:
        content: the bytes.
        source: their file, for messages.
        before: number of bytes before them in the file.

    Raises:
        InputError: if they are not UTF-8; a binary file of another program is called by its name.
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
    """What messages call a file."""
    return "standard input" if os.fspath(source) == STANDARD_INPUT else str(source)


def _chunks(source: Source, most: int) -> Iterator[bytes]:
    """Yield the content of a file in pieces, unpacked if it is compressed with gzip.

    One that is not and is larger than `most` is refused before anything of it is made.
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
    """Bytes of a regular file; 0 of what is none, whose end alone tells."""
    try:
        status = os.fstat(file.fileno())
    # Standard input may be an object of a test or a notebook, without a descriptor.
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _unpacked(first: bytes, file: BinaryIO, source: Source) -> Iterator[bytes]:
    packed = first
    try:
        # A file may hold several members, one after the other, and zeros behind them.
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
    """Open a regular file, or standard input, for its bytes as they are.

    Raises:
        InputError: if there is no such file, it is no regular one, or cannot be opened.
    """
    if os.fspath(source) == STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.closed:
            raise InputError("standard input is closed; name a file")
        yield sys.stdin.buffer
        return
    try:
        # Opening a pipe would wait for its writer, if it were not for this flag.
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
    mend = system_advice(error, "check the file and its disk")
    return f"{where}: cannot be read ({error.strerror}); {mend}"


def system_advice(error: OSError, otherwise: str) -> str:
    """Return what a user can do about an error of the system, by its number.

    Args:
        error: the error.
        otherwise: what to do about an error that only concerns this file or folder.
    """
    return _ADVICE.get(error.errno or 0, otherwise)


_ADVICE = MappingProxyType(
    {
        errno.EMFILE: "close what else this process has open, or allow more files: ulimit -n 4096",
        errno.ENFILE: "close other programs, which have too many files open",
        errno.ENOMEM: "close other programs, which take the memory",
        errno.EACCES: "check its rights and those of its folders",
        errno.EPERM: "check its rights and those of its folders",
        errno.ENOTDIR: "check the path: a part of it is a file and no folder",
        errno.EISDIR: "name a file: this is a folder",
        errno.ENAMETOOLONG: "give a shorter name",
        errno.ELOOP: "check the path: its links lead in a circle",
        errno.ENOSPC: "free some space on the disk, or write to another",
        errno.EDQUOT: "free some space of your quota, or write to another disk",
        errno.EFBIG: "write to a disk, or with a limit (ulimit -f), that allows larger files",
        errno.EROFS: "write to another disk: this one can only be read",
        errno.EIO: "check the disk, which does not work",
        errno.ESTALE: "check the network's disk, and try again",
    }
)


def _too_large(source: Source, what: str, size: int, most: int) -> str:
    # The limit of lines that pass one by one is a multiple of the one that the option sets.
    needed = size * _most_held.get() // most
    return (
        f"{source_name(source)}: {what} more than {size_text(most)}; if that is right, allow it "
        f"with the option --max-size before the command (factormodels --max-size "
        f"{needed // 2**30 + 1}G ...)"
    )
