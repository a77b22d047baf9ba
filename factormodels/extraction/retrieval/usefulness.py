"""Detection of pages that are not evidence: blocked, boilerplate, copies of the response."""

from __future__ import annotations

import re

_BLOCKED = re.compile(
    r"access (?:to this (?:page|site|resource) (?:is|has been) )?(?:denied|blocked|forbidden)"
    r"|(?:403|401) (?:forbidden|unauthori[sz]ed)|verify (?:that )?you are (?:a )?human"
    r"|are you a robot|unusual traffic|complete the captcha|checking your browser"
    r"|(?:enable|turn on|requires?|must have) javascript|javascript is (?:disabled|required)"
    r"|enable cookies|page (?:was |could )?not (?:be )?found|error 404|service unavailable"
    r"|(?:log|sign) in to (?:continue|view|read)|subscribe to (?:continue|read)"
    r"|you (?:do not|don't) have (?:access|permission)",
    re.IGNORECASE,
)
_BOILERPLATE = re.compile(
    r"\bcookies?\b|privacy policy|terms (?:of|and) (?:use|service|conditions)|all rights reserved"
    r"|copyright|©|newsletter|sign up|subscribe|advertis|skip to (?:main )?content"
    r"|accept all|consent",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"\w+")

_SHORT = 150
"""Maximum words of a page that is only an access notice; a long page may mention one."""

_UNREADABLE = 0.1
"""Maximum share of replacement characters in a correctly decoded text."""

_SHINGLE = 8
"""Length of word sequences that two texts on the same subject do not share by chance."""

_LEAST_WORDS = 40
"""Minimum words of a response for detection of copies; a page that repeats less may be its
source."""

_REPEATED = 0.5
"""Minimum share of a response's shingles in a page that is a copy of it."""


def why_useless(text: str) -> str:
    """Return the reason why a page's text is not evidence, in a few words; empty if it may be."""
    words = _WORD.findall(text)
    if not words:
        return "it has no text"
    if text.count("\N{REPLACEMENT CHARACTER}") > _UNREADABLE * len(text):
        return "its characters cannot be read"
    if len(words) < _SHORT and _BLOCKED.search(text):
        return "it blocks access"
    notices = sum(
        len(_WORD.findall(sentence))
        for sentence in _SENTENCE.split(text)
        if _BOILERPLATE.search(sentence)
    )
    return "it is boiler-plate" if 2 * notices > len(words) else ""


def repeats(text: str, response: str) -> bool:
    """Return whether a page contains the response to be checked, which would confirm itself.

    Datasets of answers are published on the web. A response of sufficient length counts as repeated
    if half of its sequences of eight words occur in the page.
    """
    words = _words(response)
    if len(words) < _LEAST_WORDS:
        return False
    shingles = _shingles(words)
    return len(shingles & _shingles(_words(text))) >= _REPEATED * len(shingles)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _shingles(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[i : i + _SHINGLE]) for i in range(len(words) - _SHINGLE + 1)}
