"""Studies of the papers: their numbers by another way, and what the papers print beside them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr, ttest_ind

from experiments.analyses.judged_claims import judged_graphs
from experiments.analyses.papers import selection_agreement
from experiments.analyses.papers.selection_agreement import ContainedWords
from experiments.analyses.published import (
    OTHER_DATA,
    compare_published,
    factreasoner_tables,
    printed,
    published_numbers,
)
from experiments.analyses.user_data import SOURCES
from experiments.study.reading import embedded_studies
from factormodels import datasets
from factormodels.claims import Atom
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import TextPair
from factormodels.fact_graph import FactGraph
from factormodels.io.yaml import parse_yaml
from tests.experiments.analyses.papers.conftest import (
    bare_frames,
    bare_results,
    frames_of,
    run_study,
    say_where,
    write_graphs,
)
from tests.experiments.conftest import invoke
from tests.factormodels.io.formats import release_records
from tests.refusals import refused

# The figures of these studies are drawn in tests/experiments/findings/figures/test_figures_look.py.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

ANALYSES = sorted(
    name
    for name, text in embedded_studies().items()
    if name.startswith("papers/") and "analysis" in parse_yaml(text, name)
)


BRIEF = {"papers/core-padding": ("settings.steps=1", "settings.appended=2")}
"""With how little a study of many steps starts: its tables have the same rows."""


@pytest.mark.parametrize("study", ANALYSES)
def test_in_an_empty_folder_a_study_runs_on_embedded_data(study: str) -> None:
    results = bare_results(study, *BRIEF.get(study, ()))
    assert all(remark.startswith("Data: ") for remark in results.remarks)
    # The row of every published number is there.
    ours = list(results.tables["published"].frame["ours"])
    assert ours
    assert "-" not in ours
    # What other data gave is no number of the paper's.
    with_own_data = {
        *("factreasoner-printed-tests", "worked-numbers", "self-known-positions", "datasets"),
    }
    assert set(ours) == {OTHER_DATA} or study.removeprefix("papers/") in with_own_data
    assert OTHER_DATA not in ours or study.removeprefix("papers/") not in with_own_data
    if study == "papers/self-known-positions":
        # The findings page has these of the same labels, read from the owner's file.
        assert ours == ["0.788", "0.465"]


def test_the_study_of_posteriors_starts_in_an_empty_folder() -> None:
    result = invoke("run", "papers/factreasoner", "datasets=[{name: factscore, limit: 3}]")
    assert "FR2" in result.stdout
    compared = compare_published("factreasoner", Path("results/factreasoner")).frame
    # The paper's are of other data, or of relations of other models.
    assert set(compared["ours"]) == {"-"}
    assert "FactReasoner, table 10: biographies, wikipedia" in result.stdout
    assert "other data" in result.stdout


def test_printed_tables_stand_beside_cells_of_the_same_data_alone() -> None:
    names = {"relation_model": "llama-3.1-70b-instruct", "variant": "FR2", "precision": 0.5}
    cells = [{"dataset": "factscore", **names}, {"dataset": "askh-google", **names}]
    frame = factreasoner_tables(pd.DataFrame(cells), ["FR2"]).frame
    assert set(frame["table"]) == {"3", "6", "8", "10", "13"}
    ours = frame.set_index(["table", "model"])["ours"]
    assert ours["6", "llama-3.1-70b-instruct"] == "Pr 0.50"
    assert ours["6", "mixtral-8x22b-instruct"] == ours["10", "llama-3.1-70b-instruct"] == OTHER_DATA
    (row,) = frame.query("table == '10' and model == 'llama-3.1-70b-instruct'").to_dict("records")
    assert (row["precision"], row["f1"], row["precision_mae"]) == (
        *("0.60 ± 0.20", "0.83 ± 0.13", "0.11 ± 0.11"),
    )


def test_the_printed_tables_have_the_numbers_that_tests_are_computed_from() -> None:
    tables = printed("factreasoner_tables", dtype=str, keep_default_na=False)
    rows = tables.set_index(["table", "model", "assessor"])
    for each in printed("factreasoner_means").to_dict("records"):
        measure = "precision_mae" if each["measure"] == "mae" else each["measure"]
        printed_text = rows.at[(str(each["table"]), each["model"], each["assessor"]), measure]
        assert printed_text == f"{each['mean']:.2f} ± {each['sd']:.2f}"
    # Tables 6 and 7 have a row of DeepSeek-v3 each, table 8 two relation models of three variants.
    sizes = tables.groupby("table").size()
    assert sizes.drop(["6", "7", "8"]).unique().tolist() == [18]
    assert sizes[["6", "7", "8"]].tolist() == [19, 19, 6]


def test_a_printed_p_value_is_that_of_data_with_the_printed_means() -> None:
    tables = bare_frames("papers/factreasoner-printed-tests")
    row = tables["tests"].query(
        "table == '4' and model == 'llama-3.1-70b-instruct' and measure == 'precision'"
        " and comparison == 'FR2 vs FS'"
    )
    # 157 numbers with exactly the mean and the standard deviation that table 10 prints.
    shape = np.linspace(-1.0, 1.0, 157)
    shape /= shape.std(ddof=1)
    wanted = ttest_ind(0.60 + 0.20 * shape, 0.59 + 0.20 * shape, alternative="greater").pvalue
    # Welch's degrees of freedom are Student's where the deviations are equal.
    assert row["implied"].item() == pytest.approx(wanted, abs=1e-12)
    assert row["lower"].item() < 0.3916 < row["upper"].item()
    counts = tables["agreement"].set_index("table").loc["all"]
    assert counts.drop("tests").sum() == counts["tests"] == len(printed("factreasoner_tests"))


def test_worked_numbers_are_the_printed_ones_but_where_a_reason_is_given() -> None:
    tables = bare_frames("papers/worked-numbers")
    for row in tables["published"].query("printed != '-'").itertuples():
        digits = len(row.printed.partition(".")[2])
        # Half a unit of the last printed place, and a little for numbers such as 0.155.
        near = abs(float(row.ours) - float(row.printed)) <= 0.5 * 10**-digits + 1e-9
        assert near or row.why, row.source
    by_name = tables["numbers"].set_index("number")["ours"]
    assert by_name["FactReasoner, figure 1: P(a1)"] == pytest.approx(48 / 151, abs=1e-15)
    least, largest = (
        by_name[f"FactReasoner, figure 2: {end} strength"] for end in ("least", "largest")
    )
    assert 0.98 < least < largest < 0.99


def test_the_correlation_is_scipys() -> None:
    tables = bare_frames("papers/core-relation-models")
    for row in tables["table-2"].itertuples():
        both = tables["precision"][[row.first, row.second]].dropna()
        wanted = pearsonr(both.iloc[:, 0], both.iloc[:, 1])[0]
        # The same sums, in another order.
        assert row.pearson == pytest.approx(wanted, abs=1e-12)


def test_correlations_of_ones_own_nli_models_stand_beside_the_papers(
    bare_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = {"nli:a": 0.6, "nli:b": 0.8, "nli:c": 1.0}

    def model_of(name: str) -> ContainedWords:
        return ContainedWords(shares.get(name, 0.7))

    monkeypatch.setattr(selection_agreement, "_model", model_of)
    study = "papers/core-relation-models"
    three = f"settings.relations=[{', '.join(shares)}]"
    say_where(bare_folder, "datasets: {core-responses: demonstration}")
    tables = frames_of(study, bare_folder, three)
    ours = dict(zip(tables["published"]["source"], tables["published"]["ours"], strict=True))
    for row in tables["table-2"].itertuples():
        pair = f"models {row.first[-1].upper()} and {row.second[-1].upper()}"
        assert ours[f"Core, table 2: correlation, {pair}"] == f"{row.pearson:.2f}"
    # Other relation models than NLI models have no number beside the paper's.
    other = frames_of(study, bare_folder, "settings.relations=[nli:a, words, nli:c]")["published"]
    assert dict(zip(other["source"], other["ours"], strict=True)) == {
        "Core, table 2: correlation, models A and B": "-",
        "Core, table 2: correlation, models A and C": ours[
            "Core, table 2: correlation, models A and C"
        ],
        "Core, table 2: correlation, models B and C": "-",
    }
    assert set(other["why"]) == {"", "the results lack it"}
    # Nor do they where the responses are not the user's.
    (bare_folder / "factormodels-data.yaml").unlink()
    assert set(frames_of(study, bare_folder, three)["published"]["ours"]) == {OTHER_DATA}


def test_responses_without_relations_are_judged_by_their_labels_alone(bare_folder: Path) -> None:
    graphs = [
        replace(graph, contexts=(), relations=())
        for graph in datasets.load("demonstration").graphs[:2]
    ]
    write_graphs(bare_folder / "plain.jsonl", graphs)
    say_where(bare_folder, "datasets: {core-responses: plain.jsonl}")
    study = "papers/core-padding"
    results = run_study(study, bare_folder, "settings.steps=1", "settings.appended=2")
    assert set(results.tables["table-4"].frame["assessor"]) == {"human labels"}
    (remark,) = results.remarks
    assert "No response has relations, so FR1 cannot judge and is left out." in remark
    with pytest.raises(InputError, match="FR1 cannot judge claims; add labels"):
        run_study(study, bare_folder, "settings.assessors=[FR1]")


def test_contained_words_counts_words_without_order_or_case() -> None:
    model = ContainedWords(0.5)
    pairs = [
        TextPair("red apples and green pears", "GREEN apples"),
        TextPair("red apples", "green pears"),
        TextPair("red apples", "apples pears"),
        TextPair("red apples", ""),
    ]
    kinds = [answer.kind.value for answer in model.judge(pairs)]  # type: ignore[union-attr]
    assert kinds == ["entailment", "neutral", "entailment", "neutral"]
    refused("share is 0", ContainedWords, 0.0)


def test_annotations_of_fastfact_are_read_with_the_verdicts_of_its_pipeline(
    bare_folder: Path,
) -> None:
    (bare_folder / "bench.jsonl").write_text(json.dumps(release_records.FASTFACT) + "\n")
    say_where(bare_folder, "datasets: {fastfact-bench: bench.jsonl}")
    bench = frames_of("papers/fastfact-alignment", bare_folder)
    people = bench["table-7"].set_index("statistic")
    assert list(people.columns) == ["factscore_bio", "Overall"]
    assert people.at["supported", "Overall"] == people.at["not_enough_evidence", "Overall"] == 50
    # The verifier refuted what a person found supported.
    shares = {"claims": 1, "agreement_exact": 0, "agreement_type": 0}
    assert bench["verdicts"].iloc[0].to_dict() == shares


def test_verdicts_are_annotations_and_otherwise_labels() -> None:
    atoms = (
        Atom("a1", "one", annotation="refuted", label=False),
        Atom("a2", "two", annotation="conflicting"),
        Atom("a3", "three", label=True, annotation="correct"),
        Atom("a4", "four", annotation="unknown"),
        Atom("a5", "five", label=False),
        Atom("a6", "six", annotation="irrelevant"),
    )
    (graph,) = judged_graphs([FactGraph("r", atoms=atoms, metadata={"benchmark": "B"})])
    verdicts = ("refuted", "conflicting evidence", "supported", "non-supported", "irrelevant")
    assert (graph.verdicts, graph.group) == (verdicts, "B")
    assert [graph.count(kind) for kind in ("supported", "non-supported", "irrelevant")] == [1, 3, 1]


def test_a_file_is_compared_with_what_a_paper_prints_of_its_rows(bare_folder: Path) -> None:
    frame = pd.DataFrame({"model": ["gemini-2.0-flash-thinking-exp", "mine"], "f1": [0.7512, None]})
    (row,) = compare_published("leaderboard", {"ranking": frame}).frame.to_dict("records")
    assert (row["printed"], row["ours"]) == ("0.803", "0.751")
    frame.to_csv(bare_folder / "ranking.csv", index=False)
    for path in (bare_folder, bare_folder / "ranking.csv"):
        assert compare_published("leaderboard", path).frame["ours"].item() == "0.751"
    twice = pd.concat([frame, frame])
    refused("2 rows of ranking", compare_published, "leaderboard", {"ranking": twice})
    (bare_folder / "ranking.csv").unlink()
    refused("it has no ranking.csv", compare_published, "leaderboard", bare_folder)
    refused("did you mean 'leaderboard'", compare_published, "leaderbord", {})


def test_every_published_number_says_what_it_is() -> None:
    numbers = published_numbers()
    assert len(numbers) > 80
    asked = numbers.drop(columns=["why", "data"])
    # Where ours is never of the paper's data, the table says what it is of.
    assert (numbers.loc[numbers["data"] == "other", "why"] != "").all()
    assert set(numbers["data"]) <= {"", "other", *SOURCES}
    assert (asked != "").all(axis=None)
    # Of which study there is one sees by the command.
    named = numbers["command"].str.extract(r"factormodels run (\S+)`")[0].dropna()
    assert set(named) <= set(embedded_studies())


@pytest.mark.parametrize(
    ("study", "override", "message"),
    [
        ("core-padding", "settings.data=core-response", "did you mean 'core-responses'?"),
        ("core-relation-models", "settings.relations=[lexical]", "settings.relations"),
        ("core-relation-models", "settings.relations=[lexical, words:x]", "words:0.8"),
    ],
)
def test_a_mistake_is_one_sentence(
    bare_folder: Path, study: str, override: str, message: str
) -> None:
    result = invoke("run", f"papers/{study}", override, code=2)
    assert message in " ".join(result.stderr.split())
    assert not (bare_folder / "results" / study / "manifest.json").exists()
