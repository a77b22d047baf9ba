"""Verdicts of assessors on the claims of a response, as recorded in the metadata of its graph.

`metadata["assessors"]` maps the name of an assessor to `verdicts` and `missing`. `verdicts` maps
the id of an atom to its `label`, the label's `probability` among the labels, and `p`, the
probability of being true that the label or the assessor's own model states. `missing` lists atoms
without a verdict as [atom, reason]. Our own stages and the readers of other tools' outputs write
it. If the assessor was learned from labels, `learned_from` states whether those of this response
are among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from factormodels.decoded_values import as_object, located, text_field
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.metadata.learned_from import LEARNED_FROM, LearnedFrom, mark_of
from factormodels.validation import validated_probability

ASSESSORS_KEY = "assessors"

SECONDS_KEY = "seconds"
"""Metadata key of the resources used to assess a response, if the assessor's file states them."""


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """The verdict of an assessor on an atom.

    Attributes:
        label: the verdict in words, such as supported, contradicted, unsupported and undecided.
        p_true: P(true); None if the verdict excludes the atom from the score.
    """

    label: str
    p_true: float | None


SUPPORTED = RecordedVerdict("supported", 1.0)
CONTRADICTED = RecordedVerdict("contradicted", 0.0)
UNDECIDED = RecordedVerdict("undecided", 0.5)
"""P(true) by verdict, for assessors that state no probability."""


def verdict_facts(
    verdicts: Mapping[str, RecordedVerdict], learned: LearnedFrom | None = None
) -> dict[str, Any]:
    """Return the metadata of an assessor.

    Args:
        verdicts: its verdicts by id of atom.
        learned: mark of the labels from which its probabilities were learned; None if from none.
    """
    return {
        **({} if learned is None else {LEARNED_FROM: str(learned)}),
        "verdicts": {
            atom: {"label": verdict.label, "probability": None, "p": verdict.p_true}
            for atom, verdict in verdicts.items()
        },
        "missing": [],
    }


def recorded_verdicts(graph: FactGraph) -> dict[str, dict[str, RecordedVerdict]]:
    """Return the verdicts in a graph's metadata, by name of the assessor and id of atom.

    Raises:
        InputError: if the metadata hold something else under that key.
    """
    assessors = graph.metadata.get(ASSESSORS_KEY)
    if assessors is None:
        return {}
    where = f"response {graph.id!r}: metadata {ASSESSORS_KEY!r}"
    by_assessor: dict[str, dict[str, RecordedVerdict]] = {}
    for name, value in as_object(assessors, where).items():
        facts = as_object(value, f"{where}, {name!r}")
        verdicts = as_object(facts.get("verdicts"), f"{where}, {name!r}: key 'verdicts'")
        by_assessor[name] = {
            atom: _verdict(verdict, f"{where}, {name!r}, atom {atom!r}")
            for atom, verdict in verdicts.items()
        }
    return by_assessor


def recorded_marks(graph: FactGraph) -> dict[str, LearnedFrom]:
    """Return the marks of the assessors that were learned from labels, by name of assessor.

    Raises:
        InputError: if the metadata hold an invalid mark.
    """
    where = f"response {graph.id!r}: metadata {ASSESSORS_KEY!r}"
    marks = {}
    for name, value in as_object(graph.metadata.get(ASSESSORS_KEY) or {}, where).items():
        location = f"{where}, {name!r}"
        mark = mark_of(
            as_object(value, location).get(LEARNED_FROM), f"{location}: key {LEARNED_FROM!r}"
        )
        if mark is not None:
            marks[name] = mark
    return marks


def verdicts_of(graph: FactGraph, name: str = "") -> dict[str, RecordedVerdict]:
    """Return the recorded verdicts of one assessor, by id of atom.

    Args:
        graph: the response.
        name: name of the assessor; may be empty if there is only one.

    Raises:
        InputError: if no assessor has that name, or there are several and no name is given.
    """
    by_assessor = recorded_verdicts(graph)
    chosen = name or (next(iter(by_assessor)) if len(by_assessor) == 1 else "")
    if chosen not in by_assessor:
        has = f"holds those of {', '.join(by_assessor)}" if by_assessor else "holds none"
        whose = f"of {name!r} " if name else ""
        raise InputError(
            f"response {graph.id!r}: no recorded verdicts {whose}can be taken, since it {has}; "
            "name one whose verdicts it holds"
        )
    return by_assessor[chosen]


def _verdict(value: object, where: str) -> RecordedVerdict:
    verdict = as_object(value, where)
    p_true = verdict.get("p")
    label = text_field(verdict, "label", where, "")
    with located(where):
        return RecordedVerdict(
            label, None if p_true is None else validated_probability(p_true, "p")
        )
