"""The keys of a study, in tables made from the models that a study is checked by.

A key's meaning is what its model says of it under "Attributes", or settings below the field; its
type, default and short forms are those of the model's field.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from experiments.study.config import Known, Short, Study
from experiments.study.errors import fields_of

LONGEST = 8
"""Names that a cell of a table lists; of more it says what they are of."""


class StudyKey(NamedTuple):
    """Key of a study.

    Attributes:
        path: its place, as errors write it, with [] for an entry of a list and * for any name.
        takes: its type, in words.
        default: what it is if it is left out; "required" if it cannot be.
        meaning: what it means.
        inside: the place of the mappings that it takes.
        model: the model of these; None if it takes none.
    """

    path: str
    takes: str
    default: str
    meaning: str
    inside: str = ""
    model: type | None = None


def keys_of(model: type, beneath: str = "") -> Iterator[StudyKey]:
    """The keys of a model, in its order, and not those of the mappings in them.

    Args:
        model: a dataclass, or settings.
        beneath: what every path begins with, as "datasets[].".

    Raises:
        LookupError: if the model does not say what a key means.
    """
    meaning_of = meanings(model)
    for name, field in _fields(model):
        if name not in meaning_of:
            raise LookupError(f"{model.__module__}.{model.__name__} does not say {name!r}")
        hint: Any = field.annotation
        if field.metadata:
            hint = Annotated[(hint, *field.metadata)]
        short = next((note for note in _metadata(hint) if isinstance(note, Short)), Short())
        words = type_words(hint)
        if short.lone is not None:
            words += ", or one alone"
        if short.text is not None:
            words += f"; a text is short for `{{{short.text}: text}}`"
        path = beneath + name
        yield StudyKey(
            path,
            words,
            _default(field, short),
            meaning_of[name],
            f"{path}{_entry(hint)}",
            _model_in(hint),
        )


def tables(
    model: type, shown_at: dict[type, str], *, beneath: str = "", more: tuple[StudyKey, ...] = ()
) -> str:
    """Markdown: a table of the keys of a model, and one for every mapping within it.

    Args:
        model: a dataclass, or settings.
        shown_at: models that have a table, and where, which get no second one; those of `model` are
            added.
        beneath: what every path begins with.
        more: keys beside those of the model, which stand first.
    """
    keys = list(keys_of(model, beneath))
    inner = {key.model: key for key in keys if key.model is not None and key.model not in shown_at}
    rows = []
    for key in (*more, *keys):
        as_told = f", as {shown_at[key.model]}" if key.model in shown_at else ""
        rows.append(f"| `{key.path}` | {key.takes}{as_told} | {key.default} | {key.meaning} |")
    parts = ["\n".join(["| key | type | default | meaning |", "|" + " --- |" * 4, *rows]) + "\n"]
    shown_at.update({kind: f"`{key.inside}`" for kind, key in inner.items()})
    for kind, key in inner.items():
        parts.append(f"`{key.inside}`: {_summary(kind)}\n")
        parts.append(tables(kind, shown_at, beneath=f"{key.inside}."))
    return "\n".join(parts)


def study_keys() -> str:
    """Markdown: the keys of a study of posteriors."""
    base = StudyKey(
        "base",
        "text",
        "none",
        "an embedded study, or a file: this one is laid over it, mappings key by key, lists whole",
    )
    return tables(Study, {}, more=(base,))


def network_keys() -> str:
    """Markdown: the keys of a study of networks."""
    from experiments.networks.config import NetworkStudy

    shown_at: dict[type, str] = {}
    tables(Study, shown_at)
    return tables(NetworkStudy, shown_at)


def analysis_keys() -> str:
    """Markdown: the keys of a study that asks for an analysis, and the settings of each."""
    from experiments.analyses.registry import analysis, names
    from experiments.analyses.study import AnalysisStudy

    shown_at: dict[type, str] = {}
    tables(Study, shown_at)
    parts = [tables(AnalysisStudy, shown_at)]
    for name in names():
        definition = analysis(name)
        before = set(shown_at)
        table = tables(definition.settings, shown_at, beneath="settings.")
        for model in set(shown_at) - before:
            shown_at[model] += f" of {name}"
        parts.append(f"## {name}\n\n{definition.summary}\n\n{table}")
    return "\n".join(parts)


def meanings(model: type) -> dict[str, str]:
    """Meanings of the keys of a model and of the models that it extends."""
    meaning_of = {
        name: f"{words[0].lower() if words[1:2].islower() else words[0]}{words[1:]}"
        for name, field in fields_of(model).items()
        if (words := " ".join((field.description or "").split()).removesuffix("."))
    }
    for base in reversed(model.__mro__):
        text = inspect.cleandoc(vars(base).get("__doc__") or "")
        _, _, section = text.partition("\nAttributes:\n")
        for name, words in re.findall(r"^    (\w+): ((?:.+\n?)(?:^ {5,}.+\n?)*)", section, re.M):
            meaning_of[name] = " ".join(words.split()).removesuffix(".")
    return meaning_of


def type_words(hint: Any) -> str:
    """A type in words."""
    kind, metadata = _bare(hint), _metadata(hint)
    known = next((note for note in metadata if isinstance(note, Known)), None)
    if known is not None:
        names = list(known.names())
        return _listed(names) if len(names) <= LONGEST else f"name of {_article(known.what)}"
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return _listed(arguments)
    if origin in (typing.Union, types.UnionType):
        alternatives = [
            type_words(argument) for argument in arguments if argument is not types.NoneType
        ]
        return " or ".join(dict.fromkeys(alternatives))
    if origin is tuple:
        return f"list of {_plural(arguments[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        values = "" if arguments[1] is Any else f" of names to {_plural(arguments[1])}"
        return f"mapping{values}"
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _listed([member.value for member in kind])
    if _is_model(kind):
        return "mapping"
    if kind in (int, float):
        return ("whole number" if kind is int else "number") + _limits(metadata)
    return {str: "text", Path: "text", bool: "true or false"}.get(kind, "value")


def _plural(hint: Any) -> str:
    words = type_words(hint)
    null = " or null" if types.NoneType in typing.get_args(_bare(hint)) else ""
    if named := re.fullmatch(r"name of an? (.+)", words):
        return f"names of {named[1]}s"
    for noun in ("mapping", "text", "whole number", "number", "list", "value"):
        if words.startswith(noun):
            return f"{noun}s{words.removeprefix(noun)}{null}"
    return words + null


def _limits(metadata: tuple[Any, ...]) -> str:
    least = next((bound.ge for bound in metadata if isinstance(bound, Ge)), None)
    most = next((bound.le for bound in metadata if isinstance(bound, Le)), None)
    above = next((bound.gt for bound in metadata if isinstance(bound, Gt)), None)
    below = next((bound.lt for bound in metadata if isinstance(bound, Lt)), None)
    words = {
        "from {} to {}": (least, most),
        "between {} and {}": (above, below),
        "of at least {}": (least,),
        "above {}": (above,),
    }
    for text, bounds in words.items():
        if None not in bounds:
            return f" {text.format(*bounds)}"
    return ""


def _listed(names: Any) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _default(field: FieldInfo, short: Short) -> str:
    if field.is_required():
        return "required"
    return _value(field.get_default(call_default_factory=True, validated_data={}), short)


def _value(value: Any, short: Short) -> str:
    empty = value is None or (not value and isinstance(value, str | tuple | Mapping))
    return "none" if empty else f"`{_written(value, short)}`"


def _written(value: Any, short: Short | None = None) -> str:
    """A value as YAML in one line, without what is a default in it."""
    if _is_model(type(value)):
        given = {
            name: getattr(value, name)
            for name, field in fields_of(type(value)).items()
            if getattr(value, name) not in (field.default, {})
        }
        if short is not None and short.text is not None and list(given) == [short.text]:
            return _written(given[short.text])
        return _written(given)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_written(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_written(entry, short) for entry in value) + "]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value) or "''"


def _fields(model: type) -> list[tuple[str, FieldInfo]]:
    """The fields of a model by name, its own before those of what it extends."""
    declared = vars(model).get("__annotations__", {})
    return sorted(fields_of(model).items(), key=lambda field: field[0] not in declared)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and (
        dataclasses.is_dataclass(kind) or issubclass(kind, BaseModel)
    )


def _summary(model: type) -> str:
    text = inspect.cleandoc(model.__doc__ or "").partition("\n\n")[0]
    return " ".join(text.split())


def _entry(hint: Any) -> str:
    """Suffix of a key's path that leads to the mappings in its value."""
    kind = _bare(hint)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return f"[]{_entry(arguments[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f".*{_entry(arguments[1])}"
    inner = [argument for argument in arguments if _model_in(argument) is not None]
    return _entry(inner[0]) if inner else ""


def _model_in(hint: Any) -> type | None:
    kind = _bare(hint)
    if _is_model(kind):
        model: type = kind
        return model
    if typing.get_origin(kind) is typing.Literal:
        return None
    return next(
        (inner for argument in typing.get_args(kind) if (inner := _model_in(argument))), None
    )


def _bare(hint: Any) -> Any:
    return hint.__origin__ if hasattr(hint, "__metadata__") else hint


def _metadata(hint: Any) -> tuple[Any, ...]:
    """Annotations of a type, with the limits of pydantic's `Field`."""
    notes: list[Any] = []
    for note in getattr(hint, "__metadata__", ()):
        notes += note.metadata if isinstance(note, FieldInfo) else [note]
    return tuple(notes)
