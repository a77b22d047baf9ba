"""A table as text: what CSV keeps of values, and that no sign of a text acts on its page."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from calibration.table_markup import (
    csv_text,
    escape_latex,
    escape_markdown,
    latex_table,
    markdown_table,
)


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


def test_a_latex_table_has_a_rule_above_every_block() -> None:
    blocks = [("first", [["x", "1"]]), ("", [["y", "2"]])]
    text = latex_table("lr", ["a", "b"], blocks, width=2, comments=["a comment"], foot="a note")
    assert text.splitlines() == [
        "% a comment",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"a & b \\",
        r"\midrule",
        r"\multicolumn{2}{l}{\textit{first}} \\",
        r"x & 1 \\",
        r"\midrule",
        r"y & 2 \\",
        r"\bottomrule",
        r"\multicolumn{2}{p{\linewidth}}{\footnotesize a note} \\",
        r"\end{tabular}",
    ]


def test_signs_of_markdown_mean_themselves() -> None:
    assert escape_markdown(r"a|b\c*d") == r"a\|b\\c*d"
    assert escape_markdown("a_*", "*_") == r"a\_\*"


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
