"""A walk over all commands: what they take, and that each gives what it found in the same ways."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from experiments.cli.examples import shell_example
from experiments.cli.front import command_of, described, words_of
from experiments.cli.main import COMMANDS, function_named
from experiments.settings.backend_settings import setting_names
from tests.experiments.conftest import EXAMPLE, invoke

pytestmark = pytest.mark.slow

OUTPUTS = [
    *("--out PATH", "--report FILE", "--show COLUMN,...", "--rename NAME=TEXT", "--venue NAME"),
    *("--config FILE", "--json", "--help-all"),
]

OUT_TAKES = {"run": "DIR", "explore": "DIR", "report": "FILE"}
"""What --out takes where it is not a folder or a file, as the command wishes."""

ASKED = {
    "infer": ("graph.json",),
    "assess": ("answer.txt", "--documents", "notes"),
    "coherence": ("graph.json",),
    "score": ("claims.csv", "--bootstrap", "20", "--resamples", "20"),
    "select": ("graph.json", "--domain", "things"),
    "self-knowledge": ("judged.jsonl",),
    "draw": ("graph.json",),
    "diff": ("first", "second"),
    "datasets": ("graph.json",),
    "convert": ("graph.json", "graph.uai"),
    "list": ("backends", "lbp"),
}
"""What a command of a name is given; others need a model, a run, or a person at a page."""


@pytest.fixture
def given(folder: Path) -> Path:
    """A folder with what the commands read."""
    (folder / "graph.json").write_text(json.dumps(EXAMPLE))
    (folder / "answer.txt").write_text("The bridge opened in 1890.")
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("The bridge opened on 4 March 1890.")
    rows = [f"0.{i},{i % 3 % 2},r{i // 2}" for i in range(1, 10)]
    (folder / "claims.csv").write_text("\n".join(["p,label,response", *rows]))
    record = {"response": "r", "sentence": 1, "sentences": 2, "label": "S"}
    claims = [
        {**record, "claim": f"a{position}", "judgments": {"direct_asking": word}}
        for position, word in enumerate(("true", "false"))
    ]
    (folder / "judged.jsonl").write_text("\n".join(map(json.dumps, claims)))
    for name in ("first", "second"):
        invoke("infer", "graph.json", "--out", name)
    return folder


def test_every_command_takes_the_same_outputs() -> None:
    for name in COMMANDS:
        taken = [parameter for parameter, _ in described(function_named(name))[1]]
        # The page is the output of `report`: it has no second option for one, and no tables.
        of_tables = OUTPUTS[1:3] + OUTPUTS[4:5] if name == "report" else []
        others = [each for each in OUTPUTS[1:] if each not in of_tables]
        expected = [f"--out {OUT_TAKES.get(name, 'PATH')}", *others]
        assert taken[-len(expected) :] == expected, name
        assert len(taken) == len(set(taken)), name


def test_a_page_refuses_options_of_tables() -> None:
    errors = invoke("report", "done", "--show", "brier", code=2).stderr
    assert "--show: a page shows every column" in errors
    errors = invoke("report", "done", "--venue", "acl", code=2).stderr
    assert "`factormodels run STUDY --resume --venue acl`" in errors


@pytest.mark.usefixtures("given")
@pytest.mark.parametrize("name", OUT_TAKES)
def test_help_says_what_out_takes_and_an_error_asks_for_that(name: str) -> None:
    meaning = dict(described(function_named(name))[1])[f"--out {OUT_TAKES[name]}"]
    is_page = OUT_TAKES[name] == "FILE"
    assert ("this file" in meaning) is is_page
    assert ("this folder" in meaning) is not is_page
    assert "table" not in meaning
    source = "first" if name == "report" else "graph.json"
    refused = invoke(name, source, "--out", "x.csv", code=2)
    assert ("name a file that ends in .html" if is_page else "name a folder") in refused.stderr


def test_every_command_is_called_by_some_test() -> None:
    folder = Path(__file__).parents[1]
    others = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("test_*.py"))
    assert [name for name in COMMANDS if f'"{name}"' not in others] == []
    assert ASKED.keys() <= set(COMMANDS)


# Those of test_self_knowledge.py, test_score.py and test_draw.py have their figures.
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", ASKED)
def test_a_command_gives_what_it_found_as_json_folder_and_page(name: str, given: Path) -> None:
    outputs = ("--json", "--out", "kept", "--report", "page.html")
    printed = invoke(name, *ASKED[name], *outputs).stdout
    content = json.loads(printed)
    assert {"command", "source", "settings", "findings", "incomplete", "tables"} <= content.keys()
    assert content["command"] == name
    assert (given / "kept" / "findings.json").read_text(encoding="utf-8") == printed
    for table, rows in content["tables"].items():
        assert all(isinstance(row, dict) for row in rows)
        assert {f"{table}.{form}" for form in ("csv", "tex", "md")} <= {
            path.name for path in (given / "kept").iterdir()
        }
    page = (given / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") or page.startswith("<!doctype html>")
    assert "<script src" not in page


FENCE = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.M | re.S)
SHOWN = re.compile(r"^(?: {4})?factormodels ((?:.*\\\n)*.*)$", re.M)


def commands_shown() -> Iterator[list[str]]:
    """Every command in the guide, the README and the help, as the shell takes it apart."""
    root = Path(__file__).parents[3]
    for page in (root / "README.md", *(root / "docs").rglob("*.md")):
        for block in FENCE.findall(page.read_text(encoding="utf-8")):
            for line in SHOWN.findall(block):
                yield taken_apart(line)
    for name in COMMANDS:
        for line in SHOWN.findall(inspect.getdoc(function_named(name)) or ""):
            yield taken_apart(line)


def taken_apart(line: str) -> list[str]:
    """The words of a command; none where an argument goes on over several lines."""
    if line.partition(" #")[0].count("'") % 2:
        return [""]
    # Behind some spaces the help of the whole says what a command is for.
    command = re.sub(r"\\\n *", " ", line).partition("   ")[0]
    words = shlex.split(command, comments=True)
    return list(takewhile(lambda word: word not in ("|", "&&", ";", ">"), words))


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_calls_in_python_and_commands_in_the_help(name: str) -> None:
    function = function_named(name)
    text = inspect.getdoc(function) or ""
    block = text.partition("Examples::")[2].partition("\n\nArgs:")[0]
    examples = re.split(r"\n(?=    \S)", block.strip("\n"))
    called = f"{inspect.unwrap(function).__name__}("
    assert examples[0].strip().startswith(called)
    for example in examples:
        node = ast.parse(example.strip(), mode="eval").body
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        assert isinstance(node, ast.Call)
        # Python takes the arguments, and the shell the words that the help makes of them.
        inspect.signature(function).bind(
            *map(ast.literal_eval, node.args),
            **{each.arg: ast.literal_eval(each.value) for each in node.keywords if each.arg},
        )
        shown = shell_example(function, example)
        assert max(map(len, shown.splitlines())) <= 76
        words = words_of(shlex.split(shown.replace("\\\n", " "))[2:])
        command = command_of(function, helps=False, words=words)
        _, bound, *_ = command.parse_args(words, exit_on_error=False, print_error=False)
        others = {each.replace("-", "_") for each in bound.kwargs} - {*bound.signature.parameters}
        assert not others, example


def test_every_command_that_we_show_takes_its_options() -> None:
    shown = Counter[str]()
    for name, *rest in commands_shown():
        if name not in COMMANDS:
            continue
        # As the program does, which makes the options alone that a call has.
        words = words_of(rest)
        command = command_of(function_named(name), helps=False, words=words)
        _, bound, *_ = command.parse_args(words, exit_on_error=False, print_error=False)
        others = bound.kwargs.keys() - bound.signature.parameters.keys()
        backend = (bound.kwargs.get("backend_") or ["auto"])[0].partition(",")[0]
        assert {each.replace("-", "_") for each in others} <= {*setting_names(backend)}, rest
        shown[name] += 1
    assert shown.keys() == set(COMMANDS)
