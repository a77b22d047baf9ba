"""Items from records of datasets that are not fact graphs."""

from __future__ import annotations

from dataclasses import dataclass

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.claim_records import ClaimRecord
from factormodels.validation import validated_id, validated_probability


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt for a language model.

    Attributes:
        id: name of the prompt, unique in its file.
        text: the prompt.
        topic: its topic, or its collection; empty if not stated.
    """

    id: str
    text: str
    topic: str = ""

    def __post_init__(self) -> None:
        validated_id(self.id, "a prompt")
        if not isinstance(self.text, str) or not self.text.strip():
            raise InputError(f"prompt {self.id!r}: its text is empty; give one")


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """Two texts, and people's probability of the second given the first.

    Attributes:
        id: name of the pair, unique in its file.
        premise: the given text.
        hypothesis: the judged text.
        probability: people's probability of the hypothesis, in [0, 1].
        category: the owner's category of the pair; empty if there is none.
    """

    id: str
    premise: str
    hypothesis: str
    probability: float
    category: str = ""

    def __post_init__(self) -> None:
        validated_id(self.id, "a pair of texts")
        probability = validated_probability(self.probability, f"pair {self.id!r}")
        object.__setattr__(self, "probability", probability)


@dataclass(frozen=True, slots=True)
class AtomPassages:
    """The passages retrieved for one atom.

    Attributes:
        topic: the topic of the atom's biography.
        atom: the text of the atom.
        passages: (title, text) of each passage, without sentence marks.
    """

    topic: str
    atom: str
    passages: tuple[tuple[str, str], ...]


Item = FactGraph | Prompt | JudgedPair | AtomPassages | ClaimRecord
"""Result of a record of a dataset."""
