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
from experiments.analyses.papers.blocks import UNRECORDED, related
from experiments.analyses.papers.sources import VARIABLE
from experiments.analyses.papers.stand_in_model import StandInModel, shown_passages
from experiments.analyses.papers.stand_ins import without_labels
from factormodels import datasets
from factormodels.errors import InputError
from factormodels.extraction.asking import identity_of
from factormodels.extraction.assessors import ASSESSORS, assess
from factormodels.extraction.cache import AnswerCache, CachedModel
from factormodels.extraction.language_model import Completion, Request, Token
from factormodels.extraction.relation_models.prompted import PromptedRelationModel
from factormodels.extraction.relation_models.recorded import recorded_in_graphs
from factormodels.io.fact_graph_json import fact_graph_text
from factormodels.variants import variant
from inference import infer
from tests.experiments.analyses.papers.conftest import frames_of, run_study
from tests.factormodels.extraction.models import AnsweringModel

pytestmark = pytest.mark.slow

BIOGRAPHIES = "papers/factreasoner-biographies-wikipedia"
GRAPHS = datasets.load("demonstration").graphs


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The frames of the study of biographies, by stem, on stand-ins."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("biographies")
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
    found = ours(tables["table-10"], "authored relations")
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
    assert brier.at[("ours", "authored relations", "FR2"), "brier"] == pytest.approx(
        by_response.mean(), abs=1e-12
    )
    assert brier.at[("ours", "authored relations", "FR2"), "brier_sd"] == pytest.approx(
        by_response.std(ddof=1), abs=1e-12
    )


def test_the_tests_are_scipys(tables: dict[str, Any]) -> None:
    tests = ours(tables["table-4"].rename(columns={"against": "assessor"}), "authored relations")
    verdicts = StandInModel(
        recorded_in_graphs(GRAPHS, unrecorded=UNRECORDED), shown_passages(GRAPHS)
    )
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
    frame = frames_of(BIOGRAPHIES, bare_folder)["table-3"]
    theirs = frame[(frame["origin"] == "printed") & (frame["assessor"] == "FR2")]
    assert theirs.set_index("model")["f1"].to_dict() == {
        "granite-3.0-8b-instruct": 0.78,
        "llama-3.1-70b-instruct": 0.83,
        "mixtral-8x22b-instruct": 0.83,
    }
    text = (bare_folder / "out" / "table-3.md").read_text(encoding="utf-8")
    assert "llama-3.1-70b-instruct, as the paper prints it" in text
    assert "Stand-in data, not the paper's" in text


def test_bold_is_only_where_the_best_differs(tables: dict[str, Any]) -> None:
    frame = tables["table-3"]
    words = ours(frame, "shared words")
    # All assessors support the same claims there: none is best.
    assert not words[[c for c in words if c.endswith("_best")]].to_numpy(dtype=bool).any()
    authored = ours(frame, "authored relations")
    assert authored["precision_best"].to_dict()["FS"] is True
    assert authored["precision_best"].sum() == 1


def test_unlabelled_data_have_no_measure_that_needs_labels(bare_folder: Path) -> None:
    tables = frames_of("papers/factreasoner-askh-google", bare_folder)
    for name in ("table-6", "table-13"):
        frame = tables[name]
        assert {"f1", "mae", "accuracy"}.isdisjoint(frame.columns)
        knows_nothing = ours(frame, "authored relations").loc["DeepSeek-v3"]
        assert knows_nothing["precision"] == 0.0
    assert "DeepSeek-v3" in set(tables["table-6"].query("origin == 'printed'")["assessor"])


def user_files(folder: Path) -> None:
    """Write the demonstration corpus as a user's data, with a cache of answers of a model."""
    (folder / "bio.jsonl").write_text(
        "".join(fact_graph_text(graph) + "\n" for graph in GRAPHS), encoding="utf-8"
    )
    rule = StandInModel(recorded_in_graphs(GRAPHS, unrecorded=UNRECORDED), shown_passages(GRAPHS))
    cache = AnswerCache(folder / "answers.sqlite")
    model = CachedModel(replace(rule, name="openai/llama"), cache)
    for graph in GRAPHS:
        for name in ("factscore", "factverify", "veriscore"):
            assess(graph, name, model)
    cache.close()
    (folder / "factormodels-data.yaml").write_text(
        """
datasets:
  biographies-wikipedia: {llama-3.1-70b-instruct: bio.jsonl, mine: bio.jsonl}
models:
  llama-3.1-70b-instruct: {provider: openai/llama, cache: answers.sqlite}
""",
        encoding="utf-8",
    )


def test_a_users_data_and_recorded_answers_take_the_place_of_stand_ins(
    bare_folder: Path, tables: dict[str, Any]
) -> None:
    stand_in = ours(tables["table-3"], "authored relations")
    user_files(bare_folder)
    results = run_study(BIOGRAPHIES, bare_folder)
    frame = results.artefacts.tables["table-3"].frame
    (remark,) = results.artefacts.remarks
    assert remark.startswith("Data of factormodels-data.yaml: biographies-wikipedia.")
    assert "openai/llama answered the prompts of llama-3.1-70b-instruct" in remark
    llama = ours(frame, "llama-3.1-70b-instruct")
    measures = ["supported", "precision", "f1", "f1_at_k", "mae", "entropy"]
    pd.testing.assert_frame_equal(llama[measures], stand_in[measures])
    # A model that nobody can ask has the graph-based rows alone.
    assert list(ours(frame, "mine").index) == ["FR1", "FR2", "FR3"]
    published = results.artefacts.tables["published"].frame
    assert set(published["why"]) == {""}
    assert published["ours"].iloc[0] == f"{stand_in.at['FR2', 'f1']:.2f}"
    manifest = json.loads((bare_folder / "out" / "manifest.json").read_text())
    assert set(manifest["data"]) == {
        "biographies-wikipedia: llama-3.1-70b-instruct",
        "biographies-wikipedia: mine",
    }
    assert str(bare_folder) not in (bare_folder / "out" / "manifest.json").read_text()
    asked = manifest["models"]["language_models"]["llama-3.1-70b-instruct"]
    assert set(manifest["models"]["language_models"]) == {"llama-3.1-70b-instruct"}
    prompts = ("factscore", "factverify", "veriscore")
    assert asked.pop("prompts") == [identity_of(ASSESSORS[name].prompt) for name in prompts]
    n_claims = sum(len(graph.atoms) for graph in GRAPHS)
    # Each of the three prompts judges every claim; the cache has no answer to any other.
    assert asked["answers"] == 3 * n_claims
    assert asked["language_model"] == "openai/llama"
    assert asked["prompt_tokens"] > 0
    assert (asked["cost"], asked["unpriced"]) == (0, 3 * n_claims)


def test_one_file_without_models_is_taken_as_recorded(bare_folder: Path) -> None:
    user_files(bare_folder)
    (bare_folder / "factormodels-data.yaml").write_text(
        "datasets: {biographies-wikipedia: bio.jsonl}", encoding="utf-8"
    )
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
    (bare_folder / "bio.jsonl").write_text(
        "".join(fact_graph_text(graph) + "\n" for graph in graphs), encoding="utf-8"
    )
    cache = AnswerCache(bare_folder / "answers.sqlite")
    model = CachedModel(AnsweringModel(entailed, name="openai/llama"), cache)
    related(graphs, PromptedRelationModel(model, "logprobs"))
    cache.close()
    (bare_folder / "factormodels-data.yaml").write_text(
        """
datasets: {biographies-wikipedia: bio.jsonl}
models: {my-llama: {provider: openai/llama, cache: answers.sqlite}}
""",
        encoding="utf-8",
    )
    found = frames_of(BIOGRAPHIES, bare_folder, "settings.prompts=[]")["table-3"]
    assert set(found[found["origin"] == "ours"]["model"]) == {"my-llama"}
    own = ours(found, "my-llama")
    # Everything is entailed: every claim counts as supported.
    assert own["precision"].tolist() == [1.0, 1.0, 1.0]
    assert (own["entropy"] < 0.05).all()


def test_labelled_studies_refuse_data_without_labels(bare_folder: Path) -> None:
    graph = without_labels(GRAPHS[0])
    (bare_folder / "bio.jsonl").write_text(fact_graph_text(graph) + "\n", encoding="utf-8")
    (bare_folder / "factormodels-data.yaml").write_text(
        "datasets: {biographies-wikipedia: bio.jsonl}", encoding="utf-8"
    )
    with pytest.raises(InputError, match="no claim has a label"):
        run_study(BIOGRAPHIES, bare_folder)
