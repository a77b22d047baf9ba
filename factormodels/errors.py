"""Exceptions of all packages, and the wording of their messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from factormodels.control_characters import shortened


class FactormodelsError(Exception):
    """Base class of all errors of this project whose message is written for the user.

    The command line prints the message as one line and exits with code 2. Very long names are
    shortened in the message.
    """

    def __str__(self) -> str:
        return shortened(super().__str__())


class InputError(FactormodelsError, ValueError):
    """Invalid input; the message names the file or argument, the place, the value and the fix."""


class LimitReachedError(InputError):
    """The limit of calls or cost set by the user, or the balance of an account, is reached.

    The run stops and can be resumed.
    """


class MissingDependencyError(FactormodelsError, ImportError):
    """A missing optional library; the message names the command that installs it."""


@contextmanager
def options_as_arguments(arguments: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Rewrite options of the command line as arguments of a function in errors of the block.

    Messages are written for the command: "drop it with --overwrite" becomes "drop it with
    `overwrite`".

    Args:
        arguments: names of arguments by option, if they differ.
    """
    try:
        yield
    except InputError as error:
        error.args = (as_arguments(str(error), arguments),)
        raise


def as_arguments(text: str, arguments: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a text with options of the command line rewritten as arguments of a function.

    An option with a quoted value, such as "--p 'my p'", becomes `p='my p'`. Text between backticks
    is code, such as a command with its options, and is unchanged.

    Args:
        text: the text.
        arguments: names of arguments by option, if they differ.
    """

    def argument(option: re.Match[str]) -> str:
        if option[1] is None:
            return option[0]
        name = arguments.get(option[1], option[1].replace("-", "_"))
        return f"`{name}`" if option[2] is None else f"`{name}={option[2]}`"

    return re.sub(r"`[^`]*`|(?<![^\s(])--([a-z][a-z-]*)(?: ('[^']*')(?!\"))?", argument, text)


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that `name` most likely means, or None if none is near."""
    import difflib

    by_folded = {str(known_name).casefold(): str(known_name) for known_name in known}
    matches = difflib.get_close_matches(str(name).casefold(), by_folded, n=1)
    return by_folded[matches[0]] if matches else None


_MOST_LISTED = 9
"""Number of names that an error lists; if there are more, it lists the nearest, at most three."""

_NEAR = 0.5
"""Ratio of `difflib` from which one of many names is near."""


def unknown_name(subject: str, name: object, known: Iterable[str], listed: str = "") -> str:
    """Return the message for an unknown name, with the known names or the nearest of them.

    Args:
        subject: the unknown thing, including its name, such as "the backend 'exat'".
        name: the unknown name.
        known: the known names.
        listed: place of the list of known names, for a name that is near none of them, such as
            "--help-all shows every option"; if not given, the message lists the first.
    """
    import difflib

    names = list(dict.fromkeys(map(str, known)))
    if len(names) > _MOST_LISTED:
        # The hyphens that all options begin with make none of them alike.
        by_folded = {each.casefold().lstrip("-"): each for each in names}
        folded = str(name).casefold().lstrip("-")
        near = difflib.get_close_matches(folded, by_folded, n=3, cutoff=_NEAR)
        if not near:
            # Names of variables and responses may be thousands.
            first, count = ", ".join(names[:_MOST_LISTED]), len(names) - _MOST_LISTED
            return f"{subject} is unknown; {listed or f'use one of {first} or {count:,} more'}"
        *others, last = (repr(by_folded[each]) for each in near)
        listed = " or ".join(filter(None, [", ".join(others), last]))
        return f"{subject} is unknown (did you mean {listed}?)"
    near_name = nearest(name, names)
    hint = "" if near_name is None else f" (did you mean {near_name!r}?)"
    return f"{subject} is unknown{hint}; use one of {', '.join(names)}"
