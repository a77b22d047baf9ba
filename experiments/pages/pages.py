"""Numbers as the page of a study shows them, and its templates."""

from __future__ import annotations

import math
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from experiments.findings.page import environment
from experiments.findings.text import in_sample_remark, number

if TYPE_CHECKING:
    from jinja2 import Environment

ABSENT = "–"
"""Text of an undefined number on a page."""


class Number(NamedTuple):
    """A number of a table.

    Attributes:
        text: the number as shown.
        sort: sort key; empty if the number is undefined.
        note: shown in small print below it.
        best: whether it is significantly the best of its column.
    """

    text: str
    sort: str = ""
    note: str = ""
    best: bool = False


def fixed(value: float | None, digits: int = 3) -> str:
    """A number with a fixed number of decimals and a real minus sign."""
    if value is None or math.isnan(value):
        return ABSENT
    return number(value, digits).replace("-", "\N{MINUS SIGN}")


def change(value: float | None, digits: int = 3) -> str:
    """A difference with its sign; zero has none."""
    shown = fixed(value, digits)
    is_more = value is not None and value > 0 and shown.strip("0.") != ""
    return f"+{shown}" if is_more else shown


def interval(lower: float, upper: float, digits: int = 3) -> str:
    """An interval; empty if it is undefined."""
    if math.isnan(lower) or math.isnan(upper):
        return ""
    # Beside a minus sign a dash would be misread.
    between = " to " if lower < 0 else "–"
    return f"{fixed(lower, digits)}{between}{fixed(upper, digits)}"


def report_templates() -> Environment:
    """Templates of the page of a study, with the functions that they call."""
    templates = environment(resources.files("experiments.pages") / "templates")
    templates.globals |= {"in_sample_remark": in_sample_remark, "absent": ABSENT}
    return templates
