"""A table as text: what CSV keeps of values, and that no sign of a text acts on its page."""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from experiments.findings.latex import latex
from experiments.findings.markup import (
    csv_text,
    escape_latex,
    escape_markdown,
    latex_comments,
    markdown_table,
)
from experiments.findings.table import Table, text_columns
from factormodels.control_characters import printable


def test_csv_keeps_integers_and_leaves_out_what_is_undefined() -> None:
    rows: list[dict[str, Any]] = [
        {"n": 1, "x": 0.1, "text": 'a,"b"'},
        {"n": None, "x": math.nan, "text": ""},
        {"n": 3, "x": 1 / 3, "text": "c"},
    ]
    expected = 'n,x,text\n1,0.1,"a,""b"""\n,,\n3,0.3333333333333333,c\n'
    assert csv_text(rows) == expected
    # A frame is written as its columns are: this one holds floats.
    assert csv_text(pd.DataFrame({"n": [1, None]})) == 'n\n1.0\n""\n'


def test_a_markdown_table_has_as_many_cells_in_every_line() -> None:
    text = markdown_table(["a", "b"], [False, True], [["x", "1"], ["y", "2"]])
    assert text == "| a | b |\n| --- | ---: |\n| x | 1 |\n| y | 2 |\n"


HOSTILE = (
    r"a|b\c*d* _e_ __f__ `g` ~~h~~ $i$",
    "<script>alert(1)</script> <!-- x --> <?y?> <http://example.org> &lt;b&gt; &#60;",
    "![x](http://example.org/pixel.png) [y](javascript:alert(1)) [a][b] [a]: /z",
    "one\ntwo\r\n\n| three |\n\x1b[31m\u2028four",
    "# no heading",
    "- no list",
    "learned_priors [0.1, 0.2] <0.001 R&D 5 > 4 Pr* max|Δp|",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_reader_of_markdown_sees_the_text_and_no_markup(text: str) -> None:
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    shown = " ".join(printable(text).split())
    page = markdown_table(
        [escape_markdown(text), "b"], [False, False], [[escape_markdown(text), "x"]]
    )
    tokens = reader.parse(f"{page}\n{escape_markdown(text)}\n")
    kinds = [token.type for token in tokens if token.type.endswith("_open")]
    assert kinds == [
        "table_open", "thead_open", "tr_open", "th_open", "th_open",
        "tbody_open", "tr_open", "td_open", "td_open", "paragraph_open",
    ]  # fmt: skip
    written = [token for token in tokens if token.type == "inline"]
    parts = [[part.type for part in token.children or []] for token in written]
    assert all(set(kinds) <= {"text", "text_special"} for kinds in parts)
    texts = ["".join(part.content for part in token.children or []) for token in written]
    assert texts == [shown, "b", shown, "x", shown]


def test_text_without_markup_stays_legible() -> None:
    text = "learned_priors [0.1, 0.2] <0.001 R&D -0.5 -- F1@K #S 5 > 4"
    assert escape_markdown(text) == text


@pytest.mark.parametrize("character", list("&%$#_{}~^\\<>|"))
def test_no_character_of_latex_stays_active(character: str) -> None:
    escaped = escape_latex(character)
    assert escaped != character
    assert escaped.startswith(("\\", "$"))


@pytest.mark.parametrize("character", list("αβγδεζηθικλμνξπρςστυφχψωΓΔΘΛΞΠΣΦΨΩ−±×·≤≥≈≠→∞′–—"))
def test_no_sign_is_left_that_pdftex_lacks(character: str) -> None:
    assert escape_latex(character).isascii()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("σ", r"$\sigma$"),
        ("ω", r"$\omega$"),
        ("max |Δp|", r"max \textbar{}$\Delta$p\textbar{}"),
        ("π and ξ", r"$\pi$ and $\xi$"),
        ("é", "é"),
    ],
)
def test_a_sign_is_the_command_of_its_name(text: str, wanted: str) -> None:
    assert escape_latex(text) == wanted


HOSTILE_IN_LATEX = (
    "first line\nR&D and \\input{/etc/passwd}",
    *("a\r\\end{document}", "a\x0b50%", "a\x85#1", "a\u2028$x", "a\n\n\\par"),
    *("[1] first", "*starred*", "^^M&", "中文 and Ελ", "\ud800\x1b[2J", "a\tb", "–", "`` ?` --"),
)


@pytest.mark.parametrize("text", HOSTILE_IN_LATEX)
def test_no_line_of_a_comment_leaves_it(text: str) -> None:
    lines = latex_comments([text, "x"]).split("\n")
    assert lines[-2:] == ["% x", ""]
    # The characters at which some reader of lines ends one.
    for line in lines[:-1]:
        assert line.startswith("% ")
        assert line.splitlines() == [line]


@pytest.mark.parametrize("text", HOSTILE_IN_LATEX)
def test_an_escaped_text_is_one_line_of_plain_signs(text: str) -> None:
    escaped = escape_latex(text)
    assert escaped.splitlines() == [escaped]
    assert not re.search(r"(?<!\\)[&%#_]|\^|~|\\(input|end|par)\b", escaped)
    assert escaped.count("{") - escaped.count(r"\{") == escaped.count("}") - escaped.count(r"\}")


def test_a_row_does_not_begin_with_an_option_of_the_one_before() -> None:
    text = latex(Table(pd.DataFrame({"t": ["[1]", "*"]}), text_columns("t")), "t")
    assert "{}[1] \\\\\n{}* \\\\\n" in text


def test_letters_of_other_scripts_are_there_for_engines_that_know_them() -> None:
    assert escape_latex("é中") == r"é{\ifdefined\Uchar 中\else [U+4E2D]\fi}"
