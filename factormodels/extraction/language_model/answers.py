"""Parsers of answers: labels with their probabilities, confidences, JSON.

Answers are data. They are never evaluated or obeyed; parts that do not parse are missing.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from factormodels.extraction.language_model import Completion, Failure
from factormodels.extraction.language_model.log_probabilities import (
    OPENNESS,
    Unusable,
    label_shares,
)

SUREST = 1.0 - 1e-6
"""Maximum probability read from an answer, since two certain answers may contradict each other."""

_SHOWN = 60
_MOST_OPENINGS = 100
_MOST_ESCAPES = 3
_LONGEST_REMARK = 40
_MARKUP = " \t\r\n*_`\"'([{<#>:-"
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*•–]|\(?\d{1,3}[.):])[ \t]+(?P<text>\S.*)")
_TEXT = (
    r"(?:\w+ )?(?:sentences?|text|passage|response|answer|statement|excerpt|fragment|input|chunk)"
)
_DONE = r"made|found|present|given|stated|contained|extracted"
_NONE = re.compile(
    r"none|nothing|nil|n/a|null|"
    rf"(?:none|neither) of (?:the|these|those) {_TEXT} "
    r"(?:contains?|makes?|has|have|states?|holds?) "
    r"(?:an?|any) (?:[\w-]+ ){0,3}(?:claims?|facts?|statements?|assertions?)|"
    r"(?:(?:there (?:is|are)|i (?:can )?(?:find|found|see)|"
    rf"(?:this|the|these) {_TEXT} (?:contains?|makes?|has|have|states?|holds?)) )?"
    r"(?:no|not any|zero)\b(?: (?!not\b|one\b)[\w-]+){0,3} "
    r"(?:claims?|facts?|statements?|assertions?)"
    rf"(?: (?:here|{_DONE}|(?:is|are|was|were) (?:{_DONE})|to (?:list|extract|verify|check)|"
    r"that (?:can|could) be (?:verified|checked|looked up|extracted)|"
    rf"(?:in|of|from) (?:this|the|these|that) {_TEXT}))*",
    re.I,
)
"""Pattern of an answer that states that there are no claims, without surrounding punctuation."""

AMBIGUOUS = object()
"""Marker for a JSON value in which a key has two values."""

DENIAL = re.compile(
    r"\b(?:not|no|non|nor|neither|never|cannot|without|whether|instead|rather)\b|n['’]t\b", re.I
)

_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z]\w{1,30});", re.I)
_TAGS = re.compile(
    r"^(?:\s*</?[a-z][\w:-]*(?:\s[^<>]*)?>)+|(?:\s*</[a-z][\w:-]*\s*>)+(?=[.,;!?\s]*$)|"
    r"(?:\s*</[a-z][\w:-]*\s*>)+(?=\s*<)|<(?:br|hr)\s*/?>|</(?:[a-z][\w:-]*)?\s*$|"
    # Markers of the end of a turn in chat templates.
    r"^\s*<\|\w{1,30}\|>|<\|\w{1,30}\|>\s*$",
    re.I,
)
_ENCLOSED = re.compile(r"<([a-z][\w:-]*)(?:\s[^<>]*)?>(?=\S)([^<>]*)(?<=\S)</\1\s*>", re.I)
_NUMBERING = re.compile(
    r"\s*(?:(?:[-*•–]\s+)?\[[ x]?\]\s+|[-*•–]\s+|#{1,6}\s+|\[\d{1,3}\]\s*|\(?\d{1,3}[.):]\s+|"
    r"\(?[a-z]\)\s+|"
    r"(?:(?:atomic|sub)?[ -]?(?:claim|fact|statement)|sentence)\s*#?\d{1,3}\s*[.:)–-]\s*|"
    r"(?:(?:atomic|sub)[ -]?)?(?:claim|fact|statement):\s+)"
    r"(?P<word>\S+)?",
    re.I,
)
_EMPHASIS = re.compile(r"(?<![\w*])\*\*(?=\S)(.+?)(?<=\S)\*\*(?![\w*])")

_ANSWER = (
    r"(?:answer|verdict|label|relation(?:ship)?|conclusion|classification|judge?ment|decision|"
    r"choice|category|output|result)"
)
_OPENING = r"[\s*_`\"'“‘«(\[{$#]*(?:\\boxed\{\s*)?(?:\\text(?:bf)?\{\s*)?"
_ALONE = r"[\s*_`\"'”’»)\]}$#]*(?:[.,;:!\n。，！]|</[a-z]|$)"
_MARKS = (
    # The strongest mark first: if it occurs, weaker marks belong to the preceding reasoning.
    rf"(?:\bfinal\W+(?:\w+\W+)?{_ANSWER}\b[*_`\"'\s]*(?::|=|\bis\b)[*_`\"'\s]*:?|"
    rf"<(?:final[\s_-]?)?{_ANSWER}>){_OPENING}",
    rf"\b{_ANSWER}\b[*_`\"'\s]*(?::|=|\bis\b)[*_`\"'\s]*:?{_OPENING}",
    r"\\boxed\{\s*(?:\\text(?:bf)?\{\s*)?",
    r"\*\*\s*",
)
"""Patterns of marks before an answer, the strongest first."""

_EXCLUDED = re.compile(
    r"[(\[]\s*(?:(?:and|but)\s+)?(?:not|no|rather\s+than|instead\s+of)\s+(?:an?\s+)?\Z", re.I
)
"""Text before a label that a remark in brackets excludes as the answer."""
_ASKED = re.compile(r"[\s*_`\"')\]]*\?[\s*_`\"'(]*(?P<reply>yes|no)\b", re.I)
"""Text after a label that an answer raises as a question and decides: "Neutral? No."."""
_STATING = re.compile(
    r"(?:^|,\s*so\b)[\W_]*(?:(?:so|and|wait|actually|it|this|that|is|s|an?|the)\b[\W_]*)*\Z", re.I
)
"""Text before a label in its clause, if the label is the whole statement."""
_STATED = re.compile(r"[\s*_`\"')\]}#]*(?:[.:;!\n]|$)")
"""Text after a label that is stated alone."""

_PAIR = re.compile(
    r"\s*([\"'])(?P<key>\w+)\1\s*:\s*"
    r"(?:([\"'])(?P<text>[^\"'{}]*)\3|(?P<number>\d{0,9}[.,]?\d{1,20}\s?%?))\s*(?:,|$)"
)
"""Key and value of an object that is nearly JSON: single quotes, informal numbers."""


@dataclass(frozen=True, slots=True)
class Label:
    """A label in an answer.

    Attributes:
        name: one of the requested labels.
        probability: probability of the label among the labels; None if the log-probabilities of the
            answer give none.
        distribution: probabilities of all labels, in the order of the request; None likewise.
        unusable: reason for the missing probability; None if there is one, or none was requested.
    """

    name: str
    probability: float | None = None
    distribution: tuple[float, ...] | None = None
    unusable: Unusable | None = None


def read_label(
    answer: Completion,
    labels: Sequence[str],
    after: str = "",
    also: Mapping[str, str] = MappingProxyType({}),
    openness: float = OPENNESS,
) -> Label | None:
    """Return the label that an answer gives; None if it gives none or more than one.

    The label is, in any case and markup, the label marked as the answer, such as "**Final answer:**
    neutral"; or the only label that is mentioned and not denied; or a label alone at the beginning
    of the answer. Its probability is the probability of its tokens up to the point that
    distinguishes the labels, normalized over the labels, as `label_shares` computes it
    (FactReasoner, section 3.1: the log-probability of the predicted label).

    Args:
        answer: the model's answer.
        labels: the labels, lower case.
        after: mark before the label, such as "verdict:" or "[", if reasoning precedes it; the last
            occurrence counts, in any case and markup. Without such a mark, the label is alone on
            the last line, or marked otherwise.
        also: other words that mean a label, lower case, each with its label.
        openness: as in `label_shares`.
    """
    spelled = {label: label for label in labels}
    # Keep the order of the labels; a label's own spelling takes precedence over other meanings.
    meanings = {**spelled, **also, **spelled}
    skipped = end_of_marker(answer.text, after) if after else 0
    if skipped is None:
        skipped, mention = 0, marked_place(answer.text, list(meanings))
    else:
        mention = _label_place(answer.text[skipped:], meanings)
    if mention is None:
        return None
    return weighed_label(answer, skipped + mention[1], mention[0], meanings, openness)


def weighed_label(
    answer: Completion,
    start: int,
    word: str,
    meanings: Mapping[str, str],
    openness: float = OPENNESS,
) -> Label:
    """Return the label that a word of an answer means, with its probability among the labels.

    Args:
        answer: the answer.
        start: index of the word's first character in the answer.
        word: the word, lower case.
        meanings: labels by the words that mean them, lower case, including `word`. Labels are
            ordered by first occurrence.
        openness: as in `label_shares`.
    """
    labels, name = list(dict.fromkeys(meanings.values())), meanings[word]
    computed = label_shares(answer, start, word, meanings, openness)
    if isinstance(computed, Unusable):
        return Label(name, unusable=computed)
    others = len(labels) - 1
    shares = list(computed)
    surest = max(shares)
    if surest > SUREST and others:
        rest = (1.0 - SUREST) / others
        shares = [SUREST if share == surest else max(share, rest) for share in shares]
        shares = [share / math.fsum(shares) for share in shares]
    return Label(name, shares[labels.index(name)], tuple(shares))


def marked_place(text: str, words: Sequence[str]) -> tuple[str, int] | None:
    """Return the word that a text marks as its answer, and its index; None if none, or several
    differ.

    Args:
        text: an answer, possibly with reasoning.
        words: the possible answers, lower case.
    """
    word = any_of(words)
    for mark in _MARKS:
        marked = [
            (" ".join(match[1].lower().split()), match.start(1))
            for match in re.finditer(rf"{mark}({word})(?!\w)(?={_ALONE})", text, re.I)
            if not DENIAL.search(clause_before(text, match.start(1)))
        ]
        if marked:
            return marked[-1] if len({name for name, _ in marked}) == 1 else None
    return None


def any_of(words: Sequence[str]) -> str:
    """Return a pattern of any of the words, longer ones before their prefixes."""
    ordered = sorted(words, key=len, reverse=True)
    return "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in ordered)


def clause_before(text: str, start: int) -> str:
    """Return the text before an index in the same clause."""
    return re.split(r"[.;:!?\n]|\b(?:but|however|therefore|hence|thus)\b", text[:start])[-1]


def json_values(text: str) -> Iterator[Any]:
    """Yield the JSON objects and lists in a text, in prose, code blocks or bullets, in order.

    Empty ones count only if they are alone on a line. The search ends with `AMBIGUOUS` at a value
    in which a key has two values.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_object_of)
    at = 0
    # Limits a search that would take quadratic time for an answer of brackets only.
    for _ in range(_MOST_OPENINGS):
        opening = re.compile(r"[\[{]").search(text, at)
        if opening is None:
            return
        start = opening.start()
        try:
            value, at = decoder.raw_decode(text, start)
        except _RepeatedKeyError:
            yield AMBIGUOUS
            return
        except (ValueError, RecursionError):
            at = start + 1
            continue
        if value or _stands_alone(text, start, at):
            yield value


def contradicts_itself(text: str) -> bool:
    """Return whether JSON in a text has a key with two values, and is therefore ambiguous."""
    return any(value is AMBIGUOUS for value in json_values(text))


def list_items(text: str) -> list[str] | None:
    """Return the texts of a list with bullets or numbers; None if an answer is not only a list.

    Headings and lines that end in a colon may precede the list, and a code block may enclose it.
    Indented lines continue the item above.
    """
    items: list[str] = []
    depth = ""
    for line in text.strip().splitlines():
        item = _ITEM.fullmatch(line)
        if not line.strip() or line.strip().startswith("```"):
            continue
        if item is not None and (not items or item["indent"] == depth):
            depth = item["indent"]
            items.append(item["text"].strip())
        elif not items and re.search(r"(^\s*#|:[*_\s]*$)", line):
            continue
        elif items and item is None and line.startswith((depth + " ", depth + "\t")):
            items[-1] += " " + line.strip()
        else:
            return None
    return items or None


def plain_claim(text: str, source: str) -> str:
    """Return a claim of an answer without entities, tags, numbering and emphasis around it.

    The tags that fence texts in a prompt, and their escaped forms, reappear in claims. Unpaired
    tags, as in a claim about HTML, are kept; so is a number before the first word if the source has
    it too, as in the name "1. FC Köln".

    Args:
        text: the claim.
        source: the sentences that it was extracted from.
    """
    for _ in range(_MOST_ESCAPES):
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    # Nested tags, innermost first.
    for _ in range(_MOST_ESCAPES):
        text = _ENCLOSED.sub(r"\2", text)
    text = _EMPHASIS.sub(r"\1", _TAGS.sub(" ", text))
    numbered = _NUMBERING.match(text)
    if numbered is not None and " ".join(numbered[0].split()) not in " ".join(source.split()):
        text = text[numbered.start("word") if numbered["word"] else numbered.end() :]
    return " ".join(text.split())


def says_none(text: str) -> bool:
    """Return whether an answer states that there are no claims, and nothing else of weight."""
    first = re.split(r"(?<=[.!])\s+|\n", text.strip(_MARKUP + ".!`])}"))[0]
    return _NONE.fullmatch(first.strip(_MARKUP + ".!`])}")) is not None


def read_stated(text: str, labels: Sequence[str]) -> tuple[str, float] | None:
    """Return the relation in an answer's JSON object, and the stated confidence.

    Keys may be capitalized. Without valid JSON, an object with single quotes or informal numbers
    counts. Return None if there is no such object, several that disagree, or a key with two values.

    Args:
        text: the answer.
        labels: the relations, lower case.
    """
    if contradicts_itself(text):
        return None
    objects = [
        [(str(key).lower(), inner) for key, inner in value.items()]
        for value in json_values(text)
        if isinstance(value, dict)
    ]
    stating = [pairs for pairs in objects if "relation" in dict(pairs)]
    if not stating:
        stating = [pairs for pairs in _near_objects(text) if "relation" in dict(pairs)]
    stated = set()
    for pairs in stating:
        value = dict(pairs)
        name = str(value["relation"]).strip(_MARKUP + ".").lower()
        confidence = read_confidence(value.get("confidence"))
        clear = name in labels and confidence is not None and len(value) == len(pairs)
        stated.add((name, confidence) if clear and confidence is not None else None)
    return stated.pop() if len(stated) == 1 else None


def read_confidence(value: object) -> float | None:
    """Return a stated probability: 0.9, "90%", "0.9" or "0,9"; None if it is not a probability.

    90 without a percent sign is not a probability, and neither is "1,000", which may mean a
    thousand.
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d*[.,]?\d+)\s*(%?)\s*", value, re.ASCII)
        if match is None or re.match(r"\s*[1-9]\d*,\d{3}", value):
            return None
        value = float(match.group(1).replace(",", ".")) / (100.0 if match.group(2) else 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        return None
    return min(float(value), SUREST)


def unreadable(answer: Completion, fault: str) -> Failure:
    """Return the failure of an answer that cannot be parsed, with the beginning of the answer."""
    words = " ".join(answer.text.split())[:_SHOWN]
    reason = f"the answer cannot be read: {fault}: {words!r}"
    return Failure(reason, answer.usage, unread=True)


class _RepeatedKeyError(ValueError):
    """A key of a JSON object has two values."""


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if any(value[key] is not inner and value[key] != inner for key, inner in pairs):
        raise _RepeatedKeyError
    return value


def _near_objects(text: str) -> Iterator[list[tuple[str, str]]]:
    """Yield keys, lower case, and values of flat objects that are nearly JSON."""
    for braced in re.findall(r"\{([^{}]*)\}", text):
        pairs, at = [], 0
        while (pair := _PAIR.match(braced, at)) is not None:
            value = pair["number"] if pair["text"] is None else pair["text"]
            pairs.append((pair["key"].lower(), value))
            at = pair.end()
        if not braced[at:].strip():
            yield pairs


def _stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[:start].rpartition("\n")[2], text[end:].partition("\n")[0]
    return not before.strip("` \tjson") and not after.strip("`. \t")


def end_of_marker(text: str, marker: str) -> int | None:
    """Return the start of a label after a marker, or alone on the last line."""
    # A mark such as "###" may also follow the label; no word follows that one.
    word = re.escape(marker.rstrip(":"))
    what = rf"(?<!\w){word}[*_`\"\s]*:" if marker.endswith(":") else rf"{word}(?=\s*\w)"
    ends = [match.end() for match in re.finditer(what, text, re.I)]
    if ends:
        return ends[-1]
    last = text.rstrip().rpartition("\n")[2]
    return text.rfind(last) if len(last.split()) == 1 else None


def _label_place(text: str, meanings: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the word of a text that means its label, and the index of its first character."""
    mentions: list[tuple[str, int]] = []
    affirmed: list[tuple[str, int]] = []
    stated: set[str] = set()
    for match in re.finditer(rf"(?<!\w)({any_of([*meanings])})(?!\w)", text, re.IGNORECASE):
        word, start = " ".join(match[1].lower().split()), match.start(1)
        clause = clause_before(text, start)
        asked = _ASKED.match(text, match.end())
        if _excluded(text, match) or (asked is not None and asked["reply"].lower() == "no"):
            continue
        mentions.append((word, start))
        if asked is not None and not DENIAL.search(clause):
            affirmed.append((word, start))
        if _STATED.match(text, match.end()) and _STATING.search(clause):
            stated.add(meanings[word])
    if not mentions:
        return None
    marked = marked_place(text, [*meanings])
    if marked is not None:
        return marked
    name, start = mentions[0]
    if len({meanings[word] for word, _ in mentions}) == 1:
        if affirmed == mentions:
            return affirmed[0]
        if not DENIAL.search(text[:start]):
            return name, start
    alone = _STATED.match(text, start + len(name)) and not text[:start].strip(_MARKUP)
    return (name, start) if alone and len(stated) == 1 else None


def _excluded(text: str, label: re.Match[str]) -> bool:
    """Return whether a remark in brackets excludes a label, and only that label."""
    before = _EXCLUDED.search(text, max(0, label.start() - _LONGEST_REMARK), label.start())
    return before is not None and re.compile(r"\s*[)\]]").match(text, label.end()) is not None
