"""The templates of a report, and the cells of its tables that are too many for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.evaluators.marked_texts import VERDICTS
from experiments.findings.page import environment
from experiments.findings.text import in_sample_remark, number

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from experiments.pages.response_page import ShownAnswer


ABSENT = "–"
"""What a page shows where a number is undefined."""

SEPARATOR = "|"
"""Between the texts that an element shows in turn."""


class Number(NamedTuple):
    """A number of a table.

    Attributes:
        text: as it is shown.
        sort: what it is sorted by; empty where it is undefined.
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
    """A difference with its sign, which zero has not."""
    shown = fixed(value, digits)
    is_more = value is not None and value > 0 and shown.strip("0.") != ""
    return f"+{shown}" if is_more else shown


def interval(lower: float, upper: float, digits: int = 3) -> str:
    """An interval; empty where it is undefined."""
    if math.isnan(lower) or math.isnan(upper):
        return ""
    # Beside a minus sign a dash would be misread.
    between = " to " if lower < 0 else "–"
    return f"{fixed(lower, digits)}{between}{fixed(upper, digits)}"


def in_turn(texts: Sequence[str]) -> str:
    """The texts that an element shows in turn, as its attribute holds them."""
    # An id may hold whatever it likes.
    return SEPARATOR.join(text.replace(SEPARATOR, "¦") for text in texts)


def label_word(label: bool | None) -> str:
    """A human label as a word."""
    return "unlabelled" if label is None else "true" if label else "false"


INDEX = "index.html"
RESPONSE = "response.html"
ASSESSED = "assessed.html"


def report_templates() -> Environment:
    """The templates of the report, with what they call."""
    found = environment(resources.files("experiments.pages") / "templates")
    found.globals |= {
        "in_turn": in_turn,
        "in_sample_remark": in_sample_remark,
        "posterior_cell": posterior_cell,
        "switched_cell": switched_cell,
        "worst": worst_verdict,
        "absent": ABSENT,
    }
    return found


def worst_verdict(cards: Sequence[Mapping[str, Any]], claims: Sequence[int]) -> str:
    """The verdict on the least supported of some claims."""
    found = {cards[number]["verdict"] for number in claims}
    return next(one for one in VERDICTS if one in found)


# A page has thousands of these, for which a macro of a template takes ten times as long.


@lru_cache(maxsize=10_000)
def posterior_cell(told: ShownAnswer) -> Markup:
    """The cell of a table that holds what a cell of the study says of a claim."""
    from markupsafe import Markup, escape

    if told.error:
        return Markup('<td class="num failed" title="{}">{}</td>\n').format(told.error, told.text)
    if not told.text:
        return Markup('<td class="num none">{}</td>\n').format(ABSENT)
    unsure = (" unsure", ' title="not converged"') if told.unsure else ("", "")
    text = escape(told.text)
    return Markup(f'<td class="num p{unsure[0]}"{_bar(told.text)}{unsure[1]}>{text}</td>\n')


def switched_cell(shown: Sequence[str], first: int, kind: str, name: str = "") -> Markup:
    """The cell of a table that shows one of several texts in turn.

    Args:
        shown: the texts.
        first: the number of that which is shown first.
        kind: what they are: p, change, or nothing of these.
        name: what it is called where a row is shown as a card.
    """
    from markupsafe import Markup, escape

    text = shown[first]
    named = f' data-name="{escape(name)}"' if name else ""
    look = _bar(text) if kind == "p" else ""
    if kind == "change":
        look = f' data-sign="{escape(text[:1])}"'
    return Markup(
        f'<td class="num {kind}"{named} data-v="{escape(in_turn(shown))}"{look}>'
        f"{escape(text or ABSENT)}</td>"
    )


def _bar(text: str) -> str:
    """How long the bar behind a probability is; nothing behind what is none."""
    from markupsafe import escape

    return f' style="--p:{escape(text)}"' if text[:1] in ("0", "1") else ""
