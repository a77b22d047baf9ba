"""Numbers, counts, durations and verdicts as text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from factormodels.nouns import counted

if TYPE_CHECKING:
    from factormodels.fact_graph import FactGraph

ABSENT = "--"
"""Text of an undefined number in a table."""


def some_of(names: Sequence[object], most: int = 3) -> str:
    """The first of some names, separated by commas, and "..." if there are more."""
    return ", ".join(map(str, names[:most])) + (", ..." if len(names) > most else "")


def in_sample_remark(passages: int) -> str:
    """Remark for results on passages to which the lexical model was fitted."""
    return (
        f"in-sample: the lexical model was fitted to {counted(passages, 'passage')} of these; what "
        "is measured against labels flatters it"
    )


def labeled_sizes(graphs: Iterable[FactGraph]) -> str:
    """Numbers of labeled claims and of their responses, in words."""
    counts = [sum(atom.label is not None for atom in graph.atoms) for graph in graphs]
    return (
        f"{counted(sum(counts), 'labeled claim')} of {counted(sum(map(bool, counts)), 'response')}"
    )


def number(value: float | None, digits: int = 3) -> str:
    """`value` with a fixed number of decimals, "∞" or "-∞", or `ABSENT` if it is None or NaN."""
    if value is None or math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:z.{digits}f}"  # z: no sign for numbers that round to zero


def small(value: float | None) -> str:
    """A difference in scientific notation with one decimal; zero as "0"."""
    if value is None or math.isnan(value):
        return ABSENT
    return "0" if value == 0 else f"{value:.0e}"


def p_value(value: float | None) -> str:
    """A p-value with three decimals, or "<0.001" if it is smaller."""
    return "<0.001" if value is not None and value < 0.001 else number(value)


def p_equals(value: float | None) -> str:
    """A p-value in a sentence: "p = 0.031", or "p < 0.001"."""
    text = p_value(value)
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


def interval(lower: float | None, upper: float | None, digits: int = 3) -> str:
    """An interval with a fixed number of decimals, or `ABSENT` if it has no ends."""
    ends = (number(lower, digits), number(upper, digits))
    return ABSENT if ends == (ABSENT, ABSENT) else f"[{ends[0]}, {ends[1]}]"


def with_interval(value: float, lower: float, upper: float) -> str:
    """A number with its interval, where there is one."""
    return number(value) if math.isnan(lower) else f"{number(value)} {interval(lower, upper)}"


def shortened(text: str) -> str:
    """A text, shortened if it is long, for a cell of a table."""
    return textwrap.shorten(text, _TEXT_SHOWN, placeholder=" ...")


def word(value: bool | None) -> str:
    """Truth value as a word; empty if there is none."""
    return "" if value is None or value != value else str(value).lower()


_TEXT_SHOWN = 160

MOST_SECONDS = 1e7
"""Longer durations, such as exact inference in a wide graph may take, are not given in minutes."""


def duration(seconds: float | None) -> str:
    """A duration with a suitable unit."""
    if seconds is None or math.isnan(seconds):
        return ABSENT
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 120:
        return f"{seconds:.2f} s"
    return f"{seconds / 60:,.1f} min" if seconds < MOST_SECONDS else "over 100 days"


UNDECIDED = 1e-9
"""A claim is undecided if |P - 1/2| is at most this: `calibration`'s `DECISION_TOLERANCE`.

It is not imported from there, since the import takes longer than the posterior of a small graph.
"""


def verdict(probability: float) -> str:
    """Verdict of a posterior on a claim: supported, contradicted or undecided."""
    if abs(probability - 0.5) <= UNDECIDED:
        return "undecided"
    return "supported" if probability > 0.5 else "contradicted"
