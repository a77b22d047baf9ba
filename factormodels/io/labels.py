"""Labels of claims in any spelling of a table: true, false or irrelevant.

A column may mix spellings, as when several people labeled it. S is ambiguous: it means supported
beside NS, and subjective beside Y and N; in the latter case it is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from factormodels.claims import ClaimLabel, ModelJudgment, RelationKind
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.nouns import counted
from factormodels.words import (
    IRRELEVANT,
    NO_LABEL,
    REPLIES,
    STANCES,
    STATEMENTS,
    UNDECIDED_EVIDENCE,
    folded,
)

_KNOWN = {**STATEMENTS, **REPLIES}
_SUPPORTED = "s"
_NOT_SUPPORTED = "ns"
_TRUE = frozenset(
    (
        *(word for word, truth in _KNOWN.items() if truth is ModelJudgment.TRUE),
        *(word for word, kind in STANCES.items() if kind is RelationKind.ENTAILMENT),
        _SUPPORTED,
    )
)
_FALSE = frozenset(
    (
        *(word for word, truth in _KNOWN.items() if truth is ModelJudgment.FALSE),
        *(word for word, kind in STANCES.items() if kind is RelationKind.CONTRADICTION),
        *(_NOT_SUPPORTED, "not entailment", "non entailment", "not entailed"),
        # In FaStfact's protocol a claim without decisive evidence is unsupported.
        *UNDECIDED_EVIDENCE,
    )
)
_ANSWERED = ("y", "n", "yes", "no")
"""Words beside which S means subjective."""

_MOST_LISTED = 6
EXAMPLES = "true/false, 1/0, S/NS, Y/N, supported/unsupported, correct/incorrect"


@dataclass(frozen=True)
class LabelSpelling:
    """Meanings of the words in a column; all other words are not labels.

    Attributes:
        true: words for true, in lower case.
        false: words for false; None means every other word.
        irrelevant: words for a claim that does not count.
    """

    true: frozenset[str]
    false: frozenset[str] | None
    irrelevant: frozenset[str]

    def read(self, value: Any) -> ClaimLabel | None:
        """Return the label of a value; None if there is none."""
        word = folded(value)
        if word in self.irrelevant:
            return ClaimLabel.IRRELEVANT
        if word in self.true:
            return ClaimLabel.SUPPORTED
        if word in NO_LABEL:
            return None
        if self.false is None or word in self.false:
            return ClaimLabel.UNSUPPORTED
        return None


def label_spelling(
    values: Iterable[Any],
    where: str,
    true: Sequence[str] = (),
    irrelevant: Sequence[str] = (),
) -> LabelSpelling:
    """Return the spelling of the labels in a column.

    Args:
        values: all values of the column.
        where: the file and the column, for errors.
        true: words that mean true; all other words then mean false.
        irrelevant: words for claims that do not count.

    Raises:
        InputError: if there is no label, a given word does not occur, or a word belongs to no known
            spelling.
    """
    dropped = frozenset(map(folded, irrelevant))
    # The first spelling of each word, for messages.
    words = {word: str(value) for value in values if (word := folded(value)) not in NO_LABEL}
    if not words:
        raise InputError(f"{where}: there is no label; give {EXAMPLES}")
    for option, named in (("--true", true), ("--irrelevant-label", irrelevant)):
        for word in named:
            if folded(word) not in words:
                parts = [part.strip() for part in str(word).split(",")]
                each = " ".join(f"{option} {part}" for part in parts)
                advice = f"; write {each}" if all(folded(part) in words for part in parts) else ""
                raise InputError(
                    f"{where}: no label is {word!r}, which {option} names; it has "
                    f"{_listed(words)}{advice}"
                )
    if true:
        return LabelSpelling(frozenset(map(folded, true)), None, dropped)
    left = words.keys() - dropped
    fault = ""
    if not left <= _TRUE | _FALSE | IRRELEVANT:
        fault = f"which no spelling covers ({EXAMPLES})"
    elif _SUPPORTED in left and _NOT_SUPPORTED not in left and left & set(_ANSWERED):
        fault = "where S may stand for supported or subjective"
    if fault:
        raise InputError(
            f"{where}: its labels are {_listed(words)}, {fault}; name the words that mean true "
            "with --true WORD (all others are then false), and the words that do not count with "
            "--irrelevant-label WORD"
        )
    return LabelSpelling(_TRUE, _FALSE, IRRELEVANT | dropped)


def meaning_remark(
    column: str, values: Iterable[Any], spelling: LabelSpelling, classes: Sequence[str] = ()
) -> str:
    """Return a sentence on the labels that mean true and false.

    It is empty if the words are unambiguous: there are no integer labels, and no labels of
    inconclusive evidence.

    Args:
        column: name of the column.
        values: all values of the column.
        spelling: spelling of its labels.
        classes: names of classes that the file states for the column's integers.
    """
    words = {folded(value): str(value).strip() for value in values}
    if not classes and not (words.keys() & set(UNDECIDED_EVIDENCE)):
        return ""
    meanings: dict[ClaimLabel, list[str]] = {}
    for word in sorted(words):
        if (label := spelling.read(word)) is not None:
            meanings.setdefault(label, []).append(words[word])
    names = {
        ClaimLabel.SUPPORTED: "true",
        ClaimLabel.UNSUPPORTED: "false",
        ClaimLabel.IRRELEVANT: "not counted",
    }
    texts = "; ".join(
        f"{', '.join(map(shown, meanings[label]))} {'is' if len(meanings[label]) == 1 else 'are'} "
        f"{name}"
        for label, name in names.items()
        if label in meanings
    )
    stated = ", ".join(f"{number} = {shown(name)}" for number, name in enumerate(classes))
    return f"Labels of column {column!r}: {f'its classes are {stated}; ' if stated else ''}{texts}."


def comma_remark(column: str, values: Iterable[Any]) -> str:
    """Return a sentence on labels or judgments written as "1,0"; empty if there are none."""
    count = sum(
        isinstance(value, str) and re.fullmatch(r"\s*\d+,0+\s*", value) is not None
        for value in values
    )
    if not count:
        return ""
    return f"Column {column!r} has {counted(count, 'cell')} with a decimal comma: 1,0 is read as 1."


def _listed(words: dict[str, str]) -> str:
    names = [shown(word.strip()) for word in sorted(words.values())]
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(names[:_MOST_LISTED]) + more
