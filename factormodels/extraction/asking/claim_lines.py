"""Parser of claims with verdicts, one per line: the answers of FaStfact's first step."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from factormodels.extraction.asking.stage import CUT_OFF, Fault
from factormodels.extraction.language_model import Completion, Token
from factormodels.extraction.language_model.answers import (
    DENIAL,
    contradicts_itself,
    json_values,
    plain_claim,
    says_none,
)
from factormodels.extraction.language_model.log_probabilities import (
    Unusable,
    spelled_tokens,
    token_log_probabilities,
)
from factormodels.extraction.sentences import Chunk


class PreLabel(StrEnum):
    """The extracting model's verdict on a claim from its own knowledge (FaStfact, section 4.1)."""

    SUPPORTED = "supported"
    NON_SUPPORTED = "non-supported"
    IRRELEVANT = "irrelevant"
    LIKELY_SUPPORTED = "likely supported"
    LIKELY_NON_SUPPORTED = "likely non-supported"
    UNSURE = "unsure"

    @property
    def definite(self) -> bool:
        """True if the label may exempt a claim from search."""
        return self in (PreLabel.SUPPORTED, PreLabel.NON_SUPPORTED, PreLabel.IRRELEVANT)


@dataclass(frozen=True, slots=True)
class PreVerified:
    """A claim with the extracting model's verdict.

    Attributes:
        claim: the claim.
        sentence: 1-based index of its sentence; None if the answer does not state it.
        label: the model's label.
        confidence: probability of the label given the preceding text, the product over its tokens
            (FaStfact, equation 1); None if the log-probabilities give none.
        unusable: reason for a missing confidence; None if there is a confidence.
    """

    claim: str
    sentence: int | None
    label: PreLabel
    confidence: float | None
    unusable: Unusable | None = field(default=None, compare=False)

    def skips(self, threshold: float) -> bool:
        """Return whether the claim needs no search: a definite label above the threshold."""
        return self.label.definite and self.confidence is not None and self.confidence > threshold


@dataclass(frozen=True, slots=True)
class ClaimLines:
    """The parsed lines of an answer.

    Attributes:
        claims: the claims that were parsed, in the order of their sentences if those are known.
        unread: lines that seem to state a claim and could not be parsed.
    """

    claims: tuple[PreVerified, ...]
    unread: tuple[str, ...] = ()

    @property
    def fault(self) -> str:
        """Description of the lines that could not be parsed; empty if there are none."""
        if not self.unread:
            return ""
        count = f"{len(self.unread)} line{'s do' if len(self.unread) > 1 else ' does'}"
        return f"{count} not have the requested form, the first: {self.unread[0][:60]!r}"


def read_claims(answer: Completion, chunk: Chunk) -> ClaimLines | Fault:
    """Parse the claims of an answer line by line; return a fault if no line can be parsed.

    A line consists of an optional sentence number, a claim and a verdict, separated by bars, tabs,
    colons, dashes, brackets, or the paper's "###". Headings, table headers and rules, and prose
    before the first and after the last claim are ignored.

    Args:
        answer: lines "SENTENCE | CLAIM | VERDICT", or similar.
        chunk: the sentences that were asked about.
    """
    if answer.finish == "length":
        return Fault(f"the answer was {CUT_OFF}: claims may be missing")
    if contradicts_itself(answer.text):
        return Fault("a key of the answer has two values")
    answer = _plain(answer)
    if "|" not in answer.text and says_none(answer.text):
        return ClaimLines(())
    return _listed_objects(answer.text, chunk) or _listed_lines(answer, chunk)


def _plain(answer: Completion) -> Completion:
    """Return an answer with plain bars and no invisible characters, and its tokens likewise."""
    signs = str.maketrans(dict.fromkeys("｜│┃║¦", "|") | dict.fromkeys("\u200b\u2060\ufeff", ""))
    return replace(
        answer,
        text=answer.text.translate(signs),
        tokens=tuple(replace(token, text=token.text.translate(signs)) for token in answer.tokens),
    )


_RIGHT, _CROSSED = "✅☑✔✓", "❌❎✗✘"
_WORDS: Mapping[PreLabel, str] = MappingProxyType(
    {
        PreLabel.LIKELY_NON_SUPPORTED: r"(?:likely|probably)[\s_-]*(?:non?t?[\s_-]*|un)supported",
        PreLabel.LIKELY_SUPPORTED: r"(?:likely|probably)[\s_-]*supported",
        # Table 2 of the paper counts refuted claims as N.
        PreLabel.NON_SUPPORTED: r"(?:non?t?[\s_-]*|un)supported|refuted",
        PreLabel.SUPPORTED: r"supported",
        PreLabel.IRRELEVANT: r"irrelevant|not[\s_-]*relevant",
        PreLabel.UNSURE: r"unsure|not[\s_-]*sure|uncertain",
    }
)
"""Patterns of the labels, in any case; ordered so that no label matches within another."""

_SUPPORTING = (PreLabel.SUPPORTED, PreLabel.LIKELY_SUPPORTED)
_LABEL = "|".join(f"(?P<{label.name}>{words})" for label, words in _WORDS.items())
_NUMBER = (
    r"(?:sentences?\s*|s|#)?[\[(]?(?P<number>\d{1,9})(?!\d)(?:\s*(?:[-–,&]|and|to)\s*\d+)*[\])]?"
)
_END = re.compile(
    # The separator from the claim, and optionally the word "verdict" or "label".
    r"(?:[-=]+>|[|\t:;,#\[({<>→=]|\s[-–—]+\s)"
    rf"[\s*_`\"'“#\[({{<>{_RIGHT}{_CROSSED}\uFE0F]*(?:(?:verdict|label)\W+)?"
    rf"(?P<label>{_LABEL})(?!\w)"
    # A sign, then a confidence or a remark: in brackets, after a dash or in a separate column.
    rf"(?P<sign>[\s*_`\"'”#\])}}>.{_RIGHT}{_CROSSED}\uFE0F]*)"
    r"(?P<rest>[|,]?\s*\([^()|]*\)|\|[^|]*|,?\s*\d*\.?\d+\s*%?|(?P<reason>[-–—]+\s[^|]*))?"
    r"[\s.|]*\Z",
    re.I,
)
_CUT_VERDICT = re.compile(
    r"\W*(?:likely|probably|not?|non|un|partly|partially|mostly|verdict|label)\W*", re.I
)
"""Content of the last column if it belongs to the verdict."""
_STRANGE_NUMBER = re.compile(r"\W*\d\w*(?:\.\w+)*\W*\|")
"""A first column that is a number, but not the number of a sentence: "1.2 |"."""
_LONGEST_NUMBER = 10
_LONGEST_END = 300
"""Number of characters at the end of a line that are searched for its verdict."""

_START = re.compile(
    # A quotation mark or code; a bullet, or the item number before the sentence number.
    rf"[\s|]*(?:[>`]\s*(?=\d+\s*[|\t:]))?(?P<item>[-*•]\s+|\(?\d+[.)]\s+(?=\d+\s*[|\t:]))?"
    rf"(?:[*_]*{_NUMBER}[*_]*\s*(?P<after>[|\t:;,]|\s[-–—]\s|$)[\s|]*)?"
    r"(?P<text>(?P<listed>\(?\d+[.)]\s)?.*)",
    re.I | re.S,
)
_HEADER = re.compile(r"\b(?:claims?|verdicts?|labels?|sentences?|confidence)\b", re.I)
_ATTEMPT = re.compile(
    rf"[\s|*_]*(?:[-*•]\s|\(?\d+[.):]|{_NUMBER}\s*[|:])|.*(?:[|\t]|###)|.*\bsupported\W*$",
    re.I,
)


def _listed_lines(answer: Completion, chunk: Chunk) -> ClaimLines | Fault:
    tokens = spelled_tokens(answer)
    claims: list[PreVerified] = []
    unread: list[str] = []
    between: list[str] = []
    heading = chunk.first if len(chunk.sentences) == 1 else None
    read, broken, start = False, False, 0
    for line in answer.text.splitlines(keepends=True):
        text, at = line.strip(), start
        start += len(line)
        # A line without letters or digits is empty, or a rule of a table.
        if re.fullmatch(r"```\w*|[\W_]*", text):
            continue
        begin = _START.fullmatch(text)
        number, rest = _numbered(begin, chunk) if begin is not None else (None, "")
        known = heading if number is None else number
        if number is not None and (not rest or rest == chunk.sentences[number - chunk.first]):
            # "2:", or the sentence itself: the following lines belong to it.
            heading, broken = number, False
            continue
        if says_none(rest):
            read, broken = True, False
            continue
        # The continuation of an unparsed line is not a separate claim.
        claim = None if broken and number is None else _claim(line, at, known, chunk, tokens)
        if claim is not None:
            unread += between
            between, broken = [], False
            claims.append(claim)
        elif _ATTEMPT.match(text):
            if not ("|" in text and not claims and not unread and _HEADER.search(text)):
                unread.append(text)
                broken = True
        elif claims and not re.search(r"^#|[:*_]$", text):
            # Reported only if a claim follows, since a claim was then expected here.
            between.append(text)
    if not claims and not read:
        example = f": {unread[0][:60]!r}" if unread else ""
        return Fault(f"the answer lists no claim and does not say that there is none{example}")
    return ClaimLines(_in_order(claims), tuple(unread))


def _numbered(begin: re.Match[str], chunk: Chunk) -> tuple[int | None, str]:
    """Return the sentence number of a line (None if absent), and the rest of the line."""
    number = begin["number"]
    if number is None or not 0 <= int(number) - chunk.first < len(chunk.sentences):
        return None, begin["text"]
    return int(number), begin["text"].strip(" |*_")


def _claim(
    line: str, at: int, known: int | None, chunk: Chunk, tokens: Sequence[Token] | Unusable
) -> PreVerified | None:
    """Parse the claim of a line, given its offset in the answer; None if it cannot be parsed."""
    text = line.rstrip("\r\n")
    end = _END.search(text, max(0, len(text) - _LONGEST_END))
    if end is None:
        return None
    remark = end["rest"] or ""
    if re.search(_LABEL, remark, re.I) or DENIAL.search(remark):
        return None
    if end["reason"] and end[0][0] not in "|\t#":
        return None  # "The claim, supported - so they say - by many"
    label = next(candidate for candidate in _WORDS if end[candidate.name])
    wrong = _CROSSED if label in _SUPPORTING else _RIGHT
    if any(sign in wrong for sign in end["sign"]):
        return None
    begin = _START.fullmatch(text[: end.start()])
    _, bar, last = text[: end.start()].rpartition("|")
    if begin is None or (bar and _CUT_VERDICT.fullmatch(last)):
        return None
    claim = begin["text"]
    if _STRANGE_NUMBER.match(claim):
        return None
    number = begin["number"]
    if number is not None and not 0 <= int(number) - chunk.first < len(chunk.sentences):
        if begin["after"] in "|\t":
            return None
        # The number begins the claim and is not a sentence number: "1890: it opened".
        claim = text[: end.start()].strip(" |\t-*•")
    enclosed = re.fullmatch(r"([\"“`*_]+)(.*?)[\"”`*_]+", claim.strip(" |\t"))
    if enclosed is not None and enclosed[1] not in enclosed[2]:
        claim = enclosed[2]
    # An unpaired mark encloses more than the claim.
    claim = plain_claim(claim.strip(" |\t*" if claim.count("**") % 2 else " |\t"), chunk.text)
    listed = number or begin["item"] or begin["listed"] or text.lstrip()[:1] == "|"
    # Prose may end like a verdict: "my verdict: supported".
    if not any(map(str.isalpha, claim)) or not (listed or end[0][0] in "|\t#[({<"):
        return None
    span = (at + end.start("label"), at + end.end("label"))
    confidence = _probability(tokens, *span)
    if isinstance(confidence, Unusable):
        return PreVerified(claim, known, label, None, confidence)
    return PreVerified(claim, known, label, confidence)


def _listed_objects(text: str, chunk: Chunk) -> ClaimLines | None:
    """Parse a JSON answer: objects with "claim", "verdict" and an optional "sentence"."""
    values: list[Any] = []
    for value in json_values(text):
        inner = value.get("claims", value) if isinstance(value, dict) else value
        values += inner if isinstance(inner, list) else [inner]
    objects = [value for value in values if isinstance(value, dict) and "claim" in value]
    claims, unread = [], []
    for item in objects:
        word = str(item.get("verdict", item.get("label"))).strip(" #*")
        label = next((label for label in _WORDS if re.fullmatch(_WORDS[label], word, re.I)), None)
        number = item.get("sentence", chunk.first if len(chunk.sentences) == 1 else None)
        number = int(number) if isinstance(number, str) and _digits(number) else number
        inside = number is None or (
            type(number) is int and 0 <= number - chunk.first < len(chunk.sentences)
        )
        if label is None or not inside or not isinstance(item["claim"], str):
            unread.append(str(item))
        else:
            claim = plain_claim(item["claim"], chunk.text)
            claims.append(PreVerified(claim, number, label, None, Unusable.ABSENT))
    return ClaimLines(_in_order(claims), tuple(unread)) if claims else None


def _digits(text: str) -> bool:
    """Return whether a text is a whole number short enough for `int`."""
    return text.isdecimal() and len(text) < _LONGEST_NUMBER


def _in_order(claims: list[PreVerified]) -> tuple[PreVerified, ...]:
    if all(claim.sentence is not None for claim in claims):
        claims.sort(key=lambda claim: claim.sentence or 0)
    return tuple(claims)


def _probability(tokens: Sequence[Token] | Unusable, begin: int, end: int) -> float | Unusable:
    """Return the probability of the characters from `begin` to `end`."""
    if isinstance(tokens, Unusable):
        return tokens
    values = token_log_probabilities(tokens, begin, end)
    return values if isinstance(values, Unusable) else math.exp(math.fsum(values))
