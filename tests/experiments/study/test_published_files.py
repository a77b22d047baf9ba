"""Files of a run are whole after a death at any rename and another attempt."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from experiments.study.files import MANIFEST, publish

_N_RENAMES = 4
"""As many as there are files."""


class Death(BaseException):
    """The end of a process, of which no code takes notice."""


def made(parent: Path, text: str) -> list[Path]:
    """Files of a run in a folder of their own, the manifest last."""
    parent.mkdir()
    files = [parent / name for name in ("rows.csv", "summary.csv", "report.html", MANIFEST)]
    for file in files:
        file.write_text(text)
    return files


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(1, _N_RENAMES + 1))
def test_a_death_at_a_rename_is_mended_by_another_attempt(
    number: int, after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, replace = tmp_path / "out", os.replace
    out.mkdir()
    publish(made(tmp_path / "before", "before"), out)
    renames = 0

    def dying(*arguments: Any, **options: Any) -> None:
        nonlocal renames
        renames += 1
        if renames == number and not after:
            raise Death
        replace(*arguments, **options)
        if renames == number:
            raise Death

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", dying)
        with pytest.raises(Death):
            publish(made(tmp_path / "dying", "new"), out)
    # The manifest says that a folder is whole: it comes last.
    is_whole = set(contents(out).values()) == {"new"} and len(contents(out)) == _N_RENAMES
    assert (out / MANIFEST).exists() == is_whole
    publish(made(tmp_path / "again", "new"), out)
    names = ("rows.csv", "summary.csv", "report.html", MANIFEST)
    assert contents(out) == dict.fromkeys(names, "new")
