"""Layouts of the files of known owners: the columns they are known by, and what these mean.

A layout is one entry of `LAYOUTS`; every command that reads claims knows it then.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar

from experiments.columns.options import ClaimColumns, LabelColumns, ProbabilityColumns
from factormodels.io.formats.self_judged import RIGHT
from factormodels.io.formats.selfcheck import ACCURATE

Wanted = TypeVar("Wanted", bound=LabelColumns)


@dataclass(frozen=True)
class Layout:
    """Columns that identify a tool's files, with their roles.

    Attributes:
        owner: whose files they are.
        keys: columns that these files have.
        label: the column of labels.
        true: the labels that mean true; every other is false.
        confidence: the column of a model's confidences; None: there is none.
        votes: the column of a model's answers; None: there is none.
    """

    owner: str
    keys: frozenset[str]
    label: str
    true: tuple[str, ...]
    confidence: str | None = None
    votes: str | None = None


LAYOUTS = (
    Layout(
        "tatsu-lab/conformal-factual-lm",
        frozenset(("subclaim", "gpt-score", "annotation")),
        *("annotation", (RIGHT,)),
        confidence="gpt-score",
    ),
    Layout(
        "SelfCheckGPT",
        frozenset(("main_sentences", "annotation", "responses.prompt")),
        *("annotation", (ACCURATE,)),
        votes="responses.prompt",
    ),
)


def layout_of(names: Collection[str]) -> Layout | None:
    """The layout that has its keys among the names of the columns of a table."""
    return next((layout for layout in LAYOUTS if layout.keys <= set(names)), None)


def with_layout(names: Collection[str], wanted: Wanted) -> tuple[Wanted, tuple[str, ...]]:
    """Fill in options with the layout of a known owner, and say in a sentence how.

    An option takes precedence over the layout.

    Args:
        names: names of the columns of the table.
        wanted: the options that were given.
    """
    layout = layout_of(names)
    if layout is None:
        return wanted, ()
    known: dict[str, object] = {}
    if wanted.label is None:
        known |= {"label": layout.label, "true": wanted.true or layout.true}
    if isinstance(wanted, ProbabilityColumns):
        if layout.confidence is not None and not wanted.p:
            known["p"] = (layout.confidence,)
    elif isinstance(wanted, ClaimColumns):
        if not (wanted.judgement or wanted.confidence or wanted.votes):
            known["confidence"] = layout.confidence
            known["votes"] = () if layout.votes is None else (layout.votes,)
        if not (wanted.sentence or wanted.position):
            known["in_order"] = True
    filled = wanted.model_copy(update=known)
    return filled, (f"Known as a file of {layout.owner}. {_meanings(filled)}",)


def _meanings(columns: LabelColumns) -> str:
    """Return the meanings of the columns of a known file, in a sentence."""
    meanings = {"label": columns.label, "true (every other label is false)": columns.true}
    if isinstance(columns, ProbabilityColumns):
        meanings["probability"] = columns.p
    elif isinstance(columns, ClaimColumns):
        meanings |= {
            "confidence": columns.confidence,
            "votes": columns.votes,
            "claims in order": "yes" if columns.in_order else "",
        }
    parts = (
        f"{meaning}: {value if isinstance(value, str) else ', '.join(value)}"
        for meaning, value in meanings.items()
        if value
    )
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."
