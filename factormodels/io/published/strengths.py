"""How strong a relation is where a format says that it holds and nothing of its probability."""

from __future__ import annotations

from dataclasses import dataclass

from factormodels.claims import validated_probability
from factormodels.io.stances import DEFAULT_STANCES


def _probability(stance: str) -> float:
    relation = DEFAULT_STANCES[stance]
    return 1.0 if relation is None else relation[1]


@dataclass(frozen=True, slots=True)
class Strengths:
    """Probabilities of relations that people or the makers of a dataset state.

    They are those of Factcheck-Bench's stances, a convention of this project and not a
    measurement: vary them, or fit them.

    Attributes:
        support: of an entailment where evidence fully supports a claim.
        partial: of an entailment where it supports it in part.
        conflict: of a contradiction.

    Raises:
        InputError: if one is not between 0 and 1.
    """

    support: float = _probability("completely-support")
    partial: float = _probability("partially-support")
    conflict: float = _probability("refute")

    def __post_init__(self) -> None:
        for name in ("support", "partial", "conflict"):
            value = validated_probability(getattr(self, name), f"the strength {name!r}")
            object.__setattr__(self, name, value)


DEFAULT_STRENGTHS = Strengths()
