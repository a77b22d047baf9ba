"""Help as a terminal of any width shows it."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

from typer.core import TyperCommand, TyperGroup


def unwrapped(text: str | None) -> str:
    """Return a docstring with a line for each paragraph, for the terminal to wrap.

    Lines that are indented, which are examples, stay as they are.
    """
    paragraphs = cleandoc(text or "").split("\n\n")
    return "\n\n".join(
        part if part.startswith("  ") else part.replace("\n", " ") for part in paragraphs
    )


class _Help:
    """Shows unwrapped paragraphs, and flags as what they are: options without a value."""

    def format_help(self: Any, ctx: Any, formatter: Any) -> None:
        self.help = unwrapped(self.help)
        for parameter in self.get_params(ctx):
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        super().format_help(ctx, formatter)  # type: ignore[misc]


class Command(_Help, TyperCommand):
    """A command whose help is shown so."""


class Group(_Help, TyperGroup):
    """A group of commands whose help is shown so."""
