"""The functions of the tree that draw a figure, found in the sources, and as they run."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

from matplotlib.figure import Figure

from calibration.figures.shown_figure import ShownFigure

ROOT = Path(__file__).resolve().parents[4]

FOLDERS = ("calibration", "experiments", "notebooks/questions", "docs")
"""Where figures are drawn; the notebooks themselves draw outside functions."""

FIGURES = ("Figure", "ShownFigure")


class Place(NamedTuple):
    """A function of a source file."""

    file: str
    function: str


@cache
def drawing_functions() -> frozenset[Place]:
    """Return the functions that make a figure themselves or return one."""
    modules = _modules()
    makers = {*FIGURES, *(each.name for tree in modules.values() for each in _makers(tree))}
    functions: set[Place] = set()
    for path, tree in modules.items():
        names = makers | _aliases(tree, makers)
        drawing = [each for each in _functions(tree) if _draws(each, names)]
        functions |= {
            Place(_within(path), each.name) for each in drawing if each.name not in makers
        }
    return frozenset(functions)


def scripts_that_draw() -> set[str]:
    """Return the scripts of notebooks/questions that draw, by the names of their studies."""
    drawing = {drawn.function for drawn in drawing_functions()}
    return {
        path.stem.replace("_", "-")
        for path, tree in _modules().items()
        if path.parent.name == "questions" and _called(tree) & drawing
    }


def functions_behind(draw: Callable[[], object]) -> dict[Figure, set[Place]]:
    """Call a function, and return what was being called when each of its figures was made."""
    behind: dict[Figure, set[Place]] = {}
    make = ShownFigure.__init__

    def recorded(figure: ShownFigure, *given: Any, **named: Any) -> None:
        frame: FrameType | None = sys._getframe(1)
        places = behind.setdefault(figure, set())
        while frame is not None:
            places.add(Place(_within(Path(frame.f_code.co_filename)), frame.f_code.co_name))
            frame = frame.f_back
        make(figure, *given, **named)

    with patch.object(ShownFigure, "__init__", recorded):
        draw()
    return behind


@cache
def _modules() -> dict[Path, ast.Module]:
    """Return the modules that may draw: those whose text has the word."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    texts = {path: path.read_text("utf-8") for path in paths}
    words = ("figure", "Figure")
    return {
        path: ast.parse(text) for path, text in texts.items() if any(word in text for word in words)
    }


def _within(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the functions of a module that are no methods."""
    return [each for each in tree.body if isinstance(each, ast.FunctionDef)]


def _makers(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the context managers of a module that yield a figure to draw on."""
    return [each for each in _functions(tree) if "Iterator[tuple[ShownFigure" in _returned(each)]


def _returned(function: ast.FunctionDef) -> str:
    return ast.unparse(function.returns) if function.returns else ""


def _draws(function: ast.FunctionDef, makers: set[str]) -> bool:
    return _returned(function) in FIGURES or bool(_called(function) & makers)


def _called(node: ast.AST) -> set[str]:
    """Return the names of functions that are called by their names or as attributes."""
    functions = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    names = {each.id for each in functions if isinstance(each, ast.Name)}
    return names | {each.attr for each in functions if isinstance(each, ast.Attribute)}


def _aliases(tree: ast.Module, names: set[str]) -> set[str]:
    """Return the other names under which a module imports some names."""
    imports = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    return {
        alias.asname
        for each in imports
        for alias in each.names
        if alias.name in names and alias.asname
    }
