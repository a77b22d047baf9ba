"""Settings: one declaration, from which the command line, Python and JSON Schema are made."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from experiments.cli.front import command_of, run_command
from experiments.findings.findings import Findings
from experiments.findings.table import Table, data_frame, text_columns
from experiments.methods.score import score
from experiments.settings import (
    SET,
    ColumnName,
    Names,
    Numbers,
    Option,
    Settings,
    Words,
    declared_in,
    front_door,
    key_of,
)
from factormodels.errors import InputError
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

    tone: Literal["left", "right"] | None = None
    """Where to look."""

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
    return Findings(data, (), {"asked": table}, incomplete=settings.quick)


def asked_for(*arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
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
    assert measure("t.csv", Measure.from_given(fields)).settings == given
    changed = measure("t.csv", Measure.from_given(fields), seed=4).settings
    assert changed == {**given, "seed": 4}
    assert asked_for(capsys=capsys) == Measure().model_dump(mode="json")


class Web(Settings, together={"search": "*"}):
    """Requests."""

    contact: str = ""
    """Who asks."""


class Searching(Web, together={"search": "at"}):
    """A search of its own."""

    search: str = ""
    """Where."""

    at: str = ""
    """When."""


class Measuring(Web, together={SET: "*"}):
    """A search among others."""

    search: str = ""
    """Where."""


def test_keys_of_what_is_a_key_itself_are_keys_of_the_same_option() -> None:
    assert [key_of(Searching, name) for name in ("search", "at", "contact")] == [
        "",
        *["search"] * 2,
    ]
    assert [key_of(Measuring, name) for name in ("search", "contact")] == [SET, SET]


def test_only_what_is_given_is_given() -> None:
    settings = Measure.from_given({"seed": 0, "column": None})
    assert settings.model_fields_set == {"seed"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--seed -1", "--seed -1: give 0 or more"),
        ("--seed x", "--seed x: give a whole number"),
        ("--tone up", "--tone up is unknown; use one of left, right"),
        ("--at 0.1,x", "--at x: give a number"),
        ("--at-most 0", "--at-most 0: give more than 0"),
        ("--at-most 1.5", "--at-most 1.5: give 1 or less"),
        ("--at-most nan", "--at-most nan: give a number"),
        ("--how sharpe", "--how sharpe is unknown (did you mean 'sharp'?)"),
        ("--sede 1", "Unknown option: --sede. Did you mean --seed?"),
        ("--column", "requires an argument"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments: str, sentence: str) -> None:
    refused(re.escape(sentence), run_command, measure, ["t.csv", *arguments.split()])


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


class Search(Settings, together={"retriever": "top_k queries", "backend": "more", SET: "*"}):
    """How it is searched."""

    retriever: str = "local"
    """Where."""

    top_k: Annotated[int, Field(ge=1)] = 3
    """Passages. See also --seed and --retriever."""

    queries: bool = False
    """Whether a model writes them."""

    backend: str = "auto"
    """How."""

    more: Annotated[tuple[str, ...], Option("KEY=VALUE", rest=True)] = ()
    """A setting of it."""

    seed: int = 0
    """Seed of what is drawn."""

    words: Words = ()
    """Words that count."""


@front_door
def search(data: str, settings: Search) -> Findings:
    """Search, with --top-k passages."""
    if settings.seed < 0:
        raise InputError("--seed is from 0; --no-queries and --retriever stay")
    return Findings(data, ("Give --top-k.",))


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ("--retriever web,top-k=5,queries", {"retriever": "web", "top_k": 5, "queries": True}),
        ("--retriever top-k=5 --retriever a,b", {"retriever": "a,b", "top_k": 5}),
        ("--retriever queries=no,top_k=2", {"queries": False, "top_k": 2}),
        ("--backend lbp,damping=0.5,n=1", {"backend": "lbp", "more": ["damping=0.5", "n=1"]}),
        ("--set words=a,b,words=c --set seed=4", {"words": ["a,b", "c"], "seed": 4}),
        ("--set kept.yaml", {"top_k": 7, "words": ["x", "y"], "seed": 1}),
        ("--set seed=2 --set kept.yaml", {"top_k": 7, "words": ["x", "y"], "seed": 2}),
        ("--set kept.yaml, --retriever top-k=1", None),
        (
            "--top-k 5 --retriever web --queries",
            {"retriever": "web", "top_k": 5, "queries": True},
        ),
        (
            "--no-queries --seed=4 --words a",
            {"queries": False, "seed": 4, "words": ["a"]},
        ),
        ("--set top-k=4,queries --retriever top-k=1", {"top_k": 1, "queries": True}),
    ],
)
def test_keys_of_options_and_files_give_fields(
    arguments: str,
    given: Mapping[str, Any] | None,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "kept.yaml").write_text("top-k: 7\nwords: [x, y]\nseed: 1\n")
    if given is None:
        refused("kept.yaml,: there is no such file", run_command, search, ["t", *arguments.split()])
        return
    run_command(search, ["t", *arguments.split(), "--json"])
    found = json.loads(capsys.readouterr().out)["settings"]
    assert found == {**Search().model_dump(mode="json"), **given}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--retriever web,top-k=0", "--retriever top-k=0: give 1 or more"),
        ("--retriever web,topk=2", "the key 'topk' is unknown (did you mean 'top-k'?)"),
        ("--retriever a --retriever b", "--retriever: it is given 2 times; keep one"),
        ("--set seed=-1", "--set seed is from 0; --retriever queries=no and --retriever stay"),
        ("--set sede=1", "--set sede=1: the key 'sede' is unknown (did you mean 'seed'?)"),
        ("--set bad.yaml", "bad.yaml: the setting 'sede' is unknown (did you mean 'seed'?)"),
        ("--set list.yaml", "list.yaml: a file of settings is a mapping"),
        ("--seed -1", "--set seed is from 0; --retriever queries=no and --retriever stay"),
        ("--seed", "--set seed : give a whole number"),
    ],
)
def test_what_is_wrong_with_a_key_is_one_sentence(
    arguments: str, sentence: str, folder: Path
) -> None:
    (folder / "bad.yaml").write_text("sede: 1\n")
    (folder / "list.yaml").write_text("- 1\n")
    refused(re.escape(sentence), run_command, search, ["t", *arguments.split()])


def test_a_key_without_a_value_is_told_how_it_gets_one() -> None:
    asked = ["table.csv", "--column", "p"]
    refused(
        "--column p: nothing is given for 'p'; write --column p=VALUE", run_command, score, asked
    )


def test_python_is_told_of_fields_whatever_option_they_are_keys_of() -> None:
    refused("`top_k` 0: give 1 or more", search, "t", top_k=0)
    assert search("t", top_k=2).sentences == ("Give --top-k.",)


def test_help_and_sentences_name_keys(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(search, ["--help"])
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for words in (
        "Search, with --retriever top-k passages.",
        "--retriever TEXT,KEY=VALUE Where. [default: local] top-k=N: Passages. See also --set seed "
        "and --retriever. [default: 3] queries: Whether a model writes them.",
        "KEY=VALUE: A setting of it.",
        "--set KEY=VALUE Any of these settings",
    ):
        assert words in told, words
    run_command(search, ["t"])
    assert "Give --retriever top-k." in capsys.readouterr().out
