"""Docstrings of this project as reStructuredText: prose with `names`, not markup.

A name in single backticks is code, as in Markdown; a paragraph that begins with an import, and one
that is indented more than what it follows, is an example; every other character means itself.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.application import Sphinx

_CODE = re.compile(r"(``.+?``|`[^`\n]+(?:\n[^`\n]+)?`)")
_MARKUP = re.compile(r"(?<!\\)([*|\\]|_(?=\W|$))")
_EXAMPLE = re.compile(r" *(?:from \S+ import |import |python -m |@)")


def connect(app: Sphinx) -> None:
    """Have docstrings rewritten before the sections of Google's style are taken apart."""
    app.connect("autodoc-process-docstring", _rewrite, priority=100)
    app.connect("missing-reference", _known_without_a_place)


def as_restructured(docstring: str) -> str:
    """Docstring as reStructuredText."""
    return "\n\n".join(
        _example(block) if _EXAMPLE.match(block) else _prose(block)
        for block in re.split(r"\n(?: *\n)+", docstring)
    )


def _example(block: str) -> str:
    lines = block.splitlines()
    margin = " " * (len(lines[0]) - len(lines[0].lstrip()))
    return f"{margin}::\n\n" + "\n".join(f"    {line}" for line in lines)


def _prose(block: str) -> str:
    parts = _CODE.split(block)
    for position, part in enumerate(parts):
        if position % 2:
            following = parts[position + 1][:1]
            parts[position] = f"``{part.strip('`')}``" + ("\\ " if following.isalnum() else "")
        else:
            parts[position] = _MARKUP.sub(r"\\\1", part)
    return "".join(parts)


def _rewrite(
    _app: Sphinx, what: str, _name: str, obj: Any, _options: object, lines: list[str]
) -> None:
    lines[:] = as_restructured("\n".join(lines)).split("\n")
    if what == "module":
        lines.extend(_offered(obj))


def _offered(module: ModuleType) -> list[str]:
    """Paragraph that links what a package offers from its modules."""
    links = []
    for name in getattr(module, "__all__", ()):
        offered = getattr(module, name)
        home = getattr(offered, "__module__", None)
        if isinstance(offered, ModuleType):
            links.append(f":py:mod:`{offered.__name__}`")
        elif isinstance(home, str) and home != module.__name__:
            links.append(f":py:obj:`~{home}.{name}`")
    return ["", f"Importable from here: {', '.join(links)}.", ""] if links else []


_PACKAGES = ("factormodels", "inference", "calibration", "experiments")


def _known_without_a_place(
    _app: Sphinx, _environment: object, node: Element, content: Element
) -> Element | None:
    """Type variables, private names and those of compiled loops as text without a link."""
    target = str(node.get("reftarget"))
    module, _, name = target.rpartition(".")
    if module.partition(".")[0] in _PACKAGES:
        # A build that reads few pages again has not imported the modules of the others.
        with suppress(ImportError):
            import_module(module)
    target_object = getattr(sys.modules.get(module), name, None)
    if isinstance(target_object, TypeVar | ParamSpec):
        return content
    return content if name.startswith("_") or ".kernels." in target else None
