"""Write `experiments/__init__.pyi`: what type checkers see of the front door.

    python -m tests.experiments.make_stub

A setting is declared once, as a field of a class of settings; the stub says of every function which
keywords these are, and what each takes. A test holds it to the settings.
"""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import experiments
from experiments.settings import option_of, settings_of

STUB = Path(experiments.__file__).with_suffix(".pyi")

_HEAD = '''"""Types of the functions of the front door.

Made by `python -m tests.experiments.make_stub`.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

__all__: list[str]

'''

_PLACE = "str | os.PathLike[str]"
"""What a path may be given as."""


def taken(hint: Any) -> str:
    """Type annotation of the values that a field accepts."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return taken(arguments[0])
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(part for each in arguments for part in [taken(each)]))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is tuple:
        element = taken(arguments[0])
        return element if element == "Any" else f"{element} | Sequence[{element}]"
    if origin in (dict, Mapping) or hint is dict:
        return f"Mapping[{', '.join(map(taken, arguments))}]" if arguments else "Mapping[str, Any]"
    if hint is Any:
        return "Any"
    if hint is NoneType:
        return "None"
    if isinstance(hint, type) and issubclass(hint, os.PathLike):
        return _PLACE
    return str(hint.__name__)


def _written(default: Any) -> str:
    """A default as the stub has it: itself where it is plain."""
    plain = default is None or type(default) in (bool, int, float, str)
    return repr(default) if plain and default not in (float("inf"),) else "..."


def _sources(module: str) -> dict[str, str]:
    """Modules from which a module imports its names, including those for type checkers."""
    path = Path(inspect.getsourcefile(sys.modules[module]) or "")
    module_of: dict[str, str] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            module_of |= {alias.asname or alias.name: node.module for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.ClassDef):
            targets = node.targets if isinstance(node, ast.Assign) else [node]
            for each in targets:
                name = each.id if isinstance(each, ast.Name) else getattr(each, "name", None)
                name = name or getattr(getattr(each, "target", None), "id", None)
                if name:
                    module_of[name] = module
    return module_of


def _argument(annotation: str, sources: Mapping[str, str], imports: dict[str, set[str]]) -> str:
    """The annotation of an argument, whose names are imported."""
    loosened = {
        "Path": _PLACE,
        "Path | None": f"{_PLACE} | None",
        "Sequence[Path]": f"{_PLACE} | Sequence[{_PLACE}]",
    }
    if annotation in loosened:
        return loosened[annotation]
    for node in ast.walk(ast.parse(annotation)):
        if isinstance(node, ast.Name) and node.id in sources:
            module = _origin(node.id, sources[node.id])
            if module not in ("typing", "collections.abc"):
                imports.setdefault(module, set()).add(node.id)
    return annotation


def _origin(name: str, module: str) -> str:
    """The module that a name is defined in, and not only imported by."""
    before = ""
    while module.startswith("experiments") and module != before:
        import_module(module)
        before, module = module, _sources(module).get(name, module)
    return module


def _function(name: str, function: Callable[..., Any], imports: dict[str, set[str]]) -> str:
    plain = inspect.unwrap(function)
    sources, kind = _sources(plain.__module__), settings_of(function)
    imports.setdefault(kind.__module__, set()).add(kind.__name__)
    lines = [f"def {name}("]
    for each in inspect.signature(plain).parameters.values():
        if each.name == "settings":
            continue
        hint = _argument(str(each.annotation), sources, imports)
        default = "" if each.default is each.empty else f" = {_written(each.default)}"
        lines.append(f"    {each.name}: {hint}{default},")
    lines += ["    *,", f"    settings: {kind.__name__} | None = None,"]
    # In the order of the function's own signature.
    for field in filter(kind.model_fields.__contains__, inspect.signature(function).parameters):
        info = kind.model_fields[field]
        default = info.get_default(call_default_factory=True)
        hint = option_of(kind, field).python or taken(info.annotation)
        lines.append(f"    {field}: {hint} = {_written(default)},")
    return "\n".join([*lines, ") -> Findings: ..."])


def stub() -> str:
    """The text of the stub, as ruff formats it."""
    imports: dict[str, set[str]] = {"experiments.findings.findings": {"Findings"}}
    same, functions = [], []
    for name in experiments.__all__:
        function = getattr(experiments, name)
        if inspect.unwrap(function) is function:
            same.append(f"from {function.__module__} import {name} as {name}")
        else:
            functions.append(_function(name, function, imports))
    lines = [
        f"from {module} import {', '.join(sorted(names))}" for module, names in imports.items()
    ]
    text = _HEAD + "\n".join(sorted([*same, *lines])) + "\n\n" + "\n\n".join(functions) + "\n"
    return _formatted(text)


def _formatted(text: str) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    for how in (["check", "-q", "--fix-only"], ["format", "-q"]):
        done = subprocess.run(
            [*ruff, *how, "--stdin-filename", str(STUB), "-"],
            input=text, capture_output=True, text=True, check=True,
        )  # fmt: skip
        text = done.stdout
    return text


def main(arguments: Sequence[str] = ()) -> None:
    """Write the stub."""
    del arguments
    STUB.write_text(stub(), encoding="utf-8")


if __name__ == "__main__":
    main()
