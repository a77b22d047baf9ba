"""The page of responses in a browser: ranked, opened, searched, followed, printed, looked at."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from experiments.evaluators.display.assessed_page import listed_responses
from experiments.evaluators.response import AssessmentView, assess_graph
from experiments.findings.findings import Findings
from factormodels import Atom, Context, FactGraph, Relation, RelationKind, datasets
from inference import get_backend
from tests.experiments.watched_page import Watched, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

HOSTILE = '</script><script>alert(1)</script>\u202e"><img src=x onerror=alert(1)> {{ 7 * 7 }}'
ARABIC = "ولدت ماري كوري في وارسو. حصلت على جائزة نوبل مرتين."

SUMMARIES = "#listed > li > details > summary"


def strange() -> FactGraph:
    """A response with texts that would act on a page, one of them written from the right."""
    return FactGraph(
        "hostile",
        (Atom("a<1>", HOSTILE), Atom("a2", ARABIC)),
        (Context("c|1", HOSTILE, title=HOSTILE), Context("c2", ARABIC)),
        (
            Relation("c|1", "a<1>", RelationKind.CONTRADICTION, 0.99),
            Relation("c2", "a2", RelationKind.ENTAILMENT, 0.6),
        ),
        query=HOSTILE,
        response=f"{HOSTILE}\n\n{ARABIC}",
        metadata={"queries": {"failures": [["a2", HOSTILE]]}},
    )


@pytest.fixture(scope="module")
def graphs() -> list[FactGraph]:
    """Assessed responses, the hostile one last."""
    view = AssessmentView("FR2", "implication", get_backend("exact"))
    given = [*datasets.load("demonstration").graphs[:5], strange()]
    return [
        replace(graph, metadata={**graph.metadata, "assessment": assess_graph(graph, [view])})
        for graph in given
    ]


@pytest.fixture(scope="module")
def path(graphs: list[FactGraph], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of all of them."""
    findings = Findings("answers", listed=lambda: listed_responses(graphs), command="assess")
    return findings.report(tmp_path_factory.mktemp("listed") / "page.html")


@pytest.fixture
def watched(browser: Browser, path: Path) -> Iterator[Watched]:
    """The page, checked at the end for console messages and further requests."""
    opened_page = opened(browser, path.as_uri())
    yield opened_page
    assert opened_page.console == []
    assert opened_page.asked == [path.as_uri()]


def doubts(graphs: list[FactGraph]) -> dict[str, float]:
    """The expected share of false claims by response."""
    doubt_of = {}
    for graph in graphs:
        p = [facts["p"] for facts in graph.metadata["assessment"]["FR2"]["atoms"].values()]
        doubt_of[graph.id] = 1 - sum(p) / len(p)
    return doubt_of


def test_responses_are_ranked_by_doubt_and_opened_by_the_keyboard(
    watched: Watched, graphs: list[FactGraph]
) -> None:
    page = watched.page
    doubt_of = doubts(graphs)
    ranked = sorted(doubt_of, key=lambda name: -doubt_of[name])
    assert page.locator(".one-id").all_text_contents() == ranked
    shown = [float(text) for text in page.locator(f"{SUMMARIES} > .p-bar b").all_inner_texts()]
    assert shown == pytest.approx([doubt_of[name] for name in ranked], abs=5.001e-4)
    # What is within is made when it is opened.
    assert page.locator("article").count() == 0
    page.locator(SUMMARIES).nth(1).focus()
    page.keyboard.press("Enter")
    graph = next(graph for graph in graphs if graph.id == ranked[1])
    body = page.locator("#listed > li").nth(1)
    body.locator("article").first.wait_for()
    assert body.locator("article").count() == len(graph.atoms)
    for card, atom in zip(body.locator("article").all(), graph.atoms, strict=True):
        p = graph.metadata["assessment"]["FR2"]["atoms"][atom.id]["p"]
        assert atom.text in card.locator("h4").inner_text()
        assert f"P(true) {p:.3f}" in card.inner_text()
    body.get_by_role("button", name="Next response").click()
    page.locator("#listed > li").nth(2).locator("article").first.wait_for()
    assert page.locator("#listed > li > details[open]").count() == 1
    assert page.locator("#listed > li").nth(2).locator("article").count() > 0


def test_a_claim_shows_what_decides_and_its_posterior_without_it(
    watched: Watched, graphs: list[FactGraph]
) -> None:
    page = watched.page
    page.locator(SUMMARIES, has_text="hostile").click()
    facts = graphs[-1].metadata["assessment"]["FR2"]["atoms"]["a2"]
    card = page.locator("article").nth(1)
    decides = card.locator(".decides").inner_text()
    assert decides.startswith("for ")
    assert ARABIC.split(". ")[0] in decides
    (item,) = facts["evidence"]
    assert f"without it {facts['p'] - item['change']:.3f}" in " ".join(decides.split())
    assert card.locator("q").get_attribute("dir") == "auto"
    # The evidence is folded.
    assert card.locator("li").count() == 0
    card.get_by_text("Evidence: 1 passage").click()
    assert "entailment 0.60" in " ".join(card.locator("li").inner_text().split())


def test_estimates_are_said_to_be_estimates(
    browser: Browser, graphs: list[FactGraph], tmp_path: Path
) -> None:
    """Estimates that `assess` writes for a graph too wide for tables, also with too few draws."""
    facts = copy.deepcopy(graphs[-1].metadata["assessment"])
    first, second = (facts["FR2"]["atoms"][name]["evidence"][0] for name in ("a<1>", "a2"))
    first["change_error"] = 0.0123
    second["change"] = None
    graph = replace(graphs[-1], metadata={"assessment": facts})
    findings = Findings("one", listed=lambda: listed_responses([graph]), command="assess")
    watched = opened(browser, findings.report(tmp_path / "page.html").as_uri())
    texts = [
        " ".join(text.split())
        for text in watched.page.locator(".decides .without").all_inner_texts()
    ]
    assert texts[0].endswith("± 0.012, estimated")
    assert texts[1] == "without it not known"
    assert "too wide to be solved exactly" in watched.page.locator(".claims").inner_text()


def test_texts_do_not_act(watched: Watched) -> None:
    page = watched.page
    page.locator(SUMMARIES, has_text="hostile").click()
    page.locator("article").first.wait_for()
    for folded in page.locator("#listed .body details > summary").all():
        if folded.is_visible():
            folded.click()
    assert page.locator("#listed img, #listed script").count() == 0
    assert page.locator("p.response").inner_text().startswith("</script><script>alert(1)")
    assert page.locator("#listed h4").first.inner_text().endswith("{{ 7 * 7 }}")
    # Its claim is contradicted, and so is the sentence that makes it.
    assert page.locator("mark.contradicted", has_text="alert").count() == 1
    assert page.locator("p.response").get_attribute("dir") == "auto"


def test_words_and_verdicts_choose_responses_and_claims(watched: Watched) -> None:
    page = watched.page
    assert page.locator("#listed-count").inner_text() == "6 responses"
    page.get_by_label("Find").fill("CURIE warsaw")
    assert page.locator("#listed-count").inner_text() == "1 of 6 responses"
    page.locator(SUMMARIES).click()
    page.locator("article").first.wait_for()
    texts = page.locator("article h4").all_inner_texts()
    assert texts
    assert all("Warsaw" in text for text in texts)
    page.get_by_label("Find").fill("")
    shown = page.locator("label", has_text=re.compile("^Claims ")).locator("select")
    shown.select_option("contradicted")
    for verdicts in page.locator("article .verdict").all_inner_texts():
        assert verdicts == "contradicted"
    shown.select_option("all")
    page.get_by_label("in order of").select_option("doubt")
    bars = page.locator("#listed > li:has(details[open]) article .p-bar b").all_inner_texts()
    assert len(bars) > 2
    assert bars == sorted(bars)
    order = page.locator("label", has_text=re.compile("^Order ")).locator("select")
    order.select_option("place in the file")
    assert page.locator(".one-id").all_text_contents()[-1] == "hostile"


def test_missing_answers_link_to_their_response(watched: Watched) -> None:
    page = watched.page
    page.locator("#failures").get_by_role("link", name="hostile").click()
    box = page.locator("#listed > li > details[open]")
    box.wait_for()
    assert box.locator(".one-id").inner_text() == "hostile"
    assert "1 answer missing" in box.locator(".banner").inner_text()
    # A mark leads to its claim.
    page.locator("p.response sup a").first.click()
    assert re.search(r"#r-5-c0$", page.url)


def test_an_address_opens_a_claim_of_a_long_list(browser: Browser, tmp_path: Path) -> None:
    view = AssessmentView("FR2", "implication", get_backend("exact"))
    graph = FactGraph("r", (Atom("a1", "A claim."),))
    facts = {"assessment": assess_graph(graph, [view])}
    many = [replace(graph, id=f"r{n}", metadata=facts) for n in range(350)]
    findings = Findings("answers", listed=lambda: listed_responses(many), command="assess")
    path = findings.report(tmp_path / "page.html")
    watched = opened(browser, f"{path.as_uri()}#r-340-c0")
    page = watched.page
    assert page.locator("#listed > li > details[open] .one-id").inner_text() == "r340"
    assert page.evaluate("document.activeElement.id") == "r-340-c0"
    # Without an address the list grows by a button, so that what is below it stays in reach.
    page.goto("about:blank")
    page.goto(path.as_uri())
    assert page.locator(SUMMARIES).count() == 100
    page.keyboard.press("End")
    assert page.locator("#settings").is_visible()
    assert page.locator(SUMMARIES).count() == 100
    button = page.locator("#listed .more button")
    for shown, left in ((200, "Show 100 more of 150"), (300, "Show 50 more of 50")):
        button.click()
        assert page.locator(SUMMARIES).count() == shown
        assert button.inner_text() == left
    button.click()
    assert page.locator(SUMMARIES).count() == 350
    assert not button.is_visible()
    assert watched.console == []


def test_paper_has_what_is_folded(watched: Watched) -> None:
    page = watched.page
    page.locator(SUMMARIES).first.click()
    page.locator("article").first.wait_for()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("article li").count() > 0
    assert page.locator("article details:not([open])").count() == 0
    assert not page.get_by_label("Find").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("article details[open]").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_and_can_be_read(
    browser: Browser, path: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    watched = opened(browser, path.as_uri(), width, scheme)
    page = watched.page
    page.locator(SUMMARIES, has_text="hostile").click()
    page.locator("article").first.wait_for()
    for folded in page.locator("details.part > summary").all():
        folded.click()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    smallest = page.evaluate(
        """Math.min(...Array.from(document.querySelectorAll("body *"))
        .filter((one) => one.getClientRects().length && one.textContent.trim())
        .map((one) => parseFloat(getComputedStyle(one).fontSize)))"""
    )
    assert smallest >= 11
    assert watched.console == []


def test_without_scripts_claims_and_probabilities_are_listed(
    browser: Browser, path: Path, graphs: list[FactGraph]
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    plain = page.locator("noscript")
    assert "This browser runs no scripts" in plain.inner_text()
    # The most doubtful response first, with a number for each of its claims.
    doubt = doubts(graphs)
    first = max(doubt, key=lambda name: doubt[name])
    assert plain.locator("h3").first.inner_text() == first
    claims = next(graph.atoms for graph in graphs if graph.id == first)
    items = plain.locator("ol").first.locator("li").all_inner_texts()
    assert len(items) == len(claims)
    for item, claim in zip(items, claims, strict=True):
        assert item.startswith(("0.", "1."))
        assert item.endswith(claim.text.strip())
    assert page.locator("#failures td").count() > 0
    context.close()


def test_means_are_those_of_the_assessment(browser: Browser, tmp_path: Path) -> None:
    graph = datasets.load("demonstration").graphs[0]
    half = graph.atom_ids[: len(graph.atoms) // 2]
    verdicts = {atom: {"label": "S", "p": 0.9} for atom in half}
    facts = {"model": "m", "verdicts": verdicts, "missing": []}
    graph = replace(graph, metadata={**graph.metadata, "assessors": {"veriscore": facts}})
    view = AssessmentView("FR2", "implication", get_backend("exact"))
    means = assess_graph(graph, [view])
    assessed = replace(graph, metadata={**graph.metadata, "assessment": means})
    path = Findings("one", listed=lambda: listed_responses([assessed])).report(tmp_path / "p.html")
    watched = opened(browser, path.as_uri())
    watched.page.get_by_text("Answers", exact=True).click()
    row = watched.page.locator("tbody tr", has=watched.page.locator("th bdi, th", has_text="FR2"))
    precision, mean_p = (float(cell) for cell in row.locator("td").all_inner_texts()[:2])
    measures = means["FR2"]["measures"]
    p = [means["FR2"]["atoms"][atom]["p"] for atom in half]
    assert measures["n_atoms"] == len(half) < len(graph.atoms)
    assert precision == pytest.approx(measures["precision"], abs=5.001e-4)
    assert mean_p == pytest.approx(sum(p) / len(p), abs=5.001e-4)
    sentence = f"over the {len(half)} claims of {len(graph.atoms)} that all answers judged"
    assert sentence in watched.page.locator("body").inner_text()
    assert watched.console == []


@pytest.mark.parametrize("count", [150, pytest.param(500, marks=pytest.mark.nightly)])
def test_a_page_of_many_responses_builds_what_is_opened(
    browser: Browser, graphs: list[FactGraph], path: Path, tmp_path: Path, count: int
) -> None:
    many = [replace(graphs[at % 5], id=f"r{at}") for at in range(count)]
    findings = Findings("answers", listed=lambda: listed_responses(many), command="assess")
    large = findings.report(tmp_path / "many.html")
    # A response takes no more room than in a page of few.
    assert large.stat().st_size < count * path.stat().st_size / len(graphs)
    opened_page = opened(browser, large.as_uri())
    page = opened_page.page

    def nodes() -> int:
        return int(page.evaluate("document.querySelectorAll('*').length"))

    # The first hundred have a line each, and nothing of what is within.
    assert page.locator(".one-id").count() == 100
    assert page.locator("article").count() == 0
    at_first = nodes()
    assert at_first < 100 * 16 + 500
    page.locator(SUMMARIES).nth(50).click()
    page.locator("article").first.wait_for()
    assert nodes() - at_first < 1_000
    assert opened_page.console == []


def test_a_relation_below_one_half_moves_no_claim_and_is_not_denied(
    browser: Browser, tmp_path: Path
) -> None:
    graph = FactGraph(
        "weak",
        (Atom("a1", "It rained."), Atom("a2", "It snowed.")),
        (Context("c1", "It may have rained."),),
        (Relation("c1", "a1", RelationKind.ENTAILMENT, 0.4),),
        response="It rained. It snowed.",
    )
    view = AssessmentView("FR2", "implication", get_backend("exact"))
    weak = replace(graph, metadata={"assessment": assess_graph(graph, [view])})
    findings = Findings("answers", listed=lambda: listed_responses([weak]), command="assess")
    page = opened(browser, findings.report(tmp_path / "weak.html").as_uri()).page
    weak_claim, bare_claim = page.locator("article").all_inner_texts()
    assert "It may have rained." in weak_claim
    assert "without it 0.500" in weak_claim
    assert "No passage moves this claim: none has a relation of at least one half" in bare_claim
