"""Visual faults of pages by pdfTeX: each page is drawn, and its pixels are compared.

The document is compiled with `HALF_INK`, which lets half of the light through, so that ink over ink
is darker. The texts of the page, with their positions, only name what is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pypdfium2
from numpy.typing import NDArray
from pypdf import PdfReader
from pypdf.generic import ContentStream

Ink = NDArray[np.bool_]
"""Pixels of a page, from above, that are not white."""

HALF_INK = (
    r"\usepackage{pgf}"
    r"\AddToHook{shipout/background}"
    r"{\put(0,0){\pgfsetfillopacity{0.5}\pgfsetstrokeopacity{0.5}}}"
)
"""Lines of a preamble for pdfTeX that make all ink of every page half transparent."""

_DPI = 150

_MARGIN = 36
"""Points around a page that are drawn too, to see what lies outside of it."""

_FAINT, _TWICE = 245, 112
"""Shades of gray below which a pixel is ink, and ink over ink; ink alone is at 127."""

_COVERED = 4
"""Pixels of ink over ink from which on texts overlap; kerned letters share fewer."""

_RULE = 30
"""Points from which on a line of ink is a rule: no letter is as wide, nor serifs in a row."""

_BESIDE_RULE = 1.5
"""Points above and below a rule that hold no ink."""

_BETWEEN = 0.5
"""Points without ink that lie between texts above each other."""

_SHARED = 2.0
"""Points of width that texts above each other share; a mark beside a number shares none."""


def page_faults(path: Path) -> list[str]:
    """Return what is wrong with the pages of a PDF, a sentence each."""
    return [
        f"page {number}: {fault}"
        for number, sheet in enumerate(_sheets(path), start=1)
        for fault in sheet.faults()
    ]


def count_rules(path: Path) -> list[int]:
    """Return how many rules each page of a PDF has."""
    return [len(sheet.rules()) for sheet in _sheets(path)]


class Text(NamedTuple):
    """Room of a text on a page, in points from the lower left corner.

    Attributes:
        overprinted: whether it goes back over its own letters, which PDFium draws as one shape.
    """

    left: float
    bottom: float
    right: float
    top: float
    text: str
    overprinted: bool


class Rule(NamedTuple):
    """A rule on a page, in pixels: its first and last row, and its ends."""

    top: int
    bottom: int
    left: int
    right: int

    def spans(self, other: Rule) -> bool:
        """Return whether both lie above each other."""
        return self.left < other.right and other.left < self.right


class _Sheet(NamedTuple):
    """A page that is drawn.

    Attributes:
        shades: its pixels from above with the margin around it, 255 for white.
        texts: its texts by their left ends.
        width: its width without the margin, in points.
        height: its height.
    """

    shades: NDArray[np.uint8]
    texts: list[Text]
    width: float
    height: float

    def faults(self) -> Iterator[str]:
        """Yield what is wrong."""
        ink = self.shades < _FAINT
        outside = ink.copy()
        edge = _pixels(_MARGIN)
        outside[edge:-edge, edge:-edge] = False
        far = [
            repr(text.text)
            for text in self.texts
            if min(text.left, text.bottom, self.width - text.right, self.height - text.top) < 0
        ]
        # What is no text, such as a rule, is seen in the margin alone.
        for text in dict.fromkeys([*far, *self._at(outside)]):
            yield f"{text} is outside the page"
        overprinted = [repr(text.text) for text in self.texts if text.overprinted]
        for text in dict.fromkeys([*overprinted, *self._at(self.shades < _TWICE)]):
            yield f"{text} has ink over ink"
        yield from self._close_to_rules(ink)
        yield from self._close_to_each_other(ink)

    def rules(self) -> list[Rule]:
        """Return the rules of the page, in pixels."""
        ink, length = self.shades < _FAINT, _pixels(_RULE)
        style_rules: list[Rule] = []
        # Few rows have ink for a rule at all; the places of one are found in these alone.
        rows = [at for at, row in enumerate(ink) if np.count_nonzero(row) >= length]
        totals = np.zeros((len(rows), ink.shape[1] + 1), np.int32)
        np.cumsum(ink[rows], axis=1, out=totals[:, 1:])
        begins = totals[:, length:] - totals[:, :-length] == length
        for at in np.flatnonzero(begins.any(axis=1)).tolist():
            row, columns = rows[at], np.flatnonzero(begins[at])
            for part in np.split(columns, np.flatnonzero(np.diff(columns) > 1) + 1):
                line = Rule(row, row, int(part[0]), int(part[-1]) + length)
                above = [
                    rule for rule in style_rules if rule.bottom == row - 1 and rule.spans(line)
                ]
                for rule in above:
                    style_rules.remove(rule)
                style_rules.append(line._replace(top=min([row, *(rule.top for rule in above)])))
        return style_rules

    def _close_to_rules(self, ink: Ink) -> Iterator[str]:
        """Yield which texts touch a rule."""
        beside = _pixels(_BESIDE_RULE)
        for rule in self.rules():
            # The pixels next to a rule may be half filled by it.
            above = slice(rule.top - 1 - beside, rule.top - 1), slice(rule.left, rule.right)
            below = slice(rule.bottom + 2, rule.bottom + 2 + beside), slice(rule.left, rule.right)
            if not (ink[above].any() or ink[below].any()):
                continue
            near = np.zeros_like(ink)
            near[above], near[below] = ink[above], ink[below]
            for text in self._at(near):
                yield f"{text} touches a rule"

    def _close_to_each_other(self, ink: Ink) -> Iterator[str]:
        """Yield which texts have no white line between them and another above or below."""
        for at, text in enumerate(self.texts):
            for other in self.texts[at + 1 :]:
                if other.left > text.right - _SHARED:
                    break
                lower, upper = sorted((text, other), key=lambda box: box.bottom)
                apart = upper.bottom - lower.bottom
                if not 1.0 < apart < upper.top - upper.bottom + _BETWEEN:
                    continue
                left, right = other.left, min(text.right, other.right)
                if right - left < _SHARED:
                    continue
                middles = ((each.bottom + each.top) / 2 for each in (upper, lower))
                first, last = (self._row(middle) for middle in middles)
                between = ink[first : last + 1, self._column(left) : self._column(right)]
                lines: Ink = np.any(between, axis=1)
                if _longest_gap(lines) < _BETWEEN * _DPI / 72:
                    yield f"{upper.text!r} touches {lower.text!r}"

    def _at(self, marked: Ink) -> Iterator[str]:
        """Yield the texts below marked pixels, or where these are."""
        if np.count_nonzero(marked) < _COVERED:
            return
        rest = marked.copy()
        for text in self.texts:
            rows = slice(max(self._row(text.top), 0), max(self._row(text.bottom), 0))
            columns = slice(max(self._column(text.left), 0), max(self._column(text.right), 0))
            if np.count_nonzero(rest[rows, columns]) >= _COVERED:
                rest[rows, columns] = False
                yield repr(text.text)
        if np.count_nonzero(rest) >= _COVERED:
            row, column = np.argwhere(rest)[0]
            x, y = column * 72 / _DPI - _MARGIN, self.height + _MARGIN - row * 72 / _DPI
            yield f"something at ({x:.0f}, {y:.0f}) points"

    def _row(self, y: float) -> int:
        return _pixels(self.height + _MARGIN - y)

    def _column(self, x: float) -> int:
        return _pixels(x + _MARGIN)


def _sheets(path: Path) -> Iterator[_Sheet]:
    """Yield each page of a PDF."""
    for page, shades in zip(PdfReader(path).pages, _drawn(path), strict=True):
        box = page.mediabox
        yield _Sheet(shades, sorted(_texts(page)), float(box.width), float(box.height))


def _pixels(points: float) -> int:
    return round(points * _DPI / 72)


def _longest_gap(lines: NDArray[np.bool_]) -> int:
    """Return the length of the longest run of False."""
    ends = np.flatnonzero(np.concatenate([[True], lines, [True]]))
    return int(np.diff(ends).max()) - 1


def _drawn(path: Path) -> Iterator[NDArray[np.uint8]]:
    """Yield the shades of each page with a margin around it."""
    with pypdfium2.PdfDocument(path) as document:
        for page in document:
            left, bottom, right, top = page.get_mediabox()
            sides = (left - _MARGIN, bottom - _MARGIN, right + _MARGIN, top + _MARGIN)
            page.set_mediabox(*sides)
            page.set_cropbox(*sides)
            yield page.render(scale=_DPI / 72, grayscale=True).to_numpy().copy()


_DEPTH, _HEIGHT = 0.25, 0.75
"""Extent of letters below and above the line, in sizes of the letters."""

_KERNING = 150
"""Thousandths of the size of letters that a text goes back at most between two of them."""

_ACCENTS = {*range(0x12, 0x19), 0x5E, 0x5F, 0x7D, 0x7E, 0x7F}
"""Accents of TeX's own encoding (OT1), which the letter below follows."""


def _texts(page: Any) -> Iterator[Text]:
    """Yield each text that is shown with the operators that pdfTeX uses."""
    fonts = {name: font.get_object() for name, font in page["/Resources"].get("/Font", {}).items()}
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
                top = y + _HEIGHT * size
                yield Text(x, y - _DEPTH * size, right, top, text, _goes_back(operands[0]))


def _goes_back(pieces: Any) -> bool:
    """Return whether a text goes back by more than kerning, other than to set an accent."""
    return any(
        isinstance(move, (int, float))
        and move > _KERNING
        and codes.original_bytes[-1] not in _ACCENTS
        for codes, move in itertools.pairwise(pieces)
    )


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
