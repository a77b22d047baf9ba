"""Interface of relation models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from factormodels.claims import RelationKind

Origin = Literal["logprobs", "verbalized", "samples", "recorded", "lexical", "nli"]


@dataclass(frozen=True, slots=True)
class TextPair:
    """An ordered pair of texts whose relation is requested.

    Attributes:
        premise: the text that may entail or contradict.
        hypothesis: the text that is judged.
        source: id of the premise's atom or context, if any.
        target: id of the hypothesis's atom or context, if any.
        title: title of the premise, if any.
        question: question of the judged response, if known.
    """

    premise: str
    hypothesis: str
    source: str = ""
    target: str = ""
    title: str = ""
    question: str = ""

    @property
    def titled_premise(self) -> str:
        """The premise below its title, for models that read one text.

        Often only the title names the subject of a passage.
        """
        if not self.title or self.premise.startswith(self.title):
            return self.premise
        return f"{self.title}\n{self.premise}"


@dataclass(frozen=True, slots=True)
class Judgment:
    """A relation model's answer for one pair.

    Attributes:
        kind: entailment, contradiction or neutral. Relation models do not predict equivalence,
            which holds if both orders entail.
        probability: the model's probability of `kind`, in [0, 1].
        origin: source of the probability.
        distribution: probabilities of (entailment, contradiction, neutral), summing to one; None if
            the model gives only the probability of `kind`.
        fell_back: reason why the probability is not from the preferred source; empty if it is.
        uncorrected: the distribution before the model's label bias was corrected; None if nothing
            was corrected.
    """

    kind: RelationKind
    probability: float
    origin: Origin
    distribution: tuple[float, float, float] | None = None
    fell_back: str = field(default="", compare=False)
    uncorrected: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """A pair without a judgment: counted and shown, never cached, never scored as neutral.

    Attributes:
        reason: one sentence with the reason.
    """

    reason: str


class NotAsked(Missing):
    """A pair excluded by a rule or a limit, which is not a failure of the model."""


def counted_fallbacks(answers: Iterable[tuple[str, str]]) -> dict[str, list[list[Any]]]:
    """Count answers whose log-probabilities gave no probability, as an entry of metadata.

    Args:
        answers: for each answer, the actual source of its probability, and the reason.

    Returns:
        `fallbacks`, rows of [origin, reason, number] in order; empty if there are none.
    """
    counts = sorted(Counter(answers).items())
    rows = [[origin, reason, number] for (origin, reason), number in counts]
    return {"fallbacks": rows} if rows else {}


class RelationModel(Protocol):
    """Protocol of relation models: anything that judges pairs of texts."""

    @property
    def name(self) -> str:
        """The model's name in tables and manifests."""
        ...

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        """Return one answer per pair, in order; failures are returned as `Missing`."""
        ...
