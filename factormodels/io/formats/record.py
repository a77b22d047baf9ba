"""Base class of declared records, and the conversion of JSON values to records.

A record declares the keys that a reader uses, with their types. `record_of` validates a value and
reports the first error with its path, as in `$.decisions[0][0].is_supported`, where `$` is the
record. Keys that a record does not declare are ignored.

The validation uses pydantic, which the settings of commands need anyway. msgspec, which reports
paths in the same way, would be a further dependency; only this module would change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from factormodels.decoded_values import as_text, shown
from factormodels.errors import InputError
from factormodels.io.not_used import Tree
from factormodels.io.source.places import location
from factormodels.io.tables.records import Source

T = TypeVar("T")


class ToolRecord(BaseModel):
    """A JSON object with declared keys, whose values have exactly the declared types."""

    # Schemas are built on demand, for the formats that a file has.
    model_config = ConfigDict(
        strict=True, frozen=True, extra="ignore", defer_build=True, protected_namespaces=()
    )

    def has(self, name: str) -> bool:
        """Return whether the object has the key of an attribute, even if null."""
        return name in self.model_fields_set

    def first_of(self, names: Sequence[str]) -> tuple[str, Any]:
        """Return the first of some attributes whose key is present, and its value.

        Owners spell a key in several ways. If none is present, return the first attribute and None.
        """
        name = next(filter(self.has, names), names[0])
        return name, getattr(self, name)

    def first_text(self, names: Sequence[str], top: str) -> str:
        """Return the text of the first of some attributes; empty if it is null.

        Raises:
            InputError: if it is not text; `top` is the place of the record.
        """
        name, value = self.first_of(names)
        return "" if value is None else as_text(value, f"{top}.{name}")


AnyRecord = TypeVar("AnyRecord", bound=ToolRecord)

EMPTY_IS_NONE = BeforeValidator(lambda value: value or None)
"""Type of an object or None; an empty text, as in a blank cell, means None too."""


def named(key: str, default: Any = ...) -> Any:
    """Declare an attribute whose key is not a valid Python name.

    Args:
        key: the key in the JSON object.
        default: the value if the key is absent; without a default, the key is required.
    """
    return Field(default, alias=key)


def root_path(source: Source, line: int | None = None) -> str:
    """Return the place of a record for errors, before the path: `data.jsonl, line 2: $`."""
    return f"{location(source, line)}: $"


def record_of(
    kind: type[AnyRecord], value: object, source: Source, line: int | None = None
) -> AnyRecord:
    """Return a JSON value as a record.

    Raises:
        InputError: if a key is missing or has a value of another type.
    """
    where = location(source, line)
    if not isinstance(value, dict):
        raise InputError(f"{where}: {shown(value)} is not a JSON object; give an object there")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    raise InputError(_sentence(first["type"], first["loc"], first["input"], where))


_WANTED = {
    "bool_type": "is neither true nor false; give one of them",
    "dict_type": "is not a JSON object; give an object there",
    "list_type": "is not a list; give a list there",
    "model_type": "is not a JSON object; give an object there",
    "string_type": "is not text; put text there",
}
"""Descriptions of errors by pydantic's type of error."""


def _sentence(kind: str, steps: Sequence[str | int], value: object, where: str) -> str:
    if kind == "missing":
        inside = f"{path_of(steps[:-1])}: " if len(steps) > 1 else ""
        return f"{where}: {inside}the key {steps[-1]!r} is missing; add it"
    return f"{where}: {path_of(steps)}: {shown(value)} {_WANTED[kind]}"


def stated_of(
    record: ToolRecord, names: Sequence[str], source: Source, line: int | None = None
) -> tuple[str, Any]:
    """Return the first of some attributes whose key is present in a record, and its value.

    Raises:
        InputError: if it has none of these keys.
    """
    name, value = record.first_of(names)
    if not record.has(name):
        raise InputError(f"{location(source, line)}: the key {name!r} is missing; add it")
    return name, value


def path_of(steps: Sequence[str | int]) -> str:
    """Return the path of a place in a record: `$.claims[0].text`."""
    parts = [
        f"[{step}]"
        if isinstance(step, int)
        else f".{step}"
        if step.replace("-", "_").isidentifier()
        else f"[{shown(step)}]"
        for step in steps
    ]
    return "$" + "".join(parts)


def placed(entries: Iterable[T], where: str) -> Iterator[tuple[T, str]]:
    """Yield the entries of a list, each with its place: `$.claims[0]`."""
    for number, entry in enumerate(entries):
        yield entry, f"{where}[{number}]"


def filled(text: str, where: str) -> str:
    """Return a text after checking that it is not blank.

    Raises:
        InputError: if it is blank; `where` names the place.
    """
    if not text.strip():
        raise InputError(f"{where} is empty; give its text or drop the record")
    return text


def stated_id(value: object, where: str) -> str:
    """Return the id stated in a record; empty if there is none.

    Raises:
        InputError: if it is neither text nor a whole number.
    """
    if value is None or value == "":
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{where}: {shown(value)} is not a name; give text")
    return str(value).strip()


@cache
def declared_keys(kind: type[ToolRecord]) -> Tree:
    """Return the keys that a record declares, each with those of the records below it."""
    return {
        field.alias or name: _keys_below(field.annotation)
        for name, field in kind.model_fields.items()
    }


def _keys_below(annotation: Any) -> Tree:
    """Return the keys of the records within a type; none if it allows any value."""
    if isinstance(annotation, type) and issubclass(annotation, ToolRecord):
        return declared_keys(annotation)
    inner = [_keys_below(part) for part in get_args(annotation)]
    below = {key: tree for keys in inner for key, tree in keys.items()}
    # Keys of an object without declared keys are names.
    return {"*": below} if below and getattr(annotation, "__origin__", None) is dict else below
