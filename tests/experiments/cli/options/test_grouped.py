"""Options in groups: a command takes dataclasses, a person types their fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from experiments.cli.options.grouped import grouped


@dataclass(frozen=True)
class Size:
    """How large."""

    width: Annotated[int, typer.Option(min=1, help="From left to right.")] = 3
    names: Annotated[list[str] | None, typer.Option("--name", help="Repeatable.")] = None


@dataclass(frozen=True)
class Look:
    """How it looks.

    More that help does not show.
    """

    colour: Annotated[str, typer.Option()]


def command(file: Annotated[str, typer.Argument()], size: Size, look: Look) -> None:
    """Draw."""
    typer.echo(repr((file, size, look)))


def invoke(*arguments: str) -> tuple[int, str]:
    app = typer.Typer(rich_markup_mode="rich")
    app.command()(grouped(command))
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def test_groups_are_filled_from_their_options() -> None:
    code, said = invoke("a", "--name", "x", "--name", "y", "--colour", "red")
    assert (code, said.strip()) == (0, repr(("a", Size(3, ["x", "y"]), Look("red"))))


def test_checks_and_required_options_hold_within_a_group() -> None:
    assert invoke("a", "--colour", "red", "--width", "0")[0] == 2
    code, said = invoke("a")
    assert code == 2
    assert "--colour" in said


def test_a_group_is_a_panel_of_the_help() -> None:
    said = invoke("--help")[1]
    assert "How large" in said
    assert "How it looks" in said
    assert "More that help" not in said
