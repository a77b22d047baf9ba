"""Columns of a user's table that options or their names find."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from experiments import estimate, keep, score, self_knowledge
from experiments.columns import claims, judged_claims, roles
from experiments.columns.claims import read_claims
from experiments.columns.options import ProbabilityColumns
from experiments.columns.reader import Columns
from experiments.columns.roles import CONTEXTS, LABEL, PROBABILITY, RESPONSE_TEXT, Role
from factormodels.errors import InputError, as_arguments


def test_an_error_lists_no_more_columns_than_a_person_reads() -> None:
    columns = Columns([f"k{number}" for number in range(1000)], "wide.csv")
    with pytest.raises(InputError, match=r"wide\.csv: .* it has k0, k1, .*k29 and 970 more$"):
        columns.required(PROBABILITY)
    with pytest.raises(InputError, match=r"there is no such column.* and 970 more$"):
        columns.given("--p", "share")


def test_an_error_names_every_column_that_is_missing() -> None:
    columns = Columns(["Answer #", "is it true?"], "t.csv")
    with pytest.raises(InputError) as raised:
        columns.required(PROBABILITY, lacking=(LABEL,))
    assert str(raised.value) == (
        "t.csv: no column is recognized as the probability or the label; name them with --p COLUMN "
        "and --label COLUMN; it has Answer #, is it true?"
    )


def test_an_error_proposes_options_that_a_shell_takes_as_they_are(tmp_path: Path) -> None:
    table = tmp_path / "odd.csv"
    rows = [("r1", "0.9", "by A", "Y"), ("r1", "0.2", "by B", "N"), ("r2", "1", "by A", "Y")]
    names = ("nr", "GPT-4o (v1, may)", "seen", "ok?")
    lines = [",".join(f'"{cell}"' for cell in row) for row in (names, *rows)]
    table.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_claims(table, ProbabilityColumns())
    proposed = re.search(r"as in (.*); it has nr, 'GPT-4o \(v1, may\)', seen", str(raised.value))
    assert proposed is not None
    assert shlex.split(proposed[1]) == ["--p", "GPT-4o (v1, may)", "--label", "ok?"]
    assert as_arguments(proposed[1]) == "`p='GPT-4o (v1, may)'` `label='ok?'`"
    read = read_claims(table, ProbabilityColumns(p=("GPT-4o (v1, may)",), label="ok?"))
    assert read.frame["p"].tolist() == [0.9, 0.2, 1.0]


@pytest.mark.parametrize("name", ["confidence (%)", "Confidence, %", "confidence [%]", "p %"])
def test_a_sign_of_per_cent_hides_no_name(name: str) -> None:
    columns = Columns(["text", name, "true share (%) of all"], "t.csv")
    assert columns.required(PROBABILITY) == name
    # A column of the very name goes first.
    assert Columns([name, "p"], "t.csv").known(Role("p", "", ("p",))) == "p"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        *(("humanLabel", LABEL), ("Human-Label", LABEL), ("HUMAN_LABEL", LABEL)),
        *(("pTrue", PROBABILITY), ("modelAnswer", RESPONSE_TEXT)),
        ("retrievedContexts", CONTEXTS),
    ],
)
def test_words_of_a_name_may_be_joined_in_any_way(name: str, role: Role) -> None:
    assert Columns(["other", name], "t.csv").known(role) == name


def test_a_likelier_name_goes_first_and_equal_ones_are_in_doubt() -> None:
    assert Columns(["y", "gold"], "t.csv").known(LABEL) == "gold"
    with pytest.raises(InputError, match="'answer' and 'output' may each hold the response; name"):
        Columns(["output", "answer"], "t.csv").known(RESPONSE_TEXT)


def test_every_known_name_is_written_as_names_are_compared() -> None:
    declared = [role for role in vars(roles).values() if isinstance(role, Role)]
    assert len(declared) > 20
    for role in declared:
        for name in role.spellings():
            assert Columns([name], "t.csv").known(role) == name


def tables(tmp_path: Path, **renamed: str) -> Path:
    frame = pd.DataFrame(
        {
            "response": [*"aabbccddee"],
            "p": [0.9, 0.2, 0.7, 0.4, 0.8, 0.1, 0.6, 0.3, 0.75, 0.35],
            "label": [1, 0, 1, 0, 1, 1, 0, 0, 1, 0],
        }
    )
    path = tmp_path / "t.csv"
    frame.rename(columns=renamed).to_csv(path, index=False)
    return path


def test_a_spelling_is_declared_once_for_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word in `roles` is all that a new spelling takes."""
    path = tables(tmp_path, label="verdict of the court")
    commands: Any = {
        "score": lambda: score(path, n_bootstrap=10, resamples=10),
        "estimate": lambda: estimate(path),
        "keep": lambda: keep(path, path, splits=2),
        "self_knowledge": lambda: self_knowledge(path, n_bootstrap=10, confidence="p"),
    }
    for name in ("score", "keep", "self_knowledge"):
        with pytest.raises(InputError, match="no column is recognized as the label"):
            commands[name]()
    longer = replace(LABEL, names=(*LABEL.names, "verdict of the court"))
    for module in (claims, judged_claims):
        monkeypatch.setattr(module, "LABEL", longer)
    for command in commands.values():
        sentences = " ".join(command().sentences)
        assert "label 'verdict of the court'" in sentences


def test_bare_numbers_below_a_heading_with_a_percent_sign_are_percentages(tmp_path: Path) -> None:
    shares = score(tables(tmp_path), n_bootstrap=10, resamples=10)
    frame = pd.read_csv(tmp_path / "t.csv")
    percents = frame.assign(**{"confidence (%)": 100 * frame["p"]}).drop(columns="p")
    scores = score(percents, n_bootstrap=10, resamples=10)
    assert scores["scores"]["brier"][0] == pytest.approx(shares["scores"]["brier"][0], abs=1e-12)
    message = (
        "The heading of column 'confidence (%)' has a percent sign: 10 numbers are read as "
        "percentages, 62.5 as 0.625."
    )
    assert message in scores.sentences
    asked = self_knowledge(percents, n_bootstrap=10)
    assert message in asked.sentences
    # A share below such a heading stays one, and a sign of its own is read once.
    shares_of_frame = frame["p"]
    for bare in (shares_of_frame, (100 * frame["p"]).map("{:.1f} %".format)):
        table = percents.assign(**{"confidence (%)": bare})
        again = score(table, n_bootstrap=10, resamples=10)
        assert again["scores"]["brier"][0] == pytest.approx(shares["scores"]["brier"][0])
        assert message not in again.sentences
        as_shares = (
            "The heading of column 'confidence (%)' has a percent sign, but no number below it is "
            "more than 1: they are read as shares."
        )
        assert (as_shares in again.sentences) is (bare is shares_of_frame)
    above = percents.assign(**{"confidence (%)": [*percents["confidence (%)"][:-1], 100.5]})
    with pytest.raises(
        InputError, match=r"row 10, column .*: 100\.5 is not .* from 0 to 100, since"
    ):
        score(above)


NESTED = [
    {
        "id": "r1",
        "claims": [
            {"text": "One.", "gold": "S", "score": 0.9},
            {"text": "Two.", "gold": "NS", "score": 0.2},
        ],
    },
    {
        "id": "r2",
        "claims": [
            {"text": "Three.", "gold": "S", "score": 0.7},
            {"text": "Three.", "gold": "NS", "score": 0.4},
        ],
    },
]


def test_responses_that_hold_lists_of_claims_are_scored_as_rows_are() -> None:
    rows = [
        {"response": each["id"], "label": claim["gold"], "p": claim["score"]}
        for each in NESTED
        for claim in each["claims"]
        if isinstance(claim, dict)
    ]
    quick: Any = {"n_bootstrap": 10, "resamples": 10, "scores": "brier,auroc"}
    nested, flat = score(NESTED, **quick), score(rows, **quick)
    for name in ("brier", "auroc", "n_claims", "n_responses"):
        if name in flat["scores"]:
            assert nested["scores"][name][0] == flat["scores"][name][0]
    assert "Columns recognized by name: probability 'score', label 'gold'" in " ".join(
        nested.sentences
    )
    assert "No column groups" not in " ".join(nested.sentences)
    # What is wrong is named by the response that holds it.
    bad = [NESTED[0], {"id": "r2", "claims": [{"gold": "S", "score": "high"}]}]
    with pytest.raises(InputError, match="the table, row 2, column 'score': 'high' is not a prob"):
        score(bad)
    # A name that no claim has is looked for among the columns that a person sees.
    with pytest.raises(InputError, match="no column is recognized as the probability or the label"):
        score([{"id": "r1", "claims": [{"text": "One."}]}])


QUICK: Any = {"n_bootstrap": 10, "resamples": 10}
JUDGED: list[dict[str, Any]] = [
    {"response": f"r{number // 2}", "claim": f"c{number % 2}", "p": p, "label": number % 2}
    for number, p in enumerate((0.1, 0.8, 0.4, 0.9, 0.3, 0.5))
]


def of_response(number: int) -> list[dict[str, Any]]:
    return [row for row in JUDGED if row["response"] == f"r{number}"]


def test_one_list_of_rows_keeps_the_responses_that_its_rows_name(tmp_path: Path) -> None:
    flat = score(JUDGED, **QUICK)["scores"]
    path = tmp_path / "wrapped.json"
    for rows in (JUDGED, [{"id": row["response"], **row} for row in JUDGED]):
        path.write_text(json.dumps({"run": "today", "rows": rows}))
        wrapped = score(path, **QUICK)["scores"]
        assert wrapped["n_responses"].tolist() == flat["n_responses"].tolist() == [3]
        assert wrapped["brier"].tolist() == flat["brier"].tolist()
    # An id of its own in every row is that of a claim: the object is one response.
    claims = [{"p": row["p"], "label": row["label"], "id": row["p"]} for row in JUDGED]
    path.write_text(json.dumps({"id": "r0", "claims": claims}))
    assert score(path, **QUICK)["scores"]["n_responses"].tolist() == [1]


def test_objects_that_name_one_response_are_of_one_response() -> None:
    models: list[dict[str, Any]] = [
        {"id": number, "model": model, "claims": [{"p": p, "label": row["label"]}]}
        for number, row in enumerate(JUDGED)
        for model, p in (("a", row["p"]), ("b", 1 - row["p"]))
    ]
    scores = score(models, **QUICK)
    assert scores["scores"]["n_responses"].tolist() == [6, 6]
    assert not any(
        "not paired" in sentence or "not tested" in sentence for sentence in scores.sentences
    )
    # What several models say stands in one object of the response.
    within = [
        {
            "id": of_a["id"],
            "models": [{k: v for k, v in record.items() if k != "id"} for record in pair],
        }
        for of_a, pair in zip(models[::2], zip(models[::2], models[1::2], strict=True), strict=True)
    ]
    again = score(within, **QUICK)
    assert again["scores"]["n_responses"].tolist() == [6, 6]
    assert again["tests"].equals(scores["tests"])
    # Judges of one claim, which an object holds with the response that it is of.
    judges = [
        {
            **{name: row[name] for name in ("response", "claim", "label")},
            "judges": [{"model": "a", "p": row["p"]}, {"model": "b", "p": 1 - row["p"]}],
        }
        for row in JUDGED
    ]
    scores = score(judges, **QUICK)
    assert scores["scores"]["n_responses"].tolist() == [3, 3]
    assert scores["scores"]["brier"][0] == pytest.approx(
        score(JUDGED, **QUICK)["scores"]["brier"][0]
    )
    message = "'label' is outside the list of claims and applies to each claim of the list."
    assert message in scores.sentences


def test_several_lists_of_claims_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({f"r{number}": of_response(number) for number in range(3)}))
    message = r"3 lists \('r0', 'r1', 'r2'\) each hold .* give each response a separate object"
    for command in (score, self_knowledge):
        with pytest.raises(InputError, match=message):
            command(path)
    two = [{"id": "x", "claims": of_response(0), "rejected": of_response(1)}]
    with pytest.raises(InputError, match=r"row 1: 2 lists \('claims', 'rejected'\) each hold"):
        score(two)


def test_a_response_without_claims_and_a_claim_without_a_key_are_left_out_and_reported() -> None:
    claims = [{"p": 0.5, "label": 1}, {"p": 0.25, "label": 0}]
    whole: list[dict[str, Any]] = [{"id": "x", "claims": claims}, {"id": "y", "claims": claims}]
    none: list[Any] | None
    for none in ([], None):
        for data in ([{"id": "z", "claims": none}, *whole], [*whole, {"id": "z", "claims": none}]):
            scores = score(data, **QUICK)
            assert scores["scores"]["n_claims"].tolist() == [4]
            assert "1 response holds no claim." in scores.sentences
    scores = score(
        [*whole, {"id": "z", "claims": [{"label": 1}, {"p": 0.75, "label": 1}]}], **QUICK
    )
    assert scores["scores"]["n_claims"].tolist() == [5]
    assert "1 row without a probability is left out." in scores.sentences
    with pytest.raises(InputError, match="row 3: there is no 'p'; it has error, id"):
        score([*whole, {"id": "z", "error": "time out"}])


def test_the_layout_of_an_owner_is_known_to_every_command() -> None:
    data = [
        {"data": [{"claims": [{"subclaim": "A.", "gpt-score": p, "annotation": word}]}]}
        for p, word in ((0.9, "Y"), (0.3, "N"), (0.8, "Y"), (0.6, "S"))
    ]
    scored = score(data, n_bootstrap=10, resamples=10, scores="brier")
    assert scored["scores"]["brier"][0] == pytest.approx((0.01 + 0.09 + 0.04 + 0.36) / 4)
    known = "Known as a file of tatsu-lab/conformal-factual-lm. Label: annotation"
    for findings in (scored, estimate(data, quantities="share"), self_knowledge(data)):
        assert known in " ".join(findings.sentences)


def test_two_columns_of_one_name_in_memory_are_refused() -> None:
    frame = pd.DataFrame(JUDGED)
    twice = pd.concat([frame, 1 - frame[["p"]]], axis=1)
    numbered = frame.assign(**{"0": frame["p"]}).rename(columns={"claim": 0})
    arrow = pa.Table.from_arrays([*map(pa.array, ([0.5], [0.25], [1]))], names=["p", "p", "label"])
    data: dict[str, Any] = {"p": twice, "0": numbered}
    for name, table in (*data.items(), ("p", arrow), ("p", arrow.to_batches()[0])):
        for command in (score, estimate, self_knowledge):
            with pytest.raises(InputError, match=f"two columns of the name '{name}'; give each"):
                command(table)


def test_a_single_column_is_refused_and_a_sparse_one_is_read() -> None:
    frame = pd.DataFrame(JUDGED)
    with pytest.raises(InputError, match="it is a Series, which has one column; give a data frame"):
        score(frame["p"])
    sparse = frame.assign(p=pd.arrays.SparseArray(frame["p"].astype("float32")))
    assert score(sparse, **QUICK)["scores"]["brier"][0] == pytest.approx(
        score(JUDGED, **QUICK)["scores"]["brier"][0], abs=1e-6
    )


def test_judged_lists_are_of_the_responses_that_objects_or_rows_name() -> None:
    rows = [
        {**row, "model": model, "confidence": p}
        for row in JUDGED
        for model, p in (("a", row["p"]), ("b", 1 - row["p"]))
    ]
    lists = [
        {
            "id": response,
            "model": model,
            "claims": [
                {name: row[name] for name in ("confidence", "label")}
                for row in rows
                if (row["response"], row["model"]) == (response, model)
            ],
        }
        for response in ("r0", "r1", "r2")
        for model in "ab"
    ]
    flat = self_knowledge(rows, n_bootstrap=20)["quantities"]
    for data in (lists, [{"run": "today", "rows": rows}]):
        measured = self_knowledge(data, n_bootstrap=20)
        for name in ("estimate", "lower", "upper", "n"):
            pd.testing.assert_series_equal(measured["quantities"][name], flat[name])
        assert not any("no response in common" in sentence for sentence in measured.sentences)
    # Two lists of one name and model are two answers, each in its own order.
    again = [{**each, "model": "a"} for each in lists]
    assert set(self_knowledge(again, n_bootstrap=20)["quantities"]["n"]) == {6}
