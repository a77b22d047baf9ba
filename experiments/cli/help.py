"""The help of a command: its purpose, examples, and options under headings.

`--help` fits a screen: the first paragraphs, three examples, and the usual options with their first
sentences. `--help-all` has everything.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from experiments.cli.examples import shell_example
from experiments.settings import Settings, choices_of, meanings_of, option_of

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

_EXAMPLES = 3
"""Number of examples in the short help."""

_WIDEST_NAME = 24
"""Width in characters of the column of options."""

_SECTION = re.compile(r"^(Args|Raises|Returns|Examples)::?\n((?:^(?: .*)?\n?)*)", re.MULTILINE)
_OF_PYTHON = re.compile(r"\s*\bIn Python\b.*?\.(?=\s+[A-Z(]|\s*$)", re.DOTALL)
"""A sentence about Python only."""

_SENTENCE = re.compile(r".*?\.(?=\s+[A-Z(]|$)", re.DOTALL)


def command_help(function: Callable[..., Any], *, every: bool) -> str:
    """The prose of a function's docstring, followed by its examples as shell lines.

    Args:
        function: a function of the front door.
        every: True for everything; False for the first line and three examples.
    """
    docstring = inspect.getdoc(inspect.unwrap(function)) or ""
    prose = unwrapped(_SECTION.sub("", docstring).strip())
    examples = re.split(
        r"\n(?=    \S)", dict(_SECTION.findall(docstring)).get("Examples", "").strip("\n")
    )
    if not every:
        prose = prose.partition("\n")[0]
        examples = examples[:_EXAMPLES]
    lines = (shell_example(function, each) for each in examples if each)
    shown = "\n".join(textwrap.indent(each, "    ") for each in lines)
    return f"{prose}\n\nExamples\n\n{shown}" if shown else prose


def argument_help(function: Callable[..., Any]) -> dict[str, str]:
    """Descriptions of a function's arguments, by name."""
    from docstring_parser import parse
    from docstring_parser.common import DocstringStyle

    docstring = inspect.getdoc(inspect.unwrap(function)) or ""
    arguments = parse(docstring, DocstringStyle.GOOGLE).params
    return {each.arg_name: _at_terminal(each.description or "") for each in arguments}


def _at_terminal(text: str) -> str:
    """A description in one line, without remarks on Python."""
    return " ".join(_OF_PYTHON.sub("", text).split())


def heading_of(kind: type[Settings]) -> str:
    """The heading above the options that a class of settings declares."""
    return (inspect.getdoc(kind) or "").partition("\n")[0].removesuffix(".")


def first_sentence(text: str) -> str:
    """A text up to the end of its first sentence."""
    sentence = _SENTENCE.match(text)
    return text if sentence is None else sentence[0]


def unwrapped(text: str | None) -> str:
    """A docstring with a line for each paragraph, for the terminal to wrap.

    Indented lines, which are examples, are unchanged.
    """
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(
        part if part.startswith("  ") else part.replace("\n", " ") for part in paragraphs
    )


def is_flag(kind: type[Settings], field: str) -> bool:
    """Return True if the option of a field takes no value."""
    hint = kind.model_fields[field].annotation
    return hint is bool or hint == bool | None


def takes_several(kind: type[Settings], field: str) -> bool:
    """Return True if the option of a field is repeatable."""
    origin = get_origin(kind.model_fields[field].annotation)
    return option_of(kind, field).repeatable or origin in (tuple, list, frozenset, dict)


def metavar_of(kind: type[Settings], field: str) -> str:
    """Placeholder of a field's value in the help; empty if there is none."""
    if is_flag(kind, field):
        return ""
    if word := option_of(kind, field).metavar:
        return word
    hint = kind.model_fields[field].annotation
    if choices_of(hint):
        return "NAME"
    alternatives = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    first = next((each for each in alternatives if each is not type(None)), str)
    if get_origin(first) is Annotated:
        first = get_args(first)[0]
    return {int: "N", float: "X", Path: "FILE"}.get(first, "TEXT")


def meaning_of(kind: type[Settings], field: str, *, every: bool = True) -> str:
    """Description of a field with its choices and default.

    Args:
        kind: the class of the settings.
        field: the name of the field.
        every: True for the whole description; False for the first sentence.
    """
    info = kind.model_fields[field]
    text = _at_terminal(meanings_of(kind)[field])
    if not every:
        text = first_sentence(text)
    if choices := choices_of(info.annotation):
        text += f" One of {', '.join(map(str, choices))}."
    default = info.get_default(call_default_factory=True)
    # The option --no-NAME says that a flag is set by default.
    if default is not True and (default or type(default) in (int, float)):
        shown = ", ".join(map(str, default)) if isinstance(default, tuple) else default
        text += f" [default: {shown}]"
    return text


def show_panel(console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
    """Print a heading and, below it, names with their descriptions: a formatter of cyclopts."""
    rows = [
        (
            " ".join(entry.display_labels_with_metavar),
            # The text as it was given, which cyclopts wraps for terminals of many kinds.
            str(getattr(entry.description, "primary_renderable", entry.description)),
        )
        for entry in panel.entries
    ]
    if not rows:
        return
    margin = " " * (4 + min(_WIDEST_NAME, max(len(name) for name, _ in rows)))
    console.print(f"{panel.title}:")
    for name, meaning in rows:
        beside = f"  {name}".ljust(len(margin))
        if len(name) > _WIDEST_NAME:
            console.print(f"  {name}", soft_wrap=True)
            beside = margin
        lines = textwrap.wrap(
            meaning,
            options.max_width,
            initial_indent=beside,
            subsequent_indent=margin,
            break_on_hyphens=False,
        )
        console.print("\n".join(lines) or beside.rstrip(), soft_wrap=True)
    console.print()
