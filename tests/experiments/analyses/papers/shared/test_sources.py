"""The one file that says where data are: what it may say, and what is said of mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from experiments.analyses.papers.shared.sources import DATA_FILE, VARIABLE, user_data
from factormodels.errors import InputError
from tests.refusals import refused


def write(folder: Path, text: str, name: str = DATA_FILE) -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_nothing_is_known() -> None:
    assert not user_data().paths
    assert not user_data().models


def test_paths_start_at_the_folder_of_the_file(
    bare_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bare_folder / "mine").mkdir()
    (bare_folder / "mine" / "a.jsonl").write_text("", encoding="utf-8")
    text = """
datasets:
  conflicts: a.jsonl
  askh-google: {mixtral: a.jsonl}
models:
  mixtral: {provider: openai/x, cache: answers.sqlite, replay: false}
"""
    path = write(bare_folder, text, "mine/data.yaml")
    for found in (user_data(path), user_data("mine/data.yaml")):
        assert found.paths["conflicts"] == path.parent / "a.jsonl" or found.where.startswith("mine")
        by_model = found.paths["askh-google"]
        assert isinstance(by_model, Mapping)
        place = by_model["mixtral"]
        assert isinstance(place, Path)
        assert place.is_file()
        assert found.models["mixtral"].cache.parent.name == "mine"
        assert not found.models["mixtral"].replay
    monkeypatch.setenv(VARIABLE, str(path))
    assert user_data().where == str(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("datasets: {conflict: a.jsonl}", "did you mean 'conflicts'?"),
        ("dataset: {}", "did you mean 'datasets'?"),
        ("datasets: {conflicts: no.jsonl}", "there is no file"),
        ("datasets: {conflicts: 3}", "3 is not a path"),
        ("datasets: [conflicts]", "is not a mapping"),
        ("models: {m: {provider: x}}", "cache is None"),
        ("models: {m: {provider: x, cache: c, replays: true}}", "did you mean 'replay'?"),
        ("models: {m: {provider: x, cache: c, replay: 1}}", "replay is 1"),
        ("models: {m: {provider: x, cache: c, api_base: 1}}", "api_base is 1"),
        ("datasets: {conflicts", "mend the YAML"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_file(
    bare_folder: Path, text: str, said: str
) -> None:
    write(bare_folder, text)
    with pytest.raises(InputError) as error:
        user_data()
    assert DATA_FILE in str(error.value)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_named_must_exist() -> None:
    refused(r"no\.yaml", user_data, "no.yaml")
