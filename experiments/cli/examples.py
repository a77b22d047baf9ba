"""Conversion of the Python examples of docstrings to shell lines.

score("claims.csv", scores="brier,ece").save("scores")
factormodels score claims.csv --scores brier,ece --out scores
"""

from __future__ import annotations

import ast
import inspect
import shlex
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from experiments.settings import command_name, option_of, settings_of

_WIDEST = 74
"""Width of example lines, which are indented in the help."""

_AFTERWARDS = {"save": "--out", "report": "--report"}
"""Options that correspond to a method of the findings."""


def shell_example(front: Callable[..., Any], example: str) -> str:
    """Convert a call of a front-door function to the equivalent command.

    Args:
        front: the function.
        example: the call, optionally followed by `save`, `report` or `as_json` of `Findings`.

    Raises:
        ValueError: for anything that is not such a call.
    """
    function = inspect.unwrap(front)
    words = [["factormodels", command_name(function)]]
    words += _words(function, ast.parse(example.strip(), mode="eval").body)
    lines: list[str] = []
    for group in words:
        text = shlex.join(group)
        if lines and len(lines[-1]) + 1 + len(text) <= _WIDEST - 2 * bool(len(lines) - 1):
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    return " \\\n    ".join(lines)


def _words(function: Callable[..., Any], node: ast.expr) -> Iterator[list[str]]:
    """The words after a command: arguments, options with values, and output."""
    if not isinstance(node, ast.Call):
        raise ValueError(f"{ast.unparse(node)} is no call of {function.__name__}")
    if isinstance(node.func, ast.Attribute):
        yield from _words(function, node.func.value)
        yield from _output(node.func.attr, node)
        return
    if not isinstance(node.func, ast.Name) or node.func.id != function.__name__:
        raise ValueError(f"{ast.unparse(node)} is no call of {function.__name__}")
    for each in node.args:
        yield from ([word] for word in _texts(ast.literal_eval(each)))
    kind = settings_of(function)
    for keyword in node.keywords:
        option = option_of(kind, str(keyword.arg)).name
        value = ast.literal_eval(keyword.value)
        if isinstance(value, bool):
            yield [f"--{option}" if value else f"--no-{option}"]
            continue
        if isinstance(value, dict):
            # Settings of a backend are separate options.
            for name, setting in value.items():
                yield [f"--{name.replace('_', '-')}", str(setting)]
            continue
        for text in _texts(value):
            yield [f"--{option}", text]


def _output(method: str, node: ast.Call) -> Iterator[list[str]]:
    if method == "as_json":
        yield ["--json"]
        return
    options = [(_AFTERWARDS[method], each) for each in node.args]
    named = [(f"--{each.arg}", each.value) for each in node.keywords]
    for option, value in chain(options, named):
        yield [option, str(ast.literal_eval(value))]


def _texts(value: Any) -> list[str]:
    several = value if isinstance(value, list | tuple) else [value]
    return [str(each) for each in several]
