"""`factormodels backends`: which algorithms there are, and what they are for."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli.console import output, plain_table, show_table

if TYPE_CHECKING:
    from rich.console import Console

    from inference import Backend


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show this backend and its settings.")
    ] = None,
) -> None:
    """List the inference backends: installed or not, kind of log Z, limits, settings.

    With a name, shows the settings of that backend with their types, defaults and
    meaning. Give them to `infer` with --set, and to a study under settings.

    [b]Examples[/b]

      factormodels backends
      factormodels backends lbp
      factormodels infer graph.json --backend lbp --set damping=0.5
    """
    if name is None:
        _show_all(output())
    else:
        _show_one(output(), name)


def _show_all(console: Console) -> None:
    """Print every backend: installed or how to install it, kind of log Z, limits, settings."""
    from inference import entries
    from inference.registry import backend_class

    table = plain_table(["backend", "installed", "log Z"])
    table.add_column("what it is, what for, and its settings with their defaults")
    for entry in entries().values():
        if entry.missing:
            state = f"needs {', '.join(entry.missing)}; install it with {entry.install_command}"
        elif entry.requires:
            # Reading the defaults would import a library that takes seconds.
            state = f"settings: factormodels backends {entry.name}"
        else:
            state = _defaults(backend_class(entry.name))
        table.add_row(
            entry.name,
            "no" if entry.missing else "yes",
            str(entry.log_z_kind),
            f"{entry.summary}\nfor: {entry.limits}\n{state}",
        )
    show_table(console, table)


def _show_one(console: Console, name: str) -> None:
    """Print one backend with the types, defaults and meanings of its settings.

    Raises:
        InputError: if there is no backend of that name.
        MissingDependencyError: if a library that it needs is absent.
    """
    from rich.padding import Padding

    from experiments.study.backend_settings import setting_types
    from inference.registry import backend_class, get_entry

    entry = get_entry(name)
    backend = backend_class(name)
    console.print(f"{name}: {entry.summary}")
    console.print(f"log Z: {entry.log_z_kind}; for: {entry.limits}")
    kinds = setting_types(backend)
    console.print("\nsettings:" if kinds else "\nIt has no settings.")
    meanings = _meanings(backend)
    for field in dataclasses.fields(backend):
        if field.init:
            console.print()
            console.print(
                f"  {field.name} ({_type_name(kinds[field.name])}; default {_default(field)})",
                style="bold",
            )
            console.print(Padding(meanings.get(field.name, ""), (0, 0, 0, 6), expand=False))


def _defaults(backend: type[Backend]) -> str:
    return ", ".join(f"{f.name}={_default(f)}" for f in dataclasses.fields(backend) if f.init)


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return "required"
    # As YAML and --set spell it.
    return (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


def _type_name(hint: Any) -> str:
    name = hint.__name__ if isinstance(hint, type) else str(hint)
    if typing.get_origin(hint) is typing.Literal:
        return f"one of {', '.join(map(str, typing.get_args(hint)))}"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " | ".join(_member_name(member) for member in typing.get_args(hint))
    return name.replace("typing.", "")


def _member_name(hint: Any) -> str:
    """How a member of a union is shown: a literal by what is written for it."""
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(map(str, typing.get_args(hint)))
    return "null" if hint is type(None) else _type_name(hint)


def _meanings(backend: type[Backend]) -> dict[str, str]:
    """What the section Attributes of the class's docstring says of each setting."""
    text = inspect.cleandoc(backend.__doc__ or "")
    _, found, section = text.partition("Attributes:\n")
    meanings: dict[str, str] = {}
    keys: list[str] = []
    for line in section.splitlines() if found else []:
        start = re.match(r"^    (\w+(?:, \w+)*): (.*)$", line)
        if start:
            keys = start[1].split(", ")
            meanings |= dict.fromkeys(keys, start[2])
        # The line goes on with the meaning of the setting, or settings, above.
        elif line.startswith("        "):
            for key in keys:
                meanings[key] += f" {line.strip()}"
        elif line.strip():
            break
    return meanings
