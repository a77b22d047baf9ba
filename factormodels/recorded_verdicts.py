"""What assessors said of the claims of a response, where its graph carries it in the metadata.

`metadata["assessors"]` holds, by name of the assessor, `verdicts`: by id of atom its `label`, the
label's `probability` among the labels, and `p`, the probability of being true that the label or the
assessor's own model states; and `missing`, the atoms without a verdict as [atom, reason]. Our own
stages write it, and so do readers of the outputs of other tools. Where labels taught the assessor,
`learned_from` tells whether those of this response are among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from factormodels.decoded_values import as_object, located, text_field
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.learned_from import LEARNED_FROM, LearnedFrom, mark_of
from factormodels.validation import validated_probability

ASSESSORS_KEY = "assessors"

SECONDS_KEY = "seconds"
"""What a response took to assess, where the assessor's file says it."""


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """What an assessor said of an atom.

    Attributes:
        label: its verdict, in words such as supported, contradicted, unsupported and undecided.
        p_true: P(true); None where the verdict takes the atom out of the score.
    """

    label: str
    p_true: float | None


SUPPORTED = RecordedVerdict("supported", 1.0)
CONTRADICTED = RecordedVerdict("contradicted", 0.0)
UNDECIDED = RecordedVerdict("undecided", 0.5)
"""Verdicts of assessors that state no probability."""


def verdict_facts(
    verdicts: Mapping[str, RecordedVerdict], learned: LearnedFrom | None = None
) -> dict[str, Any]:
    """Metadata of an assessor.

    Args:
        verdicts: its verdicts by id of atom.
        learned: labels from which its probabilities were learned; None if from none.
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
    """The verdicts that a graph carries, by name of the assessor and id of atom.

    Raises:
        InputError: if the metadata hold something else under that name.
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
    """Labels that taught the assessors of a graph, by name of each that learned from some.

    Raises:
        InputError: if the metadata hold something else.
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
    """The verdicts of one assessor that a graph carries, by id of atom.

    Args:
        graph: the response.
        name: of the assessor; empty: of the only one there is.

    Raises:
        InputError: if there are none of that name, or those of several and no name.
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
