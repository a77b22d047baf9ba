"""What the terminal shows of the inference backends."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from typing import TYPE_CHECKING, Any

from experiments.cli.console import show_table
from experiments.paper.text import plain_table
from experiments.study.backend_settings import setting_types
from inference import Backend, entries
from inference.registry import backend_class, get_entry

if TYPE_CHECKING:
    from rich.console import Console


def show_all(console: Console) -> None:
    """Print every backend: installed or how to install it, kind of log Z, limits, settings."""
    table = plain_table()
    for title in ("backend", "installed", "log Z"):
        table.add_column(title, no_wrap=True)
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


def show_one(console: Console, name: str) -> None:
    """Print one backend with the types, defaults and meanings of its settings.

    Raises:
        InputError: if there is no backend of that name.
        MissingDependencyError: if a library that it needs is absent.
    """
    from rich.padding import Padding

    entry = get_entry(name)
    backend = backend_class(name)
    console.print(f"{name}: {entry.summary}")
    console.print(f"log Z: {entry.log_z_kind}; for: {entry.limits}")
    types = setting_types(backend)
    console.print("\nsettings:" if types else "\nIt has no settings.")
    meanings = _meanings(backend)
    for field in dataclasses.fields(backend):
        if field.init:
            console.print()
            console.print(
                f"  {field.name} ({_type_name(types[field.name])}; default {_default(field)})",
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
    """Return how a member of a union is shown: a literal by what is written for it."""
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(map(str, typing.get_args(hint)))
    return "null" if hint is type(None) else _type_name(hint)


def _meanings(backend: type[Backend]) -> dict[str, str]:
    """Return what the section Attributes of the class's docstring says of each setting."""
    text = inspect.cleandoc(backend.__doc__ or "")
    _, found, section = text.partition("Attributes:\n")
    meanings: dict[str, str] = {}
    keys: list[str] = []
    for line in section.splitlines() if found else []:
        start = re.match(r"^    (\w+(?:, \w+)*): (.*)$", line)
        if start:
            keys = start[1].split(", ")
            meanings |= dict.fromkeys(keys, start[2])
        elif line.startswith("        "):
            for key in keys:
                meanings[key] += f" {line.strip()}"
        elif line.strip():
            break
    return meanings
