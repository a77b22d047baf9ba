"""Boxes of the texts on the pages of a PDF that pdfTeX wrote, and which of them overlap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pypdf import PdfReader
from pypdf.generic import ContentStream


class Box(NamedTuple):
    """Room of a text on a page, in points from the lower left corner."""

    left: float
    bottom: float
    right: float
    top: float
    text: str


def text_faults(path: Path) -> list[str]:
    """Return what of the texts of a PDF overlaps or lies outside its page."""
    found = []
    for number, page in enumerate(PdfReader(path).pages, start=1):
        boxes = sorted(_boxes(page))
        width, height = float(page.mediabox.width), float(page.mediabox.height)
        found += [
            f"page {number}: {box.text!r} is outside the page"
            for box in boxes
            if box.left < 0 or box.bottom < 0 or box.right > width or box.top > height
        ]
        found += [
            f"page {number}: {one.text!r} is over {other.text!r}" for one, other in _pairs(boxes)
        ]
    return found


def _pairs(boxes: list[Box]) -> Iterator[tuple[Box, Box]]:
    """Yield pairs of boxes that overlap, of boxes in the order of their left ends."""
    for at, one in enumerate(boxes):
        for other in boxes[at + 1 :]:
            if other.left > one.right - _SLACK:
                break
            if min(one.top, other.top) - max(one.bottom, other.bottom) > _SLACK:
                yield one, other


_SLACK = 0.5
"""Points by which boxes may overlap: kerns, and rounded positions."""

_DEPTH, _HEIGHT = 0.15, 0.65
"""Extent of letters and digits below and above the line, in sizes of the letters."""


def _boxes(page: Any) -> Iterator[Box]:
    """Yield a box for each text that is shown with the operators that pdfTeX uses."""
    fonts = {name: font.get_object() for name, font in page["/Resources"]["/Font"].items()}
    x = y = size = 0.0
    font: Any = None
    for operands, operator in ContentStream(page.get_contents(), page.pdf).operations:
        if operator == b"BT":
            x = y = 0.0
        elif operator == b"Tf":
            font, size = fonts[operands[0]], float(operands[1])
        elif operator == b"Td":
            x, y = x + float(operands[0]), y + float(operands[1])
        elif operator == b"TJ":
            text, width = _measured(operands[0], font)
            right = x + width * size / 1000
            if text.strip():
                yield Box(x, y - _DEPTH * size, right, y + _HEIGHT * size, text)


def _measured(pieces: Any, font: Any) -> tuple[str, float]:
    """Return a text and its width, in thousandths of the size of its letters."""
    text, width = "", 0.0
    for piece in pieces:
        if isinstance(piece, (int, float)):
            width -= float(piece)
            continue
        codes = piece.original_bytes
        text += codes.decode("latin-1")
        width += sum(float(font["/Widths"][code - font["/FirstChar"]]) for code in codes)
    return text, width
