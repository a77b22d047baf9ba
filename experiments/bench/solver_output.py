"""What solvers write: results of the UAI competitions, and merlin's text and JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.io.files import read_text
from factormodels.io.networks.uai_results import SUM_TOLERANCE

_SECTIONS = ("PR", "MAR", "STATUS")


@dataclass(frozen=True)
class Output:
    """What a solver wrote.

    Attributes:
        marginals: one probability vector per variable, or None.
        log_z: natural logarithm of the partition function, or None.
    """

    marginals: tuple[NDArray[np.float64], ...] | None
    log_z: float | None


def read_outputs(files: Iterable[Path], printed: str) -> Output:
    """What the files that a solver wrote say, or what it printed if they say nothing.

    Three forms are read: a result file of the UAI competitions (the word PR and log10 Z; the word
    MAR and the marginals), merlin's text (the same sections in one file, with the natural
    logarithm and, in brackets, its exponential), and merlin's JSON.

    Raises:
        InputError: if neither marginals nor a partition function are found, a number is wrong, or
            the solver itself says that it failed.
    """
    marginals: tuple[NDArray[np.float64], ...] | None = None
    log_z: float | None = None
    texts = [(path.name, read_text(path)) for path in files]
    found = [_parse(source, text) for source, text in texts]
    # What is printed counts only if no file says anything: solvers print progress as well.
    if not any(found):
        found = [_parse("its printed output", printed)]
    for output in found:
        if output is not None:
            # The first file that has one decides.
            marginals = output.marginals if marginals is None else marginals
            log_z = output.log_z if log_z is None else log_z
    if marginals is None and log_z is None:
        names = ", ".join(name for name, _ in texts) or "no file"
        raise InputError(
            f"the solver wrote {names}, and neither a MAR nor a PR section is in it; "
            "check the command line"
        )
    return Output(marginals, log_z)


def _parse(source: str, text: str) -> Output | None:
    """What a text in one of the three forms says; None if it has no section."""
    if text.lstrip().startswith("{"):
        return _parse_json(source, text)
    words = text.split()
    starts = [at for at, word in enumerate(words) if word in _SECTIONS]
    # A section lasts until the next heading; a later one of the same name replaces the earlier.
    sections = {words[at]: words[at + 1 : end] for at, end in pairwise([*starts, len(words)])}
    if not {"PR", "MAR"} & sections.keys():
        return None
    status = " ".join(sections.get("STATUS", []))
    if status.startswith("false"):
        raise InputError(f"{source}: the solver says {status!r}")
    return Output(
        marginals=_marginals(source, sections["MAR"]) if "MAR" in sections else None,
        log_z=_partition(source, sections["PR"]) if "PR" in sections else None,
    )


def _partition(source: str, words: Sequence[str]) -> float | None:
    if not words:
        raise InputError(f"{source}: nothing follows PR, where log Z should be")
    # merlin gives the natural logarithm, with its exponential in brackets; in the oldest form the
    # number of samples of evidence, 1, comes first.
    if len(words) > 1 and words[1].startswith("("):
        return _number(source, words[0])
    at = 1 if len(words) == 2 and words[0] == "1" else 0
    return _number(source, words[at]) * math.log(10.0)


def _marginals(source: str, words: Sequence[str]) -> tuple[NDArray[np.float64], ...]:
    # As for PR: the oldest form has the number of samples first.
    for start in (0, 1):
        vectors = _vectors(source, words[start:])
        if vectors is not None:
            return vectors
    raise InputError(f"{source}: the numbers after MAR are too few or too many for its variables")


def _vectors(source: str, words: Sequence[str]) -> tuple[NDArray[np.float64], ...] | None:
    """The vectors, or None where the counts do not fit the number of words."""
    if not words or not words[0].isdigit():
        return None
    at, parts = 1, []
    for _ in range(int(words[0])):
        if at >= len(words) or not words[at].isdigit():
            return None
        stop = at + 1 + int(words[at])
        parts.append(words[at + 1 : stop])
        at = stop
    # Words are left over, so the first number was not that of the variables.
    if at != len(words):
        return None
    return tuple(_vector(source, variable, part) for variable, part in enumerate(parts))


def _parse_json(source: str, text: str) -> Output:
    """What merlin's JSON says."""
    # merlin writes numbers that are not finite as C++ prints them.
    mended = re.sub(r"(?<=[:,\[\s])-?(?:nan|inf)\b", "null", text)
    try:
        document = json.loads(mended)
    except ValueError as error:
        raise InputError(f"{source}: it is not JSON ({error})") from None
    if str(document.get("status", "true")) == "false":
        raise InputError(f"{source}: the solver says {document.get('message', 'false')!r}")
    value, entries = document.get("value"), document.get("marginals")
    vectors = None
    if entries is not None:
        if not entries:
            raise InputError(f"{source}: its list of marginals is empty")
        vectors = _json_vectors(source, entries)
    return Output(vectors, None if value is None else float(value))


def _json_vectors(source: str, entries: Sequence[Any]) -> tuple[NDArray[np.float64], ...]:
    by_variable = {}
    for entry in entries:
        try:
            by_variable[int(entry["variable"])] = entry["probabilities"]
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{source}: the marginal {entry!r} lacks its variable or probabilities"
            ) from None
    if sorted(by_variable) != list(range(len(by_variable))):
        raise InputError(f"{source}: its marginals skip a variable")
    return tuple(
        _vector(source, variable, by_variable[variable]) for variable in range(len(by_variable))
    )


def _vector(source: str, variable: int, words: Sequence[Any]) -> NDArray[np.float64]:
    values = np.array([_number(source, word) for word in words])
    # Not a number fails both comparisons.
    inside = ((values >= -SUM_TOLERANCE) & (values <= 1.0 + SUM_TOLERANCE)).all()
    if not (inside and abs(values.sum() - 1.0) <= SUM_TOLERANCE):
        raise InputError(
            f"{source}: the marginal of variable {variable}, {' '.join(map(str, words))}, is not a "
            "distribution"
        )
    return values


def _number(source: str, word: Any) -> float:
    try:
        return float(word)
    except (TypeError, ValueError):
        raise InputError(f"{source}: {word!r} is where a number should be") from None
