"""What answers prompts where there is no language model: a relation model that reads the prompt.

Its answers follow a rule. They show the form of a table, and are no finding about any model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from factormodels.claims import RelationKind
from factormodels.extraction.language_model import Completion, Failure, Request, Usage
from factormodels.extraction.relation_models.base import Judgement, RelationModel, TextPair
from factormodels.extraction.relations import LEAST_PROBABILITY
from factormodels.fact_graph import FactGraph

_PASSAGE = re.compile(r"^\[\d+\] ", re.MULTILINE)
_SENTENCE = re.compile(r"^(\d+): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class StandInModel:
    """Answers an assessor's prompt by the relations of the shown passages to the claim.

    A passage counts for or against the claim if the relation model holds it likelier than not that
    it entails or contradicts it. Of `factscore`'s two labels it says true where a passage is for
    the claim. `factverify` weighs: the most probable relation decides. `veriscore` wants no
    passage against what it calls supported, and none for what it calls contradicted; `fastfact`
    calls the two together conflicting. Without passages it knows nothing: undecided, and unsure.
    Asked for the claims of sentences it gives those sentences as they are.

    Attributes:
        relations: the relation model.
        passages: text of each passage by what a prompt shows of it, title and text.
        name: its name as a language model.
    """

    relations: RelationModel
    passages: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    name: str = "stand-in"

    async def complete(self, request: Request) -> Completion | Failure:
        """Return the answer to `request`, or a failure for a prompt that it has no rule for."""
        question = request.messages[-1].content
        rule = _RULES.get(request.prompt.name)
        if rule is not None:
            text = rule(*self._evidence(question))
        elif request.prompt.name == "assess_own_knowledge":
            text = "Nothing is known of this.\nVerdict: undecided"
        elif request.prompt.name == "atomizer":
            text = json.dumps(
                [{"sentence": number, "claim": claim} for number, claim in _sentences(question)]
            )
        elif request.prompt.name == "preverify":
            lines = [f"{number} | {claim} | unsure" for number, claim in _sentences(question)]
            text = "\n".join(lines) or "none"
        else:
            return Failure(f"the stand-in has no rule for the prompt {request.prompt.name!r}")
        asked = sum(len(message.content.split()) for message in request.messages)
        return Completion(text, usage=Usage(asked, len(text.split())))

    def _evidence(self, question: str) -> tuple[float, float]:
        """Return the largest probabilities that a passage entails and contradicts the claim."""
        claim = _between(question, "claim")
        shown = _PASSAGE.split(_between(question, "passages"))[1:]
        pairs = [
            TextPair(self.passages.get(passage.strip(), passage.strip()), claim)
            for passage in shown
        ]
        strongest = {RelationKind.ENTAILMENT: 0.0, RelationKind.CONTRADICTION: 0.0}
        for answer in self.relations.judge(pairs) if pairs else []:
            if (
                isinstance(answer, Judgement)
                and answer.kind in strongest
                and answer.probability >= LEAST_PROBABILITY
            ):
                strongest[answer.kind] = max(strongest[answer.kind], answer.probability)
        return strongest[RelationKind.ENTAILMENT], strongest[RelationKind.CONTRADICTION]


def shown_passages(graphs: Iterable[FactGraph]) -> dict[str, str]:
    """Return the texts of all passages by what a prompt shows of them."""
    found = {}
    for graph in graphs:
        for context in graph.contexts:
            text = context.text or context.snippet
            shown = f"{context.title}: {text}" if context.title else text
            found[shown.strip()] = context.text
    return found


def _factscore(support: float, _against: float) -> str:
    return "true" if support else "false"


def _factverify(support: float, against: float) -> str:
    verdict = (
        "undecided" if support == against else "supported" if support > against else "contradicted"
    )
    return f"The strongest relation decides.\nVerdict: {verdict}"


def _veriscore(support: float, against: float) -> str:
    if bool(support) == bool(against):
        return "undecided"
    return "supported" if support else "contradicted"


def _fastfact(support: float, against: float) -> str:
    if support and against:
        verdict = "conflicting"
    else:
        verdict = "supported" if support else "refuted" if against else "insufficient"
    return f"The relations of the passages decide.\nVerdict: {verdict}"


_RULES = MappingProxyType(
    {
        "assess_factscore": _factscore,
        "assess_factverify": _factverify,
        "assess_veriscore": _veriscore,
        "assess_fastfact": _fastfact,
    }
)


def _between(text: str, tag: str) -> str:
    return text.split(f"<{tag}>", 1)[-1].rsplit(f"</{tag}>", 1)[0].strip()


def _sentences(question: str) -> Sequence[tuple[int, str]]:
    asked = _between(question.rsplit("<sentences>", 1)[-1], "sentences")
    return [(int(number), text.strip()) for number, text in _SENTENCE.findall(asked)]
