"""Tables of papers: what LaTeX, Markdown and the terminal say of the same numbers."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from experiments.findings.artifacts import (
    Artifacts,
    Origin,
    PaperFigure,
    write_artifact,
    write_artifacts,
)
from experiments.findings.findings import Findings
from experiments.findings.latex import latex
from experiments.findings.page import findings_page
from experiments.findings.table import Column, Table, columns_as, markdown, with_note
from experiments.findings.terminal import show, show_findings
from experiments.findings.text import duration, number, p_value, small
from factormodels.errors import InputError
from tests.experiments.conftest import invoke

ORIGIN = Origin("a-study", "ab" * 32)


def table() -> Table:
    frame = pd.DataFrame(
        {
            "data": ["first_set", "first_set", "second"],
            "name": ["A & B", "C|D", "50%"],
            "brier": [0.0967, 0.25, float("nan")],
            "low": [0.08, 0.2, float("nan")],
            "high": [0.11, 0.3, float("nan")],
            "best": [True, False, False],
            "marks": ["***", "", ""],
            "count": [1234, 5, 0],
        }
    )
    columns = (
        Column("name", "method", "Method"),
        Column("brier", "Brier", "Brier", 3, lower="low", upper="high", bold="best"),
        Column("brier", "again", digits=1, stars="marks"),
        Column("count", "n", "$n$", show=lambda n: f"{n:,}", right=True),
    )
    return Table(frame, columns, "What a table shows.", "data", "A note.")


def test_latex_aligns_numbers_and_bolds_the_best_alone() -> None:
    text = latex(table(), "results", ORIGIN.comments())
    lines = text.splitlines()
    assert lines[:2] == ["% study a-study", f"% config sha256 {'ab' * 32}"]
    assert r"% \usepackage{array, booktabs, graphicx}" in lines
    assert r"\caption{What a table shows.}\label{tab:results}" in lines
    heads = r"Method & \multicolumn{2}{c}{Brier} & \multicolumn{2}{c}{again} & $n$ \\"
    assert heads in lines
    assert r"\begin{tabular}{lr@{\ }lr@{}lr}" in lines
    assert r"\multicolumn{6}{l}{\textit{first\_set}} \\" in lines
    numbers = r"\textbf{0.097} & {\scriptsize [0.080, 0.110]} & 0.1 & \textsuperscript{***}"
    assert rf"A \& B & {numbers} & 1,234 \\" in lines
    # Marks and intervals have columns of their own, so that all numbers end alike.
    assert r"50\% & -- &  & -- &  & 0 \\" in lines
    assert text.count(r"\textbf") == 1


def test_markdown_shows_the_same_numbers() -> None:
    lines = markdown(table(), ORIGIN.comments()).splitlines()
    assert lines[0] == f"<!-- study a-study; config sha256 {'ab' * 32} -->"
    assert "What a table shows." in lines
    assert r"| A & B | **0.097** [0.080, 0.110] | 0.1\*\*\* | 1,234 |" in lines
    assert r"| C\|D | 0.250 [0.200, 0.300] | 0.2 | 5 |" in lines
    assert "| 50% | -- | -- | 0 |" in lines
    assert lines[-1] == "A note."


@pytest.mark.parametrize(
    ("value", "high", "explained"),
    [(0.041, 0.037, True), (0.0372, 0.0371, False), (0.03, 0.037, False), (math.nan, 0.1, False)],
)
def test_outputs_with_a_number_above_its_interval_say_why(
    value: float, high: float, explained: bool
) -> None:
    rows = [{"name": "a", "mcb": value, "mcb_lower": 0.014, "mcb_upper": high}]
    shown = Table(rows, columns_as("name | mcb:3± MCB"), "A table.", note="A note.")
    terminal = io.StringIO()
    show(Console(file=terminal, width=200), shown)
    for text in (markdown(shown), latex(shown, "a"), terminal.getvalue()):
        assert "A note." in text
        assert ("chance alone raises the number" in text) == explained


def test_the_terminal_keeps_numbers_whole() -> None:
    stream = io.StringIO()
    show(Console(file=stream, width=60), table())
    text = stream.getvalue()
    assert "0.097 [0.080, 0.110]" in text
    assert "1,234" in text
    assert "first_set" in text


def test_columns_that_do_not_fit_continue_below_with_the_names_again() -> None:
    stream = io.StringIO()
    show(Console(file=stream, width=30), table())
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 30
    # The names of the rows head both parts, and no number is cut.
    assert sum("A & B" in line for line in lines) == 2
    text = stream.getvalue()
    assert "0.097 [0.080, 0.110]" in text
    assert "0.1***" in text
    assert "1,234" in text


def test_a_long_table_says_how_much_of_it_is_left_out() -> None:
    stream = io.StringIO()
    show(Console(file=stream, width=60), table(), 1)
    # The first block is whole, the second left out.
    assert "A & B" in stream.getvalue()
    assert "C|D" in stream.getvalue()
    assert "50%" not in stream.getvalue()
    assert "and 1 more of 3 rows: --out DIR or --report FILE has them all" in stream.getvalue()
    stream = io.StringIO()
    show(Console(file=stream, width=60), replace(table(), group=""), 2)
    assert "50%" not in stream.getvalue()
    assert "and 1 more of 3 rows" in stream.getvalue()


def test_a_negative_number_has_a_minus_sign() -> None:
    frame = pd.DataFrame({"x": [-12.25, 3.5]})
    assert "$-$12.25" in latex(Table(frame, (Column("x", "x", digits=2),)), "t")


def test_a_table_and_a_figure_are_written_with_their_data(tmp_path: Path) -> None:
    from matplotlib.figure import Figure
    from PIL import Image

    written = write_artifact(table(), tmp_path, "results", ORIGIN)
    assert [path.name for path in written] == [
        f"results.{suffix}" for suffix in ("csv", "tex", "md")
    ]
    assert pd.read_csv(written[0])["brier"][1] == 0.25

    figure = Figure()
    figure.subplots().plot([0, 1])
    curve = PaperFigure(figure, pd.DataFrame({"x": [0, 1]}), "A curve")
    pdf, png, tex, csv = write_artifact(curve, tmp_path, "curve", ORIGIN)
    assert ORIGIN.sha256.encode() in pdf.read_bytes()
    with Image.open(png) as image:
        assert image.info["config_sha256"] == ORIGIN.sha256
    assert r"\caption{A curve}\label{fig:curve}" in tex.read_text()
    assert csv.read_text() == "x\n0\n1\n"
    before = [path.read_bytes() for path in (pdf, png, tex, *written)]
    write_artifact(table(), tmp_path, "results", ORIGIN)
    write_artifact(curve, tmp_path, "curve", ORIGIN)
    assert [path.read_bytes() for path in (pdf, png, tex, *written)] == before


def test_a_table_and_a_figure_of_one_name_are_refused(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    figure = PaperFigure(Figure(), pd.DataFrame())
    with pytest.raises(InputError, match="both called 'same'"):
        write_artifacts(Artifacts({"same": table()}, {"same": figure}), tmp_path, ORIGIN)
    assert list(tmp_path.iterdir()) == []


def test_no_text_of_a_table_is_markup_on_a_page_of_markdown() -> None:
    bad = "a|b <img src=x onerror=alert(1)> [c](javascript:alert(1)) `d`\n\n# e --->"
    frame = table().frame.assign(data=bad, name=bad, marks="***")
    hostile = replace(table(), data=frame, caption=bad, note=bad)
    text = markdown(hostile, replace(ORIGIN, study=bad).comments())
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    assert [token.type for token in tokens].count("heading_open") == 1
    assert [token.type for token in tokens].count("td_open") == 4 * len(frame)
    (comment,) = (token for token in tokens if token.type == "html_block")
    # What ends a comment stands at its own end alone.
    assert comment.content.index("-->") == len(comment.content.rstrip()) - 3
    inline = [part.type for token in tokens for part in token.children or []]
    assert set(inline) <= {"text", "text_special", "strong_open", "strong_close"}


def test_a_command_shows_what_is_chosen_under_the_names_that_readers_know(folder: Path) -> None:
    rows = ["p,label,model,answer", *(f"0.{i},{i % 2},{'ab'[i % 2]}-1,r{i % 3}" for i in range(9))]
    (folder / "t.csv").write_text("\n".join(rows))
    asked = ("score", "t.csv", "--show", "auroc,Brier", "--rename", "a-1=GPT-4o", "--out", "t.tex")
    heading = invoke(*asked).stdout.splitlines()[1].split()
    assert heading == ["model", "AUROC", "Brier"]
    assert "GPT-4o" in (folder / "t.tex").read_text()
    mistaken = invoke("score", "t.csv", "--show", "aurocc", "--out", "wrong", code=2)
    assert "--show: the column 'aurocc' is unknown (did you mean 'auroc'" in mistaken.stderr
    assert mistaken.stdout == ""
    assert not (folder / "wrong").exists()
    # Answers that may have cost money are not lost for a name that no column has.
    paid = invoke("omissions", "demonstration", "--show", "missingg")
    assert "warning: --show: the column 'missingg' is unknown" in paid.stderr
    assert "every column is shown" in paid.stderr
    assert {"precision", "recall", "omitted"} <= set(paid.stdout.split())
    unused = invoke("score", "t.csv", "--rename", "c-1=GPT-4o", "--rename", "b-1=Llama")
    assert unused.stderr.count("rename: no name is") == 1
    assert "warning: rename: no name is 'c-1'" in unused.stderr


def test_columns_are_written_as_their_header() -> None:
    written = columns_as(
        'model | brier:4± Brier score | value:2[] | p> p value | kept ""', p=p_value
    )
    assert written == (
        Column("model", "model"),
        Column("brier", "Brier score", digits=4, lower="brier_lower", upper="brier_upper"),
        Column("value", "value", digits=2, lower="lower", upper="upper"),
        Column("p", "p value", show=p_value, right=True),
        Column("kept", ""),
    )
    with pytest.raises(ValueError, match="'brier:x' is no column"):
        columns_as("model | brier:x")


def test_numbers_as_tables_show_them() -> None:
    assert [number(v) for v in (0.12345, None, float("nan"))] == ["0.123", "--", "--"]
    assert [number(v) for v in (math.inf, -math.inf)] == ["∞", "-∞"]
    assert [small(v) for v in (0.0, 0.00123, None)] == ["0", "1e-03", "--"]
    shown = [duration(v) for v in (2.5e-5, 0.0123, 1.5, 600.0, None)]
    assert shown == ["25 µs", "12.3 ms", "1.50 s", "10.0 min", "--"]


def test_what_several_tables_share_is_printed_once_and_stands_in_every_file(tmp_path: Path) -> None:
    warning, convention = "The model guesses.", "Passages at 0.99."
    tables = {
        name: with_note(with_note(replace(table(), note=f"Own {name}."), convention), warning)
        for name in ("first", "second")
    }
    findings = Findings("data", (warning,), tables)
    printed = io.StringIO()
    show_findings(Console(file=printed, width=200), findings)
    page = findings_page(findings).decode("utf-8")
    for text in (printed.getvalue(), page):
        assert text.count(warning) == 1
        assert text.count(convention) == 1
        assert text.count("Own first.") == text.count("Own second.") == 1
    findings.save(tmp_path)
    for name in tables:
        for suffix in (".tex", ".md"):
            text = (tmp_path / f"{name}{suffix}").read_text("utf-8")
            assert warning in text
            assert convention in text


def test_rows_of_a_frame_have_the_values_that_pandas_gives() -> None:
    frame = pd.DataFrame(
        {
            "whole": [1, 2],
            "share": [0.5, float("nan")],
            "text": ["x", None],
            "known": [True, False],
            "maybe": pd.array([1, None], "Int64"),
            "mixed": [np.float64(1.5), "x"],
            "lists": [[1], (2,)],
            "day": [pd.Timestamp("2026-01-01"), pd.NaT],
        }
    )
    for given in (frame, frame.iloc[:0]):
        rows = Table(given, (Column("whole", "whole"),)).records()
        wanted = given.to_dict("records")
        assert repr(rows) == repr(wanted)
        assert [list(map(type, row.values())) for row in rows] == [
            list(map(type, row.values())) for row in wanted
        ]
    chosen = Table(frame, (Column("whole", "whole"),)).records(["text", "whole"])
    assert chosen == frame[["text", "whole"]].to_dict("records")
