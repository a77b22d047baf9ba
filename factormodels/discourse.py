"""Discourse senses between claims of one response, and the kinds of relation they compile to.

A discourse sense states how one claim relates to another: as its cause, as a contrast, after it in
time. The senses are those of the Penn Discourse Treebank 3.0 (Webber et al. 2019) that can relate
two claims. A sense becomes a relation if the truth of one claim bears on the truth of the other: a
cause supports its effect, and a contrast supports the falsity of its opposite. Temporal order alone
bears on neither.
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
    """Discourse sense of one claim relative to another, named after the first claim's role."""

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
"""The kind that each sense compiles to; None for temporal senses."""

REVERSED = frozenset({Sense.EFFECT})
"""Senses whose second claim is the source, such as the cause of an effect."""

CONCEDED = 0.5
"""Default probability of a concession's contradiction. It is 1/2, because the text names the
tension and still asserts both claims."""


@dataclass(frozen=True)
class SensedPair:
    """A discourse sense between two claims.

    Attributes:
        first: id of the claim that has the sense relative to the other, such as the cause.
        second: id of the other claim.
        sense: the sense.
        probability: probability of the sense, in [0, 1]; None if not stated.
    """

    first: str
    second: str
    sense: Sense
    probability: float | None = None


def sense_named(name: str) -> Sense:
    """Return the sense of a name, in any case, with spaces, hyphens or underscores.

    Raises:
        InputError: if no sense has that name; the message lists the senses.
    """
    plain = " ".join(name.casefold().replace("_", " ").replace("-", " ").split())
    plain = _OTHER_NAMES.get(plain, plain)
    try:
        return Sense(plain)
    except ValueError:
        raise InputError(unknown_name(f"the sense {name!r}", name, Sense)) from None


_OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        # Names in FactReasoner 0.8.
        "cause effect": "cause",
        "effect cause": "effect",
    }
)


def compiled_senses(pairs: Iterable[SensedPair]) -> tuple[Relation, ...]:
    """Return the relations that senses between claims compile to, in order.

    Temporal senses make no relation. If several senses of a pair compile to relations with the same
    two ends, the most probable one is kept, or the first among equals.

    Raises:
        InputError: for a probability outside [0, 1], a missing probability of a sense that needs
            one, or a claim paired with itself.
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
