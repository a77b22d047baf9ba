"""Relation models of a study: what they find is what `assess` finds, wherever units are run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError

from experiments.asking.relation_models import relation_model, relation_model_facts
from experiments.methods.probe import ProbeSettings
from experiments.study.config import LanguageModelChoice
from experiments.study.reading import load_study
from experiments.study.rows import read_rows
from experiments.study.runner import StudyDesign, design, run_study
from factormodels import read_many
from factormodels.claims import RelationKind
from factormodels.datasets import load
from factormodels.errors import InputError
from factormodels.extraction.asking.table import RELATION, RELATION_PROMPTS
from factormodels.extraction.prompts import load_prompt
from factormodels.extraction.prompts.replaced import Prompts, WithPrompts
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.relation_models.prompted import PromptedRelationModel
from factormodels.extraction.stages.relations import with_relations
from factormodels.fact_graph import FactGraph
from factormodels.io import write_many
from factormodels.io.store.results import STORE, read_store
from factormodels.variants import merge_duplicate_contexts
from tests.experiments.conftest import EXAMPLE, invoke, study_file
from tests.experiments.study.test_runner import assert_same_files
from tests.factormodels.extraction.models import AnsweringModel
from tests.refusals import refused

pytestmark = [pytest.mark.service, pytest.mark.slow]

STUDY = """
study: s
datasets: [{name: demonstration, limit: 3}]
variants: [FR1, FR2, FR3]
relation_models: [recorded, lexical]
backends: [exact, lbp]
measures: [brier]
significance: {pairs: [[{relation_model: lexical}, {relation_model: recorded}]], resamples: 200}
outputs: [csv, latex, markdown]
"""


def planned(folder: Path, text: str = STUDY, *overrides: str) -> StudyDesign:
    return design(load_study(str(study_file(folder, text)), overrides))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of `STUDY` in this process."""
    folder = tmp_path_factory.mktemp("here")
    run_study(planned(folder), folder / "out", workers=1)
    return folder / "out"


def p_of(folder: Path, **cell: str) -> list[tuple[str, str, float]]:
    rows = read_rows(folder / "rows.parquet")
    for name, value in cell.items():
        rows = rows[rows[name] == value]
    return list(zip(rows["response"], rows["atom"], rows["p"], strict=True))


@pytest.mark.usefixtures("unsaved")
@pytest.mark.parametrize("variant", ["FR1", "FR2", "FR3"])
def test_lexical_relations_are_those_of_assess(here: Path, folder: Path, variant: str) -> None:
    write_many(load("demonstration").graphs[:3], folder / "given.jsonl")
    options = ["--relations", "lexical", "--variant", variant, "--out", "assessed"]
    invoke("assess", "given.jsonl", *options)
    expected = [
        (graph.id, atom, view["p"])
        for graph in read_many("assessed/graphs.jsonl")
        for atom, view in graph.metadata["assessment"][variant]["atoms"].items()
    ]
    posteriors = p_of(here, variant=variant, relation_model="lexical", backend="exact")
    # To the last bit but for the order of factors, which is that of the views in both.
    assert [row[:2] for row in posteriors] == [row[:2] for row in expected]
    assert [p for *_, p in posteriors] == pytest.approx([p for *_, p in expected], abs=1e-12)
    recorded = p_of(here, variant=variant, relation_model="recorded", backend="exact")
    assert max(abs(a[2] - b[2]) for a, b in zip(posteriors, recorded, strict=True)) > 0.1


def test_it_is_a_dimension_of_tables_and_tests(here: Path) -> None:
    rows = read_rows(here / "rows.parquet")
    assert set(rows["relation_model"]) == {"recorded", "lexical"}
    assert "| variant | relations | encoding | backend |" in (here / "table.md").read_text()
    tests = (here / "significance.csv").read_text().splitlines()[1:]
    assert len(tests) == 2 * 3 * 2  # measures, variants and backends
    assert all(line.startswith("demonstration,lexical,recorded,") for line in tests)
    manifest = json.loads((here / "manifest.json").read_text())
    asked = manifest["models"]["relation_models"]["lexical"]
    graphs = [merge_duplicate_contexts(graph) for graph in load("demonstration").graphs[:3]]
    pairs = sum(
        sum(len(context.retrieved_for) for context in graph.contexts)
        + 2 * len(graph.contexts) * len(graph.atoms)
        + len(graph.contexts) * (len(graph.contexts) - 1)
        for graph in graphs
    )
    assert (asked["responses"], asked["asked"], asked["missing"]) == (9, pairs, 0)
    assert set(manifest["data"]["demonstration"]["relations"]["lexical"]) == {"FR1", "FR2", "FR3"}


def test_a_study_of_recorded_relations_shows_no_such_column(folder: Path) -> None:
    text = STUDY.replace(", lexical", "").split("significance")[0] + "outputs: [markdown]\n"
    run_study(planned(folder, text), folder / "out", workers=1)
    assert "relations" not in (folder / "out" / "table.md").read_text().splitlines()[6]
    assert json.loads((folder / "out" / "manifest.json").read_text())["models"] == {}
    with read_store(folder / "out" / STORE, "mend it") as store:
        assert store.n_records() == store.n_records("plan")


@dataclass
class Counting:
    """The lexical model, which counts what it is asked and may fail."""

    fails_at: int = 10**9
    asked: list[TextPair] = field(default_factory=list)
    name: str = "counting"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        if len(self.asked) > self.fails_at:
            raise KeyboardInterrupt
        self.asked += pairs
        return LexicalRelations().judge(pairs)


def counting(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Counting:
    model = Counting(**settings)
    monkeypatch.setattr(
        "experiments.study.prepared.text_models.build_relation_model", lambda *_, **__: model
    )
    return model


def test_no_pair_is_asked_twice(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = counting(monkeypatch, fails_at=300)
    with pytest.raises(KeyboardInterrupt):
        run_study(planned(tmp_path), tmp_path / "out", workers=1)
    with pytest.raises(InputError, match="0 of 36 units and 6 answers about its texts"):
        run_study(planned(tmp_path), tmp_path / "out", workers=1)
    resumed = counting(monkeypatch)
    run_study(planned(tmp_path), tmp_path / "out", workers=1, resume=True)
    everything = [(pair.premise, pair.hypothesis) for pair in interrupted.asked + resumed.asked]
    assert len(everything) == len(set(everything)) > 300
    assert_same_files(here, tmp_path / "out")
    again = counting(monkeypatch)
    run_study(planned(tmp_path), tmp_path / "out", workers=1, resume=True)
    assert again.asked == []


def test_only_what_is_needed_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = counting(monkeypatch)
    path = study_file(folder, STUDY)
    plan = invoke("run", path, "--dry-run", "--variant", "FR1")
    invoke("run", path, "--relation-model", "recorded")
    assert model.asked == []
    invoke("run", path, "--relation-model", "lexical", "--variant", "FR1",
                    "--resume")  # fmt: skip
    assert f"lexical: {len(model.asked):,} pairs to be asked about" in plan.stdout
    wrong = invoke("run", path, "--relation-model", "lexicall", code=2)
    assert "did you mean 'lexical'" in wrong.stderr


class Losing(Counting):
    """The lexical model, which has no answer about some claims, and not every one about others."""

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        judged_pairs = super().judge(pairs)
        return [
            Missing("down")
            if pair.target == "a1" or (pair.target == "a2" and pair.source == "c1")
            else judgment
            for pair, judgment in zip(pairs, judged_pairs, strict=True)
        ]


def test_a_claim_of_which_every_relation_is_missing_has_no_posterior(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "experiments.study.prepared.text_models.build_relation_model", lambda *_, **__: Losing()
    )
    text = STUDY.replace("[FR1, FR2, FR3]", "[FR2]").replace("[exact, lbp]", "[exact]")
    run_study(planned(tmp_path, text), tmp_path / "out", workers=1)
    rows = read_rows(tmp_path / "out" / "rows.parquet")
    for model, lost in (("lexical", {"a1"}), ("recorded", set())):
        of_model = rows[rows["relation_model"] == model]
        assert set(of_model[of_model["p"].isna()]["atom"]) == lost
    assert pd.read_csv(tmp_path / "out" / "summary.csv").n_missing.tolist() == [0, 3]
    # Both sides are tested over the claims that both have a posterior of.
    tests = pd.read_csv(tmp_path / "out" / "significance.csv")
    n_claims = sum(len(graph.atoms) for graph in load("demonstration").graphs[:3])
    assert set(tests.n_claims) == {n_claims - 3}


def related(graph: FactGraph, variant: str) -> FactGraph:
    return with_relations(merge_duplicate_contexts(graph), LexicalRelations(), variant)


def test_learned_priors_are_learned_of_the_relations_found(tmp_path: Path) -> None:
    write_many([related(graph, "FR2") for graph in load("demonstration").graphs[:5]],
               tmp_path / "related.jsonl")  # fmt: skip
    text = """
study: s
datasets: [{name: demonstration, limit: 5}]
relation_models: [lexical]
priors: [{learned: {folds: 2, parameters: [atom_prior]}}]
outputs: [csv]
"""
    run_study(planned(tmp_path, text), tmp_path / "found", workers=1)
    file = ["datasets=[{path: related.jsonl}]", "relation_models=[recorded]"]
    run_study(planned(tmp_path, text, *file), tmp_path / "recorded", workers=1)
    of_found, recorded = (p_of(tmp_path / name) for name in ("found", "recorded"))
    assert of_found == recorded
    assert len({p for *_, p in of_found}) > 20


def test_a_file_of_judgments_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(json.dumps({**EXAMPLE, "edges": []}))
    judged = [
        {"premise": "For it.", "relation": "entailment", "probability": 0.8},
        {"premise": "Against it.", "relation": "contradiction", "probability": 0.9},
    ]
    lines = [json.dumps({**claim, "hypothesis": "A claim."}) for claim in judged]
    (tmp_path / "judged.jsonl").write_text("\n".join(lines))
    text = """
study: s
datasets: [{path: graph.json}]
relation_models: [recorded, {model: recorded, path: judged.jsonl}]
outputs: [csv]
"""
    run_study(planned(tmp_path, text), tmp_path / "out", workers=1)
    ((*_, without),) = p_of(tmp_path / "out", relation_model="recorded")
    ((*_, p),) = p_of(tmp_path / "out", relation_model="recorded:judged")
    # Figure 1 of the paper, worked out by hand; rounding alone is left.
    assert (without, p) == pytest.approx((0.5, 48 / 151), abs=1e-12)
    (tmp_path / "judged.jsonl").write_text("\n".join(lines[:1]))
    with pytest.raises(InputError, match=r"a run that differs in relation_models\[1\]"):
        run_study(planned(tmp_path, text), tmp_path / "out", workers=1, resume=True)


def test_a_local_model_is_known_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Path] = []

    def load_nli(path: Path, labels: object = None) -> Counting:
        assert labels is None
        loaded.append(path)
        return Counting()

    monkeypatch.setattr("factormodels.extraction.relation_models.nli.load_nli", load_nli)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "model.bin").write_bytes(b"one")
    text = STUDY.replace("[recorded, lexical]", "[recorded, {model: nli, path: weights}]").replace(
        "relation_model: lexical", "relation_model: 'nli:weights'"
    )
    run_study(planned(tmp_path, text), tmp_path / "out", workers=1)
    assert loaded == [tmp_path / "weights"]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    facts = manifest["models"]["relation_models"]["nli:weights"]
    assert str(tmp_path) not in json.dumps(manifest)
    assert len(facts["sha256"]) == 64
    run_study(planned(tmp_path, text), tmp_path / "out", workers=1, resume=True)
    assert len(loaded) == 1, "nothing is left to be asked"
    (tmp_path / "weights" / "model.bin").write_bytes(b"two")
    with pytest.raises(InputError, match=r"differs in relation_models\[1\]"):
        run_study(planned(tmp_path, text), tmp_path / "out", workers=1, resume=True)


def test_a_backend_may_be_for_some_relations_alone(tmp_path: Path) -> None:
    only = "backends=[exact, {backend: lbp, only: {relation_models: [recorded]}}]"
    pairs = "significance={}"
    cells = planned(tmp_path, STUDY, only, "variants=[FR1]", pairs).cells
    assert [(cell.view.relation_model, cell.algorithm.title) for cell in cells] == [
        ("recorded", "exact"),
        ("recorded", "lbp"),
        ("lexical", "exact"),
    ]


def test_defaults_are_those_of_the_readme(tmp_path: Path) -> None:
    study = planned(tmp_path, "study: s\ndatasets: [demonstration]\n").study
    assert study.relation_titles == ("recorded",)
    assert (study.assessors, study.language_model) == ((), None)
    named = ["relation_models=[prompted, {model: prompted, method: samples, cache: mine.sqlite}]",
             "language_model=openai/x"]  # fmt: skip
    minimal = "study: s\ndatasets: [demonstration]\n"
    first, second = planned(tmp_path, minimal, *named).study.relation_models
    shared = LanguageModelChoice(model="openai/x")
    assert (shared.cache, shared.concurrency) == (Path("answers.sqlite"), 16)
    assert first.resolved(shared) == shared
    assert second.resolved(shared) == LanguageModelChoice(
        model="openai/x", cache=Path("mine.sqlite")
    )
    assert (first.title(shared), second.title(shared)) == (
        "openai/x", "openai/x (samples)")  # fmt: skip


@pytest.mark.parametrize(
    ("extra", "messages"),
    [
        ("relation_models: [lexicall]", ("relation_models[0].model", "did you mean 'lexical'")),
        ("relation_models: [lexical, lexical]", ("relation_models[1]", "another label")),
        ("relation_models: [{model: nli}]", ("relation_models[0]", "needs the path")),
        ("relation_models: [{model: nli, path: gone}]", ("relation_models[0].path", "such folder")),
        ("relation_models: [{model: lexical, path: x}]", ("has no path",)),
        (
            "relation_models: [{model: lexical, method: samples}]",
            ("method applies to", "'prompted'"),
        ),
        ("relation_models: [{model: recorded, label: x}]", ("is fixed (recorded)",)),
        ("relation_models: [{model: recorded, path: no.jsonl}]", ("no.jsonl", "no such file")),
        ("relation_models: [prompted]", ("relation_models[0] needs a language model",)),
        ("relation_models: [{model: prompted, methd: x}]", ("did you mean 'method'",)),
        ("relation_models: [lexical]\nvariants: [given]", ("'lexical'", "'given'", "leave one")),
        ("assessors: [factscore]", ("assessors[0] needs a language model",)),
        ("assessors: [factscor]\nlanguage_model: x/y", ("did you mean 'factscore'",)),
        ("assessors: [factscore, factscore]\nlanguage_model: x/y", ("assessors[1]", "label")),
        ("assessors: [{assessor: factscore, label: auto}]\nlanguage_model: x/y", ("'auto'",)),
        ("language_model: {model: x/y, replays: true}", ("did you mean 'replay'",)),
        ("backends: [{backend: exact, only: {relation_models: [x]}}]", ("only.relation_models",)),
        ("significance: {pairs: [[{relation_model: x}, {relation_model: recorded}]]}",
         ("names the relation_model 'x'",)),
        ("datasets: [{name: made, synthetic: {n_responses: 2, n_atoms: 2, contexts_per_atom: 1}}]\n"
         "relation_models: [lexical]", ("datasets[0]", "have no texts", "relation_models[0]")),
    ],
)  # fmt: skip
def test_invalid_text_models_of_a_study_are_refused(
    tmp_path: Path, extra: str, messages: tuple[str, ...]
) -> None:
    data = "" if extra.startswith("datasets") else "datasets: [demonstration]\n"
    refusal = refused(messages, planned, tmp_path, f"study: s\n{data}{extra}\n")
    assert refusal.startswith(str(tmp_path / "study.yaml"))


def test_the_openness_of_log_probabilities_is_part_of_what_answers_depend_on() -> None:
    assert relation_model_facts("prompted", openness=0.1)["openness"] == 0.1
    assert relation_model_facts("prompted") != relation_model_facts("prompted", openness=0.1)
    # Whoever states a confidence has none.
    assert "openness" not in relation_model_facts("prompted", method="verbalized")


def test_the_prompt_for_relations_is_chosen_by_name() -> None:
    model = AnsweringModel(lambda _: "unknown")
    judge, facts = relation_model("model", model, method="samples", prompt="relation_question")
    assert facts == {"relation_prompt": "relation_question"}
    assert relation_model("model", model)[1] == {}
    (answer,) = judge.judge([TextPair("It rained.", "It was cold.")])
    assert isinstance(answer, Judgment)
    assert answer.kind is RelationKind.NEUTRAL
    assert {request.prompt.name for request in model.asked} == {"relation_question"}
    asked = relation_model_facts("prompted", prompt="relation_support")["prompts"]
    assert [prompt["name"] for prompt in asked] == ["relation_support", "relation_verbalized"]
    refused(
        "'relation_suport' .*did you mean 'relation_support'",
        PromptedRelationModel,
        model,
        prompt="relation_suport",
    )


def test_a_users_prompt_that_is_not_asked_is_refused() -> None:
    prompts = Prompts({"relation_bare": load_prompt("relation_bare")})
    model = WithPrompts(AnsweringModel(lambda _: "neutral"), prompts)
    refused(
        f"--prompts replaces the prompt 'relation_bare', .* the prompt '{RELATION.prompt}'; "
        "give --relation-prompt relation_bare",
        *(relation_model, "model", model),
    )
    assert relation_model("model", model, prompt="relation_bare")[1]


def test_every_prompt_for_relations_may_be_given() -> None:
    for name in RELATION_PROMPTS:
        assert ProbeSettings(relation_prompt=name).relation_prompt == name
    with pytest.raises(ValidationError, match="relation_prompt"):
        ProbeSettings(relation_prompt="atomizer")
