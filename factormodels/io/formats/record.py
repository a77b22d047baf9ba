"""The base of declared records, and the function that reads a JSON value as one.

A record states the keys that a reader takes, with their types. `record_of` compares a value with
it and names the first place that differs as `$.decisions[0][0].is_supported`: `$` is the record.
Keys that a record does not declare are ignored.

The library behind it is pydantic, which the settings of commands need already. msgspec, which
names places in the same way, would be a further dependency; only this module would change.
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
    """A JSON object with the keys that are declared: values have exactly their declared types."""

    # A schema is built for the formats that a file has, and not for all that could be.
    model_config = ConfigDict(
        strict=True, frozen=True, extra="ignore", defer_build=True, protected_namespaces=()
    )

    def has(self, name: str) -> bool:
        """Whether the object has the key of an attribute, null included."""
        return name in self.model_fields_set

    def first_of(self, names: Sequence[str]) -> tuple[str, Any]:
        """Return the first of some attributes whose key the object has, and its value.

        Owners spell a key in several ways. Without any it is the first, and None.
        """
        name = next(filter(self.has, names), names[0])
        return name, getattr(self, name)

    def first_text(self, names: Sequence[str], top: str) -> str:
        """Return the text of the first of some attributes; an empty one where it is null.

        Raises:
            InputError: if it is no text; `top` is the place of the record.
        """
        name, value = self.first_of(names)
        return "" if value is None else as_text(value, f"{top}.{name}")


AnyRecord = TypeVar("AnyRecord", bound=ToolRecord)

EMPTY_IS_NONE = BeforeValidator(lambda value: value or None)
"""Of an attribute that is an object or None: an empty text, as a blank cell has it, is None too."""


def named(key: str, default: Any = ...) -> Any:
    """Return the declaration of an attribute whose key is no name of Python.

    Args:
        key: the key in the JSON object.
        default: the value where the key is absent; it must be there if this is left out.
    """
    return Field(default, alias=key)


def root_path(source: Source, line: int | None = None) -> str:
    """Return how errors name a record, before the path of a key: `data.jsonl, line 2: $`."""
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
"""What is wrong with a value, by the type of the library's error."""


def _sentence(kind: str, steps: Sequence[str | int], value: object, where: str) -> str:
    if kind == "missing":
        inside = f"{path_of(steps[:-1])}: " if len(steps) > 1 else ""
        return f"{where}: {inside}the key {steps[-1]!r} is missing; add it"
    return f"{where}: {path_of(steps)}: {shown(value)} {_WANTED[kind]}"


def stated_of(
    record: ToolRecord, names: Sequence[str], source: Source, line: int | None = None
) -> tuple[str, Any]:
    """Return the first of some attributes whose key a record has, and its value.

    Raises:
        InputError: if it has none of them.
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
    """Return a text that must not be blank.

    Raises:
        InputError: if it is blank; `where` names the place.
    """
    if not text.strip():
        raise InputError(f"{where} is empty; give its text or drop the record")
    return text


def stated_id(value: object, where: str) -> str:
    """Return the id that a record gives itself; an empty text where it gives none.

    Raises:
        InputError: if it is neither text nor a whole number.
    """
    if value is None or value == "":
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{where}: {shown(value)} names nothing; give text")
    return str(value).strip()


@cache
def declared_keys(kind: type[ToolRecord]) -> Tree:
    """Return the keys that a record declares, each with those of the records below it."""
    return {
        field.alias or name: _keys_below(field.annotation)
        for name, field in kind.model_fields.items()
    }


def _keys_below(annotation: Any) -> Tree:
    """Return the keys of the records that a type is made of; none if it takes any value."""
    if isinstance(annotation, type) and issubclass(annotation, ToolRecord):
        return declared_keys(annotation)
    inner = [_keys_below(part) for part in get_args(annotation)]
    below = {key: tree for keys in inner for key, tree in keys.items()}
    # The keys of an object with any keys are names.
    return {"*": below} if below and getattr(annotation, "__origin__", None) is dict else below
