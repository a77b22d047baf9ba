"""Errors of a study, in one sentence with the place, the value and the fix."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from experiments.settings.mends import value_words
from factormodels.errors import nearest

Step = int | str
"""Step of a place: a key, or the number of an entry."""


_UNKNOWN_KEY = ("unexpected_keyword_argument", "extra_forbidden")
"""Types of pydantic's errors of a key that a dataclass or settings do not have."""


class StudyError(ValueError):
    """Error of a study before its file or override is known.

    Attributes:
        steps: the place; empty where it is the study as a whole.
        sentence: the place, the value and the fix, in words.
    """

    def __init__(self, steps: tuple[Step, ...], sentence: str) -> None:
        super().__init__(sentence)
        self.steps = steps
        self.sentence = sentence


def study_error(
    raw: Any,
    errors: Sequence[Any],
    model: type,
    beneath: tuple[Step, ...] = (),
) -> StudyError:
    """The first of pydantic's errors, in words.

    Args:
        raw: what was written, with its shorthands.
        errors: the errors.
        model: the model that `raw` was to be.
        beneath: the place of `raw` in its file.
    """
    # An unknown key explains a missing one better than the other way round.
    error = min(errors, key=lambda e: e["type"] not in _UNKNOWN_KEY)
    steps, value, holder = _locate(raw, error["loc"], model)
    steps = (*beneath, *steps)
    return StudyError(steps, _sentence(error, _place(steps), value, holder))


def _sentence(error: Any, location: str, value: Any, holder: type) -> str:
    """Sentence in the user's terms for one of pydantic's errors."""
    match error["type"]:
        case kind if kind in _UNKNOWN_KEY:
            key = str(error["loc"][-1])
            return f"{location or key}: there is no such key; {_key_hint(key, holder)}"
        case "missing":
            return f"the key {location!r} is missing; give it"
        case "value_error":
            reason = str(error["ctx"]["error"])
            return f"{location}: {_shown(value)}: {reason}" if location else reason
        case "dataclass_type" | "dataclass_exact_type" | "model_type" | "dict_type":
            if value is None:
                return (
                    f"{location}: there is no value; give a mapping, {{}} for the defaults, or "
                    "leave the key out"
                )
            wanted = _keys(holder, error["loc"])
            return f"{location}: {_shown(value)} is not a mapping; write keys and values{wanted}"
    return f"{location}: {value_words(value, error, _shown(value))}"


def _key_hint(key: str, holder: type) -> str:
    """Hint on the key that an unknown key may have meant."""
    # Here, so that settings of a backend are checked without loading the configuration of studies.
    from experiments.study.config import BackendChoice, Study

    keys = [*_names(holder), *(["base"] if holder is Study else [])]
    if near := nearest(key, keys):
        return f"did you mean {near!r}?"
    elsewhere = "; settings of the algorithm go under settings" if holder is BackendChoice else ""
    return f"use one of {', '.join(keys)}{elsewhere}"


def _keys(holder: type, location: Sequence[Any]) -> str:
    """The keys of the mapping that was wanted, as the end of a sentence."""
    # Numbers of entries and branches of unions have no keys.
    names = [step for step in location if isinstance(step, str)]
    kinds = [kind for name in names if (kind := _type_of(holder, name)) is not None]
    wanted = _model_in(kinds[-1]) if kinds else None
    return "" if wanted is None else f", of {', '.join(_names(wanted))}"


def _names(model: type) -> list[str]:
    return list(fields_of(model))


def fields_of(model: type) -> Mapping[str, FieldInfo]:
    """The keys of a dataclass or of settings that pydantic checks; of anything else none."""
    fields: Mapping[str, FieldInfo] = getattr(model, "__pydantic_fields__", {})
    return fields


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


def _locate(raw: Any, loc: Sequence[Any], root: type) -> tuple[tuple[Step, ...], Any, type]:
    """The place of an error, the value there, and the model that holds it.

    Pydantic saw lists where the user wrote a single entry, and adds the branch of a union to its
    places: what is followed is what was written, beside the types of the models.
    """
    steps: list[Step] = []
    value = raw
    model: type = root
    kind: Any = root
    for position, step in enumerate(loc):
        if isinstance(step, int) and isinstance(value, list) and step < len(value):
            steps.append(step)
            value = value[step]
        elif isinstance(step, int):
            pass  # A single entry was written without the brackets of its list.
        elif isinstance(step, str) and isinstance(value, dict) and step in value:
            steps.append(step)
            value = value[step]
            kind = _type_of(model, step) or kind
        elif position == len(loc) - 1 and isinstance(value, dict) and isinstance(step, str):
            steps.append(step)  # A key that is missing.
            break
        else:
            break  # The rest names a branch of a union, which is no place of the user's.
        # The last step is the key itself; the model that holds it is the one before.
        if position < len(loc) - 1:
            model = _model_in(kind) or model
    return tuple(steps), value, model


def _type_of(model: type, name: str) -> Any:
    field = fields_of(model).get(name)
    return None if field is None else field.annotation


def _model_in(kind: Any) -> type | None:
    """The model that a type is, or has among its entries or alternatives."""
    if isinstance(kind, type) and (fields_of(kind) or issubclass(kind, BaseModel)):
        return kind
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is not None:
        # Annotated, tuples, optional types: whatever wraps it, the first model inside.
        for argument in typing.get_args(kind):
            model = _model_in(argument)
            if model is not None:
                return model
    return None
