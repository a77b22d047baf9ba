"""Detection of responses that decline to answer.

The Self-Known paper leaves out generations in which a model states that it cannot write the
requested text (section 5.2.1 and appendix C), and reports their rate (table 1). The phrases in its
appendix also occur in answers: "There is not much information about his childhood, but he studied
law". Each clause is therefore classified separately: it declines, it does not address the question
(an apology, an offer, a guess about the person), or it answers. A response declines if at least one
clause declines and no clause answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from factormodels.errors import InputError

_KNOWLEDGE = (
    r"(?:information|info|details?|data|results?|context|knowledge|records?|sources?|evidence|facts?|"
    r"anything|mention|match|entry|biograph\w+|bio|access|clue|idea|background|material)"
)
_PERSON = r"(?:any\s?one|person\w*|people|individuals?|figure|somebody|someone|name|celebrity)"
_ADVERBS = r"(?:\w+ly\s+|just\s+|yet\s+|also\s+|still\s+|currently\s+)*"
_NOT = (
    r"(?:(?:do|did|can|could|would|will)\s*(?:not|n't)|cannot|can't|won't|"
    r"(?:am|was|'m|have\s+been|'ve\s+been)\s+(?:\w+ly\s+|sorry\W+)?(?:not\s+able|unable)\s+to|"
    r"wasn't\s+able\s+to|(?:(?:will|would)\s+not|won't)\s+be\s+able\s+to|can't\s+seem\s+to|"
    r"(?:must|have\s+to)\s+decline\s+to)"
)
_I_CANNOT = rf"\bI\s*{_ADVERBS}{_NOT}\s+{_ADVERBS}"
_FIND = r"(?:find|locate|identify|verify|confirm|recogni[sz]e|trace)"
_GIVE = (
    r"(?:provide|give|write|offer|share|create|generate|produce|answer|tell|say|summari[sz]e|look|"
    r"predict|express|advise|discuss|speculate|complete|compose)"
)
_OBEY = (
    r"(?:help|assist|comply|fulfill?|continue|take\s+part|engage|support|do\s+that|talk|"
    r"write\s+(?:malware|content|code)|share\s+(?:the\s+full|personal)|"
    r"provide\s+(?:personal|medical|legal|financial|private))"
)
_ABSENT = (
    r"(?:(?:is|are|was|were)\s*(?:not\s+(?:any|a)|n't\s+(?:any|a)|no|nobody|nothing)|"
    r"'s\s+(?:no|not\s+any|nobody|nothing)|(?:seems?|appears?)\s+to\s+be\s+(?:no|nobody|nothing)|"
    r"(?:do|does|did)\s*(?:not|n't)\s+(?:seem|appear)\s+to\s+(?:be|exist))"
)
_FOUND = (
    r"(?:exists?|survives?|(?:(?:was|were|is|are|can\s+be|could\s+be|has\s+been|have\s+been)\s+)"
    r"(?:found|located|available|known|given)|(?:comes?|came)\s+up)"
)
_SOUGHT = (
    r"(?:information|info|details?|data|records?|sources?|mention|traces?|biograph\w+|"
    rf"such\s+{_PERSON}|(?:{_PERSON}|\w+)\s+(?:named|called|(?:by|of|with)\s+"
    r"(?:that|this|such\s+a|the)\s+(?:name|title)))"
)
_MORE = r"(?:more|further|additional|some|any)"

_DECLINING: Mapping[str, str] = {
    "cannot": rf"{_I_CANNOT}{_OBEY}\b",
    "cannot_find": rf"{_I_CANNOT}{_FIND}\b",
    "cannot_give": rf"{_I_CANNOT}{_GIVE}\b",
    "lacks": rf"\bI\s*{_ADVERBS}(?:do\s+not|don't|did\s+not|didn't)\s+{_ADVERBS}(?:have|possess|"
    rf"hold)\b|\bI\s*(?:'ve|have)?\s*{_ADVERBS}(?:have\s+)?(?:no|found\s+no|"
    rf"(?:very\s+)?limited|little)\s+(?:\w+\s+){{0,3}}{_KNOWLEDGE}\b|\bI\s+{_ADVERBS}lack\b|"
    rf"\bI\s+(?:could\s+)?(?:find|found|know)\s+(?:no|nothing)\b|"
    rf"\bfound\s+nothing\b|\b(?:do\s+not|don't|didn't)\s+have\s+(?:\w+\s+){{0,3}}?{_KNOWLEDGE}\b",
    "does_not_know": rf"\bI\s*{_ADVERBS}(?:do\s+not|don't)\s+{_ADVERBS}(?:know|recogni[sz]e|"
    r"think\s+I\s+(?:have|know))\b|\bI\s*(?:am|'m)\s+(?:\w+\s+)?not\s+(?:\w+\s+)?(?:aware|familiar|"
    r"acquainted|sure|certain)\b|\bI\s*(?:am|'m)\s+unfamiliar\b|"
    r"\b(?:does\s+not|doesn't)\s+(?:ring\s+a\s+bell|extend|include\s+any|correspond\s+to\s+any)|"
    r"\b(?:known|available)\s+to\s+me\b|\bbeyond\s+what\s+I\s+know\b|"
    r"\bmy\s+(?:\w+\s+){0,2}(?:data|database|knowledge|training|records?|sources?|information)\s+"
    r"(?:\w+\s+){0,2}(?:has|have|is|are|does|do|contains?)\s*(?:no|not|n't|insufficient|limited)\b|"
    r"\b(?:difficult|hard|impossible|not\s+possible)\s+for\s+me\b|\bno\s+way\s+of\s+knowing\b|"
    r"\bI(?:'m|\s+am)\s+not\s+(?:qualified|allowed|permitted|in\s+a\s+position)\b|"
    r"\b(?:beyond|outside)\s+(?:the\s+scope\s+of\s+)?my\b",
    "never_met": r"\bI\s*(?:haven't|hadn't|(?:'ve|have|had)\s+(?:not|never)|never)\s+"
    r"(?:\w+ly\s+|ever\s+)?(?:heard|come\s+across|encountered)\b|\bI\s*(?:was\s+not|wasn't)\s+(?:\w+\s+)?(?:aware|"
    r"familiar)\b|\bI\s*(?:do\s+not|don't|cannot|can't|could\s+not|couldn't)\s+(?:\w+ly\s+)?(?:recall|"
    r"remember|place|think\s+of)\b|\bI\s+(?:know|have\s+heard)\s+(?:of\s+)?(?:no|nobody|none)\b|"
    r"(?:\bnot|n't)\s+(?:a\s+\w+|one|some\w+|any\w+)\s+(?:that\s+|whom?\s+)?I(?:'m|\s+am)?\s+"
    r"(?:know|recogni[sz]e|familiar|aware)\b|\bdrawing\s+a\s+blank\b|\b(?:unknown|new|means\s+nothing)\s+"
    r"to\s+me\b|^\W*(?:never\s+heard|don't\s+know|no\s+clue)\b|\bno\s+one\b[^.]*\bcomes\s+to\s+mind\b",
    "needs_more": rf"\bI(?:\s+(?:would|will|may|might)|'d|'ll)?\s+(?:need|require)\s+"
    rf"(?:\w+\s+){{0,3}}?{_MORE}\s+(?:\w+\s+){{0,2}}{_KNOWLEDGE}\b",
    "asks_for_more": rf"\b(?:can|could|would|will)\s+you\s+(?:please\s+|kindly\s+|perhaps\s+)*"
    rf"(?:provide|give|share|supply|offer|tell|add|clarify|specify|confirm|let)\b|"
    r"\bplease\s+(?:kindly\s+)?(?:provide|give|share|supply|tell)\s+(?:me|us)\b|"
    rf"\bplease\s+(?:kindly\s+)?(?:provide|give|share|supply)\s+(?:\w+\s+){{0,2}}?{_MORE}\s+"
    rf"(?:\w+\s+){{0,2}}{_KNOWLEDGE}\b|\bplease\s+(?:kindly\s+)?(?:clarify|specify)\b|"
    rf"\byou\s+(?:could|can|might)\s+(?:please\s+)?(?:provide|give|share)\s+(?:me\s+)?(?:with\s+)?"
    rf"(?:a\s+hint|{_MORE}\b)",
    "nothing_known": rf"\bthere\s*(?:is|are|'s|does|do|was|were)?\s*(?:not|n't|no|in(?:sufficient|"
    rf"adequate)|very\s+little|little|limited)\s+(?:(?:seem|appear)\s+to\s+be\s+)?(?:\w+\s+){{0,3}}?"
    rf"(?:{_KNOWLEDGE})\b|^\W*(?:unfortunately\W+)?there\s+(?:is|are)\s+no\s*$|"
    rf"^\W*(?:no|insufficient|not\s+enough|nothing)\s+(?:\w+\s+){{0,2}}?(?:{_KNOWLEDGE})\b"
    rf"[^.]*\b(?:available|found|known|on|about|regarding|concerning)\b|"
    rf"\b{_KNOWLEDGE}\b[^.]*\bnot\s+(?:\w+ly\s+)?(?:available|known|accessible)\b|"
    r"^\W*unfortunately\W+there(?:\s+is|\s+are|'s)\s+(?:no|not|nothing)\b|"
    r"^\W*(?:unknown|no\s+data|no\s+answer|no\s+information|no\s+idea|n/a)\W*$",
    "denies": rf"\bthere\s*{_ABSENT}\s+(?:[\w-]+\s+){{0,4}}?{_SOUGHT}\b|"
    r"\bthere\s*(?:is|'s|seems\s+to\s+be|appears\s+to\s+be)\s+(?:nobody|no\s+one)\s+(?:by|of|with|called|"
    rf"named)\b|^\W*no\s+(?:\w+\s+){{0,2}}?{_SOUGHT}(?:\s+{_PERSON})?(?:\s+(?:of|on|about|for|regarding|"
    rf"by|with|called|named)\s+[\w'-]+(?:\s+[\w'-]+){{0,3}}?)?(?:\s*\b{_FOUND})?\W*$|"
    rf"^\W*nothing\s+(?:at\s+all\s+)?{_FOUND}\b|"
    r"\b(?:do|does)\s*(?:not|n't)\s+(?:seem|appear)\s+to\s+(?:exist|be\s+(?:a\s+)?(?:real|actual))\b",
    "apologizes": r"\bI(?:\s+(?:do|must|sincerely)|'m\s+afraid\s+I\s+must)?\s+apologi[sz]e\b"
    r"|\bmy\s+(?:sincere\s+)?apologies\b|^\W*apologies\b",
    "suspects_a_mistake": r"\bit\s+(?:seems|appears|looks\s+like)\s+(?:that\s+)?(?:you\s+"
    r"(?:might|may|could)|there\s+(?:may|might)\s+be\s+(?:some\s+|a\s+)?(?:confusion|mistake))\b",
}

_EMPTY = (
    # A question to the user.
    r"\?\W*$",
    # Polite phrases and alternative offers.
    r"^\W*(?:(?:I(?:'m|\s+am)\s+)?(?:(?:very|so|really|deeply|truly)\s+)?(?:sorry|afraid)|hello|hi|"
    r"thank\s+you|thanks|sure|certainly|of\s+course|unfortunately|regrettably|however|"
    r"I\s+regret\s+to\s+(?:say|inform\s+you))\b[^.]{0,40}$",
    r"\b(?:let\s+me\s+know|(?:happy|glad|love|able)\s+to\s+(?:help|assist|try|write|answer)|do\s+my\s+"
    r"best|(?:anything|something|someone|somebody|another\s+\w+)\s+(?:else|you)|feel\s+free|"
    r"I\s+(?:would|can|could|'d|will)\s+(?:\w+\s+)?(?:try\s+again|suggest|recommend|advise)|"
    r"I\s+(?:suggest|recommend|encourage|advise)|want\s+to\s+be\s+honest|make\s+(?:something|"
    r"things)\s+up|I\s+could\s+write|if\s+you\s+(?:like|want|wish|can|could|have|need|are|provide|"
    r"meant)|should\s+you)\b",
    r"\bI\s+(?:have\s+)?(?:searched|looked|checked|hope|understand|appreciate|wish)\b|"
    r"\bimportant\s+to\s+note\b|\byour?\b[^.!]*\?|\bhelp\s+you\b|"
    r"^\W*(?:for\s+[^,]*,\s*)?(?:check|consult|contact|refer|visit|search|look|verify|double)\b",
    r"^\W*(?:please|try|you\s+(?:may|might|could|can|should)|perhaps|maybe)\b",
    # Guesses about the person.
    r"\bnot\s+(?:a\s+|be\s+)*(?:\w+\s+)?(?:(?:widely|well)[- ]known|(?:public|notable|famous)\s+"
    r"(?:figure|person|individual))|\b(?:does\s+not|doesn't)\s+appear\s+(?:in|to\s+be)\b",
    r"\b(?:may|might|could)\s+(?:not\s+)?(?:be|have|refer)\b",
    r"\bit\s+is\s+(?:also\s+)?(?:possible|likely)\b|\bit's\s+(?:also\s+)?(?:possible|likely)\b",
    r"\bthere\s+(?:are|may\s+be|could\s+be)\s+(?:\w+\s+)?(?:several|many|multiple|various|a\s+number"
    rf"\s+of|different)\s+(?:\w+\s+)?{_PERSON}",
    r"\b(?:appears|seems)\s+to\s+be\s+(?:a\s+)?(?:fictional|private)|\bdid\s+you\s+mean\b|"
    r"\bwhich\s+(?:\w+\s+){1,3}(?:do\s+you|are\s+you)\b|\b(?:question|request|name)\s+is\s+"
    r"(?:unclear|ambiguous|(?:very\s+)?common)",
    # Reasons for a refusal.
    r"\b(?:dangerous|illegal|harmful|unethical|against\s+the\s+law|copyright|protected|privacy|"
    r"guidelines|polic(?:y|ies)|reach\s+out|professional|as\s+an\s+AI|language\s+model|"
    r"training|knowledge\s+(?:cutoff|update)|speculation)\b",
    r"\b(?:rather\s+not|not\s+something\s+I|do\s+not\s+want|don't\s+want|will\s+not\s+write|"
    r"won't\s+write|know\s+nothing\s+about|disappoint\s+you)\b",
)

_RULES = {name: re.compile(pattern, re.I) for name, pattern in _DECLINING.items()}
_NOTHING_SAID = re.compile("|".join(f"(?:{pattern})" for pattern in _EMPTY), re.I)

_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_TURN = re.compile(
    r"[,;:–—]?\s+(?:but|however|though|although|except\s+that)\b,?\s*|,\s+yet\s+|;\s+", re.I
)
_REPORTED = re.compile(
    r"\b(?:he|she|they|who)\s+(?:said|asks?|asked|says|told|wrote|writes)\b|"
    r"\b(?:said|asked|asks|says|wrote|writes)\s+(?:he|she|the|to)\b|,\s+the\s+\w+\s+(?:said|wrote|sang)\b",
    re.I,
)
"""Pattern of clauses that report the words of another person."""

_UNTIL_THEN = re.compile(r"\b(?:before|until|till)\s+(?:\w+\s+)?\d", re.I)
"""Pattern of clauses about a past time, such as "before 1990", which are statements of fact."""

_CONCESSION = re.compile(r"^\W*(?:while|although|though|even\s+though)\b[^,]*,\s*", re.I)

_POLICY = "cannot"
"""Name of the rule for clauses that turn a request down; a further clause may give the reason."""


@dataclass(frozen=True)
class RefusalFilter:
    """Responses that answer, and responses that decline.

    Attributes:
        kept: ids of the responses that answer, in order.
        refused: clauses in which a response declines, by its id.
    """

    kept: tuple[str, ...]
    refused: Mapping[str, tuple[str, ...]]

    @property
    def rate(self) -> float:
        """Share of responses that decline."""
        return len(self.refused) / (len(self.kept) + len(self.refused))


def declining_clauses(response: str) -> tuple[str, ...]:
    """Clauses in which a response declines; none if it answers.

    Only English is supported. Text in double quotation marks is ignored.

    Raises:
        InputError: if the response is not text.
    """
    if not isinstance(response, str):
        raise InputError(f"response is of type {type(response).__name__}; give its text")
    declining: list[str] = []
    answering, policy = 0, False
    for clause in _clauses(_QUOTED.sub(" ", response.replace("’", "'"))):
        rule = next((name for name, pattern in _RULES.items() if pattern.search(clause)), "")
        if rule and not (_REPORTED.search(clause) or _UNTIL_THEN.search(clause)):
            policy = policy or (rule == _POLICY and not declining and not answering)
            declining.append(clause)
        elif not _NOTHING_SAID.search(clause):
            answering += 1
    return tuple(declining) if answering <= int(policy) else ()


def filter_refusals(
    responses: Mapping[str, str] | Iterable[tuple[str, str]],
    declines: Callable[[str], tuple[str, ...]] = declining_clauses,
) -> RefusalFilter:
    """Separate responses that answer from responses that decline.

    Args:
        responses: texts by response id.
        declines: function that returns the declining clauses of a text; empty if it answers.

    Raises:
        InputError: if there is no response, a response is not text, or an id occurs twice.
    """
    items = list(responses.items() if isinstance(responses, Mapping) else responses)
    if not items:
        raise InputError("responses is empty; give at least one text by response id")
    kept: list[str] = []
    refused: dict[str, tuple[str, ...]] = {}
    for identifier, text in items:
        if identifier in refused or identifier in kept:
            raise InputError(f"response {identifier!r} is given twice; give each response once")
        words = declines(text)
        if words:
            refused[identifier] = words
        else:
            kept.append(identifier)
    return RefusalFilter(tuple(kept), MappingProxyType(refused))


def _clauses(text: str) -> list[str]:
    """Split a text into clauses, each of which may decline or answer."""
    clauses = []
    for sentence in _SENTENCE.split(text):
        conceded = _CONCESSION.match(sentence)
        parts = [conceded[0], sentence[conceded.end() :]] if conceded is not None else [sentence]
        clauses += [clause for part in parts for clause in _TURN.split(part)]
    return [clause.strip() for clause in clauses if re.search(r"\w", clause)]
