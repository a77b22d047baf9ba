"""Comparison of two claims by their words: possible equality of meaning, and shared words.

Two claims can have the same meaning if one is the other with added words that neither limit nor
negate it. Replaced or reordered words make a different claim, except for a few reorderings that are
known to preserve meaning. This rule needs no list of opposites, which would never be complete.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile, pairwise

from factormodels.texts.languages import FUNCTION_WORDS, WORD, word_set
from factormodels.texts.number_words import (
    DIGITS,
    digits_value,
    is_ordinal_ending,
    numbers_joined,
    roman_value,
)
from factormodels.texts.opposed_words import (
    AGENTS,
    ARTICLES,
    AUXILIARIES,
    CASES,
    DECISIVE_LETTERS,
    INFLECTED_NAMES,
    JOINING,
    PARTICLES,
    PASSIVE,
    WEIGHTLESS,
    are_forms,
    is_compared_by_words,
    is_limiting,
    is_negation,
)

_BEGINNING = 3
"""Number of letters in the prefix that all forms of a word share."""

_CLAIMS_KEPT = 4096
"""Number of parsed claims to cache, since each is compared with all claims of another tool."""

_TOKEN = re.compile(rf"(?P<number>{DIGITS})|(?P<word>{WORD})|(?P<sign>[%‰#&@$€£¥+<>=≠/°])")
_CURRENCIES = frozenset("$€£¥")
_DECISIVE_SIGNS = frozenset("‰#@+<>=≠")
"""Tokens of a text. The signs distinguish claims: C# and C, A+ and A."""
_PERCENT = re.compile(
    r"\b(?:per ?cent|pour cent|por ciento|por cento|per cento|prozent|procent\w*|процент\w*)\b"
    r"|प्रतिशत|فی ?صد|بالمئة|بالمائة|درصد",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"\b([aApP])\. ?([mM])\b\.?|\b(B)\. ?(C)\b\.?|\b(A)\. ?(D)\b\.?")
"""Halves of the day and eras, such as ``a.m.`` and ``B.C.``."""

_PRONOUNS = word_set(
    """he she it they his her its their er sie es ihr ihre sein seine il elle ils elles son sa ses
    leur leurs él ella ellos ellas su sus egli lui lei essi suo sua ele ela eles elas seu sua hij
    zij ze zijn haar hun он она оно они его её их on ona ono oni jego jej ich han hun hans hennes
    hendes hon hans वह वे उसने उसका उसकी هو هي هم"""
)
_POSSESSIVE = word_set(
    """his her its their sein seine ihre son sa ses leur leurs su sus suo sua seu zijn haar hun его
    её их jego jej ich hans hennes hendes उसका उसकी"""
)
_POSSESSIVE_MARK = "s"

_MONTHS = word_set(
    """january february march april may june july august september october november december jan
    feb mar apr jun jul aug sep sept oct nov dec"""
)
_LAST_DAY = 31

_FILLING = frozenset("的了着著地得之也はがをにでともだすまして")
"""Letters of little weight in languages without spaces."""


@dataclass(frozen=True, slots=True)
class _Words:
    """The tokens of a text.

    Attributes:
        words: words in lower case, numbers in digits.
        letters: capital letters that are words, such as the C of vitamin C, and signs of
            currencies.
        signs: signs that distinguish claims.
        names: words that begin with a capital letter within the text.
    """

    words: tuple[str, ...]
    letters: frozenset[str]
    signs: frozenset[str]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Claim:
    """The classified words of a claim, without its subject if the other claim has a pronoun.

    Attributes:
        words: all words in lower case, numbers in digits.
        content: indices in `words` of words that are no function words, and of numbers.
        weighty: words that distinguish claims: `content`, and all but the lightest function words.
        numbers: its numbers.
        negations: indices in `words` of negations.
        beginnings: prefixes of `content`, which the forms of a word share.
    """

    words: tuple[str, ...]
    content: tuple[int, ...]
    weighty: frozenset[str]
    numbers: frozenset[str]
    negations: tuple[int, ...]
    beginnings: frozenset[str]

    def stems(self) -> frozenset[str]:
        """Stems of the content words; all negations count as the same word."""
        words = {self.words[index] for index in self.content}
        return frozenset(words | {"not"} if self.negations else words)


def are_equal(text: str, other: str) -> bool:
    """Return whether two texts have the same words, numbers and signs in the same order.

    Case, white space, punctuation and forms of the same character make no difference.
    """
    first, second = _plain(text), _plain(other)
    return first == second and bool(first)


def worded_likeness(claim: str, other: str, about: str, language: str) -> float:
    """Return the share of words that two claims have in common; 0 if their meanings must differ.

    Args:
        claim: a claim.
        other: another.
        about: the subject of both claims, whose names match a pronoun.
        language: code of the language of both; the result is 0 if its negations are not listed.
    """
    if not is_compared_by_words(language):
        return 0.0
    if language in DECISIVE_LETTERS:
        return _lettered_likeness(claim, other, language)
    texts = (_words(claim, language), _words(other, language))
    bare = _without_subject(*texts, about, language)
    if bare is None or _signs_differ(*texts):
        return 0.0
    first, second = (
        _claim(words, text.letters, language) for words, text in zip(bare, texts, strict=True)
    )
    if first.numbers != second.numbers or bool(first.negations) != bool(second.negations):
        return 0.0
    # Quick rejection of most pairs.
    if first.beginnings - second.beginnings and second.beginnings - first.beginnings:
        return 0.0
    names = frozenset() if language == "de" else texts[0].names | texts[1].names
    second = _in_forms_of(first, second, texts[1].letters, names, language)
    shared, every = first.stems() & second.stems(), first.stems() | second.stems()
    if (
        not shared
        or _is_replaced(first, second, language)
        or not _is_ordered(first, second, language)
    ):
        return 0.0
    return len(shared) / len(every)


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


@lru_cache(_CLAIMS_KEPT)
def _words(text: str, language: str) -> _Words:
    words: list[str] = []
    letters: set[str] = set()
    signs: set[str] = set()
    names: set[str] = set()
    after_digits = -1
    plain = _PERCENT.sub(" % ", unicodedata.normalize("NFKC", text))
    plain = _DOTTED.sub(lambda match: f" {''.join(filter(None, match.groups()))} ", plain)
    for match in _TOKEN.finditer(plain):
        token = match[0]
        if match["sign"]:
            words += [token] if token == "%" else []
            letters.update(_CURRENCIES.intersection(token))
            signs.update(_DECISIVE_SIGNS.intersection(token))
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
                # "1990s" differs from the year 1990.
                words[-1] += "s"
                continue
        roman = roman_value(token)
        if roman is not None:
            words.append(str(roman))
            continue
        if token[0].isupper():
            names.add(lower)
            if len(token) == 1 and words:
                letters.add(lower)
        words.append(lower)
    joined: list[str] = []
    for word in _day_first(numbers_joined(words, language), language):
        if word == "%" and joined and _is_number(joined[-1]):
            joined[-1] += word
        elif word != "%":
            joined.append(word)
    return _Words(tuple(joined), frozenset(letters), frozenset(signs), frozenset(names))


def _day_first(words: Sequence[str], language: str) -> list[str]:
    """Return words with the day of an English date before its month: *3 may* for *may 3*."""
    result = list(words)
    if language == "en":
        for index, (word, other) in enumerate(pairwise(words)):
            if word in _MONTHS and other.isdecimal() and int(other) <= _LAST_DAY:
                result[index : index + 2] = [other, word]
    return result


@lru_cache(_CLAIMS_KEPT)
def _claim(words: tuple[str, ...], letters: frozenset[str], language: str) -> _Claim:
    function = FUNCTION_WORDS.get(language, frozenset())
    weightless = WEIGHTLESS[language]
    negations = tuple(index for index, word in enumerate(words) if is_negation(word, language))
    content = tuple(
        index
        for index, word in enumerate(words)
        if index not in negations
        and word not in weightless
        and (_is_number(word) or (word not in function and len(word) > 1))
    )
    weighty = {
        word
        for index, word in enumerate(words)
        if index not in negations and word not in weightless and word not in letters
    }
    if words and words[-1] in PARTICLES.get(language, frozenset()):
        weighty.add(words[-1])
    numbers = frozenset(filter(_is_number, words))
    beginnings = frozenset(words[index][:_BEGINNING] for index in content)
    return _Claim(words, content, frozenset(weighty), numbers, negations, beginnings)


def _is_number(word: str) -> bool:
    return word[0].isdigit() or word[0] == "-"


def _signs_differ(first: _Words, second: _Words) -> bool:
    """Return whether the claims differ in a sign or a letter that distinguishes claims."""
    letters, others = first.letters - second.letters, second.letters - first.letters
    return bool(letters and others) or first.signs != second.signs


def _without_subject(
    first: _Words, second: _Words, about: str, language: str
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return both claims without the name that one of them has where the other has a pronoun.

    Return None if their subjects cannot be the same, as with *she* and *her mother*.
    """
    openings = [words.words[0] if words.words else "" for words in (first, second)]
    pronouns = [opening in _PRONOUNS for opening in openings]
    rests = [
        words.words[1:] if is_pronoun else words.words
        for words, is_pronoun in zip((first, second), pronouns, strict=True)
    ]
    if all(pronouns):
        possessive = [opening in _POSSESSIVE for opening in openings]
        more = any(word in _PRONOUNS for rest in rests for word in rest)
        if possessive[0] != possessive[1] or (openings[0] != openings[1] and more):
            return None
    elif any(pronouns):
        pronoun_side = pronouns.index(True)
        named = {*_words(about, language).words, _POSSESSIVE_MARK}
        bare = tuple(dropwhile(named.__contains__, rests[1 - pronoun_side]))
        dropped = rests[1 - pronoun_side][: len(rests[1 - pronoun_side]) - len(bare)]
        # A pronoun does not refer to a name in the same claim.
        if not set(dropped) & set(rests[pronoun_side]) - WEIGHTLESS[language]:
            if openings[pronoun_side] not in _POSSESSIVE and _POSSESSIVE_MARK in dropped[-1:]:
                return None
            rests[1 - pronoun_side] = bare
    return rests[0], rests[1]


def _in_forms_of(
    first: _Claim, second: _Claim, letters: frozenset[str], names: frozenset[str], language: str
) -> _Claim:
    """Return the second claim with shared words in the first claim's forms."""
    alone = [word for word in _content(first) if word not in second.weighty]
    forms = {
        word: form
        for word in _content(second)
        if word not in first.weighty
        for form in alone
        if are_forms(word, form, language, is_name=word in names and form in names)
    }
    # The endings in "Jan saw Petra" and "Jana saw Petr" show who saw whom.
    longer = {len(word) > len(form) for word, form in forms.items() if {word, form} <= names}
    if not forms or (len(longer) > 1 and language in INFLECTED_NAMES):
        return second
    return _claim(tuple(forms.get(word, word) for word in second.words), letters, language)


def _content(claim: _Claim) -> list[str]:
    return [claim.words[index] for index in claim.content]


def _is_replaced(first: _Claim, second: _Claim, language: str) -> bool:
    """Return whether words are replaced, or a word that limits a claim is added."""
    only, other = first.weighty - second.weighty, second.weighty - first.weighty
    if only and other:
        return True
    return any(is_limiting(word, language) for word in only | other)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A content word of a claim that the other claim has too.

    Attributes:
        word: the word.
        index: its index in the claim.
        role: the function word at the beginning of its phrase, without articles; empty if there is
            none.
        between: words of the claim since the previous content word.
    """

    word: str
    index: int
    role: str
    between: tuple[str, ...]


def _placed(claim: _Claim, other: _Claim, language: str) -> list[_Placed]:
    articles = ARTICLES.get(language, frozenset()) | {"s"}
    there = set(_content(other))
    result = []
    before = -1
    for index in claim.content:
        between = claim.words[before + 1 : index]
        before = index
        if claim.words[index] in there:
            negated = {claim.words[at] for at in claim.negations}
            roles = [word for word in between if word not in articles and word not in negated]
            role = roles[-1] if roles else ""
            result.append(_Placed(claim.words[index], index, role, between))
    return result


def _is_ordered(first: _Claim, second: _Claim, language: str) -> bool:
    """Return whether the order of the words gives them the same roles in both claims."""
    if _negate_another(first, second):
        return False
    here, there = _placed(first, second, language), _placed(second, first, language)
    shorter, longer = sorted((here, there), key=len)
    words, others = [each.word for each in here], [each.word for each in there]
    if _added([each.word for each in shorter], [each.word for each in longer]) is not None:
        return _have_same_roles(here, there, language) and not _voices_differ(
            first, second, language
        )
    if len(set(words)) < len(words) or sorted(words) != sorted(others):
        return False
    if _is_passive(here, there, language):
        return True
    return not _voices_differ(first, second, language) and (
        _is_block_moved(first, second, here, there, language) or _is_inverted(here, there, language)
    )


def _have_same_roles(here: list[_Placed], there: list[_Placed], language: str) -> bool:
    """Return whether words in the same order follow the same function words."""
    weightless = WEIGHTLESS[language]
    agents = AGENTS.get(language, frozenset())
    if _are_cases_exchanged(here, there, language):
        return False
    roles, others = ({each.word: each.role for each in side} for side in (here, there))
    if len(roles) == len(here) and len(others) == len(there):
        for word, role in roles.items():
            other = others[word]
            if role == other:
                continue
            if (role in agents) != (other in agents):
                return False
            if role and other and not {role, other} & weightless:
                return False
    return True


def _are_cases_exchanged(here: list[_Placed], there: list[_Placed], language: str) -> bool:
    """Return whether articles exchange the roles: *der Hund biss den Mann*, *den Hund biss der
    Mann*.
    """
    acting, acted_on = CASES.get(language, (frozenset(), frozenset()))
    between = [{each.word: set(each.between) for each in side} for side in (here, there)]
    return any(
        roles[word] & acting and other[word] & acted_on
        for roles, other in (between, between[::-1])
        for word in roles.keys() & other.keys()
    )


def _voices_differ(first: _Claim, second: _Claim, language: str) -> bool:
    """Return whether one claim is passive and the other active: *was taught* and *taught*."""
    passive = PASSIVE.get(language, frozenset())
    if language != "en":
        return bool(passive & set(first.words)) != bool(passive & set(second.words))
    for word in set(_content(first)) & set(_content(second)):
        if not word.endswith(_PARTICIPLES):
            continue
        voices = []
        for claim in (first, second):
            before = claim.words[: claim.words.index(word)]
            voices.append((before[-1:] and before[-1] in passive, bool(passive & set(before))))
        if any(voice[0] and not other[1] for voice, other in (voices, voices[::-1])):
            return True
    return False


_PARTICIPLES = ("ed", "en", "ght", "wn", "ot", "ed", "nd", "ld", "de", "id", "pt", "ck", "ung")


def _is_adjunct(here: _Placed, there: _Placed, language: str) -> bool:
    """Return whether the phrase that begins at a word has the same preposition in both claims."""
    no_prepositions = (
        JOINING.get(language, frozenset())
        | PASSIVE.get(language, frozenset())
        | _PRONOUNS
        | AUXILIARIES.get(language, frozenset())
        | frozenset({"that", "who", "which", "as"})
    )
    is_year = here.role == "" and here.word.isdecimal() and len(here.word) == _YEAR_DIGITS
    return (
        here.role == there.role
        and here.role not in no_prepositions
        and (here.role != "" or is_year)
    )


def _is_block_moved(
    first: _Claim, second: _Claim, here: list[_Placed], there: list[_Placed], language: str
) -> bool:
    """Return whether two parts of a claim are exchanged without a change of meaning.

    Such parts are phrases with a preposition (*in 1901*), conjuncts of *and*, *university of Ulm*
    and
    *Ulm university*, and *large birds* and *birds that are large*.
    """
    start = next(
        at
        for at, (placed, other) in enumerate(zip(here, there, strict=False))
        if placed.word != other.word
    )
    end = next(
        at
        for at, (placed, other) in enumerate(zip(here[::-1], there[::-1], strict=False))
        if placed.word != other.word
    )
    moved, other = here[start : len(here) - end], there[start : len(there) - end]
    words, others = [each.word for each in moved], [each.word for each in other]
    cut = words.index(others[0])
    if words[cut:] + words[:cut] != others:
        return False
    size = len(words) - cut
    # The two blocks in the order of one claim, and the same blocks in the other.
    left, right = (moved[:cut], other[size:]), (moved[cut:], other[:size])
    seams = (right[0][0], left[1][0])
    if any(_is_adjunct(block[0][0], block[1][0], language) for block in (left, right)) and all(
        _is_light(seam, language) for seam in seams
    ):
        return True
    if all(_is_joined(seam.between, language) for seam in seams):
        return start == 0 or all(
            _ends_phrase(claim, block[-1].index)
            for claim, block in ((first, right[0]), (second, left[1]))
        )
    if language != "en":
        return False
    bare = [set(seam.between) <= {"the", "s"} for seam in seams]
    about = [_begins_relative_clause(seam.between, language) for seam in seams]
    of = ["of" in seam.between and set(seam.between) <= {"of", "the"} for seam in seams]
    turned = [with_of or other for with_of, other in zip(of, about, strict=True)]
    return (bare[0] and turned[1]) or (bare[1] and turned[0])


def _is_light(seam: _Placed, language: str) -> bool:
    """Return whether a word is preceded by little but the word that begins its phrase."""
    light = WEIGHTLESS[language] | JOINING.get(language, frozenset())
    return set(seam.between) <= light | {seam.role}


def _is_joined(between: Sequence[str], language: str) -> bool:
    joining = JOINING.get(language, frozenset())
    return bool(joining & set(between)) and set(between) <= joining | WEIGHTLESS[language]


def _begins_relative_clause(between: Sequence[str], language: str) -> bool:
    """Return whether words begin a relative clause such as *that are large*."""
    relative = {"that", "which", "who"}
    forms = PASSIVE[language]
    return (
        bool(relative & set(between) and forms & set(between)) and set(between) <= relative | forms
    )


def _ends_phrase(claim: _Claim, index: int) -> bool:
    """Return whether a word is not directly followed by a content word."""
    return index + 1 == len(claim.words) or index + 1 not in claim.content


def _is_passive(here: list[_Placed], there: list[_Placed], language: str) -> bool:
    """Return whether one claim is the passive of the other: *A was seen by B* and *B saw A*."""
    agents = AGENTS.get(language, frozenset())
    marked = [[each for each in side if each.role in agents] for side in (here, there)]
    if sorted(map(len, marked)) != [0, 1]:
        return False
    passive, active = (here, there) if marked[0] else (there, here)
    words, others = [each.word for each in passive], [each.word for each in active]
    agent = words.index((marked[0] or marked[1])[0].word)
    for verb in range(1, agent):
        for end in range(agent + 1, len(words) + 1):
            acting = words[agent:end]
            if acting + words[verb:agent] + words[:verb] + words[end:] == others:
                return True
    return False


def _is_inverted(here: list[_Placed], there: list[_Placed], language: str) -> bool:
    """Return whether a phrase is moved to the front, before verb and subject, as in German."""
    if language not in _VERB_SECOND:
        return False
    return any(
        _front_is_moved(moved, other, language) for moved, other in ((here, there), (there, here))
    )


_YEAR_DIGITS = 4
_VERB_SECOND = frozenset(("de", "nl", "da", "no", "sv"))
_LONGEST_SUBJECT = 4


def _front_is_moved(plain: list[_Placed], fronted: list[_Placed], language: str) -> bool:
    words, others = [each.word for each in plain], [each.word for each in fronted]
    start = words.index(others[0])
    for size in range(1, len(words) - 1):
        if words[start : start + size] != others[:size] or start == 0:
            break
        rest, rest_fronted = words[:start] + words[start + size :], others[size:]
        if _is_adjunct(plain[start], fronted[0], language) and any(
            [rest[verb], *rest[:verb], *rest[verb + 1 :]] == rest_fronted
            for verb in range(1, min(_LONGEST_SUBJECT + 1, len(rest)))
        ):
            return True
    return False


def _negate_another(first: _Claim, second: _Claim) -> bool:
    """Return whether each claim negates a word that the other has without negation."""
    here, there = (
        {
            claim.words[following]
            for negation in claim.negations
            for following in [next((at for at in claim.content if at > negation), None)]
            if following is not None
        }
        for claim in (first, second)
    )
    return bool((here - there) & set(_content(second)) and (there - here) & set(_content(first)))


def _lettered_likeness(claim: str, other: str, language: str) -> float:
    """Return the share of letter pairs that two texts of a language without spaces have in common.

    Return 0 unless one text is the other with added letters, none of which makes a different claim.
    """
    if _digits(claim) != _digits(other):
        return 0.0
    texts = [
        [letter for letter in "".join(_plain(text)) if letter not in _FILLING]
        for text in (claim, other)
    ]
    shorter, longer = sorted(texts, key=len)
    added = _added(shorter, longer)
    if added is None or not frozenset(DECISIVE_LETTERS[language]).isdisjoint(added):
        return 0.0
    first, second = set(pairwise(shorter)), set(pairwise(longer))
    return len(first & second) / len(first | second) if first | second else 0.0


def _added(shorter: Sequence[str], longer: Sequence[str]) -> list[str] | None:
    """Return the parts of `longer` that `shorter` lacks.

    Return None unless `longer` contains the parts of `shorter` in order.
    """
    added: list[str] = []
    at = 0
    for part in longer:
        if at < len(shorter) and part == shorter[at]:
            at += 1
        else:
            added.append(part)
    return added if at == len(shorter) else None
