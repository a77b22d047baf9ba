"""A relation model simpler than the lexical one: a text entails those whose words it contains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factormodels.claims import RelationKind
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import Judgement, Missing, TextPair
from factormodels.extraction.retrieval.chunks import words_of


@dataclass(frozen=True)
class ContainedWords:
    """Says that a text entails another if it contains at least a share of its words.

    Attributes:
        share: the share, above 0 and at most 1.

    Raises:
        InputError: for another share.
    """

    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InputError(f"share is {self.share}; give a number above 0, at most 1")

    @property
    def name(self) -> str:
        """The name with the share."""
        return f"words:{self.share:g}"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        """Return an entailment or neutral for each pair, sure of itself."""
        return [self._judge(pair) for pair in pairs]

    def _judge(self, pair: TextPair) -> Judgement:
        held, asked = set(words_of(pair.premise)), set(words_of(pair.hypothesis))
        contains = bool(asked) and len(asked & held) >= self.share * len(asked)
        kind = RelationKind.ENTAILMENT if contains else RelationKind.NEUTRAL
        return Judgement(kind, 1.0, "lexical")
