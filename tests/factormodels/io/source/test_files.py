"""Results are written whole or not at all, and what a killed process left is removed."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as
from factormodels.io.source.files import (
    move_together,
    prepare_folder,
    read_text,
    unfinished_folder,
    write_text,
)
from factormodels.io.source.opening import system_advice
from tests.refusals import refused


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def fails_at(
    call: int, original: Callable[..., Any], number: int = errno.ENOSPC
) -> Callable[..., Any]:
    """Let a function of the system fail at one of its calls, counted from 0."""
    calls = iter(range(10**6))

    def function(*arguments: Any, **options: Any) -> Any:
        if next(calls) == call:
            raise OSError(number, os.strerror(number))
        return original(*arguments, **options)

    return function


def saved(
    findings: Findings, out: Path, method: str, call: int, monkeypatch: pytest.MonkeyPatch
) -> OSError | None:
    """Save findings while one call of a method of paths fails, and return the error."""
    with monkeypatch.context() as patched:
        patched.setattr(Path, method, fails_at(call, getattr(Path, method)))
        try:
            findings.save(out)
        except OSError as error:
            return error
    return None


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("method", ["write_bytes", "replace", "chmod"])
def test_findings_are_saved_together_or_not_at_all(
    method: str, existing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(pd.DataFrame({"claim": ["a"], "p": [0.5]}), columns_as("claim p"))
    findings = Findings(
        "source", ("A sentence.",), {"claims": table}, texts={"note.txt": "A note."}
    )
    whole = {path.name for path in findings.save(tmp_path / "whole")}
    out = tmp_path / "parent" / "out"
    if existing:
        out.mkdir(parents=True)
        (out / "findings.json").write_text("of before")
        (out / "notes.txt").write_text("of the user")
    before = contents(tmp_path)
    calls = 0
    while (failure := saved(findings, out, method, calls, monkeypatch)) is not None:
        assert Path(os.fsdecode(failure.filename)).parent in (out, out.parent)
        assert contents(tmp_path) == before, calls
        assert out.exists() == existing
        calls += 1
    # Every file is written by such a call, but the CSV of a table, which is written in parts.
    assert calls >= len(whole) - (method == "write_bytes")
    assert {path.name for path in out.iterdir()} == whole | ({"notes.txt"} if existing else set())
    assert (out / "findings.json").read_bytes() == before["whole/findings.json"]


def test_files_that_are_moved_replace_those_of_their_names(tmp_path: Path) -> None:
    for name in ("new/a", "new/b", "out/a", "out/c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    move_together([tmp_path / "new/a", tmp_path / "new/b"], tmp_path / "out")
    assert contents(tmp_path / "out") == {"a": b"new/a", "b": b"new/b", "c": b"out/c"}


KILLED = """
import os, signal, sys
from pathlib import Path
from factormodels.io.source.files import atomic_path, unfinished_folder
target = Path(sys.argv[1])
with unfinished_folder(target) as folder, atomic_path(target / "t.csv") as file:
    (folder / "page.html").write_text("half")
    file.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.kill
def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    others = (".out.unfinished", ".other.unfinished-1", "out.unfinished-1")
    for name in others:
        (tmp_path / name).mkdir()
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.glob(".out.unfinished-*")
    assert (left / "page.html").exists()
    assert len(list(target.iterdir())) == 1
    with unfinished_folder(target) as unfinished:
        # Of a process that is alive the folder is locked.
        with unfinished_folder(target) as other:
            assert unfinished.is_dir()
        assert set(tmp_path.iterdir()) == {
            target,
            unfinished,
            *(tmp_path / name for name in others),
        }
        assert not other.exists()
    write_text(target / "t.csv", "whole")
    assert contents(target) == {"t.csv": b"whole"}


ADVICE = {
    errno.EMFILE: "ulimit -n",
    errno.ENFILE: "too many files open",
    errno.EACCES: "check its permissions",
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "quota",
    errno.EROFS: "can only be read",
    errno.ENAMETOOLONG: "shorter name|check the path",
    errno.ELOOP: "links|check the path",
    errno.EIO: "check the disk",
}


@pytest.mark.parametrize("number", ADVICE)
def test_an_error_of_the_system_is_reported_with_the_fix(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = fails_at(0, os.open, number)
    assert "permissions" in system_advice(OSError(errno.EACCES, ""), "otherwise")
    assert system_advice(OSError("no number"), "otherwise") == "otherwise"
    uses: dict[str, Callable[[], object]] = {
        "open": lambda: read_text(tmp_path / "t"),
        "tempfile.mkstemp": lambda: write_text(tmp_path / "t", ""),
        "tempfile.mkdtemp": lambda: unfinished_folder(tmp_path / "t").__enter__(),
        "mkdir": lambda: prepare_folder(tmp_path / "t"),
    }
    for name, use in uses.items():
        with monkeypatch.context() as patched:
            owner, _, function = name.rpartition(".")
            if owner:
                patched.setattr(f"{owner}.{function}", failing)
            else:
                patched.setattr(os if name == "open" else Path, name, failing)
            message = refused(ADVICE[number], use)
        assert os.strerror(number) in message
        assert ("permissions" in message) == (number == errno.EACCES)
        failing = fails_at(0, os.open, number)


def test_a_file_in_no_folder_is_refused(tmp_path: Path) -> None:
    refused("name a file in an existing folder", write_text, tmp_path / "none" / "t", "")
