"""Responses that decline to answer, told by their words.

The Self-Known paper leaves out generations in which a model says that it cannot write what was
asked (section 5.2.1 and appendix C), and reports their rate (table 1). The rules here cover the
kinds of phrases that its appendix lists, in patterns of our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from factormodels.errors import InputError

_NOT = r"(?:do\s+not|don't|cannot|can\s+not|can't|could\s+not|couldn't)"
_KNOWLEDGE = r"(?:information|details?|data|context|knowledge|records?|sources?|evidence)"
_SCANT = r"(?:enough|sufficient|adequate|reliable|verif\w+|specific|much|any|a\s+lot\s+of)"

# What a refusal has none of: what it is of, that it is about, or whom it asks after.
_WANTED = (
    rf"(?:{_KNOWLEDGE}|bio(?:graph\w+)?|answer|response|(?:any)?one|person(?:ality)?|people|"
    r"individual|figure|celebrity|somebody|someone|anything)"
)
_SORRY = (
    r"(?:I(?:'m|\s+am)\s+(?:(?:very|so|really)\s+)?(?:sorry|afraid)|sorry|regrettably|"
    r"unfortunately)\W+(?:(?:but|that)\s+)?"
)
_AS_A_MODEL = r"(?:as\s+an?\s+[^,.\n]{1,40},\s+)?"
_UNABLE = rf"I\s+(?:{_NOT}|(?:am|was)\s+(?:not\s+able|unable)\s+to)"
_DO = r"(?:find|locate|identify|provide|give|write|offer|share|create|generate|verify)"
# A text that goes on to tell what it can is an answer.
_GOES_ON = (
    r"(?!.*\b(?:but|however)\b[^.!?\n]{0,60}\b(?:here(?:'s|\s+is|\s+are)|"
    r"I\s+(?:do\s+know|can\s+(?:tell|share|say|offer))))"
)

_PATTERNS = {
    # Who opens by being sorry declines whatever follows; others decline a person or a text.
    "cannot_answer": rf"(?m:^)\W*(?:{_SORRY}{_AS_A_MODEL}{_UNABLE}\s+(?:\w+\s+)?{_DO}\b{_GOES_ON}"
    rf"|{_AS_A_MODEL}{_UNABLE}\s+(?:\w+\s+)?{_DO}\b{_GOES_ON}[^.!?\n]{{0,60}}\b{_WANTED}s?\b)",
    "asks_for_more": rf"\b(?:can|could|would|will)\s+you\s+(?:please\s+)?(?:provide|give|share|"
    rf"supply|offer)\s+(?:(?:me|us)\s+)?(?:with\s+)?(?:(?:some|any)\s+)?"
    rf"(?:(?:more|further|additional)\s+)(?:\w+\s+){{0,2}}{_KNOWLEDGE}\b",
    "lacks_information": rf"\bI\s+(?:\w+\s+)?{_NOT}\s+(?:\w+\s+){{0,2}}have\b"
    rf"|\bI\s+(?:\w+\s+)?{_NOT}\s+(?:find|locate)\b[^.!?\n]{{0,60}}\b{_KNOWLEDGE}\b",
    "needs_more_information": rf"\bI(?:\s+(?:would|will|may|might)|'d|'ll)?\s+need\s+"
    rf"(?:(?:some|a\s+(?:bit|little)|much|any)\s+)?(?:more|further|additional)\s+"
    rf"(?:\w+\s+){{0,2}}{_KNOWLEDGE}\b",
    "asks_to_provide": r"\bplease\s+(?:\w+\s+)?(?:provide|give|share|supply)\s+(?:me|us)\b",
    "asks_to_clarify": r"\bplease\s+(?:\w+\s+)?(?:clarify|specify)\b",
    "apologises": r"\bI(?:\s+(?:do|must|sincerely)|'m\s+afraid\s+I\s+must)?\s+apologi[sz]e\b"
    r"|\bmy\s+(?:sincere\s+)?apologies\b",
    "too_little_known": rf"\bthere(?:\s+is|'s)?\s*(?:n't|\s+not)\s+"
    rf"(?:\w+\s+)?{_SCANT}\s+(?:\w+\s+){{0,2}}{_KNOWLEDGE}\b"
    rf"|\bthere\s+(?:is|are)\s+(?:in(?:sufficient|adequate)|not\s+{_SCANT})\s+"
    rf"(?:\w+\s+){{0,2}}{_KNOWLEDGE}\b",
    "unfortunately_nothing": r"\bunfortunately\s*,?\s+(?:\w+\s+){0,3}?"
    r"(?:there\s+(?:is|are|'s)\s+(?:no|not|very\s+little|little)\b|there's\s+no\b)",
    "invites_more_information": rf"\b(?:if|should)\s+you\s+(?:can|could|are\s+able\s+to|would)?\s*"
    rf"(?:please\s+)?(?:provide|give|share|offer)\b[^.!?\n]{{0,60}}"
    rf"\b(?:more|further|additional|some)\s+(?:\w+\s+){{0,2}}{_KNOWLEDGE}\b"
    rf"|\byou\s+(?:could|can|might)\s+(?:please\s+)?(?:provide|give|share)\s+"
    rf"(?:me\s+(?:with\s+)?)?(?:some\s+)?(?:more|further|additional)\b",
    "suspects_a_mistake": r"\bit\s+(?:seems|appears|looks\s+like)\s+(?:that\s+)?you\s+"
    r"(?:might|may|could)\b",
}

RULES: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {name: re.compile(pattern, re.IGNORECASE | re.DOTALL) for name, pattern in _PATTERNS.items()}
)
"""The rules by name; a response that any of them finds outside quotation marks is a refusal."""

_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»")


@dataclass(frozen=True)
class RefusalFilter:
    """Which responses were left out, and why.

    Attributes:
        kept: ids of the responses that answer, in order.
        refused: by id, the names of the rules that found it.
    """

    kept: tuple[str, ...]
    refused: Mapping[str, tuple[str, ...]]

    @property
    def rate(self) -> float:
        """The share of responses that were left out."""
        return len(self.refused) / (len(self.kept) + len(self.refused))


def refusal_rules(response: str) -> tuple[str, ...]:
    """Names of the rules that find a refusal in a response; none if it answers.

    Words in double quotation marks are somebody else's, and are not looked at.

    Raises:
        InputError: if the response is not text.
    """
    if not isinstance(response, str):
        raise InputError(f"response is of type {type(response).__name__}; give its text")
    text = _QUOTED.sub(" ", response.replace("’", "'"))
    return tuple(name for name, rule in RULES.items() if rule.search(text))


def filter_refusals(responses: Mapping[str, str] | Iterable[tuple[str, str]]) -> RefusalFilter:
    """Which responses answer, and which rules found the others.

    Args:
        responses: texts by response id.

    Raises:
        InputError: if there is no response, a response is not text, or an id is given twice.
    """
    items = list(responses.items() if isinstance(responses, Mapping) else responses)
    if not items:
        raise InputError("responses is empty; give at least one text by response id")
    kept: list[str] = []
    refused: dict[str, tuple[str, ...]] = {}
    for identifier, text in items:
        if identifier in refused or identifier in kept:
            raise InputError(f"response {identifier!r} is given twice; give each response once")
        rules = refusal_rules(text)
        if rules:
            refused[identifier] = rules
        else:
            kept.append(identifier)
    return RefusalFilter(tuple(kept), MappingProxyType(refused))
