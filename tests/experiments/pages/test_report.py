"""The page of a run: it says what the rows say, stands by itself, takes texts as text."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments.findings import page as findings_page
from experiments.pages import removals, reported_datasets, study_page, study_responses
from experiments.study.cells import GraphView, PriorSetting
from experiments.study.rows import read_rows
from factormodels.io.fact_graph_json import parse_fact_graph
from factormodels.variants import variant
from tests.experiments.conftest import invoke
from tests.experiments.pages.reported import (
    GRAPHS,
    HOSTILE,
    STUDY,
    Element,
    atom,
    context,
    edge,
    listed,
    read_page,
    run_study,
    write_data,
)
from tests.oracle import oracle

pytestmark = pytest.mark.slow

VIEWS = ["FR1 · implication", "FR1 · implication · strength 0.5",
         "FR3 · implication", "FR3 · implication · strength 0.5"]  # fmt: skip
ALGORITHMS = ["exact", "lbp", "$odd_{name$"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of `STUDY`, in the folder of its data."""
    folder = tmp_path_factory.mktemp("reported")
    write_data(folder)
    return run_study(folder)


@pytest.fixture(scope="module")
def page(run: Path) -> Element:
    """Its page, as it stands without the script."""
    return read_page(run / "report.html")


@pytest.fixture(scope="module")
def data(run: Path) -> dict[str, Any]:
    """Data that its page lists."""
    return listed(run / "report.html")


@pytest.fixture
def copied(run: Path, folder: Path) -> Path:
    """A copy of that run, beside its data in the current folder."""
    shutil.copyfile(run.parent / "graphs.jsonl", folder / "graphs.jsonl")
    shutil.copytree(run, folder / "out")
    return folder / "out"


def body_rows(table: Element) -> list[list[Element]]:
    return [row.children for row in table.only("tbody").children]


def test_every_response_is_listed_and_every_link_leads_somewhere(
    page: Element, data: dict[str, Any]
) -> None:
    assert [entry["id"] for entry in data["responses"]] == [graph["id"] for graph in GRAPHS]
    ids = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for link in page.all("a"):
        target = link.attributes["href"]
        if match := re.fullmatch(r"#r-(\d+)", target):
            assert data["responses"][int(match[1])]["id"] == link.text
        else:
            assert page.only(id=target.removeprefix("#"))


def test_the_page_stands_by_itself_and_runs_nothing_but_our_scripts(
    run: Path, page: Element
) -> None:
    folder = Path(findings_page.__file__).parent / "templates"
    ours = [(folder / name).read_text("utf-8") for name in ("report.js", "responses.js")]
    scripts = page.all("script")
    assert [script.text for script in scripts if "type" not in script.attributes] == ours
    assert [script.attributes["type"] for script in scripts if "type" in script.attributes] == [
        "application/json"
    ]
    assert page.only("style").text.strip() == (folder / "report.css").read_text().strip()
    assert page.all("link") == page.all("img") == page.all("iframe") == []
    for element in page.all():
        handlers = [key for key in element.attributes if key.startswith("on") or key == "src"]
        assert handlers == [], element.tag
        assert "javascript:" not in element.attributes.get("href", "")
    text = (run / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"@import|url\((?!#|..head-)", text)
    # Namespaces are names, and are not fetched; an address of the data is one to follow.
    fetched = re.findall(r'https?://[^"<\s]+', re.sub(r'xmlns(:\w+)?="[^"]*"', "", text))
    assert set(fetched) <= {"https://example.org/?a=1\\u0026b=2", "http://www.w3.org/2000/svg"}


def test_hostile_texts_are_texts(page: Element, data: dict[str, Any]) -> None:
    entry = data["responses"][1]
    assert [entry[key] for key in ("id", "query", "topic")] == [HOSTILE] * 3
    # All of the text is there, with the claim that is made in it.
    assert entry["pieces"] == [[HOSTILE, [0]]]
    assert entry["claims"][0]["text"] == HOSTILE
    passages = [data["passages"][each["at"]] for each in entry["passages"]]
    assert [each["id"] for each in entry["passages"]] == ["c<1>", "c2"]
    assert "link" not in passages[0]
    assert passages[1]["link"] == "https://example.org/?a=1&b=2"
    assert passages[1]["text"].count("word") == 300
    assert page.only("p", class_="lead").text == "What <b>might</b> go wrong."
    links = page.only("section", id="failures").all("a")
    assert HOSTILE in [link.text for link in links]


def test_people_who_cannot_see_or_point_are_served(page: Element) -> None:
    assert page.only("html").attributes["lang"] == "en"
    assert len(page.all("h1")) == len(page.all("main")) == 1
    assert page.only("a", class_="skip").attributes["href"] == "#main"
    for table in page.all("table"):
        assert all(head.attributes["scope"] == "col" for head in table.only("thead").all("th"))
        assert all(head.attributes["scope"] == "row" for head in table.only("tbody").all("th"))
    for region in page.all("div", class_="scroll"):
        assert region.attributes["role"] == "region"
        assert region.attributes["aria-label"]
        assert region.attributes["tabindex"] == "0"
    for control in page.all("input") + page.all("select"):
        assert control.parent is not None
        assert control.parent.tag == "label"
    for drawing in page.all("svg"):
        assert drawing.attributes["role"] == "img"
        assert drawing.attributes["aria-label"]


def test_posteriors_are_those_of_the_rows_in_every_cell(run: Path, data: dict[str, Any]) -> None:
    columns = ["response", "atom", "variant", "strength", "backend_label", "status", "p"]
    records = read_rows(run / "rows.parquet")[columns].itertuples(index=False, name=None)
    p_of = {record[:5]: record[5:] for record in records}
    titles = [each["title"] for each in data["answers"]]
    assert data["views"] == VIEWS
    cells = {f"{view} · {name}": (view, name) for view in VIEWS for name in ALGORITHMS}
    assert sorted(titles) == sorted(cells)
    # The exact backend is shown first.
    assert titles[0] == "FR1 · implication · exact"
    for entry, graph in zip(data["responses"], GRAPHS, strict=True):
        atoms = [node for node in graph["nodes"] if node["type"] == "atom"]
        for node, claim in zip(atoms, entry.get("claims", []), strict=True):
            assert [claim["id"], claim.get("label")] == [node["id"], node.get("label")]
            for title, ended, p in zip(titles, entry["ended"], claim["p"], strict=True):
                view, name = cells[title]
                strength = 0.5 if "strength" in view else 1.0
                status, value = p_of[graph["id"], node["id"], view[:3], strength, name]
                assert ended[0] == status
                if status == "failed":
                    assert p is None
                else:
                    assert p == pytest.approx(value, abs=1e-9)


def test_removals_are_those_of_an_enumeration_without_the_context(data: dict[str, Any]) -> None:
    entry = data["responses"][0]
    graph = parse_fact_graph(GRAPHS[0], "graph")
    effects = {
        (claim["id"], entry["passages"][item["passage"]]["id"]): item
        for claim in entry["claims"]
        for item in claim.get("evidence", ())
    }
    assert set(effects) == {("a1", "c1"), ("a1", "c3"), ("a2", "c1"), ("a2", "c2")}
    for (name, removed), item in effects.items():
        for view, (kind, strength) in enumerate(itertools.product(["FR1", "FR3"], [1.0, 0.5])):
            seen = variant(graph, kind)
            odds = {relation: (relation.probability / (1 - relation.probability)) ** strength
                    for relation in seen.relations}  # fmt: skip
            relations = [replace(relation, probability=x / (1 + x)) for relation, x in odds.items()]
            seen = replace(seen, relations=tuple(relations))
            # A copy for another atom has no part in FR1.
            gone = {removed, f"{removed}@{name}"}
            less = replace(
                seen,
                contexts=tuple(context for context in seen.contexts if context.id not in gone),
                relations=tuple(
                    relation
                    for relation in seen.relations
                    if not gone & {relation.source, relation.target}
                ),
            )
            with_it, without = (
                oracle(graph.to_factor_graph("implication")).marginals[name][1]
                for graph in (seen, less)
            )
            assert item["effects"][view][0] == pytest.approx(without, abs=1e-8)
            assert item["effects"][view][1] == pytest.approx(with_it - without, abs=1e-8)
    kinds = {key: item["relation"] for key, item in effects.items()}
    assert kinds["a1", "c1"] == kinds["a1", "c3"] == "entailment"
    assert kinds["a2", "c1"] == kinds["a2", "c2"] == "contradiction"


def test_failures_are_counted_with_their_errors(
    run: Path, page: Element, data: dict[str, Any]
) -> None:
    rows = read_rows(run / "rows.parquet")
    failed = rows[rows.status == "failed"]
    # Two responses with more than two variables, in four views.
    assert set(failed.response) == {"labeled", HOSTILE}
    assert "8 units failed." in page.text
    table = page.only("section", id="failures").only("table")
    assert len(body_rows(table)) == 8
    for cells in body_rows(table):
        assert "assignments" in cells[1].text
        assert cells[2].text == "1"
    assert {cells[3].text for cells in body_rows(table)} == {"labeled", HOSTILE}
    failures = data["responses"][0]["failures"]
    assert {reason for reason, _ in failures} == set(failed[failed.response == "labeled"].error)
    assert sum(len(cells) for _, cells in failures) == 4
    assert "failures" not in data["responses"][3]


def test_the_summary_is_the_summary(run: Path, page: Element) -> None:
    index = page
    summary = pd.read_csv(run / "summary.csv")
    table = index.only("details", id="cells").only("table")
    titles = [head.text for head in table.only("thead").all("th")]
    brier = titles.index("Brier")
    for cells, value in zip(body_rows(table), summary["brier"], strict=True):
        if np.isnan(value):
            assert cells[brier].text == "--"
            continue
        assert float(cells[brier].attributes["data-sort"]) == value
        low, high = re.findall(r"\d\.\d{3}", cells[brier].only("small").text)
        assert float(low) <= value <= float(high)
    tests = pd.read_csv(run / "significance.csv")
    rows = body_rows(index.only("section", id="tests").only("table"))
    for cells, difference in zip(rows, tests["difference"], strict=True):
        assert cells[6].attributes.get("data-sort") in (f"{difference:.17g}", None)
    captions = [element.text for element in index.all("figcaption")]
    assert captions[0].startswith("mine: scores with 95% intervals over responses")
    assert captions[-1] == "mine, implication: reliability"
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["config_sha256"] in index.only("section", id="origin").text


def test_equal_runs_have_equal_pages_and_the_manifest_lists_them(run: Path) -> None:
    def digest(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def listed_digest(folder: Path) -> str:
        manifest = json.loads((folder / "manifest.json").read_text())
        digest: str = manifest["files"]["report.html"]
        return digest

    first = digest(run / "report.html")
    assert listed_digest(run) == first
    again = run_study(run.parent, out="again")
    assert digest(again / "report.html") == first
    elsewhere = run.parent / "elsewhere.html"
    data = f"mine={run.parent / 'graphs.jsonl'}"
    result = invoke("report", run, "--out", elsewhere, "--data", data)
    assert result.stdout == f"- {elsewhere}: 4 responses\n"
    assert digest(elsewhere) == first
    # Made anew in the run's folder, with less on it: the manifest lists it.
    fewer = ("--response", "labeled", "--variant", "FR1", "--strength", "1")
    invoke("report", again, "--data", data, *fewer)
    assert listed_digest(again) == digest(again / "report.html") != first
    again_listed = listed(again / "report.html")
    assert [entry["id"] for entry in again_listed["responses"]] == ["labeled"]
    assert again_listed["views"] == ["FR1 · implication"]
    assert len(again_listed["answers"]) == 3


@pytest.mark.usefixtures("without_plots")
def test_many_responses_and_cells_are_listed_in_part_and_the_page_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reported_datasets, "MAX_CELLS", 3)
    write_data(folder)
    fewer = ("strengths=[1.0]", "significance={}")
    out = run_study(folder, STUDY, "report.responses=1", *fewer)
    data = listed(out / "report.html")
    assert (len(data["responses"]), len(data["answers"])) == (1, 3)
    text = " ".join(read_page(out / "report.html").text.split())
    assert "Listed are 1 of 4 responses; factormodels report RUN --response ID" in text
    assert "3 of 6 cells are shown." in text
    invoke("report", out, "--first", "2")
    assert len(listed(out / "report.html")["responses"]) == 2


@pytest.mark.usefixtures("without_plots")
def test_too_long_computations_are_skipped_and_the_page_says_so(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_responses, "REPORT_SECONDS", 0.0)
    invoke("report", copied)
    entry = listed(copied / "report.html")["responses"][0]
    (note,) = entry["notes"]
    assert "in 4 of 4 views what passages change was not computed" in note
    effects = [
        e for c in entry["claims"] for item in c.get("evidence", ()) for e in item["effects"]
    ]
    assert [None, None] in effects
    assert all(effect in (None, [None, None]) for effect in effects)


def test_a_large_graph_is_predicted_to_take_long_and_estimated_from_draws() -> None:
    """Every context is related to every atom: the width is the number of atoms."""
    kinds = ("contradiction", "entailment")
    nodes = [atom(f"a{n}") for n in range(20)] + [context(f"c{n}") for n in range(20)]
    edges = [edge(f"c{n}", f"a{m}", kinds[(n + m) % 2], 0.6) for n in range(20) for m in range(20)]
    graph = parse_fact_graph({"id": "large", "nodes": nodes, "edges": edges}, "graph")

    view = GraphView("FR2", "implication", PriorSetting("data", None, None), 1.0)
    (predicted,), seconds = removals.removals_of(graph, [view], 100.0)
    assert seconds == 95.0
    assert predicted.removals is not None
    assert len(predicted.removals) == 400
    known = [removal for removal in predicted.removals.values() if removal is not None]
    assert len(known) > 350
    assert all(0.0 < removal.error < 0.1 for removal in known)
    (none,), seconds = removals.removals_of(graph, [view], 1.0)
    assert none.removals is None
    assert (none.reason, seconds) == ("it would take too long", 1.0)


def test_data_without_labels_have_a_page(folder: Path) -> None:
    write_data(folder, [GRAPHS[3], GRAPHS[2]])
    study = "study: s\ndatasets: [{name: mine, path: graphs.jsonl}]\noutputs: [report]\n"
    out = run_study(folder, study)
    page = read_page(out / "report.html")
    assert [element.text for element in page.all("figcaption")] == [
        "mine: posteriors under FR2 · implication · auto"
    ]
    assert page.all("section", id="failures") == []
    claims = [
        claim
        for each in listed(out / "report.html")["responses"]
        for claim in each.get("claims", ())
    ]
    assert claims
    assert all("label" not in claim for claim in claims)


@pytest.mark.usefixtures("without_plots")
def test_a_run_that_is_not_complete_says_so(folder: Path) -> None:
    write_data(folder)
    out = run_study(folder, STUDY, "--variant", "FR1")
    page = read_page(out / "report.html")
    assert "Not complete. 24 units have not been run" in " ".join(page.text.split())
    assert len(listed(out / "report.html")["responses"]) == 4
    run_study(folder, STUDY, "--resume", "outputs=[csv]")
    assert not (out / "report.html").exists()
    assert "report.html" not in json.loads((out / "manifest.json").read_text())["files"]


def test_settings_stand_folded_as_far_as_they_differ_from_the_defaults(page: Element) -> None:
    settings = page.only("details", id="settings")
    keys = [element.text for element in settings.all("dt")]
    assert keys == ["datasets", "description", "variants", "strengths", "backends",
                    "significance", "outputs"]  # fmt: skip
    assert "enumeration" in settings.text


@pytest.mark.usefixtures("without_plots")
def test_a_page_that_dies_leaves_the_one_before_it(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = copied
    before = (out / "report.html").read_bytes()

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(study_page, "page", die)
    invoke("report", out, "--data", "mine=graphs.jsonl", code=130)
    assert (out / "report.html").read_bytes() == before
    assert sorted(path.name for path in out.parent.iterdir()) == ["graphs.jsonl", "out"]


def test_mistakes_are_one_sentence(run: Path, folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.tex").write_text("")
    write_data(folder, GRAPHS[:1])
    good = run.parent / "graphs.jsonl"
    mistakes = [
        ((folder / "mine",), "there is no manifest.json; name the folder of a run's results"),
        # As the folder of `assess` it is known by its file of graphs.
        ((folder,), "was not assessed; give what `factormodels assess --out` wrote"),
        ((run,), "'mine' is not what the run judged"),
        ((run, "--data", "graphs.jsonl"), "--data 'graphs.jsonl': give NAME=PATH"),
        ((run, "--data", f"mine={good}", "--data", "yours=x"), "--data names 'yours'"),
        ((run, "--data", "mine=absent.jsonl"), "absent.jsonl: there is no such file"),
        ((run, "--data", "mine=graphs.jsonl"), "'mine' is not what the run judged"),
        (
            (run, "--data", f"mine={good}", "--response", "labled"),
            "did you mean 'labeled'?",
        ),
        (
            (run, "--out", "mine", "--data", f"mine={good}"),
            "--out mine: this is a folder; name a file in it",
        ),
        (
            (run, "--out", "page.pdf", "--data", f"mine={good}"),
            "--out page.pdf: a page is a single file; name a file that ends in .html",
        ),
        (
            (run, "--data", f"mine={good}", "--backend", "exct"),
            "did you mean 'exact'?",
        ),
    ]
    for arguments, message in mistakes:
        assert message in invoke("report", *arguments, code=2).stderr
    assert [path.name for path in (folder / "mine").iterdir()] == ["thesis.tex"]


@pytest.mark.usefixtures("without_plots")
def test_a_file_is_found_beside_or_asked_for(
    run: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = shutil.copytree(run, folder / "copied")
    result = invoke("report", copied, "--out", folder / "page.html", code=2)
    assert "from graphs.jsonl, which is neither in the current folder nor in" in result.stderr
    monkeypatch.chdir(run.parent)
    invoke("report", copied, "--out", folder / "page.html")


@pytest.mark.usefixtures("without_plots")
def test_a_file_above_the_results_is_found_from_anywhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(folder)
    run_study(folder, "study: s\ndatasets: [{path: graphs.jsonl}]\noutputs: [csv]\n")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    invoke("report", folder / "out", "--out", "page.html")
    assert (elsewhere / "page.html").exists()


@pytest.mark.usefixtures("without_plots")
def test_a_dataset_without_a_name_of_its_own_has_a_page(folder: Path) -> None:
    write_data(folder)
    out = run_study(folder, "study: s\ndatasets: [{path: graphs.jsonl}]\noutputs: [report]\n")
    content = (out / "report.html").read_bytes()
    invoke("report", out)
    assert (out / "report.html").read_bytes() == content


def test_an_analysis_has_no_page(run: Path, folder: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["config"] = {"study": "s", "analysis": "datasets"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    result = invoke("report", folder, code=2)
    assert "manifest.json: this is a run of the analysis 'datasets'" in result.stderr
