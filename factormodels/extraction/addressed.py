"""Sentences of a passage that address its reader in order to change a judgment.

A page found on the web may contain instructions to the model that judges it. The rule marks a
sentence that

- tells its reader to ignore instructions, the text or the question;
- tells its reader what to answer, reply, say or output, by the name of a verdict;
- addresses a language model, an assistant or a bot, and tells it what to do.

Instructions are imperatives, and statements of what "you must" do or what "your answer" has to be.
Reported instructions ("he was told to answer") are not marked. The rule covers English only, and
misses instructions that are spread over several sentences, each harmless by itself.
"""

from __future__ import annotations

import re

from factormodels.extraction.sentences import split_sentences

_VERDICTS = (
    r"entail(?:s|ed|ment)?|contradict(?:s|ed|ion)?|neutral|supported|unsupported|refuted|undecided"
    r"|true|false|correct|incorrect|yes|no|verified|accurate|factual"
)
_MACHINE = (
    r"(?:large )?language models?|llms?|a\.?i\.?(?: (?:model|system|assistant|agent)s?)?"
    r"|(?:helpful )?(?:ai )?assistants?|chat ?bots?|chatgpt|gpt(?:-\w+)?|claude|gemini|bots?"
    r"|fact[- ]?checkers?|helpful systems?"
)
_OVERRIDE = r"ignore|disregard|forget|override|bypass|overlook|do not (?:follow|compare|judge|read)"
_OVERRIDDEN = (
    r"instructions?|prompts?|rules?|guidelines?|directions?|orders?|questions?|claims?|texts?"
    r"|passages?|documents?|contexts?|everything|above|before|previous|prior|preceding|earlier"
)
_ANSWER = (
    r"answer|respond|reply|say|output|print|return|write|state|conclude|classify|label|mark|rate"
    r"|choose|select|report|declare|give|pick"
)
_OPENING = (
    # An imperative begins a sentence, or follows punctuation, an address or an introductory word.
    r"(?:^|[:;,.!–—(\[\"“«]\s*|\b(?:please|kindly|just|now|then|simply|only|always|instead|and|so)\s+"
    r"|\byou (?:must|should|shall|will|have to|need to|are to|are required to|are instructed to|can"
    r"|may) (?:now |only |always |just |simply )?)"
)
_OVERRIDES = re.compile(
    rf"{_OPENING}(?:{_OVERRIDE})\b[^.!?]{{0,60}}\b(?:{_OVERRIDDEN})\b", re.IGNORECASE
)
_ANSWERS = re.compile(
    # No other subject may intervene: "choose a plan that she may call true" demands no verdict.
    rf"{_OPENING}(?:{_ANSWER})\b(?:(?!\b(?:he|she|they|we|i|who|which)\b)[^.!?]){{0,60}}?"
    rf"\b(?:with |is |as |that |only |just |: ?)?[\"'“‘*`]?(?:{_VERDICTS})\b",
    re.IGNORECASE,
)
_YOUR_ANSWER = re.compile(
    r"\byour (?:answer|reply|response|output|verdict|label|judge?ment|classification|decision)\b"
    rf"[^.!?]{{0,40}}\b(?:{_VERDICTS})\b",
    re.IGNORECASE,
)
_SPEAKS_TO = re.compile(
    r"(?:\b(?:note|notice|message|instructions?|attention|memo|hint|reminder|dear|hello|hi|hey"
    r"|if you are|you are)|(?:^|[:;,.(\[]\s*)(?:to|for|as))"
    rf" (?:to |for |all |any |the |an? |every )*(?:{_MACHINE})\b",
    re.IGNORECASE,
)
_TELLS = re.compile(
    rf"{_OPENING}(?:{_ANSWER}|{_OVERRIDE}|treat|consider|assume|accept|believe|do not|don't|never"
    r"|remember|follow|obey|act|pretend)\b"
    r"|\byou(?:r answer)? (?:must|should|shall|have to|need to)\b"
    rf"|\b(?:must|should|shall|have to) (?:now |only |always )?(?:{_ANSWER}|{_OVERRIDE})\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"\?\s*[\"'”’)]*$")


def addresses_reader(sentence: str) -> bool:
    """Return whether a sentence tells its reader what to answer, or to ignore something."""
    text = " ".join(sentence.split())
    # Questions, as on a page of questions and answers, are not instructions.
    if _QUESTION.search(text):
        return False
    return bool(
        _OVERRIDES.search(text)
        or _YOUR_ANSWER.search(text)
        or _commands_a_verdict(text)
        or (_SPEAKS_TO.search(text) and _TELLS.search(text))
    )


def _commands_a_verdict(text: str) -> bool:
    match = _ANSWERS.search(text)
    if match is None:
        return False
    # Match "Say yes" and "Answer: true", but not "Write about true events".
    after = text[match.end() :].lstrip(" \"'”’*`)]")
    return not after or bool(
        re.match(r"[.,;:!–—)\]]|(?:only|to|for|and|in|as|whatever|regardless|no matter)\b", after)
    )


def addressing_sentences(text: str, language: str | None = None) -> tuple[str, ...]:
    """Return the sentences of a passage that address its reader, in order.

    Args:
        text: the passage.
        language: code of its language; None detects it.
    """
    return tuple(filter(addresses_reader, split_sentences(text, language)))


def without_sentences(text: str, sentences: tuple[str, ...]) -> str:
    """Return a text without the given sentences, with single spaces in their place."""
    for sentence in sentences:
        text = text.replace(sentence, " ", 1)
    return " ".join(text.split())
