"""Words of two claims compared: whether they may say the same, and how much they share.

What shared words cannot show is checked first: numbers, negations, opposites, and which word stands
where. Two claims that differ in one of these are different, however many words they share.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, dropwhile, pairwise

from factormodels.languages import FUNCTION_WORDS, WORD, word_set
from factormodels.number_words import (
    DIGITS,
    digits_value,
    is_ordinal_ending,
    numbers_joined,
    roman_value,
)
from factormodels.opposed_words import (
    AGENTS,
    ARTICLES,
    DECISIVE_LETTERS,
    JOINING,
    Side,
    are_opposed,
    are_opposites,
    is_compared_by_words,
    is_negation,
    is_negation_anywhere,
    sides_of,
)

_STEM = 6
"""Words are the same if their first letters are."""

_NEGATED = "not"

_CLAIMS_KEPT = 4096
"""Claims that stay taken apart, since each is compared with all claims of another tool."""

_TOKEN = re.compile(rf"(?P<number>{DIGITS})|(?P<word>{WORD})|(?P<sign>[%‰#&@$€£¥+<>=≠/°])")
_CURRENCIES = frozenset("$€£¥")
_PERCENT = re.compile(
    r"\b(?:per ?cent|pour cent|por ciento|por cento|per cento|prozent|procent\w*|процент\w*)\b"
    r"|प्रतिशत|فی ?صد|بالمئة|بالمائة|درصد",
    re.IGNORECASE,
)
_PRONOUNS = word_set(
    """he she it they his her its their er sie es ihr ihre sein seine il elle ils elles son sa ses
    leur leurs él ella ellos ellas su sus egli lui lei essi suo sua ele ela eles elas seu sua hij
    zij ze zijn haar hun он она оно они его её их on ona ono oni jego jej ich han hun hans hennes
    hendes hon hans वह वे उसने उसका उसकी هو هي هم"""
)

_FILLING = frozenset("的了着著地得之也はがをにでともだすまして")
"""Letters that say little in languages without spaces."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """A claim taken apart.

    Attributes:
        words: all words in lower case, numbers in digits.
        content: indices in `words` of words that are no function words, and of numbers.
        numbers: its numbers.
        letters: capital letters that are words, such as the C of vitamin C, and signs of
            currencies.
        negations: indices in `words` of negations.
        sides: sides of opposites that its words are on.
        stems: content words by their first letters; all negations are the same word.
    """

    words: tuple[str, ...]
    content: tuple[int, ...]
    numbers: frozenset[str]
    letters: frozenset[str]
    negations: tuple[int, ...]
    sides: frozenset[Side]
    stems: frozenset[str]


def are_equal(one: str, other: str) -> bool:
    """Return whether two texts have the same words, numbers and signs in the same order.

    Case, white space, punctuation and forms of the same character make no difference.
    """
    first, second = _plain(one), _plain(other)
    return first == second and bool(first)


def worded_likeness(one: str, other: str, about: str, language: str) -> float:
    """Return the share of words that two claims have in common; 0 if they cannot say the same.

    Args:
        one: a claim.
        other: another.
        about: what both are about, for names that stand for a pronoun.
        language: code of the language of both; 0 if its negations are not known.
    """
    if not is_compared_by_words(language):
        return 0.0
    if language in DECISIVE_LETTERS:
        return _lettered_likeness(one, other, language)
    first, second = _without_subject(one, other, about, language)
    shared, every = first.stems & second.stems, first.stems | second.stems
    if not shared or _differ(first, second, language) or _exchange(first, second, language):
        return 0.0
    return len(shared) / len(every)


def differ_in_words(one: str, other: str, language: str | None) -> bool:
    """Return whether two texts differ in a number, a negation or an opposite.

    Args:
        one: a text.
        other: another.
        language: code of the language of both; where its negations are not known, a number and the
            negations of all known languages count.
    """
    if language is None or not is_compared_by_words(language):
        first, second = (_plain(text) for text in (one, other))
        negated = [any(map(is_negation_anywhere, words)) for words in (first, second)]
        return negated[0] != negated[1] or _digits(one) != _digits(other)
    if language in DECISIVE_LETTERS:
        letters = set(DECISIVE_LETTERS[language])
        return letters.intersection(one) != letters.intersection(other) or (
            _digits(one) != _digits(other)
        )
    return _differ(_taken_apart(one, language), _taken_apart(other, language), language)


@lru_cache(_CLAIMS_KEPT)
def _plain(text: str) -> tuple[str, ...]:
    normal = unicodedata.normalize("NFKC", text)
    return tuple(
        "".join(str(unicodedata.decimal(letter, letter)) for letter in match[0].casefold())
        for match in _TOKEN.finditer(normal)
    )


def _digits(text: str) -> set[str]:
    normal = unicodedata.normalize("NFKC", text)
    return {digits_value(match[0]) for match in _TOKEN.finditer(normal) if match["number"]}


def _taken_apart(text: str, language: str) -> _Claim:
    return _claim(*_words(text, language), language)


@lru_cache(_CLAIMS_KEPT)
def _words(text: str, language: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Words in lower case, numbers in digits, and the `letters` of a claim."""
    words: list[str] = []
    letters: set[str] = set()
    after_digits = -1
    plain = _PERCENT.sub(" % ", unicodedata.normalize("NFKC", text))
    for match in _TOKEN.finditer(plain):
        token = match[0]
        if match["sign"]:
            words += [token] if token == "%" else []
            letters.update(_CURRENCIES.intersection(token))
            continue
        if match["number"]:
            words.append(digits_value(token, language))
            after_digits = match.end()
            continue
        lower = token.casefold()
        if match.start() == after_digits:
            if is_ordinal_ending(lower):
                continue
            if lower in ("s", "er"):
                # The 1990s are not the year 1990.
                words[-1] += "s"
                continue
        roman = roman_value(token)
        if roman is not None:
            words.append(str(roman))
            continue
        if len(token) == 1 and token.isupper() and match.start() > 0:
            letters.add(lower)
        words.append(lower)
    joined: list[str] = []
    for word in numbers_joined(words, language):
        if word == "%" and joined and _is_number(joined[-1]):
            joined[-1] += word
        elif word != "%":
            joined.append(word)
    return tuple(joined), frozenset(letters)


@lru_cache(_CLAIMS_KEPT)
def _claim(words: tuple[str, ...], letters: frozenset[str], language: str) -> _Claim:
    function = FUNCTION_WORDS.get(language, frozenset())
    negations = tuple(place for place, word in enumerate(words) if is_negation(word, language))
    content = tuple(
        place
        for place, word in enumerate(words)
        if place not in negations and (_is_number(word) or (word not in function and len(word) > 1))
    )
    stems = {_stem(words[place]) for place in content}
    return _Claim(
        words,
        content,
        frozenset(filter(_is_number, words)),
        letters,
        negations,
        frozenset().union(*(sides_of(word, language) for word in words)),
        frozenset(stems | {_NEGATED} if negations else stems),
    )


def _is_number(word: str) -> bool:
    return word[0].isdigit() or word[0] == "-"


def _without_subject(one: str, other: str, about: str, language: str) -> tuple[_Claim, _Claim]:
    """Return both claims without the name that one of them has where the other has a pronoun."""
    (first, letters), (second, others) = _words(one, language), _words(other, language)
    named = {*_words(about, language)[0], "s"}

    def bare(words: tuple[str, ...], opening: str) -> tuple[str, ...]:
        if words[:1] and words[0] in _PRONOUNS:
            return words[1:]
        return tuple(dropwhile(named.__contains__, words)) if opening in _PRONOUNS else words

    openings = (first[0] if first else "", second[0] if second else "")
    return (
        _claim(bare(first, openings[1]), letters, language),
        _claim(bare(second, openings[0]), others, language),
    )


def _differ(first: _Claim, second: _Claim, language: str) -> bool:
    """Return whether a number, a negation or an opposite is in one claim and not in the other."""
    if first.numbers != second.numbers or bool(first.negations) != bool(second.negations):
        return True
    if first.letters - second.letters and second.letters - first.letters:
        return True
    if are_opposed(first.sides, second.sides):
        return True
    only, other = set(first.words) - set(second.words), set(second.words) - set(first.words)
    return any(are_opposites(one, another, language) for one in only for another in other)


def _exchange(first: _Claim, second: _Claim, language: str) -> bool:
    """Return whether two claims of shared words exchange what stands for what, as in *A beat B*."""
    if _negate_another(first, second):
        return True
    here, there = _roles(first, language), _roles(second, language)
    shared = sorted(here.keys() & there.keys(), key=lambda stem: here[stem].place)
    return any(
        _exchanged((first, here[one], here[other]), (second, there[one], there[other]), language)
        for one, other in combinations(shared, 2)
    )


def _exchanged(
    before: tuple[_Claim, _Role, _Role], after: tuple[_Claim, _Role, _Role], language: str
) -> bool:
    """Return whether two words, with their roles in two claims, stand for each other."""
    if all(abs(one.place - other.place) == 1 for _, one, other in (before, after)):
        return False
    turned = (before[1].place < before[2].place) != (after[1].place < after[2].place)
    roles, others = ([role.word for role in each[1:]] for each in (before, after))
    heads, heads_after = ([role.head for role in each[1:]] for each in (before, after))
    for each, exchanged in ((roles, others), (heads, heads_after)):
        if each[0] != each[1] and each == exchanged[::-1] and (each is roles or all(each)):
            return True
    if roles[0] == roles[1] and others[0] == others[1]:
        return turned and bool(_between(*before) & _between(*after))
    # "A was seen by B" says what "B saw A" says.
    agents = AGENTS.get(language, frozenset())
    marked = sorted(sum(role in agents for role in each) for each in (roles, others))
    return marked == [0, 1] and not turned


@dataclass(frozen=True, slots=True)
class _Role:
    """What a word of a claim stands as.

    Attributes:
        place: its index in the claim.
        word: the function word that its phrase begins with, articles left out; empty if none does.
        head: the number or the opposite right before it; empty if there is none.
    """

    place: int
    word: str
    head: str


def _roles(claim: _Claim, language: str) -> dict[str, _Role]:
    """Roles of the content words that a claim has once, by their first letters."""
    function = FUNCTION_WORDS.get(language, frozenset()) | AGENTS.get(language, frozenset())
    articles = ARTICLES.get(language, frozenset())
    transparent = JOINING.get(language, frozenset()) | {
        claim.words[place] for place in claim.negations
    }
    content = set(claim.content)
    roles: dict[str, _Role] = {}
    repeated: set[str] = set()
    role = previous = ""
    for place, word in enumerate(claim.words):
        if place in content:
            stem = _stem(word)
            if stem in roles:
                repeated.add(stem)
            is_head = previous in claim.numbers or sides_of(previous, language)
            roles[stem] = _Role(place, role, previous if is_head else "")
        elif word in articles:
            # An article begins another phrase, unless it follows what begins this one.
            role = role if previous and previous == role else ""
            continue
        elif word in function and word not in transparent:
            role = word
        previous = word
    return {stem: role for stem, role in roles.items() if stem not in repeated}


def _between(claim: _Claim, one: _Role, other: _Role) -> set[str]:
    """Content words, by their first letters, between two others."""
    start, end = sorted((one.place, other.place))
    return {_stem(claim.words[place]) for place in claim.content if start < place < end}


def _negate_another(first: _Claim, second: _Claim) -> bool:
    """Return whether both claims have the word that the other negates, and negate another."""
    here, there = (
        {
            _stem(claim.words[following])
            for negation in claim.negations
            for following in [next((at for at in claim.content if at > negation), None)]
            if following is not None
        }
        for claim in (first, second)
    )
    return bool((here - there) & second.stems and (there - here) & first.stems)


def _stem(word: str) -> str:
    return word if word[0].isdigit() else word[:_STEM]


def _lettered_likeness(one: str, other: str, language: str) -> float:
    """Return the share of pairs of letters of two texts of a language without spaces.

    0 unless one of them is the other with letters added, none of which makes another claim of it.
    """
    if _digits(one) != _digits(other):
        return 0.0
    texts = [
        [letter for letter in "".join(_plain(text)) if letter not in _FILLING]
        for text in (one, other)
    ]
    shorter, longer = sorted(texts, key=len)
    added = _added(shorter, longer)
    if added is None or not frozenset(DECISIVE_LETTERS[language]).isdisjoint(added):
        return 0.0
    first, second = set(pairwise(shorter)), set(pairwise(longer))
    return len(first & second) / len(first | second) if first | second else 0.0


def _added(shorter: Sequence[str], longer: Sequence[str]) -> list[str] | None:
    """Letters that `longer` has besides `shorter`, whose letters it has in order; None if not."""
    added: list[str] = []
    at = 0
    for letter in longer:
        if at < len(shorter) and letter == shorter[at]:
            at += 1
        else:
            added.append(letter)
    return added if at == len(shorter) else None
