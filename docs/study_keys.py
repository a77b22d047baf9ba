"""The keys of a study, in tables made from the classes of settings that a study is checked by.

A key's meaning is the string below its field or the description of its type; the field has its type
and default, and the class of its settings its short form.
"""

from __future__ import annotations

import enum
import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from experiments.settings.keyed import Keyed, keyed_in
from experiments.study.config import Known, Study

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
        model: the class of settings of these; None if it takes none.
    """

    path: str
    takes: str
    default: str
    meaning: str
    inside: str = ""
    model: type[Keyed] | None = None


def keys_of(model: type[Keyed], beneath: str = "") -> Iterator[StudyKey]:
    """The keys of settings, in their order, and not those of the mappings in them.

    Args:
        model: the class of settings.
        beneath: what every path begins with, as "datasets[].".

    Raises:
        LookupError: if the class does not say what a key means.
    """
    meaning_of = meanings(model)
    for name, field in _fields(model):
        if not meaning_of[name]:
            raise LookupError(f"{model.__module__}.{model.__name__} does not say {name!r}")
        hint: Any = field.annotation
        if field.metadata:
            hint = Annotated[(hint, *field.metadata)]
        words, inner = type_words(hint), keyed_in(hint)
        if inner is not None and inner.text_key:
            words += f"; a text is short for `{{{inner.text_key}: text}}`"
        path = beneath + name
        yield StudyKey(
            path,
            words,
            _default(field),
            meaning_of[name],
            f"{path}{_entry(hint)}",
            inner,
        )


def tables(
    model: type[Keyed],
    shown_at: dict[type, str],
    *,
    beneath: str = "",
    more: tuple[StudyKey, ...] = (),
) -> str:
    """Markdown: a table of the keys of settings, and one for every mapping within them.

    Args:
        model: the class of settings.
        shown_at: classes that have a table, and where, which get no second one; those of `model`
            are added.
        beneath: what every path begins with.
        more: keys beside those of the class, which stand first.
    """
    keys = list(keys_of(model, beneath))
    inner = {key.model: key for key in keys if key.model is not None and key.model not in shown_at}
    rows = []
    for key in (*more, *keys):
        described = f", as {shown_at[key.model]}" if key.model in shown_at else ""
        rows.append(f"| `{key.path}` | {key.takes}{described} | {key.default} | {key.meaning} |")
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


def meanings(model: type[Keyed]) -> dict[str, str]:
    """Meanings of the keys of settings; empty where the class says none."""
    meaning_of = {}
    for name, field in model.model_fields.items():
        words = " ".join((field.description or "").split()).removesuffix(".")
        # A term such as K of F1@K keeps its capital.
        as_word = words.startswith("A ") or words[1:2].islower()
        meaning_of[name] = words[:1].lower() + words[1:] if as_word else words
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
    if keyed_in(kind) is not None:
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


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    empty = value is None or (not value and isinstance(value, str | tuple | Mapping))
    return "none" if empty else f"`{_written(value)}`"


def _written(value: Any) -> str:
    """A value as YAML in one line, without what is a default in it."""
    if isinstance(value, Keyed):
        given = {
            name: getattr(value, name)
            for name, field in type(value).model_fields.items()
            if getattr(value, name) not in (field.default, {})
        }
        return _written(given[value.text_key] if list(given) == [value.text_key] else given)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_written(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_written, value)) + "]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value) or "''"


def _fields(model: type[Keyed]) -> list[tuple[str, FieldInfo]]:
    """The fields of settings by name, those of the class before those of what it extends."""
    declared = inspect.get_annotations(model)
    return sorted(model.model_fields.items(), key=lambda field: field[0] not in declared)


def _summary(model: type[Keyed]) -> str:
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
    inner = [argument for argument in arguments if keyed_in(argument) is not None]
    return _entry(inner[0]) if inner else ""


def _bare(hint: Any) -> Any:
    return hint.__origin__ if hasattr(hint, "__metadata__") else hint


def _metadata(hint: Any) -> tuple[Any, ...]:
    """Annotations of a type, with the limits of pydantic's `Field`."""
    notes: list[Any] = []
    for note in getattr(hint, "__metadata__", ()):
        notes += note.metadata if isinstance(note, FieldInfo) else [note]
    return tuple(notes)
