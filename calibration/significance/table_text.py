"""The table of methods and measures as text, for a page (Markdown) and a paper (LaTeX)."""

from __future__ import annotations

from calibration.significance.measures import MEASURES
from calibration.significance.table import MethodCell, MethodTable

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: rf"\{sign}" for sign in "&%$#_{}"},
}


def as_markdown(table: MethodTable, digits: int = 3) -> str:
    """Return the table as Markdown, with its note below."""
    titles = [MEASURES[name].title for name in table.measures]
    lines = [
        f"| Method | {' | '.join(titles)} |",
        f"| --- |{' ---: |' * len(titles)}",
    ]
    for method in table.methods:
        cells = [_markdown_cell(table.cell(method, name), digits) for name in table.measures]
        lines.append(f"| {' | '.join([_escaped_markdown(method), *cells])} |")
    return "\n".join([*lines, "", table.note().replace("*", r"\*")]) + "\n"


def as_latex(table: MethodTable, digits: int = 3) -> str:
    """Return the table as LaTeX that needs the package booktabs, with its note in a last row."""
    titles = [_escaped_latex(MEASURES[name].title) for name in table.measures]
    width = len(titles) + 1
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{l{'r' * len(titles)}}}",
        r"\toprule",
        " & ".join(["Method", *titles]) + r" \\",
        r"\midrule",
    ]
    for method in table.methods:
        cells = [_latex_cell(table.cell(method, name), digits) for name in table.measures]
        lines.append(" & ".join([_escaped_latex(method), *cells]) + r" \\")
    note = _escaped_latex(table.note()).replace("<", "$<$")
    lines += [
        r"\bottomrule",
        rf"\multicolumn{{{width}}}{{p{{\linewidth}}}}{{\footnotesize {note}}} \\",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _markdown_cell(cell: MethodCell, digits: int) -> str:
    marks = cell.stars.replace("*", r"\*")
    return f"{cell.estimate:.{digits}f}{marks} {_interval(cell, digits)}"


def _latex_cell(cell: MethodCell, digits: int) -> str:
    marks = f"$^{{{cell.stars}}}$" if cell.stars else ""
    return rf"{cell.estimate:.{digits}f}{marks} {{\scriptsize {_interval(cell, digits)}}}"


def _interval(cell: MethodCell, digits: int) -> str:
    return f"[{cell.lower:.{digits}f}, {cell.upper:.{digits}f}]"


def _escaped_markdown(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\|*_`" else sign for sign in text)


def _escaped_latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text)
