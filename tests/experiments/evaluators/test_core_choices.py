"""Setup of Core for a response, and kept claims by position of the sentence."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.analyses.user_data import DATA_FILE
from experiments.evaluators.core_choices import (
    DEMONSTRATION,
    CoreChoices,
    kept_by_sentence,
    subject_of,
)
from factormodels import Atom, FactGraph, datasets, read_many, write_many
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.selection import (
    Selection,
    adjusted_precision,
    domains,
    redundancy,
    select,
    select_expected,
    subclaims_of,
)
from notebooks.questions.core_on_biographies import BLIND, KNOWN, core_on_biographies
from tests.experiments.conftest import invoke
from tests.pages import findings

PAGE = findings()


def response(name: str) -> FactGraph:
    """Two sentences: a claim and its repetition, then another claim and one that is false."""
    texts = [
        ("The Xanadu bridge opened in 1890.", True, 1),
        ("The Xanadu bridge opened in 1890.", True, 1),
        ("Steam engines pull carriages over Kubla river.", True, 2),
        ("Coleridge designed its pillars himself.", False, 2),
    ]
    atoms = (Atom(f"a{k}", text, label=v, sentence=s) for k, (text, v, s) in enumerate(texts))
    return FactGraph(name, tuple(atoms), topic="Xanadu bridge", metadata={"sentences": 2})


def selected(choices: CoreChoices, *graphs: FactGraph) -> list[tuple[FactGraph, Selection]]:
    return [(graph, select(subclaims_of(graph), choices.core(graph))) for graph in graphs]


def kept(
    selections: list[tuple[FactGraph, Selection]], sentences: int = 10
) -> dict[str, Mapping[str, Any]]:
    chosen = [(graph, {claim.id for claim in selection.chosen}) for graph, selection in selections]
    return {row["sentence"]: row for row in kept_by_sentence(chosen, sentences=sentences)}


def test_kept_claims_by_sentence_are_counted_with_paired_changes() -> None:
    choices = CoreChoices(LexicalRelations(), "uniform")
    unplaced = FactGraph("w", (Atom("a", "The Xanadu bridge opened.", label=None),))
    rows = kept(selected(choices, *map(response, "ghi"), unplaced), sentences=1)
    # Of each response a repetition goes; of the second sentence nothing does.
    assert [rows[name]["kept"] for name in ("1", "from 2")] == [0.5, 1.0]
    # A claim without a sentence is among all of them alone, and one without a label is not true.
    assert [rows[name]["claims"] for name in ("1", "from 2", "all")] == [6, 6, 13]
    assert rows["all"]["kept"] == 10 / 13
    assert rows["all"]["true"] == 0.75
    assert rows["all"]["true_kept"] == pytest.approx(2 / 3)
    assert rows["all"]["change"] == pytest.approx(2 / 3 - 0.75)
    assert [row["sentence"] for row in kept_by_sentence([(unplaced, {"a"})])] == ["all"]


def test_every_embedded_response_has_a_subject_of_a_known_domain() -> None:
    assert set(DEMONSTRATION) == {graph.id for graph in datasets.load("demonstration").graphs}
    assert {subject.domain for subject in DEMONSTRATION.values()} <= set(domains())
    assert subject_of(FactGraph("g", (), topic="Ada Lovelace")).name == "Ada Lovelace"


@pytest.fixture(scope="module")
def biographies(shared_data: Path) -> list[FactGraph]:
    graphs = read_many(shared_data / "factscore_dev" / "ChatGPT.jsonl")
    return [graph for graph in graphs if graph.atoms]


PEOPLE = CoreChoices(LexicalRelations(), domain="people")


@pytest.mark.slow
def test_the_biographies_of_factscore(biographies: list[FactGraph]) -> None:
    findings = selected(PEOPLE, *biographies)
    rows = kept(findings)
    # The corpus: 974 claims of 31 biographies. Selected: as printed in the findings.
    assert (len(findings), rows["all"]["claims"]) == (31, 974)
    assert sum(len(selection.chosen) for _, selection in findings) == 683
    assert rows["all"]["kept"] == pytest.approx(683 / 974)
    assert all(selection.solution.status == "optimal" for _, selection in findings)
    # The first sentence holds most of what says nothing (X is a person) or is repeated.
    assert min(rows, key=lambda name: rows[name]["kept"]) == "1"
    assert rows["1"]["change"] < -0.05
    # How redundant any two claims are held to be: as the page says.
    pairs = np.concatenate(
        [
            redundancy(selection.entailments)[np.triu_indices(len(selection.claims), 1)]
            for _, selection in findings
        ]
    )
    page = " ".join(PAGE.split())
    figures = re.search(
        r"of at least (\S+) of being redundant \((\S+) in the median, (\S+) on average\)", page
    )
    assert figures is not None
    assert pairs.min() >= float(figures[1])
    # Products of two probabilities of a fitted model, to the digits shown.
    assert [float(each) for each in figures.groups()[1:]] == pytest.approx(
        [np.median(pairs), pairs.mean()], abs=6e-4
    )
    figures = re.search(
        r"select_expected`\), (\S+) of (\S+) claims per response are expected to count \((\S+) "
        r"are selected if each entailment is decided\), with a precision of (\S+) \(plain (\S+)\)",
        page,
    )
    assert figures is not None
    numbers = []
    for graph, selection in findings:
        weights, plain = selection.program.weights, selection.solution.chosen
        supported = [atom.label is True for atom in graph.atoms]
        best = select_expected(weights, redundancy(selection.entailments), start=plain)
        numbers.append(
            (
                *(best.expected_count, len(graph.atoms), len(plain)),
                *(best.precision(supported), adjusted_precision(supported, plain)),
            )
        )
    for text, value in zip(figures.groups(), np.mean(numbers, axis=0), strict=True):
        digits = len(text.partition(".")[2])
        # The search ends at a count of branchings; another order of sums may round the last digit.
        assert float(text) == pytest.approx(value, abs=1.001 * 10.0**-digits), text


@pytest.mark.slow
def test_other_weights_and_rules_keep_as_many_as_the_page_says(
    biographies: list[FactGraph],
) -> None:
    counts = [
        sum(len(selection.solution.chosen) for _, selection in selected(each, *biographies))
        for each in (
            replace(PEOPLE, weights="uniform"),
            replace(PEOPLE, rule="both"),
            replace(PEOPLE, weights="uniform", rule="both"),
        )
    ]
    assert counts == [691, 768, 806]


def test_the_command_writes_tables_a_figure_and_the_claims_that_count(tmp_path: Path) -> None:
    path, templates, out = tmp_path / "in.jsonl", tmp_path / "own.json", tmp_path / "out"
    write_many([response("g"), response("h")], path)
    templates.write_text(json.dumps({"bridges": ["{topic} is a bridge."]}), encoding="utf-8")
    options = ["--domain", "bridges", "--templates", f"{templates}", "--out", str(out)]
    assert "of 8 claims of 2 responses count" in invoke("select", str(path), *options).output
    rows = list(csv.DictReader((out / "sentences.csv").read_text().splitlines()))
    assert [row["sentence"] for row in rows] == ["1", "2", "all"]
    assert (out / "kept-by-sentence.png").stat().st_size > 1000
    assert [len(graph.atoms) for graph in read_many(out / "graphs.jsonl")] == [
        int(row["selected"])
        for row in csv.DictReader((out / "responses.csv").read_text().splitlines())
    ]
    result = invoke("select", str(path), "--templates", f"{templates}", code=2)
    assert "no bleached claims of the domain 'people'" in result.output
    result = invoke("select", str(path), "--rule", "none", code=2)
    assert "--rule none is unknown" in result.output


def test_the_question_of_core_pads_in_three_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many([response("g"), response("h")], tmp_path / "own.jsonl")
    (tmp_path / DATA_FILE).write_text("datasets:\n  core-responses: own.jsonl\n")
    monkeypatch.chdir(tmp_path)
    tables = core_on_biographies(weights="uniform", appended=4).tables
    gains = tables["gains"].frame.set_index(["judge", "kind"])
    # Four true claims join three of four: 7/8. Who sees through repetition gives it nothing.
    for kind in ("repetitive", "uninformative", "off-topic"):
        assert gains.plain[BLIND, f"{kind}, appended"] == pytest.approx(1 / 8)
    assert gains.core[KNOWN, "repetitive, appended"] == 0
    assert tables["kept"].frame.claims.tolist() == [4, 4, 8]
