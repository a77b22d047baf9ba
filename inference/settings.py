"""Settings of backends, each declared once with its default and its range.

Declare settings:

    from inference.settings import setting
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
    """Allowed values of a setting: a number from `least` to `most` except `without`, a name, or
    None.

    If `whole`, only whole numbers are allowed: for fractions, kernels would be compiled again, or
    fail.
    """

    whole: bool
    least: float
    most: float
    without: Collection[float]
    names: tuple[str, ...]
    optional: bool

    def holds(self, value: Any) -> bool:
        """Return whether a value is allowed."""
        if value is None:
            return self.optional
        if isinstance(value, str):
            return value in self.names
        # In Python, True is a number.
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            return False
        # False for NaN, and in a setting that allows only names.
        number: Any = value  # Real has no order for type checkers.
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
    """Return a field of a backend with its default and range; None is allowed if it is the default.

    Args:
        default: its default.
        least, most: inclusive ends of the range of numbers. If the lower end is a whole number and
            the default is not a fraction, only whole numbers are allowed.
        above, below: exclusive ends.
        names: allowed texts, in place of a number. Without a lower end, numbers are not allowed.
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
        name: name of the owner of the settings, for messages.

    Raises:
        InputError: for the first value that is not allowed.
    """
    kind: Any = type(settings)
    for declared, allowed in _declared(kind):
        # `vars` is empty for instances with slots.
        value = getattr(settings, declared)
        if not allowed.holds(value):
            raise InputError(f"{declared} of {name!r} is {value!r}; give {allowed}")


@cache
def _declared(kind: Any) -> list[tuple[str, Allowed]]:
    """Return the fields of a dataclass with a declared range."""
    declared = {each.name: each.metadata.get(_ALLOWED) for each in fields(kind)}
    return [(name, allowed) for name, allowed in declared.items() if allowed is not None]
