"""`keep`: a promise learned on labeled answers, and new answers written with what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.filtering import conformal_filter
from experiments import keep
from experiments.columns.assessed_metadata import METADATA_KEY
from factormodels import Atom, FactGraph, write_many
from factormodels.errors import InputError
from tests.commands import called
from tests.refusals import refused


def drawn(seed: int, n_responses: int = 60, *, shift: float = 0.0) -> Any:
    generator = np.random.default_rng(seed)
    level = np.repeat(generator.normal(1.0 + shift, 1.0, n_responses), 5)
    p = 1 / (1 + np.exp(-level - generator.normal(0, 1.5, level.size)))
    return pd.DataFrame(
        {
            "response": np.repeat([f"r{number}" for number in range(n_responses)], 5),
            "claim": np.tile([f"c{number}" for number in range(5)], n_responses),
            "text": [f"Claim {number}." for number in range(p.size)],
            "p": p,
            "label": generator.random(p.size) < p,
        }
    )


def test_what_is_kept_is_what_the_filter_keeps_by_command_and_in_python(tmp_path: Path) -> None:
    old, new = drawn(0), drawn(1).drop(columns="label")
    kept = keep(old, new, precision=0.8, confidence=0.8, splits=5)
    chosen = conformal_filter(
        old["p"], old["label"].to_numpy(), old["response"], precision=0.8, confidence=0.8
    )
    assert list(kept["claims"]["kept"]) == list(chosen.keep(new["p"]))
    assert 0 < kept["claims"]["kept"].mean() < 1
    old.to_csv(tmp_path / "old.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    promise = ("--precision", "0.8", "--confidence", "0.8", "--splits", "5", "--json")
    result = called("keep", str(tmp_path / "old.csv"), str(tmp_path / "new.csv"), *promise)
    printed = json.loads(result.stdout)
    assert [row["kept"] for row in printed["tables"]["claims"]] == list(kept["claims"]["kept"])
    # A label with a name of one's own is only looked for among the labeled responses.
    old.rename(columns={"label": "truth"}).to_csv(tmp_path / "old.csv", index=False)
    paths = (str(tmp_path / "old.csv"), str(tmp_path / "new.csv"))
    named = called("keep", *paths, "--label", "truth", *promise)
    assert json.loads(named.stdout)["tables"] == printed["tables"]


def test_answers_are_written_struck_or_without_what_is_dropped(tmp_path: Path) -> None:
    old = drawn(0)
    new = pd.DataFrame(
        {
            "response": ["a", "a", "b", "b"],
            "claim": ["1", "2", "1", "2"],
            "text": ["It is <old>.", "It is big.", "He ran.", "He sang."],
            "answer": ["It is <old>. It is big. Yes.", None, "", ""],
            "p": [0.001, 0.9999, 0.9999, 0.001],
        }
    )
    promise: dict[str, Any] = {"precision": 0.8, "confidence": 0.8, "splits": 2}

    def written(name: str, **more: Any) -> str:
        keep(old, new, answers=tmp_path / name, **promise, **more)
        return (tmp_path / name).read_text(encoding="utf-8")

    # Of the first answer the text is known, and the claim stands there word for word.
    assert written("k.txt") == "a\n~~It is <old>.~~ It is big. Yes.\n\nb\nHe ran. ~~He sang.~~\n"
    assert written("k.md", dropped="remove") == "a\nIt is big. Yes.\n\nb\nHe ran.\n"
    page = written("k.html")
    assert "<del>It is &lt;old&gt;.</del> It is big. Yes." in page
    records = json.loads(written("k.json", dropped="remove"))
    assert [each["answer"] for each in records] == ["It is big. Yes.", "He ran."]
    assert records[0]["claims"][0] == {"id": "1", "text": "It is <old>.", "p": 0.001, "kept": False}
    assert len(written("k.jsonl").splitlines()) == 2


@pytest.mark.parametrize(
    ("answer", "claims", "struck", "removed"),
    [
        # Lines and stops stay as they are.
        ("One.\n\nTwo; three, four.", {"three": False}, "One.\n\nTwo; ~~three~~, four.", None),
        # Where two dropped claims meet, no part of either is kept.
        (
            "Ann ran home fast.",
            {"ran home": False, "home fast": False},
            "Ann ~~ran home fast~~.",
            "Ann .",
        ),
        # What is said twice is dropped twice.
        ("No. Yes. No.", {"No.": False, "Yes.": True}, "~~No.~~ Yes. ~~No.~~", "Yes."),
        # A claim is no part of a word, and what is kept is not struck for what is dropped.
        ("In 1900.", {"In 19": False}, "~~In 19~~", ""),
        ("He ran home.", {"He ran": False, "He ran home.": True}, "~~He ran~~ He ran home.", None),
    ],
)
def test_an_answer_is_itself_but_for_what_is_dropped(
    tmp_path: Path, answer: str, claims: dict[str, bool], struck: str, removed: str | None
) -> None:
    new = pd.DataFrame(
        {
            "response": "a",
            "claim": [str(number) for number in range(len(claims))],
            "text": list(claims),
            "answer": answer,
            "p": [0.9999 if kept else 0.001 for kept in claims.values()],
        }
    )
    out = tmp_path / "k.txt"
    for dropped, wanted in (("strike", struck), ("remove", removed)):
        if wanted is not None:
            more: Any = {"precision": 0.8, "confidence": 0.8, "splits": 2, "dropped": dropped}
            keep(drawn(0), new, answers=out, **more)
            assert out.read_text(encoding="utf-8") == f"a\n{wanted}\n"


def test_judged_responses_are_rewritten_in_their_own_words(tmp_path: Path) -> None:
    atoms = (Atom("a1", "It opened."), Atom("a2", "It closed."))
    view = {"FR1": {"atoms": {"a1": {"p": 0.9999}, "a2": {"p": 0.001}}}}
    text = "It opened. Then: It closed."
    graph = FactGraph("g", atoms, response=text, metadata={METADATA_KEY: view})
    write_many([graph], tmp_path / "new.jsonl")
    old = drawn(0)
    out = tmp_path / "k.txt"
    keep(old, tmp_path / "new.jsonl", precision=0.8, confidence=0.8, splits=2, answers=out)
    assert out.read_text(encoding="utf-8") == "g\nIt opened. Then: ~~It closed.~~\n"


def test_responses_of_another_kind_are_told() -> None:
    old = drawn(0)
    alike = keep(old, drawn(1), precision=0.8, splits=2)
    assert any("exchangeable" in each for each in alike.sentences)
    other = keep(old, drawn(1, shift=-3.0), precision=0.8, splits=2)
    assert any("guarantee does not hold" in each for each in other.sentences)


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    old = drawn(0)
    refused(r"name a file that ends in .txt", keep, old, old, answers=tmp_path / "k.docx")
    refused("promised in the mean", keep, old, old, precision=1.0, guarantee="mean")
    with pytest.raises(InputError, match="several probabilities, p, p2; choose one"):
        keep(old.assign(p2=0.5), old, p=["p", "p2"])
    drawn(0, 1).to_csv(tmp_path / "one.csv", index=False)
    with pytest.raises(
        InputError, match=r"one.csv: labels that count are of 1 response, '.+'; label"
    ):
        keep(tmp_path / "one.csv", old)
    few = keep(drawn(0, 3), old, splits=2)
    assert any("Nothing can be kept" in each for each in few.sentences)
