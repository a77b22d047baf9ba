"""Settings: one declaration, from which the command line, Python and JSON Schema are made."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

import experiments
from experiments.cli.front import command_of, run_command
from experiments.findings.findings import Findings
from experiments.findings.table import Table, data_frame, text_columns
from experiments.settings import (
    USUAL,
    ColumnName,
    Names,
    Numbers,
    Option,
    Settings,
    Words,
    declared_in,
    front_door,
)
from experiments.settings.backend_settings import AlgorithmSettings
from factormodels.errors import InputError
from tests.refusals import refused


class Common(Settings):
    """Settings that several commands share."""

    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of what is drawn."""


class Measure(Common):
    """Measurement."""

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

    weight: Annotated[Any, Option(command_line=False)] = None
    """Something that only a program can give."""


@front_door
def measure(data: str, settings: Measure) -> Findings:
    """Measure what there is.

    More of it, over
    two lines.

    Examples::

        measure("table.csv", how="sharp",
            quick=True)

    Args:
        data: A table.
        settings: how.
    """
    table = Table(data_frame([{"data": data}]), text_columns("data"), "Data.")
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


def test_what_a_setting_means_is_written_once() -> None:
    written = defaultdict[tuple[str, str], list[str]](list)
    for path in sorted(Path(experiments.__file__).parent.rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for kind in (node for node in nodes if isinstance(node, ast.ClassDef)):
            for field, below in pairwise(kind.body):
                if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                    name = f"{path.stem}.{kind.name}"
                    words = " ".join(ast.unparse(below).split())
                    written[ast.unparse(field.target), words].append(name)
    assert len(written) > 300
    assert {what: names for what, names in written.items() if len(names) > 1} == {}


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
        ("--at 95%", "--at 95%: give a share, such as 0.95"),
        ("--at-most 0", "--at-most 0: give more than 0"),
        ("--at-most 1.5", "--at-most 1.5: give 1 or less"),
        ("--at-most nan", "--at-most nan: give a number"),
        ("--how sharpe", "--how sharpe is unknown (did you mean 'sharp'?)"),
        ("--sede 1", "the option --sede is unknown (did you mean '--seed'"),
        ("--column", "--column: the value is missing; write --column COLUMN"),
    ],
)
def test_errors_are_one_sentence(arguments: str, sentence: str) -> None:
    refused(re.escape(sentence), run_command, measure, ["t.csv", *arguments.split()])


def test_errors_name_the_arguments_of_python() -> None:
    refused("`seed` -1: give 0 or more", measure, "t.csv", seed=-1)
    refused(r"the argument 'sede' is unknown \(did you mean 'seed'", measure, "t.csv", sede=1)
    # Options of every command are arguments of what a result does with its tables.
    refused(r"rename is not an argument here; use save\(PATH, rename=", measure, "t", rename={})


def test_help_is_made_from_the_declaration(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(measure, ["--help-all"]) == 0
    shown = capsys.readouterr().out
    text = " ".join(shown.split())
    assert "More of it, over two lines." in text
    assert "    factormodels measure table.csv --how sharp --quick\n" in shown
    for words in (
        "Measurement",
        "Settings that several commands share",
        "--seed N",
        "Seed of what is drawn. [default: 0]",
        "One of plain, sharp. [default: plain]",
        "--at-most P",
        "DATA A table.",
        "Write everything as an HTML page",
    ):
        assert words in text, words
    assert "weight" not in text.partition("[OPTIONS]")[2]


def test_missing_results_set_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(measure, ["t.csv"]) == 0
    assert run_command(measure, ["t.csv", "--quick"]) == 1
    assert "t.csv" in capsys.readouterr().out
    assert command_of(measure).name[0] == "factormodels measure"
    assert declared_in(Measure, "seed") is Common


class Search(AlgorithmSettings):
    """Search."""

    retriever: Annotated[str, Option("NAME"), USUAL] = "local"
    """Where. The web is a place too."""

    top_k: Annotated[int, Field(ge=1)] = 3
    """Passages. See also --seed."""

    queries: Annotated[bool | None, USUAL] = None
    """Whether a model writes them."""

    seed: int = 0
    """Seed of what is drawn."""

    words: Words = ()
    """Words that count."""


@front_door
def search(data: str, settings: Search) -> Findings:
    """Search, with --top-k passages.

    There is more to say.

    Examples::

        search("a")
        search("b", top_k=2)
        search("c", words=["x", "y z"], queries=False).save("found")
        search("d")
    """
    if settings.seed < 0:
        raise InputError("--seed is from 0; --no-queries and --retriever stay")
    return Findings(data, ("Give --top-k.",))


class Read(Settings):
    """Reading."""

    text: Annotated[str | None, Option(command_line=False)] = None
    """A text in place of the data."""


@front_door
def read_text_or_data(data: str | None = None, *, settings: Read) -> Findings:
    """Read data or a text.

    Examples::

        read_text_or_data("a.txt")

    Args:
        data: The data.
        settings: options.
    """
    return Findings(str(data if settings.text is None else settings.text), ("Read.",))


def test_a_text_stands_for_the_data_in_python_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert read_text_or_data(text="It opened.").source == "It opened."
    assert read_text_or_data("a.txt").source == "a.txt"
    assert run_command(read_text_or_data, ["a.txt"]) == 0
    assert run_command(read_text_or_data, ["--help"]) == 0
    help_ = capsys.readouterr().out
    assert "read-text-or-data DATA [OPTIONS]" in help_
    assert "--text" not in help_
    refused("DATA is missing; write factormodels read-text-or-data DATA",
            run_command, read_text_or_data, [])  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ("--top-k 5 --retriever web --queries", {"retriever": "web", "top_k": 5, "queries": True}),
        ("--no-queries --seed=4 --words a", {"queries": False, "seed": 4, "words": ["a"]}),
        ("--config kept.yaml", {"top_k": 7, "words": ["x", "y"], "seed": 1}),
        ("--seed 2 --config kept.yaml", {"top_k": 7, "words": ["x", "y"], "seed": 2}),
        (
            "--config kept.yaml --config later.yaml --words z",
            {"top_k": 8, "words": ["z"], "seed": 1},
        ),
        (
            "--backend lbp,damping=0.5,schedule=residual",
            {"backend": "lbp", "backend_settings": {"damping": 0.5, "schedule": "residual"}},
        ),
        (
            "--max-iterations 9 --backend lbp,damping=0.5",
            {"backend": "lbp", "backend_settings": {"damping": 0.5, "max_iterations": 9}},
        ),
        (
            "--config backend.yaml --damping 0.25",
            {"backend": "lbp", "backend_settings": {"damping": 0.25, "max_iterations": 9}},
        ),
    ],
)
def test_options_and_files_give_fields(
    arguments: str, given: Mapping[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "kept.yaml").write_text("top-k: 7\nwords: [x, y]\nseed: 1\n")
    (folder / "later.yaml").write_text("top-k: 8\n")
    (folder / "backend.yaml").write_text("backend: lbp\nmax-iterations: 9\ndamping: 0.5\n")
    run_command(search, ["t", *arguments.split(), "--json"])
    content = json.loads(capsys.readouterr().out)["settings"]
    assert content == {**Search().model_dump(mode="json"), **given}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("t --top-k 0", "--top-k 0: give 1 or more"),
        ("t --retriever a --retriever b", "--retriever is given 2 times; keep one"),
        ("t --seed -1", "--seed is from 0; --no-queries and --retriever stay"),
        ("t --seed", "--seed: the value is missing; write --seed N (see factormodels search"),
        ("t --queries=3", "--queries: this option takes no value; leave '3' out"),
        ("t --sede 1", "the option --sede is unknown (did you mean '--seed'"),
        ("t --sede", "the option --sede is unknown (did you mean '--seed'"),
        ("t --top-kk 1 --backend lbp", "the option --top-kk is unknown (did you mean '--top-k'"),
        ("t --dampng 1 --backend lbp", "the option --dampng is unknown (did you mean '--damping'"),
        ("t --damping 1 --backend lbp,damping=1", "--damping is given 2 times; keep one"),
        ("t u", "'u': factormodels search takes DATA besides options; leave it out"),
        ("t u v", "'u', 'v': factormodels search takes DATA besides options; leave them out"),
        ("t --json --json", "--json is given 2 times; keep one"),
        ("t --queries --no-queries", "--queries and --no-queries contradict each other; keep one"),
        ("t --top-k.x 1", "the option --top-k.x is unknown (did you mean '--top-k'"),
        ("", "DATA is missing; write factormodels search DATA (see factormodels search --help)"),
        ("t --config bad.yaml", "bad.yaml: the option 'sede' is unknown (did you mean 'seed'"),
        ("t --config spelled.yaml", "the option 'top_k' is unknown (did you mean 'top-k'"),
        ("t --config wrong.yaml", "wrong.yaml: --top-k few: give a whole number"),
        ("t --config wrong.yaml --top-k 0", "--top-k 0: give 1 or more"),
        ("t --config list.yaml", "list.yaml: the file is not a mapping; write OPTION: VALUE"),
        ("t --config absent.yaml", "absent.yaml: there is no such file"),
        ("t --rename a", "--rename a: give NAME=TEXT, such as --rename gpt-4o=GPT-4o"),
        (
            "t --backend lbp --damping",
            "--damping: the value is missing; write --damping VALUE",
        ),
    ],
)
def test_errors_of_words_or_files_are_one_sentence(
    arguments: str, sentence: str, folder: Path
) -> None:
    (folder / "bad.yaml").write_text("sede: 1\n")
    (folder / "spelled.yaml").write_text("top_k: 1\n")
    (folder / "wrong.yaml").write_text("top-k: few\n")
    (folder / "list.yaml").write_text("- 1\n")
    refused(re.escape(sentence), run_command, search, arguments.split())


def test_a_backend_is_imported_for_options_of_its_own_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def names(backend: str) -> tuple[str, ...]:
        asked.append(backend)
        return ("damping",)

    monkeypatch.setattr("experiments.cli.front.setting_names", names)
    run_command(search, ["t", "--top-k", "5", "--backend", "lbp"])
    assert asked == []
    run_command(search, ["t", "--damping", "0.5", "--backend", "lbp"])
    assert asked == ["lbp"]
    capsys.readouterr()


def test_sentences_name_arguments_in_python() -> None:
    refused("`top_k` 0: give 1 or more", search, "t", top_k=0)
    assert search("t", top_k=2).sentences == ("Give `top_k`.",)
    assert search("t", backend="lbp", backend_settings={"damping": 0.5}).settings == (
        search("t", backend="lbp,damping=0.5").settings
    )


def test_help_is_what_is_usual_and_help_all_is_everything(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_command(search, ["--help"])
    short = capsys.readouterr().out
    assert "  --retriever NAME        Where. [default: local]\n" in short
    assert short.count("    factormodels search ") == 3
    assert "  --help-all     Show every option.\n" in short
    run_command(search, ["--help-all"])
    whole = capsys.readouterr().out
    assert "--retriever NAME" in whole
    assert "search c --words x --words 'y z' --no-queries --out found\n" in whole
    for words in (
        "There is more",
        "Where. The web is a place too.",
        "search d",
        "See also --seed.",
    ):
        assert words in whole, words
        assert words not in short, words
