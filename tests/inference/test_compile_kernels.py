"""Compilation of kernels ahead of their first use: processes, progress, refusals."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from inference import compile_kernels as module
from inference import tasks
from inference.compile_kernels import compile_kernels, main


@pytest.mark.slow
def test_every_group_of_backends_is_reported() -> None:
    reported: list[tuple[int, int, str]] = []

    def report(done: int, total: int, names: str) -> None:
        reported.append((done, total, names))

    assert compile_kernels(["enumeration", "exact"], 2, report) > 0.0
    assert [(done, total) for done, total, _ in reported] == [(1, 2), (2, 2)]
    assert {names for _, _, names in reported} == {"enumeration", "exact"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["exat"], "backend 'exat' has no kernels here: name any of ais, auto, "),
        (["pgmpy"], "backend 'pgmpy' has no kernels here"),
        (["-j", "0", "exact"], "-j must be 1 or more, not 0"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_compiled(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err


def test_a_number_of_processes_is_positive() -> None:
    with pytest.raises(ValueError, match="processes must be 1 or more, not 0"):
        compile_kernels(["exact"], 0)


def _names_in(source: str) -> set[str]:
    """Return the names that a source reads, and the modules that it imports."""
    nodes = list(ast.walk(ast.parse(source)))
    modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return modules | {node.id for node in nodes if isinstance(node, ast.Name)}


def test_kernels_of_every_task_are_compiled() -> None:
    folder = Path(inspect.getfile(tasks)).parent
    kernels = {
        f"inference.tasks.kernels.{path.stem}": path
        for path in (folder / "kernels").glob("[!_]*.py")
    }
    called = _names_in(inspect.getsource(module._compile_tasks)) & set(tasks.__all__)
    waiting = [folder / f"{tasks._MODULES[name]}.py" for name in called]
    reached: set[str] = set()
    while waiting:
        imported = _names_in(waiting.pop().read_text(encoding="utf-8")) & kernels.keys()
        waiting += [kernels[name] for name in imported - reached]
        reached |= imported
    missing = sorted(kernels.keys() - reached)
    assert not missing, (
        f"no task that _compile_tasks of inference/compile_kernels.py calls uses "
        f"{', '.join(missing)}; call one, so that installation compiles its kernels"
    )
