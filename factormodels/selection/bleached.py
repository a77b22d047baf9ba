"""Bleached claims, which hold for nearly every topic of a domain and are uninformative."""

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
    """Return the names of the domains with templates."""
    return tuple(_packaged_templates())


def bleached_claims(domain: str, topic: str) -> tuple[str, ...]:
    """Return the bleached claims of a domain about a topic.

    Args:
        domain: one of `domains()`.
        topic: topic of the response.

    Raises:
        InputError: if the domain is unknown or the topic is empty.

    Source: Core, section 3 and appendix B.4; the templates are this project's own.
    """
    templates = _packaged_templates()
    if domain not in templates:
        raise InputError(
            f"there are no bleached claims of the domain {domain!r}; use one of "
            f"{', '.join(templates)}, or templates of your own"
        )
    return fill_templates(templates[domain], topic)


def templates_of(domain: str) -> tuple[str, ...]:
    """Return the templates of a domain, with {topic} in place of the topic.

    Raises:
        InputError: if the domain is unknown.
    """
    return bleached_claims(domain, PLACEHOLDER)


def read_templates(path: str | os.PathLike[str]) -> Mapping[str, tuple[str, ...]]:
    """Read your own templates by domain: a JSON object of lists of sentences with {topic}.

    Raises:
        InputError: if the file cannot be read or has another form.
    """
    return parse_templates(decode(read_text(path), path), path)


def parse_templates(value: object, source: object) -> dict[str, tuple[str, ...]]:
    """Return templates by domain from a JSON value.

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
    """Return templates with the topic filled in, each beginning with a capital letter.

    Raises:
        InputError: if the topic is empty.
    """
    if not topic.strip():
        raise InputError("the topic of bleached claims is empty; give the topic of the response")
    filled = (template.replace(PLACEHOLDER, topic) for template in templates)
    return tuple(text[:1].upper() + text[1:] for text in filled)


def _packaged_templates() -> dict[str, tuple[str, ...]]:
    text = resources.files(__package__).joinpath("data", _FILE).read_text(encoding="utf-8")
    return parse_templates(decode(text, _FILE), _FILE)
