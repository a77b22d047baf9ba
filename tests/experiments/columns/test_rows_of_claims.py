"""Blank names and claims that stand twice, in every command that reads tables of claims."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from experiments import estimate, keep, score, self_knowledge
from experiments.methods.fit import ColumnSettings
from tests.refusals import refused

QUICK: dict[str, Any] = {"n_bootstrap": 20, "resamples": 19}

HEAD = "response,claim,p,label"
ROWS = ("u,u1,0.75,1", "u,u2,0.5,0", "v,v1,0.25,0", "v,v2,0.5,1")
COLUMNS = pd.DataFrame(
    {"response": [*"uuvv"], "p": [0.75, 0.5, 0.25, 0.5], "label": [0, 1, 1, 0]},
)
"""The rows with a label of 0 for a true claim."""
BRIER = (0.25**2 + 0.5**2 + 0.25**2 + 0.5**2) / 4


def written(path: Path, *rows: str, head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def briers(findings: Any) -> dict[str, float]:
    return dict(zip(findings["scores"]["model"], findings["scores"]["brier"], strict=True))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((ROWS[0], ",u2,0.5,0"), "line 3, column 'response': the cell is blank"),
        ((",u1,0.75,1", ROWS[1]), "line 2, column 'response': the cell is blank"),
        ((ROWS[0], " ,u2,0.5,0"), "line 3, column 'response': the cell is blank"),
        ((ROWS[0], "nan,u2,0.5,0"), "line 3, column 'response': 'nan' is read as a missing value"),
        ((ROWS[0], "u,,0.5,0"), "line 3, column 'claim': the cell is blank"),
    ],
)
def test_a_blank_name_is_refused_with_its_line(
    rows: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "t.csv", *rows, *ROWS[2:])
    for read in (
        lambda: score(path, **QUICK),
        lambda: estimate(path),
        lambda: keep(path, path),
        lambda: ColumnSettings(table=path, numbers=("p",)).user_table(),
    ):
        refused(message, read)


def test_missing_names_of_a_frame_are_refused_with_their_row(tmp_path: Path) -> None:
    frame = pd.DataFrame({"response": [3, 3, 4], "p": [0.75, 0.5, 0.25], "label": [1, 0, 0]})
    for missing in (None, np.nan):
        blank = frame.astype({"response": object})
        blank.loc[1, "response"] = missing
        refused("row 2, column 'response': the cell is blank", score, blank, **QUICK)
        refused(
            "row 2, column 'response': the cell is blank",
            *(self_knowledge, blank.rename(columns={"p": "confidence"})),
        )
        blank.astype({"response": float}).to_parquet(tmp_path / "t.parquet")
        refused("row 2, column 'response'", score, tmp_path / "t.parquet", **QUICK)


def test_a_blank_model_is_refused_and_a_row_without_p_needs_no_name(tmp_path: Path) -> None:
    head = f"model,{HEAD}"
    path = written(tmp_path / "t.csv", *(f"m,{row}" for row in ROWS), f",{ROWS[0]}", head=head)
    refused("line 6, column 'model': the cell is blank", score, path, **QUICK)
    path = written(tmp_path / "t.csv", *ROWS, ",,,0")
    assert briers(score(path, **QUICK)) == {"p": pytest.approx(BRIER)}


def test_a_column_of_names_without_any_is_none(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", *(row.replace("u,", ",").replace("v,", ",") for row in ROWS))
    scores = score(path, **QUICK)
    assert briers(scores) == {"p": pytest.approx(BRIER)}
    assert any("claims are treated as independent" in sentence for sentence in scores.sentences)


def test_rows_that_repeat_a_claim_are_reported_and_counted_once(tmp_path: Path) -> None:
    rows = [*(f"m,{row}" for row in ROWS), *(f"k,{row}" for row in ROWS), f"m,{ROWS[0]}"]
    path = written(tmp_path / "t.csv", *rows, head=f"model,{HEAD}")
    scores = score(path, **QUICK)
    assert briers(scores) == {"m": pytest.approx(BRIER), "k": pytest.approx(BRIER)}
    message = "1 row repeats a claim of an earlier row (line 10): the claim is counted once."
    assert message in scores.sentences
    assert not any("not tested" in sentence for sentence in scores.sentences)
    path = written(tmp_path / "t.csv", *ROWS, *ROWS[:2])
    assert estimate(path)["estimates"]["n_labeled"].max() == len(ROWS)
    assert len(keep(path, path)["claims"]) == len(ROWS)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("u,u1,0.75,0", "line 6: claim 'u1' of response 'u' has the label 'false', and 'true' in"),
        ("u,u1,0.5,1", "line 6: claim 'u1' of response 'u' has the probability 0.5, and 0.75 in"),
    ],
)
def test_rows_that_contradict_each_other_are_refused(
    row: str, message: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "t.csv", *ROWS, row)
    for command in (score, estimate):
        refused(message, command, path)
    refused(message, keep, path, path)


def test_one_id_of_two_texts_is_refused(tmp_path: Path) -> None:
    head = "response,claim_id,text,p,label"
    rows = ["u,c1,Io is a moon.,0.75,1", "u,c1,Io is hot.,0.75,1", "v,c1,Io is hot.,0.5,0"]
    path = written(tmp_path / "t.csv", *rows, head=head)
    message = "line 3: claim 'c1' of response 'u' has the text 'Io is hot.', and 'Io is a moon.' in"
    for command in (score, estimate):
        refused(message, command, path)
    # A blank text is no other text, and the text of the whole response tells no claims apart.
    path = written(tmp_path / "t.csv", rows[0], "u,c1,,0.75,1", rows[2], head=head)
    assert score(path, **QUICK)["scores"]["n_claims"].tolist() == [2]
    rows = ["u,c1,Io is a moon.,0.75,1", "u,c2,Io is a moon.,0.5,0", "v,c1,Io is hot.,0.5,0"]
    path = written(tmp_path / "t.csv", *rows, head=head)
    assert score(path, **QUICK)["scores"]["n_claims"].tolist() == [3]


def test_a_claim_has_one_label_under_every_model(tmp_path: Path) -> None:
    head = "response,claim,text,model,p,label"
    rows = ["u,c1,,A,0.75,1", "u,c1,,B,0.5,0", "u,c2,,A,0.25,0", "u,c2,,B,0.5,0"]
    path = written(tmp_path / "t.csv", *rows, head=head)
    message = "line 3: claim 'c1' of response 'u' has the label 'false', and 'true' in line 2"
    refused(message, score, path, **QUICK)
    refused(message, score, path, by=("model",), **QUICK)
    # Models that wrote responses of their own, and annotators, may differ.
    with_texts = [row.replace(",,", f",What {row[6]} says.,") for row in rows]
    assert len(score(written(path, *with_texts, head=head), **QUICK)["scores"]) == 2
    other = head.replace("model", "annotator")
    by_annotator = score(written(path, *rows, head=other), by=("annotator",), **QUICK)
    assert len(by_annotator["scores"]) == 2
    # A model whose rows have no label states none.
    rows[1] = "u,c1,,B,0.5,"
    assert len(score(written(path, *rows, head=head), **QUICK)["scores"]) == 2


def test_a_text_identifies_a_claim_where_no_id_does(tmp_path: Path) -> None:
    head = "response,claim_text,p,label"
    rows = ["u,Io is a moon.,0.75,1", "u,Io is a moon.,0.75,0", "v,Io is a moon.,0.5,0"]
    path = written(tmp_path / "t.csv", *rows, head=head)
    refused("line 3: claim 'Io is a moon.' of response 'u' has the label", score, path, **QUICK)
    # Of unknown responses two may have a claim of one number, and not of one text.
    path = written(tmp_path / "t.csv", "1,0.75,1", "1,0.5,0", head="claim,p,label")
    assert score(path, **QUICK)["scores"]["n_claims"].tolist() == [2]
    path = written(tmp_path / "t.csv", "a b,0.75,1", "a b,0.75,0", head="claim,p,label")
    refused("name the column of responses with", score, path, **QUICK)


def test_self_knowledge_has_the_same_rule(tmp_path: Path) -> None:
    head = "response,claim,judgment,label"
    rows = ["u,u1,yes,1", "u,u2,no,0", "u,u1,yes,1"]
    measured = self_knowledge(written(tmp_path / "t.csv", *rows, head=head), n_bootstrap=20)
    assert any(
        "1 row repeats a claim of an earlier row (line 4)" in sentence
        for sentence in measured.sentences
    )
    assert measured["test"]["n_claims"].tolist() == [2]
    for row, message in (
        ("u,u1,yes,0", "line 4: claim 'u1' of response 'u' has the label 'false', and 'true' in"),
        ("u,u1,no,1", "line 4: claim 'u1' of response 'u' has the judgment 'no', and 'yes' in"),
    ):
        refused(message, self_knowledge, written(tmp_path / "t.csv", *rows[:2], row, head=head))
    # Several answers of one claim, which may be alike, are its votes.
    path = written(tmp_path / "t.csv", *rows, "u,u1,no,1", head=head)
    measured = self_knowledge(path, claim="claim", n_bootstrap=20)
    assert measured["test"]["n_claims"].tolist() == [2]
    head = "response,claim,confidence,label"
    path = written(tmp_path / "t.csv", "u,u1,0.75,1", "u,u1,0.5,1", head=head)
    refused("has the confidence '0.5', and '0.75' in line 2", self_knowledge, path, claim="claim")


def test_numbers_that_name_a_response_are_one_name_in_every_type() -> None:
    frame = pd.DataFrame(
        {"response": [3.0, 3.0, 4.0], "claim": ["a", "b", "c"], "p": [0.5] * 3, "label": [1, 0, 1]}
    )
    kept = keep(frame, frame)
    assert kept["responses"]["response"].tolist() == ["3", "4"]


def test_spellings_of_one_number_are_two_responses_and_reported(tmp_path: Path) -> None:
    rows = ("1,a,0.75,1", "1.0,b,0.5,0", "01,c,0.5,0", "2,a,0.25,0", "2,b,0.5,1")
    scores = score(written(tmp_path / "t.csv", *rows, head="response,claim,p,label"), **QUICK)
    sentence = (
        "'1' and '1.0' in 'response' are two responses; if they are the same response, spell "
        "the number in the same way."
    )
    assert sentence in scores.sentences
    scores = score(written(tmp_path / "u.csv", *rows[3:], head="response,claim,p,label"), **QUICK)
    assert not any("write the number" in each for each in scores.sentences)


def test_a_model_without_a_label_is_left_out_with_a_word() -> None:
    claims = pd.DataFrame({"response": ["u", "u", "v"], "claim": ["a", "b", "a"], "p": 0.25})
    labeled = claims.assign(model="first", label=[1, 0, 1])
    scores = score(pd.concat([labeled, claims.assign(model="second")]), **QUICK)
    assert scores["scores"]["model"].tolist() == ["first"]
    sentence = (
        "No row of 'second' has a label, so it is not scored; repeat the label of a claim in "
        "each of its rows."
    )
    assert sentence in scores.sentences


def test_a_named_index_is_a_column() -> None:
    frame = pd.DataFrame(
        {"response": ["u", "u", "v"], "claim": ["a", "b", "a"], "p": [0.75, 0.5, 0.25], "label": 1}
    )
    kept = keep(frame.set_index(["response", "claim"]), frame)
    assert kept["responses"]["response"].tolist() == ["u", "v"]


def test_a_guessed_column_of_responses_that_joins_no_rows_is_reported() -> None:
    frame = pd.DataFrame({"id": [1, 2, 3], "p": [0.75, 0.5, 0.25], "label": [1, 0, 0]})
    message = "No two rows share a value of 'id', so claims are treated as independent"
    # No other column repeats a value, so there is none to propose.
    assert f"{message}." in score(frame, **QUICK).sentences
    answered = frame.assign(Antwort=["u", "u", "v"])
    proposed = f"{message}; if 'Antwort' does, add `group='Antwort'`."
    assert proposed in score(answered, **QUICK).sentences
    scores = score(answered, group="Antwort", **QUICK)
    assert not any("treated as independent" in sentence for sentence in scores.sentences)
    scores = score(frame.rename(columns={"id": "response"}), **QUICK)
    assert not any("treated as independent" in sentence for sentence in scores.sentences)


def test_p_beyond_1_by_the_rounding_of_float32_is_1(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"response": ["u", "v"], "p": np.array([1.0000001, 0.25], "float32"), "label": [1, 0]}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    for data in (frame, tmp_path / "t.parquet", frame.convert_dtypes(dtype_backend="pyarrow")):
        scores = score(data, **QUICK)
        assert briers(scores) == {"p": pytest.approx(0.25**2 / 2, abs=1e-12)}
        assert any("beyond 0 or 1 by the rounding" in sentence for sentence in scores.sentences)
    refused("1.0000001.* is not a probability", score, frame.astype({"p": float}), **QUICK)


def test_the_label_of_a_row_without_a_probability_may_not_contradict(tmp_path: Path) -> None:
    agreeing = score(written(tmp_path / "a.csv", *ROWS, "u,u1,,1"), **QUICK)
    assert briers(agreeing) == {"p": pytest.approx(BRIER)}
    path = written(tmp_path / "b.csv", *ROWS, "u,u1,,0")
    refused("claim 'u1' of response 'u' has the label 'false', and 'true'", score, path, **QUICK)


def test_texts_that_differ_within_a_response_identify_claims(tmp_path: Path) -> None:
    head = "response,text,p,label"
    rows = tuple(row.replace(",u", ",Words of u").replace(",v", ",Words of v") for row in ROWS)
    path = written(tmp_path / "a.csv", *rows, rows[0], head=head)
    scores = score(path, **QUICK)
    assert briers(scores) == {"p": pytest.approx(BRIER)}
    contradicted = f"{rows[0][:-1]}0"
    path = written(tmp_path / "b.csv", *rows, contradicted, head=head)
    refused("has the label 'false', and 'true' in line 2", score, path, **QUICK)
    # The text of a whole response is in every row of its claims.
    whole = ("u,All of u,0.75,1", "u,All of u,0.5,0", "v,All of v,0.25,0", "v,All of v,0.5,1")
    scores = score(written(tmp_path / "c.csv", *whole, head=head), **QUICK)
    assert briers(scores) == {"p": pytest.approx(BRIER)}


def test_tables_in_memory_state_the_names_of_their_classes() -> None:
    class Features(dict[str, Any]):
        """Features of a dataset of `datasets`."""

        def to_dict(self) -> dict[str, Any]:
            return dict(self)

    class Dataset:
        """A dataset of `datasets`: it yields rows, and its `to_dict` gives columns."""

        features = Features(label={"names": ["supported", "refuted"], "_type": "ClassLabel"})

        def __iter__(self) -> Iterator[Any]:
            return iter(COLUMNS.to_dict("records"))

        def to_dict(self) -> Any:
            return COLUMNS.to_dict("list")

    stated = {"info": {"features": Dataset.features}}
    arrow = pa.Table.from_pandas(COLUMNS).replace_schema_metadata(
        {"huggingface": json.dumps(stated)}
    )
    for data in (Dataset(), arrow):
        scores = score(data, **QUICK)
        assert briers(scores) == {"p": pytest.approx(BRIER)}
    # A column of a data frame is no statement about it, whatever its name.
    plain = COLUMNS.assign(features=1)
    assert briers(score(plain, **QUICK)) != {"p": pytest.approx(BRIER)}


@pytest.mark.parametrize("claims", ["claim", "topic"])
def test_the_option_that_pairs_models_without_responses_works_as_it_stands(claims: str) -> None:
    rows: list[dict[str, Any]] = [
        {"model": model, claims: f"c{number}", "p": p, "label": number % 2}
        for model, first in (("a", 0.2), ("b", 0.3))
        for number, p in enumerate((first, 0.9, 0.4, 0.6))
    ]
    scores = score(rows, scores=["brier"], **QUICK)
    assert "tests" not in scores.tables
    (advice,) = [each for each in scores.sentences if "treated as independent" in each]
    named = re.search(r"group='(\w+)'", advice)
    assert named is not None
    paired = score(rows, scores=["brier"], group=named[1], **QUICK)
    assert paired["tests"]["of"].tolist() == ["b minus a"]


def test_no_column_pairs_models_whose_claims_would_stand_there_twice() -> None:
    # Two responses that no column names have a claim of the same id each.
    rows = [
        {"model": model, "claim": f"c{number % 2}", "p": p, "label": number % 2}
        for model in "ab"
        for number, p in enumerate((0.2, 0.9, 0.4, 0.6))
    ]
    scores = score(rows, scores=["brier"], **QUICK)
    assert not any("group=" in each for each in scores.sentences)


def test_models_are_paired_by_a_shared_id_or_text_before_they_are_paired_by_order() -> None:
    claims = pd.DataFrame(
        {
            "document": ["u", "u", "v", "v"],
            "item id": ["1", "2", "1", "2"],
            "statement": ["It is old.", "It is tall.", "It is blue.", "It is wide."],
            "label": [1, 0, 1, 0],
        }
    )
    first, second = [0.9, 0.2, 0.6, 0.3], [0.8, 0.4, 0.8, 0.1]
    tables = [claims.assign(model="a", p=first), claims.assign(model="b", p=second)[::-1]]
    both = pd.concat(tables)
    expected = np.mean((np.array(second) - claims["label"]) ** 2) - np.mean(
        (np.array(first) - claims["label"]) ** 2
    )
    # In the order of rows, the labels of the models would differ, and nothing would be tested.
    by_order = "models are paired by the order of their rows"
    for dropped in (["statement"], ["item id"], []):
        scores = score(both.drop(columns=dropped), reference="a", scores=["brier"], **QUICK)
        assert scores["tests"]["difference"].tolist() == pytest.approx([expected], abs=1e-12)
        assert not any(by_order in sentence for sentence in scores.sentences)
    # An id of rows, which no two models share, is no id of a claim.
    of_rows = both.drop(columns="statement").assign(**{"item id": list("abcdefgh")})
    scores = score(of_rows, reference="a", scores=["brier"], **QUICK)
    assert any(by_order in sentence for sentence in scores.sentences)
    assert any("name the column of claim ids" in sentence for sentence in scores.sentences)


def test_the_advice_of_self_knowledge_works_where_it_is_followed(tmp_path: Path) -> None:
    rows = ("q1,It rains.,0.9,1", "q1,It is cold.,0.2,0", "q2,It is late.,0.6,1")
    path = written(tmp_path / "own.csv", *rows, head="answer,claim,p,truth")
    refused("name it, as in .group='answer'", self_knowledge, path)
    # "answer" is also a name of the model's judgments.
    refused("name it, as in .confidence='p'", self_knowledge, path, group="answer")
    assert len(self_knowledge(path, group="answer", confidence="p")["quantities"])
