"""The templates of a report, and the cells of its tables that are too many for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from experiments.evaluators.marked_texts import VERDICTS
from experiments.findings.page import environment
from experiments.findings.text import in_sample_remark
from experiments.pages import texts

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from experiments.pages.response_page import ShownAnswer

INDEX = "index.html"
RESPONSE = "response.html"
ASSESSED = "assessed.html"


def report_templates() -> Environment:
    """The templates of the report, with what they call."""
    found = environment(resources.files("experiments.pages") / "templates")
    found.globals |= {
        "in_turn": texts.in_turn,
        "in_sample_remark": in_sample_remark,
        "posterior_cell": posterior_cell,
        "switched_cell": switched_cell,
        "worst": worst_verdict,
        "absent": texts.ABSENT,
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
        return Markup('<td class="num none">{}</td>\n').format(texts.ABSENT)
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
        f'<td class="num {kind}"{named} data-v="{escape(texts.in_turn(shown))}"{look}>'
        f"{escape(text or texts.ABSENT)}</td>"
    )


def _bar(text: str) -> str:
    """How long the bar behind a probability is; nothing behind what is none."""
    from markupsafe import escape

    return f' style="--p:{escape(text)}"' if text[:1] in ("0", "1") else ""
