"""Columns of a user's table that options or their names find."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments import estimate, keep, score, self_knowledge
from experiments.columns import claims, judged_claims, roles
from experiments.columns.resolved import Columns
from experiments.columns.roles import CONTEXTS, LABEL, PROBABILITY, RESPONSE_TEXT, Role
from factormodels.errors import InputError


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
        "t.csv: no column is known as the probability or the label; name them with --p and "
        "--label; it has Answer #, is it true?"
    )


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
        with pytest.raises(InputError, match="no column is known as the label"):
            commands[name]()
    longer = replace(LABEL, names=(*LABEL.names, "verdict of the court"))
    for module in (claims, judged_claims):
        monkeypatch.setattr(module, "LABEL", longer)
    for command in commands.values():
        said = " ".join(command().sentences)
        assert "label 'verdict of the court'" in said


def test_bare_numbers_below_a_heading_of_per_cent_are_per_cent(tmp_path: Path) -> None:
    shares = score(tables(tmp_path), n_bootstrap=10, resamples=10)
    frame = pd.read_csv(tmp_path / "t.csv")
    percents = frame.assign(**{"confidence (%)": 100 * frame["p"]}).drop(columns="p")
    found = score(percents, n_bootstrap=10, resamples=10)
    assert found["scores"]["brier"][0] == pytest.approx(shares["scores"]["brier"][0], abs=1e-12)
    said = (
        "The heading of column 'confidence (%)' says per cent: 10 numbers are read so, 62.5 as "
        "0.625."
    )
    assert said in found.sentences
    asked = self_knowledge(percents, n_bootstrap=10)
    assert said in asked.sentences
    # A share below such a heading stays one, and a sign of its own is read once.
    for bare in (frame["p"], (100 * frame["p"]).map("{:.1f} %".format)):
        table = percents.assign(**{"confidence (%)": bare})
        again = score(table, n_bootstrap=10, resamples=10)
        assert again["scores"]["brier"][0] == pytest.approx(shares["scores"]["brier"][0])
        assert said not in again.sentences
    above = percents.assign(**{"confidence (%)": [*percents["confidence (%)"][:-1], 100.5]})
    with pytest.raises(InputError, match=r"row 10, column .*: 100\.5 is not .* from 0 to 100, for"):
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
    assert "Columns known by their names: probability 'score', label 'gold'" in " ".join(
        nested.sentences
    )
    assert "No column says" not in " ".join(nested.sentences)
    # What is wrong is named by the response that holds it.
    bad = [NESTED[0], {"id": "r2", "claims": [{"gold": "S", "score": "high"}]}]
    with pytest.raises(InputError, match="the table, row 2, column 'score': 'high' is not a prob"):
        score(bad)
    # A name that no claim has is looked for among the columns that a person sees.
    with pytest.raises(InputError, match="no column is known as the probability or the label"):
        score([{"id": "r1", "claims": [{"text": "One."}]}])


def test_the_layout_of_an_owner_is_known_to_every_command() -> None:
    data = [
        {"data": [{"claims": [{"subclaim": "A.", "gpt-score": p, "annotation": word}]}]}
        for p, word in ((0.9, "Y"), (0.3, "N"), (0.8, "Y"), (0.6, "S"))
    ]
    scored = score(data, n_bootstrap=10, resamples=10, scores="brier")
    assert scored["scores"]["brier"][0] == pytest.approx((0.01 + 0.09 + 0.04 + 0.36) / 4)
    known = "Known as a file of tatsu-lab/conformal-factual-lm. Label: annotation"
    for found in (scored, estimate(data, quantities="share"), self_knowledge(data)):
        assert known in " ".join(found.sentences)
