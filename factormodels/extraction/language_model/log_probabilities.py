"""Log-probabilities of an answer: validity checks, spelling of tokens, shares of labels.

Servers differ in the values they send under this name. Probabilities are computed only from tokens
that spell the answer, and from values that can be natural log-probabilities of the most probable
tokens; otherwise, the result is a reason, `Unusable`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, lru_cache

from factormodels.extraction.language_model.interface import Completion, Token

OPENNESS = 0.05
"""Default maximum width of a probability's interval when labels are missing from the list."""

_ROUNDING = 0.01
"""Maximum excess of a probability, or of a sum, over 1 due to bfloat16 rounding."""

_NEVER_LISTED = -99.0
"""Values at or below mean "not listed" (-100, -9999, the lowest float, -inf)."""

_LARGEST_VOCABULARY = 2**20
"""Upper bound on the size of a vocabulary."""

_SAME = 1e-4
"""Maximum difference of two equal log-probabilities printed with four digits."""

_EDGE = 1e-9
"""Tolerance for rounding of an interval's width."""


class Unusable(StrEnum):
    """Reasons why log-probabilities of an answer give no probability."""

    ABSENT = "no log-probabilities were given"
    SPELLING = "the tokens do not spell the answer"
    NOT_A_NUMBER = "a log-probability is not a number"
    POSITIVE = "a log-probability is above 0"
    EXCESS = "the probabilities of one place sum to more than 1"
    NO_VALUE = "the chosen token has no log-probability"
    NO_ALTERNATIVES = "no tokens are listed beside the chosen one"
    GREEDY = "the chosen token alone has a probability, as reported under greedy sampling"
    TWO_VALUES = "the chosen token has two log-probabilities"
    NOT_LIKELIEST = "the listed tokens cannot be the most probable ones"
    OPEN = "the listed tokens leave the probability open"


# --- Spelling of an answer by tokens
# -----------------------------------------------------------------

Spelling = Callable[[str], bytes]
"""Function from a server's form of a token to the bytes of its text."""

_SPECIAL = re.compile(
    r"<\|[^|<>]{1,40}\|>|<｜[^｜<>]{1,40}｜>|</?s>|"
    r"<(?:eos|bos|pad|unk|eot|end_of_turn|start_of_turn|end_of_utterance)>"
)
"""Token that begins or ends a turn and is not text."""

_FENCED = re.compile(rb"(```(?:json)?)(.*)```", re.DOTALL)
"""Code block without white space; some servers send only its content, but all its tokens."""

_BYTE_ESCAPE = re.compile(r"<0x([0-9A-Fa-f]{2})>|\\x([0-9A-Fa-f]{2})")


def fitted(
    text: str, tokens: Sequence[Token], *, thoughts: bool = False
) -> tuple[Token, ...] | None:
    """Return the tokens in plain text, whose concatenation is the answer; None if they do not spell
    it.

    Tokens are interpreted as plain text, as GPT-2's byte-level vocabulary (Ġ for a space), as
    SentencePiece (▁, and bytes as <0x0A>) and as WordPiece (##); the first interpretation that
    spells the answer is used, also for the alternatives. White space is ignored, since servers
    strip it. The tokens may enclose the answer in a code block, of which llama.cpp's server with a
    JSON schema sends only the content.

    Args:
        text: the answer.
        tokens: the tokens reported by a server.
        thoughts: whether tokens of reasoning may precede those of the answer.
    """
    while tokens and _SPECIAL.fullmatch(tokens[-1].text.strip()):
        tokens = tokens[:-1]
    while tokens and _SPECIAL.fullmatch(tokens[0].text.strip()):
        tokens = tokens[1:]
    for spelling in (_plain, _byte_level, _pieces, _word_pieces):
        ends = _ends(text, [spelling(token.text) for token in tokens], thoughts)
        if ends is not None:
            return tuple(
                replace(
                    token,
                    text=text[begin:end],
                    alternatives=tuple(
                        (_spelled(other, spelling), value) for other, value in token.alternatives
                    ),
                )
                for token, begin, end in zip(tokens, (0, *ends), ends, strict=False)
                if end > 0
            )
    return None


def _ends(text: str, spelled: Sequence[bytes], thoughts: bool) -> list[int] | None:
    """Return the ends of the tokens in the text, starting with 0; None if they do not spell it."""
    # For each byte that is not white space, the index of its character.
    places: list[int] = []
    wanted = bytearray()
    for index, character in enumerate(text):
        if not character.isspace():
            encoded = _plain(character)
            wanted += encoded
            places += [index] * len(encoded)
    kept = [_without_space(each) for each in spelled]
    whole = b"".join(kept)
    fenced = _FENCED.fullmatch(whole)
    if fenced is not None and fenced[2] == wanted:
        skipped = len(fenced[1])
    else:
        skipped, fenced = len(whole) - len(wanted), None
        if skipped < 0 or (skipped and not thoughts) or whole[skipped:] != wanted:
            return None
    if not wanted:
        return None
    ends: list[int] = []
    at = -skipped
    for each in kept:
        if fenced is not None and at >= len(places):
            break  # the remaining tokens close the block
        at += len(each)
        if at <= 0:
            ends.append(0)
        elif at >= len(places):
            ends.append(len(text))
        else:
            # A character shared by two tokens belongs to the first, as does trailing space.
            ends.append(places[at] + (places[at] == places[at - 1]))
    return ends


def _without_space(spelled: bytes) -> bytes:
    decoded = spelled.decode("utf-8", "surrogateescape")
    return "".join(decoded.split()).encode("utf-8", "surrogateescape")


def _spelled(text: str, spelling: Spelling) -> str:
    """Return an alternative in plain text."""
    if spelling is _plain and text:
        # Some servers decode only the chosen token.
        spelling = {"▁": _pieces, **dict.fromkeys("ĠĊĉč", _byte_level)}.get(text[0], _plain)
    return spelling(text).decode("utf-8", "surrogateescape")


def _plain(text: str) -> bytes:
    try:
        # Bytes of a partial character, as `_token_text` represents them.
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _byte_level(text: str) -> bytes:
    table = _byte_level_table()
    return b"".join(table.get(sign) or _plain(sign) for sign in text)


@cache
def _byte_level_table() -> Mapping[str, bytes]:
    """Return the byte of each character of GPT-2's vocabulary."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): bytes([byte]) for byte in printable}
    return table | {chr(256 + number): bytes([byte]) for number, byte in enumerate(others)}


def _pieces(text: str) -> bytes:
    text = _BYTE_ESCAPE.sub(lambda escape: f"\0{escape[1] or escape[2]}", text.replace("▁", " "))
    first, *rest = text.split("\0")
    return _plain(first) + b"".join(bytes([int(part[:2], 16)]) + _plain(part[2:]) for part in rest)


def _word_pieces(text: str) -> bytes:
    return _plain(text.removeprefix("##") if text != "##" else text)


# --- Listed tokens of one position --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Listed:
    """Validated probabilities of the tokens at one position.

    Attributes:
        entries: (token, probability, possible excess) of the listed tokens, the chosen one first. A
            token that is listed with several values has the largest; the others may belong to
            tokens with the same spelling.
        most: largest possible probability of a token that is not listed.
        remainder: probability of all tokens that are not listed.
    """

    entries: tuple[tuple[str, float, float], ...]
    most: float
    remainder: float


def _listed(token: Token) -> _Listed | Unusable:
    """Return the probabilities of a token and its alternatives, or why they are unusable."""
    fault = _value_fault(token)
    if fault is not None:
        return fault
    if not token.alternatives:
        return Unusable.NO_ALTERNATIVES
    values: dict[str, list[float]] = {}
    for text, value in token.alternatives:
        if value > _NEVER_LISTED and value not in values.setdefault(text, []):
            values[text].append(value)
    values = {text: known for text, known in values.items() if known}
    least = min(
        (value for known in values.values() for value in known), default=token.log_probability
    )
    chosen = _chosen_among(token, values)
    if chosen is None:
        return Unusable.TWO_VALUES
    if chosen not in values:
        values[chosen] = [token.log_probability]
    if len(values) == 1 and token.log_probability >= 0.0:
        return Unusable.GREEDY
    total = math.fsum(math.exp(value) for known in values.values() for value in known)
    remainder = max(0.0, 1.0 - total)
    if total > 1.0 + _ROUNDING:
        return Unusable.EXCESS
    if remainder > _ROUNDING + _LARGEST_VOCABULARY * math.exp(least):
        return Unusable.NOT_LIKELIEST
    ordered = {chosen: values[chosen], **values}
    return _Listed(
        tuple(
            (text, math.exp(max(known)), math.fsum(map(math.exp, sorted(known)[:-1])))
            for text, known in ordered.items()
        ),
        min(math.exp(least), remainder),
        remainder,
    )


def _value_fault(token: Token) -> Unusable | None:
    """Return the fault of a single value among a token's values, if any."""
    values = [token.log_probability, *(value for _, value in token.alternatives)]
    if any(math.isnan(value) for value in values):
        return Unusable.NOT_A_NUMBER
    if max(values) > _ROUNDING:
        return Unusable.POSITIVE
    return Unusable.NO_VALUE if token.log_probability <= _NEVER_LISTED else None


def _chosen_among(token: Token, values: Mapping[str, Sequence[float]]) -> str | None:
    """Return the chosen token in its list's spelling, or its own; None if its values differ."""
    reported, letters = token.log_probability, _letters(token.text)
    if token.text in values:
        differences = [abs(math.exp(value) - math.exp(reported)) for value in values[token.text]]
        return token.text if min(differences) <= _ROUNDING else None
    for text, known in values.items():
        # The same token with a leading space.
        if _letters(text) == letters and any(abs(value - reported) <= _SAME for value in known):
            return text
    return token.text


# --- Probabilities of labels and of spans of an answer --------------------------------------

_AROUND = " \t\r\n*_`\"'’‘“”«»([{<#>:-$"
_END = re.compile(r"[.,;:!?\n()\[\]{}<>\"“”«»*#|/=。，！？、]")
_JOINTS = re.compile(r"[\s_'’‘`$-]")


@lru_cache(maxsize=4096)
def _letters(text: str) -> str:
    """Return the letters that a token adds to a label: lower case, without spaces."""
    words = _END.split(text.lstrip(_AROUND), maxsplit=1)[0]
    return unicodedata.normalize("NFC", _JOINTS.sub("", words).casefold())


def label_shares(
    answer: Completion,
    start: int,
    word: str,
    meanings: Mapping[str, str],
    openness: float = OPENNESS,
) -> tuple[float, ...] | Unusable:
    """Return the probabilities of labels at the label of an answer, normalized over the labels.

    The probability of a label is the total over the listed tokens that begin one of its words, in
    any case and after any space. Labels with a common prefix are distinguished by a later token,
    and the probabilities of the tokens up to there are multiplied. The probability of an unlisted
    label is at least 0, and at most the probability of the least likely listed token and the total
    of the unlisted tokens. Half of the maximum is used, provided that no label's probability can
    then be wrong by more than `openness`.

    Args:
        answer: the answer, with the tokens that its server reported.
        start: index of the first character of the label in the answer.
        word: the word that gives the label, lower case.
        meanings: labels by the words that mean them, lower case, including `word`.
        openness: maximum width of the interval of a label's probability, in [0, 1].

    Returns:
        Probabilities in the order in which labels first occur in `meanings`, summing to 1; or the
        reason why the log-probabilities are unusable.
    """
    tokens = spelled_tokens(answer)
    if isinstance(tokens, Unusable):
        return tokens
    number, lead = _covering(tokens, start)
    masses = _masses(tokens[number:], lead, word, meanings)
    return masses if isinstance(masses, Unusable) else masses.shares(openness)


def spelled_tokens(answer: Completion) -> tuple[Token, ...] | Unusable:
    """Return the tokens of an answer in plain text, whose concatenation is the answer."""
    if not answer.tokens:
        return Unusable.ABSENT
    tokens = fitted(answer.text, answer.tokens)
    return Unusable.SPELLING if tokens is None else tokens


def token_log_probabilities(
    tokens: Sequence[Token], begin: int, end: int
) -> tuple[float, ...] | Unusable:
    """Return the natural log-probabilities of the tokens of a span of an answer, in order.

    Args:
        tokens: the tokens, as `spelled_tokens` returns them.
        begin: index of the first character.
        end: index after the last character.
    """
    at, values = 0, []
    for token in tokens:
        before, at = at, at + len(token.text)
        if at <= begin or before >= end:
            continue
        listed = _listed(token) if token.alternatives else _value_fault(token)
        # A single token may have probability 1, but not all tokens.
        if isinstance(listed, Unusable) and listed is not Unusable.GREEDY:
            return listed
        values.append(min(0.0, token.log_probability))
    if not values:
        return Unusable.ABSENT
    return tuple(values) if any(values) else Unusable.GREEDY


@dataclass(frozen=True, slots=True)
class _Masses:
    """Unnormalized probabilities of labels.

    Attributes:
        least: minimum of each label.
        more: maximum addition to each label.
        together: maximum total of the additions.
    """

    least: Mapping[str, float]
    more: Mapping[str, float]
    together: float

    def shares(self, openness: float) -> tuple[float, ...] | Unusable:
        """Return the shares of the labels; `Unusable.OPEN` if any interval exceeds `openness`."""
        total = math.fsum(self.least.values())
        open_mass = math.fsum(self.more.values())
        for label, least in self.least.items():
            more = self.more[label]
            others = min(open_mass - more, self.together)
            low = least / (total + others)
            high = (least + more) / (total + more)
            if high - low > openness + _EDGE:
                return Unusable.OPEN
        half = 0.5 * self.together / open_mass if open_mass else 0.0
        masses = [least + half * self.more[label] for label, least in self.least.items()]
        return tuple(mass / math.fsum(masses) for mass in masses)


def _covering(tokens: Sequence[Token], start: int) -> tuple[int, str]:
    """Return the index of the token with a character of the answer, and its text before it."""
    at = 0
    for number, token in enumerate(tokens):
        if at + len(token.text) > start:
            return number, token.text[: start - at]
        at += len(token.text)
    return len(tokens), ""


def _masses(
    tokens: Sequence[Token], lead: str, word: str, meanings: Mapping[str, str]
) -> _Masses | Unusable:
    """Return the probabilities of labels along the tokens of a word."""
    target, name = _letters(word), meanings[word]
    words = {_letters(each): label for each, label in meanings.items()}
    if not all(words):
        return Unusable.SPELLING  # a label of punctuation only
    least = dict.fromkeys(meanings.values(), 0.0)
    more = dict(least)
    together = 0.0
    # Letters read so far, and the probability of this prefix.
    read, path = "", 1.0
    decided = False
    for token in tokens:
        if decided:
            # The label is complete, but impossible values here discredit the earlier ones.
            if len(read) >= len(target):
                break
            fault = _value_fault(token)
            if fault is not None:
                return fault
            read += _letters(token.text)
            continue
        listed = _listed(token)
        if isinstance(listed, Unusable):
            return listed
        here = {label for letters, label in words.items() if letters.startswith(read)}
        added = _letters(token.text[len(lead) :])
        after = read + added
        if not (target.startswith(after) or after.startswith(target)):
            return Unusable.SPELLING
        going_on = (
            {name}
            if len(after) >= len(target)
            else {label for letters, label in words.items() if letters.startswith(after)}
        )
        seen, onward, doubtful = set(going_on), 0.0, 0.0
        for number, (text, probability, beside) in enumerate(listed.entries):
            letters = _letters(text.removeprefix(lead))
            fits = going_on if not number else _fitting(read, letters, words) if letters else set()
            seen |= fits
            if not number or fits == going_on:
                onward += probability
                doubtful += beside
            elif len(fits) == 1:
                (label,) = fits
                least[label] += path * probability
                more[label] += path * beside
                together += path * beside
            elif fits:
                for label in fits:
                    more[label] += path * (probability + beside)
                together += path * (probability + beside)
        unlisted = here - seen
        for label in unlisted:
            more[label] += path * listed.most
        together += path * min(len(unlisted) * listed.most, listed.remainder)
        for label in going_on:
            more[label] += path * doubtful
        together += path * doubtful
        path *= onward
        read, lead = after, ""
        if len(going_on) == 1:
            least[name] += path
            decided = True
    return _Masses(least, more, together) if decided else Unusable.SPELLING


def _fitting(read: str, letters: str, words: Mapping[str, str]) -> set[str]:
    """Return the labels whose remaining letters begin with, or complete, the given letters."""
    after = read + letters
    # A complete word is that word, even if it is a prefix of another: "no" and "none".
    fitting: Iterable[str] = [after] if after in words else words
    return {words[each] for each in fitting if each.startswith(after)}
