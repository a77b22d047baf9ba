"""Settings of backends: each is declared once, with its default and what it may be.

seed: int = setting(0, least=0)
share: float = setting(0.9, above=0.0, below=1.0)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields
from functools import cache
from numbers import Integral, Real
from typing import Any, TypeVar

from factormodels.errors import InputError

Value = TypeVar("Value")

_ALLOWED = "allowed"


@dataclass(frozen=True)
class Allowed:
    """What a setting may be: a number from `least` to `most` but for `without`, a name, or None.

    Where it is `whole` it takes no fraction, which a kernel would be compiled anew for, or refuse.
    """

    whole: bool
    least: float
    most: float
    without: Collection[float]
    names: tuple[str, ...]
    optional: bool

    def holds(self, value: Any) -> bool:
        """Whether a value is allowed."""
        if value is None:
            return self.optional
        if isinstance(value, str):
            return value in self.names
        # To Python alone True is a number.
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            return False
        # Not so for NaN, nor in a setting that takes names alone.
        number: Any = value  # A Real states no order to type checkers.
        return bool(self.least <= number <= self.most) and number not in self.without

    def __str__(self) -> str:
        numbers = ""
        if self.least <= self.most:
            numbers = "a whole number" if self.whole else "a number"
            numbers += f" {'above' if self.least in self.without else 'from'} {self.least:,}"
            if self.most < math.inf:
                numbers += f" to {'below ' if self.most in self.without else ''}{self.most:,}"
            elif not self.without:
                numbers += " up"
        return " or ".join([*filter(None, [numbers]), *map(repr, self.names)])


def setting(
    default: Value,
    *,
    least: float | None = None,
    most: float = math.inf,
    above: float | None = None,
    below: float | None = None,
    names: Iterable[str] = (),
) -> Value:
    """Field of a backend with its default and what it may be; None too, where that is the default.

    Args:
        default: its default.
        least, most: the ends of the range of numbers, which belong to it. With a whole number as
            its lower end, and no fraction as its default, it takes whole numbers alone.
        above, below: the same for ends that do not belong to it.
        names: texts that it may be instead. Without an end from below it may be no number.
    """
    start = least if above is None else above
    allowed = Allowed(
        whole=isinstance(start, int) and not isinstance(default, float),
        least=math.inf if start is None else start,
        most=(most if below is None else below) if start is not None else -math.inf,
        without=tuple(end for end in (above, below) if end is not None),
        names=tuple(names),
        optional=default is None,
    )
    declared: Value = field(default=default, metadata={_ALLOWED: allowed})
    return declared


def check_settings(settings: Any, name: str) -> None:
    """Check the fields of a dataclass that `setting` declares.

    Args:
        settings: the instance.
        name: the name of what these are settings of, for messages.

    Raises:
        InputError: for the first that is not allowed.
    """
    kind: Any = type(settings)
    for declared, allowed in _declared(kind):
        # Of an instance with slots, `vars` holds nothing.
        value = getattr(settings, declared)
        if not allowed.holds(value):
            raise InputError(f"{declared} of {name!r} is {value!r}; give {allowed}")


@cache
def _declared(kind: Any) -> list[tuple[str, Allowed]]:
    """The fields of a dataclass with a declared range."""
    declared = {each.name: each.metadata.get(_ALLOWED) for each in fields(kind)}
    return [(name, allowed) for name, allowed in declared.items() if allowed is not None]
