"""The page of what a method found: its sentences, tables and figures, in one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.paper.artefacts import Artefacts, Origin
from experiments.paper.latex_table import PaperCell, PaperTable, blocks, is_right
from experiments.report.pages import environment, page
from experiments.report.plots import inline_svg
from factormodels.io.files import atomic_path

TEMPLATE = "findings.html"


def write_findings_page(
    path: Path, title: str, found: Artefacts, settings: Mapping[str, Any], origin: Origin
) -> None:
    """Write a page that needs neither a server nor a network, whole or not at all.

    Args:
        path: the file.
        title: what it is of.
        found: the tables and figures; its remarks are the findings in words.
        settings: what was asked, by name.
        origin: the command and the hash of what it was asked.

    Raises:
        InputError: if the file cannot be written.
    """
    shown = {
        "run": origin.study,
        "sha256": origin.sha256,
        "title": title,
        "sentences": found.remarks,
        "tables": [part for table in found.tables.values() for part in _parts(table)],
        "figures": [
            (each.title, inline_svg(each.figure, f"f{number}", each.title))
            for number, each in enumerate(found.figures.values())
        ],
        "settings": [(name, _text(value)) for name, value in settings.items()],
    }
    with atomic_path(path) as temporary:
        temporary.write_bytes(page(environment(), TEMPLATE, shown))


def _parts(table: PaperTable) -> Iterator[dict[str, Any]]:
    """Yield a table block by block, the heading of a block in its caption."""
    right = [is_right(column) for column in table.columns]
    for title, rows in blocks(table):
        caption = ": ".join(filter(None, (table.caption.rstrip("."), title)))
        yield {
            "caption": caption,
            "note": table.note,
            "columns": [
                (column.title, side) for column, side in zip(table.columns, right, strict=True)
            ],
            "rows": [_cells(row, right) for row in rows],
        }


def _cells(row: Sequence[PaperCell], right: Sequence[bool]) -> list[tuple[PaperCell, bool]]:
    # The stars of a table in print, where a page has room for a space.
    return [
        (replace(cell, stars=f" {cell.stars}" if cell.stars else ""), side)
        for cell, side in zip(row, right, strict=True)
    ]


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
