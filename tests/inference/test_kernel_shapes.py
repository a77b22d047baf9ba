"""Shape of kernels: few arguments, and shallow nesting."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import ROOT

MOST_ARGUMENTS = 8
"""Settings and arrays beyond these are fields of a named tuple."""

DEEPEST = 4
"""Loops, conditions and blocks within each other; deeper ones are functions."""

MODULES = sorted(
    path
    for package in ("inference", "calibration")
    for path in (ROOT / package).rglob("kernels/**/*.py")
    if path.name != "__init__.py"
)

BLOCKS = (ast.For, ast.While, ast.If, ast.With, ast.Try)


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a module, with those within others."""
    tree = ast.parse(path.read_text())
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def arguments(function: ast.FunctionDef) -> int:
    """Return the number of named arguments of a function."""
    given = function.args
    return len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)


def nesting(node: ast.AST, depth: int = 0) -> int:
    """Return how many blocks lie within each other below a node; an `elif` is beside its `if`."""
    deepest = depth
    for child in ast.iter_child_nodes(node):
        continues = isinstance(node, ast.If) and node.orelse == [child]
        below = isinstance(child, BLOCKS) and not (continues and isinstance(child, ast.If))
        deepest = max(deepest, nesting(child, depth + below))
    return deepest


def test_kernels_have_few_arguments_and_shallow_nesting() -> None:
    assert len(MODULES) > 50
    for path in MODULES:
        for function in functions(path):
            label = f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
            assert arguments(function) <= MOST_ARGUMENTS, label
            assert nesting(function) <= DEEPEST, label


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(a, /, b, *, c):\n return a", (3, 0)),
        ("def f(a):\n for i in a:\n  if i:\n   while i:\n    i -= 1", (1, 3)),
        ("def f(a):\n if a:\n  pass\n elif a:\n  pass\n elif a:\n  pass", (1, 1)),
        ("def f(a):\n if a:\n  pass\n else:\n  for _ in a:\n   pass", (1, 2)),
    ],
)
def test_arguments_and_nesting_are_counted(source: str, expected: tuple[int, int]) -> None:
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    assert (arguments(function), nesting(function)) == expected
