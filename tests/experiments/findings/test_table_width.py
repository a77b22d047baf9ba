"""Tables fit a column, a page and a slide: by measured widths, and by LaTeX where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from experiments.findings import table as latex_table
from experiments.findings.table import Column, Table, TableWidth, data_frame, interval_column
from experiments.findings.table_width import MEASURES, fitted, text_width
from experiments.study.reading import embedded_studies
from factormodels.io.files import write_text
from tests.calibration.test_table_markup import HOSTILE_IN_LATEX
from tests.experiments.findings.study_tables import kept_tables, table_of

DOCUMENTS: dict[TableWidth, tuple[str, ...]] = {
    "page": (
        r"\documentclass{article}",
        # The text width of NeurIPS.
        r"\documentclass{article}\usepackage[textwidth=397.48pt]{geometry}",
    ),
    # The text width and the gutter of ACL.
    "column": (
        r"\documentclass[11pt,twocolumn]{article}"
        r"\usepackage[a4paper,textwidth=16cm,columnsep=0.6cm]{geometry}",
    ),
    "slides": (r"\documentclass{beamer}",),
}


def table(n_rows: int, n_measures: int, *, name: str = "lbp damped") -> Table:
    """A table of a study: two names, measures with intervals, one that is the best."""
    generator = np.random.default_rng(0)
    data: dict[str, list[object]] = {
        "view": ["implication"] * n_rows,
        "backend": [f"{name} {row}" for row in range(n_rows)],
        "block": [f"data {row // 40}: 94 responses, 678 atoms" for row in range(n_rows)],
    }
    columns = [Column("view", "encoding"), Column("backend", "backend")]
    for number in range(n_measures):
        value = generator.random(n_rows)
        data |= {f"m{number}": [*value], f"m{number}_lower": [*(value / 2)]}
        data[f"m{number}_upper"] = [*np.minimum(value * 2, 1)]
        columns.append(interval_column(f"m{number}", "Accuracy", 3))
    data["apart"] = [0.5] * n_rows
    columns.append(Column("apart", "max |Δp|", r"$\max|\Delta p|$", digits=3))
    return Table(data_frame(data), tuple(columns), "A caption", "block")


TABLES = {
    "narrow": table(3, 1),
    "wide": table(5, 4),
    "wider": table(130, 9),
    "wordy": table(30, 3, name="FR1 = FR2, implication, exact = lbp = lbp damped = enumeration"),
    "unbroken": table(3, 2, name="https_//example.org/" + "a" * 90),
}


@pytest.mark.parametrize("width", MEASURES)
@pytest.mark.parametrize("name", TABLES)
def test_a_table_fits_and_says_what_it_left_out(name: str, width: TableWidth) -> None:
    form = fitted(TABLES[name], width)
    assert form.width <= MEASURES[width].width
    shown = {column.title for column in form.table.columns}
    for column in TABLES[name].columns:
        assert column.title in shown or column.title in form.note
    # A table has names and a number at least.
    assert len(form.table.columns) >= 3
    text = latex_table.latex(TABLES[name], (), width)
    for row in TABLES[name].frame["m0"]:
        assert f"{row:.3f}" in text
    heads = re.findall(r"\\begin\{tabular\}", text)
    assert len(heads) == text.count(r"\bottomrule")
    if len(TABLES[name].frame) > MEASURES[width].lines:
        assert len(heads) > 1


def test_intervals_stand_beside_then_below_then_go() -> None:
    beside, below, gone = (fitted(table(3, n), "page") for n in (2, 4, 9))
    assert not beside.below
    assert any(column.interval for column in beside.table.columns)
    assert below.below
    assert "[" in latex_table.latex(table(3, 4), (), "page")
    assert not any(column.interval for column in gone.table.columns)
    assert "impl. implication" in gone.note


def test_letters_have_the_widths_of_computer_modern() -> None:
    # The TeXbook's font tables: a digit of cmr10 is half an em wide, an m 0.8333, an i 0.2778.
    for text, em in (("0000", 2.0), ("m", 0.8333), ("i", 0.2778)):
        assert text_width(text, 10.0) == pytest.approx(10 * em, rel=0.02)


def test_tables_of_every_embedded_study_are_kept() -> None:
    kept = {study for each in kept_tables() for study in each["studies"]}
    assert kept == set(embedded_studies())


@pytest.mark.parametrize("width", MEASURES)
def test_tables_of_studies_fit_by_measured_widths(width: TableWidth) -> None:
    for each in kept_tables():
        form = fitted(table_of(each), width)
        assert form.width <= MEASURES[width].width, each["studies"]


def latex_lacks() -> str:
    """What LaTeX lacks of that which the tables need; empty: nothing."""
    if shutil.which("pdflatex") is None:
        return "there is no pdflatex"
    for file in NEEDED:
        if subprocess.run(["kpsewhich", file], capture_output=True).returncode:
            return f"this LaTeX has no {file}"
    return ""


NEEDED = ("array.sty", "booktabs.sty", "siunitx.sty", "geometry.sty", "beamer.cls", "pgfmath.sty")
"""What is in packages of their own in some distributions; `make latex` installs all of them."""

with_latex = pytest.mark.skipif(bool(latex_lacks()), reason=f"{latex_lacks()}: see make latex")


def compiled(folder: Path, *parts: str) -> str:
    """What pdflatex says of a document whose parts are given; it must end well."""
    (folder / "paper.tex").write_text("\n".join(parts), encoding="utf-8")
    command = ["pdflatex", "-draftmode", "-interaction=nonstopmode", "-halt-on-error"]
    said = subprocess.run(
        [*command, "paper.tex"], cwd=folder, capture_output=True, text=True, errors="replace"
    )
    assert said.returncode == 0, said.stdout[-2000:]
    return said.stdout


@pytest.mark.slow
@with_latex
@pytest.mark.parametrize("width", MEASURES)
def test_latex_sets_no_table_too_wide(width: TableWidth, tmp_path: Path) -> None:
    of_studies = {f"study-{at}": table_of(each) for at, each in enumerate(kept_tables())}
    for name, one in (TABLES | of_studies).items():
        (tmp_path / f"{name}.tex").write_text(latex_table.latex(one, (), width))
    around = ("", "")
    if width == "slides":
        around = (r"\begin{frame}[allowframebreaks]", r"\end{frame}")
    for head in DOCUMENTS[width]:
        # What is set for the narrower page stands on the wider one as it is.
        names = [*TABLES, *(of_studies if head == DOCUMENTS[width][0] else ())]
        tables = [f"{around[0]}\n\\input{{{name}}}\n{around[1]}\n" for name in names]
        parts = [head, *latex_table.PACKAGES, r"\begin{document}", *tables, r"\end{document}"]
        assert re.findall(r"Overfull .hbox.*", compiled(tmp_path, *parts)) == []


@pytest.mark.slow
@with_latex
@pytest.mark.parametrize("width", [None, *MEASURES])
def test_latex_sets_a_table_of_any_texts(width: TableWidth | None, tmp_path: Path) -> None:
    texts = list(HOSTILE_IN_LATEX)
    one = Table(
        data_frame({"a": texts, "b": texts[::-1], "p": [0.5] * len(texts), "g": texts}),
        (Column("a", texts[0]), Column("b", texts[1]), Column("p", "p", digits=3)),
        "\n".join(texts),
        "g",
        "\n".join(texts),
    )
    head = DOCUMENTS[width or "page"][0]
    around = (r"\begin{frame}[allowframebreaks]", r"\end{frame}") if width == "slides" else ("", "")
    text = latex_table.latex(one, texts, width)
    write_text(tmp_path / "t.tex", text)
    said = compiled(
        tmp_path,
        *(head, *latex_table.PACKAGES, r"\begin{document}", around[0], r"\input{t}", around[1]),
        r"\end{document}",
    )
    assert "passwd)" not in said
