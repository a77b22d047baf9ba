"""Prompts: versioned templates, and their rendering."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from factormodels.decoded_values import shown
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.language_model import Completion, Message, PromptIdentity
from factormodels.extraction.language_model.answers import Label, read_label
from factormodels.extraction.language_model.log_probabilities import OPENNESS
from factormodels.io.yaml import parse_yaml

NOT_KNOWN = "(none)"
"""Text of a slot without a known value."""

NO_WORDS: Mapping[str, str] = MappingProxyType({})
"""Empty mapping: an answer may use no words for a label except the label itself."""

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_REQUIRED = ("name", "version", "purpose", "slots", "system", "question")
_KEYS = (*_REQUIRED, "needed", "after", "labels", "examples")


@dataclass(frozen=True)
class Example:
    """A question that is answered before the actual one.

    Attributes:
        fields: texts by name of slot.
        answer: the literal answer.
    """

    fields: Mapping[str, str]
    answer: str


@dataclass(frozen=True)
class PromptTemplate:
    """A template with its examples.

    Attributes:
        identity: name, version and digest.
        purpose: purpose of the prompt, in one sentence.
        slots: descriptions of the texts that fill the template, by name of slot.
        needed: the slots that the question must have; the others may be left out.
        system: the system message; empty for none.
        question: the question, with a placeholder {{slot}} for each text.
        examples: questions with answers, asked before.
        after: mark before the label in an answer with a label, such as "verdict:"; empty if the
            answer is the label alone.
        labels: the template's own words for labels, by label; a label that is not listed is its own
            word.
    """

    identity: PromptIdentity
    purpose: str
    slots: Mapping[str, str]
    needed: tuple[str, ...]
    system: str
    question: str
    examples: tuple[Example, ...] = ()
    after: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def render(self, **texts: str) -> tuple[Message, ...]:
        """Return the conversation that asks the question about the given texts, one for each slot.

        A text replaces its placeholder and is not scanned again, so that it cannot open another
        placeholder; the tags that fence a slot are escaped within a text.

        Raises:
            InputError: if a slot is missing or unknown, or its value is not text.
        """
        for name in self.slots:
            if name not in texts:
                raise InputError(
                    f"prompt {self.identity.name!r}: the slot {name!r} is missing; give "
                    f"{', '.join(self.slots)}"
                )
        messages = [Message("system", self.system)] if self.system else []
        for example in self.examples:
            messages.append(Message("user", self._filled(example.fields)))
            messages.append(Message("assistant", example.answer))
        messages.append(Message("user", self._filled(texts)))
        return tuple(messages)

    def read_label(
        self,
        answer: Completion,
        labels: Sequence[str],
        also: Mapping[str, str] = NO_WORDS,
        openness: float = OPENNESS,
    ) -> Label | None:
        """Return the label in an answer to the template, as `answers.read_label` does.

        Args:
            answer: the model's answer, in the template's own words.
            labels: the labels, lower case.
            also: other words that mean a label, lower case.
            openness: maximum width of the interval of a label's probability.

        Raises:
            InputError: if the template has a word for an unknown label.
        """
        words = self.words(labels)
        # A label's own name is accepted too, whatever word the template has for it.
        others = dict(zip(labels, words, strict=True))
        others |= {word: words[labels.index(label)] for word, label in also.items()}
        label = read_label(answer, words, self.after, others, openness)
        return None if label is None else replace(label, name=labels[words.index(label.name)])

    def label_fault(
        self, answer: Completion, labels: Sequence[str], also: Mapping[str, str] = NO_WORDS
    ) -> str:
        """Return the fault of an answer to the template; empty if it gives one of the labels."""
        if self.read_label(answer, labels, also) is not None:
            return ""
        cut = ", and was cut off at its longest" if answer.finish == "length" else ""
        marker = f" after {self.after!r}" if self.after else ""
        return f"it gives no single one of {', '.join(self.words(labels))}{marker}{cut}"

    def words(self, labels: Sequence[str]) -> list[str]:
        """Return the template's own words for the labels, lower case, in order.

        Raises:
            InputError: if the template has a word for an unknown label.
        """
        for name in self.labels:
            if name not in labels:
                subject = f"prompt {self.identity.name!r}: the label {name!r}"
                raise InputError(unknown_name(subject, name, labels))
        return [self.labels.get(label, label).lower() for label in labels]

    def _filled(self, texts: Mapping[str, str]) -> str:
        for name, text in texts.items():
            if name not in self.slots:
                subject = f"prompt {self.identity.name!r}: the slot {name!r}"
                raise InputError(unknown_name(subject, name, self.slots))
            if not isinstance(text, str):
                raise InputError(f"prompt {self.identity.name!r}: {name} is {text!r}; give text")
        tags = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(map(re.escape, self.slots))})\b)", re.I)
        return _PLACEHOLDER.sub(
            lambda match: tags.sub("&lt;", texts.get(match.group(1), "")) or NOT_KNOWN,
            self.question,
        )


@cache
def load_prompt(name: str) -> PromptTemplate:
    """Return the prompt of this package with a given name.

    Raises:
        InputError: if no prompt has this name.
    """
    return parse_prompt(prompt_text(name), f"{name}.yaml")


def prompt_text(name: str) -> str:
    """Return the YAML text of a prompt of this package.

    Raises:
        InputError: if no prompt has this name.
    """
    source = resources.files(__package__).joinpath(f"{name}.yaml")
    if not re.fullmatch(r"\w+", name) or not source.is_file():
        raise InputError(unknown_name(f"the prompt {name!r}", name, prompt_names()))
    return source.read_text(encoding="utf-8")


def prompt_names() -> tuple[str, ...]:
    """Return the names of the prompts of this package."""
    files = resources.files(__package__).iterdir()
    return tuple(sorted(file.name[:-5] for file in files if file.name.endswith(".yaml")))


def parse_prompt(text: str, source: str, ours: PromptTemplate | None = None) -> PromptTemplate:
    """Parse a prompt in YAML.

    Args:
        text: name, version, purpose, slots, system, question and, optionally, needed (all slots by
            default), examples, after and labels.
        source: source of the text, for errors.
        ours: the prompt that it replaces, which has the same slots and whose values replace missing
            keys; only the question is then required.

    Raises:
        InputError: if the text is not a prompt, or the question lacks a slot or has an unknown one.
    """
    fields = _checked_keys(
        parse_yaml(text, source), source, ("question",) if ours is not None else _REQUIRED
    )
    if ours is not None:
        fields = _as_replacement(fields, source, ours)
    slots = _words(fields, "slots", source)
    needed = _listed(fields, "needed", source) if "needed" in fields else list(slots)
    for name in needed:
        if not isinstance(name, str) or name not in slots:
            raise InputError(
                f"{source}: {unknown_name(f'the needed slot {shown(name)}', name, slots)}"
            )
    question = _text(fields, "question", source)
    _check_slots(question, slots, needed, source)
    system = _text(fields, "system", source)
    if _PLACEHOLDER.search(system):
        raise InputError(f"{source}: there is a slot in 'system'; put slots only into 'question'")
    version = fields["version"]
    if not isinstance(version, int) or isinstance(version, bool):
        raise InputError(f"{source}: 'version' is {shown(version)}; give a whole number")
    identity = PromptIdentity(
        _text(fields, "name", source), version, hashlib.sha256(text.encode()).hexdigest()
    )
    prompt = PromptTemplate(
        identity,
        _text(fields, "purpose", source),
        slots,
        tuple(needed),
        system,
        question,
        tuple(_example(value, source) for value in _listed(fields, "examples", source)),
        _text(fields, "after", source).lower(),
        {label.lower(): word for label, word in _words(fields, "labels", source).items()},
    )
    for example in prompt.examples:
        prompt._filled(example.fields)
    return prompt


def _checked_keys(known: Any, source: str, required: Sequence[str]) -> dict[str, Any]:
    keys = set(known) if isinstance(known, dict) else set()
    lacking, unknown = set(required) - keys, keys - set(_KEYS)
    if lacking or unknown:
        wrong = (
            f"{min(lacking)!r} is missing" if lacking else f"{min(map(str, unknown))!r} is unknown"
        )
        raise InputError(f"{source}: the key {wrong}; a prompt has {', '.join(_KEYS)}")
    return dict(known)


def _as_replacement(fields: dict[str, Any], source: str, ours: PromptTemplate) -> dict[str, Any]:
    """Return the fields of a replacement, with missing ones taken from our prompt."""
    name = ours.identity.name
    fixed = {"name": name, "slots": dict(ours.slots), "needed": list(ours.needed)}
    for key, value in fixed.items():
        if fields.get(key, value) != value:
            raise InputError(
                f"{source}: {key!r} differs from the prompt {name!r}, which it replaces; keep the "
                "original value, or leave the key out"
            )
    return {"version": 1, "purpose": ours.purpose, "system": "", **fields, **fixed}


def _check_slots(
    question: str, slots: Mapping[str, str], needed: Sequence[str], source: str
) -> None:
    placed = set(_PLACEHOLDER.findall(question))
    for name in sorted(placed - set(slots)):
        raise InputError(f"{source}: {unknown_name(f'the slot {name!r}', name, slots)}")
    for name in needed:
        if name not in placed:
            raise InputError(
                f"{source}: the slot {name!r} is missing; write {{{{{name}}}}} into the question "
                f"where it belongs ({slots[name]})"
            )


def _text(fields: Mapping[str, Any], key: str, source: str) -> str:
    value = fields.get(key, "")
    if not isinstance(value, str):
        raise InputError(f"{source}: {key!r} is {shown(value)}; give text, in quotes if need be")
    return value.strip()


def _words(fields: Mapping[str, Any], key: str, source: str) -> dict[str, str]:
    value = fields.get(key) or {}
    if not isinstance(value, dict) or not all(isinstance(word, str) for word in value.values()):
        raise InputError(
            f"{source}: {key!r} is {shown(value)}; give a text for each name, in quotes if need be"
        )
    return value


def _listed(fields: Mapping[str, Any], key: str, source: str) -> list[Any]:
    value = fields.get(key) or []
    if not isinstance(value, list):
        raise InputError(f"{source}: {key!r} is {shown(value)}; give a list")
    return value


def _example(value: Any, source: str) -> Example:
    if not isinstance(value, dict) or value.keys() != {"fields", "answer"}:
        raise InputError(f"{source}: an example is {shown(value)}; give each 'fields' and 'answer'")
    return Example(_words(value, "fields", source), _text(value, "answer", source))
