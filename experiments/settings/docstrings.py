"""Docstrings of front-door functions with a description of each keyword, for `help` and
notebooks."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from experiments.settings import Settings, choices_of, meanings_of, settings_of
from factormodels.errors import as_arguments

_WIDTH = 88
"""Letters in a line of a docstring."""

_BEFORE = re.compile(r"^(?:Returns|Raises):", re.MULTILINE)
"""The section that follows the arguments."""


def with_keywords(function: Callable[..., Any]) -> str:
    """The docstring of a function with its settings as keyword arguments.

    Fields are described where they are declared. Reading the descriptions takes some milliseconds
    per function, so the command line reads them only for help.
    """
    docstring = inspect.getdoc(inspect.unwrap(function)) or ""
    kind = settings_of(function)
    section = "\n".join(["Keyword Args:", *_described(kind)])
    match = _BEFORE.search(docstring)
    at = match.start() if match else len(docstring)
    return "\n\n".join(filter(None, (docstring[:at].rstrip(), section, docstring[at:])))


def _described(kind: type[Settings]) -> Iterator[str]:
    """Yield the lines of each field: its name, meaning, choices and default."""
    for name, meaning in meanings_of(kind).items():
        info = kind.model_fields[name]
        words = f"{name}: {as_arguments(' '.join(meaning.split()))}"
        if choices := choices_of(info.annotation):
            words += f" One of {', '.join(map(repr, choices))}."
        default = info.get_default(call_default_factory=True)
        if default is not None and default != ():
            words += f" Default: {default!r}."
        yield textwrap.fill(
            words,
            _WIDTH,
            initial_indent="    ",
            subsequent_indent="        ",
            break_long_words=False,
            break_on_hyphens=False,
        )
