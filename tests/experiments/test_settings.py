"""Settings: one declaration, from which the command line, Python and JSON Schema are made."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from experiments.cli.front import command_of, run_command
from experiments.findings.findings import Findings
from experiments.findings.table import Table, data_frame, text_columns
from experiments.settings import (
    ColumnName,
    Names,
    Numbers,
    Option,
    Settings,
    Words,
    declared_in,
    front_door,
)
from tests.refusals import refused


class Common(Settings):
    """What several ask."""

    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of what is drawn."""


class Measure(Common):
    """What is measured."""

    column: ColumnName = None
    """The column."""

    words: Words = ()
    """Words that count."""

    kinds: Names = ("a",)
    """Kinds."""

    at: Numbers = ()
    """Thresholds."""

    how: Literal["plain", "sharp"] = "plain"
    """How it is measured."""

    share: Annotated[float, Field(gt=0, le=1), Option("P", "at-most")] = 0.5
    """The largest share."""

    quick: bool = False
    """Only look."""

    told: Annotated[Any, Option(command_line=False)] = None
    """Something that only a program can give."""


@front_door
def measure(data: str, settings: Measure) -> Findings:
    """Measure what there is.

    More of it, over
    two lines.

    Examples::

        factormodels measure table.csv --how sharp \\
            --quick

    Args:
        data: A table.
        settings: how.
    """
    table = Table(data_frame([{"data": data}]), text_columns("data"))
    asked = settings.model_dump(mode="json")
    return Findings("measure", data, (), {"asked": table}, asked, incomplete=settings.quick)


def asked_for(*arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    import json

    run_command(measure, ["t.csv", *arguments, "--json"])
    settings: dict[str, Any] = json.loads(capsys.readouterr().out)["settings"]
    return settings


def test_every_way_of_asking_gives_the_same_settings(capsys: pytest.CaptureFixture[str]) -> None:
    given = asked_for(
        *("--column", "c", "--words", "x", "--words", "y,z", "--kinds", "b, c", "--kinds", "d"),
        *("--at", "0.5,-1", "--how", "sharp", "--at-most", "1", "--quick", "--seed", "3"),
        capsys=capsys,
    )
    fields: dict[str, Any] = {
        "column": "c", "words": ["x", "y,z"], "kinds": "b,c,d", "at": [0.5, -1],
        "how": "sharp", "share": 1, "quick": True, "seed": 3,
    }  # fmt: skip
    assert measure("t.csv", **fields).settings == given
    assert measure("t.csv", Measure.of(fields)).settings == given
    changed = measure("t.csv", Measure.of(fields), seed=4).settings
    assert changed == {**given, "seed": 4}
    assert asked_for(capsys=capsys) == Measure().model_dump(mode="json")


def test_only_what_is_given_is_given() -> None:
    settings = Measure.of({"seed": 0, "column": None})
    assert settings.model_fields_set == {"seed"}
    assert Measure.of({"seed": 2, "at": 0.25}).given() == {"seed": 2, "at": [0.25]}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--seed", "-1"], "--seed -1: give 0 or more"),
        (["--seed", "x"], "--seed x: give a whole number"),
        (["--at", "0.1,x"], "--at x: give a number"),
        (["--at-most", "0"], "--at-most 0: give more than 0"),
        (["--at-most", "1.5"], "--at-most 1.5: give 1 or less"),
        (["--how", "sharpe"], "--how sharpe is unknown (did you mean 'sharp'?)"),
        (["--sede", "1"], "Unknown option: --sede. Did you mean --seed?"),
        (["--column"], "requires an argument"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments: list[str], sentence: str) -> None:
    refused(re.escape(sentence), run_command, measure, ["t.csv", *arguments])


def test_a_program_is_told_of_arguments() -> None:
    refused("`seed` -1: give 0 or more", measure, "t.csv", seed=-1)
    refused(r"the argument 'sede' is unknown \(did you mean 'seed'\?\)", measure, "t.csv", sede=1)


def test_help_is_made_from_the_declaration(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(measure, ["--help"]) == 0
    shown = capsys.readouterr().out
    told = " ".join(shown.split())
    assert "More of it, over two lines." in told
    assert "    factormodels measure table.csv --how sharp \\\n        --quick" in shown
    for words in (
        "What is measured",
        "What several ask",
        "--seed N",
        "Seed of what is drawn. [default: 0]",
        "One of plain, sharp. [default: plain]",
        "--at-most P",
        "DATA A table. [required]",
        "Write everything as one page",
    ):
        assert words in told, words
    assert "told" not in told.partition("Options")[2]


def test_what_is_missing_is_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(measure, ["t.csv"]) == 0
    assert run_command(measure, ["t.csv", "--quick"]) == 1
    assert "t.csv" in capsys.readouterr().out
    assert command_of(measure).name[0] == "factormodels measure"
    assert declared_in(Measure, "seed") is Common
