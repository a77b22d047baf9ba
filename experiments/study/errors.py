"""Errors of a study as sentences with the path, the value and the fix."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from experiments.settings.keyed import Keyed, keyed_in
from experiments.settings.mends import value_words
from factormodels.errors import nearest

Step = int | str
"""Step of a path: a key, or the index of an entry."""

_UNKNOWN_KEY = "extra_forbidden"
"""Type of pydantic's error for an unknown key."""


class StudyError(ValueError):
    """Error of a study before its file or override is known.

    Attributes:
        steps: the path; empty for the whole study.
        sentence: sentence with the path, the value and the fix.
    """

    def __init__(self, steps: tuple[Step, ...], sentence: str) -> None:
        super().__init__(sentence)
        self.steps = steps
        self.sentence = sentence


def study_error(
    raw: Any,
    errors: Sequence[Any],
    model: type[Keyed],
    beneath: tuple[Step, ...] = (),
) -> StudyError:
    """Word the first of pydantic's errors.

    Args:
        raw: the written data.
        errors: the errors.
        model: the class of settings that `raw` must match.
        beneath: the path of `raw` in its file.
    """
    # An unknown key explains a missing key better than vice versa.
    error = min(errors, key=lambda e: e["type"] != _UNKNOWN_KEY)
    steps, value, holder = _locate(raw, error["loc"], model)
    steps = (*beneath, *steps)
    return StudyError(steps, _sentence(error, _place(steps), value, holder))


def _sentence(error: Any, location: str, value: Any, holder: type[Keyed]) -> str:
    """Sentence in the user's terms for one of pydantic's errors."""
    match error["type"]:
        case kind if kind == _UNKNOWN_KEY:
            key = str(error["loc"][-1])
            return f"{location or key}: there is no such key; {_key_hint(key, holder)}"
        case "missing":
            return f"the key {location!r} is missing; give it"
        case "value_error":
            reason = str(error["ctx"]["error"])
            return f"{location}: {_shown(value)}: {reason}" if location else reason
        case "model_type" | "dict_type":
            if value is None:
                return (
                    f"{location}: there is no value; give a mapping, {{}} for the defaults, or "
                    "leave the key out"
                )
            wanted = _keys(holder, error["loc"])
            return f"{location}: {_shown(value)} is not a mapping; write keys and values{wanted}"
        case "tuple_type" if value is not None:
            return f"{location}: {_shown(value)} does not fit: give a list, {json.dumps([value])}"
    return f"{location}: {value_words(value, error, _shown(value))}"


def _key_hint(key: str, holder: type[Keyed]) -> str:
    """Hint on the nearest key for an unknown key."""
    # Imported here, so that checking a backend's settings does not load the configuration of
    # studies.
    from experiments.study.config import BackendChoice, Study

    keys = [*holder.model_fields, *(["base"] if holder is Study else [])]
    if near := nearest(key, keys):
        return f"did you mean {near!r}?"
    elsewhere = "; settings of the algorithm go under settings" if holder is BackendChoice else ""
    return f"use one of {', '.join(keys)}{elsewhere}"


def _keys(holder: type[Keyed], location: Sequence[Any]) -> str:
    """The keys of the expected mapping, as the end of a sentence."""
    # Indices of entries and branches of unions have no keys.
    names = [step for step in location if isinstance(step, str)]
    kinds = [kind for name in names if (kind := _type_of(holder, name)) is not None]
    # The holder of a list entry is the class that it should match.
    wanted = keyed_in(kinds[-1]) if kinds else holder
    return "" if wanted is None else f", of {', '.join(wanted.model_fields)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _place(steps: Sequence[Step]) -> str:
    location = ""
    for step in steps:
        if isinstance(step, int):
            location += f"[{step}]"
        else:
            location += f".{step}" if location else step
    return location


def _locate(
    raw: Any, loc: Sequence[Any], root: type[Keyed]
) -> tuple[tuple[Step, ...], Any, type[Keyed]]:
    """The path of an error, the value there, and the model that contains it.

    Pydantic adds branches of unions to its paths, so follow the written data and the types of the
    settings in parallel.
    """
    steps: list[Step] = []
    value = raw
    model = root
    kind: Any = root
    for position, step in enumerate(loc):
        if isinstance(step, int) and isinstance(value, list) and step < len(value):
            steps.append(step)
            value = value[step]
        elif isinstance(step, str) and isinstance(value, dict) and step in value:
            steps.append(step)
            value = value[step]
            kind = _type_of(model, step) or kind
        elif position == len(loc) - 1 and isinstance(value, dict) and isinstance(step, str):
            steps.append(step)  # A missing key.
            break
        else:
            break  # The rest names a branch of a union, which is not part of the user's path.
        # The last step is the key itself; its model is the one before.
        if position < len(loc) - 1:
            model = keyed_in(kind) or model
    return tuple(steps), value, model


def _type_of(model: type[Keyed], name: str) -> Any:
    field = model.model_fields.get(name)
    return None if field is None else field.annotation
