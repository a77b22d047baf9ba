"""Corrections of relations as a key of studies: what they give is what `assess` gives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from calibration.label_bias import VectorScaling
from experiments import assess, run
from experiments.asking.probing import resolved_correction
from experiments.asking.relation_correction import (
    Lesson,
    RelationCorrection,
    write_correction,
)
from experiments.study.prepared.text_models import MEAN, RELATIONS, TextAnswers
from experiments.study.reading import load_study
from experiments.study.rows import read_rows
from experiments.study.runner import design
from factormodels.datasets import load
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.fact_graph import FactGraph
from factormodels.io.store.results import STORE, read_store
from factormodels.metadata.learned_from import ResponseIdentity, identity_of
from tests.experiments.conftest import study_file
from tests.refusals import refused

pytestmark = [pytest.mark.slow]

STUDY = """
study: s
datasets: [{name: demonstration, limit: 3}]
variants: [FR2, FR3]
relation_models: [lexical]
relation_correction: [none, probe, batch, learned.json]
backends: [exact]
measures: [brier]
outputs: [csv]
"""


def learned_file(folder: Path, taught: tuple[ResponseIdentity, ...] = ()) -> None:
    scaling = VectorScaling((0.5, 1.5, 1.0), (1.0, -1.0, 0.0))
    lesson = Lesson("lexical", 40, 1.0, 0.9, taught)
    correction = RelationCorrection("learned.json", scaling=scaling, lesson=lesson)
    write_correction(correction, folder / "learned.json")


def p_of(folder: Path, variant: str, title: str) -> list[float]:
    rows = read_rows(folder / "rows.parquet")
    wanted = (rows["variant"] == variant) & (rows["relation_model"] == title)
    return list(rows[wanted]["p"])


def kept_answers(folder: Path) -> TextAnswers:
    with read_store(folder / STORE, "mend it") as store:
        return TextAnswers.of(store.items("texts"))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corrected")
    learned_file(folder)
    run(study_file(folder, STUDY), out=folder / "out", workers=1)
    return folder / "out"


@pytest.mark.parametrize("variant", ["FR2", "FR3"])
@pytest.mark.parametrize("name", ["none", "batch", "learned.json"])
def test_corrected_cells_are_those_of_assess(here: Path, variant: str, name: str) -> None:
    correction = str(here.parent / name) if name.endswith("json") else name
    judged = assess(
        load("demonstration").graphs[:3],
        relations="lexical",
        variant=variant,
        relation_correction=correction,
    )
    expected = [
        view["p"]
        for graph in judged.graphs
        for view in graph.metadata["assessment"][variant]["atoms"].values()
    ]
    title = "lexical" if name == "none" else f"lexical ({name})"
    # To the last bit but for the order of factors.
    assert p_of(here, variant, title) == pytest.approx(expected, abs=1e-12)
    if name != "none":
        uncorrected = p_of(here, variant, "lexical")
        assert max(abs(np.array(expected) - uncorrected)) > 0.01


def test_the_uncorrected_probabilities_and_the_bias_are_kept(here: Path) -> None:
    answers = kept_answers(here)
    by_title = {}
    for request, answer in answers.by_request.items():
        if (request.variant, request.response) == ("FR2", 0):
            by_title[request.title] = answer["found"]
    plain = {tuple(row[:2]): row[4] for row in by_title["lexical"]}
    for title in ("lexical (probe)", "lexical (learned.json)"):
        assert {tuple(row[:2]): row[5] for row in by_title[title]} == plain
    assert by_title["lexical (batch)"] == by_title["lexical"]
    manifest = json.loads((here / "manifest.json").read_text(encoding="utf-8"))
    asked = manifest["models"]["relation_models"]
    resolved = resolved_correction("probe", LexicalRelations(), None, lambda _: LexicalRelations())
    assert resolved is not None
    assert asked["lexical (probe)"]["correction"] == resolved.facts
    assert "correction" not in asked["lexical"]
    means = [r for r in answers.by_request if r.response == MEAN]
    assert {(request.key, request.title) for request in means} == {(RELATIONS, "lexical (batch)")}


def test_a_mean_that_was_kept_corrects_what_is_asked_again(here: Path) -> None:
    answers = kept_answers(here)
    data = design(load_study(str(study_file(here.parent, STUDY)))).data
    first = answers.related(data)
    # As if the second response had failed then, and were asked for again.
    changed = {
        request: answer | {"found": answer["found"][:3]} if request.response == 1 else answer
        for request, answer in answers.by_request.items()
    }
    again = TextAnswers(changed).related(data)
    for key in (("lexical (batch)", "FR2"), ("lexical (batch)", "FR3")):
        before, after = (graphs[0].related[0][key] for graphs in (first, again))
        assert isinstance(before, FactGraph)
        assert before == after


def test_responses_that_taught_a_correction_are_not_scored_by_it(tmp_path: Path) -> None:
    learned_file(tmp_path, (identity_of(load("demonstration").graphs[1]),))
    text = STUDY.replace("none, probe, batch, ", "").replace("[FR2, FR3]", "[FR2]")
    findings = run(study_file(tmp_path, text), out=tmp_path / "out", workers=1)
    assert findings.incomplete
    sentences = " ".join(findings.sentences)
    assert "its own labels trained the correction learned.json" in sentences
    rows = read_rows(tmp_path / "out" / "rows.parquet")
    assert rows.groupby("response", sort=False)["p"].count().gt(0).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[lexical]", "[recorded]"), "corrects new relations"),
        (("learned.json", "absent.json"), "relation_correction.*absent.json"),
        (("[none,", "[none, none,"), "relation_correction"),
    ],
)
def test_a_correction_that_cannot_be_applied_is_refused(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    learned_file(tmp_path)
    file = study_file(tmp_path, STUDY.replace(*change))
    refused(message, lambda: design(load_study(str(file))))
