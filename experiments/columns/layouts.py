"""Layouts of known tools' files: identifying columns, and their roles.

Every command that reads claims recognizes the entries of `LAYOUTS`.
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
        owner: name of the tool.
        keys: columns that identify these files.
        label: the column of labels.
        true: the labels that mean true; all others mean false.
        confidence: the column of a model's confidences, or None.
        votes: the column of a model's answers, or None.
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
    """The layout whose keys are among the columns of a table, or None."""
    return next((layout for layout in LAYOUTS if layout.keys <= set(names)), None)


def with_layout(names: Collection[str], wanted: Wanted) -> tuple[Wanted, tuple[str, ...]]:
    """Complete options with the layout of a known tool, and return a sentence on it.

    An option takes precedence over the layout.

    Args:
        names: names of the columns of the table.
        wanted: the given options.
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
        if not (wanted.judgment or wanted.confidence or wanted.votes):
            known["confidence"] = layout.confidence
            known["votes"] = () if layout.votes is None else (layout.votes,)
        if not (wanted.sentence or wanted.position):
            known["in_order"] = True
    filled = wanted.model_copy(update=known)
    return filled, (f"Known as a file of {layout.owner}. {_meanings(filled)}",)


def _meanings(columns: LabelColumns) -> str:
    """Return a sentence on the meanings of a known file's columns."""
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
