"""The file that names locations of data: its contents, and messages on mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.analyses.user_data import DATA_FILE, SOURCES, VARIABLE, user_data
from factormodels import datasets
from factormodels.errors import InputError
from tests.experiments.conftest import invoke
from tests.refusals import refused

STUDY = "papers/core-relation-models"


@pytest.fixture(autouse=True)
def bare_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


def test_without_a_file_embedded_data_stand_for_every_source() -> None:
    assert not user_data().paths
    assert set(SOURCES.values()) <= set(datasets.names())
    assert "Data: demonstration, which is embedded" in invoke("run", STUDY).stdout


def test_paths_start_at_the_folder_of_the_file(
    bare_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_folder = bare_folder / "mine"
    data_folder.mkdir()
    (data_folder / "a.jsonl").write_text("", encoding="utf-8")
    text = "datasets: {core-responses: a.jsonl, self-judged: {GPT-4: a.jsonl, GPT-3: selfcheck}}"
    (data_folder / "data.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setenv(VARIABLE, str(data_folder / "data.yaml"))
    choices = user_data()
    assert choices.where == str(data_folder / "data.yaml")
    assert choices.places("core-responses") == {"": data_folder / "a.jsonl"}
    # An embedded dataset may be named too; a file goes before a dataset of its name.
    assert choices.places("self-judged") == {"GPT-4": data_folder / "a.jsonl", "GPT-3": "selfcheck"}
    (data_folder / "selfcheck").write_text("{}", "utf-8")
    assert user_data().places("self-judged")["GPT-3"] == data_folder / "selfcheck"
    assert choices.places("fastfact-bench") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("datasets: {core-response: a.jsonl}", "did you mean 'core-responses'?"),
        ("dataset: {}", "did you mean 'datasets'?"),
        ("datasets: {self-judged: no.jsonl}", "there is no file"),
        ("datasets: {self-judged: factscor}", "no embedded dataset of that name"),
        ("datasets: {self-judged: 3}", "3 is not a path"),
        ("datasets: [self-judged]", "is not a mapping"),
        ("datasets: {self-judged", "correct the YAML"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_file(
    bare_folder: Path, text: str, message: str
) -> None:
    (bare_folder / DATA_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        user_data()
    assert DATA_FILE in str(error.value)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_named_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "no.yaml")
    refused(r"no\.yaml", user_data)
