"""Commands that are not functions of the front door yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from experiments.cli import help_text
from experiments.cli.commands import fit
from experiments.cli.console import say


class _Commands(help_text.Group):
    """The group of commands; typer has a word of its own for an interrupt."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("factormodels: interrupted")
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=_Commands,
    name="factormodels",
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _older() -> None:
    """Keep the name of a command before its arguments, also where there is but one."""


for _command in (fit,):
    # The module's name is the command's.
    app.command(_command.__name__.rpartition(".")[2], cls=help_text.Command)(_command.command)


def run_older(name: str, arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    try:
        app([name, *arguments], prog_name="factormodels")
    except SystemExit as end:
        return int(end.code or 0)
    return 0
