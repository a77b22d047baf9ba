"""Priors of passages by their source, from a number, a list or a table."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factormodels.errors import InputError
from factormodels.io.source.opening import exists
from factormodels.io.tables.data_table import read_table
from factormodels.passage_sources import parse_priors, priors_text
from factormodels.validation import validated_probability
from factormodels.words import folded

_SOURCES = ("source", "domain", "host", "name")
_PRIORS = ("prior", "p", "probability", "reliability")
"""Names of the two columns of a table of priors, the most likely first."""

ENCODING_COLUMN = "encoding"
"""Column of the encoding with which the priors of a table were learned."""


@dataclass(frozen=True)
class LearnedWith:
    """The encoding with which the priors of a table were learned.

    Attributes:
        encoding: name of the encoding.
        location: place of the name, for errors.
    """

    encoding: str
    location: str


def as_prior(value: Any) -> str | None:
    """Return a prior of all passages as a number, or priors by source, as one text.

    Args:
        value: a number; pairs such as ``wikipedia.org=.95,blog=.6``; a mapping; the path of a table
            with a column of sources or domains and one of priors; or, as from a command line, a
            list of one of these or of texts with one pair each.

    Raises:
        InputError: for anything else, or a prior outside [0, 1].
    """
    if value is None:
        return None
    if isinstance(value, list):
        value = _from_words(value)
    if isinstance(value, Mapping):
        return priors_text({str(name): _prior(p, str(name)) for name, p in value.items()})
    if isinstance(value, bool) or not isinstance(value, int | float | str | Path):
        raise InputError(
            f"{value!r} is not a prior; give a number from 0 to 1, or priors by source"
        )
    text = str(value).strip()
    number = None
    with suppress(ValueError):
        number = float(text)
    if number is not None:
        return repr(validated_probability(number, "the prior of passages"))
    if "=" in text and not exists(text):
        return priors_text(parse_priors(text))
    return priors_text(_read(Path(text)))


def learned_with(value: Any) -> LearnedWith | None:
    """Return the encoding that a table of priors states; None for anything else.

    Args:
        value: as in `as_prior`.

    Raises:
        InputError: if the table cannot be read, or states several encodings.
    """
    word = value[0] if isinstance(value, list) and len(value) == 1 else value
    if not isinstance(word, str | Path) or not exists(str(word)):
        return None
    table = read_table(Path(word))
    column = next((each for each in table.columns if folded(each) == ENCODING_COLUMN), None)
    stated: LearnedWith | None = None
    for row, cells in enumerate(table.rows):
        name = str(cells.get(column) or "").strip() if column is not None else ""
        if not name:
            continue
        location = table.locate(row, column)
        if stated is not None and name != stated.encoding:
            raise InputError(
                f"{location}: {name!r} differs from {stated.encoding!r} in an earlier row; give "
                "the priors of one encoding"
            )
        stated = stated or LearnedWith(name, location)
    return stated


def is_number(prior: str) -> bool:
    """Return whether a prior, as `as_prior` returns it, is one number for all passages."""
    return "=" not in prior


def _prior(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"the prior of {name} is {value!r}; give a number from 0 to 1")
    return validated_probability(float(value), f"the prior of {name}")


def _from_words(words: list[Any]) -> Any:
    """Return the priors that an option holds which may be repeated: one value, or pairs."""
    pairs = [str(word) for word in words if "=" in str(word) and not exists(str(word))]
    if packed := next((pair for pair in pairs if pair.count("=") > 1), None):
        apart = " ".join(f"--prior {pair.strip()}" for pair in packed.split(","))
        raise InputError(f"give one source at a time: {apart}")
    if len(words) > 1 and len(pairs) < len(words):
        other = next(word for word in words if str(word) not in pairs)
        raise InputError(
            f"{other} is not a prior of one source; write NAME=P, or leave the rest out"
        )
    return ",".join(pairs) if pairs else words[0]


def _read(path: Path) -> dict[str, float]:
    """Return the priors of a table by source."""
    if not exists(path):
        raise InputError(
            f"{path}: there is no such file; give a number, NAME=P, or a table with the "
            "columns source and prior"
        )
    table = read_table(path)
    by_name = {folded(name): name for name in reversed(table.columns)}
    columns = []
    for what, names in (("sources", _SOURCES), ("priors", _PRIORS)):
        column = next((by_name[name] for name in names if name in by_name), None)
        if column is None:
            raise InputError(
                f"{path}: it has no column of {what}; call one {names[0]!r}; it has "
                f"{', '.join(table.columns)}"
            )
        columns.append(column)
    priors: dict[str, float] = {}
    for row, cells in enumerate(table.rows):
        name, cell = str(cells.get(columns[0]) or "").strip(), cells.get(columns[1])
        where = table.locate(row, columns[1])
        if not name:
            raise InputError(f"{table.locate(row, columns[0])}: the source is missing; name one")
        if name.casefold() in priors:
            raise InputError(f"{where}: the source {name!r} is in an earlier row; keep one")
        try:
            priors[name.casefold()] = validated_probability(float(str(cell)), "the prior")
        except (ValueError, InputError):
            raise InputError(
                f"{where}: {cell!r} is not a probability; give a number from 0 to 1"
            ) from None
    return priors
