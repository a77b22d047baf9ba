"""The front door: the functions of `experiments` that a notebook begins with."""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import experiments
from experiments import assess, estimate, grid, load_study, posteriors, read_rows, report, run
from experiments.columns.cell_names import CELL
from experiments.columns.frame import LONG
from experiments.settings import settings_of
from experiments.study import units
from experiments.study.rows import SCHEMA
from factormodels import FactGraph, read_many, variant, write_many
from factormodels.claims import RelationKind
from factormodels.datasets import load
from factormodels.errors import InputError
from factormodels.extraction.language_model import Failure, Request
from factormodels.extraction.language_model.litellm_model import LitellmSettings
from factormodels.extraction.relation_models.base import Judgment
from inference import get_backend, infer
from tests.experiments.conftest import invoke, study_file
from tests.experiments.make_stub import STUB, stub
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.server import Reply, ScriptedServer
from tests.processes import run_python
from tests.refusals import refused

pytestmark = [pytest.mark.service, pytest.mark.slow]

STUDY = {
    "study": "mine",
    "datasets": ("worked-examples",),
    "variants": ["FR1", "FR2"],
    "backends": ["exact", {"backend": "lbp", "settings": {"damping": 0.5}}],
    "outputs": ["csv"],
}

STUDY_YAML = """
study: mine
datasets: [worked-examples]
variants: [FR1, FR2]
backends: [exact, {backend: lbp, settings: {damping: 0.5}}]
outputs: [csv]
"""

ROOT = Path(__file__).resolve().parents[2]

BRIDGE = "The bridge opened in 1890. It carries trains."
PASSAGES = {
    "History": "The bridge opened on 4 March 1890.",
    "Use": "Nothing of it is known.",
}


# --- The door itself -----------------------------------------------------------------------------


def test_every_name_can_be_imported_and_called() -> None:
    assert sorted(experiments.__all__) == dir(experiments)
    for name in experiments.__all__:
        assert callable(getattr(experiments, name))
    with pytest.raises(AttributeError, match="nothing"):
        experiments.nothing  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", experiments.__all__)
def test_every_setting_is_a_keyword_of_the_signature(name: str) -> None:
    function = getattr(experiments, name)
    plain = inspect.unwrap(function)
    if plain is function:
        return  # it takes no settings
    fields = settings_of(function).model_fields
    parameters = inspect.signature(function).parameters
    keywords = {
        each.name: each.default
        for each in parameters.values()
        if each.kind is each.KEYWORD_ONLY and each.name != "settings"
    }
    assert keywords == {
        field: info.get_default(call_default_factory=True) for field, info in fields.items()
    }
    assert [*parameters][: len(parameters) - len(fields)] == [*inspect.signature(plain).parameters]


@pytest.mark.parametrize("name", experiments.__all__)
def test_signatures_show_types_without_how_they_are_checked(name: str) -> None:
    signature = str(inspect.signature(getattr(experiments, name)))
    assert not re.findall(r"Annotated|FieldInfo|Validator|Option\(|<function| at 0x", signature)


# Behind the string that names what is read, of each function that reads responses or claims.
READERS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "assess": ((), {}),
    "coherence": ((), {}),
    "convert": (("out.jsonl",), {}),
    "datasets": ((), {}),
    "draw": ((), {}),
    "estimate": ((), {}),
    "explore": ((), {}),
    "fastfact": ((), {"model": AnsweringModel(str)}),
    "fit": ((), {}),
    "grid": ((), {}),
    "infer": ((), {}),
    "keep": (("worked-examples",), {}),
    "omissions": ((), {}),
    "posteriors": ((), {}),
    "revise": ((), {}),
    "score": ((), {}),
    "select": ((), {}),
    "self_knowledge": ((), {}),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", READERS)
def test_a_string_is_a_path_or_the_name_of_a_dataset(name: str) -> None:
    function, (behind, how) = getattr(experiments, name), READERS[name]
    refused("did you mean 'demonstration'", function, "demonstratio", *behind, **how)
    refused("absent.jsonl: there is no such file", function, "absent.jsonl", *behind, **how)


@pytest.mark.usefixtures("folder")
def test_the_name_of_a_dataset_is_its_responses() -> None:
    graphs = load("worked-examples").graphs
    write_many(graphs, "worked.jsonl")
    for call in (
        lambda data: assess(data)["claims"]["p"],
        lambda data: experiments.infer(data).sentences,
    ):
        frames = [list(call(data)) for data in ("worked-examples", "worked.jsonl")]
        assert frames[0] == frames[1]
    write_many(load("demonstration").graphs, "demonstration.jsonl")
    for call in (
        lambda data: experiments.score(data, scores="brier", n_bootstrap=10)["scores"]["brier"],
        lambda data: experiments.estimate(data)["estimates"]["value"],
    ):
        frames = [list(call(data)) for data in ("demonstration", "demonstration.jsonl")]
        assert frames[0] == frames[1]


def test_the_types_of_the_front_door_are_those_of_its_settings() -> None:
    text = STUB.read_text(encoding="utf-8")
    assert text == stub(), "run `python -m tests.experiments.make_stub`"
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            keywords = [each.arg for each in node.args.kwonlyargs if each.arg != "settings"]
            signature = inspect.signature(getattr(experiments, node.name)).parameters
            assert keywords == [name for name in signature if name in keywords], node.name


CALLS = """
import pandas as pd
from pathlib import Path
from experiments import assess, estimate, grid, keep, score

score("claims.csv", scores="brier,auroc", p=["a", "b"], bins=15, beside="tool.json")
found = score(pd.DataFrame(), scores=["brier"], beside=[Path("a.json"), "b"], by="model")
assess(text=["It opened."], documents={"Title": "It opened."}, max_cost=2.0, variant=["FR1"])
assess("demonstration", relations=object(), out="assessed")
estimate("few.csv", quantities=("share",), on="position", sheet="next.csv")
keep("old.csv", Path("new.csv"), precision=0.9)
grid("demonstration", variants=["FR1"])
reveal_type(found.frame)
score("claims.csv", score="brier")
score("claims.csv", bins="many")
assess(text="It opened.", documnts=1)
"""


@pytest.mark.nightly
def test_type_checkers_see_the_keywords(tmp_path: Path) -> None:
    # In the suite, the stub is held to the signatures, and `make lint` checks what calls it.
    from mypy import api

    (tmp_path / "calls.py").write_text(CALLS)
    cache = str(ROOT / ".mypy_cache")
    report, *_ = api.run(
        ["--cache-dir", cache, "--follow-imports=silent", str(tmp_path / "calls.py")]
    )
    lines = [line.partition("calls.py:")[2] for line in report.splitlines() if "calls.py:" in line]
    errors = [line for line in lines if " error: " in line]
    assert 'Revealed type is "pandas' in report
    assert [line.partition(":")[0] for line in errors] == ["14", "15", "16"], report
    assert 'did you mean "scores"' in errors[0]
    assert 'Argument "bins" to "score" has incompatible type' in errors[1]
    assert 'did you mean "documents"' in errors[2]


def test_an_import_loads_nothing() -> None:
    loaded = run_python("import sys, experiments; print(*sys.modules)")[0].split()
    assert "experiments" in loaded
    heavy = {"numpy", "pandas", "pyarrow", "pydantic", "factormodels", "inference", "typer"}
    assert heavy & set(loaded) == set()
    assert [name for name in loaded if name.startswith("experiments.")] == []


def test_the_page_shows_what_a_posterior_shows() -> None:
    page = (ROOT / "docs" / "how-to" / "graphs.md").read_text(encoding="utf-8")
    graph = load("demonstration").graphs[0]
    shown = repr(infer(graph.to_factor_graph(), "exact")).splitlines()[:3]
    assert "\n".join(f"# {line}" for line in shown) in page


# --- Posteriors ----------------------------------------------------------------------------------


def test_posteriors_are_those_of_inference_graph_by_graph() -> None:
    frame = posteriors("demonstration", "FR1", "lbp", "conditional", damping=0.25)
    assert list(frame.columns[:5]) == ["response", "claim", "text", "p", "label"]
    # The id of a claim has the name that tables give it.
    assert set(frame.columns) == {"claim", "text", *SCHEMA.names} - {"atom"}
    expected = []
    for graph in load("demonstration").graphs:
        view = variant(graph, "FR1")
        marginals = infer(view.to_factor_graph("conditional"), "lbp", damping=0.25).marginals
        expected += [(graph.id, atom.id, atom.label, marginals[atom.id][1]) for atom in graph.atoms]
    for position, name in enumerate(["response", "claim", "label"]):
        assert frame[name].tolist() == [row[position] for row in expected]
    # The same computation, in batches that give the same bits.
    np.testing.assert_allclose(frame["p"].astype(float), [row[3] for row in expected], atol=1e-15)
    assert json.loads(frame["setting"][0])["damping"] == 0.25
    assert set(frame["dataset"]) == {"demonstration"}


def test_posteriors_take_a_path_a_graph_several_and_a_built_backend(tmp_path: Path) -> None:
    graphs = load("worked-examples").graphs
    path = tmp_path / "some.jsonl"
    write_many(graphs, path)
    named = posteriors("worked-examples")
    of_file = posteriors(path)
    several = posteriors(iter(graphs), backend=get_backend("exact"))
    for other in (of_file, several):
        assert other["p"].equals(named["p"])
    assert set(of_file["dataset"]) == {"some"}
    frame = posteriors(graphs[0])
    assert frame["p"].tolist() == named["p"][: len(graphs[0].atoms)].tolist()


@pytest.mark.usefixtures("folder")
def test_posteriors_are_the_rows_of_a_study() -> None:
    rows = run(STUDY)["rows"]
    of_study = posteriors("worked-examples", "FR1", "lbp", damping=0.5)
    there = rows[(rows["variant"] == "FR1") & (rows["backend"] == "lbp")].reset_index(drop=True)
    # A study's label of an algorithm tells its settings from those of the others.
    there = there.rename(columns={"atom": "claim"})
    for name in set(there) - {"study", "seconds", "selections", "backend_label"}:
        assert of_study[name].equals(there[name]), name


def test_a_task_that_is_cut_short_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = posteriors("demonstration")
    monkeypatch.setattr(units, "TASK_SECONDS", 0.0)
    assert posteriors("demonstration")["p"].equals(whole["p"])


def test_a_response_that_cannot_be_answered_says_why() -> None:
    by_size = sorted(
        load("demonstration").graphs, key=lambda graph: len(graph.atoms + graph.contexts)
    )
    # Those in between are enumerated for most of a second.
    frame = posteriors([by_size[0], by_size[-1]], backend="enumeration")
    failed = frame[frame["status"] == "failed"]
    assert 0 < len(failed) < len(frame)
    assert failed["p"].isna().all()
    assert failed["error"].notna().all()


def test_scores_take_the_columns_as_they_are() -> None:
    from calibration import score

    frame = posteriors("factcheck-bench")
    labels = [None if pd.isna(label) else bool(label) for label in frame["label"]]
    plain = score(frame["p"].tolist(), labels, frame["response"].tolist(), intervals=None)
    assert plain.models[0].n_unlabeled > 0
    columns = frame["p"], frame["label"], frame["response"]
    assert repr(score(*columns, intervals=None).models) == repr(plain.models)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("demonstratio",), r"did you mean 'demonstration'\?.*or the path of a file"),
        (("absent.json",), "there is no such file"),
        (([],), "there is no response"),
        (([0.5],), "one of these is a float"),
        (([FactGraph("g", ())] * 2,), "two responses have the id 'g'"),
        (("demonstration", "FR4"), "the variant 'FR4' is unknown"),
        (("demonstration", "FR2", "exat"), "did you mean 'exact'"),
        (("demonstration", "FR2", ["exact", "lbp"]), r"\['exact', 'lbp'\] is neither the name"),
        (("demonstration", "FR2", "exact", "implicatio"), "did you mean 'implication'"),
    ],
)
def test_a_mistake_is_reported(arguments: tuple[Any, ...], message: str) -> None:
    refused(message, posteriors, *arguments)


# --- Studies -------------------------------------------------------------------------------------


def test_a_mistake_of_save_is_reported_as_an_argument() -> None:
    findings = estimate({"p": [0.5, 0.25, 0.75], "label": [1, 0, 1]}, quantities="share")
    with pytest.raises(InputError, match=r"^`out` x\.xlsx: findings are not written as \.xlsx"):
        findings.save("x.xlsx")


def test_a_dict_and_a_file_are_one_study(folder: Path) -> None:
    study_file(folder, STUDY_YAML)
    assert load_study(STUDY).study == load_study("study.yaml").study
    assert load_study(folder / "study.yaml").study == load_study("study.yaml").study
    of_dict = run(STUDY)
    of_file = run(folder / "study.yaml", out="of-file")
    invoke("run", "study.yaml", "--out", "command")
    places = (of_dict.folder, of_file.folder, Path("command"))
    assert len({(path / "summary.csv").read_bytes() for path in places}) == 1
    assert of_dict.folder == Path("results/mine")
    assert of_file.folder == Path("of-file")
    assert of_file["rows"].drop(columns="seconds").equals(of_dict["rows"].drop(columns="seconds"))


@pytest.mark.usefixtures("folder")
def test_a_run_shows_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    results = run(STUDY)
    assert capsys.readouterr() == ("", "")
    lines = repr(results).splitlines()
    assert lines[0] == "run: mine"
    assert any(line.startswith("cells that agree") for line in lines)
    assert "<table" in results._repr_html_()
    assert len(results["summary"]) == 4
    assert read_rows("results/mine").equals(results["rows"])
    assert results.folder == Path("results/mine")
    with pytest.raises(InputError, match="did you mean 'rows'"):
        results["row"]
    assert list(read_rows("results/mine/rows.parquet", ["p"]).columns) == ["p"]


@pytest.mark.usefixtures("folder")
def test_the_claims_of_a_run_are_scored_as_its_summary_is() -> None:
    from calibration import score

    results = run(STUDY | {"datasets": ["demonstration"]})
    claims, summary = results["claims"], results["summary"]
    texts = {(g.id, atom.id): atom.text for g in load("demonstration").graphs for atom in g.atoms}
    rows = zip(claims["response"], claims["claim"], claims["text"], strict=True)
    assert all(text == texts[response, claim] for response, claim, text in rows)
    scored = score(results.frame, by=["variant", "backend_label"], scores=["brier", "precision"])
    assert [*results.frame] == ["response", "claim", "text", "p", "label", *CELL]
    assert results.frame["p"].equals(claims["p"])
    for cell in summary.to_dict("records"):
        for name in ("brier", "precision"):
            score_of_cell = scored[f"{cell['variant']}, {cell['backend_label']}", name]
            assert (score_of_cell.value, score_of_cell.lower) == (cell[name], cell[f"{name}_lower"])


@pytest.mark.usefixtures("folder")
def test_a_run_is_cut_overridden_resumed_and_dropped() -> None:
    part = run(STUDY, backend="exact")
    assert set(part["rows"]["backend"]) == {"exact"}
    refused(r"continue with `resume`, or discard them with `overwrite`$", run, STUDY)
    assert set(run(STUDY, resume=True)["rows"]["backend"]) == {"exact", "lbp"}
    changed = {"variants": ["FR1"], "backends[1].settings.damping": 0.25}
    refused("give another `out`", run, STUDY, overrides=changed)
    results = run(STUDY, overrides=changed, overwrite=True)
    assert set(results["rows"]["variant"]) == {"FR1"}
    assert 'damping": 0.25' in results["rows"]["setting"].iloc[-1]
    loaded = load_study(STUDY, ["variants=[FR1]", "backends=[exact]"])
    assert len(run(loaded, overwrite=True, workers=1)["summary"]) == 1
    refused("give one of them", run, STUDY, resume=True, overwrite=True)
    refused("pass them to load_study", run, loaded, overrides=changed)


def test_a_grid_is_a_study_that_goes_on_where_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gibbs = {"backend": "gibbs", "settings": {"burn_in": 50, "draws": 200}}
    sides: dict[str, Any] = {"variants": ["FR1", "FR2"], "backends": ["exact", gibbs]}
    sides |= {"seeds": [3, 5], "keys": {"outputs": [], "priors": [{"context": [0.9]}]}}
    study_run = grid("worked-examples", **sides)
    cells = study_run["rows"][["variant", "backend", "seed"]].drop_duplicates()
    assert len(cells) == 8
    assert set(study_run["rows"]["prior"]) == {"context=0.9"}
    # Written down it is the same study.
    (folder / "again.yaml").write_text(study_run.texts["study.yaml"])
    written = run("again.yaml", out="again")
    parts = [each["rows"].drop(columns="seconds") for each in (study_run, written)]
    assert parts[0].equals(parts[1])
    assert grid("worked-examples", variants="FR1").folder != study_run.folder

    def never(*_: object) -> None:
        raise AssertionError("a unit is computed that was finished")

    monkeypatch.setattr("experiments.study.runner._run_units", never)
    assert grid("worked-examples", **sides)["rows"].equals(study_run["rows"])


def test_paths_of_a_dict_start_here_and_bases_are_read(folder: Path) -> None:
    study_file(folder, STUDY_YAML)
    (folder / "graph.json").write_text('{"id": "g", "nodes": [], "edges": []}')
    loaded = load_study({"base": "study.yaml", "datasets": [{"path": Path("graph.json")}]})
    assert loaded.study.datasets[0].path == "graph.json"
    assert loaded.study.variants == ("FR1", "FR2")


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ({"study": "s"}, r"^the study: the key 'datasets' is missing"),
        ({**STUDY, "variant": "FR1"}, r"^the study: variant: .*did you mean 'variants'\?"),
        ({**STUDY, "seed": 1j}, r"^the study: 1j has no representation in a file"),
        ("comparee", r"did you mean 'compare'"),
    ],
)
def test_a_study_that_is_none_is_refused(study: Any, message: str, folder: Path) -> None:
    refused(message, load_study, study)
    refused(message, run, study)
    assert list(folder.iterdir()) == []


def test_an_analysis_is_run_and_is_no_study_of_units(folder: Path) -> None:
    message = r"this is the analysis 'dataset-statistics'.*`factormodels run`"
    refused(message, load_study, "papers/datasets")
    results = run("papers/datasets", ["settings.datasets=[demonstration]"], out="out")
    assert results["datasets"]["dataset"].tolist() == ["demonstration"]
    assert (folder / "out" / "manifest.json") in [folder / path for path in results.written or ()]
    refused("and this is an analysis", run, "papers/datasets", resume=True)


def test_overrides_are_several() -> None:
    refused("put it in a list", load_study, STUDY, "variants=[FR1]")


@pytest.mark.usefixtures("folder")
def test_rows_that_are_not_there() -> None:
    for path in ("absent", "."):
        refused("name the folder of a finished run", read_rows, path)


# --- Report --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_a_study_makes_its_report_and_it_is_made_again() -> None:
    results = run({**STUDY, "outputs": ["report"]})
    made = results.folder / "report.html"
    before = made.read_bytes()
    made.unlink()
    assert report(results.folder)["page"]["page"][0] == str(made)
    assert made.read_bytes() == before
    other = report(str(results.folder), out="elsewhere.html", first=1, backend=["exact"])
    assert other["page"].to_dict("records") == [{"page": "elsewhere.html", "responses": 1}]
    assert other.sentences == ("elsewhere.html: 1 response",)
    # What was found writes the same page anywhere.
    assert other.report("again.html").read_bytes() == Path("elsewhere.html").read_bytes()


def test_a_report_finds_data_that_moved(folder: Path) -> None:
    write_many(load("worked-examples").graphs, folder / "mine.jsonl")
    results = run({"study": "s", "datasets": [{"path": "mine.jsonl"}], "outputs": ["csv"]})
    (folder / "mine.jsonl").rename(folder / "moved.jsonl")
    refused(r"say where the file is with `data` mine=PATH", report, results.folder)
    by_name = report(results.folder, data={"mine": Path("moved.jsonl")})
    assert Path(by_name["page"]["page"][0]).is_file()
    moved = {"mine": "moved.jsonl"}
    refused(r"name a file in it$", report, results.folder, out=".", data=moved)
    refused(
        "`settings` is '.'; give ReportSettings or name its fields", report, results.folder, "."
    )


# --- Evaluation ----------------------------------------------------------------------------------


def test_a_text_is_evaluated_offline(folder: Path) -> None:
    assessed = assess(text=BRIDGE, documents=PASSAGES, query="Tell me about the bridge.")
    claims = assessed["claims"]
    assert claims["text"].tolist() == ["The bridge opened in 1890.", "It carries trains."]
    assert tuple(claims)[: len(LONG)] == LONG
    assert claims["label"].isna().all()
    first = claims.iloc[0]
    assert first["p"] > 0.5
    evidence = (
        assessed["evidence"]
        .set_index(["claim", "context"])
        .loc[("a1", first["supporting"].split()[0])]
    )
    assert evidence["title"] == "History"
    assert evidence["relation"] == "entailment"
    assert evidence["change"] > 0
    assert assessed["summary"]["name"].tolist() == ["FR2"]
    assert assessed["summary"]["n_atoms"].tolist() == [2]
    assert len(assessed["cost"]) == 0
    assert assessed.graphs[0].query == "Tell me about the bridge."
    assert "a1     " in repr(assessed)
    assert assessed._repr_html_().count("<tr>") == 3
    assert list(folder.iterdir()) == []


def test_an_evaluation_is_that_of_the_command(folder: Path) -> None:
    graphs = load("demonstration").graphs[:2]
    assessed = assess(graphs, variant=["FR1", "FR2"], retriever="local", top_k=2)
    written = assessed.save("found")
    assert {path.name for path in written} >= {
        *("claims.csv", "evidence.csv", "summary.csv", "cost.csv", "graphs.jsonl", "findings.json")
    }
    options = ["--variant", "FR1", "--variant", "FR2", "--retriever", "local", "--top-k", "2"]
    write_many(graphs, folder / "given.jsonl")
    invoke("assess", "given.jsonl", *options, "--out", "command")
    assert tuple(read_many("command/graphs.jsonl")) == assessed.graphs
    assert tuple(read_many("found/graphs.jsonl")) == assessed.graphs
    saved = pd.read_csv("found/claims.csv")
    assert saved["p"].tolist() == pytest.approx(assessed["claims"]["p"].tolist())
    assert len(assessed["claims"]) == 2 * sum(len(graph.atoms) for graph in graphs)
    assert assessed["summary"]["brier"].notna().all()
    of_file = assess(Path("given.jsonl"), variant="FR1", retriever="local", top_k=2)
    claims = assessed["claims"][assessed["claims"]["variant"] == "FR1"].reset_index(drop=True)
    assert of_file["claims"]["p"].equals(claims["p"])


def test_several_texts_are_several_responses() -> None:
    assessed = assess(text=[BRIDGE, "It opened in 1950."], documents=list(PASSAGES.values()))
    assert assessed["claims"]["response"].tolist() == ["response-1", "response-1", "response-2"]
    assert not assessed.incomplete


def test_contradiction_speaks_against() -> None:
    model = AnsweringModel(lambda _: '{"relation": "contradiction", "confidence": 0.9}')
    assessed = assess(
        text="The bridge opened in 1950.",
        model=model,
        atoms="sentences",
        method="verbalized",
        documents=[PASSAGES["History"]],
    )
    (claim,) = assessed["claims"].to_dict("records")
    assert claim["supporting"] == ""
    assert len(claim["contradicting"].split()) == 1
    assert claim["p"] < 0.5


def test_an_object_of_ones_own_judges_relations() -> None:
    class Shouting:
        """Whatever a passage says in capitals, it denies."""

        def judge(self, pairs: Any) -> list[Judgment]:
            denied = RelationKind.CONTRADICTION, RelationKind.ENTAILMENT
            return [Judgment(denied[not each.premise.isupper()], 0.9, "nli") for each in pairs]

    passages = {"Calm": "The bridge opened in 1950.", "Loud": "THE BRIDGE OPENED IN 1950."}
    for title, supported in (("Calm", True), ("Loud", False)):
        assessed = assess(
            text="The bridge opened in 1950.",
            relations=Shouting(),
            documents={title: passages[title]},
        )
        (claim,) = assessed["claims"].to_dict("records")
        assert (claim["p"] > 0.5) == supported
    assert assessed.settings["relations"] == "Shouting"

    class Silent:
        name = "silent"

        def judge(self, pairs: Any) -> list[Judgment]:
            return [] if pairs else [Judgment(RelationKind.NEUTRAL, 1.0, "nli")]

    refused(
        "the relation model silent gave 0 answers to 1 pair",
        assess,
        text="The bridge opened in 1950.",
        relations=Silent(),
        documents=[passages["Calm"]],
    )

    class Bare:
        def judge(self, pairs: Any) -> list[Any]:
            return [0.5 for _ in pairs]

    refused(
        "the relation model Bare answered 0.5; answer with a Judgment or Missing",
        assess,
        text="The bridge opened in 1950.",
        relations=Bare(),
        documents=[passages["Calm"]],
    )

    class Lone:
        def judge(self, pairs: Any) -> float:
            return 1 / (1 + len(pairs))

    refused(
        "the relation model Lone returned 0.5 for 1 pair; return a list of one answer per pair",
        assess,
        text="The bridge opened in 1950.",
        relations=Lone(),
        documents=[passages["Calm"]],
    )


def test_a_language_model_lists_claims_and_is_counted() -> None:
    listed = json.dumps([{"sentence": 1, "claim": "The bridge opened in 1890."}])
    model = AnsweringModel(lambda _: listed)
    asked: dict[str, Any] = {"relations": "lexical", "documents": PASSAGES}
    assessed = assess(text=BRIDGE, model=model, revise=False, **asked)
    assert assessed["claims"]["text"].tolist() == ["The bridge opened in 1890."]
    assert assessed["cost"]["stage"].tolist() == ["atomizer"]
    assert assessed["cost"]["calls"].tolist() == [len(model.asked)] == [1]


def test_a_response_that_failed_is_reported() -> None:
    def answer(request: Request) -> str | Failure:
        if "1950" in request.messages[-1].content:
            return Failure("the provider is down")
        return json.dumps([{"sentence": 1, "claim": "The bridge opened in 1890."}])

    model = AnsweringModel(answer)
    assessed = assess(
        text=[BRIDGE, "It opened in 1950."], model=model, relations="lexical", documents=PASSAGES
    )
    (_, failed) = assessed["responses"].to_dict("records")
    response, reason = failed["response"], failed["failed"]
    assert response == "response-2"
    assert "the provider is down" in reason
    assert set(assessed["claims"]["response"]) == {"response-1"}
    assert assessed.incomplete
    assert "response-2 failed: " in repr(assessed)


def test_a_named_model_answers_from_its_cache(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)  # none is needed on this machine
    with ScriptedServer(lambda *_: Reply('[{"sentence": 1, "claim": "It opened."}]')) as server:
        settings = LitellmSettings("openai/scripted", server.url)
        asked: dict[str, Any] = {
            "relations": "lexical",
            "documents": PASSAGES,
            "revise": False,
            "cache": "kept",
        }
        first = assess(text=BRIDGE, model=settings, **asked)
        again = assess(text=BRIDGE, model="openai/scripted", api_base=server.url, **asked)
        assert len(server.requests) == 1
    replayed = assess(text=BRIDGE, model="openai/scripted", replay=True, **asked)
    assert first["cost"]["calls"].tolist() == [1]
    assert again["cost"]["cached"].tolist() == replayed["cost"]["cached"].tolist() == [1]
    assert replayed["claims"].equals(first["claims"])
    assert (folder / "kept").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"give `documents` FOLDER, `retriever`"),
        ({"documents": []}, "there are no documents"),
        ({"documents": PASSAGES, "variant": "FR4"}, "the variant 'FR4' is unknown"),
        ({"documents": PASSAGES, "retrieve": "local"}, "did you mean 'retriever'"),
        (
            {"documents": PASSAGES, "id_column": "n"},
            "`id_column` names a column, and there is no table",
        ),
        (
            {"documents": PASSAGES, "model": AnsweringModel(str), "api_base": "http://x"},
            "`api_base` applies only to a model that is given by name",
        ),
        ({"documents": PASSAGES, "variants": ["FR1"]}, "did you mean 'variant'"),
        ({"documents": PASSAGES, "revise": True}, "`revise` needs a language model"),
        ({"documents": PASSAGES, "text": " "}, "text 1 is empty"),
        ({"documents": PASSAGES, "text": [3]}, "text 1 is a int"),
        ({"documents": PASSAGES, "text": None}, "responses and text: neither is given"),
        ({"documents": PASSAGES, "responses": "demonstration"}, "both are given"),
        (
            {"documents": PASSAGES, "text": None, "responses": BRIDGE},
            "give the text of a response as text=...",
        ),
        (
            {"documents": PASSAGES, "text": None, "responses": "demonstratio"},
            "did you mean 'demonstration'",
        ),
        ({"documents": PASSAGES, "text": None, "responses": [BRIDGE]}, "give texts as text="),
        ({"documents": PASSAGES, "text": None, "responses": []}, "there is no response"),
        ({"documents": PASSAGES, "text": None, "responses": [3]}, "one of these is a int"),
        ({"documents": PASSAGES, "relations": 3}, "give a name, or an object with judge"),
        ({"retriever": "google", "max_cost": 1.0}, "the price of a search"),
    ],
)
def test_an_evaluation_that_cannot_be_made(arguments: dict[str, Any], message: str) -> None:
    refused(message, assess, **{"text": BRIDGE, **arguments})


@pytest.mark.parametrize("name", ["coherence", "omissions", "revise", "select"])
def test_a_text_for_a_function_of_assessed_responses(name: str) -> None:
    function = getattr(experiments, name)
    for data in (BRIDGE, [BRIDGE], None):
        refused(["give the graphs of `assess(text=...)`"], function, data)
    assessed = assess(text=BRIDGE, documents=PASSAGES, query="Tell me about the bridge.")
    assert function(assessed.graphs).tables


@pytest.mark.parametrize("name", ["draw", "explore", "fit", "infer"])
@pytest.mark.parametrize("data", [None, 3])
def test_data_that_are_no_graphs(name: str, data: Any) -> None:
    refused(f"the responses are {data}; give a file", getattr(experiments, name), data)


@pytest.mark.parametrize("name", experiments.__all__)
def test_help_explains_every_keyword(name: str) -> None:
    function = getattr(experiments, name)
    documented = inspect.getdoc(function) or ""
    if inspect.unwrap(function) is not function:
        for field in settings_of(function).model_fields:
            assert f"\n    {field}: " in documented
        # As Python has them: options of the command line are arguments.
        assert not re.search(r"(?<!\S)--[a-z]", documented.partition("Keyword Args:")[2])
