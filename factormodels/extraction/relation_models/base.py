"""The interface that every relation model keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from factormodels.claims import RelationKind

Origin = Literal["logprobs", "verbalised", "samples", "recorded", "lexical", "nli"]


@dataclass(frozen=True, slots=True)
class TextPair:
    """An ordered pair of texts whose relation is asked for.

    Attributes:
        premise: the text that may entail or contradict.
        hypothesis: the text that is judged.
        source: id of the premise's atom or context, where it has one.
        target: id of the hypothesis's atom or context, where it has one.
        title: what the premise is headed with, where it has a title.
        question: what the response that is judged was asked, where that is known.
    """

    premise: str
    hypothesis: str
    source: str = ""
    target: str = ""
    title: str = ""
    question: str = ""

    @property
    def titled_premise(self) -> str:
        """The premise below its title, for models that read one text: often the title alone says
        whom a passage is about."""
        if not self.title or self.premise.startswith(self.title):
            return self.premise
        return f"{self.title}\n{self.premise}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A relation model's answer for one pair.

    Attributes:
        kind: entailment, contradiction or neutral. Equivalence is no answer of a relation model:
            it holds where both orders entail.
        probability: the model's probability of `kind`, in [0, 1].
        origin: where the probability comes from.
        distribution: probabilities of (entailment, contradiction, neutral), summing to one; None
            where the model gives only that of `kind`.
        fell_back: why the probability is not from where it was to be from first; empty where it is.
        uncorrected: the distribution before the model's label bias was corrected; None where
            nothing was corrected.
    """

    kind: RelationKind
    probability: float
    origin: Origin
    distribution: tuple[float, float, float] | None = None
    fell_back: str = field(default="", compare=False)
    uncorrected: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """A pair that has no judgement: counted and shown, never cached, never scored as neutral.

    Attributes:
        reason: one sentence that says why.
    """

    reason: str


class NotAsked(Missing):
    """A pair that nobody was asked about, by a rule or a limit: no failure of the model."""


def counted_fallbacks(answers: Iterable[tuple[str, str]]) -> dict[str, list[list[Any]]]:
    """Count answers that log-probabilities gave no probability, as an entry of metadata.

    Args:
        answers: of each where its probability comes from instead, and the reason.

    Returns:
        `fallbacks`, rows of [origin, reason, number] in their order; nothing if there are none.
    """
    counts = sorted(Counter(answers).items())
    rows = [[origin, reason, number] for (origin, reason), number in counts]
    return {"fallbacks": rows} if rows else {}


class RelationModel(Protocol):
    """Anything that judges pairs of texts."""

    @property
    def name(self) -> str:
        """The model's name in tables and manifests."""
        ...

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        """One answer per pair, in order; a failure is a value, no exception."""
        ...
