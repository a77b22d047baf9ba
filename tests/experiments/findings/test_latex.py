"""Tables and figures fit every venue with any texts: nothing is left out, too wide or overlaps."""

from __future__ import annotations

import io
import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from experiments import draw, score
from experiments.cli.main import COMMANDS
from experiments.findings.artifacts import Artifacts, Origin, PaperFigure, write_artifacts
from experiments.findings.latex import PACKAGES, latex, latex_figure
from experiments.findings.table import (
    Column,
    Table,
    blocks,
    data_frame,
    interval_column,
    presented,
    renaming,
)
from experiments.findings.typst import typst_table
from experiments.findings.venues import POINTS, VENUES, Venue, fitted, venue_named
from experiments.study.reading import embedded_studies
from factormodels.datasets import load
from factormodels.io.source.files import write_text
from tests.experiments.findings.command_tables import kept_command_tables
from tests.experiments.findings.embedded_figures import of_commands, of_studies
from tests.experiments.findings.page_faults import HALF_INK, count_rules, page_faults
from tests.experiments.findings.study_tables import (
    RESULTS,
    kept_tables,
    table_of,
    tables_of_results,
)
from tests.experiments.findings.test_markup import HOSTILE, HOSTILE_IN_LATEX
from tests.refusals import refused

ROOT = Path(__file__).resolve().parents[3]

DOCUMENTS = {
    "article": r"\documentclass{article}",
    "acl": r"\documentclass[11pt,twocolumn]{article}"
    r"\usepackage[a4paper,textwidth=16cm,columnsep=0.6cm,textheight=24.7cm]{geometry}",
    "icml": r"\documentclass[10pt,twocolumn]{article}"
    r"\usepackage[textwidth=6.75in,columnsep=0.25in,textheight=9in]{geometry}",
    "neurips": r"\documentclass{article}\usepackage[textwidth=5.5in,textheight=9in]{geometry}",
    "iclr": r"\documentclass{article}\usepackage[textwidth=5.5in,textheight=9in]{geometry}",
    "aaai": r"\documentclass[letterpaper,twocolumn]{article}"
    r"\usepackage[textwidth=7in,columnsep=0.375in,textheight=9in]{geometry}",
    "slides": r"\documentclass{beamer}",
}
"""By venue a document with its widths."""


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


def test_every_venue_has_a_document() -> None:
    assert DOCUMENTS.keys() == VENUES.keys()


def numbers_of(text: str) -> set[str]:
    return set(re.findall(r"\d+\.\d+", text))


@pytest.mark.parametrize("venue", VENUES)
@pytest.mark.parametrize("name", TABLES)
def test_nothing_of_a_table_is_left_out(name: str, venue: str) -> None:
    text = latex(TABLES[name], "t", (), VENUES[venue])
    shown = numbers_of(text)
    for _, rows in blocks(TABLES[name]):
        for cell in (cell for row in rows for cell in row):
            assert numbers_of(cell.text + cell.interval) <= shown
    for column in TABLES[name].columns:
        assert (column.latex or column.title.split()[0]) in text
    if not VENUES[venue].floats:
        return
    # Every table has a caption and a label, and all but the first name the first.
    n_tables = text.count(r"\begin{tabular}")
    labels = re.findall(r"\\caption\{.+\}\\label\{tab:(.+)\}", text)
    assert labels == ["t", *(f"t-{number}" for number in range(2, n_tables + 1))]
    assert text.count(r"\ref{tab:t}") == n_tables - 1


def test_a_table_shrinks_a_little_then_goes_over_all_columns_then_is_split() -> None:
    venue = Venue(225.0, 465.0, 648.0)

    def layout(n_measures: int) -> str:
        return latex(table(3, n_measures, name="a"), "t", (), venue).splitlines()[1]

    assert [layout(n) for n in (0, 1, 2, 4, 12)] == [
        r"% layout: table, \normalsize",
        # A column holds it in letters of 9 points, as captions have.
        r"% layout: table, \small",
        r"% layout: table*, \normalsize",
        r"% layout: table*, \small",
        r"% layout: table*, \footnotesize, split by columns into 3 tables",
    ]
    # Each of the tables has the names of its rows.
    parts = latex(table(3, 12, name="a"), "t", (), venue)
    assert parts.count("implication & a 0 &") == 3


def test_parts_of_a_table_are_about_equally_wide() -> None:
    parts = latex(table(3, 5), "t", (), VENUES["acl"]).split(r"\end{tabular}")[:-1]
    # Greedily filled, the last part would have a single column besides the names.
    assert [part.count(r"\multicolumn{2}{c}{Accuracy}") for part in parts] == [3, 2]


def test_an_option_keeps_its_hyphens_and_a_negative_text_has_a_minus_sign() -> None:
    rows = [{"name": "--max-size", "value": "-1.5e-3 [-2, -1]", "day": "2026-11-30"}]
    columns = (Column("name", "name"), Column("value", "--", right=True), Column("day", "day"))
    text = latex(Table(rows, columns, "Of --max-size."), "t")
    minus = "$-$"
    shown = f"{minus}1.5e{minus}3 [{minus}2, {minus}1]"
    assert rf"-{{}}-max-size & {shown} & 2026-11-30 \\" in text
    assert "& -- &" in text
    assert r"\caption{Of -{}-max-size.}" in text


def test_few_models_with_many_scores_have_a_row_per_score_where_a_column_is_narrow() -> None:
    scores = tuple(Column(f"s{at}", f"Score {at}", digits=3) for at in range(8))
    numbers = {f"s{at}": at / 8 for at in range(8)}
    rows = [{"model": model, **numbers, "s0": 0.5} for model in ("x-1", "y")]
    of_models = Table(rows, (Column("model", "model"), *scores), "Scores.")
    text = latex(of_models, "t", (), VENUES["acl"])
    assert "\n & x-1 & y \\\\\n" in text
    assert "\nScore 0 & 0.500 & 0.500 \\\\\n" in text
    assert r"\begin{table}" in text
    # A row per model where that takes no more columns of the page.
    assert "\nmodel & Score 0 &" in latex(of_models, "t", (), Venue(600.0, 600.0))
    many = replace(of_models, data=[{**rows[0], "model": f"m{at}"} for at in range(8)])
    assert "\nmodel & Score 0 &" in latex(many, "t", (), VENUES["acl"])


@pytest.mark.parametrize(
    ("rows_of_block", "tables", "continued"),
    # A block has to be split if it is longer than a page, or stands after a few rows alone.
    [((13, 13, 13), 2, 0), ((28, 28), 2, 0), ((90,), 3, 2), ((4, 30), 2, 1)],
)
def test_a_block_that_a_page_holds_is_not_split(
    rows_of_block: tuple[int, ...], tables: int, continued: int
) -> None:
    names = [f"model {at}" for at, size in enumerate(rows_of_block) for _ in range(size)]
    data = {"block": names, "score": [f"score {at}" for at in range(len(names))]}
    text = latex(Table(data_frame(data), (Column("score", "score"),), "A.", "block"), "t", ())
    assert text.count("\\begin{tabular}") == tables
    assert text.count("(continued)") == continued
    # Every row is there, once and in order.
    assert re.findall(r"score \d+", text) == data["score"]


def test_a_cell_has_one_thing_and_no_tricks() -> None:
    text = latex(table(2, 1), "t")
    row = r"implication & lbp damped 0 & 0.637 & {\scriptsize [0.318, 1.000]} & 0.500 \\"
    assert row in text.splitlines()
    assert r"\multicolumn{2}{c}{Accuracy}" in text
    rows = [{"m": "x", "a": 0.5, "a_lower": 0.25, "a_upper": 0.75, "marks": "**"}]
    marked = replace(interval_column("a", "a", 2), stars="marks")
    text = latex(Table(rows, (Column("m", "m"), marked)), "t")
    # Marks touch their number.
    assert r"\begin{tabular}{lr@{}l@{\ }l}" in text
    assert r"x & 0.50 & \textsuperscript{**} & {\scriptsize [0.25, 0.75]} \\" in text
    tricks = ("lap{", "phantom", "resizebox", "penalty", r"\fontsize", "shortstack", "addtocounter")
    for name, latex_table in TABLES.items():
        for venue in VENUES.values():
            text = latex(latex_table, name, (), venue)
            assert not [trick for trick in tricks if trick in text]


def test_a_word_is_broken_only_where_it_is_wider_than_its_column() -> None:
    broken = latex(TABLES["unbroken"], "t", (), VENUES["article"])
    assert r"aaa\allowbreak aaa" in broken
    assert r"implication & https" in broken
    assert "allowbreak" not in latex(TABLES["wordy"], "t", (), VENUES["article"])


@pytest.mark.parametrize(("value", "shown"), [(math.inf, r"$\infty$"), (-math.inf, r"$-$$\infty$")])
def test_an_infinite_number_is_a_sign_and_changes_nothing_else(value: float, shown: str) -> None:
    columns = (Column("m", "model"), *(Column(name, name, digits=3) for name in "ab"))

    def rows(other: float) -> str:
        data = [{"m": "x", "a": other, "b": 0.5}, {"m": "y", "a": 0.25, "b": 0.75}]
        return latex(Table(data, columns, "Losses."), "t", (), VENUES["acl"])

    assert rf"x & {shown} & 0.500 \\" in rows(value)
    assert rows(value).replace(shown, "0.125") == rows(0.125)


def test_a_negative_end_of_an_interval_takes_the_room_of_its_minus_sign() -> None:
    def layout(lower: float) -> str:
        rows = [{"m": "x", "a": 0.5, "a_lower": lower, "a_upper": 0.75}]
        columns = (Column("m", "m"), interval_column("a", "a", 3))
        return latex(Table(rows, columns, "Means."), "t", (), Venue(109.0, 109.0, size=11))

    # The positive end just fits; a minus sign is wider than a hyphen.
    assert r"% layout: table, \normalsize" in layout(0.25)
    assert r"% layout: table, \normalsize" not in layout(-0.25)


def test_a_table_or_figure_without_a_caption_is_called_by_its_stem() -> None:
    bare = Table([{"a": 1.0}], (Column("a", "a", digits=1),))
    assert r"\caption{losses}\label{tab:losses}" in latex(bare, "losses")
    assert r"\caption{curve}\label{fig:curve}" in latex_figure("curve", "", 100.0, wide=False)


def test_notes_are_of_columns_that_are_shown_and_use_the_names_of_readers() -> None:
    columns = (
        Column("m", "model"),
        Column("a", "a", digits=1, note="a: the share of x-1."),
        Column("b", "b", digits=1, note="b: its rest."),
        Column("c", "c", digits=1, note="b: its rest."),
    )
    data = [{"m": "x-1", "a": 0.1, "b": 0.2, "c": 0.3}]
    whole = Table(data, columns, "Of x-1.", note="Stars: against x-1.")
    assert whole.notes == "a: the share of x-1. b: its rest. Stars: against x-1."
    shown = presented(whole, {"x-1": "Xenia"}, ["b"])
    assert shown.notes == "b: its rest. Stars: against Xenia."
    assert "x-1" not in latex(shown, "t")


def test_the_names_of_readers_stand_in_sentences_and_figures_too() -> None:
    rows = [
        {"model": model, "response": at // 3, "p": (at % 7 + shift) / 9, "label": at % 7 > 3}
        for at in range(60)
        for shift, model in ((1, "x-1"), (2, "another model that has a long name"))
    ]
    names = {"x-1": "Xenia", "another model that has a long name": "Yuri"}
    scores = score(rows, scores=["brier"], n_bootstrap=5, resamples=20).presented(names)
    assert any(sentence.startswith("Xenia has the lowest") for sentence in scores.sentences)
    for shown in scores.draw().values():
        texts = [text.get_text() for text in shown.figure.findobj(Text)]
        assert any("Xenia" in text for text in texts)
        assert any("Yuri" in text for text in texts)
        assert not [text for text in (*texts, shown.caption) if "x-1" in text or "long" in text]


def test_a_model_called_p_is_renamed_and_the_symbol_is_not(tmp_path: Path) -> None:
    rows = [
        {"response": at // 3, "p": (at % 7) / 6, "q": (at % 5) / 4, "label": at % 7 > 3}
        for at in range(60)
    ]
    result = score(rows, p=["p", "q"], scores=["brier", "calibration_slope"], resamples=200)
    result.save(tmp_path, rename={"p": "FactReasoner"})
    scores, tests = ((tmp_path / f"{stem}.md").read_text() for stem in ("scores", "tests"))
    assert "| FactReasoner |" in scores
    assert "p < 0.05, " in scores.replace("\\", "")
    assert "against FactReasoner" in scores
    assert "(Holm)" in scores
    assert "q minus FactReasoner" in tests
    assert "difference | covers | p | corrected |" in tests
    assert "a threshold on the probability separates" in tests
    for prose in (False, True):
        renamed = renaming({"p": "FR", "P": "Prior"}, prose=prose)
        symbols = "** p < 0.01, p = .5, p>½, p-value, P(true)"
        assert renamed(f"p beats q: {symbols}") == f"FR beats q: {symbols}"
        assert renamed("p = q (MCB 0.1)") == "FR = q (MCB 0.1)"


def test_the_article_of_a_sentence_is_no_name() -> None:
    renamed = renaming({"a": "Anna"}, prose=True)
    assert renamed("a beats b with a probability of 1; than a, b is worse.") == (
        "Anna beats b with a probability of 1; than Anna, b is worse."
    )
    assert renaming({"a": "Anna"})("b minus a, a minus b") == "b minus Anna, Anna minus b"
    renamed = renaming({"a-1": "A Inc."}, prose=True)
    assert renamed("No star is possible against a-1. It beats a-1, b.") == (
        "No star is possible against A Inc. It beats A Inc., b."
    )
    # The column of the file keeps its name.
    in_prose = renaming({"gpt": "GPT-4o"}, prose=True)
    assert in_prose("Column 'gpt' holds what gpt's authors say of 'my gpt', gpt.") == (
        "Column 'gpt' holds what GPT-4o's authors say of 'my gpt', GPT-4o."
    )


def test_words_and_scores_of_a_table_are_chosen() -> None:
    names = {"lbp damped 0": "Damped LBP", "data 0": "Data"}
    shown = presented(TABLES["wide"], names, ["m2", "m0"])
    assert [column.name for column in shown.columns] == ["view", "backend", "m2", "m0"]
    (title, rows), *_ = blocks(shown)
    assert title == "Data: 94 responses, 678 atoms"
    assert [row[1].text for row in rows[:2]] == ["Damped LBP", "lbp damped 1"]
    # A table without any of them stays whole.
    assert presented(TABLES["narrow"], {}, ["brier"]).columns == TABLES["narrow"].columns


def test_a_venue_is_a_name_or_widths() -> None:
    assert venue_named("219x455").page == 455.0
    assert venue_named("397.5").column == 397.5
    refused("did you mean 'icml'", venue_named, "icmll")
    refused("its column is wider", venue_named, "455x219")


def test_tables_of_every_embedded_study_and_question_are_in_the_gate() -> None:
    kept = {study for each in kept_tables() for study in each["studies"]}
    questions = {
        path.stem.replace("_", "-") for path in (ROOT / "notebooks" / "questions").glob("*.py")
    }
    # What docs/results has needs not be kept twice.
    written = {path.name for path in RESULTS.iterdir() if any(path.glob("*.md"))}
    assert {*embedded_studies(), *questions} <= kept | written


def test_tables_of_every_command_are_in_the_gate() -> None:
    kept = {each["command"] for each in kept_command_tables()}
    # These two open a page and write one, and `draw` has a figure alone.
    assert set(COMMANDS) - {"explore", "report", "draw"} <= kept


def latex_lacks() -> str:
    """LaTeX packages that the tables need and the installation lacks."""
    if shutil.which("pdflatex") is None:
        return "there is no pdflatex"
    for file in NEEDED:
        if subprocess.run(["kpsewhich", file], capture_output=True).returncode:
            return f"this LaTeX has no {file}"
    return ""


NEEDED = ("array.sty", "booktabs.sty", "graphicx.sty", "geometry.sty", "beamer.cls", "pgfmath.sty")
"""What is in packages of their own in some distributions; `make latex` installs all of them."""

with_latex = pytest.mark.skipif(bool(latex_lacks()), reason=f"{latex_lacks()}: see make latex")


def compiled(folder: Path, *parts: str) -> str:
    """Compile a document of some parts to paper.pdf, and return what pdflatex says of it."""
    document, begin = "\n".join(parts), r"\begin{document}"
    half_ink = document.replace(begin, f"{HALF_INK}\n{begin}", 1)
    (folder / "paper.tex").write_text(half_ink, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run(
        [*command, "paper.tex"], cwd=folder, capture_output=True, text=True, errors="replace"
    )
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


OVER = r"(?:Overfull .[hv]box|Float too large|LaTeX Warning: Text page).*"


@cache
def embedded() -> dict[str, Table]:
    """Tables of many shapes, and those of commands and of every embedded study and question."""
    studies = {f"study-{at}": table_of(each) for at, each in enumerate(kept_tables())}
    commands = {
        # pdfTeX makes this letter of two, ink over ink.
        f"{each['command']}-{each['name']}-{at}": table_of(replaced(each, "ł", "l"))
        for at, each in enumerate(kept_command_tables())
    }
    return TABLES | studies | tables_of_results() | commands


def replaced(kept: Mapping[str, Any], old: str, new: str) -> Mapping[str, Any]:
    """A kept table with another letter."""
    table: dict[str, Any] = json.loads(json.dumps(kept, ensure_ascii=False).replace(old, new))
    return table


@cache
def latex_at(venue: str, name: str) -> str:
    """LaTeX of an embedded table for a venue."""
    return latex(embedded()[name], name, (), VENUES[venue])


def set_at(venue: str, folder: Path, tables: Iterable[str], *preamble: str) -> str:
    """Compile embedded tables to paper.pdf, and return what pdflatex says of it."""
    for name in tables:
        write_text(folder / f"{name}.tex", latex_at(venue, name))
    inputs = [f"\\input{{{name}}}" for name in tables]
    if venue == "slides":
        inputs = [f"\\begin{{frame}}[allowframebreaks]\n{each}\n\\end{{frame}}" for each in inputs]
    else:
        # LaTeX keeps few floats that wait.
        inputs[5::6] = [rf"{each}\clearpage" for each in inputs[5::6]]
    begin, end = r"\begin{document}", r"\end{document}"
    return compiled(folder, DOCUMENTS[venue], *PACKAGES, *preamble, begin, *inputs, end)


NARROW = ("acl", "slides")
"""The narrowest column of a paper, and slides, which have no floats."""

EVERY_VENUE = [
    pytest.param(venue, marks=[] if venue in NARROW else pytest.mark.nightly) for venue in VENUES
]

BARE = {"slides": r"\setbeamertemplate{navigation symbols}{}"}
"""By venue a line of the preamble that leaves out what takes long on each page and is not ours."""


# A page of slides takes several times as long as one of a paper. The test below takes every table,
# nightly.
@pytest.mark.slow
@with_latex
@pytest.mark.parametrize(("venue", "step"), [("acl", 8), ("slides", 24)])
def test_pages_with_tables_can_be_read_and_hold_nothing_too_wide_or_too_high(
    venue: str, step: int, tmp_path: Path
) -> None:
    tables = [*TABLES, *[name for name in embedded() if name not in TABLES][::step]]
    log = set_at(venue, tmp_path, tables, *filter(None, [BARE.get(venue)]))
    assert re.findall(OVER, log) == []
    assert page_faults(tmp_path / "paper.pdf") == []


@pytest.mark.slow
@pytest.mark.nightly
@with_latex
@pytest.mark.parametrize("venue", VENUES)
def test_every_table_can_be_read_at_every_venue(venue: str, tmp_path: Path) -> None:
    """Some thousand pages."""
    assert re.findall(OVER, set_at(venue, tmp_path, embedded())) == []
    assert page_faults(tmp_path / "paper.pdf") == []


@with_latex
def test_faults_of_a_page_are_noticed(tmp_path: Path) -> None:
    compiled(
        tmp_path,
        *(r"\documentclass{article}", *PACKAGES, r"\begin{document}"),
        r"\footnotesize 0.42\rlap{\textsubscript{0.31}}\textsuperscript{0.57} and 0.86",
        r"\par\noindent\hspace*{-200pt}lost\clearpage",
        # The caption of an old table, whose class leaves no room below.
        r"\begin{table}\centering\caption{A gap}",
        r"\begin{tabular}{l}\toprule one cell\\\bottomrule\end{tabular}\end{table}",
        r"\clearpage over\llap{written}\end{document}",
    )
    assert page_faults(tmp_path / "paper.pdf") == [
        "page 1: 'lost' is outside the page",
        "page 1: '0.57' touches '0.31'",
        "page 2: 'Table1:Agap' touches a rule",
        "page 3: 'overwritten' has ink over ink",
    ]


SPLIT_BY_INFINITY = r"""
\begin{table*}\centering\caption{Losses.}
\begin{tabular}{lr}\toprule m & a\\\midrule x & $\infty$\\\bottomrule\end{tabular}\end{table*}
\begin{table*}\centering\caption{Continued.}
\begin{tabular}{lr}\toprule m & b\\\midrule x & 0.500\\\bottomrule\end{tabular}\end{table*}
"""
"""What was once made of one table with an infinite log loss."""


@with_latex
def test_an_infinite_log_loss_splits_no_table(tmp_path: Path) -> None:
    def rules(*parts: str) -> list[int]:
        compiled(tmp_path, DOCUMENTS["acl"], *PACKAGES, *parts, r"\end{document}")
        return count_rules(tmp_path / "paper.pdf")

    columns = (Column("m", "m"), Column("a", "log loss", digits=3), Column("b", "Brier", digits=3))
    data = [{"m": "x", "a": math.inf, "b": 0.5}]
    text = latex(Table(data, columns, "Losses."), "t", (), VENUES["acl"])
    assert rules(r"\begin{document}", text) == [3]
    assert rules(r"\begin{document}", SPLIT_BY_INFINITY) == [6]


@with_latex
@pytest.mark.parametrize("taken", ["made/curve", "./made/curve.tex", "curve"])
def test_a_figure_is_taken_in_from_any_folder(taken: str, tmp_path: Path) -> None:
    folder = (tmp_path / taken).parent
    folder.mkdir(exist_ok=True)
    shown = PaperFigure(Figure((2.0, 1.0)), data_frame([]), "A curve")
    write_artifacts(Artifacts(figures={"curve": shown}), folder, Origin("t", "0" * 64))
    taken_in = [r"\begin{document}", rf"\input{{{taken}}}", r"\end{document}"]
    log = compiled(tmp_path, DOCUMENTS["article"], *PACKAGES, *taken_in)
    assert f"{folder.relative_to(tmp_path) / 'curve.pdf'}" in log.replace("\n", "")


@pytest.mark.slow
@with_latex
@pytest.mark.parametrize("venue", EVERY_VENUE)
def test_latex_sets_a_table_of_any_texts(venue: str, tmp_path: Path) -> None:
    texts = list(HOSTILE_IN_LATEX)
    table = Table(
        data_frame({"a": texts, "b": texts[::-1], "p": [0.5] * len(texts), "g": texts}),
        (Column("a", texts[0]), Column("b", texts[1]), Column("p", "p", digits=3)),
        "\n".join(texts),
        "g",
        "\n".join(texts),
    )
    around = (r"\begin{frame}[allowframebreaks]", r"\end{frame}") if venue == "slides" else ("", "")
    write_text(tmp_path / "t.tex", latex(table, "t", texts, VENUES[venue]))
    log = compiled(
        tmp_path,
        *(DOCUMENTS[venue], *PACKAGES, r"\begin{document}", around[0], r"\input{t}", around[1]),
        r"\end{document}",
    )
    assert "passwd)" not in log


@pytest.mark.parametrize("venue", VENUES)
@pytest.mark.parametrize("inches", [2.0, 3.4, 6.9, 12.0])
def test_a_figure_fits_its_place_and_keeps_its_own_width(inches: float, venue: str) -> None:
    figure, room = Figure((inches, 2.0)), VENUES[venue]
    with fitted(figure, room) as wide:
        # In points of LaTeX; the last digit is rounding.
        assert figure.get_figwidth() * POINTS <= (room.page if wide else room.column) + 1e-9
    assert figure.get_figwidth() == inches
    assert not wide or room.page > room.column


@pytest.fixture(scope="module")
def every_figure() -> dict[str, PaperFigure]:
    """Figures of commands and of studies, and graphs."""
    return {**of_commands(), **of_studies()}


@pytest.fixture(scope="module")
def few_figures() -> dict[str, PaperFigure]:
    """A figure of a column, one of a page, one that is wider than either, and a graph."""
    made = {
        f"wide-{inches:g}": PaperFigure(Figure((inches, 2.0)), data_frame([]), "Empty.")
        for inches in (3.0, 6.5, 12.0)
    }
    return {**made, **draw(load("at-odds").graphs[0]).draw()}


@pytest.mark.slow
@with_latex
@pytest.mark.parametrize(
    ("venue", "drawn"),
    [
        *((venue, "few_figures") for venue in NARROW),
        *(pytest.param(venue, "every_figure", marks=pytest.mark.nightly) for venue in VENUES),
    ],
)
def test_latex_sets_no_figure_too_wide(
    venue: str, drawn: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    figures = request.getfixturevalue(drawn)
    origin = Origin("t", "0" * 64)
    write_artifacts(Artifacts(figures=figures), tmp_path, origin, VENUES[venue])
    around = (r"\begin{frame}[allowframebreaks]", r"\end{frame}") if venue == "slides" else ("", "")
    inputs = [f"{around[0]}\n\\input{{{name}.tex}}\n{around[1]}\n\\clearpage" for name in figures]
    parts = [DOCUMENTS[venue], *PACKAGES, r"\begin{document}", *inputs, r"\end{document}"]
    assert re.findall(OVER, compiled(tmp_path, *parts)) == []


HOSTILE_IN_TYPST = (
    '#panic("x") *b* _e_ $x$ @ref <label> // c',
    '"quoted" \\ \\u{41}',
    "]#[",
    "= no",
)


def test_typst_sets_tables_of_any_texts(tmp_path: Path) -> None:
    compiler = pytest.importorskip("typst")
    pypdf = pytest.importorskip("pypdf")
    texts = [*HOSTILE, *HOSTILE_IN_LATEX, *HOSTILE_IN_TYPST]
    rows = [{"a": text, "b": text[::-1], "p": 0.5, "g": text} for text in texts]
    columns = (Column("a", texts[0]), Column("b", texts[-1]), Column("p", "p", digits=3))
    tables = [Table(rows, columns, "Hostile.", "g"), *TABLES.values()]
    source = tmp_path / "tables.typ"
    source.write_text("".join(f"#{typst_table(table).strip()}\n" for table in tables), "utf-8")
    pages = pypdf.PdfReader(io.BytesIO(compiler.compile(source))).pages
    seen = "".join("".join(page.extract_text().split()) for page in pages)
    for words in ('#panic("x")*b*', '"quoted"\\\\u{41}', "lbpdamped129"):
        assert words in seen
