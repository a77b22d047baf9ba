"""Registry of formats, in the order in which a record is compared with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import islice

from factormodels.errors import InputError, unknown_name
from factormodels.io.formats.format import Format

MODULES = (
    "fact_graph",
    "factreasoner",
    "factreasoner_relations",
    "factreasoner_results",
    "factscore_output",
    "safe_output",
    "lm_polygraph_output",
    "minicheck_scores",
    "veriscore_output",
    "factscore",
    "factscore_derived",
    "factscore_passages",
    "claim_records",
    "relation_table",
    "factcheck_bench",
    "fastfact_bench",
    "selfcheck",
    "self_judged",
    "unli",
    "factool",
    "factool_output",
    "refchecker",
    "expertqa",
    "wice",
    "uqlm_output",
    "ragas_turns",
    "ragas",
    "responses",
    "longfact",
    "prompts",
)
"""Modules of this package with a `FORMAT`, in order of precedence."""

_LOOSE = ("responses", "prompts")
"""Formats with so few keys that a damaged record of another format may match them."""


def formats() -> tuple[Format, ...]:
    """Return every format, in the order in which a record is compared with them."""
    return tuple(_each_format())


def _each_format() -> Iterator[Format]:
    # Modules are loaded on demand, since most records are fact graphs.
    yield from map(_loaded, MODULES)


@cache
def _loaded(module: str) -> Format:
    known: Format = import_module(f"factormodels.io.formats.{module}").FORMAT
    return known


def format_names() -> tuple[str, ...]:
    """Return the names of all formats, in order."""
    return tuple(known.name for known in formats())


def format_named(name: str) -> Format:
    """Return the format with a given name.

    Raises:
        InputError: if no format has that name.
    """
    for known in _each_format():
        if known.name == name:
            return known
    raise InputError(unknown_name(f"the format {name!r}", name, format_names()))


def format_of(obj: object) -> Format | None:
    """Return the format that a record matches; None if it matches none."""
    if not isinstance(obj, dict):
        return None
    return next((known for known in _each_format() if known.fits(obj)), None)


def record_format(obj: object, of_file: Format | None) -> Format | None:
    """Return the format to read a record as, in a file whose other records are of `of_file`.

    A record with ambiguous keys is read in the file's format, which may then refuse it. Return None
    if it matches no format.
    """
    form = format_of(obj)
    loose = form is not None and form.name in _LOOSE
    return of_file if loose and of_file is not None and of_file.name not in _LOOSE else form


_MOST_COMPARED = 200
"""Maximum number of a record's keys whose spelling is compared, more than any format has."""


def nearest_format(obj: object) -> tuple[Format, tuple[str, ...]] | None:
    """Return the format whose keys match a record best, and the missing keys; None if none match.

    A key with a similar spelling counts half.
    """
    import difflib

    if not isinstance(obj, dict):
        return None
    compared = list(islice(obj, _MOST_COMPARED))
    best: tuple[tuple[float, float], Format] | None = None
    for known in formats():
        further = map(_first_step, known.every_field) if known.fields else known.used_keys or ()
        wanted = {*known.keys, *further}
        have = wanted & obj.keys()
        near = sum(
            bool(difflib.get_close_matches(key, compared, n=1, cutoff=0.75))
            for key in wanted - have
        )
        # Ties are resolved by the share of the format's identifying keys.
        share = len(obj.keys() & set(known.keys)) / len(known.keys)
        score = (len(have) + near / 2) / len(wanted), share
        if score > (0, 1) and (best is None or score > best[0]):
            best = score, known
    if best is None:
        return None
    return best[1], tuple(key for key in best[1].keys if key not in obj)


def _first_step(path: str) -> str:
    """Return the first key of a path."""
    return re.split(r"\[\]|\{\}|\.", path, maxsplit=1)[0]
