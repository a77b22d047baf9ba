"""A value that no option takes: one sentence that names the option, or a file, and the value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pytest

from experiments.cli.front import _fields_by_option, _with_output, naming_options
from experiments.cli.help import is_flag
from experiments.cli.main import COMMANDS, function_named
from experiments.settings import Settings, choices_of, settings_of
from tests.commands import called
from tests.experiments.conftest import EXAMPLE, invoke

pytestmark = pytest.mark.slow

VALUE = "n0nsense"

GIVEN: dict[str, tuple[str, ...]] = {
    "infer": ("graph.json",),
    "assess": ("answers.jsonl", "--documents", "notes"),
    "fastfact": ("answers.jsonl", "--documents", "notes", "--model", "openai/x", "--dry-run"),
    "probe": ("--model", "openai/x", "--dry-run"),
    "self-knowledge": ("judged.jsonl",),
    "score": ("claims.csv", "--bootstrap", "5", "--resamples", "5"),
    "fit": ("labeled.jsonl", "--folds", "0"),
    "apply": ("judge.json", "graph.json"),
    "estimate": ("few.csv",),
    "keep": ("claims.csv", "few.csv"),
    "select": ("graph.json", "--domain", "things"),
    "draw": ("graph.json",),
    "explore": ("graph.json", "--no-browser"),
    "coherence": ("graph.json",),
    "omissions": ("assessed/graphs.jsonl", "--dry-run", "--model", "openai/x"),
    "revise": ("assessed/graphs.jsonl", "--dry-run", "--model", "openai/x"),
    "run": ("study.yaml", "--out", "again"),
    "report": ("done", "--out", "page.html"),
    "diff": ("done", "done"),
    "datasets": ("graph.json",),
    "convert": ("graph.json", "graph.uai"),
    "list": ("backends",),
}
"""What each command is given beside the option."""

OF_PARSERS = re.compile(r"(?<!-)\b(token|pydantic|cyclopts|validation error)s?\b(?!-)", re.I)


@pytest.fixture
def given(folder: Path) -> Path:
    """A folder with what the commands read."""
    (folder / "graph.json").write_text(json.dumps(EXAMPLE))
    answer = {"id": "r", "response": "The bridge opened in 1890.", "question": "When?"}
    (folder / "answers.jsonl").write_text(json.dumps(answer))
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("The bridge opened on 4 March 1890.")
    rows = [(f"0.{at}", at % 3 % 2, f"r{at // 2}", f"c{at}") for at in range(1, 10)]
    for name, labeled in (("claims", 10), ("few", 6)):
        lines = [
            f"{p},{label if at < labeled else ''},{response},{claim}"
            for at, (p, label, response, claim) in enumerate(rows)
        ]
        (folder / f"{name}.csv").write_text("\n".join(["p,label,response,claim", *lines]))
    record = {"response": "r", "sentence": 1, "sentences": 2, "label": "S"}
    claims = [
        {**record, "claim": f"a{at}", "judgments": {"direct_asking": word}}
        for at, word in enumerate(("true", "false"))
    ]
    (folder / "judged.jsonl").write_text("\n".join(map(json.dumps, claims)))
    graphs = [json.loads(json.dumps(EXAMPLE)) | {"id": f"r{at}"} for at in range(4)]
    for at, graph in enumerate(graphs):
        for node in graph["nodes"]:
            if node["type"] == "atom":
                node["label"] = bool(at % 2)
    (folder / "labeled.jsonl").write_text("\n".join(map(json.dumps, graphs)))
    (folder / "study.yaml").write_text(
        "study: s\ndatasets: [{name: worked-examples}]\nbackends: [enumeration]\noutputs: [csv]\n"
    )
    return folder


@pytest.fixture
def made(given: Path, request: pytest.FixtureRequest) -> Path:
    """The same, with the results that the command reads."""
    command = request.node.callspec.params["command"]
    if command in ("report", "diff"):
        invoke("run", "study.yaml", "--out", "done")
    if command in ("omissions", "revise"):
        invoke("assess", "answers.jsonl", "--documents", "notes", "--out", "assessed")
    if command == "apply":
        invoke("fit", "labeled.jsonl", "--folds", "0", "--save", "judge.json")
    return given


def takes_any_text(kind: type[Settings], field: str) -> bool:
    """Return whether nonsense may be a value: a name, a path or a text of the user's own."""
    hint = kind.model_fields[field].annotation
    return not (choices_of(hint) or _is_number(hint))


def _is_number(hint: Any) -> bool:
    """Return whether a type has numbers alone, one or several."""
    if get_origin(hint) is Annotated:
        return _is_number(get_args(hint)[0])
    parts = [each for each in get_args(hint) if each not in (type(None), Ellipsis)]
    return all(map(_is_number, parts)) if parts else hint in (int, float)


def options_of(command: str) -> Iterator[tuple[str, bool]]:
    """Yield the options of a command that take a value, and whether nonsense may be one."""
    kind = _with_output(settings_of(function_named(command)))
    for option, field in _fields_by_option(kind).items():
        if not is_flag(kind, field) and option != "help-all":
            yield option, takes_any_text(kind, field)


def without(words: tuple[str, ...], option: str) -> list[str]:
    """Return the words of a command without an option and its value."""
    if f"--{option}" not in words:
        return [*words]
    at = words.index(f"--{option}")
    return [*words[:at], *words[at + 2 :]]


@pytest.mark.usefixtures("made", "undrawn")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_value_that_is_refused_is_named_with_its_option(command: str) -> None:
    faults = []
    for option, any_text in options_of(command):
        if command == "explore" and any_text:
            # What is accepted is served until a person stops it.
            continue
        result = called(command, *without(GIVEN[command], option), f"--{option}", VALUE)
        sentence = result.stderr.strip().splitlines()[-1] if result.stderr.strip() else ""
        if result.exit_code != 2:
            if not any_text:
                faults.append(f"--{option} {VALUE} is taken")
            continue
        # A file that is named is as good as an option: it holds no such thing, or lacks another.
        files = [*filter(None, GIVEN[command]), VALUE]
        begins = sentence.startswith(tuple(f"factormodels: {file}" for file in files))
        named = f"--{option}" in sentence or begins
        # What is lacking is no fault of the value.
        named |= "is not installed" in sentence
        if not named or OF_PARSERS.search(sentence):
            faults.append(f"--{option}: {sentence}")
    assert faults == []


@pytest.mark.parametrize(
    ("message", "words", "expected"),
    [
        ("the venue 'x' is unknown", "t.csv --venue x", "--venue x: the venue 'x' is unknown"),
        ("the venue 'x' is unknown", "t.csv --venue=x", "--venue x: the venue 'x' is unknown"),
        ("the stage 'b' is unknown", "--stages a,b", "--stages a,b: the stage 'b' is unknown"),
        (
            "'b' is no cause; see --groups",
            "--causes b",
            "--causes b: 'b' is no cause; see --groups",
        ),
        # It says where to look already.
        ("--p x: there is no column 'x'", "t.csv --p x", "--p x: there is no column 'x'"),
        ("t.csv: there is no 'x'", "t.csv --p x", "t.csv: there is no 'x'"),
        # Two options have the value.
        ("'x' is unknown", "--one x --other x", "'x' is unknown"),
        ("the option --x is unknown", "t.csv -x", "the option -x is unknown"),
    ],
)
def test_the_option_of_a_refused_value_is_added(message: str, words: str, expected: str) -> None:
    assert naming_options(message, words.split()) == expected
