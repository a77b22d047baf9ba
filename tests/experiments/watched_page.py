"""A page in a browser, with what it said to the console and asked of the network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@dataclass
class Watched:
    """A page, with what it said to the console and asked of the network."""

    page: Page
    console: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


def opened(
    browser: Browser, address: str, width: int = 1280, scheme: Literal["light", "dark"] = "light"
) -> Watched:
    """Open a page and watch it from its first request on."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    watched = Watched(page)
    page.on("console", lambda message: watched.console.append(message.text))
    page.on("pageerror", lambda error: watched.console.append(str(error)))
    page.on("dialog", lambda dialog: watched.console.append(f"a dialog: {dialog.message}"))
    page.on("request", lambda request: watched.asked.append(request.url))
    page.goto(address)
    return watched
