"""Studies of the papers without data, which say what they need, and with small files of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.analyses.papers.shared.sources import DATA_FILE, SOURCES
from experiments.study.reading import embedded_studies
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


@pytest.mark.parametrize("study", WITH_DATA)
def test_without_its_data_a_study_says_what_it_needs_and_writes_nothing(
    study: str, bare_folder: Path
) -> None:
    said = " ".join(invoke("run", study, code=2).stderr.split())
    plain = parse_yaml(embedded_studies()[study], study)
    name = plain["settings"].get("data") or OF_ANALYSES[plain["analysis"]]
    assert f"{study}.yaml: it needs {name}, {SOURCES[name].what}" in said
    assert f"name your file under datasets in {DATA_FILE}" in said
    assert "publishes" in said or "calls" in said
    # One sentence: no full stop that another one follows.
    assert not re.search(r"\. [A-Z]", said)
    assert not list(bare_folder.iterdir())


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
