"""The HTML report of a run: it says what the rows say, stands by itself, takes texts as text."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.findings import page as findings_page
from experiments.pages import removals, reported_datasets, writing
from experiments.study.config import PriorSetting
from experiments.study.design import GraphView
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
def pages(run: Path) -> dict[str, Element]:
    """Every page of its report by name."""
    return {path.name: read_page(path) for path in sorted((run / "report").iterdir())}


def body_rows(table: Element) -> list[list[Element]]:
    return [row.children for row in table.one("tbody").children]


def in_turn(cell: Element) -> list[str]:
    return cell.attributes["data-v"].split("|")


def number(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))


def test_there_is_a_page_per_response_and_every_link_leads_somewhere(
    pages: dict[str, Element],
) -> None:
    assert list(pages) == ["index.html", *(f"response-{n:04}.html" for n in (1, 2, 3, 4))]
    listed = pages["index.html"].one("table", id="responses-1").all("a")
    assert [(link.attributes["href"], link.text) for link in listed] == [
        (f"response-{n:04}.html", graph["id"]) for n, graph in enumerate(GRAPHS, 1)
    ]
    for name, page in pages.items():
        ids = [one.attributes["id"] for one in page.all() if "id" in one.attributes]
        assert len(ids) == len(set(ids)), name
        for link in page.all("a"):
            target = link.attributes["href"]
            file, _, fragment = target.partition("#")
            if target.startswith("https://"):
                assert "noopener" in link.attributes["rel"]
                continue
            assert (file or name) in pages, target
            if fragment:
                assert pages[file or name].one(id=fragment)
    chain = ["response-0001.html"]
    while following := pages[chain[-1]].all("a", rel="next"):
        chain.append(following[0].attributes["href"])
    assert chain == list(pages)[1:]


def test_a_page_stands_by_itself_and_runs_nothing_but_our_script(
    run: Path, pages: dict[str, Element]
) -> None:
    folder = Path(findings_page.__file__).parent / "templates"
    script = (folder / "report.js").read_text(encoding="utf-8")
    for name, page in pages.items():
        assert page.one("script").text == script
        assert page.one("style").text.strip() == (folder / "report.css").read_text().strip()
        assert page.all("link") == page.all("img") == page.all("iframe") == []
        (policy,) = (
            one.attributes["content"]
            for one in page.all("meta")
            if one.attributes.get("http-equiv") == "Content-Security-Policy"
        )
        assert policy.startswith("default-src 'none'; ")
        for element in page.all():
            handlers = [key for key in element.attributes if key.startswith("on") or key == "src"]
            assert handlers == [], (name, element.tag)
            assert "javascript:" not in element.attributes.get("href", "")
        text = (run / "report" / name).read_text(encoding="utf-8")
        assert not re.search(r"@import|url\((?!#)", text), name
        # Namespaces are names, and are not fetched.
        fetched = re.findall(r'https?://[^"<\s]+', re.sub(r'xmlns(:\w+)?="[^"]*"', "", text))
        assert set(fetched) <= {"https://example.org/?a=1&amp;b=2"}


def test_hostile_texts_are_texts(pages: dict[str, Element]) -> None:
    page = pages["response-0002.html"]
    assert page.one("h1").text == HOSTILE
    assert page.one("p", class_="lead").text == HOSTILE
    # Behind it stands the claim that is made there; below the claim what speaks for it.
    assert page.one("p", class_="response").text == f"{HOSTILE}a|1"
    assert page.one("p", class_="response").one("mark").text == HOSTILE
    assert body_rows(page.one("table", id="atoms"))[0][1].text.startswith(f"{HOSTILE} ")
    contexts = body_rows(page.one("table", id="context-rows"))
    assert [row[0].text for row in contexts] == ["c<1>", "c2"]
    assert contexts[0][1].all("a") == []
    assert contexts[1][1].one("a").attributes["href"] == "https://example.org/?a=1&b=2"
    # A long passage is there in full, folded.
    assert contexts[1][1].one("details").text.count("word") == 300 + 60
    assert pages["index.html"].one("p", class_="lead").text == "What <b>might</b> go wrong."


def test_people_who_cannot_see_or_point_are_served(pages: dict[str, Element]) -> None:
    for page in pages.values():
        assert page.one("html").attributes["lang"] == "en"
        assert len(page.all("h1")) == len(page.all("main")) == 1
        assert page.one("a", class_="skip").attributes["href"] == "#main"
        for table in page.all("table"):
            assert all(head.attributes["scope"] == "col" for head in table.one("thead").all("th"))
            assert all(head.attributes["scope"] == "row" for head in table.one("tbody").all("th"))
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


def test_posteriors_are_those_of_the_rows_in_every_view(
    run: Path, pages: dict[str, Element]
) -> None:
    columns = ["response", "atom", "variant", "strength", "backend_label", "status", "p"]
    records = read_rows(run / "rows.parquet")[columns].itertuples(index=False, name=None)
    told = {record[:5]: record[5:] for record in records}
    for place, graph in enumerate(GRAPHS, 1):
        page = pages[f"response-{place:04}.html"]
        atoms = [node for node in graph["nodes"] if node["type"] == "atom"]
        if not atoms:
            assert page.all("table", id="atoms") == []
            assert "This response has no atoms." in page.text
            continue
        chosen = page.one("select", data_switches="main").all("option")
        assert [option.text for option in chosen] == VIEWS
        table = page.one("table", id="atoms")
        assert [head.text for head in table.one("thead").all("th")][3:-1] == ALGORITHMS
        for node, cells in zip(atoms, body_rows(table), strict=True):
            label = {True: "true", False: "false", None: "unlabelled"}[node.get("label")]
            assert [cells[0].text, cells[2].text] == [node["id"], label]
            p = []
            for algorithm, cell in zip(ALGORITHMS, cells[3:-1], strict=True):
                for (kind, strength), text in zip(
                    itertools.product(["FR1", "FR3"], [1.0, 0.5]), in_turn(cell), strict=True
                ):
                    status, value = told[graph["id"], node["id"], kind, strength, algorithm]
                    if status == "failed":
                        assert text == "failed"
                    else:
                        # Three decimals are shown.
                        assert number(text) == pytest.approx(value, abs=5.001e-4)
                        p.append(value)
                assert cell.text == in_turn(cell)[0]
            assert number(cells[-1].text) == pytest.approx(max(p) - min(p), abs=5.001e-4)


def test_removals_are_those_of_an_enumeration_without_the_context(
    pages: dict[str, Element],
) -> None:
    page = pages["response-0001.html"]
    graph = parse_fact_graph(GRAPHS[0], "graph")
    found = {}
    for card in page.all("article"):
        name = card.attributes["data-filter"].split()[0]
        for table in card.all("table", class_="sortable evidence"):
            for cells in body_rows(table):
                found[name, cells[0].text] = cells
    assert set(found) == {("a1", "c1"), ("a1", "c3"), ("a2", "c1"), ("a2", "c2")}
    for (name, removed), cells in found.items():
        for view, (kind, strength) in enumerate(itertools.product(["FR1", "FR3"], [1.0, 0.5])):
            seen = variant(graph, kind)
            odds = {one: (one.probability / (1 - one.probability)) ** strength
                    for one in seen.relations}  # fmt: skip
            relations = [replace(one, probability=x / (1 + x)) for one, x in odds.items()]
            seen = replace(seen, relations=tuple(relations))
            # A copy for another atom has no part in FR1.
            gone = {removed, f"{removed}@{name}"}
            less = replace(
                seen,
                contexts=tuple(one for one in seen.contexts if one.id not in gone),
                relations=tuple(one for one in seen.relations if one.source not in gone
                                and one.target not in gone),
            )  # fmt: skip
            with_it, without = (
                oracle(one.to_factor_graph("implication")).marginals[name][1]
                for one in (seen, less)
            )
            # Three decimals are shown.
            assert number(in_turn(cells[3])[view]) == pytest.approx(without, abs=5.001e-4)
            change = number(in_turn(cells[4])[view])
            assert change == pytest.approx(with_it - without, abs=5.001e-4)
    said = {key: cells[1].text.strip() for key, cells in found.items()}
    assert said["a1", "c1"] == said["a1", "c3"] == "supports"
    assert said["a2", "c1"] == said["a2", "c2"] == "contradicts"
    # The strongest evidence comes first.
    assert [name for atom_id, name in found if atom_id == "a2"] == ["c2", "c1"]


def test_failures_are_counted_with_their_errors(run: Path, pages: dict[str, Element]) -> None:
    rows = read_rows(run / "rows.parquet")
    failed = rows[rows.status == "failed"]
    # Two responses with more than two variables, in four views.
    assert set(failed.response) == {"labelled", HOSTILE}
    index = pages["index.html"]
    assert "8 units failed." in index.text
    table = index.one("section", id="failures").one("table")
    assert len(body_rows(table)) == 8
    for cells in body_rows(table):
        assert "assignments" in cells[3].text
        assert cells[2].text == "1"
    assert {cells[4].text for cells in body_rows(table)} == {"labelled", HOSTILE}
    page = pages["response-0001.html"]
    for error in failed[failed.response == "labelled"].error:
        assert error in page.one("ul", class_="failures").text
    assert page.one("dd", class_="bad").text == "4"
    assert pages["response-0004.html"].all("ul", class_="failures") == []


def test_the_summary_is_the_summary(run: Path, pages: dict[str, Element]) -> None:
    index = pages["index.html"]
    summary = pd.read_csv(run / "summary.csv")
    table = index.one("details", id="cells").one("table")
    titles = [head.text for head in table.one("thead").all("th")]
    brier = titles.index("Brier")
    for cells, value in zip(body_rows(table), summary["brier"], strict=True):
        if np.isnan(value):
            assert cells[brier].text == "–"
            continue
        assert float(cells[brier].attributes["data-sort"]) == value
        low, high = re.findall(r"\d\.\d{3}", cells[brier].one("small").text)
        assert float(low) <= value <= float(high)
    tests = pd.read_csv(run / "significance.csv")
    rows = body_rows(index.one("section", id="tests").one("table"))
    for cells, difference in zip(rows, tests["difference"], strict=True):
        assert cells[6].attributes["data-sort"] in (f"{difference:.17g}", "")
    captions = [one.text for one in index.all("figcaption")]
    assert captions[0].startswith("mine: scores with 95% intervals over responses")
    assert captions[-1] == "mine, implication: reliability"
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["config_sha256"] in index.one("section", id="origin").text


def test_equal_runs_have_equal_reports_and_the_manifest_lists_them(run: Path) -> None:
    def digests(folder: Path) -> dict[str, str]:
        return {
            f"report/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.iterdir()
        }

    first = digests(run / "report")
    manifest = json.loads((run / "manifest.json").read_text())
    listed = {name: value for name, value in manifest["files"].items() if "/" in name}
    assert listed == first
    again = run_study(run.parent, out="again")
    assert digests(again / "report") == first
    data = f"mine={run.parent / 'graphs.jsonl'}"
    result = invoke("report", run, "--out", run.parent / "elsewhere", "--data", str(data))
    assert result.stdout == f"- {run.parent / 'elsewhere' / 'index.html'}: 5 pages\n"
    assert digests(run.parent / "elsewhere") == first
    # Made anew in the run's folder, with fewer pages: the manifest lists these.
    fewer = ("--response", "labelled", "--only", "variant=FR1", "--only", "strength=1")
    invoke("report", again, "--data", str(data), *fewer)
    listed = json.loads((again / "manifest.json").read_text())["files"]
    assert {name for name in listed if "/" in name} == set(digests(again / "report"))
    assert len(digests(again / "report")) == 2
    page = read_page(again / "report" / "response-0001.html")
    assert page.all("select", data_switches="main") == []
    assert "FR1 · implication" in page.text
    assert "FR3" not in page.one("main").text


def test_many_responses_have_few_pages_and_the_report_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reported_datasets, "MAX_CELLS", 3)
    write_data(folder)
    out = run_study(folder, STUDY, "report.responses=1")
    assert len(list((out / "report").iterdir())) == 2
    index = read_page(out / "report" / "index.html")
    assert "1 of 4 responses have a page." in " ".join(index.text.split())
    page = read_page(out / "report" / "response-0001.html")
    assert "3 of 12 cells are shown" in " ".join(page.text.split())
    assert len(body_rows(page.one("section", id="cells").one("table"))) == 3


def test_what_would_take_too_long_is_not_computed_and_the_page_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(folder)
    monkeypatch.setattr(writing, "REPORT_SECONDS", 0.0)
    out = run_study(folder)
    page = read_page(out / "report" / "response-0001.html")
    assert "In 4 of 4 views it was not computed" in " ".join(page.text.split())
    table = page.all("table", class_="sortable evidence")[0]
    assert {text for cells in body_rows(table) for text in in_turn(cells[4])} <= {"–", ""}


def test_a_large_graph_is_predicted_to_take_long_and_estimated_from_draws() -> None:
    """Every context is related to every atom: the width is the number of atoms."""
    kinds = ("contradiction", "entailment")
    nodes = [atom(f"a{n}") for n in range(30)] + [context(f"c{n}") for n in range(30)]
    edges = [edge(f"c{n}", f"a{m}", kinds[(n + m) % 2], 0.6) for n in range(30) for m in range(30)]
    graph = parse_fact_graph({"id": "large", "nodes": nodes, "edges": edges}, "graph")

    view = GraphView("FR2", "implication", PriorSetting("data", None, None), 1.0)
    (one,), seconds = removals.removals_of(graph, [view], 100.0)
    assert seconds == 95.0
    assert one.removals is not None
    assert len(one.removals) == 900
    known = [removal for removal in one.removals.values() if removal is not None]
    assert len(known) > 800
    assert all(0.0 < removal.error < 0.1 for removal in known)
    (none,), seconds = removals.removals_of(graph, [view], 1.0)
    assert none.removals is None
    assert (none.reason, seconds) == ("it would take too long", 1.0)


def test_data_without_labels_have_a_report(folder: Path) -> None:
    write_data(folder, [GRAPHS[3], GRAPHS[2]])
    study = "study: s\ndatasets: [{name: mine, path: graphs.jsonl}]\noutputs: [report]\n"
    out = run_study(folder, study)
    index = read_page(out / "report" / "index.html")
    assert [one.text for one in index.all("figcaption")] == [
        "mine: posteriors under FR2 · implication · auto"
    ]
    assert "No unit failed." in index.text
    brier = [cells[5].text for cells in body_rows(index.one("table", id="responses-1"))]
    assert brier == ["–", "–"]


def test_a_run_that_is_not_complete_says_so(folder: Path) -> None:
    write_data(folder)
    out = run_study(folder, STUDY, "--only", "variant=FR1")
    index = read_page(out / "report" / "index.html")
    assert "Not complete. 24 units have not been run" in " ".join(index.text.split())
    assert (out / "report" / "response-0001.html").exists()
    run_study(folder, STUDY, "--resume", "outputs=[csv]")
    assert not (out / "report").exists()
    assert "report/index.html" not in json.loads((out / "manifest.json").read_text())["files"]


def test_a_report_that_dies_leaves_the_one_before_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(folder)
    out = run_study(folder)
    before = {path.name: path.read_bytes() for path in (out / "report").iterdir()}

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(writing, "response_page", die)
    command = ("report", out, "--data", "mine=graphs.jsonl")
    invoke(*command, code=130)
    assert {path.name: path.read_bytes() for path in (out / "report").iterdir()} == before
    assert sorted(path.name for path in out.parent.iterdir()) == [
        "graphs.jsonl", "out", "study.yaml"
    ]  # fmt: skip


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
            (run, "--data", f"mine={good}", "--response", "labeled"),
            "did you mean 'labelled'?",
        ),
        (
            (run, "--out", "mine", "--data", f"mine={good}"),
            "mine: it holds something other than a report",
        ),
        (
            (run, "--data", f"mine={good}", "--only", "backend=exct"),
            "did you mean 'exact'?",
        ),
    ]
    for arguments, said in mistakes:
        assert said in invoke("report", *arguments, code=2).stderr
    assert [path.name for path in (folder / "mine").iterdir()] == ["thesis.tex"]


def test_a_file_is_found_beside_or_asked_for(
    run: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = invoke("report", run, "--out", folder / "report", code=2)
    assert "from graphs.jsonl, which is not in the current folder; say where" in result.stderr
    monkeypatch.chdir(run.parent)
    invoke("report", run, "--out", folder / "report")


def test_a_dataset_without_a_name_of_its_own_has_a_report(folder: Path) -> None:
    write_data(folder)
    out = run_study(folder, "study: s\ndatasets: [{path: graphs.jsonl}]\noutputs: [report]\n")
    pages = {path.name: path.read_bytes() for path in (out / "report").iterdir()}
    invoke("report", out)
    assert {path.name: path.read_bytes() for path in (out / "report").iterdir()} == pages


def test_an_analysis_has_no_report(run: Path, folder: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["config"] = {"study": "s", "analysis": "datasets"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    result = invoke("report", folder, code=2)
    assert "manifest.json: this is a run of the analysis 'datasets'" in result.stderr
