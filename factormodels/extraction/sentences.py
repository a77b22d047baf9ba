"""Sentences of a response, and chunks of consecutive sentences for a stage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.texts.languages import (
    FUNCTION_WORDS,
    WORD,
    checked_language,
    is_language_code,
    usual_language,
    word_set,
)

LANGUAGE_KEY = "language"
"""Metadata key of the code of a response's language, if stated."""

_HALF = re.compile("[\ud800-\udfff]")

_LINE = re.compile(r"\n+")
_LIST_MARK = re.compile(r"^\s*(?:[-*+•–—◦▪‣●○·>]|#{1,6}|\(?\d{1,2}(?:\.\d{1,2})*[.)])\s+")
_NUMBERED = re.compile(r"^\s*(\d{1,2})\.\s+(\S)")
_BOLD = re.compile(r"(?<!\w)\*\*(?=\S)(.+?)(?<=\S)\*\*(?!\w)")
_BRACKETS = {")": "(", "]": "[", "）": "（", "」": "「", "』": "『", "】": "【"}
_FINAL = ".!?。！？।॥؟۔…։"
_MARK = re.compile(
    rf"(?P<mark>[{_FINAL}]+)(?P<closing>[{re.escape(''.join(_BRACKETS))}\"”’»“]*)(?P<space>\s*)"
)
_LAST_WORD = re.compile(r"[^\s(\[]+$")
_FIRST_WORD = re.compile(WORD)
_SINGLE_LETTER = re.compile(rf"(?:(?P<previous>{WORD})[ \u00a0])?(?<![\w.])[^\W\d_]$")
_INITIAL = re.compile(r"[^\W\d_]\.")
_LIST_END = re.compile(
    r"(?:\b(?:etc|ecc|usw|enz|itd|itp|osv|m\.\s?fl|u\.\s?a)|[ви] т\. ?[дп])$", re.IGNORECASE
)
_ORDINAL_LANGUAGES = frozenset(("cs", "da", "de", "et", "fi", "hr", "hu", "lv", "no", "sk", "sl"))
"""Languages that write ordinal numbers with a period."""

_ABBREVIATIONS: Mapping[str, frozenset[str]] = {
    "ar": word_set("د أ م ص ج"),
    "da": word_set("f.eks bl.a"),
    "de": word_set("dr prof hr fr hrsg fa"),
    "en": word_set("dr mr mrs ms prof rev gen capt lt sgt sen gov hon mt ft"),
    "es": word_set("sr sra srta dr dra d dña prof av avda gral"),
    "fi": word_set("esim"),
    "fr": word_set("m mm mme mlle dr pr mgr me st ste av bd"),
    "hi": word_set("डॉ श्री श्रीमती प्रो पं सं"),
    "it": word_set("sig dott prof ing avv s"),
    "mr": word_set("डॉ श्री सौ प्रा पं"),
    "nl": word_set("dr dhr mevr mw prof ir"),
    "no": word_set("f.eks bl.a"),
    "pl": word_set("prof ul im św ks gen"),
    "pt": word_set("sr sra dr dra prof av"),
    "ru": word_set("им ул проф акад ген см стр св пр пл"),
    "sv": word_set("t.ex bl.a"),
}
"""Abbreviations before a name or a number, in lower case; they do not end a sentence."""

_TITLES = word_set(
    """sra sras sres srta dra dras profs profa dott avv ing sig dhr mevr mme mlle mgr gebr gebrs fam
    hna hno excmo excma ilmo ilma"""
)
"""Titles that are not words of another language. They do not end a sentence before a name, even if
the language of a short text is unknown."""

_DOUBLED = re.compile(r"([A-Z])\1")
"""Spanish plurals of abbreviations: EE. UU., FF. AA."""

_MIXED_CASE = re.compile(r"[^\W\d_]*[a-z][A-Z]")
"""Names that begin with a small letter, such as iPhone."""

_BEFORE_NUMBERS = word_set(
    """approx ca c no nos nr núm núms vol p pp fig figs eq eqs sec tab tbl abb abs kap ch art est
    env tel стр рис табл"""
)
"""Abbreviations that do not end a sentence before a number, in lower case."""

_NUMBER = re.compile(r"[(\[]?\d")

_GOES_ON = re.compile(
    r"[\"'”’»“]*\s*[—–-]\s+[^\W\d_A-Z]|[」』][とっはがをのにもで]|[”」]?[他她它我你]们?[说說问問道]"
)
"""Text after a mark in a quotation that continues the sentence."""

_SHORTEST_WORD = 3
_WINDOW, _WORDS = 300, 40
"""Number of characters around a mark that are searched for brackets and words, so that the time is
linear in the length of a text."""

_PARTICLES = word_set(
    """De La Le Les Los Las El Du Des Di Da Do Dos Dal Della Del Van Von Den Ten Ter Zu Al An Will
    May So No As A Am Im Van San"""
)
"""Words that begin sentences as well as names."""

_LABELED = tuple(
    word_set(
        """vitamin witamin витамин plan план hepatit hépatit гепатит typ tipo тип group grupp
        groupe grupo gruppo групп class klass classe clase класс categor kategor catégor category
        grade letter buchstabe lettre letra lettera букв option opci opzion platform plateform
        section secci figure appendix block level team series serie série channel gate hall
        terminal building form formula formel formule fórmula influenza line linie ligne línea
        point punkt punto"""
    )
)
"""Nouns that may precede a single letter: vitamin C, plan B."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive sentences of a response.

    Attributes:
        first: index of its first sentence in the response, from 1.
        sentences: the sentences, in order.
    """

    first: int
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences, separated by single spaces."""
        return " ".join(self.sentences)

    @property
    def numbered(self) -> str:
        """The sentences, one per line, with their numbers in the response."""
        numbers = enumerate(self.sentences, self.first)
        return "\n".join(f"{number}: {sentence}" for number, sentence in numbers)

    @property
    def can_be_halved(self) -> bool:
        """True if it has more than one sentence."""
        return len(self.sentences) > 1

    def halves(self) -> tuple[Chunk, Chunk]:
        """Return its two halves; the first has the extra sentence, if any."""
        middle = (len(self.sentences) + 1) // 2
        return (
            Chunk(self.first, self.sentences[:middle]),
            Chunk(self.first + middle, self.sentences[middle:]),
        )


def split_sentences(text: str, language: str | None = None) -> tuple[str, ...]:
    """Return the sentences of `text`, stripped, without marks of lists, headings and bold words.

    A line end ends a sentence, since responses contain lists and headings.

    Args:
        text: the text.
        language: code of its language, such as de; None detects it (`usual_language`). A language
            that sentencex does not support is split by the rules of a similar one.

    Raises:
        InputError: if `language` does not have the form of a code.
    """
    code = usual_language(text) if language is None else checked_language(language)
    sentences: list[str] = []
    lines = _LINE.split(text)
    numbers = {int(match[1]) for line in lines if (match := _NUMBERED.match(line))}
    for line in lines:
        marked = line if _begins_with_ordinal(line, numbers, code) else _LIST_MARK.sub("", line)
        unmarked = _BOLD.sub(r"\1", marked)
        plain = unmarked.strip().strip("*").strip()
        start = 0
        for end in _ends(plain, code):
            sentences.append(plain[start:end].strip())
            start = end
    return tuple(sentence for sentence in sentences if any(map(str.isalnum, sentence)))


def sentences_of(graph: FactGraph) -> tuple[str, ...]:
    """Return the sentences of a response, by the rules of its `stated_language`."""
    return split_sentences(graph.response, stated_language(graph))


def stated_language(graph: FactGraph) -> str | None:
    """Return the code of a response's language in its metadata; None if there is none.

    Other notations of languages in datasets are ignored.
    """
    stated = graph.metadata.get(LANGUAGE_KEY)
    return stated if isinstance(stated, str) and is_language_code(stated) else None


def split_chunks(sentences: tuple[str, ...], stride: int | None) -> tuple[Chunk, ...]:
    """Return the chunks of `stride` sentences of a response, without overlap.

    Args:
        sentences: the sentences of the response.
        stride: sentences per chunk, from 1; None makes the whole response one chunk.

    Raises:
        InputError: if the stride is not a whole number from 1.

    Source: FaStfact, section 4.1: 1 is sentence by sentence, N (all) the fewest calls.
    """
    if stride is None:
        stride = max(1, len(sentences))
    if isinstance(stride, bool) or not isinstance(stride, int) or stride < 1:
        raise InputError(f"the stride is {stride!r}; give a whole number of sentences from 1")
    return tuple(
        Chunk(start + 1, sentences[start : start + stride])
        for start in range(0, len(sentences), stride)
    )


def _begins_with_ordinal(line: str, numbers: set[int], language: str) -> bool:
    """Return whether a line begins with an ordinal, as in *3. Mai*, rather than a list number.

    In a list, an adjacent number begins another line, or the text begins with a function word.

    Args:
        line: the line.
        numbers: numbers that lines of the text begin with.
        language: code of the language.
    """
    match = _NUMBERED.match(line)
    if match is None or numbers & {int(match[1]) - 1, int(match[1]) + 1}:
        return False
    after = line[match.start(2) :]
    return after[0].islower() or (language in _ORDINAL_LANGUAGES and not _opener(after, language))


def _ends(text: str, language: str) -> list[int]:
    """Return the offsets in `text` at which sentences end, the last of which is its length."""
    import sentencex

    # sentencex refuses lone surrogates; the replacement has the same length.
    whole = _HALF.sub("\ufffd", text)
    ends = {part["end_index"] for part in sentencex.get_sentence_boundaries(language, whole)}
    for match in _MARK.finditer(text):
        decided = _decided(text, match, language)
        # sentencex assigns the space after a mark to either sentence, and may separate a mark from
        # a following bracket.
        around = ends.intersection(range(match.start() + 1, match.end() + 1))
        ends -= around
        if decided or (decided is None and around):
            ends.add(match.end())
    return sorted(end for end in ends | {len(text)} if end)


def _decided(text: str, match: re.Match[str], language: str) -> bool | None:
    """Decide whether a sentence ends at a mark; None leaves it to sentencex."""
    mark, closing, space = match["mark"], match["closing"], match["space"]
    before = text[max(0, match.start() - _WINDOW) : match.start()]
    after = text[match.end() : match.end() + _WINDOW]
    if not after:
        return None
    if _GOES_ON.match(closing + space + after):
        return False
    if any(bracket in closing for bracket in _BRACKETS):
        # Brackets around whole sentences end with a sentence; brackets within a sentence do not.
        parted = _opens_sentence(before, closing) or (_opener(after, language) and "." in mark)
        return (parted and (bool(space) or not after[0].isascii())) or None
    if space and _is_within(before, after):
        return False
    if "…" in mark:
        return not after[0].islower() and (bool(space) or not after[0].isascii())
    if mark != "." or closing:
        return None
    if space:
        return _ends_at_full_stop(before[-_WORDS:], after, language)
    # "lit.It burned" lacks a space; "ASP.NET", "B.Sc" and "J.-C." do not.
    lacks_space = before[-1:].islower() and after[0].isupper() and after[1:2].islower()
    goes_on = after[0].isalnum() or after[0] in "-‑–,;:/"
    return False if goes_on and not lacks_space else None


def _is_within(before: str, after: str) -> bool:
    """Return whether a lower-case letter continues a sentence after a mark: *Jeopardy! is a quiz.*

    A text in which no sentence begins with a capital letter gives no evidence.
    """
    return after[0].islower() and not before.islower() and not _MIXED_CASE.match(after)


def _ends_at_full_stop(before: str, after: str, language: str) -> bool | None:
    """Decide whether a sentence ends at a period and a space; None leaves it to sentencex."""
    match = _LAST_WORD.search(before)
    word = match[0] if match else ""
    opener = _opener(after, language)
    if after[0].islower() and ("." in word or len(word) < _SHORTEST_WORD):
        return None if before.islower() else False
    if word.casefold() in _ABBREVIATIONS.get(language, ()):
        return False
    if word.casefold() in _TITLES and after[0].isupper():
        return False
    if _DOUBLED.fullmatch(word):
        return opener and not _DOUBLED.match(after)
    if word.casefold() in _BEFORE_NUMBERS and _NUMBER.match(after):
        return False
    if language in _ORDINAL_LANGUAGES and re.fullmatch(r"\d{1,2}", word) and after[0].isupper():
        return opener
    if _LIST_END.search(before):
        return after[0].isupper() or None
    single = _SINGLE_LETTER.search(before)
    if single and after[0].isupper():
        return _ends_with_letter(single["previous"] or "", after, language)
    return True if "." in word and opener else None


def _ends_with_letter(previous: str, after: str, language: str) -> bool | None:
    """Decide whether a single capital letter and its period end a sentence.

    An initial precedes a name. The letter of a label ("vitamin C") may end a sentence: it does if
    the next word begins a sentence and not a name, or if the word before takes a letter.
    """
    if _opener(after, language):
        return True
    if previous.casefold().startswith(_LABELED) and not _INITIAL.match(after):
        return True
    is_noun = previous.islower() and previous not in FUNCTION_WORDS.get(language, ())
    return True if is_noun and _first_word(after) in _PARTICLES else None


def _opens_sentence(before: str, closing: str) -> bool:
    """Return whether the closing bracket's opening one is at the beginning of a sentence."""
    bracket = next(character for character in closing if character in _BRACKETS)
    opened, depth = len(before), 1
    for index in range(len(before) - 1, -1, -1):
        depth += (before[index] == bracket) - (before[index] == _BRACKETS[bracket])
        if not depth:
            opened = index
            break
    else:
        return False
    return not before[:opened].rstrip() or before[:opened].rstrip()[-1] in _FINAL


def _opener(after: str, language: str) -> bool:
    """Return whether a text begins with a capitalized function word, which is not a name."""
    word = _first_word(after)
    if not word[:1].isupper() or _INITIAL.match(after):
        return False
    folded = word.casefold()
    return folded in FUNCTION_WORDS.get(language, ()) and word not in _PARTICLES


def _first_word(text: str) -> str:
    match = _FIRST_WORD.match(text)
    return match[0] if match else ""
