"""Tables and figures as Typst sets them: whatever texts they hold, and nothing left out."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from experiments.findings.artefacts import Artefacts, Origin, PaperFigure, write_artefacts
from experiments.findings.table import Column, Table
from experiments.findings.venues import VENUES
from tests.experiments.findings.test_latex import TABLES
from tests.experiments.findings.test_markup import HOSTILE, HOSTILE_IN_LATEX

HOSTILE_IN_TYPST = (
    '#panic("x") *b* _e_ $x$ @ref <label> // c',
    '"quoted" \\ \\u{41}',
    "]#[",
    "= no",
)


@pytest.mark.parametrize("venue", ["acl", "slides"])
def test_typst_sets_tables_and_figures_of_any_texts(venue: str, tmp_path: Path) -> None:
    compiler = pytest.importorskip("typst")
    pypdf = pytest.importorskip("pypdf")
    from matplotlib.figure import Figure

    texts = [*HOSTILE, *HOSTILE_IN_LATEX, *HOSTILE_IN_TYPST]
    rows = [{"a": text, "b": text[::-1], "p": 0.5, "g": text} for text in texts]
    columns = (Column("a", texts[0]), Column("b", texts[-1]), Column("p", "p", digits=3))
    hostile = Table(rows, columns, "\n".join(texts), "g", "\n".join(texts))
    figure: Any = Figure((2.0, 1.0))
    tables = {"hostile": hostile, **TABLES}
    shown = Artefacts(tables, {"drawn": PaperFigure(figure, TABLES["narrow"].frame, texts[-4])})
    write_artefacts(shown, tmp_path, Origin(texts[1], "0" * 64), VENUES[venue])
    text = "".join(f'#include "{stem}.typ"\n' for stem in (*tables, "drawn"))
    (tmp_path / "paper.typ").write_text(text)
    pages = pypdf.PdfReader(io.BytesIO(compiler.compile(tmp_path / "paper.typ"))).pages
    seen = "".join("".join(page.extract_text().split()) for page in pages)
    for words in ('#panic("x")*b*', '"quoted"\\\\u{41}', "lbpdamped129", "Acaption"):
        assert words in seen
