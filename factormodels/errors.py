"""The exceptions that every package raises for a person to read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from factormodels.control_characters import shortened


class FactormodelsError(Exception):
    """Base of every error of this project whose message is written for its user.

    The command line prints the message of such an error as one line and exits with code 2. A name
    of a user's that is too long to be read is shortened in it.
    """

    def __str__(self) -> str:
        return shortened(super().__str__())


class InputError(FactormodelsError, ValueError):
    """Bad input: the message names the file or argument, the place, the value and the mend."""


class LimitReachedError(InputError):
    """A run has asked or spent as much as its user allows, or as an account holds.

    It ends, and can be gone on with.
    """


class MissingDependencyError(FactormodelsError, ImportError):
    """An optional library is absent: the message names the command that installs it."""


@contextmanager
def options_as_arguments(arguments: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Let errors of the block name options of the command line as arguments of a function.

    Their sentences were written for the command: "drop it with --overwrite" becomes "drop it with
    `overwrite`".

    Args:
        arguments: names of arguments by options, where they are not those of the options.
    """
    try:
        yield
    except InputError as error:
        error.args = (as_arguments(str(error), arguments),)
        raise


def as_arguments(text: str, arguments: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a text that names options of the command line as arguments of a function.

    An option with a quoted value, as in "--p 'my p'", becomes the argument with it, `p='my p'`.
    What stands between backticks is code, such as a command with its options, and stays.

    Args:
        text: the text.
        arguments: names of arguments by options, where they are not those of the options.
    """

    def argument(option: re.Match[str]) -> str:
        if option[1] is None:
            return option[0]
        name = arguments.get(option[1], option[1].replace("-", "_"))
        return f"`{name}`" if option[2] is None else f"`{name}={option[2]}`"

    return re.sub(r"`[^`]*`|(?<![^\s(])--([a-z][a-z-]*)(?: ('[^']*')(?!\"))?", argument, text)


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Known name that `name` most likely means, or None if none is near."""
    import difflib

    by_folded = {str(known_name).casefold(): str(known_name) for known_name in known}
    matches = difflib.get_close_matches(str(name).casefold(), by_folded, n=1)
    return by_folded[matches[0]] if matches else None


_MOST_LISTED = 9
"""Names that an error lists; of more it lists the nearest three."""


def unknown_name(subject: str, name: object, known: Iterable[str]) -> str:
    """What an error says of a name that is not known: which ones there are, or the nearest.

    Args:
        subject: what is unknown, its name included, such as "the backend 'exat'".
        name: the name that was given.
        known: the names there are.
    """
    import difflib

    names = list(dict.fromkeys(map(str, known)))
    if len(names) > _MOST_LISTED:
        by_folded = {each.casefold(): each for each in names}
        near = difflib.get_close_matches(str(name).casefold(), by_folded, n=3, cutoff=0)
        # Fewer than three where names differ in case alone.
        *others, last = (repr(by_folded[each]) for each in near)
        listed = " or ".join(filter(None, [", ".join(others), last]))
        return f"{subject} is unknown (did you mean {listed}?)"
    near_name = nearest(name, names)
    hint = "" if near_name is None else f" (did you mean {near_name!r}?)"
    return f"{subject} is unknown{hint}; use one of {', '.join(names)}"
