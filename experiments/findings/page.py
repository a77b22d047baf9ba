"""The page of a command's findings, in one file, and the parts of every page."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.findings.table import Table, blocks, is_right, noted_once
from factormodels.io.source.files import atomic_path

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from jinja2 import Environment
    from matplotlib.figure import Figure

    from experiments.findings.findings import Findings
    from experiments.findings.responses import ListedResponses

TEMPLATE = "findings.html"


def findings_page(findings: Findings) -> bytes:
    """A page that needs neither a server nor a network."""
    listed = None if findings.listed is None else findings.listed()
    replaced = () if listed is None else listed.replaces
    shown_tables = {name: table for name, table in findings.shown().items() if name not in replaced}
    shown = {
        "run": findings.origin.study,
        "sha256": findings.origin.sha256,
        "title": findings.source,
        "sentences": findings.sentences,
        "tables": [
            part
            for table in noted_once(shown_tables, findings.sentences).values()
            for part in table_parts(table)
        ],
        "texts": findings.texts,
        "figures": [
            (each.caption, inline_svg(each.figure, f"f{number}", each.title))
            for number, each in enumerate(findings.draw().values())
        ],
        "settings": [(name, _text(value)) for name, value in findings.differing.items()],
    }
    return page(environment(), TEMPLATE, findings.command, shown, listed)


def write_page(path: Path, content: bytes) -> None:
    """Write a page whole or not at all.

    Raises:
        InputError: if the file cannot be written.
    """
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def table_parts(table: Table) -> Iterator[dict[str, Any]]:
    """Yield a table block by block, as `tables.html` shows it.

    The heading of a block is its `title`, and ends its `caption`.
    """
    right = [is_right(column) for column in table.columns]
    shown = list(blocks(table))
    for number, (title, rows) in enumerate(shown, 1):
        yield {
            "title": title,
            "caption": ": ".join(filter(None, (table.caption.rstrip("."), title))),
            "note": table.notes if number == len(shown) else "",
            "columns": [
                (column.title, side) for column, side in zip(table.columns, right, strict=True)
            ],
            "rows": [[*zip(row, right, strict=True)] for row in rows],
        }


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "" if value is None else str(value)


def environment(more: Traversable | None = None) -> Environment:
    """The templates, in which every text is escaped.

    Args:
        more: a folder with templates that extend those of this package.
    """
    from jinja2 import Environment as Templates
    from jinja2 import FunctionLoader, StrictUndefined

    folder = resources.files("experiments.findings") / "templates"

    def source(name: str) -> str:
        file = folder / name
        if more is not None and not file.is_file():
            file = more / name
        return file.read_text(encoding="utf-8")

    templates = Templates(
        loader=FunctionLoader(source),
        autoescape=True,
        # A name that a template misspells is an error, not an empty place.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    scripts = {"script": source("report.js"), "list_script": source("responses.js")}
    # The policy below allows only these scripts, by their hashes.
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts.values())
    templates.globals |= {
        **scripts,
        "style": source("report.css"),
        # Whatever a claim's text contains, no other script runs, and nothing is fetched or sent.
        "policy": f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'",
    }
    return templates


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def page(
    templates: Environment,
    template: str,
    command: str,
    shown: Mapping[str, Any],
    listed: ListedResponses | None = None,
) -> bytes:
    """A page as UTF-8: a filled template.

    Args:
        templates: the templates.
        template: name of the template.
        command: the command that makes the page.
        shown: the findings.
        listed: the responses that it lists.
    """
    text = templates.get_template(template).render(command=command, listed=listed, **shown)
    # A lone surrogate in a claim is not a character, so a replacement is shown.
    return text.encode("utf-8", "replace")


def inline_svg(figure: Figure, prefix: str, title: str) -> str:
    """A figure as an SVG element whose black is the color of the text around it.

    Args:
        figure: the figure.
        prefix: prefix of its ids, which differs between the figures of a page.
        title: description for readers who cannot see it.
    """
    from html import escape

    from matplotlib.text import Text

    from calibration.figures.style import laid_out, paper_style

    for label in figure.findobj(Text):
        # A page uses sans-serif letters, a paper serif ones.
        label.set(fontfamily="DejaVu Sans")
    buffer = io.StringIO()
    with paper_style(), laid_out(figure):
        figure.savefig(buffer, format="svg", transparent=True, metadata=_NOTHING)
    text = buffer.getvalue()
    text = text[text.index("<svg ") :]
    # Remove matplotlib's metadata and style sheet: a style within an inline SVG applies to the
    # whole page.
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"\s*<style .*?</style>", "", text, flags=re.DOTALL)
    # Ids must be unique within a page, and those of several figures would clash.
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = re.sub(r"url\(#", f"url(#{prefix}-", text)
    text = re.sub(r'href="#', f'href="#{prefix}-', text)
    # Text and lines take the page's colors, light or dark.
    text = re.sub(r"(fill|stroke): ?(#000000|black)", r"\1: currentColor", text)
    text = re.sub(r"(fill|stroke): ?#ffffff", r"\1: var(--surface)", text)
    # The smallest letters, of 7 points, take at least 11 pixels: narrow windows scroll.
    least = round(figure.get_figwidth() * 72 * 11 / 7)
    head = (
        f'<svg class="plot" style="min-width: {least}px" role="img" aria-label="{escape(title)}" '
    )
    return head + text.removeprefix("<svg ")


_NOTHING = dict.fromkeys(("Date", "Creator", "Format", "Type"))
