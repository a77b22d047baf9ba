"""The report in a browser: opened from the disk, sorted, filtered, followed, and looked at."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from tests.experiments.pages.reported import HOSTILE, run_study, write_data

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report."""
    folder = tmp_path_factory.mktemp("browsed")
    write_data(folder)
    return run_study(folder) / "report"


@dataclass
class Watched:
    """A page, with what it said to the console and asked of the network."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


def opened(
    browser: Browser,
    path: Path,
    width: int = 1200,
    scheme: Literal["light", "dark"] = "light",
) -> Watched:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    watched = Watched(page)
    page.on("console", lambda message: watched.said.append(message.text))
    page.on("pageerror", lambda error: watched.said.append(str(error)))
    page.on("dialog", lambda dialog: watched.said.append(f"a dialog: {dialog.message}"))
    page.on("request", lambda request: watched.asked.append(request.url))
    page.goto(path.as_uri())
    return watched


def texts(page: Page, selector: str) -> list[str]:
    """Return the texts of what a selector finds and is visible."""
    found = page.locator(selector).all()
    return [one.inner_text().strip() for one in found if one.is_visible()]


def n_visible(page: Page, selector: str) -> int:
    return sum(one.is_visible() for one in page.locator(selector).all())


def picture(page: Page, *, full: bool = False) -> np.ndarray:
    """Return a screenshot as numbers (height, width, colours)."""
    from matplotlib.image import imread

    return np.asarray(imread(io.BytesIO(page.screenshot(full_page=full)), format="png"))


def test_the_first_page_sorts_filters_and_leads_on(browser: Browser, report: Path) -> None:
    watched = opened(browser, report / "index.html")
    page = watched.page
    names = "#responses-1 tbody th"
    in_order = texts(page, names)
    assert in_order == ["labelled", HOSTILE, "without atoms", "without labels"]

    head = page.locator("#responses-1 thead th", has_text="atoms")
    head.get_by_role("button").click()
    assert texts(page, "#responses-1 tbody td:nth-child(3)") == ["0", "1", "2", "3"]
    assert head.get_attribute("aria-sort") == "ascending"
    # The keyboard does what the pointer does.
    page.keyboard.press("Enter")
    assert texts(page, names) == ["labelled", "without labels", HOSTILE, "without atoms"]
    assert head.get_attribute("aria-sort") == "descending"
    # What is undefined comes last, whichever way.
    brier = page.locator("#responses-1 thead th", has_text="Brier").get_by_role("button")
    for _ in range(2):
        brier.click()
        values = texts(page, "#responses-1 tbody td:nth-child(7)")
        assert values[2:] == ["–", "–"]
        assert "–" not in values[:2]

    page.get_by_label("Filter").fill("RIVERS lab")
    assert texts(page, names) == ["labelled"]
    assert texts(page, "output") == ["1 of 4 shown"]
    page.get_by_label("Filter").fill("")
    assert len(texts(page, names)) == 4

    cells = page.get_by_label("Pr and Brier under")
    before = texts(page, "#responses-1 tbody td:nth-child(6)")
    cells.select_option("FR3 · implication · $odd_{name$")
    after = texts(page, "#responses-1 tbody td:nth-child(6)")
    # Enumeration failed on the two responses with more variables.
    assert before.count("–") == 1
    assert after.count("–") == 3

    page.get_by_role("link", name="labelled", exact=True).first.click()
    assert page.title() == "labelled · odd"
    page.get_by_role("link", name="next").click()
    assert page.locator("h1").inner_text() == HOSTILE
    page.get_by_role("link", name="← odd").click()
    assert page.title() == "odd · report"
    assert watched.said == []
    assert all(url.startswith("file://") for url in watched.asked)
    page.close()


def test_the_page_of_a_response_switches_views_and_filters_claims(
    browser: Browser, report: Path
) -> None:
    watched = opened(browser, report / "response-0001.html")
    page = watched.page
    changes = "#cards td.change"
    before = texts(page, changes)
    assert n_visible(page, "svg.graph") == 1
    page.get_by_label("View").select_option("FR3 · implication")
    after = texts(page, changes)
    assert len(before) == len(after) == 4
    assert before != after
    assert n_visible(page, "svg.graph") == 1

    page.get_by_label("Show").select_option("labelled false")
    assert texts(page, "#atoms tbody th") == ["a2"]
    assert n_visible(page, "article") == 1
    page.get_by_label("Show").select_option("all claims")
    page.get_by_label("Filter").first.fill("cold")
    assert texts(page, "#atoms tbody th") == ["a3"]
    page.get_by_label("Filter").first.fill("")

    page.locator("#atoms").get_by_role("link", name="a2").click()
    card = page.locator("#atom-2")
    assert card.is_visible()
    # The bar above sticks to the top of the window and hides no heading.
    bar = page.locator(".sticky").bounding_box()
    heading = card.locator("h3").bounding_box()
    assert bar is not None
    assert heading is not None
    assert heading["y"] >= bar["y"] + bar["height"]
    assert watched.said == []
    page.close()


def test_what_names_a_row_stays_in_view_and_columns_are_chosen(
    browser: Browser, report: Path
) -> None:
    watched = opened(browser, report / "index.html", 660)
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
    assert watched.said == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_pages_can_be_looked_at(
    browser: Browser, report: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    for name in ("index.html", "response-0002.html"):
        watched = opened(browser, report / name, width, scheme)
        page = watched.page
        # Wide tables scroll within themselves: the page is as wide as the window.
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
        seen = picture(page, full=True)
        assert seen.shape[0] == page.evaluate("document.documentElement.scrollHeight")
        assert seen.shape[1] == width
        grey = seen[..., :3].mean(axis=2)
        background = np.median(grey)
        assert background > 0.9 if scheme == "light" else background < 0.2
        # Something is written, and most of the page is background.
        written = np.abs(grey - background) > 0.25
        assert 0.01 < written.mean() < 0.4, name
        assert watched.said == []
        page.close()


def test_without_scripts_every_number_of_the_first_view_is_there(
    browser: Browser, report: Path
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((report / "response-0001.html").as_uri())
    assert page.locator("#atoms tbody td.p").first.inner_text().startswith("0.")
    assert page.locator("#atoms thead button").count() == 0
    context.close()
