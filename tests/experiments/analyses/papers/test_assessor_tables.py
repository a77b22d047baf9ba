"""Tables of assessors: their numbers by another way, and on a user's own data and answers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

from calibration.scores.summary import summarise
from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers import assessors
from experiments.analyses.papers.shared.loading import Block, EvidenceBlocks, related
from experiments.analyses.papers.shared.sources import VARIABLE
from factormodels.extraction.language_model import Completion, Request, Token, Usage
from factormodels.extraction.language_model.cache import AnswerCache, CachedModel
from factormodels.extraction.relation_models.prompted import PromptedRelationModel
from factormodels.extraction.stages.asking import identity_of
from factormodels.extraction.stages.assessors import ASSESSORS, assess
from factormodels.variants import variant
from inference import infer
from tests.experiments.analyses.papers.conftest import (
    GRAPHS,
    answer_by_rule,
    frames_of,
    run_study,
    say_where,
    write_graphs,
)
from tests.factormodels.extraction.models import AnsweringModel
from tests.refusals import refused

pytestmark = pytest.mark.slow

BIOGRAPHIES = "papers/factreasoner-biographies-wikipedia"
MODEL = "llama-3.1-70b-instruct"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The frames of the study of biographies, by stem, on a user's files."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("biographies")
        user_files(folder)
        patch.chdir(folder)
        patch.delenv(VARIABLE, raising=False)
        return frames_of(BIOGRAPHIES, folder)


def ours(frame: Any, model: str) -> Any:
    return frame[(frame["origin"] == "ours") & (frame["model"] == model)].set_index("assessor")


def posteriors_of(name: str) -> tuple[list[float], list[bool | None], list[str]]:
    p, labels, responses = [], [], []
    for graph in GRAPHS:
        view = variant(graph, name)
        found = infer(view.to_factor_graph("implication"), "exact").marginals
        p += found.of_state(1, graph.atom_ids).tolist()
        labels += [atom.label for atom in graph.atoms]
        responses += [graph.id] * len(graph.atoms)
    return p, labels, responses


def test_the_measures_are_those_of_the_summary(tables: dict[str, Any]) -> None:
    found = ours(tables["table-10"], MODEL)
    for name in ("FR1", "FR2", "FR3"):
        wanted = summarise(*posteriors_of(name))
        row = found.loc[name]
        for column, value in (
            ("supported", wanted.supported),
            ("contradicted", wanted.contradicted),
            ("undecided", wanted.undecided),
            ("precision", wanted.precision),
            ("f1_at_k", wanted.f1_at_k),
            ("mae", wanted.precision_mae),
            ("entropy", wanted.entropy),
        ):
            # Means of the same numbers, added in another order.
            assert row[column] == pytest.approx(value, abs=1e-12), (name, column)
        assert row["supported"] + row["contradicted"] + row["undecided"] == pytest.approx(134 / 14)
    # Pooled Brier score and the mean over responses agree where responses weigh alike.
    p, y, responses = posteriors_of("FR2")
    by_response = pd.Series((np.array(p) - np.array(y, dtype=float)) ** 2).groupby(responses).mean()
    brier = tables["calibration"].set_index(["origin", "model", "assessor"])
    assert brier.at[("ours", MODEL, "FR2"), "brier"] == pytest.approx(by_response.mean(), abs=1e-12)
    assert brier.at[("ours", MODEL, "FR2"), "brier_sd"] == pytest.approx(
        by_response.std(ddof=1), abs=1e-12
    )


def test_the_tests_are_scipys(tables: dict[str, Any]) -> None:
    tests = ours(tables["table-4"].rename(columns={"against": "assessor"}), MODEL)
    verdicts = AnsweringModel(answer_by_rule)
    p, _, responses = posteriors_of("FR2")
    own = pd.Series(np.array(p) > 0.5 + 1e-9).groupby(responses).mean()
    for name, assessor in (("FS", "factscore"), ("FV", "factverify"), ("VS", "veriscore")):
        other = [
            np.mean([v.p_true == 1.0 for v in assess(graph, assessor, verdicts)])
            for graph in GRAPHS
        ]
        wanted = ttest_rel(own.to_numpy(), other, alternative="greater").pvalue
        assert tests.at[name, "precision"] == pytest.approx(wanted, abs=1e-12)


def test_printed_numbers_stand_beside_ours(bare_folder: Path) -> None:
    user_files(bare_folder)
    frame = frames_of(BIOGRAPHIES, bare_folder)["table-3"]
    theirs = frame[(frame["origin"] == "printed") & (frame["assessor"] == "FR2")]
    assert theirs.set_index("model")["f1"].to_dict() == {
        "granite-3.0-8b-instruct": 0.78,
        MODEL: 0.83,
        "mixtral-8x22b-instruct": 0.83,
    }
    text = (bare_folder / "out" / "table-3.md").read_text(encoding="utf-8")
    assert "llama-3.1-70b-instruct, as the paper prints it" in text
    assert "Data of factormodels-data.yaml: biographies-wikipedia." in text


def test_bold_is_only_where_the_best_differs(tables: dict[str, Any]) -> None:
    frame = tables["table-3"]
    mine = ours(frame, "mine")
    # Without relations all variants leave every claim undecided: none is best.
    assert not mine[[c for c in mine if c.endswith("_best")]].to_numpy(dtype=bool).any()
    asked = ours(frame, MODEL)
    # The rule calls every claim true for FactScore.
    assert asked["precision_best"].to_dict()["FS"] is True
    assert asked["precision_best"].sum() == 1


def test_unlabelled_data_have_no_measure_that_needs_labels(bare_folder: Path) -> None:
    user_files(bare_folder, "askh-google", prompts=("evidence-and-knowledge",))
    # The cache holds the answers to this prompt alone.
    tables = frames_of(
        "papers/factreasoner-askh-google", bare_folder, "settings.prompts=[DeepSeek-v3]"
    )
    for name in ("table-6", "table-13"):
        frame = tables[name]
        assert {"f1", "mae", "accuracy"}.isdisjoint(frame.columns)
        knows_nothing = ours(frame, MODEL).loc["DeepSeek-v3"]
        assert knows_nothing["precision"] == 0.0
    assert "DeepSeek-v3" in set(tables["table-6"].query("origin == 'printed'")["assessor"])


def some_claims_unread(request: Request) -> str:
    """Nothing that could be read of FactScore, and of FactVerify on claims of odd length."""
    answer = answer_by_rule(request)
    odd = request.prompt.name == "assess_factverify" and "contradicted" in answer
    return "I would rather not say." if odd or answer == "true" else answer


def test_what_is_missing_is_a_cell_with_a_reason_and_left_out_on_both_sides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = AnsweringModel(some_claims_unread)
    evidence = EvidenceBlocks((Block(MODEL, GRAPHS, model),), "")
    monkeypatch.setattr(assessors, "load_evidence", lambda *_, **__: evidence)
    settings = assessors.Settings(
        "biographies-wikipedia", "biographies", "wikipedia", tables=("3",), tests="4"
    )
    made = assessors.run(settings, AnalysisContext("s", 0, Path(), "s")).tables
    table, tests = made["table-3"].frame, made["table-4"].frame
    mine = ours(table, MODEL)
    n_claims = sum(len(graph.atoms) for graph in GRAPHS)
    assert (mine.at["FS", "responses"], mine.at["FS", "missing"]) == (0, n_claims)
    assert math.isnan(mine.at["FS", "precision"])
    assert (
        f"FS of {MODEL} has no verdict on {n_claims} of {n_claims} claims" in made["table-3"].note
    )
    assert "I would rather not say" in made["table-3"].note
    tested = ours(tests.rename(columns={"against": "assessor"}), MODEL)
    assert math.isnan(tested.at["FS", "precision"])
    # FactVerify against FR2, each over the claims that FactVerify has a verdict on.
    judged = [assess(graph, "factverify", model) for graph in GRAPHS]
    p, _, _ = posteriors_of("FR2")
    at, own, other = 0, [], []
    for verdicts in judged:
        said = [(p[at + n], one.p_true) for n, one in enumerate(verdicts) if not one.missing]
        at += len(verdicts)
        if said:
            own.append(np.mean([one > 0.5 + 1e-9 for one, _ in said]))
            other.append(np.mean([one == 1.0 for _, one in said]))
    assert 0 < mine.at["FV", "missing"] < n_claims
    wanted = ttest_rel(own, other, alternative="greater").pvalue
    assert tested.at["FV", "precision"] == pytest.approx(wanted, abs=1e-12)


PROMPTS = ("factscore", "factverify", "veriscore")


def user_files(
    folder: Path, name: str = "biographies-wikipedia", prompts: tuple[str, ...] = PROMPTS
) -> None:
    """Write the demonstration corpus as a user's data, with a cache of answers of a model."""
    write_graphs(folder / "bio.jsonl", GRAPHS)
    write_graphs(folder / "bare.jsonl", (replace(graph, relations=()) for graph in GRAPHS))
    cache = AnswerCache(folder / "answers.sqlite")
    model = CachedModel(AnsweringModel(answered, name="openai/llama"), cache)
    for graph in GRAPHS:
        for prompt in prompts:
            assess(graph, prompt, model)
    cache.close()
    say_where(
        folder,
        f"""
datasets:
  {name}: {{{MODEL}: bio.jsonl, mine: bare.jsonl}}
models:
  {MODEL}: {{provider: openai/llama, cache: answers.sqlite}}
""",
    )


def answered(request: Request) -> Completion:
    """An answer by the rule, with a count of tokens as a provider gives it."""
    return Completion(answer_by_rule(request), usage=Usage(100, 2))


def test_a_users_data_and_recorded_answers_are_what_the_tables_are_of(
    bare_folder: Path, tables: dict[str, Any]
) -> None:
    user_files(bare_folder)
    results = run_study(BIOGRAPHIES, bare_folder)
    frame = results.artefacts.tables["table-3"].frame
    (remark,) = results.artefacts.remarks
    assert remark.startswith("Data of factormodels-data.yaml: biographies-wikipedia.")
    assert "openai/llama answered the prompts of llama-3.1-70b-instruct" in remark
    llama = ours(frame, "llama-3.1-70b-instruct")
    pd.testing.assert_frame_equal(llama, ours(tables["table-3"], MODEL))
    # A model that nobody can ask has the graph-based rows alone.
    assert list(ours(frame, "mine").index) == ["FR1", "FR2", "FR3"]
    published = results.artefacts.tables["published"].frame
    assert set(published["why"]) == {""}
    assert published["ours"].iloc[0] == f"{llama.at['FR2', 'f1']:.2f}"
    manifest = json.loads((bare_folder / "out" / "manifest.json").read_text())
    assert set(manifest["data"]) == {
        "biographies-wikipedia: llama-3.1-70b-instruct",
        "biographies-wikipedia: mine",
    }
    assert str(bare_folder) not in (bare_folder / "out" / "manifest.json").read_text()
    asked = manifest["models"]["language_models"]["llama-3.1-70b-instruct"]
    assert set(manifest["models"]["language_models"]) == {"llama-3.1-70b-instruct"}
    assert asked.pop("prompts") == [identity_of(ASSESSORS[name].prompt) for name in PROMPTS]
    n_claims = sum(len(graph.atoms) for graph in GRAPHS)
    # Each of the three prompts judges every claim; the cache has no answer to any other.
    assert asked["answers"] == 3 * n_claims
    assert asked["language_model"] == "openai/llama"
    assert asked["prompt_tokens"] > 0
    assert (asked["cost"], asked["unpriced"]) == (0, 3 * n_claims)


def test_one_file_without_models_is_taken_as_recorded(bare_folder: Path) -> None:
    user_files(bare_folder)
    say_where(bare_folder, "datasets: {biographies-wikipedia: bio.jsonl}")
    frame = frames_of(BIOGRAPHIES, bare_folder)["table-3"]
    assert set(frame[frame["origin"] == "ours"]["model"]) == {"recorded relations"}
    assert math.isnan(ours(frame, "recorded relations").at["FR2", "f1"]) is False


def entailed(request: Request) -> Completion:
    """Return "entailment" with probability 0.9 to every question about two texts."""
    assert request.prompt.name == "relation"
    alternatives = (("entailment", math.log(0.9)), ("neutral", math.log(0.1)))
    return Completion("entailment", (Token("entailment", math.log(0.9), alternatives),))


def test_models_relate_the_texts_of_one_file_where_it_has_none_by_model(bare_folder: Path) -> None:
    graphs = [replace(graph, relations=()) for graph in GRAPHS[:2]]
    write_graphs(bare_folder / "bio.jsonl", graphs)
    cache = AnswerCache(bare_folder / "answers.sqlite")
    model = CachedModel(AnsweringModel(entailed, name="openai/llama"), cache)
    related(graphs, PromptedRelationModel(model, "logprobs"))
    cache.close()
    say_where(
        bare_folder,
        """
datasets: {biographies-wikipedia: bio.jsonl}
models: {my-llama: {provider: openai/llama, cache: answers.sqlite}}
""",
    )
    found = frames_of(BIOGRAPHIES, bare_folder, "settings.prompts=[]")["table-3"]
    assert set(found[found["origin"] == "ours"]["model"]) == {"my-llama"}
    own = ours(found, "my-llama")
    # Everything is entailed: every claim counts as supported.
    assert own["precision"].tolist() == [1.0, 1.0, 1.0]
    assert (own["entropy"] < 0.05).all()


def test_labelled_studies_refuse_data_without_labels(bare_folder: Path) -> None:
    atoms = (replace(atom, label=None, annotation=None) for atom in GRAPHS[0].atoms)
    write_graphs(bare_folder / "bio.jsonl", [replace(GRAPHS[0], atoms=tuple(atoms))])
    say_where(bare_folder, "datasets: {biographies-wikipedia: bio.jsonl}")
    refused("no claim has a label", run_study, BIOGRAPHIES, bare_folder)
