"""The other analyses of the papers' studies: their numbers by another way, and on odd data."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr, ttest_ind

from calibration.claims.counts import f1_at_k_prime
from calibration.self_knowledge import sigma
from experiments.analyses.papers.shared.judged_claims import judged_graphs
from experiments.analyses.papers.shared.published import printed, rows_of
from factormodels.claims import Atom
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from tests.experiments.analyses.papers.conftest import (
    GRAPHS,
    answer_by_rule,
    frames_of,
    run_study,
    say_where,
    small_files,
    write_graphs,
    write_lines,
)
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.io.published import release_records
from tests.refusals import refused

pytestmark = pytest.mark.slow


def test_the_detailed_printed_tables_repeat_the_short_ones() -> None:
    means = printed("factreasoner_tables")
    for short, detailed in (("3", "10"), ("9", "11"), ("6", "13"), ("7", "15")):
        keys = ["model", "assessor", "measure"]
        one, other = (
            rows_of(means, table=number).query("model != 'deepseek-v3'").set_index(keys)["mean"]
            for number in (short, detailed)
        )
        pd.testing.assert_series_equal(one.sort_index(), other.sort_index())


def test_printed_counts_add_up_to_the_atoms() -> None:
    means = printed("factreasoner_tables")
    biographies = rows_of(means, table="3", assessor="FR2").pivot(
        index="model", columns="measure", values="mean"
    )
    total = biographies[["supported", "contradicted", "undecided"]].sum(axis=1)
    # 31 atoms (table 2): three rounded means and a rounded total, each off by a half at most.
    assert (total - 31).abs().max() <= 2


def test_a_printed_p_value_is_that_of_data_with_the_printed_means(bare_folder: Path) -> None:
    tables = frames_of("papers/factreasoner-printed-tests", bare_folder)
    row = rows_of(
        tables["tests"],
        table="4",
        model="llama-3.1-70b-instruct",
        comparison="FR2 vs FS",
        measure="precision",
    ).iloc[0]
    # 157 numbers with exactly the mean and the standard deviation that table 10 prints.
    shape = np.linspace(-1.0, 1.0, 157)
    shape /= shape.std(ddof=1)
    wanted = ttest_ind(0.60 + 0.20 * shape, 0.59 + 0.20 * shape, alternative="greater").pvalue
    # Welch's degrees of freedom are Student's where the deviations are equal.
    assert row["implied"] == pytest.approx(wanted, abs=1e-12)
    assert row["lower"] < 0.3916 < row["upper"]
    counts = tables["agreement"].set_index("table").loc["all"]
    assert counts.drop("tests").sum() == counts["tests"] == len(printed("factreasoner_tests"))


def test_worked_numbers_are_the_printed_ones_but_where_a_reason_is_given(
    bare_folder: Path,
) -> None:
    frame = frames_of("papers/worked-numbers", bare_folder)["numbers"]
    off = []
    for row in frame.itertuples():
        digits = len(f"{row.printed:g}".partition(".")[2])
        # Half a unit of the last printed place, and a little for numbers such as 0.155.
        if not abs(row.ours - row.printed) <= 0.5 * 10**-digits + 1e-9:
            off.append(row.number)
    assert sorted(off) == sorted(
        [
            "FactReasoner, figure 2: P(a1), strength 0.98",
            "FactReasoner, figure 2: P(a1), strength 0.99",
            "FactReasoner, figure 2: least strength",
            "FactReasoner, figure 2: largest strength",
            "FactReasoner, table 2: Pr* of Biographies",
            "FaStfact, table 2: |difference of F1@K'|, FActScore_bio",
            "FaStfact, table 2: |difference of F1@K'|, HelloBench",
            "FaStfact, table 7: % in all, Factcheck-bench",
            "FaStfact, table 7: % in all, ExpertQA",
            "FaStfact, table 7: % in all, FActScore",
            "FaStfact, table 7: % in all, FaStfact-Bench",
        ]
    )
    by_name = frame.set_index("number")["ours"]
    assert by_name["FactReasoner, figure 1: P(a1)"] == pytest.approx(48 / 151, abs=1e-15)
    least, largest = (
        by_name[f"FactReasoner, figure 2: {end} strength"] for end in ("least", "largest")
    )
    assert 0.98 < least < largest < 0.99


def test_curves_hold_the_area_that_the_table_says(bare_folder: Path) -> None:
    write_graphs(bare_folder / "pairs.jsonl", GRAPHS)
    say_where(bare_folder, "datasets: {factor-expert: pairs.jsonl}")
    artefacts = run_study("papers/factreasoner-relations-expert", bare_folder).artefacts
    table: Any = artefacts.tables["auroc"].frame
    areas = table.set_index(["model", "relation"])["auroc"]
    for stem, kind in (
        ("figure-6-7-contradiction", "contradiction"),
        ("figure-6-8-entailment", "entailment"),
    ):
        data = artefacts.figures[stem].data
        for model, curve in data.groupby("model"):
            area = np.trapezoid(curve["true_positive_rate"], curve["false_positive_rate"])
            assert area == pytest.approx(areas[model, kind], abs=1e-9)


def test_the_correlation_is_scipys(bare_folder: Path) -> None:
    small_files(bare_folder)
    tables = frames_of("papers/core-relation-models", bare_folder)
    precision = tables["precision"]
    for row in rows_of(tables["table-2"], origin="ours").itertuples():
        both = precision[[row.first, row.second]].dropna()
        assert row.pearson == pytest.approx(
            pearsonr(both.iloc[:, 0], both.iloc[:, 1])[0], abs=1e-12
        )


def test_a_pipeline_that_says_what_people_say_agrees_in_everything(bare_folder: Path) -> None:
    write_graphs(bare_folder / "human.jsonl", GRAPHS)
    say_where(
        bare_folder,
        """
datasets:
  fastfact-bench: human.jsonl
  fastfact-pipelines: {same: human.jsonl}
""",
    )
    tables = frames_of("papers/fastfact-alignment", bare_folder)
    stages = tables["table-2"].set_index("statistic")["Overall"]
    for name in ("removed", "added", "revised", "k_difference", "f1_difference"):
        assert stages[name] == 0
    assert stages["agreement_exact"] == stages["agreement_type"] == 100
    assert stages["unchanged"] == pytest.approx(134 / 14)
    row = rows_of(tables["table-1"], origin="ours", pipeline="same").iloc[0]
    assert row["f1"] == row["f1_human"]
    assert np.isnan(row["tokens"])


def test_published_files_are_taken_as_they_are(bare_folder: Path) -> None:
    facts = [{**release_records.CONFLICTBANK, "subject": name} for name in ("Ada", "Bea", "Cora")]
    items = [
        {**release_records.FACTOR, "completion": f"She wrote {n} letters.", "doc_id": n}
        for n in range(12)
    ]
    for name, records in (
        ("conflicts", facts),
        ("news", items),
        ("bench", [release_records.FASTFACT]),
    ):
        write_lines(bare_folder / f"{name}.jsonl", records)
    say_where(
        bare_folder,
        """
datasets:
  conflicts: conflicts.jsonl
  factor-news: news.jsonl
  fastfact-bench: bench.jsonl
""",
    )
    # Of each fact the true claim, which the relations that the reader records support.
    conflicts = rows_of(
        frames_of("papers/factreasoner-conflicts", bare_folder)["table-5"], origin="ours"
    )
    assert conflicts["assessor"].tolist() == ["FR1", "FR2", "FR3"]
    assert set(conflicts["responses"]) == {3}

    areas = frames_of(
        "papers/factreasoner-relations-news", bare_folder, "settings.relations=[lexical]"
    )
    # Of each text one true continuation, and the false ones of the record.
    false = sum(key.startswith("contradiction_") for key in release_records.FACTOR)
    by_relation = areas["auroc"].set_index("relation")
    assert by_relation["pairs"].to_dict() == {
        "contradiction": 12 * (1 + false),
        "entailment": 12 * (1 + false),
    }
    assert by_relation["holds"].to_dict() == {"contradiction": 12 * false, "entailment": 12}

    bench = frames_of("papers/fastfact-alignment", bare_folder)
    # What pipelines say is not known, nor a language model that they could ask.
    assert set(bench) == {"table-7", "table-7-paper", "verdicts", "published"}
    assert set(bench["published"]["source"].str[:18]) == {"FaStfact, table 7:"}
    people = bench["table-7"].set_index("statistic")
    assert list(people.columns) == ["factscore_bio", "Overall"]
    assert people.at["supported", "Overall"] == people.at["not_enough_evidence", "Overall"] == 50
    # The verifier refuted what a person found supported.
    assert bench["verdicts"].iloc[0].to_dict() == {
        "claims": 1,
        "agreement_exact": 0,
        "agreement_type": 0,
    }


def test_verdicts_are_annotations_and_otherwise_labels() -> None:
    atoms = (
        Atom("a1", "one", annotation="refuted", label=False),
        Atom("a2", "two", annotation="conflicting"),
        Atom("a3", "three", label=True, annotation="correct"),
        Atom("a4", "four", annotation="unknown"),
        Atom("a5", "five", label=False),
        Atom("a6", "six", annotation="irrelevant"),
    )
    graph = FactGraph("r", atoms=atoms, metadata={"benchmark": "B", "tokens": 7})
    (found,) = judged_graphs([graph])
    assert found.claims == ("one", "two", "three", "five", "six")
    assert found.verdicts == (
        "refuted",
        "conflicting evidence",
        "supported",
        "non-supported",
        "irrelevant",
    )
    assert (found.group, found.tokens) == ("B", 7)
    assert [found.count(kind) for kind in ("supported", "non-supported", "irrelevant")] == [1, 3, 1]


def test_pipelines_are_run_where_a_language_model_is_named(
    bare_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_graphs(bare_folder / "bench.jsonl", GRAPHS[:2])
    say_where(
        bare_folder,
        "datasets: {fastfact-bench: bench.jsonl}\n"
        "models: {mine: {provider: openai/x, cache: answers.sqlite}}",
    )
    model = AnsweringModel(answer_by_rule)
    monkeypatch.setattr(
        "experiments.analyses.papers.claim_alignment.language_model", lambda *_: model
    )
    results = run_study("papers/fastfact-alignment", bare_folder)
    assert results.artefacts.remarks[0].endswith("The pipelines were run with mine.")
    frame: Any = results.artefacts.tables["table-1"].frame
    own: Any = rows_of(frame, origin="ours").set_index("pipeline")
    assert list(own.index) == ["FaStfact", "VeriScore", "FactScore"]
    # The rule supports every claim for FaStfact and FactScore, and VeriScore knows nothing.
    assert own.at["VeriScore", "f1"] == 0 < own.at["FaStfact", "f1"] == own.at["FactScore", "f1"]
    assert own.at["FaStfact", "f1_human"] == own.at["VeriScore", "f1_human"]


def test_the_ranking_scores_each_response(bare_folder: Path) -> None:
    graphs = [
        FactGraph(
            "r1",
            atoms=tuple(Atom(f"a{n}", f"t{n}", label=n < 3) for n in range(4)),
            metadata={"k_prime": 4},
        ),
        FactGraph("r2", atoms=(Atom("a", "t", label=True),), metadata={"k_prime": 5}),
    ]
    # Nobody counted what this one should say, and no count of its own stands in.
    uncounted = FactGraph("r3", atoms=graphs[0].atoms)
    write_graphs(bare_folder / "m.jsonl", [*graphs, uncounted])
    write_graphs(bare_folder / "worse.jsonl", [replace(graphs[0], atoms=graphs[0].atoms[2:])])
    write_graphs(bare_folder / "other.jsonl", [uncounted])
    files = "{other: other.jsonl, worse: worse.jsonl, mine: m.jsonl}"
    say_where(bare_folder, f"datasets: {{fastfact-models: {files}}}")
    frame = frames_of("papers/fastfact-leaderboard", bare_folder)["ranking"]
    wanted = f1_at_k_prime([3, 1], [1, 0], [4, 5], 0.1).mean()
    own: Any = rows_of(frame, origin="ours").set_index("model")
    assert list(own.index) == ["mine", "worse", "other"]
    assert own["f1"].isna().tolist() == [False, False, True]
    assert own["uncounted"].tolist() == [1, 0, 1]
    mine = own.loc["mine"]
    assert mine["f1"] == pytest.approx(wanted, abs=1e-12)
    assert mine["lower"] < mine["f1"] < mine["upper"]


def test_sigma_of_figure_3_is_the_formula_of_its_table(bare_folder: Path) -> None:
    small_files(bare_folder)
    frame = frames_of("papers/self-known-chatgpt", bare_folder)["knowledge"]
    rows = frame[frame["of"] == "ChatGPT, none of the above"]
    by_quantity = rows.pivot(index="position", columns="quantity", values="estimate")
    wanted = sigma(by_quantity["self_known"], by_quantity["self_unknown"])
    np.testing.assert_allclose(by_quantity["sigma"], wanted, atol=1e-12)


def test_records_of_a_model_are_read_and_said_in_the_manifest(bare_folder: Path) -> None:
    lines = [
        {
            "response": f"r{n}",
            "sentence": 1 + n % 4,
            "sentences": 4,
            "claim": f"c{n}",
            "label": "S" if n % 3 else "NS",
            "judgements": {"none_of_the_above": "true" if n % 2 else "neither"},
        }
        for n in range(40)
    ]
    write_lines(bare_folder / "gpt.jsonl", lines)
    say_where(bare_folder, "datasets: {self-judged: {GPT-4: gpt.jsonl}}")
    one = "settings.models=[GPT-4]"
    artefacts = run_study("papers/self-known-models", bare_folder, one).artefacts
    found: Any = artefacts.tables["claims"].frame
    assert set(found["of"]) == {"GPT-4"}
    overall = found[(found["quantity"] == "factuality") & (found["position"] == "overall")]
    assert overall["estimate"].iloc[0] == pytest.approx(sum(n % 3 > 0 for n in range(40)) / 40)
    manifest = json.loads((bare_folder / "out" / "manifest.json").read_text())
    assert manifest["data"] == {
        "self-judged: GPT-4": {
            "sha256": hashlib.sha256((bare_folder / "gpt.jsonl").read_bytes()).hexdigest(),
            "responses": len({line["response"] for line in lines}),
            "atoms": 40,
            "labelled": 40,
        }
    }
    say_where(bare_folder, "datasets: {self-judged: gpt.jsonl}")
    refused("one for each model", run_study, "papers/self-known-models", bare_folder, one)


def test_a_model_of_a_study_without_records_is_an_error_and_none_answers_for_it(
    bare_folder: Path,
) -> None:
    write_lines(
        bare_folder / "gpt.jsonl",
        [
            {"response": "r", "sentence": 1, "sentences": 1, "claim": f"c{n}", "label": "S",
             "judgements": {"none_of_the_above": "true"}}
            for n in range(2)
        ],
    )  # fmt: skip
    say_where(bare_folder, "datasets: {self-judged: {GPT-4: gpt.jsonl}}")
    for models in ("[GPT-5, GPT-4]", "[GPT-4, gpt4-turbo]"):
        with pytest.raises(InputError, match=r"the model '(GPT-5|gpt4-turbo)' .* use one of GPT-4"):
            run_study("papers/self-known-models", bare_folder, f"settings.models={models}")
    assert not (bare_folder / "out" / "manifest.json").exists()


def test_refusals_are_counted_and_not_averaged_over(bare_folder: Path) -> None:
    small_files(bare_folder)
    tables = frames_of("papers/self-known-generations", bare_folder)
    row = rows_of(tables["table-1"], origin="ours").iloc[0]
    assert row["filtered"] == pytest.approx(100 / 4)
    assert row["claims"] == pytest.approx(sum(len(graph.atoms) for graph in GRAPHS[:3]) / 3)


def test_strides_count_the_claims_that_a_model_finds(
    bare_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_files(bare_folder)
    with (bare_folder / "factormodels-data.yaml").open("a", encoding="utf-8") as file:
        file.write("models: {mine: {provider: openai/x, cache: answers.sqlite}}\n")
    model = AnsweringModel(answer_by_rule)
    monkeypatch.setattr(
        "experiments.analyses.papers.chunk_strides.language_model", lambda *_: model
    )
    frame = frames_of("papers/fastfact-strides", bare_folder)["strides"].set_index("stride")
    # The model gives the sentences as they are, however many it is shown at a time.
    assert frame["claims_per_response"].nunique() == 1
    assert frame.at["all", "calls"] == 4
    assert frame.at["1", "calls"] == frame.at["1", "claims"]
    people = sum(len(graph.atoms) for graph in GRAPHS[:4]) / 4
    assert frame["claims_of_people"].tolist() == [pytest.approx(people)] * 4


@pytest.mark.parametrize(
    ("study", "override", "said"),
    [
        ("factreasoner-conflicts", "settings.data=conflict", "did you mean 'conflicts'?"),
        ("factreasoner-conflicts", "settings.prompts=[FX]", "settings.prompts[0]"),
        ("factreasoner-conflicts", "settings.variants=[FR9]", "settings.variants[0]"),
        ("core-relation-models", "settings.relations=[lexical]", "settings.relations"),
        ("core-relation-models", "settings.relations=[lexical, words:x]", "words:0.8"),
        ("fastfact-strides", "settings.strides=[0]", "settings.strides"),
        ("factreasoner-relations-expert", "settings.figures={a: entails}", "settings.figures"),
        ("factreasoner-relations-expert", "settings.relations=[]", "name a relation model"),
        ("self-known-models", "settings.setting=direct_asking", "no claim was judged"),
        ("worked-numbers", "settings.published[0].table=number", "use numbers"),
        ("worked-numbers", "settings.published[0].column=our", "has no column 'our'"),
        ("factreasoner-conflicts", "settings.data_file=no.yaml", "no.yaml"),
    ],
)
def test_a_mistake_is_one_sentence(bare_folder: Path, study: str, override: str, said: str) -> None:
    small_files(bare_folder)
    result = invoke("run", f"papers/{study}", override, code=2)
    assert said in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert not (bare_folder / "results" / study / "manifest.json").exists()
