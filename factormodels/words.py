"""Words for true, false, neither and irrelevant, and for the relation of evidence to a claim.

Labels in tables, outputs of other tools and answers of models share this vocabulary. Words are
compared in the form of `folded`. A format that gives a word a special meaning handles it in its
reader.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from factormodels.claims import ModelJudgment, RelationKind


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))


_TRUE = _words(
    """true, correct, right, accurate, factual, supported,
    vrai, vraie, exact, exacte, juste, verdadero, verdadera, cierto, cierta, correcto, correcta,
    wahr, richtig, korrekt, zutreffend, vero, vera, corretto, corretta, verdadeiro, verdadeira,
    certo, correto, correta, waar, juist, sant, sandt, prawda, верно, правда, правильно, истина,
    doğru, 真, 对, 對, 正确, 正確, 正しい, 참, 맞음, صحيح, सही"""
)
_FALSE = _words(
    """false, incorrect, wrong, inaccurate, untrue, unsupported, refuted, contradicted,
    not true, not correct, not right, not accurate, not factual, not supported,
    non factual, nonfactual, non supported,
    faux, fausse, inexact, inexacte, falso, falsa, incorrecto, incorrecta,
    falsch, unwahr, unrichtig, inkorrekt, unzutreffend, errato, sbagliato, scorretto,
    errado, incorreto, incorreta, onwaar, onjuist, falskt, falsk, usandt, fałsz,
    неверно, неправда, неправильно, ложь, yanlış, 假, 错, 錯, 错误, 錯誤, 不对, 不對, 不正确, 誤り,
    正しくない, 거짓, 틀림, خطأ, गलत"""
)
_YES = _words(
    """yes, yep, yeah, yup, y, t, 1, ✓, ✔, ✅,
    oui, sí, si, ja, sì, sim, да, tak, evet, 是, 是的, はい, 예, 네, نعم, हाँ, हां"""
)
_NO = _words(
    """no, nope, n, f, 0, ✗, ✘, ❌,
    non, nein, não, nao, nee, nej, nei, нет, nie, hayır, 否, 不是, 不, いいえ,
    아니요, 아니오, لا, नहीं"""
)
_NEITHER = _words(
    """neither, none, none of the above, neither of the above, unsure, uncertain, unknown, unclear,
    undecided, undetermined, not sure, not certain, no idea, i don't know, i do not know,
    don't know, do not know, dont know, idk, cannot say, can't say, cannot tell, can't tell,
    cannot determine, ne sait pas, je ne sais pas, no sé, no lo sé, weiss nicht,
    ich weiss es nicht, ich weiss nicht, non lo so, não sei, не знаю, 不知道, わかりません"""
)

STATEMENTS: Mapping[str, ModelJudgment] = MappingProxyType(
    {**dict.fromkeys(_TRUE, ModelJudgment.TRUE), **dict.fromkeys(_FALSE, ModelJudgment.FALSE)}
)
"""Words that mean true or false, even within a sentence."""

REPLIES: Mapping[str, ModelJudgment] = MappingProxyType(
    {
        **dict.fromkeys(_YES, ModelJudgment.TRUE),
        **dict.fromkeys(_NO, ModelJudgment.FALSE),
        **dict.fromkeys(_NEITHER, ModelJudgment.NEITHER),
    }
)
"""Words that mean true or false as a full answer. Within a sentence they have other meanings: "no
record", "unknown to his parents"."""

LETTERS: Mapping[str, ModelJudgment] = MappingProxyType(
    {"a": ModelJudgment.TRUE, "b": ModelJudgment.FALSE, "c": ModelJudgment.NEITHER}
)
"""Usual meaning of letters if true, false and none of the above were offered as lettered options.
Use it only if they were: many answers begin with "A"."""

ABSENT = ("", "nan", "null", "na", "n/a", "#n/a", "<na>", "missing")
"""Spellings of a missing value in a table."""

NO_LABEL = (*ABSENT, "none", "unknown", "unlabelled", "unlabeled")
"""Words in a column of labels that mean that a claim has no label."""

IRRELEVANT = frozenset(("ir", "irrelevant", "unverifiable"))
"""Labels of claims that are excluded."""

_LACKING = ("not enough evidence", "not enough information", "not enough info", "nei")
UNDECIDED_EVIDENCE = (*_LACKING, "neutral", "conflicting evidence")
"""Labels of claims with inconclusive evidence."""

NOT_SUPPORTED = (
    *("not supported", "not-supported", "non-supported", "non supported", "unsupported"),
    *("partially supported", "partly supported", "only partially supported"),
    *("not enough evidence", "not enough information", "inconclusive"),
)
"""Verdicts of a model that evidence neither supports nor contradicts a claim. A model's answer is
compared literally, so spellings with and without a hyphen are listed."""

STANCES: Mapping[str, RelationKind] = MappingProxyType(
    {
        **{kind.value: kind for kind in RelationKind},
        **dict.fromkeys(
            ("entails", "entailed", "support", "supports", "supported"), RelationKind.ENTAILMENT
        ),
        **dict.fromkeys(
            ("contradicts", "contradicted", "refute", "refutes", "refuted"),
            RelationKind.CONTRADICTION,
        ),
        **dict.fromkeys(("equivalent", "equal"), RelationKind.EQUIVALENCE),
        **dict.fromkeys((*_LACKING, "irrelevant", "unrelated"), RelationKind.NEUTRAL),
    }
)
"""Words for the relation of a passage to a claim."""

_OPTION = re.compile(
    r"(?:(?:option|choice|answer)\W*)?(?P<letter>[a-c])(?:\W+(?P<text>.+))?"
    r"|(?P<before>.+?)\W*[(\[](?:option\W*)?[a-c]"
)
"""An option by its letter, alone or with its words: "a) true", "option a", "true (a"."""

_MARKS = " \t\r\n*_`\"'“”‘’«»()[]{}<>#.!:;,。！\ufe0f"


def folded(value: Any) -> str:
    """Return a value as a comparable word: lower case, stripped, dashes replaced by spaces.

    A whole number is written without decimals, as a number or as text: 1.0 and "1,0" become "1".
    """
    if value is None:
        return ""
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        value = int(value) if value.is_integer() else value
    spaced = re.sub(r"(?<!\w)-(?=\d)", "−", str(value).replace("’", "'"))  # -1 is not 1
    spaced = spaced.replace("_", " ").replace("-", " ")
    word = " ".join(spaced.split()).casefold()
    whole = re.fullmatch(r"(\d+)[.,]0+", word)
    return whole[1] if whole else word


def truth_of(value: Any, *, letters: bool = False) -> ModelJudgment | None:
    """Return the judgment that a word or phrase expresses, in any case and markup; None if none.

    Args:
        value: such as True, 1.0, "Yes.", "**vrai**" or "not correct".
        letters: whether A, B and C were offered for true, false and none of the above: "(B)",
            "Option A" and "(A) True" are then read too.
    """
    word = folded(value).strip(_MARKS)
    judgment = STATEMENTS.get(word) or REPLIES.get(word)
    option = _OPTION.fullmatch(word) if judgment is None and letters else None
    if option is None:
        return judgment
    # Words take precedence over a letter, since the options may have been in another order.
    text = option["text"] or option["before"]
    return LETTERS[option["letter"]] if text is None else truth_of(text)


def state_of_truth(names: Sequence[str], *, truth: bool) -> str | None:
    """Return the name of the state that means true or false; None if the two names do not decide
    it.
    """
    of_words = {truth_of(name): name for name in names}
    if len(names) != 2 or not of_words.keys() >= {ModelJudgment.TRUE, ModelJudgment.FALSE}:
        return None
    return of_words[ModelJudgment.TRUE if truth else ModelJudgment.FALSE]
