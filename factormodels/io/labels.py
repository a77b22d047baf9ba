"""Labels of claims in whatever words a table has them: true, false or irrelevant.

The words of a column are read together, since one word means different things: S is supported
beside NS, and subjective beside Y and N.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from factormodels.errors import InputError
from factormodels.io.claim_records import ClaimLabel
from factormodels.io.json_records import shown

_UNSUPPORTED = (
    *("ns", "not supported", "unsupported", "non supported", "refuted", "contradicted"),
    *("not enough evidence", "conflicting evidence"),
)
_SPELLINGS: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (("true",), ("false",), ("irrelevant",)),
    (("t",), ("f",), ()),
    (("1",), ("0",), ()),
    (("s", "supported"), _UNSUPPORTED, ("ir", "irrelevant", "unverifiable")),
    (("y", "yes"), ("n", "no"), ()),
    (("correct", "right"), ("incorrect", "wrong"), ("irrelevant",)),
    (("accurate",), ("inaccurate",), ()),
    (("factual",), ("non factual", "nonfactual", "not factual"), ()),
)
"""Words for true, false and irrelevant that belong together."""

_MOST_LISTED = 6
_ABSENT = ("", "null", "none", "nan", "na", "n/a", "unknown", "unlabelled", "unlabeled")

EXAMPLES = "true/false, 1/0, S/NS, Y/N, supported/unsupported, correct/incorrect"


@dataclass(frozen=True)
class LabelSpelling:
    """Which words of a column mean what; every other word is not a label.

    Attributes:
        true: words for true, in lower case.
        false: words for false; None: every word that is none of the others.
        irrelevant: words for a claim that does not count.
    """

    true: tuple[str, ...]
    false: tuple[str, ...] | None
    irrelevant: tuple[str, ...]

    def read(self, value: Any) -> ClaimLabel | None:
        """Label of a value; None where there is none."""
        word = folded(value)
        if word in self.true:
            return ClaimLabel.SUPPORTED
        if word in self.irrelevant:
            return ClaimLabel.IRRELEVANT
        if word in _ABSENT:
            return None
        if self.false is None or word in self.false:
            return ClaimLabel.UNSUPPORTED
        return None


def folded(value: Any) -> str:
    """A value as a word to compare: lower case, without space around, dashes as spaces."""
    if value is None:
        return ""
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        value = int(value) if value.is_integer() else value
    return " ".join(str(value).replace("_", " ").replace("-", " ").split()).casefold()


def label_spelling(
    values: Iterable[Any],
    where: str,
    true: Sequence[str] = (),
    irrelevant: Sequence[str] = (),
) -> LabelSpelling:
    """How a column spells its labels.

    Args:
        values: all values of the column.
        where: the file and the column, which errors name.
        true: words that mean true; every other word then means false.
        irrelevant: words for claims that do not count.

    Raises:
        InputError: if there is no label, a word that was given does not occur, or the words are of
            no one known spelling.
    """
    dropped = tuple(map(folded, irrelevant))
    # The first of equal words as it was written, for messages.
    words = {word: str(value) for value in values if (word := folded(value)) not in _ABSENT}
    if not words:
        raise InputError(f"{where}: there is no label; give {EXAMPLES}")
    for option, given in (("--true", true), ("--irrelevant", irrelevant)):
        for word in given:
            if folded(word) not in words:
                raise InputError(
                    f"{where}: no label is {word!r}, which {option} names; it has {_listed(words)}"
                )
    if true:
        return LabelSpelling(tuple(map(folded, true)), None, dropped)
    left = words.keys() - set(dropped)
    for yes, no, neither in _SPELLINGS:
        if left <= {*yes, *no, *neither}:
            return LabelSpelling(yes, no, (*neither, *dropped))
    raise InputError(
        f"{where}: its labels are {_listed(words)}, which no spelling covers ({EXAMPLES}); say "
        "which words mean true with --true WORD (all others are then false), and with --irrelevant "
        "WORD which do not count"
    )


def _listed(words: dict[str, str]) -> str:
    names = [shown(word.strip()) for word in sorted(words.values())]
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(names[:_MOST_LISTED]) + more
