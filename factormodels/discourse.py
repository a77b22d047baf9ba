"""Discourse senses between claims of one response, and the kinds of relation that they compile to.

A reader, or a language model, says how one claim stands to another: as its cause, as a contrast,
after it in time. The senses are those of the Penn Discourse Treebank 3.0 (Webber et al. 2019) that
can stand between two claims. What a model of truth needs of them is whether the truth of one claim
bears on that of the other: a cause makes its effect true, a contrast its opposite false; that one
event came before another says nothing of either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from factormodels.claims import Relation, RelationKind
from factormodels.errors import InputError, unknown_name
from factormodels.validation import validated_probability


class Sense(StrEnum):
    """How a claim stands to another, the first named in the sentence."""

    CAUSE = "cause"
    EFFECT = "effect"
    EVIDENCE = "evidence"
    CONDITION = "condition"
    RESTATEMENT = "restatement"
    INSTANTIATION = "instantiation"
    CONTRAST = "contrast"
    CONCESSION = "concession"
    ALTERNATIVE = "alternative"
    DISJUNCTION = "disjunction"
    PRECEDENCE = "precedence"
    SUCCESSION = "succession"


KINDS_OF_SENSES: Mapping[Sense, RelationKind | None] = MappingProxyType(
    {
        Sense.CAUSE: RelationKind.ENTAILMENT,
        Sense.EFFECT: RelationKind.ENTAILMENT,
        Sense.EVIDENCE: RelationKind.ENTAILMENT,
        Sense.CONDITION: RelationKind.ENTAILMENT,
        Sense.RESTATEMENT: RelationKind.EQUIVALENCE,
        Sense.INSTANTIATION: RelationKind.ENTAILMENT,
        Sense.CONTRAST: RelationKind.CONTRADICTION,
        Sense.CONCESSION: RelationKind.CONTRADICTION,
        Sense.ALTERNATIVE: RelationKind.EXCLUSIVE,
        Sense.DISJUNCTION: RelationKind.CO_NECESSITY,
        Sense.PRECEDENCE: None,
        Sense.SUCCESSION: None,
    }
)
"""The kind that each sense compiles to; None of those that tell an order only."""

REVERSED = frozenset({Sense.EFFECT})
"""Senses whose second claim is the source: of an effect, its cause is what makes it true."""

CONCEDED = 0.5
"""The probability of a concession's contradiction that no one states: the text itself names the
tension and holds both claims, so that it is even whether they conflict."""


@dataclass(frozen=True)
class SensedPair:
    """What stands between two claims.

    Attributes:
        first: id of the claim that stands in the sense to the other: the cause of a cause.
        second: id of the other claim.
        sense: the sense.
        probability: how sure it is, in [0, 1]; None where nobody says.
    """

    first: str
    second: str
    sense: Sense
    probability: float | None = None


def sense_named(name: str) -> Sense:
    """The sense of a name, in any case, with spaces, hyphens or underscores.

    Raises:
        InputError: if there is none of that name; the message lists those there are.
    """
    plain = " ".join(name.casefold().replace("_", " ").replace("-", " ").split())
    plain = _OTHER_NAMES.get(plain, plain)
    try:
        return Sense(plain)
    except ValueError:
        raise InputError(unknown_name(f"the sense {name!r}", name, Sense)) from None


_OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        # As FactReasoner 0.8 names them.
        "cause effect": "cause",
        "effect cause": "effect",
    }
)


def compiled_senses(pairs: Iterable[SensedPair]) -> tuple[Relation, ...]:
    """The relations that senses between claims compile to, in their order.

    Senses that tell an order only make none. Of several senses of one pair of claims that make a
    relation of the same two ends the most probable stays, the first of equals.

    Raises:
        InputError: for a probability outside [0, 1], a sense without one that needs it, or a claim
            that stands to itself.
    """
    strongest: dict[tuple[str, str], Relation] = {}
    for pair in pairs:
        kind = KINDS_OF_SENSES[pair.sense]
        if kind is None:
            continue
        ends = (pair.first, pair.second)
        source, target = ends[::-1] if pair.sense in REVERSED else ends
        relation = Relation(source, target, kind, _probability(pair))
        before = strongest.get((source, target))
        if before is None or relation.probability > before.probability:
            strongest[source, target] = relation
    return tuple(strongest.values())


def _probability(pair: SensedPair) -> float:
    where = f"the sense {str(pair.sense)!r} of {pair.first!r} and {pair.second!r}"
    if pair.probability is not None:
        return validated_probability(pair.probability, where)
    if pair.sense is Sense.CONCESSION:
        return CONCEDED
    raise InputError(f"{where} has no probability; give one between 0 and 1")
