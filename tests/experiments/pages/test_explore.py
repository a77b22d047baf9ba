"""Changes on the page of `explore` affect the posteriors, and are saved."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from socket import create_connection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from experiments import load_study
from experiments.pages.explored_page import (
    Exploration,
    changed_graph,
    conventions_of,
    explored,
    moved,
    save,
)
from factormodels import Atom, Context, FactGraph, Relation, RelationKind, datasets, read_many
from factormodels.io.fact_graph_json import write_fact_graphs
from inference import infer
from tests.oracle import oracle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

GRAPH = next(
    graph
    for graph in datasets.load("worked-examples").graphs
    if graph.id == "factreasoner-example-1"
)
CHANGED = Exploration(
    GRAPH,
    encoding="conditional",
    strength=0.5,
    priors={GRAPH.atoms[0].id: 0.3},
    probabilities={(GRAPH.relations[0].source, GRAPH.relations[0].target): 0.6},
)


def test_changes_are_those_of_the_graph_that_is_asked() -> None:
    view = changed_graph(CHANGED)
    assert view.atoms[0].prior == 0.3
    # Half the log odds of 0.6: sqrt(1.5) to 1.
    assert view.relations[0].probability == pytest.approx(1.5**0.5 / (1 + 1.5**0.5), abs=1e-12)
    answer = explored(CHANGED)
    marginals = oracle(view.to_factor_graph("conditional")).marginals
    for name, p in answer.claims.items():
        # Sums of a few doubles in another order.
        assert p == pytest.approx(float(marginals[name][1]), abs=1e-12)


@pytest.mark.parametrize("encoding", ["implication", "conditional", "mixture"])
@pytest.mark.parametrize("kind", [RelationKind.EXCLUSIVE, RelationKind.CO_NECESSITY])
def test_relations_between_claims_are_changed_as_others(
    kind: RelationKind, encoding: str, tmp_path: Path
) -> None:
    first, second = GRAPH.atoms[0].id, "the other"
    whole = replace(
        GRAPH,
        atoms=(*GRAPH.atoms, Atom(second, "The other claim.", prior=0.4)),
        relations=(*GRAPH.relations, Relation(first, second, kind, 0.9)),
    )
    changes = {(first, second): 0.7}
    asked = Exploration(whole, encoding=encoding, probabilities=changes, observed={second: False})
    view = changed_graph(asked)
    assert view.relations[-1] == Relation(first, second, kind, 0.7)
    graph = view.to_factor_graph(encoding).with_evidence({second: 0})
    p = explored(asked).claims[first]
    assert p == pytest.approx(float(oracle(graph).marginals[first][1]), abs=1e-12)
    # One of the two holds: where the other does not, this one is likelier.
    assert p > explored(replace(asked, observed={})).claims[first]
    saved = save(asked, tmp_path / "out")
    assert read_many(saved[0])[0].relations[-1].kind is kind


def test_the_conventions_are_those_of_the_view_that_is_shown() -> None:
    given, other = (
        conventions_of(Exploration(GRAPH, variant=variant, encoding=encoding))
        for variant, encoding in (("given", "implication"), ("FR1", "conditional"))
    )
    assert "encoding implication" in given
    assert "encoding conditional" in other
    assert ("copied" in given, "copied" in other) == (False, True)


def test_a_passage_left_out_and_a_claim_observed() -> None:
    context = GRAPH.contexts[0].id
    without = explored(Exploration(GRAPH, left_out=frozenset({context})))
    assert context not in {context.id for context in without.view.contexts}
    assert moved(explored(Exploration(GRAPH)), without)[0][1] != 0
    atom = GRAPH.atoms[0].id
    seen = explored(Exploration(GRAPH, observed={atom: True}))
    assert seen.claims[atom] == 1.0


def test_saved_files_reproduce_the_view(tmp_path: Path) -> None:
    asked = replace(CHANGED, observed={GRAPH.atoms[0].id: False})
    paths = save(asked, tmp_path / "out")
    names = ["graph.json", "graph.pdf", "study.yaml", "observed.evid"]
    assert [path.name for path in paths] == names
    posterior = infer(read_many(paths[0])[0].to_factor_graph("conditional"), "exact")
    for name, p in explored(CHANGED).claims.items():
        assert float(posterior.marginals[name][1]) == pytest.approx(p, abs=1e-12)
    text = paths[2].read_text()
    assert "encodings: [conditional]" in text
    assert "--evidence observed.evid" in text


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """The address of a page that is served while the block runs."""
    pytest.importorskip("nicegui")
    command = [
        sys.executable,
        "-u",
        "-m",
        "factormodels",
        "explore",
        *arguments,
        "--no-browser",
    ]
    # NiceGUI takes itself to be under test where it sees pytest's variables.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stderr is not None
        try:
            url = process.stderr.readline().strip()
            _wait_for(urlsplit(url).port or 0)
            yield url
        finally:
            # Politely asked, it would wait for sockets that a failed test left open.
            process.kill()


def _wait_for(port: int) -> None:
    # The address is told a moment before its port is open.
    for _ in range(600):
        with suppress(ConnectionRefusedError):
            return create_connection(("127.0.0.1", port)).close()
        time.sleep(0.05)
    raise ConnectionRefusedError


SCRIPT = "(()=>{window.ran=(window.ran||0)+1})()"
HOSTILE = f'x" :title="{SCRIPT}" :class=\'{SCRIPT}\' :id={SCRIPT} y="<img src=x onerror={SCRIPT}>'


def at_odds() -> FactGraph:
    return datasets.load("at-odds").graphs[0]


def hostile_graph() -> FactGraph:
    texts = f"</text></svg><script>{SCRIPT}</script>{{{{{SCRIPT}}}}}{HOSTILE}"
    return FactGraph(
        HOSTILE,
        response=texts,
        atoms=(Atom(f"a {HOSTILE}", texts), Atom(":title", texts)),
        contexts=(Context(f"c {HOSTILE}", texts, title=texts), Context(":onclick", texts)),
        relations=(Relation(f"c {HOSTILE}", f"a {HOSTILE}", RelationKind.ENTAILMENT, 0.9),),
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a page that is served, and the folder that it saves in.

    Each page that is opened there has a state of its own, and begins with `GRAPH`.
    """
    folder = tmp_path_factory.mktemp("served")
    hostile = hostile_graph()
    graphs = [at_odds(), hostile, replace(hostile, id=f":{SCRIPT}"), GRAPH]
    write_fact_graphs(graphs, folder / "graphs.jsonl")
    chosen = ("--response", str(GRAPH.id), "--out", str(folder / "saved"))
    with served(str(folder / "graphs.jsonl"), *chosen) as url:
        yield url, folder / "saved"


def show(page: Page, url: str, graph: FactGraph) -> None:
    """Open the page, and choose a response."""
    from playwright.sync_api import expect

    page.goto(url, timeout=120_000)
    expect(page.get_by_test_id("status")).to_contain_text("log Z", timeout=120_000)
    page.locator(".q-select", has_text="Response").click()
    page.get_by_role("option", name=str(graph.id), exact=True).click()
    last = graph.atoms[-1].id
    expect(page.get_by_test_id("claims")).to_contain_text(last, timeout=120_000)


def log_z(asked: Exploration) -> str:
    return f"{explored(asked).posterior.log_z:.6f}"


@pytest.mark.browser
def test_the_page_answers_in_a_browser(browser: Browser, address: tuple[str, Path]) -> None:
    from playwright.sync_api import expect

    url, out = address
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{20,}", url)
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    refused = page.goto(url.rpartition("/")[0] + "/another-token")
    assert refused is not None
    assert refused.status == 404
    page.goto(url)
    status, moved = page.get_by_test_id("status"), page.get_by_test_id("moved")
    expect(status).to_contain_text("log Z", timeout=30_000)
    expect(moved).to_have_text("No claim has moved.")
    before = status.inner_text()
    context = GRAPH.contexts[0].id
    page.get_by_test_id(f"keep-{context}").click()
    expect(moved).to_contain_text(f"Moved: {GRAPH.atoms[0].id}", timeout=30_000)
    without = explored(Exploration(GRAPH, left_out=frozenset({context})))
    p = without.claims[GRAPH.atoms[0].id]
    expect(page.get_by_test_id("claims")).to_contain_text(f"{p:.4f}")
    assert status.inner_text() != before
    page.get_by_test_id(f"keep-{context}").click()
    expect(moved).to_have_text("No claim has moved.", timeout=30_000)
    # Each choice below answers as the function does of all that was changed so far.
    asked_for = Exploration(GRAPH)
    for name, value in (("encoding", "conditional"), ("variant", "FR2"), ("backend", "lbp")):
        page.get_by_test_id(name).click()
        page.get_by_role("option", name=value, exact=True).click()
        change: dict[str, Any] = {name: value}
        asked_for = replace(asked_for, **change)
        expect(status).to_contain_text(f"log Z {log_z(asked_for)}", timeout=30_000)
    expect(status).to_contain_text("lbp")
    atom = GRAPH.atoms[0].id
    page.get_by_test_id(f"observe-{atom}").click()
    page.get_by_role("option", name="false", exact=True).click()
    asked_for = replace(asked_for, observed={atom: False})
    expect(status).to_contain_text(f"log Z {log_z(asked_for)}", timeout=30_000)
    expect(page.get_by_test_id("claims")).to_contain_text("0.0000")
    drawn = page.get_by_test_id("drawing")
    pictured = drawn.get_attribute("src")
    assert pictured is not None
    assert pictured.startswith("data:image/svg+xml")
    # By the keyboard a slider moves one step.
    page.get_by_text("Relations: probability", exact=True).click()
    relation = GRAPH.relations[0]
    slider = page.get_by_test_id(f"relation-{relation.source}-{relation.target}")
    # It opens by and by; a key that comes before goes to nobody.
    expect(slider).to_be_visible(timeout=30_000)
    thumb = slider.locator("[tabindex]").first
    thumb.focus()
    expect(thumb).to_be_focused(timeout=30_000)
    thumb.press("ArrowLeft")
    pair = (relation.source, relation.target)
    asked_for = replace(asked_for, probabilities={pair: round(relation.probability - 0.01, 2)})
    expect(status).to_contain_text(f"log Z {log_z(asked_for)}", timeout=30_000)
    page.get_by_test_id("strength").locator("[tabindex]").first.press("ArrowRight")
    asked_for = replace(asked_for, strength=1.05)
    expect(status).to_contain_text(f"log Z {log_z(asked_for)}", timeout=30_000)
    page.get_by_test_id(f"prior-{atom}").click(position={"x": 20, "y": 10})
    expect(status).not_to_contain_text(f"log Z {log_z(asked_for)}", timeout=30_000)
    assert drawn.get_attribute("src") != pictured
    shown = status.inner_text()
    page.get_by_test_id("save").click()
    expect(page.get_by_text("Saved graph.json")).to_be_visible(timeout=30_000)
    # On a phone nothing is wider than the window.
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("document.documentElement.scrollWidth === 390")
    narrow = page.get_by_test_id("drawing-narrow")
    expect(narrow).to_be_visible()
    expect(drawn).to_be_hidden()
    # At its own size, at which letters have eleven pixels.
    assert narrow.evaluate("one => [one.naturalWidth, one.width]") == [350, 350]
    (saved,) = read_many(out / "graph.json")
    # Near the left end of the slider.
    assert saved.atoms[0].prior < 0.3
    assert (out / "graph.pdf").read_bytes().startswith(b"%PDF")
    # What was saved is read by the study beside it, and answers as the page did.
    study = load_study(out / "study.yaml").study
    assert (study.variants, study.encodings) == (("FR2",), ("conditional",))
    again = explored(
        Exploration(
            saved, variant="FR2", encoding="conditional", backend="lbp", observed={atom: False}
        )
    )
    assert f"log Z {again.posterior.log_z:.6f}" in shown
    assert all(each.startswith("http://127.0.0.1:") or each.startswith("data:") for each in asked)
    page.close()


@pytest.mark.browser
def test_relations_between_claims_are_named_in_words(
    browser: Browser, address: tuple[str, Path]
) -> None:
    from playwright.sync_api import expect

    graph = at_odds()
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    show(page, address[0], graph)
    page.get_by_text("Relations: probability", exact=True).click(timeout=120_000)
    for words in ("exactly one of a3 and a5 holds", "at least one of a8 and a9 holds"):
        expect(page.get_by_text(words, exact=True)).to_be_visible(timeout=120_000)
    # Where one of two claims of which exactly one holds is true, the other hardly is.
    page.get_by_test_id("observe-a5").click()
    page.get_by_role("option", name="true", exact=True).click()
    expect(page.get_by_test_id("moved")).to_contain_text("a3", timeout=120_000)
    seen = explored(Exploration(graph, observed={"a5": True}))
    assert seen.claims["a3"] < explored(Exploration(graph)).claims["a3"]
    expect(page.get_by_test_id("claims")).to_contain_text(f"{seen.claims['a3']:.4f}")
    # The page is sent what it shows before it is closed.
    page.close()


@pytest.mark.browser
def test_no_id_title_or_text_runs_on_the_page(browser: Browser, address: tuple[str, Path]) -> None:
    from playwright.sync_api import expect

    page = browser.new_page()
    show(page, address[0], hostile_graph())
    page.get_by_text("Relations: probability", exact=True).click()
    pair = f"relation-c {HOSTILE}-a {HOSTILE}"
    ids = [f"prior-a {HOSTILE}", "observe-:title", "keep-:onclick", f"keep-c {HOSTILE}", pair]
    for test_id in ids:
        # The attribute holds the text, all of it.
        expect(page.get_by_test_id(test_id)).to_be_attached(timeout=30_000)
    expect(page.get_by_test_id("claims")).to_contain_text(f"a {HOSTILE}")
    page.get_by_test_id(f"keep-c {HOSTILE}").click()
    expect(page.get_by_test_id("moved")).to_contain_text(f"Moved: a {HOSTILE}", timeout=30_000)
    page.get_by_test_id("save").click()
    expect(page.get_by_text("Saved graph.json")).to_be_visible(timeout=30_000)
    assert page.evaluate("window.ran") is None
    page.close()


@pytest.mark.browser
def test_a_page_of_another_site_gets_nothing(address: tuple[str, Path]) -> None:
    server = urlsplit(address[0])
    socket = "/_nicegui_ws/socket.io/?EIO=4&transport="
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }

    def status(path: str, **headers: str) -> int:
        connection = HTTPConnection(server.netloc, timeout=30)
        connection.request("GET", path, headers=headers)
        code = connection.getresponse().status
        connection.close()
        return code

    origin = f"http://{server.netloc}"
    assert status(f"{socket}websocket", Origin=origin, **upgrade) == 101
    assert status(server.path, Origin=origin) == 200
    for foreign in ("http://evil.example", "http://127.0.0.1:1", "null", f"{origin}.evil.example"):
        assert status(f"{socket}websocket", Origin=foreign, **upgrade) == 403
        assert status(f"{socket}polling", Origin=foreign) == 403
        assert status(server.path, Origin=foreign) == 403
    assert status(server.path, Host="evil.example") == 400


def test_a_page_is_kept_while_it_waits_for_a_long_answer(address: tuple[str, Path]) -> None:
    shaken = f"http://{urlsplit(address[0]).netloc}/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    with urlopen(shaken, timeout=60) as answer:
        content = json.loads(answer.read().removeprefix(b"0"))
    # In milliseconds: what does not answer for so long is taken to be gone, and begins anew.
    assert content["pingTimeout"] >= 60_000


@pytest.mark.browser
@pytest.mark.nightly
def test_a_large_graph_says_what_is_too_large(browser: Browser, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    # A grid of claims and passages: too wide to be solved exactly, and too many for sliders.
    relations = [
        Relation(f"c{i}", f"a{(i + shift) % 110}", RelationKind.ENTAILMENT, 0.7)
        for i in range(110)
        for shift in (0, 1, 17, 41, 73)
    ]
    graph = FactGraph(
        "large",
        atoms=tuple(Atom(f"a{i}") for i in range(110)),
        contexts=tuple(Context(f"c{i}") for i in range(110)),
        relations=tuple(relations),
    )
    write_fact_graphs([graph], tmp_path / "large.jsonl")
    with served(str(tmp_path / "large.jsonl"), "--out", str(tmp_path / "saved")) as url:
        page = browser.new_page()
        page.goto(url, timeout=120_000)
        status = page.get_by_test_id("status")
        expect(status).to_contain_text("backend auto", timeout=120_000)
        for noun, count in (("claims", "110"), ("passages", "110"), ("relations", "550")):
            message = page.get_by_text(f"Too many for this page: the first 100 of {count} {noun}.")
            expect(message).to_be_attached(timeout=120_000)
        page.get_by_test_id("backend").click(timeout=120_000)
        page.get_by_role("option", name="exact", exact=True).click(timeout=120_000)
        # What is too large, and what to use.
        expect(status).to_contain_text("induced width", timeout=120_000)
        expect(status).to_contain_text("use backend 'auto'", timeout=120_000)
