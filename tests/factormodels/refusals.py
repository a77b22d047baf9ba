"""How bad input is refused: by an InputError of one sentence that names what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from factormodels import InputError


def assert_refused(call: Callable[[], object], words: Iterable[str], start: str = "") -> str:
    """Check that a call is refused in one sentence that begins with `start` and has the words."""
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(start)
    assert "\n" not in message
    for word in words:
        assert word in message
    return message
