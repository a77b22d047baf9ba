"""Reading and writing whole files: clear errors in, nothing half written out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from factormodels.errors import InputError
from factormodels.io.guarded_opening import decoded, read_whole


def read_text(path: str | os.PathLike[str]) -> str:
    """Text of a UTF-8 file, unpacked if it is compressed with gzip; `-` is standard input.

    Raises:
        InputError: as `read_whole` does, or if it is not UTF-8.
    """
    return decoded(read_whole(path), path)


@contextmanager
def errors_naming(
    path: str | os.PathLike[str], temporary: str | os.PathLike[str] | None = None
) -> Iterator[None]:
    """Let errors of writing within the block name `path`, or what is to be within it.

    Of a full disk the system names no file, and nobody knows the name of a temporary one.

    Args:
        path: the file or folder that the block writes.
        temporary: the one that it writes in its place.

    Raises:
        OSError: as the block does, with its `filename`.
    """
    try:
        yield
    except OSError as error:
        name = error.filename
        if name is None:
            error.filename = os.fspath(path)
        elif temporary is not None and Path(os.fsdecode(name)).is_relative_to(temporary):
            error.filename = str(Path(path) / Path(os.fsdecode(name)).relative_to(temporary))
        raise


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path` that replaces it if the block succeeds.

    Raises:
        InputError: if `path` is there and no regular file (a device is not to be replaced by one),
            or its folder does not exist or cannot be written.
        OSError: if it cannot be written, as on a full disk; its `filename` is `path`.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{path}: this is a folder; name a file in it")
    if target.exists() and not target.is_file():
        raise InputError(f"{path}: this is a device or a pipe; name a regular file to write to")
    try:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=target.suffix
        )
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror}); name a file in an existing folder"
        ) from None
    os.close(handle)
    temporary = Path(name)
    try:
        with errors_naming(path, name):
            yield temporary
            # mkstemp makes the file private; a result is as readable as any file its user makes.
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    r"""Write `text` to `path` as UTF-8, whole or not at all.

    A lone surrogate, which has no form in UTF-8, is written as its escape (\ud800), which is that
    of JSON too.

    Raises:
        InputError, OSError: as `atomic_path` does.
    """
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", "backslashreplace"))


def prepare_folder(folder: Path) -> None:
    """Make a folder for results, or fail before anything was computed.

    Raises:
        InputError: if it cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: the folder cannot be made ({error.strerror}); give another with --out"
        ) from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder}: the folder cannot be written; give another with --out")


@contextmanager
def results_folder(folder: Path) -> Iterator[None]:
    """Make a folder of results; if the block fails, remove again the folders that were made.

    Raises:
        InputError: if it cannot be made or written.
    """
    absent = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        prepare_folder(folder)
        yield
    except BaseException:
        remove_empty(absent)
        raise


def remove_empty(places: Sequence[Path]) -> None:
    """Remove the folders that hold nothing, the innermost first."""
    for place in places:
        # A folder that holds something by now is not this run's alone.
        with suppress(OSError):
            place.rmdir()
