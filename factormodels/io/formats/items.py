"""What records of datasets become, where that is no fact graph."""

from __future__ import annotations

from dataclasses import dataclass

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.claim_records import ClaimRecord
from factormodels.validation import validated_id, validated_probability


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is asked of a language model.

    Attributes:
        id: name of the prompt, unique in its file.
        text: the prompt.
        topic: what it is about, or the collection it comes from; empty where that is not said.
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
    """Two texts and how probable people hold the second to be, given the first.

    Attributes:
        id: name of the pair, unique in its file.
        premise: the text that is given.
        hypothesis: the text that is judged.
        probability: people's probability of the hypothesis, in [0, 1].
        category: the owner's category of the pair; empty where there is none.
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
    """The passages that were found for one atom.

    Attributes:
        topic: the topic of the atom's biography.
        atom: the text of the atom.
        passages: (title, text) of each, without marks of sentences.
    """

    topic: str
    atom: str
    passages: tuple[tuple[str, str], ...]


Item = FactGraph | Prompt | JudgedPair | AtomPassages | ClaimRecord
"""What a record of a dataset becomes."""
