"""`--out` of every command: a folder, or one file of the kind that its suffix names."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments.cli import front
from experiments.cli.main import COMMANDS, function_named
from experiments.destination import FILE_FORMS, FILES_MEANING, form_of
from experiments.evaluators import assess as assessing
from experiments.evaluators.batches.batch import assess_responses
from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as
from experiments.settings import settings_of
from factormodels.errors import InputError
from factormodels.io import read_many
from tests.commands import Called
from tests.experiments.conftest import EXAMPLE, invoke

SEVERAL = {name for name in COMMANDS if settings_of(function_named(name)).writes_several_files}

FOUND = Findings(
    "t.csv",
    ("A sentence.",),
    {"scores": Table([{"name": "a", "n": 2}, {"name": "b", "n": None}], columns_as("name | n:0"))},
)


@pytest.fixture
def calls(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the functions that commands have called, in a folder with what they read."""
    made: list[str] = []

    def note(function: Callable[..., Findings], *_: Any) -> Findings:
        made.append(inspect.unwrap(function).__name__)
        return FOUND

    monkeypatch.setattr(front, "found_by", note)
    (folder / "graph.json").write_text(json.dumps(EXAMPLE))
    (folder / "claims.csv").write_text("p,label\n0.5,1\n")
    (folder / "taken").mkdir()
    (folder / "taken.csv").mkdir()
    return made


def arguments_of(name: str) -> list[str]:
    """An existing file for every required argument of a command."""
    parameters = inspect.signature(inspect.unwrap(function_named(name))).parameters.values()
    needed = [each for each in parameters if each.name != "settings"]
    # In Python the text of responses may stand in their place.
    return [
        "graph.json"
        for each in needed
        if each.default is inspect.Parameter.empty or each.name == "responses"
    ]


def asked(name: str, *options: str, code: int = 0) -> Called:
    return invoke(name, *arguments_of(name), *options, code=code)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_destination_is_refused_before_anything_is_computed(name: str, calls: list[str]) -> None:
    before = sorted(Path().rglob("*"))
    refusals = {
        "x.xlsx": "not written as .xlsx; name a folder, or a file that ends in .csv",
        "x.csv.gz": "not written as .gz; name a folder, or a file",
        "claims.csv/x": "is a file",
        "-": "--json",
    }
    if name not in SEVERAL:
        refusals |= {"taken.csv": "is a folder", "absent/x.csv": "absent does not exist"}
    else:
        refusals |= {
            f"x{suffix}": f"writes several files, and {suffix} names a single one; name a folder"
            for suffix in (".csv", ".xlsx", ".html")
        }
        refusals["x.csv.gz"] = ".gz names a single one; name a folder"
    if settings_of(function_named(name)).writes_page:
        refusals = dict.fromkeys(("x.xlsx", "x.csv", "-"), "name a file that ends in .html")
        refusals |= {"taken.csv": "is a folder", "absent/x.html": "absent does not exist"}
    for path, sentence in refusals.items():
        message = asked(name, "--out", path, code=2).stderr
        assert message.startswith(f"factormodels: --out {path}: "), message
        assert sentence in message
    assert not calls
    assert sorted(Path().rglob("*")) == before


def test_help_names_every_file_that_a_destination_can_be() -> None:
    assert set(re.findall(r"\.[a-z]+\b", FILES_MEANING)) == {*FILE_FORMS}


@pytest.mark.parametrize("path", ["page.pdf", "page", "page.csv"])
def test_a_page_is_named_as_one(path: str, calls: list[str]) -> None:
    message = asked("score", "--report", path, code=2).stderr
    assert f"--report {path}: a page is a single file; name a file that ends in .html" in message
    assert not calls


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_an_empty_path_is_no_destination(option: str, calls: list[str]) -> None:
    # What a shell makes of a variable that is not set.
    assert "give a path that is not empty" in asked("score", option, "", code=2).stderr
    assert not calls


@pytest.mark.parametrize("name", [each for each in COMMANDS if arguments_of(each)])
@pytest.mark.parametrize("option", ["--out", "--report"])
def test_no_command_replaces_what_it_reads(name: str, option: str, calls: list[str]) -> None:
    Path("link.json").symlink_to("graph.json")
    before = Path("graph.json").read_bytes()
    # Each option knows the file by all of its names.
    others = ("./graph.json", "taken/../graph.json", "link.json") if name == "infer" else ()
    for path in ("graph.json", *others):
        asked(name, option, path, code=2)
    assert not calls
    assert Path("graph.json").read_bytes() == before


@pytest.mark.parametrize("form", FILE_FORMS)
def test_one_file_holds_the_first_table(form: str, calls: list[str]) -> None:
    for path in (Path(f"x{form}"), Path(f"X{form.upper()}")):
        asked("score", "--out", str(path))
        assert path.is_file()
    assert calls == ["score", "score"]
    path = Path(f"x{form}")
    match form:
        case ".csv":
            frame = pd.read_csv(path)
        case ".parquet":
            frame = pd.read_parquet(path)
        case ".jsonl":
            frame = pd.read_json(path, lines=True)
        case ".json":
            document = json.loads(path.read_text())
            assert document["findings"] == ["A sentence."]
            frame = pd.DataFrame(document["tables"]["scores"])
        case _:
            cells = {".tex": "a & 2", ".md": "| a | 2 |"}[form]
            assert cells in path.read_text()
            return
    assert list(frame["name"]) == ["a", "b"]
    assert frame["n"].tolist()[0] == 2
    assert frame["n"].isna().tolist() == [False, True]


def test_a_column_of_several_types_is_written_as_text(folder: Path) -> None:
    mixed = Table([{"value": 1.5}, {"value": "many"}, {"value": None}], columns_as("value"))
    Findings("t", tables={"mixed": mixed}).save(folder / "x.parquet")
    values = pd.read_parquet("x.parquet")["value"]
    assert values.tolist()[:2] == ["1.5", "many"]
    assert values.isna().tolist() == [False, False, True]


def test_any_other_suffix_may_end_the_name_of_a_folder() -> None:
    assert [form_of(path) for path in ("o/llama3.1", "2026.11.28", "out", "a.b/c")] == [""] * 4


OPTIONS = ("--atoms", "given", "--retriever", "given", "--relations", "lexical")


def test_responses_go_to_a_file_and_an_interrupted_batch_resumes_beside_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("g.jsonl").write_text(
        "\n".join(json.dumps({**EXAMPLE, "id": name, "edges": []}) for name in "abc")
    )
    command = ("assess", "g.jsonl", *OPTIONS, "--out", "x.jsonl")

    def stop_after_the_first(*_: Any) -> None:
        raise KeyboardInterrupt

    def interrupted(*arguments: Any, **named: Any) -> Any:
        return assess_responses(*arguments, **{**named, "report": stop_after_the_first})

    monkeypatch.setattr(assessing, "assess_responses", interrupted)
    errors = invoke(*command, code=130).stderr
    assert "interrupted; 1 of 3 responses is finished; the same command continues" in errors
    assert [path.name for path in Path().glob(".x.jsonl.*")] == [".x.jsonl.store.sqlite"]
    assert not Path("x.jsonl").exists()
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    printed = invoke(*command).stdout
    assert "1 response was finished by an earlier run" in printed
    assert [graph.id for graph in read_many("x.jsonl")] == ["a", "b", "c"]
    assert all(graph.metadata["assessment"] for graph in read_many("x.jsonl"))
    assert "wrote x.jsonl" in printed
    assert sorted(path.name for path in Path().iterdir()) == ["g.jsonl", "x.jsonl"]
    invoke(*command[:-1], "x.csv")
    assert list(pd.read_csv("x.csv")["response"].unique()) == ["a", "b", "c"]


def test_files_that_a_setting_names_are_checked_in_python_too(folder: Path) -> None:
    from experiments import fit, keep

    (folder / "claims.csv").write_text("p,label\n0.5,1\n")
    with pytest.raises(InputError, match=r"absent does not exist"):
        fit("absent.jsonl", save="absent/judge.json")
    with pytest.raises(InputError, match="would replace it"):
        keep("claims.csv", "claims.csv", answers="claims.csv")
