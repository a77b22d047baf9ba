"""How tests check that wrong input is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from factormodels import InputError


def refused(message: str, call: Callable[..., object], /, *arguments: Any, **options: Any) -> None:
    """Check that a call is refused with one sentence that holds `message`, a regular expression."""
    with pytest.raises(InputError, match=message) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
