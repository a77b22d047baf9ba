"""Help as a terminal of any width shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand, TyperGroup

from experiments.cli.front import unwrapped


def choices(names: Iterable[str], default: str | None = None) -> str:
    """Names to choose from, such as "implication (default), conditional or mixture"."""
    *first, last = (f"{name} (default)" if name == default else name for name in names)
    return f"{', '.join(first)} or {last}" if first else last


class Command(TyperCommand):
    """A command whose help is prose, with flags as what they are: options without a value."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _prepare(self, ctx)
        super().format_help(ctx, formatter)


class Group(TyperGroup):
    """A group of commands whose help is so too."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _prepare(self, ctx)
        super().format_help(ctx, formatter)


def _prepare(command: Any, context: Any) -> None:
    command.help = unwrapped(command.help)
    for parameter in command.get_params(context):
        # Typer would show a flag as if it took a boolean.
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
