"""The page of a study in a browser: sorted, switched between cells, followed, and looked at."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from tests.experiments.pages.reported import HOSTILE, run_study, write_data
from tests.experiments.watched_page import opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a study."""
    folder = tmp_path_factory.mktemp("browsed")
    write_data(folder)
    return run_study(folder) / "report.html"


def picture(page: Page, *, full: bool = False) -> np.ndarray:
    """Return a screenshot as numbers (height, width, colors)."""
    from matplotlib.image import imread

    return np.asarray(imread(io.BytesIO(page.screenshot(full_page=full)), format="png"))


def test_tables_sort_by_the_pointer_and_the_keyboard(browser: Browser, report: Path) -> None:
    watched = opened(browser, report.as_uri())
    page = watched.page
    table = page.locator("#summary table").first
    head = table.locator("thead th", has_text="Brier")
    column = head.evaluate("one => one.cellIndex + 1")

    def values() -> list[str]:
        cells = table.locator(f"tbody td:nth-child({column})").all()
        return [cell.inner_text().split()[0] for cell in cells]

    before = values()
    head.get_by_role("button").click()
    known = sorted(value for value in before if value != "--")
    # What is undefined comes last, whichever way.
    assert values() == [*known, "--"]
    assert head.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert values() == [*known[::-1], "--"]
    assert head.get_attribute("aria-sort") == "descending"
    assert watched.console == []
    assert watched.asked == [report.as_uri()]


def test_responses_are_looked_at_by_every_cell(browser: Browser, report: Path) -> None:
    watched = opened(browser, report.as_uri())
    page = watched.page
    page.locator("#listed summary", has_text="labeled").first.click()
    box = page.locator("#listed > li", has=page.locator("details[open]"))
    texts = [" ".join(text.split()) for text in box.locator(".card .line").all_inner_texts()]
    cells = page.get_by_label("Judged by")
    cells.select_option("FR3 · implication · strength 0.5 · exact")
    after = [" ".join(text.split()) for text in box.locator(".card .line").all_inner_texts()]
    assert len(texts) == len(after) == 3
    assert texts != after
    # Enumeration failed on this response.
    cells.select_option("FR3 · implication · $odd_{name$")
    assert box.locator(".verdict").all_inner_texts() == ["unknown"] * 3
    assert "assignments" in box.locator(".banner").first.inner_text()
    cells.select_option("FR1 · implication · exact")
    shown = page.locator("label", has_text=re.compile("^Claims ")).locator("select")
    shown.select_option("labeled false")
    assert box.locator("article .id").all_inner_texts() == ["a2"]
    shown.select_option("all")
    box.get_by_text("Graph", exact=True).click()
    # The page draws a graph when its block has been opened, which the browser reports later.
    box.locator("svg.graph").wait_for()
    assert box.locator("svg.graph").count() == 1
    # Three claims, two passages of which one is copied and one alone, as FR1 has them.
    assert box.locator("svg.graph path.edge").count() == 4
    page.locator("#failures").get_by_role("link", name=HOSTILE).first.click()
    assert page.locator("#r-1 details[open] h4").first.inner_text().endswith(HOSTILE)
    assert watched.console == []


def test_row_names_stay_in_view_and_columns_can_be_chosen(browser: Browser, report: Path) -> None:
    watched = opened(browser, report.as_uri(), 660)
    page = watched.page
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    region = page.locator(".scroll:has(th.name + th.name)").first
    assert region.evaluate("one => one.scrollWidth > one.clientWidth + 60")
    region.evaluate("one => { one.scrollLeft = 60 }")
    page.wait_for_function("document.querySelector('th.name + th.name').style.left !== '0px'")
    left = region.bounding_box()
    assert left is not None
    edge = left["x"]
    for cell in region.locator("tbody tr").first.locator(".name").all():
        box = cell.bounding_box()
        assert box is not None
        # Each beside the one before it, to a pixel, and not below it.
        assert box["x"] >= edge - 1
        edge = box["x"] + box["width"]
    head = region.locator("th.num").first
    choice = region.locator("xpath=preceding-sibling::details[1]")
    choice.get_by_role("checkbox").first.uncheck()
    assert not head.is_visible()
    assert watched.console == []


def test_ids_stand_in_place_of_absent_texts_and_the_page_says_so(
    browser: Browser, folder: Path
) -> None:
    datasets = "datasets: [{name: factcheck-bench, limit: 1}]"
    out = run_study(folder, f"study: s\n{datasets}\nvariants: [FR1]\noutputs: [report]\n")
    watched = opened(browser, (out / "report.html").as_uri(), 390)
    page = watched.page
    assert "no texts of claims and passages; ids stand in their place" in page.inner_text("body")
    assert page.locator("article h4").first.inner_text() == "a1"
    page.get_by_text("Graph", exact=True).click()
    drawn = page.locator("svg.graph")
    drawn.wait_for()
    assert str(drawn.locator("text").first.text_content())[-1].isdigit()
    # The names leave no empty space on their left.
    assert float(drawn.locator("circle").first.get_attribute("cx") or "inf") < 60
    # A plot of one column fits a phone, with letters of 11 pixels.
    for plot in page.locator("figure:not(.wide)").all():
        assert plot.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert watched.console == []


def test_a_phone_shows_settings_and_all_else_that_is_folded_within_its_width(
    browser: Browser, report: Path
) -> None:
    watched = opened(browser, report.as_uri(), 390, "light")
    watched.page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
    value = watched.page.locator(".facts pre").first
    value.evaluate("(one) => one.textContent = 'a description '.repeat(20)")
    assert value.is_visible()
    assert watched.page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (390, "dark"),
        (1200, "light"),
        pytest.param(390, "light", marks=pytest.mark.nightly),
        pytest.param(1200, "dark", marks=pytest.mark.nightly),
    ],
)
def test_pages_can_be_looked_at(
    browser: Browser, report: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    watched = opened(browser, report.as_uri(), width, scheme)
    page = watched.page
    page.locator("#listed summary", has_text="alert").first.click()
    for folded in page.locator("#listed article details > summary").all():
        folded.click()
    wide = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth).length"
    assert page.locator("#listed article").evaluate_all(wide) == 0
    # Wide tables scroll within themselves: the page is as wide as the window.
    assert page.evaluate("document.documentElement.scrollWidth") == width
    # The smallest letters of figures have 7 points; a figure that is too wide scrolls too.
    scales = page.evaluate(
        """Array.from(document.querySelectorAll("svg.plot"))
        .map((one) => one.getBoundingClientRect().width / one.viewBox.baseVal.width)"""
    )
    assert len(scales) == 3
    assert min(scales) * 7 >= 10.95
    seen = picture(page, full=True)
    assert seen.shape[0] == page.evaluate("document.documentElement.scrollHeight")
    assert seen.shape[1] == width
    grey = seen[..., :3].mean(axis=2)
    background = np.median(grey)
    assert background > 0.9 if scheme == "light" else background < 0.2
    # Something is written, and most of the page is background.
    written = np.abs(grey - background) > 0.25
    assert 0.01 < written.mean() < 0.4
    assert watched.console == []


def test_without_scripts_the_tables_of_the_study_are_there(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("#summary tbody td.num").first.inner_text().startswith("0.")
    assert page.locator("#summary thead button").count() == 0
    context.close()
