"""A page of a paper: one page, every number of its tables, fonts of its own, the same each time."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure
from pypdf import PdfReader

from experiments.findings.artifacts import Origin, PaperFigure, write_artifact
from experiments.findings.paper import Paper, PaperSection, latex_document, page_image, write_paper
from experiments.findings.table import Column, Table
from factormodels.errors import InputError
from tests.experiments.findings.test_latex import with_latex
from tests.refusals import refused

ORIGIN = Origin("odd & names", "0123456789abcdef" * 4)

SCORES = Table(
    pd.DataFrame(
        {
            "method": ["one_way", "#other <*>", "third"],
            "block": ["50% of {data}", "50% of {data}", "rest"],
            "brier": [0.12345, -0.25, float("nan")],
            "lower": [0.1, -0.3, float("nan")],
            "upper": [0.2, -0.1, float("nan")],
            "best": [True, False, False],
            "stars": ["***", "", ""],
            "n": [3, 12, 0],
        }
    ),
    (
        Column("method", "Method"),
        Column(
            "brier", "Brier", digits=3, lower="lower", upper="upper", bold="best", stars="stars"
        ),
        Column("n", "$n$", right=True),
    ),
    "A & B: scores_of 100% of *them* #1.",
    group="block",
    note="* p < 0.05, *** p < 0.001; in [brackets] intervals.",
)

CAPTION = "A line_1 & more."

PAPER = Paper(
    title="On $5 & 100% of <it>: _a_ #study",
    authors=("Zoë Müller", "A. N. Other"),
    abstract="Plain text: a_b, 50%, C:\\path, {braces}, #hash, *stars*, ~tilde^.",
    sections=(
        PaperSection(tables={"scores": SCORES, "again": replace(SCORES, group="", note="")}),
        PaperSection("Of #2 & _two_", ("One <par> of 100%.",), figures={"figure": CAPTION}),
    ),
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the paper takes in, which no test changes."""
    folder = tmp_path_factory.mktemp("files")
    for stem, table in PAPER.sections[0].tables.items():
        write_artifact(table, folder, stem, ORIGIN)
    figure = Figure(figsize=(3.0, 2.0))
    figure.add_subplot().plot([0, 1], [1, 0])
    write_artifact(PaperFigure(figure, pd.DataFrame({"x": [0, 1]})), folder, "figure", ORIGIN)
    return folder


@pytest.fixture
def written(tmp_path: Path, files: Path) -> Path:
    """A folder with the files that the paper takes in."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    return tmp_path


def text_of(path: Path) -> str:
    """Return the text of a PDF's only page."""
    (page,) = PdfReader(path).pages
    return page.extract_text()


def fonts_of(path: Path) -> list[Any]:
    """Return the font descriptors of a PDF's page, those of figures in it too."""
    fonts: list[Any] = []

    def collect(resources: Any) -> None:
        for font in (resources.get("/Font") or {}).values():
            for descendant in font.get_object()["/DescendantFonts"]:
                fonts.append(descendant.get_object()["/FontDescriptor"].get_object())
        for inner in (resources.get("/XObject") or {}).values():
            collect(inner.get_object().get("/Resources", {}))

    (page,) = PdfReader(path).pages
    collect(page["/Resources"].get_object())
    return fonts


def test_the_page_holds_everything_as_it_was_written(written: Path) -> None:
    pdf, latex = write_paper(PAPER, written, ORIGIN)
    text = " ".join(text_of(pdf).split())
    for part in (
        PAPER.title,
        *PAPER.authors,
        PAPER.abstract,
        CAPTION,
        "Of #2 & _two_",
        "One <par> of 100%.",
    ):
        assert part in text
    for part in (SCORES.caption, SCORES.note, "one_way", "#other <*>", "50% of {data}", "$n$"):
        assert part in text
    # Rounded as in the other forms of the table, with a minus sign where there is one.
    for part in ("0.123*** [0.100, 0.200]", "−0.250 [−0.300, −0.100]", "–", "12"):
        assert part in text, part
    assert f"Study {ORIGIN.study}, SHA-256 of its configuration {ORIGIN.sha256}" in text
    document = PdfReader(pdf).metadata
    assert document is not None
    assert document.title == PAPER.title
    assert f"config_sha256 {ORIGIN.sha256}" in str(document["/Keywords"])
    assert latex.read_text(encoding="utf-8") == latex_document(PAPER, ORIGIN)


def test_bold_is_of_the_best_alone(written: Path) -> None:
    write_paper(PAPER, written, ORIGIN)
    bold = []

    def visit(text: str, _cm: Any, _tm: Any, font: Any, _size: Any) -> None:
        if font and "Bold" in font["/BaseFont"]:
            bold.append(text)

    (page,) = PdfReader(written / "paper.pdf").pages
    page.extract_text(visitor_text=visit)
    numbers = re.findall(r"\d\.\d{3}", "".join(bold))
    assert numbers == ["0.123", "0.123"]


def test_fonts_are_in_the_file(written: Path) -> None:
    pdf, _ = write_paper(PAPER, written, ORIGIN)
    fonts = fonts_of(pdf)
    assert any("NewCM" in font["/FontName"] for font in fonts)
    # That of matplotlib, which set the figure.
    assert any("DejaVu" in font["/FontName"] for font in fonts)
    for font in fonts:
        assert {"/FontFile2", "/FontFile3"} & set(font), font["/FontName"]


def test_equal_papers_make_equal_files(written: Path) -> None:
    pdf, latex = write_paper(PAPER, written, ORIGIN)
    before = pdf.read_bytes(), latex.read_bytes()
    write_paper(PAPER, written, ORIGIN)
    assert (pdf.read_bytes(), latex.read_bytes()) == before
    write_paper(replace(PAPER, title="Another"), written, ORIGIN)
    assert pdf.read_bytes() != before[0]


def test_the_image_is_of_the_page(written: Path) -> None:
    image = page_image(PAPER, written, ORIGIN)
    assert image.startswith(b"\x89PNG")
    width, height = (int.from_bytes(image[at : at + 4], "big") for at in (16, 20))
    # A4, to a pixel.
    assert height / width == pytest.approx(297 / 210, abs=0.002)


@pytest.mark.parametrize("size", [(30.0, 1.0), (2.0, 30.0)])
def test_a_large_figure_is_made_to_fit(written: Path, size: tuple[float, float]) -> None:
    figure = Figure(figsize=size)
    figure.add_subplot()
    write_artifact(PaperFigure(figure, pd.DataFrame({"x": [0]})), written, "figure", ORIGIN)
    pdf, _ = write_paper(PAPER, written, ORIGIN)
    assert CAPTION in text_of(pdf)


def test_graphs_too_large_for_a_page_are_refused_and_nothing_written(written: Path) -> None:
    long = replace(PAPER, abstract="Too many words. " * 800)
    with pytest.raises(InputError, match=r"paper\.pdf: it takes [2-9] pages, and may take 1;"):
        write_paper(long, written, ORIGIN)
    assert not list(written.glob("paper.*"))
    pdf, _ = write_paper(replace(long, pages=9), written, ORIGIN)
    assert 1 < len(PdfReader(pdf).pages) <= 9


@pytest.mark.parametrize("name", ["scores.tex", "figure.pdf"])
def test_a_missing_file_is_named(written: Path, name: str) -> None:
    (written / name).unlink()
    with pytest.raises(InputError, match=rf"{re.escape(name)}: the paper includes this file"):
        write_paper(PAPER, written, ORIGIN)


def test_a_figure_that_is_no_pdf_is_refused(written: Path) -> None:
    (written / "figure.pdf").write_text("no figure")
    refused(r"paper\.pdf: the page cannot be set \(", write_paper, PAPER, written, ORIGIN)
    assert not list(written.glob("paper.*"))


def test_the_latex_takes_in_the_files_of_the_study(written: Path) -> None:
    write_paper(PAPER, written, ORIGIN)
    text = (written / "paper.tex").read_text(encoding="utf-8")
    taken = re.findall(r"\\(?:input|includegraphics)\{([^#}]+)\}", text)
    assert taken == ["scores.tex", "again.tex", "figure.pdf"]
    assert r"\textbf{Abstract.} Plain text: a\_b, 50\%, C:\textbackslash{}path" in text
    assert r"On \$5 \& 100\% of $<$it$>$: \_a\_ \#study" in text
    assert text.count("{") == text.count("}")
    assert text.endswith("\\end{document}\n")


@with_latex
def test_the_latex_compiles(written: Path) -> None:
    write_paper(PAPER, written, ORIGIN)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-jobname=own", "paper.tex"],
        cwd=written,
        capture_output=True,
        check=False,
    )
    log = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, log[-2000:]
    assert "0.123" in text_of(written / "own.pdf")
