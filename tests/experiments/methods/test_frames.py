"""The frame of claims that a function gives, as data of the others: in memory and as a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments import (
    apply,
    assess,
    coherence,
    datasets,
    diff,
    estimate,
    fit,
    infer,
    keep,
    omissions,
    posteriors,
    revise,
    score,
    select,
    self_knowledge,
)
from experiments.columns.frame import LONG
from experiments.columns.responses import load_responses
from experiments.findings.findings import Findings
from factormodels.datasets import load
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("without_rivals")

_IDS = ["response", "claim"]

QUICK: dict[str, Any] = {"n_bootstrap": 20, "n_splits": 5}
"""Settings of `self_knowledge` with which it takes little time."""


@cache
def assessed() -> Findings:
    """An assessment of the demonstration, which no test changes: it is made once."""
    return assess("demonstration")


def claims() -> pd.DataFrame:
    return assessed().tables["claims"].frame.copy()


def test_findings_are_scored_estimated_and_kept_by_their_claims() -> None:
    assessment = assessed()
    same: dict[str, Any] = {"scores": "brier", "n_bootstrap": 20}
    scored = score(assessment, **same)
    assert scored.source == "assess demonstration"
    pd.testing.assert_frame_equal(scored.frame, score(claims(), **same).frame)
    pd.testing.assert_frame_equal(estimate(assessment).frame, estimate(claims()).frame)
    kept = keep(assessment, assessment, precision=0.5)
    pd.testing.assert_frame_equal(kept["claims"], keep(claims(), claims(), precision=0.5)["claims"])
    refused("score assess demonstration: these findings have no claims", score, scored)


LABELED: dict[str, Callable[[], Findings]] = {
    "assess": assessed,
    "infer": lambda: infer("demonstration"),
    "coherence": lambda: coherence("demonstration", relations="lexical", window=1),
    "revise": lambda: revise("demonstration"),
    "select": lambda: select("demonstration"),
    "fit": lambda: fit("demonstration", penalty=30.0, folds=2),
    "keep": lambda: keep("demonstration", "demonstration", precision=0.5),
    "self_knowledge": lambda: self_knowledge(claims(), confidence="p", in_order=True, **QUICK),
}


@cache
def found_by(name: str) -> Findings:
    """The findings of a method, which no test changes: they are made once."""
    return LABELED[name]()


@pytest.mark.parametrize("name", LABELED)
def test_the_long_frame_of_every_method_is_data_of_the_others(name: str) -> None:
    findings = found_by(name)
    frame = findings.claims
    assert tuple(frame)[: len(LONG)] == LONG
    assert not frame.duplicated([*_IDS, *({*frame} & {"model", "condition", "setting"})]).any()
    truth = frame["label"].map({True: 1.0, False: 0.0})
    judged = truth.notna() & frame["p"].notna()
    brier = ((frame["p"] - truth)[judged] ** 2).mean()
    same: dict[str, Any] = {"scores": "brier", "n_bootstrap": 20}
    scored = score(findings, **same)
    assert scored.frame["value"][0] == pytest.approx(brier, abs=1e-12)
    pd.testing.assert_frame_equal(scored.frame, score(frame, **same).frame)
    share = estimate(findings).frame.set_index("quantity")["value"]["share"]
    assert share == pytest.approx(truth.mean(), abs=1e-9)
    assert set(keep(findings, findings, precision=0.5)["claims"]["response"]) <= set(
        frame["response"].astype(str)
    )
    changes = diff(frame, frame.assign(p=frame["p"].where(frame.index > 0, 0.125)))["changes"]
    assert changes[["column", "after"]].values.tolist() == [["p", 0.125]]


@pytest.mark.parametrize("name", ["assess", "infer", "coherence", "revise", "select", "keep"])
def test_the_frame_of_a_method_that_judges_claims_has_a_row_per_claim(name: str) -> None:
    findings = found_by(name)
    claims = findings.claims
    pd.testing.assert_frame_equal(findings.frame[[*claims]], claims)


@pytest.mark.parametrize("name", LABELED)
def test_the_long_frame_of_every_method_is_fitted_and_related(name: str) -> None:
    frame = found_by(name).claims.dropna(subset=["label", "p"]).drop_duplicates(_IDS)
    frame = frame[frame["response"].isin(frame["response"].unique()[:8])].reset_index(drop=True)
    ids = frame[_IDS].astype(str).values.tolist()
    # The probabilities are a column of numbers, from which others are learned.
    fitted = fit(frame, numbers="p", penalty=3.0, folds=2).claims
    assert fitted[_IDS].astype(str).values.tolist() == ids
    assert fitted["label"].tolist() == frame["label"].tolist()
    if frame["text"].astype(bool).all():
        related = coherence(frame, relations="lexical", window=1).claims
        assert related[_IDS].astype(str).values.tolist() == ids


@pytest.mark.usefixtures("unsaved")
def test_the_long_frame_is_a_table_of_a_paper_and_a_figure(tmp_path: Path) -> None:
    scored = score(found_by("infer").claims, scores="brier", n_bootstrap=20)
    scored.save(tmp_path, venue="acl")
    value = f"{scored.frame['value'][0]:.3f}".removeprefix("0")
    assert value in (tmp_path / "scores.tex").read_text("utf-8")
    assert "reliability.pdf" in {path.name for path in tmp_path.iterdir()}


def test_the_long_frame_says_what_a_method_computed() -> None:
    posteriors = infer("demonstration")
    table = posteriors["posteriors"]
    claims_alone = table[table["kind"] == "atom"]
    assert posteriors.frame["claim"].tolist() == claims_alone["variable"].tolist()
    assert posteriors.frame["p"].tolist() == claims_alone["p"].tolist()

    agreement = coherence("demonstration", relations="lexical", window=1)
    means = agreement.claims.groupby("response")["p"].mean()
    expected = agreement["responses"].set_index("response")["mean_marginal"]
    pd.testing.assert_series_equal(means, expected, check_names=False)

    revised = revise("demonstration")
    by_response = revised["responses"].set_index("response")
    grouped = revised.claims.groupby("response")["p"]
    pd.testing.assert_series_equal(grouped.mean(), by_response["after"], check_names=False)
    asserted = by_response["kept"] + by_response["corrected"]
    assert grouped.size().to_dict() == asserted.to_dict()

    facts = omissions("demonstration").claims
    recall = omissions("demonstration")["responses"].set_index("response")["recall"]
    weighted = (facts["p"] * facts["weight"]).groupby(facts["response"]).sum()
    shares = weighted / facts["weight"].groupby(facts["response"]).sum()
    pd.testing.assert_series_equal(shares, recall, check_names=False)

    selected = select("demonstration")
    counting = selected["selection"].query("selected")
    assert selected.claims["claim"].tolist() == counting["claim"].tolist()


def test_the_long_frame_of_a_file_has_all_who_judged_it(tmp_path: Path) -> None:
    assess("demonstration", variant=["FR1", "FR2"]).save(tmp_path / "assessed.jsonl")
    read = datasets(tmp_path / "assessed.jsonl").claims
    by_model = dict(iter(read.groupby("model")))
    assert {*by_model} == {"FR1", "FR2"}
    expected = assessed().claims
    of_file = by_model["FR2"].reset_index(drop=True)
    for column in LONG:
        assert of_file[column].tolist() == expected[column].tolist()
    table = [
        {"response": "r", "method": method, "p": p, "truth": 1, "unread": 3}
        for method, p in (("a", 0.25), ("b", 0.75))
    ]
    path = tmp_path / "table.csv"
    pd.DataFrame(table).to_csv(path, index=False)
    plain = datasets(path).claims
    assert tuple(plain) == (*LONG, "method")
    assert plain[["response", "p", "label", "method"]].values.tolist() == [
        ["r", 0.25, True, "a"],
        ["r", 0.75, True, "b"],
    ]


def test_posteriors_are_the_long_frame_of_infer() -> None:
    frame = posteriors("demonstration")
    expected = infer("demonstration", variant="FR2").claims
    assert tuple(frame)[: len(LONG)] == LONG
    for column in ("response", "claim", "text", "label"):
        assert frame[column].tolist() == expected[column].tolist()
    assert frame["p"].tolist() == pytest.approx(expected["p"].tolist(), abs=1e-12)


def test_the_long_frame_of_labels_that_taught_is_marked(tmp_path: Path) -> None:
    judge = tmp_path / "judge.json"
    fitted = fit("demonstration", penalty=30.0, folds=2, save=judge)
    assert set(fitted.claims["p_learned_from"]) == {"other responses"}
    applied = apply(judge, "demonstration")
    assert set(applied.claims["p_learned_from"]) == {"this response"}
    assert applied.claims["text"].tolist() == fitted.claims["text"].tolist()
    refused("trained the probabilities, and cannot judge", score, applied)
    refused("these findings have no claims", lambda: fit("demonstration", folds=0).claims)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assessment as a folder, which no test changes: it is written once."""
    folder = tmp_path_factory.mktemp("assessed") / "saved"
    assessed().save(folder)
    return folder


@pytest.mark.parametrize(("suffix", "side"), [(".csv", 0), (".parquet", 1), (".jsonl", 2)])
def test_frames_files_and_findings_are_merged_by_response_and_claim(
    suffix: str, side: int, tmp_path: Path, saved: Path
) -> None:
    before, after = claims(), claims()
    after.loc[3, "p"] = 0.5
    written = tmp_path / f"after{suffix}"
    if suffix == ".csv":
        after.to_csv(written, index=False)
    elif suffix == ".parquet":
        after.to_parquet(written)
    else:
        after.to_json(written, orient="records", lines=True, double_precision=15)
    row = f"{before['response'][3]}, {before['claim'][3]}"
    expected = [
        {
            "table": "claims", "row": row, "column": "p", "before": before.p[3], "after": 0.5,
            "change": pytest.approx(0.5 - before.p[3]),
        }
    ]  # fmt: skip
    # Each form of one side stands beside one of the other.
    sides: tuple[Any, ...] = (before, assessed(), saved)
    changed = diff(sides[side], written)
    assert changed["changes"].to_dict("records") == expected
    assert changed.sentences[0].startswith("1 of ")
    assert "rows" not in changed.tables
    assert diff(after, written).sentences[0].startswith("Nothing changed")


def test_frames_are_merged_in_any_order_of_their_rows() -> None:
    before = claims()
    refused("absent.csv: there is no such file", diff, before, "absent.csv")
    # Rows come in any order, and one is missing.
    fewer = before.iloc[::-1].drop(index=5)
    missing = diff(before, fewer)
    assert missing["rows"]["row"].tolist() == [f"{before['response'][5]}, {before['claim'][5]}"]
    assert "changes" not in missing.tables


def test_rows_of_several_cells_are_merged_by_their_cell() -> None:
    rows = [
        {"response": 1, "claim": 1, "text": "It is red.", "variant": variant, "p": 0.5}
        for variant in ("FR1", "FR2")
    ]
    other = [rows[1] | {"p": 0.75, "text": "It is blue."}, rows[0]]
    changes = diff(pd.DataFrame(rows), pd.DataFrame(other))["changes"]
    assert set(changes["row"]) == {"1, 1, FR2"}
    assert set(changes["column"]) == {"p", "text"}


def test_a_frame_of_claims_is_responses_with_claims(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    claims().to_csv(path, index=False)
    graphs = load("demonstration").graphs
    columns = ["response", "agreement", "consistency"]
    expected = coherence(graphs, relations="lexical")["responses"][columns]
    for data in (claims(), path):
        loaded = load_responses(data).graphs
        assert [graph.id for graph in loaded] == [graph.id for graph in graphs]
        for graph, known in zip(loaded, graphs, strict=True):
            assert [(a.id, a.text, a.label) for a in graph.atoms] == [
                (a.id, a.text, a.label) for a in known.atoms
            ]
        pd.testing.assert_frame_equal(
            coherence(data, relations="lexical")["responses"][columns], expected
        )
    # Findings have the graphs, with their relations.
    given = coherence(assessed(), relations="lexical")
    pd.testing.assert_frame_equal(given["responses"][columns], expected)
    refused("the claims have no texts", coherence, claims().drop(columns="text"))
    twice = pd.concat([claims(), claims().assign(text="It is red.")])
    refused("differs from an earlier row in its text or label", coherence, twice)


def test_a_frame_of_relations_is_responses_with_relations(tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {
            "response": ["r1", "r1", "r2"],
            "claim": ["a1", "a2", "a1"],
            "passage": ["c1", "c1", "c1"],
            "relation": ["entailment", "contradiction", "entailment"],
            "probability": [0.9, 0.8, 0.7],
        }
    )
    rows.to_csv(tmp_path / "relations.csv", index=False)
    in_memory = load_responses(rows).graphs
    assert in_memory == load_responses(tmp_path / "relations.csv").graphs
    assert [len(graph.relations) for graph in in_memory] == [2, 1]


def test_self_knowledge_names_what_a_frame_lacks(tmp_path: Path) -> None:
    refused("no column is recognized as the model's judgments", self_knowledge, claims())
    path = tmp_path / "claims.csv"
    claims().to_csv(path, index=False)
    how: dict[str, Any] = {"confidence": "p", "in_order": True, **QUICK}
    expected = self_knowledge(path, **how)["quantities"]
    for data in (claims(), assessed()):
        pd.testing.assert_frame_equal(self_knowledge(data, **how)["quantities"], expected)


def test_self_knowledge_takes_labeled_responses_in_memory() -> None:
    expected = self_knowledge("factcheck-bench", **QUICK)["quantities"]
    of_graphs = self_knowledge(load("factcheck-bench").graphs, **QUICK)["quantities"]
    pd.testing.assert_frame_equal(of_graphs, expected)


def test_what_holds_no_fact_graphs_is_named() -> None:
    refused("responses must be fact graphs, and this is a table", infer, claims())
