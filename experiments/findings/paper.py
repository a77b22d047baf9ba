"""A paper from the tables and figures of studies: as PDF, and as LaTeX for further editing.

The PDF is set by Typst, which comes as a library with its own fonts, so that no LaTeX is needed;
the LaTeX inputs the same files of tables and figures, and needs the packages that it names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from experiments.findings.artifacts import Origin
from experiments.findings.latex import PACKAGES
from experiments.findings.markup import escape_latex, latex_comments
from experiments.findings.table import Table
from experiments.findings.typst import typst_table
from factormodels.errors import InputError
from factormodels.extraction.optional_libraries import optional_module
from factormodels.io.source.files import atomic_path, write_text

PDF, LATEX = "paper.pdf", "paper.tex"

TALLEST = "10cm"
"""Height beyond which a figure or a table is made smaller, so that a page has room for more."""


@dataclass(frozen=True)
class PaperSection:
    """A section of a paper: its text, then its tables, then its figures.

    Attributes:
        title: its title; empty for none.
        paragraphs: paragraphs of plain text.
        tables: the tables by the stem of their files, in order.
        figures: caption of each figure, by the stem of its files, in order.
    """

    title: str = ""
    paragraphs: tuple[str, ...] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Paper:
    """Contents of the paper, from top to bottom.

    Attributes:
        title: its title.
        authors: its authors, in order.
        abstract: a paragraph of plain text.
        sections: its sections, in order.
        pages: maximum number of pages.
    """

    title: str
    authors: tuple[str, ...]
    abstract: str
    sections: tuple[PaperSection, ...]
    pages: int = 1


def write_paper(paper: Paper, folder: str | os.PathLike[str], origin: Origin) -> tuple[Path, Path]:
    """Write a paper as paper.pdf, on pages of A4, and as paper.tex; return their paths.

    The tables show the value, interval, bold and stars of every column. The footer of every page
    names the study and its hash. Equal papers give equal files.

    Args:
        paper: the paper.
        folder: folder with STEM.tex of every table and STEM.pdf of every figure, to which the paper
            is written.
        origin: origin of the tables and figures.

    Raises:
        InputError: if a file is missing or cannot be read or written, a figure is not a usable PDF,
            or the content does not fit on the pages.
        MissingDependencyError: if typst is not installed.
    """
    path = Path(folder)
    # The LaTeX inputs all of these files, the PDF only the figures.
    for section in paper.sections:
        for name in (*(f"{s}.tex" for s in section.tables), *(f"{s}.pdf" for s in section.figures)):
            if not (path / name).is_file():
                raise InputError(
                    f"{path / name}: the paper includes this file, which is not there; write the "
                    "tables and the figures first"
                )
    # With the time of day, every file would be different.
    content = _set(paper, path, origin, format="pdf", timestamp=0)
    with atomic_path(path / PDF) as temporary:
        temporary.write_bytes(content)
    write_text(path / LATEX, latex_document(paper, origin))
    return path / PDF, path / LATEX


def latex_document(paper: Paper, origin: Origin) -> str:
    r"""Whole LaTeX document that inputs the files of the tables and of the figures.

    Compile it in the folder of these files, with pdflatex or a compatible engine.
    """
    authors = ", ".join(map(escape_latex, paper.authors))
    lines = [
        latex_comments(origin.comments()).rstrip("\n"),
        r"\documentclass[10pt]{article}",
        r"\usepackage[a4paper, hmargin = 2cm, vmargin = 1.7cm]{geometry}",
        *PACKAGES,
        r"\setlength{\belowcaptionskip}{4pt}",
        r"\setlength{\intextsep}{8pt}",
        "% Shrinks content that is too wide or too tall.",
        r"\newcommand{\fitted}[1]{\sbox0{#1}%",
        r"  \ifdim\wd0>\linewidth\sbox0{\resizebox{\linewidth}{!}{\usebox0}}\fi",
        rf"  \ifdim\ht0>{TALLEST}\sbox0{{\resizebox{{!}}{{{TALLEST}}}{{\usebox0}}}}\fi",
        r"  \usebox0}",
        r"\begin{document}",
        r"\begin{center}",
        rf"{{\Large\bfseries {escape_latex(paper.title)}}}\par\smallskip",
        authors,
        r"\end{center}",
        rf"\begin{{quote}}\small\textbf{{Abstract.}} {escape_latex(paper.abstract)}\end{{quote}}",
    ]
    for section in paper.sections:
        lines += _latex_section(section)
    lines += [
        rf"\noindent{{\scriptsize {escape_latex(_origin_line(origin))}}}",
        r"\end{document}",
    ]
    return "\n".join(lines) + "\n"


def _latex_section(section: PaperSection) -> Iterator[str]:
    if section.title:
        yield rf"\section*{{{escape_latex(section.title)}}}"
    for paragraph in section.paragraphs:
        yield f"{escape_latex(paragraph)}\n"
    for stem in section.tables:
        yield rf"\input{{{stem}.tex}}"
    for stem, caption in section.figures.items():
        yield r"\begin{figure}[!htbp]\centering"
        yield rf"\fitted{{\includegraphics{{{stem}.pdf}}}}"
        yield rf"\caption{{{escape_latex(caption)}}}"
        yield r"\end{figure}"


def _origin_line(origin: Origin) -> str:
    return f"Study {origin.study}, SHA-256 of its configuration {origin.sha256}"


def page_image(paper: Paper, folder: str | os.PathLike[str], origin: Origin) -> bytes:
    """A one-page paper as a PNG image; errors are those of `write_paper`."""
    return _set(paper, Path(folder), origin, format="png", ppi=_PREVIEW_PPI)


_PREVIEW_PPI = 120


def _set(paper: Paper, folder: Path, origin: Origin, **output: Any) -> bytes:
    """The pages as bytes of a format that Typst writes; an error if they are too many."""
    typst = optional_module("typst", "notebooks")
    template = resources.files(__package__).joinpath("paper.typ").read_bytes()
    inputs = {"paper": json.dumps(_plain(paper, origin))}
    # Use only the fonts that come with Typst, so that a page is the same on every machine.
    asked = {"root": str(folder), "ignore_system_fonts": True, "sys_inputs": inputs}
    try:
        # A compiler cannot be queried after it has compiled, so there are two.
        pages = json.loads(typst.Compiler(template, **asked).query("<pages>", "value", one=True))
        content = (
            typst.Compiler(template, **asked).compile(**output) if pages <= paper.pages else b""
        )
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{folder / PDF}: the page cannot be set ({reason})") from None
    if pages > paper.pages:
        raise InputError(
            f"{folder / PDF}: it takes {pages} pages, and may take {paper.pages}; leave a table "
            "out, show fewer measures or rows, or shorten the texts"
        )
    return bytes(content)


def _plain(paper: Paper, origin: Origin) -> dict[str, Any]:
    return {
        "title": paper.title,
        "authors": list(paper.authors),
        "abstract": paper.abstract,
        "keywords": [f"{key} {value}" for key, value in origin.metadata().items()],
        "origin": _origin_line(origin),
        "sections": [
            {
                "title": section.title,
                "paragraphs": list(section.paragraphs),
                "tables": [
                    {"caption": table.caption, "note": table.notes, "table": typst_table(table)}
                    for table in section.tables.values()
                ],
                "figures": [
                    {"file": f"/{stem}.pdf", "caption": caption}
                    for stem, caption in section.figures.items()
                ],
            }
            for section in paper.sections
        ],
        "tallest": TALLEST,
    }
