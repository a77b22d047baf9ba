"""`consensus`: what answers are worth, learned from labels through litellm on the loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.folds import response_folds
from calibration.recalibration.relation_law import fit_relations
from experiments import consensus
from experiments.methods.consensus import (
    ConsensusSettings,
    asked_of,
    known_pairs,
    learned_in_folds,
)
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.extraction.language_model.litellm_model import LitellmModel, LitellmSettings
from factormodels.extraction.relation_models.consensus import (
    ConsensusLaw,
    read_consensus,
    relation_probabilities,
)
from factormodels.io.fact_graph_json import write_fact_graphs
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.server import Reply, ScriptedServer, label_reply
from tests.refusals import refused

pytestmark = [pytest.mark.service, pytest.mark.slow]

KINDS = ("entailment", "contradiction", "neutral")


def responses(n: int) -> list[FactGraph]:
    """Responses with a known relation of each of three passages to a claim of its own."""
    rng = np.random.default_rng(0)
    found = []
    for place in range(n):
        kinds = rng.permutation(KINDS)
        numbers = [f"{place}-{at}" for at in range(3)]
        found.append(
            FactGraph(
                f"r{place}",
                tuple(
                    Atom(f"a{at}", f"claim {number}", label=kind == "entailment")
                    for at, (number, kind) in enumerate(zip(numbers, kinds, strict=True))
                ),
                tuple(
                    Context(f"c{at}", f"passage {number} is of {kind}", retrieved_for=(f"a{at}",))
                    for at, (number, kind) in enumerate(zip(numbers, kinds, strict=True))
                ),
                tuple(
                    Relation(f"c{at}", f"a{at}", RelationKind(kind), 0.9)
                    for at, kind in enumerate(kinds)
                ),
            )
        )
    return found


def script(request: dict[str, Any], _: int) -> Reply:
    """Who answers is right at low temperatures and guesses at high ones, and is sure of itself."""
    asked = str(request["messages"][-1]["content"])
    right = next(kind for kind in KINDS if f"is of {kind}" in asked)
    number = asked.split("passage ")[-1].split(" is of")[0]
    rng = np.random.default_rng([request["seed"], *map(ord, number)])
    temperature = request["temperature"]
    said = right if rng.random() < 1.0 - 0.6 * temperature else str(rng.choice(KINDS))
    if "logprobs" in request:
        others = {kind: 0.01 for kind in KINDS if kind != said}
        return label_reply(said, 0.98, others)
    if "confidence" in str(request["messages"][0]["content"]):
        return Reply(json.dumps({"relation": said, "confidence": 0.99}))
    return Reply(f"What is said of {number} decides.\nRelation: {said}")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(script) as running:
        yield running


@pytest.fixture
def labelled(folder: Path) -> Path:
    write_fact_graphs(responses(30), folder / "graphs.jsonl")
    return folder


def asked(server: ScriptedServer, *more: str, code: int = 0) -> dict[str, Any]:
    options = ("--model", "openai/test", "--api-base", server.url, "--json", *more)
    printed = invoke("consensus", "graphs.jsonl", *options, code=code).stdout
    found: dict[str, Any] = json.loads(printed)
    return found


def model_at(server: ScriptedServer) -> LitellmModel:
    return LitellmModel(LitellmSettings("openai/test", api_base=server.url))


def test_it_learns_which_temperatures_to_trust(labelled: Path, server: ScriptedServer) -> None:
    found = asked(server, "--save", "law.json")
    scores = {row["model"]: row for row in found["tables"]["scores"] if row["of"] == "entailment"}
    assert set(scores) == {
        *("consensus, learned", "consensus", "plain votes", "mean likeness"),
        *("verbalised", "logprobs"),
    }
    learned, votes = scores["consensus, learned"], scores["consensus"]
    assert learned["brier"] < votes["brier"]
    assert votes["less"] == pytest.approx(learned["brier"] - votes["brier"])
    law = read_consensus(labelled / "law.json")
    # The colder an answer, the likelier it is right.
    assert law.weights[1] > law.weights[4]
    assert law.learned_from == "90 labelled relations of 30 responses, openai/test"
    assert "The law is in law.json." in found["findings"]
    # Of 90 pairs each: eight samples, a confidence and log-probabilities.
    assert len(server.requests) == 90 * 10
    # Nothing is asked twice, of the judge neither.
    before = len(server.requests)
    method = ("--relations", "model", "--method", "consensus:law.json", "--variant", "FR1")
    model = ("--model", "openai/test", "--api-base", server.url)
    graphs = json.loads(
        invoke("assess", "graphs.jsonl", *model, *method, "--json", "--out", "assessed").stdout
    )
    assert len(server.requests) == before
    assert not graphs["incomplete"]
    line = json.loads((labelled / "assessed" / "graphs.jsonl").read_text().splitlines()[0])
    assert line["metadata"]["relations"]["origins"] == {"consensus": 3}


def test_what_was_answered_is_scored_again_without_asking(
    labelled: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the cache by a replay, and from a file of the same answers."""
    write_fact_graphs(responses(10), labelled / "graphs.jsonl")
    scores = asked(server)["tables"]["scores"]
    before = len(server.requests)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = ("--model", "openai/test", "--api-base", server.url, "--replay")
    again = json.loads(invoke("consensus", "graphs.jsonl", *model, "--json").stdout)
    assert again["tables"]["scores"] == scores
    assert len(server.requests) == before
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    known = known_pairs(responses(10), ConsensusSettings(), "here")
    votes = ConsensusSettings().votes
    answers, others = asked_of(known.pairs, votes, ["verbalised"], model_at(server), 8)
    with (labelled / "answers.jsonl").open("w") as file:
        for pair, own, sure in zip(known.pairs, answers, others["verbalised"], strict=True):
            rest = (1.0 - sure.probability) / 2
            record = {
                "premise": pair.premise,
                "hypothesis": pair.hypothesis,
                "answers": [
                    {"temperature": one.temperature, "relation": str(one.kind), "text": one.text}
                    for one in own
                ],
                "verbalised": [sure.probability if kind == sure.kind else rest for kind in KINDS],
            }
            file.write(json.dumps(record) + "\n")
    chosen = ("--recorded", "answers.jsonl", "--json")
    recorded = json.loads(invoke("consensus", "graphs.jsonl", *chosen).stdout)
    of_file = {(row["of"], row["model"]): row["brier"] for row in recorded["tables"]["scores"]}
    assert {way for _, way in of_file} >= {"consensus, learned", "consensus", "verbalised"}
    for row in scores:
        if row["model"] != "logprobs":
            expected = pytest.approx(row["brier"], abs=1e-9)
            assert of_file[row["of"], row["model"]] == expected


def test_labels_of_claims_teach_it_too(labelled: Path, server: ScriptedServer) -> None:
    found = asked(server, "--labels", "claims", "--save", "law.json")
    rows = {row["model"]: row for row in found["tables"]["scores"]}
    assert {row["of"] for row in rows.values()} == {"claim"}
    assert rows["consensus, learned"]["brier"] < rows["consensus"]["brier"]
    assert read_consensus(labelled / "law.json").learned_from.startswith("90 labelled claims")


@pytest.mark.usefixtures("labelled")
def test_a_dry_run_asks_nobody(server: ScriptedServer) -> None:
    found = asked(server, "--dry-run", "--samples", "4")
    assert server.requests == []
    assert found["findings"][0] == "90 pairs: 540 calls of openai/test, at most."


@pytest.mark.usefixtures("labelled")
def test_pairs_without_an_answer_are_left_out_and_counted(server: ScriptedServer) -> None:
    def failing(request: dict[str, Any], number: int) -> Reply:
        if "claim 0-0" in str(request["messages"][-1]["content"]):
            return Reply("perhaps")
        return script(request, number)

    server.script = failing
    found = asked(server, "--samples", "2", code=1)
    assert "1 pair without an answer of every kind: left out." in found["findings"]
    assert found["incomplete"]


@pytest.mark.parametrize(
    ("graphs", "settings", "told"),
    [
        (responses(3), {}, "consensus asks a language model"),
        (responses(3), {"model": "openai/test", "likeness": "meaning"}, "meaning"),
        ([FactGraph("r", (Atom("a", "It is so."),))], {}, "neither a relation of a passage"),
        (
            [FactGraph("r", (Atom("a", "It is so."),))],
            {"labels": "relations"},
            "no recorded relation joins two texts",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    graphs: list[FactGraph], settings: dict[str, Any], told: str
) -> None:
    refused(told, consensus, graphs, **settings)


def test_a_law_of_other_samples_is_its_own(tmp_path: Path) -> None:
    """What answers are worth depends on how they were sampled, so the law says how."""
    from experiments.asking.relation_models import build_relation_model
    from tests.factormodels.extraction.models import AnsweringModel

    law = ConsensusLaw((0.1, 0.9), 4)
    law.save(tmp_path / "law.json")
    model = AnsweringModel(lambda _: "Both say so.\nRelation: entailment")
    built: Any = build_relation_model(
        "prompted", model=model, method="consensus", path=tmp_path / "law.json"
    )
    assert built.law == law
    assert built.answers_per_pair == 4


def test_it_is_judged_on_responses_that_it_has_not_seen(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Probabilities of a response are those of a law of the other folds, fitted by hand."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    known = known_pairs(responses(30), ConsensusSettings(), "here")
    votes = ConsensusSettings().votes
    answers, _ = asked_of(known.pairs, votes, [], model_at(server), 8)
    columns = np.stack([votes.columns(own) for own in answers])
    _, p = learned_in_folds(known, columns, ConsensusSettings(folds=3))
    fold = response_folds(known.responses, 3, 0)
    assert known.kinds is not None
    for one in range(3):
        law = fit_relations(columns[fold != one], known.kinds[fold != one])
        expected = relation_probabilities(columns[fold == one], law.coefficients)
        np.testing.assert_allclose(p[fold == one], expected, atol=1e-4)
