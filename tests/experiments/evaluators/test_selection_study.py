"""`factormodels select`: claims before and after selection, by sentence and by position."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import experiments as front_door
from calibration.self_knowledge import IntervalSettings
from experiments.analyses.context import AnalysisContext
from experiments.analyses.ours import core_on_biographies
from experiments.analyses.ours.core_on_biographies import kept_rows
from experiments.analyses.ours.shared.gains_of_padding import BLIND, KNOWN
from experiments.analyses.user_data import DATA_FILE
from experiments.evaluators.robustness import CoreChoices
from experiments.evaluators.selection_study import selection_study, uncertain_rows
from factormodels import Atom, FactGraph, InputError, read_many, write_many
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.selection import Selection, select, subclaims_of
from factormodels.selection.expected import redundancy
from tests.experiments.conftest import invoke
from tests.pages import findings

PAGE = findings()

QUICK = IntervalSettings(n_bootstrap=20)


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


def test_counts_by_sentence_and_factuality_by_position() -> None:
    choices = CoreChoices(LexicalRelations(), "uniform")
    study = selection_study(
        selected(choices, response("g"), response("h")),
        source="here",
        intervals=QUICK,
        n_positions=2,
    )
    assert study.rows.iloc[:, :6].to_numpy().tolist() == [
        ["1", 2, 4, 2, 4, 2],
        ["2", 2, 4, 4, 2, 2],
        ["all", 2, 8, 6, 6, 4],
    ]
    assert study.rows["survival"][0] == 0.5
    assert study.before["factuality"].estimate.tolist() == [1.0, 0.5, 0.75]
    assert study.after["supported_number"].estimate.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(InputError, match="here: two responses have the same id"):
        selection_study(selected(choices, response("g")) * 2, source="here", intervals=QUICK)


@pytest.mark.slow
def test_the_biographies_of_factscore(shared_data: Path) -> None:
    graphs = read_many(shared_data / "factscore_dev" / "ChatGPT.jsonl")
    choices = CoreChoices(LexicalRelations(), domain="people")
    found = selected(choices, *(graph for graph in graphs if graph.atoms))
    study = selection_study(found, source="ChatGPT.jsonl", intervals=QUICK)
    total = study.rows.iloc[-1]
    # The corpus: 974 claims of 31 biographies. Selected: as printed in the findings.
    assert (total.responses, total.before) == (31, 974)
    assert total.after == 683
    assert all(selection.solution.status == "optimal" for _, selection in found)
    # The first sentence holds most of what says nothing (X is a person) or is repeated.
    assert study.rows["survival"].idxmin() == 0
    change = study.after["factuality"].estimate - study.before["factuality"].estimate
    assert change[0] < -0.05
    # How redundant any two claims are held to be: as the page tells.
    pairs = np.concatenate(
        [
            redundancy(selection.entailments)[np.triu_indices(len(selection.claims), 1)]
            for _, selection in found
        ]
    )
    page = " ".join(PAGE.split())
    told = re.search(
        r"of at least (\S+) of being redundant \((\S+) in the median, (\S+) on average\)", page
    )
    assert told is not None
    assert pairs.min() >= float(told[1])
    # Products of two probabilities of a fitted model, to the digits shown.
    assert [float(each) for each in told.groups()[1:]] == pytest.approx(
        [np.median(pairs), pairs.mean()], abs=6e-4
    )
    counts = [
        sum(len(selection.solution.chosen) for _, selection in selected(each, *graphs))
        for each in (
            replace(choices, weights="uniform"),
            replace(choices, rule="both"),
            replace(choices, weights="uniform", rule="both"),
        )
    ]
    assert counts == [691, 768, 806]


@pytest.mark.slow
def test_drawn_entailments_of_the_biographies_are_those_of_the_page(shared_data: Path) -> None:
    section = PAGE.partition("## Which claims count\n")[2].partition("\n## ")[0]
    told = re.search(
        r"`--set samples`\), (\S+) of (\S+) claims per response are expected to count \((\S+) are\s"
        r"selected\s+if each entailment is decided\), with a precision of (\S+) \(plain (\S+)\)",
        section,
    )
    assert told is not None
    assert "--set samples=100\n" in section
    # As the command runs: its seed and weights, so that the same entailments are drawn.
    found: Any = front_door.select(shared_data / "factscore_dev" / "ChatGPT.jsonl", samples=100)
    mean = found["uncertain"].set_index("response").loc["mean"]
    columns = (
        "expected_count", "claims", "plain_count", "expected_precision", "plain_precision"
    )  # fmt: skip
    for text, value in zip(told.groups(), mean[[*columns]].tolist(), strict=True):
        digits = len(text.partition(".")[2])
        # The draws are seeded; sums of another order may round the last digit otherwise.
        assert float(text) == pytest.approx(value, abs=1.001 * 10.0**-digits), text


def test_plain_and_uncertain_selection_stand_side_by_side(tmp_path: Path) -> None:
    choices = CoreChoices(LexicalRelations(), "uniform")
    found = selected(choices, response("g"))
    (told,) = uncertain_rows(found, choices, samples=50, seed=1)
    row = SimpleNamespace(**told)
    assert (row.claims, row.plain_count, row.proved) == (4, 3, True)
    assert row.plain_precision == pytest.approx(2 / 3)
    # The repetition is certain; what else the lexical model holds possible takes a little off.
    assert 2.5 < row.expected_count < 3
    assert row.gain == pytest.approx(1.0)
    assert row.lower <= row.sampled_precision <= row.upper
    again = uncertain_rows(found, choices, samples=50, seed=1)
    assert again == [told]
    path = tmp_path / "in.jsonl"
    write_many([response("g"), response("h")], path)
    result = invoke("select", str(path), "--set", "weights=uniform,samples=20")
    assert "sampled redundancy graphs" in result.output


def test_the_command_writes_tables_and_a_figure(tmp_path: Path) -> None:
    path, own, out = tmp_path / "in.jsonl", tmp_path / "own.json", tmp_path / "out"
    write_many([response("g"), response("h")], path)
    own.write_text(json.dumps({"bridges": ["{topic} is a bridge."]}), encoding="utf-8")
    options = ["--set", f"domain=bridges,templates={own}", "--out", str(out)]
    assert "of 8 claims of 2 responses count" in invoke("select", str(path), *options).output
    rows = list(csv.DictReader((out / "sentences.csv").read_text().splitlines()))
    assert [row["sentence"] for row in rows] == ["1", "2", "all"]
    assert (out / "selection.png").stat().st_size > 1000
    result = invoke("select", str(path), "--set", f"templates={own}", code=2)
    assert "no bleached claims of the domain 'people'" in result.output
    result = invoke("select", str(path), "--set", "rule=none", code=2)
    assert "--set rule none is unknown" in result.output


def test_what_is_kept_by_sentence_is_counted_with_paired_changes() -> None:
    choices = CoreChoices(LexicalRelations(), "uniform")
    rows = {r["sentence"]: r for r in kept_rows([response(n) for n in "ghi"], choices, 1, 0)}
    # Of each response a repetition goes; of the second sentence nothing does.
    assert [rows[name]["kept"] for name in ("1", "from 2", "all")] == [0.5, 1.0, 0.75]
    assert (rows["all"]["claims"], rows["all"]["true"]) == (12, 0.75)
    assert rows["all"]["true_kept"] == pytest.approx(2 / 3)
    assert rows["all"]["change"] == pytest.approx(2 / 3 - 0.75)
    without = FactGraph("w", (Atom("a", "The Xanadu bridge opened.", label=True),))
    with pytest.raises(InputError, match="the atom 'a' does not say which sentence it is from"):
        list(kept_rows([without], choices, 1, 0))


def test_the_study_of_core_pads_in_three_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many([response("g"), response("h")], tmp_path / "own.jsonl")
    (tmp_path / DATA_FILE).write_text("datasets:\n  core-responses: own.jsonl\n")
    monkeypatch.chdir(tmp_path)
    settings = core_on_biographies.Settings(weights="uniform", appended=4)
    context = AnalysisContext("s", 0, tmp_path, "here")
    tables = core_on_biographies.run(settings, context).tables
    gains = tables["gains"].frame.set_index(["judge", "kind"])
    # Four true claims join three of four: 7/8. Who sees through repetition gives it nothing.
    for kind in ("repetitive", "uninformative", "off-topic"):
        assert gains.plain[BLIND, f"{kind}, appended"] == pytest.approx(1 / 8)
    assert gains.core[KNOWN, "repetitive, appended"] == 0
    assert tables["kept"].frame.claims.tolist() == [4, 4, 8]
