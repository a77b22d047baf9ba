"""Reading and writing whole files: clear errors in, nothing half written out."""

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
"""Part of the names of temporary files and folders, behind the name of their target."""


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
        _remove_unfinished(target.parent, target.name)
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}{_UNFINISHED}", suffix=target.suffix
        )
    except OSError as error:
        mend = system_advice(error, "name a file in an existing folder")
        raise InputError(f"{path}: cannot be written ({error.strerror}); {mend}") from None
    temporary = Path(name)
    try:
        with _locked(handle), errors_naming(path, name):
            yield temporary
            # mkstemp makes the file private; a result is as readable as any file its user makes.
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def unfinished_folder(target: Path, *, inside: bool = False) -> Iterator[Path]:
    """Yield a temporary folder beside `target`, on the same file system; it is gone after.

    What processes left that were killed while they wrote the same target is removed first. A
    folder that is in use is locked by its process, and the lock goes with the process.

    Args:
        target: the folder that is written.
        inside: whether the temporary folder is in the target, which exists, and not beside it.

    Raises:
        InputError: if it cannot be made.
        OSError: if something in it cannot be written; its `filename` is within `target`.
    """
    parent = target if inside else target.parent
    try:
        _remove_unfinished(parent, target.name)
        # Not in /tmp: only within one file system is a move a rename, which either happens or
        # does not.
        name = tempfile.mkdtemp(dir=parent, prefix=f".{target.name}{_UNFINISHED}")
        handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        mend = system_advice(error, "give another --out")
        raise InputError(f"{parent}: cannot be written ({error.strerror}); {mend}") from None
    try:
        with _locked(handle), errors_naming(target, name):
            yield Path(name)
    finally:
        shutil.rmtree(name, ignore_errors=True)


@contextmanager
def _locked(handle: int) -> Iterator[None]:
    """Lock an open file or folder for the block, and close it."""
    try:
        # Where a file system has no locks, nothing that was left there is removed either.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _remove_unfinished(parent: Path, name: str) -> None:
    """Remove the temporary files and folders for a name whose processes are gone."""
    left: list[str] = []
    # A folder may be one that can be written and not listed.
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
    """Move files into a folder, all or none: what stands there is put back if one cannot be moved.

    Args:
        files: files of one folder on the same file system, which may be in folders of their own.
        folder: where they go, under their names; of equal names the file there is replaced.

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
        mend = system_advice(error, "give another with --out")
        raise InputError(
            f"{folder}: the folder cannot be made ({error.strerror}); {mend}"
        ) from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder}: the folder cannot be written; give another with --out")


@contextmanager
def results_folder(folder: Path) -> Iterator[None]:
    """Make a folder of results; if the block fails, remove again the folders that were made.

    Raises:
        InputError: if it cannot be made or written.
    """
    absent = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        prepare_folder(folder)
        yield
    except BaseException:
        remove_empty(absent)
        raise


def remove_empty(places: Sequence[Path]) -> None:
    """Remove the folders that hold nothing, the innermost first."""
    for path in places:
        # A folder that holds something by now is not this run's alone.
        with suppress(OSError):
            path.rmdir()
