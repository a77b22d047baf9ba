"""Check that invalid input is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from factormodels import InputError


def refused(
    message: str | Iterable[str], call: Callable[..., object], /, *arguments: Any, **options: Any
) -> str:
    """Check that a call is refused with one sentence, and return it.

    It holds `message`, a regular expression, or each of several texts.
    """
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    refusal = str(caught.value)
    assert "\n" not in refusal
    for pattern in [message] if isinstance(message, str) else map(re.escape, message):
        assert re.search(pattern, refusal), refusal
    return refusal
