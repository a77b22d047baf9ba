"""UNLI: pairs of sentences with people's probability of the second given the first.

Source: Chen et al. 2020, "Uncertain Natural Language Inference", https://nlp.jhu.edu/unli/. Based
on: programs that read train.csv, dev.csv and test.csv of u-snli.zip by the columns `id`, `pre`,
`hyp`, `nli` (SNLI's category), `unli` (the probability), and copies with `premise`, `hypothesis`,
`label`; the tables themselves were not available.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factormodels.decoded_values import as_text, shown
from factormodels.errors import InputError
from factormodels.io.formats.format import Format
from factormodels.io.formats.items import JudgedPair
from factormodels.io.formats.record import (
    ToolRecord,
    filled,
    record_of,
    root_path,
    stated_of,
)
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source
from factormodels.validation import validated_probability

_PREMISE, _HYPOTHESIS, _PROBABILITY = ("pre", "premise"), ("hyp", "hypothesis"), ("unli", "label")


class UnliRow(ToolRecord):
    """A pair, in the owners' columns or those of copies."""

    id: Any = None
    pre: Any = None
    premise: Any = None
    hyp: Any = None
    hypothesis: Any = None
    unli: Any = None
    label: Any = None
    nli: Any = None


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has two texts and a probability."""
    return all(any(key in record for key in keys) for keys in (_PREMISE, _HYPOTHESIS, _PROBABILITY))


def read(obj: object, source: Source, line: int | None = None) -> JudgedPair:
    """Return the pair of a row.

    Raises:
        InputError: if a text is missing or the probability is invalid.
    """
    row, top = record_of(UnliRow, obj, source, line), root_path(source, line)
    key, value = stated_of(row, _PROBABILITY, source, line)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise InputError(
                f"{top}.{key}: {shown(value)} is not a probability; give a number from 0 to 1"
            ) from None
    return JudgedPair(
        id=record_id(source, line) if row.id in (None, "") else str(row.id),
        premise=_text(row, _PREMISE, source, line),
        hypothesis=_text(row, _HYPOTHESIS, source, line),
        probability=validated_probability(value, f"{top}.{key}"),
        category="" if row.nli is None else str(row.nli),
    )


def _text(row: UnliRow, keys: tuple[str, ...], source: Source, line: int | None) -> str:
    key, value = stated_of(row, keys, source, line)
    where = f"{root_path(source, line)}.{key}"
    return filled(as_text(value, where), where)


FORMAT = Format(
    name="unli",
    title="UNLI",
    owner="nlp.jhu.edu/unli, u-snli",
    holds="pairs",
    keys=("pre", "hyp", "unli"),
    recognize=recognize,
    read=read,
    record=UnliRow,
)
