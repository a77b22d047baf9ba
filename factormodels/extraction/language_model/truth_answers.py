"""Parser of answers that state true, false or neither in plain words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from factormodels.claims import ModelJudgment
from factormodels.extraction.language_model import Completion
from factormodels.extraction.language_model.answers import (
    DENIAL,
    Label,
    any_of,
    clause_before,
    end_of_marker,
    marked_place,
    weighed_label,
)
from factormodels.words import REPLIES, STATEMENTS, truth_of

_MARKUP = r"[\s*_`\"'“”‘«»(\[{<#>]*"
_END = r"[\s*_`\"'”’»)\]}]*(?:[.:;!\n。！—–]|$)"
_LEAD = (
    r"(?:(?:i(?:'d|\s+would)\s+say|definitely|certainly|absolutely|surely)\b[\s,:]*(?:that\s+)?)?"
    r"(?:(?:(?:my|the|final|short|proposed|correct|right|best)\s+)*"
    r"(?:answer|verdict|judge?ment|response|conclusion|choice|option|claim|statement)\b[\s*_`\"']*"
    r"(?::|\bis\b)|(?:this|that|it)(?:'s|\s+is)\b)?"
    rf"{_MARKUP}(?:(?:option|choice)\s+{_MARKUP})?(?:[a-e1-5][).:]\s*)?"
)
_ASIDE = r"\s*(?:,|，|\s(?:it|that|this|the\s+(?:claim|statement|answer)|he|she|they)\b)"
_GOES_ON = (
    r"(?=[\s*_`\"'”’»)\]}]*(?:[.,;:!?\n。，！—–(]|$)|\s+(?:because|as|since|that|according|based|"
    r"given|for|and|but|or|so|if|when|while|though|although|nor|than|in\s+that|(?:to\s+)?(?:my|the)"
    r"\s+best|(?:statement|claim|information|assertion)|answer(?!\s+(?:is|was|would|should)))\b)"
)
"""Text that may follow a word that judges the claim, unlike in "The correct answer is Rome"."""

_DASH = r"(?<=\S[ \t])-(?=-?[ \t])(?!-?[ \t]+(?:or|and|true|false|yes|no)\b)"
"""A hyphen used as a dash, which ends a statement as in "False - he died". Before another word for
truth it does not: "true - or false"."""

_PARTLY = re.compile(
    r"\b(?:partial\w*|partly|mostly|largely|mainly|half|somewhat|in part|not necessarily)\s+$|"
    r"\b(?:while|although|though|if|may|might|could)\b",
    re.I,
)
"""Words of a clause that qualify its statement."""
_NEGATED = re.compile(
    r"(?:\bnot|n't)\s+(?:(?:entirely|quite|really|strictly|fully|completely|wholly|factually|"
    r"a|an|the)\s+)*$",
    re.I,
)
_UNDECIDED = re.compile(
    r"\b(?:neither|none\s+of\s+(?:the\s+above|these|them)|unsure|not\s+(?:sure|certain|aware)|"
    r"no\s+(?:idea|way\s+to\s+(?:know|tell|verify))|(?:do\s+not|don't)\s+know|"
    r"(?:can(?:not|\s+not|'t)|unable\s+to|impossible\s+to|not\s+(?:able|possible)\s+to)\s+"
    r"(?:(?:say|tell|determine|verify|confirm|judge|assess|answer|know)|"
    r"be\s+(?:said|told|determined|verified|confirmed|judged|assessed|known))|"
    r"(?:is|remains)\s+(?:unknown|unclear|uncertain|undetermined)|"
    r"(?:not\s+(?:have\s+)?|don't\s+have\s+|in)(?:enough|sufficient)\s+(?:information|evidence|"
    r"context|data|knowledge))\b",
    re.I,
)


@dataclass(frozen=True)
class TruthWords:
    """Meanings of words in answers, including the words that a question offers.

    Attributes:
        statements: words that are an answer even within a sentence.
        replies: words that are an answer if nothing else is said.
        offered: the judgments that the question offers; answers may still give others.
    """

    statements: Mapping[str, ModelJudgment]
    replies: Mapping[str, ModelJudgment]
    offered: tuple[ModelJudgment, ...]

    @property
    def all(self) -> Mapping[str, ModelJudgment]:
        """All words with their meanings."""
        return {**self.statements, **self.replies}


def truth_words(asked_for: Mapping[str, ModelJudgment], question: str) -> TruthWords:
    """Return the words that may answer a question.

    The plain words for true and false count besides the words that the question asks for, unless
    one of the latter is a plain word with another meaning, as in a question whether a claim is
    wrong. A letter or number counts if the question puts it before one of the words: "(A) true".

    Args:
        asked_for: judgments by the words that are asked for, lower case.
        question: the full question.
    """
    plain = all(truth_of(word) in (None, meaning) for word, meaning in asked_for.items())
    statements = dict(STATEMENTS) if plain else {}
    replies = dict(REPLIES) if plain else {}
    for word, meaning in asked_for.items():
        short = len(word) <= 2 or word in REPLIES
        (replies if short else statements)[word] = meaning
    known = {**statements, **replies}
    offered = re.finditer(
        rf"(?<!\w)\(?([a-e1-5])[).:]\s*[*_\"'`]*({any_of(list(known))})(?!\w)", question, re.I
    )
    replies.update({reply[1].lower(): known[_folded(reply[2])] for reply in offered})
    return TruthWords(statements, replies, tuple(asked_for.values()))


def read_truth(answer: Completion, words: TruthWords, after: str = "") -> Label | None:
    """Return the judgment in an answer, with its probability; None if it is not understood.

    The judgment is the word that the answer marks; or a word that is a sentence by itself; or, in
    an answer that was not cut off, the common meaning of all words about the claim, where "not
    true" is false. An answer that states that the truth cannot be determined is "neither". "Partly
    true" and contradictory words are not understood.

    Args:
        answer: the model's answer.
        words: the meanings of its words.
        after: mark before the answer, if reasoning precedes it, as in `read_label`.
    """
    skipped = end_of_marker(answer.text, after) if after else 0
    if skipped is None:
        return None
    # Normalize the spelling without moving any letter.
    text = re.sub(_DASH, "–", answer.text[skipped:].replace("’", "'"), flags=re.I)
    text = text.replace("-", " ").replace("_", " ").replace("\ufe0f", " ")
    mention = marked_place(text, list(words.all)) or _sentence_alone(text, words.all)
    if mention is not None:
        return _weighed(answer, skipped + mention[1], mention[0], words)
    statement = None if answer.finish == "length" else _common_meaning(text, words)
    if statement is None:
        undecided = _UNDECIDED.search(text) is not None
        return Label(ModelJudgment.NEITHER) if undecided else None
    judgment, word, start = statement
    if word is None:
        return Label(judgment)
    return _weighed(answer, skipped + start, word, words)


def _folded(word: str) -> str:
    return " ".join(word.lower().split())


def _weighed(answer: Completion, start: int, word: str, words: TruthWords) -> Label:
    """Return the judgment of a word, weighted among the judgments that the question offers."""
    meanings = words.all
    if meanings[word] not in words.offered:
        return Label(meanings[word])
    ordered = {
        each: str(offered)
        for offered in words.offered
        for each, meaning in meanings.items()
        if meaning is offered
    }
    return weighed_label(answer, start, word, ordered)


def _sentence_alone(text: str, words: Mapping[str, ModelJudgment]) -> tuple[str, int] | None:
    """Return the first word that is a sentence or line by itself, unless others disagree."""
    opening = rf"(?:^|[.?!\n])\s*{_MARKUP}{_LEAD}{_MARKUP}"
    sentences = [
        (_folded(match[1]), match.start(1))
        for match in re.finditer(rf"{opening}({any_of(list(words))})(?!\w)(?={_END})", text, re.I)
    ]
    return sentences[0] if len({words[word] for word, _ in sentences}) == 1 else None


def _common_meaning(text: str, words: TruthWords) -> tuple[ModelJudgment, str | None, int] | None:
    """Return the common meaning of all words about the claim, and the first; else None."""
    readings: list[tuple[ModelJudgment | None, str | None, int]] = []
    begin = 0
    opening = rf"{_MARKUP}{_LEAD}{_MARKUP}({any_of(list(words.replies))})(?!\w)(?={_ASIDE})"
    reply = re.match(opening, text, re.I) if words.replies else None
    if reply is not None:
        readings.append((words.replies[_folded(reply[1])], _folded(reply[1]), reply.start(1)))
        begin = reply.end(1)
    pattern = rf"(?<!\w)({any_of(list(words.statements))})(?!\w){_GOES_ON}"
    for match in re.finditer(pattern, text, re.I) if words.statements else ():
        if match.start() < begin or re.match(r"[^.!\n]*\?", text[match.end() :]):
            continue  # questions are not answers
        statement = _folded(match[1])
        meaning = words.statements[statement]
        reading = _in_clause(clause_before(text[begin:], match.start() - begin), meaning)
        if re.match(r"\s+or\b", text[match.end() :]):
            reading = None  # "true or not" is not a judgment
        readings.append((reading, statement if reading is meaning else None, match.start()))
    judgments = {judgment for judgment, _, _ in readings}
    if len(judgments) != 1 or None in judgments:
        return None
    judgment, word, start = readings[0]
    return None if judgment is None else (judgment, word, start)


def _in_clause(before: str, meaning: ModelJudgment) -> ModelJudgment | None:
    """Return the meaning of a word in its clause, given the preceding text of the clause."""
    if _PARTLY.search(before):
        return None
    negated = _NEGATED.search(before)
    if negated is None:
        return None if DENIAL.search(before) else meaning
    if meaning is not ModelJudgment.TRUE or DENIAL.search(before[: negated.start()]):
        return None
    return ModelJudgment.FALSE
