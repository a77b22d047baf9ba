"""`consensus` without a model: answers that were recorded, and those of the demonstration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments import consensus
from factormodels import datasets
from factormodels.extraction.relation_models.consensus import read_consensus
from tests.experiments.conftest import invoke
from tests.refusals import refused

WAYS = {
    *("consensus, learned", "consensus", "plain votes", "mean likeness"),
    *("verbalised", "logprobs"),
}
ANSWERS = Path(datasets.__file__).parent / "data" / "demonstration.answers.jsonl"


def test_the_demonstration_needs_no_model(folder: Path) -> None:
    printed = invoke(*("consensus", "demonstration", "--complete", "--save", "law.json", "--json"))
    found = json.loads(printed.stdout)
    scores = {row["model"]: row for row in found["tables"]["scores"] if row["of"] == "entailment"}
    assert set(scores) == WAYS
    # The law that the answers are drawn from trusts cold answers, which votes do not know.
    assert scores["consensus, learned"]["brier"] < scores["consensus"]["brier"]
    law = read_consensus(folder / "law.json")
    assert law.weights[1] > law.weights[4]
    assert law.learned_from == "112 labelled relations of 14 responses, imitated answers"
    assert not found["incomplete"]
    (said,) = [each for each in found["findings"] if "Nobody was asked" in each]
    assert "written for the demonstration by a script" in said


def test_a_file_gives_what_its_answers_say(tmp_path: Path) -> None:
    whole: Any = consensus("demonstration", complete=True)
    of_file: Any = consensus("demonstration", complete=True, recorded=ANSWERS)
    assert of_file["scores"].equals(whole["scores"])
    assert f"the answers are those of {ANSWERS}" in str(of_file)
    # Of fewer pairs, without the other ways.
    kept = tmp_path / "answers.jsonl"
    with kept.open("w", encoding="utf-8") as file:
        for line in ANSWERS.read_text("utf-8").splitlines()[::2]:
            record = json.loads(line)
            del record["logprobs"]
            # Sampled at fewer temperatures than those that are usual.
            record["answers"] = [one for one in record["answers"] if one["temperature"] < 0.6]
            file.write(json.dumps(record) + "\n")
    law = tmp_path / "law.json"
    fewer: Any = consensus(
        "demonstration", complete=True, recorded=kept, temperatures=(0.9,), save=law
    )
    learned = read_consensus(law)
    assert (learned.temperatures, learned.samples) == ((0.3, 0.5), 4)
    assert set(fewer["scores"]["model"]) == WAYS - {"logprobs"}
    assert "Learned from 56 labelled relations of 14 responses" in str(fewer)
    of_claims: Any = consensus("demonstration", labels="claims", recorded=kept)
    assert set(of_claims["scores"]["of"]) == {"claim"}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"recorded": ANSWERS, "model": "openai/test"}, "recorded. says what was answered"),
        ({"recorded": Path("no.jsonl")}, "no.jsonl"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, Any], told: str) -> None:
    refused(told, consensus, "demonstration", **settings)


def test_answers_of_other_pairs_are_refused() -> None:
    refused("none is of a pair whose relation", consensus, "at-odds", recorded=ANSWERS)
