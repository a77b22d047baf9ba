"""A small local model: the study and the choice of prompts on answers with a known bias."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from experiments.evaluators.recorded_relations import PairKey, judged_pairs
from factormodels import datasets
from factormodels.claims import RelationKind
from factormodels.io.relation_record import (
    RecordedAnswer,
    RecordOrigin,
    record_text,
)
from factormodels.metadata.prompt_identity import PromptIdentity
from notebooks.questions.relation_prompts import relation_prompts
from notebooks.questions.small_local_model import BENCH, BIOGRAPHIES, SHARES, small_local_model
from tests.refusals import refused

pytestmark = pytest.mark.slow

PROMPT, OTHER = "relation_question_examples", "relation"

BIAS = np.array([-1.0, 2.0, 0.0])
"""Log-probabilities that the simulated model adds whatever it is asked."""


def bench_pairs(n_responses: int) -> dict[PairKey, int]:
    """Relation that people found of each pair of the first responses of Factcheck-Bench."""
    stances = {"irrelevant": (RelationKind.NEUTRAL, 1.0)}
    graphs = datasets.load(BENCH, stances=stances).graphs
    return judged_pairs(graphs[:n_responses])


def biography_pairs(n_responses: int) -> dict[PairKey, int]:
    """A relation for two own passages of each claim at most: true claims are entailed."""
    graphs = datasets.load(BIOGRAPHIES).graphs[:n_responses]
    true = {(graph.id, atom.id) for graph in graphs for atom in graph.atoms if atom.label}
    pairs: dict[tuple[str, str], list[PairKey]] = {}
    for graph in graphs:
        for context in graph.contexts:
            for claim in context.retrieved_for:
                pairs.setdefault((graph.id, claim), []).append((graph.id, context.id, claim))
    return {key: 0 if claim in true else 2 for claim, keys in pairs.items() for key in keys[:2]}


def simulated(
    path: Path,
    dataset: str,
    relations: dict[PairKey, int],
    knows: dict[str, float],
    order: str = "responses",
) -> str:
    """Write a record of a biased model, and return its path.

    Args:
        path: the file.
        dataset: the dataset of the pairs.
        relations: column of the right relation of each pair.
        knows: what the model adds to the log-probability of the right relation, by prompt.
        order: order of recording.
    """
    generator = np.random.default_rng(3)
    answers = []
    for prompt, strength in knows.items():
        answers.append(answer_of(("", "N/A", "N/A"), prompt, BIAS))
        for key, column in relations.items():
            logits = BIAS + generator.normal(0, 0.5, 3) + strength * np.eye(3)[column]
            answers.append(answer_of(key, prompt, logits))
    prompts = tuple(PromptIdentity(prompt, 1, "0") for prompt in knows)
    origin = RecordOrigin(dataset, "simulated", len(relations), prompts=prompts, order=order)
    path.write_text(record_text(origin, answers), encoding="utf-8")
    return str(path)


def answer_of(key: Sequence[str], prompt: str, logits: np.ndarray) -> RecordedAnswer:
    """An answer with these log-probabilities, once they are normalized."""
    entails, contradicts, neutral = (logits - np.log(np.exp(logits).sum())).tolist()
    response, passage, claim = key
    shares = (entails, contradicts, neutral)
    return RecordedAnswer(response, passage, claim, prompt, shares, "", (400, 300, 2), 5.0)


# Fields and trees are learned for every source of relations.
@pytest.mark.nightly
def test_the_study_finds_the_bias_and_what_remains_without_it(tmp_path: Path) -> None:
    bench, biographies = bench_pairs(14), biography_pairs(12)
    records = (
        simulated(tmp_path / "bench.jsonl", BENCH, bench, {PROMPT: 2.0}),
        simulated(tmp_path / "bios.jsonl", BIOGRAPHIES, biographies, {PROMPT: 2.0}, "ranks"),
        "factcheck-bench.lexical",
    )
    tables = small_local_model(records=records, folds=2).tables
    relations = tables["relations"].frame.set_index("relations")
    assert list(relations.index) == ["raw", "probe", "batch", "learned", "lexical", SHARES]
    assert (relations["n"] == len(bench)).all()
    # The probe knows the bias exactly; the mean answer takes away more than the bias.
    assert relations["accuracy"]["probe"] > relations["accuracy"]["raw"] + 0.3
    assert relations["difference_upper"][["probe", "batch", "learned"]].max() < 0
    assert relations["log_loss"]["learned"] < relations["log_loss"]["batch"]
    claims = tables["claims"].frame
    assert set(claims["data"]) == {BENCH, BIOGRAPHIES}
    assert set(claims["graph"]) == {
        *("FR1", "FR2", "FR3", "learned field", "trees without a graph", "base rate")
    }
    brier = claims.set_index(["data", "relations", "graph"])["brier"]
    for dataset in (BENCH, BIOGRAPHIES):
        # Nothing is recorded of two passages.
        assert brier[dataset, "probe", "FR3"] == brier[dataset, "probe", "FR2"]
        assert brier[dataset, "probe", "FR1"] < brier[dataset, "raw", "FR1"]
    assert brier[BIOGRAPHIES, "probe", "FR1"] < brier[BIOGRAPHIES, "probe", "base rate"]
    # What the simulated model knows, words do not tell.
    less = claims.set_index(["data", "relations", "graph"])["difference_lexical_upper"]
    assert less[BENCH, "probe", "FR1"] < 0
    across = tables["across"].frame
    assert set(across["where"]) == {
        f"{BENCH} to {BIOGRAPHIES}",
        f"{BIOGRAPHIES} to {BENCH}",
    }
    assert set(across["graph"]) == {"learned field", "trees without a graph", "base rate"}
    costs = tables["costs"].frame.set_index("data")
    assert (costs["responses"][BENCH], costs["pairs"][BENCH]) == (14, len(bench))
    assert (costs["responses"][BIOGRAPHIES], costs["passages"][BIOGRAPHIES]) == (12, "best 2")
    assert 1.0 < costs["calls"][BIOGRAPHIES] <= 2.0
    assert costs["asked"][BENCH] == pytest.approx(400 * costs["calls"][BENCH])
    assert costs["read"][BENCH] == pytest.approx(100 * costs["calls"][BENCH])


def test_the_prompt_that_knows_more_is_chosen_and_confirmed(tmp_path: Path) -> None:
    bench = bench_pairs(30)
    record = simulated(tmp_path / "r.jsonl", BENCH, bench, {OTHER: 0.5, PROMPT: 3.0})
    tables = relation_prompts(records=(record,)).tables
    (choice,) = tables["choice"].frame.to_dict("records")
    assert (choice["prompt"], choice["correction"]) == (PROMPT, "probe")
    assert choice["defined_upper"] < 0
    assert choice["shares_upper"] < 0
    # The choice is the default, which is no rival of itself.
    assert np.isnan(choice["default"])
    scores = tables["prompts"].frame.set_index(["prompt", "correction"])
    assert scores["log_loss"][PROMPT, "probe"] < scores["log_loss"][PROMPT, "none"]
    # Scores of one half; the other chose.
    assert 0 < choice["pairs"] == scores["n"][PROMPT, "probe"] < len(bench)
    costs = tables["costs"].frame
    assert costs["missing"].tolist() == [0, 0]
    assert costs["read"].tolist() == [100.0, 100.0]


def test_a_choice_that_differs_from_the_default_is_compared_with_it(tmp_path: Path) -> None:
    record = simulated(tmp_path / "r.jsonl", BENCH, bench_pairs(30), {OTHER: 3.0, PROMPT: 0.5})
    (choice,) = relation_prompts(records=(record,)).tables["choice"].frame.to_dict("records")
    assert choice["prompt"] == OTHER
    assert choice["default_lower"] <= choice["default"] <= choice["default_upper"] < 0
    assert np.isnan(choice["defined"])


def test_a_record_without_enough_pairs_compares_nothing(tmp_path: Path) -> None:
    (key, *_) = bench = bench_pairs(1)
    record = simulated(tmp_path / "r.jsonl", BENCH, {key: bench[key]}, {PROMPT: 3.0})
    refused("too few for two halves; record more", relation_prompts, records=(record,))
