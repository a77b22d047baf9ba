"""Every command ends with the code that the help documents, whatever stops it."""

from __future__ import annotations

import ast
import errno
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from experiments.cli.main import FRONT_DOOR, app
from factormodels.errors import InputError, LimitReachedError, MissingDependencyError
from tests.experiments.conftest import invoke
from tests.test_architecture import ROOT

COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]

STOPPED: tuple[tuple[BaseException, int], ...] = (
    (InputError("t.csv: it is none; give another"), 2),
    (MissingDependencyError("x is not installed; run: pip install x"), 2),
    (OSError(errno.ENOSPC, "No space left on device", "t.csv"), 2),
    (MemoryError(), 2),
    (LimitReachedError("3 calls were made; raise the limit"), 3),
    (KeyboardInterrupt(), 130),
)

NOT_FINDING_ALL = {"assess", "datasets", "fastfact", "run", "self-knowledge"}
"""Commands that may end with 1."""


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(("error", "code"), STOPPED, ids=lambda value: type(value).__name__)
def test_what_stops_a_command_has_its_code(
    name: str,
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    group: Any = typer.main.get_command(app)
    command = group.commands[name]

    def stopped(**_: object) -> None:
        raise error

    monkeypatch.setattr(command, "params", [])
    monkeypatch.setattr(command, "callback", stopped)
    if hasattr(command, "commands"):
        monkeypatch.setattr(command, "invoke_without_command", True)
    with pytest.raises(SystemExit) as ended:
        group.main([name], prog_name="factormodels")
    assert ended.value.code == code
    said = capsys.readouterr().err
    assert said.startswith("factormodels: ")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_called_wrongly_ends_with_2(name: str) -> None:
    invoke(name, "--no-such-option", code=2)


def test_the_help_documents_the_codes_and_who_ends_with_1() -> None:
    shown = invoke("--help").stdout
    codes = re.findall(r"^ +(\d+) {3,}\w", shown[shown.index("Exit codes") :], re.MULTILINE)
    assert codes == ["0", "1", "2", "3", "130", "143"]
    assert set(COMMANDS) >= NOT_FINDING_ALL
    (line,) = re.findall(r"^.* 1 .*something is missing: (.*?)\W*$", shown, re.MULTILINE)
    assert set(line.split(", ")) == NOT_FINDING_ALL


def exits(path: Path) -> set[str]:
    """Return what a module gives `typer.Exit`, as it is written."""
    return {
        ast.unparse(node.args[0])
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "typer.Exit" and node.args
    }


def test_no_command_ends_with_a_code_of_its_own() -> None:
    folder = ROOT / "experiments" / "cli" / "commands"
    found = {path.stem.replace("_", "-"): exits(path) for path in folder.glob("*.py")}
    assert {name for name, codes in found.items() if "INCOMPLETE" in codes} == (
        NOT_FINDING_ALL - set(FRONT_DOOR)
    )
    assert set().union(*found.values()) == {"INCOMPLETE"}
