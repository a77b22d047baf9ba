"""What is wrong with a study, in one sentence that names the place, the value and the mend."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.study.config import Study
from experiments.study.config_parts import BackendChoice
from experiments.study.misfit import misfit
from factormodels.errors import nearest

Step = int | str
"""One step of a place: a key, or the number of an entry."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a study.

    Attributes:
        steps: the place; empty where it is the study as a whole.
        sentence: the place, the value and the mend, in words.
    """

    steps: tuple[Step, ...]
    sentence: str


def first_fault(
    raw: Any, errors: Sequence[Any], root: type = Study, beneath: tuple[Step, ...] = ()
) -> Fault:
    """Return the first fault of a study, or of a part of one.

    Args:
        raw: the study as plain data, with its shorthands.
        errors: the errors of the validation library.
        root: the dataclass that `raw` was to be.
        beneath: the place of `raw` in its file.
    """
    # An unknown key explains a missing one better than the other way round.
    error = min(errors, key=lambda e: e["type"] != "unexpected_keyword_argument")
    steps, value, cls = _locate(raw, error["loc"], root)
    steps = (*beneath, *steps)
    return Fault(steps, _sentence(error, _place(steps), value, cls))


def _sentence(error: Any, place: str, value: Any, cls: type) -> str:
    match error["type"]:
        case "unexpected_keyword_argument":
            key = str(error["loc"][-1])
            known = [field.name for field in dataclasses.fields(cls)]
            if cls is Study:
                known.append("base")
            near = nearest(key, known)
            hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(known)}"
            if cls is BackendChoice and not near:
                hint += "; settings of the algorithm go under settings"
            return f"{place or key}: there is no such key; {hint}"
        case "missing":
            return f"the key {place!r} is missing; give it"
        case "value_error":
            reason = str(error["ctx"]["error"])
            return f"{place}: {_shown(value)}: {reason}" if place else reason
        case "dataclass_type" | "dataclass_exact_type":
            if value is None:
                return (
                    f"{place}: there is no value; give a mapping, {{}} for the defaults, or leave "
                    "the key out"
                )
            keys = _keys(cls, error["loc"])
            return f"{place}: {_shown(value)} is no mapping; write keys and values{keys}"
    return f"{place}: {misfit(value, error, _shown(value))}"


def _keys(cls: type, location: Sequence[Any]) -> str:
    """Return the keys of the mapping that was wanted, as the end of a sentence."""
    names = [step for step in location if isinstance(step, str)]
    hints = [hint for hint in (_field_type(cls, name) for name in names) if hint is not None]
    wanted = _dataclass_in(hints[-1]) if hints else None
    if wanted is None:
        return ""
    return f", of {', '.join(field.name for field in dataclasses.fields(wanted))}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _place(steps: Sequence[Step]) -> str:
    place = ""
    for step in steps:
        if isinstance(step, int):
            place += f"[{step}]"
        else:
            place += f".{step}" if place else step
    return place


def _locate(raw: Any, loc: Sequence[Any], root: type) -> tuple[tuple[Step, ...], Any, type]:
    """Return the place of an error, the value there, and the dataclass that holds it."""
    steps: list[Step] = []
    value = raw
    cls: type = root
    hint: Any = root
    for position, step in enumerate(loc):
        if isinstance(step, int) and isinstance(value, list) and step < len(value):
            steps.append(step)
            value = value[step]
        elif isinstance(step, int):
            pass  # A single entry was written without the brackets of its list.
        elif isinstance(step, str) and isinstance(value, dict) and step in value:
            steps.append(step)
            value = value[step]
            hint = _field_type(cls, step) or hint
        elif position == len(loc) - 1 and isinstance(value, dict) and isinstance(step, str):
            steps.append(step)
            break
        else:
            break  # The rest names a branch of a union, which is no place of the user's.
        if position < len(loc) - 1:
            cls = _dataclass_in(hint) or cls
    return tuple(steps), value, cls


def _field_type(cls: type, name: str) -> Any:
    return typing.get_type_hints(cls, include_extras=False).get(name)


def _dataclass_in(hint: Any) -> type | None:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is not None:
        for argument in typing.get_args(hint):
            found = _dataclass_in(argument)
            if found is not None:
                return found
    return None
