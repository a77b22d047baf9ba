"""Settings that are keys of a YAML file, and their short form."""

from __future__ import annotations

import typing
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, Union

from pydantic import ValidationInfo, model_validator

from experiments.settings import Settings, choices_of, meanings_of

WRITTEN_OUT = "written out"
"""Context of a validation whose data have every default written out, so that no key was given."""


class Keyed(Settings):
    """Settings that are keys of a YAML file, in which null means an absent key."""

    text_key: ClassVar[str] = ""
    """Key whose value may be written in place of the mapping: exact means {backend: exact}. It is
    the only required key, unless a class names another.

    A file has no other short form. Without it, each entry of a list of datasets, backends or
    relation models, whose other keys have defaults, would be a mapping with one key.
    """

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        # The JSON Schema of a study and its documentation say what keys mean.
        for name, meaning in meanings_of(cls).items():
            cls.model_fields[name].description = meaning or None
        if "text_key" not in vars(cls):
            required = {n: f.annotation for n, f in cls.model_fields.items() if f.is_required()}
            texts = [name for name, kind in required.items() if kind is str or choices_of(kind)]
            cls.text_key = texts[0] if len(required) == len(texts) == 1 else ""

    @model_validator(mode="after")
    def _forget_defaults(self, info: ValidationInfo) -> Self:
        if (info.context or {}).get(WRITTEN_OUT):
            self.model_fields_set.clear()
        return self

    def given(self, *names: str) -> list[str]:
        """Keys that are present among some keys, in order, with any value but null."""
        return [
            name
            for name in names
            if name in self.model_fields_set and getattr(self, name) is not None
        ]


def in_full(value: Any, kind: Any) -> Any:
    """Expand texts in plain data to the settings that they abbreviate.

    Args:
        value: the data; parts that do not fit their type stay unchanged.
        kind: type of the data: a class of settings, or a type that contains one.
    """
    if isinstance(kind, type) and issubclass(kind, Keyed):
        if isinstance(value, str) and kind.text_key:
            return {kind.text_key: value}
        if not isinstance(value, dict):
            return value
        kinds = {name: field.annotation for name, field in kind.model_fields.items()}
        return {key: in_full(each, kinds.get(key)) for key, each in value.items()}
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and isinstance(value, list):
        return [in_full(each, inner[0]) for each in value]
    if origin is Annotated:
        return in_full(value, inner[0])
    if origin in (Union, UnionType):
        for alternative in inner:
            value = in_full(value, alternative)
    return value


def keyed_in(kind: Any) -> type[Keyed] | None:
    """The class of settings in a type, its entries or its alternatives; None without one.

    Args:
        kind: the type.
    """
    if isinstance(kind, type) and issubclass(kind, Keyed):
        return kind
    if typing.get_origin(kind) is Literal:
        return None
    return next(filter(None, map(keyed_in, typing.get_args(kind))), None)
