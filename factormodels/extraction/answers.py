"""What an answer says: labels with their probabilities, confidences, JSON; never more than that.

Answers are data. Nothing in them is evaluated or obeyed; what does not parse is missing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from factormodels.extraction.language_model import Completion, Token

SUREST = 1.0 - 1e-6
"""No probability read from an answer is higher: two certain answers may contradict each other."""

_MOST_OPENINGS = 100
_MARKUP = " \t\r\n*_`\"'([{<#>:-"
_DENIAL = re.compile(
    r"\b(?:not|no|non|nor|neither|never|cannot|without|whether|instead|rather)\b|n['’]t\b", re.I
)


@dataclass(frozen=True, slots=True)
class Label:
    """A label that an answer gives.

    Attributes:
        name: one of the labels that were asked for.
        probability: of the label among the labels; None if the answer has no log-probabilities.
        distribution: probabilities of all labels, in the order they were asked for; None likewise.
    """

    name: str
    probability: float | None = None
    distribution: tuple[float, ...] | None = None


def read_label(answer: Completion, labels: Sequence[str], after: str = "") -> Label | None:
    """Label that an answer gives; None if it gives none, or leaves open which.

    The label is the only one that is mentioned, with no denial before it, or it begins the answer
    and stands alone, in any case and markup. Its probability is that of its first token that tells
    labels apart, normalised over the labels (FactReasoner, section 3.1: the log-probability of the
    predicted label).

    Args:
        answer: the model's answer.
        labels: the labels, lower case, none the beginning of another.
        after: what stands before the label, such as "verdict:", where reasoning precedes it; the
            last one counts, in any case, and without one there is no label.
    """
    skipped = answer.text.lower().rfind(after.lower()) + len(after) if after else 0
    if skipped < len(after):
        return None
    place = _label_place(answer.text[skipped:], labels)
    if place is None:
        return None
    name, start = place[0], skipped + place[1]
    masses = _label_masses(answer.tokens, start, name, labels)
    if masses is None:
        return Label(name)
    total = math.fsum(masses.values())
    others = len(labels) - 1
    shares = [masses[label] / total for label in labels]
    surest = max(shares)
    if surest > SUREST and others:
        rest = (1.0 - SUREST) / others
        shares = [SUREST if share == surest else max(share, rest) for share in shares]
        shares = [share / math.fsum(shares) for share in shares]
    return Label(name, shares[list(labels).index(name)], tuple(shares))


def read_json(text: str) -> Any:
    """First JSON object or list in a text, in prose or a code block; None if none is."""
    decoder = json.JSONDecoder()
    # An answer of nothing but brackets is not worth a search that takes their square.
    for match in islice(re.finditer(r"[\[{]", text), _MOST_OPENINGS):
        try:
            return decoder.raw_decode(text, match.start())[0]
        except (ValueError, RecursionError):
            continue
    return None


def read_confidence(value: object) -> float | None:
    """Probability that an answer states: 0.9, "90%" or "0.9"; None if it is none."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(%?)\s*", value)
        if match is None:
            return None
        value = float(match.group(1)) / (100.0 if match.group(2) else 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        return None
    return min(float(value), SUREST)


def _label_place(text: str, labels: Sequence[str]) -> tuple[str, int] | None:
    """Label of a text and the index of its first character."""
    word = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    found = [
        (match.group(1).lower(), match.start(1))
        for match in re.finditer(rf"(?<!\w)({word})(?!\w)", text, re.IGNORECASE)
    ]
    if not found:
        return None
    name, start = found[0]
    if len({label for label, _ in found}) == 1 and not _DENIAL.search(text[:start]):
        return name, start
    stands_alone = re.match(r"[\s*_`\"')\]}]*(?:[.:;!\n]|$)", text[start + len(name) :])
    return (name, start) if stands_alone and not text[:start].strip(_MARKUP) else None


def _label_masses(
    tokens: Sequence[Token], start: int, name: str, labels: Sequence[str]
) -> Mapping[str, float] | None:
    """Probability of each label at the first token that tells them apart."""
    at = 0
    for number, token in enumerate(tokens):
        end = at + len(token.text)
        if end > start:
            return _first_difference(
                tokens[number:], token.text[: max(0, start - at)], name, labels
            )
        at = end
    return None


def _first_difference(
    tokens: Sequence[Token], lead: str, name: str, labels: Sequence[str]
) -> Mapping[str, float] | None:
    read = ""
    for number, token in enumerate(tokens):
        candidates = [label for label in labels if label.startswith(read)]
        offered = dict(token.alternatives)
        offered.setdefault(token.text, token.log_probability)
        masses = dict.fromkeys(labels, 0.0)
        for text, log_probability in offered.items():
            word = _word(text, lead if number == 0 else "")
            fitting = [label for label in candidates if _continues(label[len(read) :], word)]
            if len(fitting) == 1:
                masses[fitting[0]] += math.exp(min(0.0, log_probability))
        chosen = _word(token.text, lead if number == 0 else "")
        read += chosen
        if len(read) >= len(name) or [x for x in candidates if x.startswith(read)] == [name]:
            return masses if masses[name] > 0.0 else None
    return None


def _word(text: str, lead: str) -> str:
    """What a token adds to a label: lower case, without markup before it."""
    return (
        text[len(lead) :].lstrip(_MARKUP).lower() if text.startswith(lead) else text.strip().lower()
    )


def _continues(remainder: str, word: str) -> bool:
    """Whether a token is a beginning of what remains of a label, or all of it and punctuation."""
    if not word:
        return False
    return remainder.startswith(word) or (
        bool(remainder) and word.startswith(remainder) and not word[len(remainder)].isalnum()
    )
