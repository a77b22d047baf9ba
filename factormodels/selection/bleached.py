"""Bleached claims: what holds of nearly everything of a domain, hence informs of nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import resources

from factormodels.errors import InputError
from factormodels.io.json import decode
from factormodels.io.source.files import read_text

PLACEHOLDER = "{topic}"

_FILE = "bleached_claims.json"


def domains() -> tuple[str, ...]:
    """Names of the domains that templates come with."""
    return tuple(_own())


def bleached_claims(domain: str, topic: str) -> tuple[str, ...]:
    """Bleached claims of a domain about a topic.

    Args:
        domain: one of `domains()`.
        topic: what the response is about.

    Raises:
        InputError: if the domain is unknown or the topic is empty.

    Source: Core, section 3 and appendix B.4; the templates are this project's own.
    """
    templates = _own()
    if domain not in templates:
        raise InputError(
            f"there are no bleached claims of the domain {domain!r}; use one of "
            f"{', '.join(templates)}, or templates of your own"
        )
    return fill_templates(templates[domain], topic)


def templates_of(domain: str) -> tuple[str, ...]:
    """Templates of a domain, in which {topic} stands for the topic.

    Raises:
        InputError: if the domain is unknown.
    """
    return bleached_claims(domain, PLACEHOLDER)


def read_templates(path: str | os.PathLike[str]) -> Mapping[str, tuple[str, ...]]:
    """Templates of one's own by domain: a JSON object of lists of sentences with {topic}.

    Raises:
        InputError: if the file cannot be read or holds something else.
    """
    return parse_templates(decode(read_text(path), path), path)


def parse_templates(value: object, source: object) -> dict[str, tuple[str, ...]]:
    """Templates by domain from a JSON value.

    Raises:
        InputError: if it is not an object of lists of sentences with {topic}; `source` names the
            file.
    """
    if not isinstance(value, dict) or not value:
        raise InputError(f"{source}: give a JSON object with a list of templates per domain")
    parsed = {}
    for domain, templates in value.items():
        if not isinstance(templates, list) or not templates:
            raise InputError(f"{source}: domain {domain!r} has no list of templates; give one")
        for template in templates:
            if not isinstance(template, str) or PLACEHOLDER not in template:
                raise InputError(
                    f"{source}: domain {domain!r}: the template {template!r} does not name the "
                    f"topic; write {PLACEHOLDER} where it belongs"
                )
        parsed[domain] = tuple(templates)
    return parsed


def fill_templates(templates: Sequence[str], topic: str) -> tuple[str, ...]:
    """Templates with the topic filled in, each starting with a capital letter.

    Raises:
        InputError: if the topic is empty.
    """
    if not topic.strip():
        raise InputError("the topic of bleached claims is empty; say what the response is about")
    filled = (template.replace(PLACEHOLDER, topic) for template in templates)
    return tuple(text[:1].upper() + text[1:] for text in filled)


def _own() -> dict[str, tuple[str, ...]]:
    text = resources.files(__package__).joinpath("data", _FILE).read_text(encoding="utf-8")
    return parse_templates(decode(text, _FILE), _FILE)
