"""A page in a browser, with what it said to the console and asked of the network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_TABS: WeakKeyDictionary[Browser, Watched] = WeakKeyDictionary()
"""The tab of each browser. A new one takes as long as a page of some responses."""


@dataclass
class Watched:
    """A page, with what it said to the console and asked of the network."""

    page: Page
    console: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


def opened(
    browser: Browser, address: str, width: int = 1280, scheme: Literal["light", "dark"] = "light"
) -> Watched:
    """Open a page and watch it from its first request on; the page before it is gone."""
    watched = _TABS.get(browser)
    if watched is None:
        _TABS[browser] = watched = _watched(browser.new_page())
    page = watched.page
    # An address that differs in its end alone would not load the page again.
    page.goto("about:blank")
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(media="screen", color_scheme=scheme)
    watched.console.clear()
    watched.asked.clear()
    page.goto(address)
    return watched


def _watched(page: Page) -> Watched:
    watched = Watched(page)
    page.on("console", lambda message: watched.console.append(message.text))
    page.on("pageerror", lambda error: watched.console.append(str(error)))
    page.on("dialog", lambda dialog: watched.console.append(f"a dialog: {dialog.message}"))
    page.on("request", lambda request: watched.asked.append(request.url))
    return watched
