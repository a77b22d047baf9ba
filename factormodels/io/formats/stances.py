"""Stances of annotators on a passage and a claim, and the relations they become."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from factormodels.claims import Relation, RelationKind
from factormodels.errors import InputError
from factormodels.validation import validated_probability
from factormodels.variants import strength

StanceMapping = Mapping[str, tuple[str, float] | None]
"""Stance -> (kind of relation, its probability), or None for a stance that makes no relation."""

SUPPORT, PARTIAL, CONFLICT = 0.9, 0.7, 0.9
"""Probabilities by convention of this project, not by measurement; vary or fit them."""

DEFAULT_STANCES: StanceMapping = MappingProxyType(
    {
        "completely-support": (RelationKind.ENTAILMENT, SUPPORT),
        "partially-support": (RelationKind.ENTAILMENT, PARTIAL),
        "refute": (RelationKind.CONTRADICTION, CONFLICT),
        "irrelevant": None,
    }
)
"""The stances of Factcheck-Bench."""


def resolve_stances(mapping: StanceMapping | None = None) -> StanceMapping:
    """Return the relation of every known stance: the default, replaced by `mapping`.

    Args:
        mapping: entries that differ from the default. A stance may become a neutral relation, which
            is recorded but makes no factor; None makes no relation.

    Raises:
        InputError: for an unknown stance or relation, or a probability outside [0, 1].
    """
    resolved: dict[str, tuple[str, float] | None] = dict(DEFAULT_STANCES)
    for stance, relation in (mapping or {}).items():
        if stance not in DEFAULT_STANCES:
            raise InputError(
                f"the stance {stance!r} is unknown; map some of {', '.join(DEFAULT_STANCES)}"
            )
        resolved[stance] = None if relation is None else _validated(stance, relation)
    return MappingProxyType(resolved)


def relation_from_stances(
    source: str, target: str, stances: list[str], mapping: StanceMapping
) -> Relation | None:
    """Return one relation from a passage to a claim, given every stance on that pair.

    A passage may be retrieved and judged twice for a claim, with different results. As for
    duplicate contexts, the more probable relation is kept, and any relation takes precedence over a
    neutral one.

    Args:
        source: id of the passage's context.
        target: id of the claim's atom.
        stances: the stances on this pair, each a key of `mapping`.
        mapping: the relation of every stance, as `resolve_stances` returns it.
    """
    mapped = [mapping[stance] for stance in stances]
    made = [
        Relation(source, target, RelationKind(meaning[0]), meaning[1])
        for meaning in mapped
        if meaning
    ]
    return max(made, key=strength, default=None)


def _validated(stance: str, relation: object) -> tuple[str, float]:
    where = f"the stance {stance!r}"
    # In a configuration file, the pair is a list.
    if not isinstance(relation, tuple | list) or len(relation) != 2:
        raise InputError(
            f"{where} is mapped to {relation!r}; give a pair such as ('entailment', 0.9), or None"
        )
    kind, probability = relation
    try:
        validated_kind = RelationKind(kind)
    except ValueError:
        raise InputError(
            f"{where} is mapped to the relation {kind!r}, which is unknown; "
            f"use one of {', '.join(RelationKind)}"
        ) from None
    return validated_kind, validated_probability(probability, where)
