"""Prompts: versioned templates, and the one way to fill them in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from factormodels.errors import InputError
from factormodels.extraction.language_model import Message, PromptIdentity

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_KEYS = ("name", "version", "purpose", "fields", "system", "question", "examples")


@dataclass(frozen=True)
class Example:
    """A question that is answered before the real one is asked.

    Attributes:
        fields: texts by name of field.
        answer: the answer, word for word.
    """

    fields: Mapping[str, str]
    answer: str


@dataclass(frozen=True)
class PromptTemplate:
    """A template with its examples.

    Attributes:
        identity: name, version and digest.
        purpose: what it asks for, in one sentence.
        fields: names of the texts that it is filled with.
        system: the standing instruction.
        question: the question, with a placeholder {{field}} for each field.
        examples: questions with answers, asked before.
    """

    identity: PromptIdentity
    purpose: str
    fields: tuple[str, ...]
    system: str
    question: str
    examples: tuple[Example, ...] = ()

    def render(self, **fields: str) -> tuple[Message, ...]:
        """Conversation that asks the question about the given texts.

        A text is put where its placeholder stands and is not looked at again, so that it opens no
        other placeholder; the tags that fence a field are made harmless within a text.

        Raises:
            InputError: if a field is missing, unknown or no text.
        """
        messages = [Message("system", self.system)]
        for example in self.examples:
            messages.append(Message("user", self._filled(example.fields)))
            messages.append(Message("assistant", example.answer))
        messages.append(Message("user", self._filled(fields)))
        return tuple(messages)

    def _filled(self, fields: Mapping[str, str]) -> str:
        if set(fields) != set(self.fields):
            wrong = min(set(fields) ^ set(self.fields))
            what = "is missing" if wrong in self.fields else "is unknown"
            raise InputError(
                f"prompt {self.identity.name!r}: the field {wrong!r} {what}; give "
                f"{', '.join(self.fields)}"
            )
        for name, text in fields.items():
            if not isinstance(text, str):
                raise InputError(f"prompt {self.identity.name!r}: {name} is {text!r}; give a text")
        tags = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(map(re.escape, self.fields))})\b)", re.I)
        return _PLACEHOLDER.sub(
            lambda match: tags.sub("&lt;", fields[match.group(1)]), self.question
        )


@cache
def load_prompt(name: str) -> PromptTemplate:
    """Prompt of this package by its name.

    Raises:
        InputError: if there is none of this name.
    """
    source = resources.files(__package__).joinpath(f"{name}.yaml")
    if not re.fullmatch(r"\w+", name) or not source.is_file():
        raise InputError(f"there is no prompt {name!r}; use one of {', '.join(prompt_names())}")
    return parse_prompt(source.read_text(encoding="utf-8"), f"{name}.yaml")


def prompt_names() -> tuple[str, ...]:
    """Names of the prompts of this package."""
    files = resources.files(__package__).iterdir()
    return tuple(sorted(file.name[:-5] for file in files if file.name.endswith(".yaml")))


def parse_prompt(text: str, place: str) -> PromptTemplate:
    """Prompt that a YAML text describes.

    Args:
        text: name, version, purpose, fields, system, question and, if there are any, examples.
        place: where the text comes from, for errors.

    Raises:
        InputError: if the text is no such description, or placeholders and fields differ.
    """
    import yaml

    try:
        known: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{place}: this is no YAML: {' '.join(str(error).split())}") from None
    lacking = set(_KEYS[:-1]) - set(known) if isinstance(known, dict) else set(_KEYS)
    unknown = set(known) - set(_KEYS) if isinstance(known, dict) else set()
    if lacking or unknown:
        wrong = f"{min(lacking)!r} is missing" if lacking else f"{min(unknown)!r} is unknown"
        raise InputError(f"{place}: the key {wrong}; a prompt has {', '.join(_KEYS)}")
    fields = tuple(known["fields"])
    placed = set(_PLACEHOLDER.findall(known["question"]))
    if placed != set(fields):
        raise InputError(
            f"{place}: {min(placed ^ set(fields))!r} is a field or a placeholder, and not both; "
            "make fields and placeholders of the question agree"
        )
    identity = PromptIdentity(
        known["name"], int(known["version"]), hashlib.sha256(text.encode()).hexdigest()
    )
    examples = tuple(
        Example(dict(one["fields"]), one["answer"].strip()) for one in known.get("examples", ())
    )
    prompt = PromptTemplate(
        identity,
        known["purpose"].strip(),
        fields,
        known["system"].strip(),
        known["question"].strip(),
        examples,
    )
    for example in examples:
        prompt._filled(example.fields)
    return prompt
