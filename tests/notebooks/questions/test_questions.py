"""Scripts that answer questions: what each says of itself, its options, and its tables in small."""

from __future__ import annotations

import ast
import csv
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from experiments.findings.artifacts import Artifacts
from factormodels import datasets, write_many
from factormodels.io.relation_record import record_text
from notebooks.questions.does_it_matter import does_it_matter
from notebooks.questions.encodings import encodings
from notebooks.questions.few_calls import few_calls
from notebooks.questions.few_labels import few_labels
from notebooks.questions.i_bound import i_bound
from notebooks.questions.kept_claims import kept_claims
from notebooks.questions.kept_groups import SATURATED, kept_groups
from notebooks.questions.labels_once import labels_once
from notebooks.questions.prior_intervals import prior_intervals
from notebooks.questions.real_graphs import View, compared
from notebooks.questions.relation_prompts import relation_prompts
from notebooks.questions.relation_transfer import relation_transfer
from notebooks.questions.shift_harm import shift_harm
from notebooks.questions.skewed_responses import skewed_responses
from notebooks.questions.small_local_model import small_local_model

ROOT = Path(__file__).resolve().parents[3]

SCRIPTS = sorted((ROOT / "notebooks" / "questions").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_begins_with_its_question_and_calls_no_other(script: Path) -> None:
    tree = ast.parse(script.read_text("utf-8"))
    docstring = ast.get_docstring(tree) or ""
    assert docstring.partition("\n")[0].endswith("?")
    assert all(f"\n{word}: " in docstring for word in ("Question", "Data", "Rival"))
    assert f"    python notebooks/questions/{script.name}" in docstring
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith(("notebooks", "tests"))
            assert not any(alias.name.startswith("_") for alias in node.names)
    # The function of its name is what the command calls.
    assert script.stem in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_list_of_scripts_has_every_script_with_its_question() -> None:
    listed = (ROOT / "notebooks" / "README.md").read_text("utf-8")
    for path in SCRIPTS:
        question = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
        assert f"| [{path.stem}](questions/{path.name}) | {question} |\n" in listed


def script(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a command."""
    path = ROOT / "notebooks" / "questions" / name
    return subprocess.run(
        [sys.executable, path, *words], capture_output=True, text=True, check=False
    )


def test_a_script_writes_what_it_finds(tmp_path: Path) -> None:
    out = tmp_path / "out"
    few = ("--data", "at-odds", "--no-lexical", "--shares", "0.5", "--decisive", "0.5")
    result = script("few_calls.py", *few, "--out", f"{out}")
    assert result.returncode == 0, result.stderr
    names = {path.name for path in out.iterdir()}
    assert {"kept.csv", "kept.md", "kept.tex"} <= names
    assert str(out / "kept.csv") in result.stdout
    assert "<!-- study few-calls; config sha256 " in (out / "kept.md").read_text("utf-8")


# A script reads its options from sys.argv, which cyclopts takes for a mistake in a test.
@pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--data", "nowhere.jsonl"), "nowhere.jsonl"),
        (("--splits", "3"), "--splits"),
    ],
)
def test_a_wrong_option_writes_nothing(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    path = f"{ROOT}/notebooks/questions/few_calls.py"
    monkeypatch.setattr(sys, "argv", [path, *words, "--out", f"{out}"])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(path, run_name="__main__")
    assert end.value.code not in (None, 0)
    assert message in "".join(capsys.readouterr())
    assert not out.exists()


def small_views() -> Artifacts:
    graphs = datasets.load("factscore").graphs[:12]
    views = (View("FR1", "implication", ("cavi",)), View("FR2", "implication", ("lbp",)))
    return compared({"factscore": (graphs, views)}, (1.0, 4, 5), 0)


def of_six_responses(folder: Path, name: str) -> str:
    """Write the answers of an embedded record about six responses, and return the file."""
    record = datasets.relation_record(name)
    responses = dict.fromkeys(answer.response for answer in record.answers if answer.response)
    kept = {"", *list(responses)[:6]}
    answers = [answer for answer in record.answers if answer.response in kept]
    path = folder / f"{name}.jsonl"
    path.write_text(record_text(record.origin, answers), encoding="utf-8")
    return str(path)


def few_recorded_responses() -> Artifacts:
    model = "qwen2.5-coder-1.5b-instruct"
    # Ten sources of relations have trees and fields in several folds each: here they search no
    # settings.
    with (
        TemporaryDirectory() as folder,
        patch("calibration.learned_potentials.methods._INNER_FOLDS", 1),
        patch("calibration.learned_potentials.fitting._INNER_FOLDS", 1),
    ):
        few = [
            of_six_responses(Path(folder), f"{dataset}.{model}")
            for dataset in ("factcheck-bench", "factscore")
        ]
        return small_local_model(records=("factcheck-bench.lexical", *few), folds=2)


def labels_of_some_biographies() -> Artifacts:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "biographies.jsonl"
        write_many(datasets.load("factscore").graphs[:24], path)
        return labels_once(data=path, labels=(12,), draws=1)


def shift_among_few_responses() -> Artifacts:
    few = {
        name: SimpleNamespace(graphs=datasets.load(name).graphs[:24])
        for name in ("factscore", "factcheck-bench")
    }
    with patch.object(datasets, "load", few.__getitem__):
        return shift_harm(learned=12, bootstrap=3)


SMALL: dict[str, Callable[[], Artifacts]] = {
    "few-calls": lambda: few_calls(data=(Path("at-odds"),), decisive=(0.5, 0.9)),
    "kept-claims": lambda: kept_claims(data=(Path("selfcheck"),), precisions=(0.7,), splits=4),
    "kept-groups": lambda: kept_groups(data=(SATURATED,), splits=2),
    "few-labels": lambda: few_labels(labels=(20,), designs=("responses",), draws=3),
    "labels-once": labels_of_some_biographies,
    "prior-intervals": lambda: prior_intervals(
        worlds=("one passage per source",), responses=(12,), draws=2
    ),
    "relation-prompts": relation_prompts,
    "relation-transfer": lambda: relation_transfer(folds=2),
    "shift-harm": shift_among_few_responses,
    "skewed-responses": lambda: skewed_responses(
        worlds=("even",), labels=(10,), quantities=("share", "score: auroc"), draws=2
    ),
    "small-local-model": few_recorded_responses,
    "real-graphs": small_views,
}
"""Answers whose tables are kept in docs/results, with little work."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        # Its posteriors are learned on all biographies.
        pytest.param(name, marks=pytest.mark.nightly) if name == "few-labels" else name
        for name in SMALL
    ],
)
def test_kept_tables_have_the_columns_of_the_script(name: str) -> None:
    made = SMALL[name]()
    for stem, table in made.tables.items():
        with (ROOT / "docs" / "results" / name / f"{stem}.csv").open(encoding="utf-8") as file:
            assert next(csv.reader(file)) == [*map(str, table.frame.columns)], stem


@pytest.mark.slow
def test_open_questions_are_answered_in_small() -> None:
    moved = does_it_matter(data=(Path("demonstration"),), drawn=0).tables["effects"].frame
    assert moved["backend"].tolist() == ["lbp", "wmb-6", "wmb-2", "wmb-1", "trw", "cavi"]
    by_bound = i_bound(i_bounds=(1, 4), graphs=1).tables["i-bound"].frame
    assert len(by_bound) == 6
    assert (by_bound["held"] == 1.0).all()
    compared_encodings = encodings(data=(Path("demonstration"),), drawn=0).tables["encodings"].frame
    assert set(compared_encodings["truth"]) == {"own labels"}


# Of those that need no file of an owner's and take seconds.
@pytest.mark.nightly
@pytest.mark.parametrize("name", ["few-calls", "kept-claims", "claims-relations"])
def test_a_script_gives_what_is_kept(name: str, tmp_path: Path) -> None:
    result = script(f"{name.replace('-', '_')}.py", "--out", f"{tmp_path}")
    assert result.returncode == 0, result.stderr
    for path in (ROOT / "docs" / "results" / name).glob("*.csv"):
        with path.open(encoding="utf-8") as file, (tmp_path / path.name).open() as other:
            for row, made in zip(csv.DictReader(file), csv.DictReader(other), strict=True):
                for column, cell in row.items():
                    try:
                        wanted = float(cell)
                    except ValueError:
                        assert made[column] == cell
                    else:
                        assert float(made[column]) == pytest.approx(wanted, abs=1e-6)
