"""Whole files: read with clear errors, and written completely or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from factormodels.errors import InputError
from factormodels.io.source.opening import decoded, read_whole, system_advice

_UNFINISHED = ".unfinished-"
"""Part of the names of temporary files and folders, after the name of their target."""


def read_text(path: str | os.PathLike[str]) -> str:
    """Read the text of a UTF-8 file, decompressed if it is gzip; `-` is standard input.

    Raises:
        InputError: as in `read_whole`, or if it is not UTF-8.
    """
    return decoded(read_whole(path), path)


@contextmanager
def errors_naming(
    path: str | os.PathLike[str], temporary: str | os.PathLike[str] | None = None
) -> Iterator[None]:
    """Make errors of writing within the block name `path`, or a path within it.

    For a full disk the system names no file, and users do not know the name of a temporary file.

    Args:
        path: the file or folder that the block writes.
        temporary: the temporary file or folder that it writes instead.

    Raises:
        OSError: as in the block, with its `filename`.
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
        InputError: if `path` exists and is not a regular file (a device must not be replaced), or
            its folder does not exist or is not writable.
        OSError: if it cannot be written, as on a full disk; its `filename` is `path`.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{path}: this is a folder; name a file in it")
    if target.exists() and not target.is_file():
        raise InputError(f"{path}: this is a device or a pipe; name a regular file to write to")
    try:
        _remove_unfinished(target.parent, target.name)
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}{_UNFINISHED}", suffix=target.suffix
        )
    except OSError as error:
        advice = system_advice(error, "name a file in an existing folder")
        raise InputError(f"{path}: cannot be written ({error.strerror}); {advice}") from None
    temporary = Path(name)
    try:
        with _locked(handle), errors_naming(path, name):
            yield temporary
            # mkstemp makes the file private; results get the user's default permissions.
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def unfinished_folder(target: Path, *, inside: bool = False) -> Iterator[Path]:
    """Yield a temporary folder beside `target`, on the same file system; it is removed afterward.

    Remains of processes that were killed while writing the same target are removed first. A folder
    in use is locked by its process, and the lock ends with the process.

    Args:
        target: the folder to be written.
        inside: whether the temporary folder is in the target, which exists, rather than beside it.

    Raises:
        InputError: if it cannot be created.
        OSError: if something in it cannot be written; its `filename` is within `target`.
    """
    parent = target if inside else target.parent
    try:
        _remove_unfinished(parent, target.name)
        # Not in /tmp, since a move is an atomic rename only within one file system.
        name = tempfile.mkdtemp(dir=parent, prefix=f".{target.name}{_UNFINISHED}")
        handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        advice = system_advice(error, "give another --out")
        raise InputError(f"{parent}: cannot be written ({error.strerror}); {advice}") from None
    try:
        with _locked(handle), errors_naming(target, name):
            yield Path(name)
    finally:
        shutil.rmtree(name, ignore_errors=True)


@contextmanager
def _locked(handle: int) -> Iterator[None]:
    """Lock an open file or folder for the block, and close it."""
    try:
        # On file systems without locks, remains are not removed either.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _remove_unfinished(parent: Path, name: str) -> None:
    """Remove the temporary files and folders for a name whose processes have ended."""
    left: list[str] = []
    # A folder may be writable but not readable.
    with suppress(OSError), os.scandir(parent) as entries:
        prefix = f".{name}{_UNFINISHED}"
        left = [entry.path for entry in entries if entry.name.startswith(prefix)]
    for path in left:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            with suppress(OSError):
                shutil.rmtree(path) if Path(path).is_dir() else Path(path).unlink()
        finally:
            os.close(handle)


def move_together(files: Sequence[Path], folder: Path) -> None:
    """Move files into a folder, all or none: existing files are restored if one cannot be moved.

    Args:
        files: files of one folder on the same file system, possibly in subfolders.
        folder: the destination, in which files of the same name are replaced.

    Raises:
        OSError: if one cannot be moved.
    """
    before: list[tuple[Path, Path]] = []
    moved: list[Path] = []
    try:
        for file in files:
            target = folder / file.name
            if target.is_file() and not target.is_symlink():
                former = file.with_name(f"{file.name}.former")
                target.replace(former)
                before.append((former, target))
            file.replace(target)
            moved.append(target)
    except BaseException:
        for target in moved:
            target.unlink(missing_ok=True)
        for former, target in before:
            former.replace(target)
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    r"""Write `text` to `path` as UTF-8, completely or not at all.

    A lone surrogate, which has no form in UTF-8, is written as its escape (\ud800), as in JSON.

    Raises:
        InputError, OSError: as in `atomic_path`.
    """
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", "backslashreplace"))


def prepare_folder(folder: Path) -> None:
    """Create a folder for results, or fail before anything is computed.

    Raises:
        InputError: if it cannot be created or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        advice = system_advice(error, "give another with --out")
        raise InputError(
            f"{folder}: the folder cannot be made ({error.strerror}); {advice}"
        ) from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder}: the folder cannot be written; give another with --out")


@contextmanager
def results_folder(folder: Path) -> Iterator[None]:
    """Create a folder of results; if the block fails, remove the folders that were created.

    Raises:
        InputError: if it cannot be created or written.
    """
    absent = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        prepare_folder(folder)
        yield
    except BaseException:
        remove_empty(absent)
        raise


def remove_empty(places: Sequence[Path]) -> None:
    """Remove the empty folders, the innermost first."""
    for path in places:
        # A folder that is not empty is used by another process too.
        with suppress(OSError):
            path.rmdir()
