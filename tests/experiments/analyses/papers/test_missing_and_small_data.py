"""Studies of the papers without data, which say what they need, and with small files of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.analyses.papers.shared.sources import (
    DATA_FILE,
    SOURCES,
    UserData,
    data_of,
    user_data,
)
from experiments.study.reading import embedded_studies
from factormodels import datasets
from factormodels.errors import InputError
from factormodels.io.plain_yaml import parse_yaml
from tests.experiments.analyses.papers.conftest import (
    PAPER_STUDIES,
    WITHOUT_DATA,
    answer_by_rule,
    run_study,
    small_files,
)
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.models import AnsweringModel

WITH_DATA = sorted(set(PAPER_STUDIES) - set(WITHOUT_DATA))

OF_ANALYSES = {"leaderboard": "fastfact-models", "self-judgement": "self-judged"}
"""The dataset of analyses whose settings name none."""

THEIRS_ALONE = ("papers/fastfact-leaderboard", "papers/self-known-generations")
"""Studies of what no embedded dataset has: counts that people made, and refusals."""

ONE_OF_EACH_KIND = (
    *("papers/core-relation-models", "papers/factreasoner-askh-wikipedia"),
    *("papers/factreasoner-conflicts", "papers/factreasoner-relation-models"),
    *("papers/factreasoner-relations-news", "papers/fastfact-alignment"),
    *("papers/self-known-chatgpt", "papers/self-known-positions", "papers/self-known-retrieval"),
)


def _wanted(study: str) -> str:
    plain = parse_yaml(embedded_studies()[study], study)
    return str(plain["settings"].get("data") or OF_ANALYSES[plain["analysis"]])


@pytest.mark.parametrize("study", THEIRS_ALONE)
def test_without_its_data_a_study_says_what_it_needs_and_writes_nothing(
    study: str, bare_folder: Path
) -> None:
    said = " ".join(invoke("run", study, code=2).stderr.split())
    name = _wanted(study)
    assert f"{study}.yaml: it needs {name}, {SOURCES[name].what}" in said
    assert f"name your file under datasets in {DATA_FILE}" in said
    assert "publishes" in said or "calls" in said
    # One sentence: no full stop that another one follows.
    assert not re.search(r"\. [A-Z]", said)
    assert not list(bare_folder.iterdir())


@pytest.mark.parametrize("study", sorted(set(WITH_DATA) - set(THEIRS_ALONE)))
def test_without_a_file_of_the_users_a_study_has_embedded_data(study: str) -> None:
    name = _wanted(study)
    place, remark = data_of(name, UserData(), study)
    assert set(place.values() if isinstance(place, dict) else [place]) <= set(datasets.names())
    assert f"embedded, in place of {name}; {DATA_FILE} can name yours" in remark


@pytest.mark.parametrize("study", ONE_OF_EACH_KIND)
@pytest.mark.slow
def test_in_an_empty_folder_a_study_runs_on_embedded_data(study: str, bare_folder: Path) -> None:
    results = run_study(study, bare_folder)
    assert results.artefacts.remarks[0].startswith("Data: ")
    published = results.artefacts.tables["published"].frame
    if study == "papers/self-known-positions":
        # The findings page has these of the same labels, read from the owner's file.
        assert list(published["ours"]) == ["0.788", "0.465"]


def test_the_file_of_data_names_embedded_datasets_too(bare_folder: Path) -> None:
    (bare_folder / DATA_FILE).write_text(
        "datasets:\n  core-responses: factscore\n  self-judged: {GPT-3: selfcheck}\n", "utf-8"
    )
    paths = user_data().paths
    assert paths["core-responses"] == "factscore"
    assert paths["self-judged"] == {"GPT-3": "selfcheck"}
    # A file goes before a dataset of its name.
    (bare_folder / "factscore").write_text("{}", "utf-8")
    assert user_data().paths["core-responses"] == Path("factscore")
    (bare_folder / DATA_FILE).write_text("datasets: {core-responses: factscor}\n", "utf-8")
    with pytest.raises(InputError, match="no file factscor and no embedded dataset of that name"):
        user_data()


@pytest.mark.parametrize("study", [*WITH_DATA, *WITHOUT_DATA])
@pytest.mark.slow
def test_a_study_makes_its_tables_of_small_files(
    study: str, bare_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_files(bare_folder)
    if study == "papers/fastfact-strides":
        model = AnsweringModel(answer_by_rule)
        with (bare_folder / DATA_FILE).open("a", encoding="utf-8") as file:
            file.write("models: {mine: {provider: openai/x, cache: answers.sqlite}}\n")
        monkeypatch.setattr(
            "experiments.analyses.papers.chunk_strides.language_model", lambda *_: model
        )
    # The lexical model is not fitted to twelve texts.
    lexical = ["settings.relations=[lexical]"] if "factreasoner-relations-" in study else []
    results = run_study(study, bare_folder, *lexical)
    tables = results.artefacts.tables
    if study != "papers/datasets":
        assert set(tables["published"].frame["ours"]) - {"-"}
    for path in (bare_folder / "out").glob("*.tex"):
        shown_lines = [line for line in path.read_text("utf-8").splitlines() if line[:1] != "%"]
        # What is beyond Latin-1 stops pdfTeX unless it is escaped.
        "".join(shown_lines).encode("latin-1")
    if study in WITH_DATA:
        assert results.artefacts.remarks[0].startswith(f"Data of {DATA_FILE}: ")


def test_a_study_of_extraction_asks_for_a_language_model(bare_folder: Path) -> None:
    small_files(bare_folder)
    result = invoke("run", "papers/fastfact-strides", code=2)
    assert "name one under models in factormodels-data.yaml" in " ".join(result.stderr.split())
    assert not (bare_folder / "results").exists()
