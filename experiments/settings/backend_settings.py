"""Settings of backends, checked by name and type before anything runs."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, Self

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    model_validator,
)

from experiments.settings import Option, Settings
from experiments.settings.mends import value_words
from factormodels.errors import InputError, nearest
from inference import Backend, get_backend
from inference.registry import as_backend, backend_class


def _by_name(value: Any) -> Any:
    """Settings by name, also from texts such as "damping=0.5"."""
    if isinstance(value, str | list | tuple):
        return parse_settings([value] if isinstance(value, str) else value)
    return value


def _backend_name(backend: Any) -> str:
    return backend if isinstance(backend, str) else repr(backend)


class _NameWithSettings(str):
    """The name of a backend that was followed by settings.

    Attributes:
        typed: the typed settings by name: ``damping=0.5`` by damping.
    """

    __slots__ = ("typed",)

    typed: dict[str, str]

    def __new__(cls, name: str, texts: Iterable[str] = ()) -> Self:
        """Make a name that knows the texts of its settings."""
        made = super().__new__(cls, name)
        made.typed = {text.partition("=")[0].strip(): text for text in texts}
        return made


class AlgorithmSettings(Settings):
    """Inference.

    Options that choose a backend and its settings.
    """

    backend: Annotated[Any, Option("NAME", usual=True), PlainSerializer(_backend_name)] = "auto"
    """Inference algorithm (`factormodels list backends`). Its settings are options, such as
    --damping 0.5 after --backend lbp; --backend lbp --help shows them. They may also follow the
    name: --backend lbp,damping=0.5.
    """

    backend_settings: Annotated[
        dict[str, Any], Option(command_line=False), BeforeValidator(_by_name)
    ] = Field(default_factory=dict)
    """Settings of the backend by name."""

    @model_validator(mode="before")
    @classmethod
    def _behind_the_name(cls, values: Any) -> Any:
        """Read the words after the backend's name as its settings."""
        backend = values.get("backend")
        if not isinstance(backend, str) or "=" not in backend:
            return values
        name, *texts = re.split(r",(?=[^,=]+=)", backend)
        return {
            **values,
            "backend": _NameWithSettings(name, texts),
            "backend_settings": parse_settings(texts, values.get("backend_settings") or {}),
        }

    def _place(self, setting: str) -> str:
        """Name of a setting in errors: as it was typed, with or without the name of the backend."""
        behind = self.backend.typed if isinstance(self.backend, _NameWithSettings) else {}
        return (
            f"--backend {self.backend},{behind[setting]}" if setting in behind else _option(setting)
        )

    @property
    def algorithm(self) -> Backend:
        """The backend, which can be an object in Python.

        Raises:
            InputError: for an unknown backend or setting, or a value of the wrong type or range.
            MissingDependencyError: if a library that the backend needs is not installed.
        """
        if not isinstance(self.backend, str):
            return as_backend(self.backend)
        return build_backend(self.backend, self.backend_settings, self._place)


def parse_settings(
    assignments: Iterable[str], others: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Parse texts such as "damping=0.5" into settings, and add them to those already given.

    Raises:
        InputError: for a text without "=", a bad value, or a setting given twice.
    """
    from factormodels.io.yaml import parse_assignment

    settings = dict(others)
    for text in assignments:
        key, value = parse_assignment(text, "--backend")
        if key in settings:
            raise InputError(f"--{key.replace('_', '-')} is given 2 times; keep one")
        settings[key] = value
    return settings


def setting_names(name: str) -> tuple[str, ...]:
    """Names of the settings of a backend; empty for an unknown backend.

    Raises:
        MissingDependencyError: if a library that the backend needs is not installed.
    """
    with suppress(InputError):
        return tuple(setting_types(backend_class(name)))
    return ()


def core_backends() -> list[str]:
    """Names of backends without an extra library; the others' settings have the same names."""
    from inference.registry import entries

    return [name for name, entry in entries().items() if not entry.requires]


def backends_with(option: str) -> list[str]:
    """Names of backends without an extra library that have a setting, by its option."""
    setting = option.replace("-", "_")
    return [name for name in core_backends() if setting in setting_names(name)]


def _option(setting: str) -> str:
    return f"--{setting.replace('_', '-')}" if setting else "--backend"


def build_backend(
    name: str, settings: Mapping[str, Any], where: Callable[[str], str] = _option
) -> Backend:
    """Build the backend called `name`, and check its settings against their declared types.

    Args:
        name: name of a registered backend.
        settings: settings by name, of plain YAML or JSON data.
        where: function from the name of a setting to its place in errors, or from "" to the place
            of all settings; by default, the setting's option.

    Raises:
        InputError: for an unknown backend or setting, or a value of the wrong type or range.
        MissingDependencyError: if a library that the backend needs is not installed.
    """
    types = setting_types(backend_class(name))
    checked = {}
    for key, value in settings.items():
        if key not in types:
            raise InputError(f"{where(key)}: {_unknown(key, list(types), name)}")
        checked[key] = _checked(value, types[key], where(key))
    try:
        # The backend checks ranges, and what its settings say together.
        return get_backend(name, **checked)
    except InputError as error:
        # The setting whose range it is, if it is of one alone.
        named = next((key for key in checked if str(error).startswith(f"{key} of ")), "")
        location = where(named).rstrip(". ")
        raise InputError(f"{location}: {error}" if settings else str(error)) from None


def setting_types(backend: type[Backend]) -> dict[str, Any]:
    """The declared type of every setting of a backend class, in order."""
    hints = typing.get_type_hints(backend)
    return {field.name: hints[field.name] for field in dataclasses.fields(backend) if field.init}


def _unknown(key: str, known: list[str], backend: str) -> str:
    near = nearest(key, known)
    if near:
        hint = f"did you mean {near!r}?"
    else:
        hint = f"it has {', '.join(known)}" if known else "it has none"
    return f"the backend {backend!r} has no such setting; {hint}"


def _checked(value: Any, expected: Any, where: str) -> Any:
    """The value as its declared type, or an error in the user's terms."""
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticSchemaGenerationError

    try:
        adapter = TypeAdapter(expected)
    # A backend of a third party may have a type that pydantic does not know; its own check is left.
    except PydanticSchemaGenerationError:
        return value
    # Validated as JSON because strict Python mode refuses a text for an enumeration and a list
    # for a tuple, which is all that YAML can write.
    try:
        return adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        raise InputError(f"{where}: {value_words(value, error.errors()[0])}") from None


# --- Descriptions -------------------------------------------------------------------------------


class SettingDescription(NamedTuple):
    """A setting of a backend, as texts.

    Attributes:
        setting: its name in Python and in studies.
        option: its name on the command line.
        type: type of its values.
        default: its default, as YAML writes it; "required" if it has none.
        meaning: its description in the docstring of the backend.
    """

    setting: str
    option: str
    type: str
    default: str
    meaning: str


def settings_described(name: str) -> list[SettingDescription]:
    """Describe the settings of a backend, in order.

    Raises:
        InputError: for an unknown backend.
        MissingDependencyError: if a library that the backend needs is not installed.
    """
    backend = backend_class(name)
    kinds, meanings = setting_types(backend), _meanings(backend)
    return [
        SettingDescription(
            field.name,
            _option(field.name),
            _type_name(kinds[field.name]),
            _default(field),
            meanings.get(field.name, ""),
        )
        for field in dataclasses.fields(backend)
        if field.init
    ]


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return "required"
    # Spelled as in YAML and on the command line.
    return (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


def _type_name(hint: Any) -> str:
    name = hint.__name__ if isinstance(hint, type) else str(hint)
    if typing.get_origin(hint) is typing.Literal:
        return f"one of {', '.join(map(str, typing.get_args(hint)))}"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " | ".join(_member_name(member) for member in typing.get_args(hint))
    return name.replace("typing.", "")


def _member_name(hint: Any) -> str:
    """Name of a member of a union: a literal by its values."""
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(map(str, typing.get_args(hint)))
    return "null" if hint is type(None) else _type_name(hint)


def _meanings(backend: type[Backend]) -> dict[str, str]:
    """Description of each setting from the section Attributes of the class's docstring."""
    text = inspect.cleandoc(backend.__doc__ or "")
    _, begun, section = text.partition("Attributes:\n")
    meanings: dict[str, str] = {}
    keys: list[str] = []
    for line in section.splitlines() if begun else []:
        start = re.match(r"^    (\w+(?:, \w+)*): (.*)$", line)
        if start:
            keys = start[1].split(", ")
            meanings |= dict.fromkeys(keys, start[2])
        # The line goes on with the meaning of the setting, or settings, above.
        elif line.startswith("        "):
            for key in keys:
                meanings[key] += f" {line.strip()}"
        elif line.strip():
            break
    return meanings
