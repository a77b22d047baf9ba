"""Measurements look for garbage before each call, among what a call may have made alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from experiments.networks.memory import older_objects_kept


@pytest.fixture(autouse=True, scope="module")
def _older_objects_kept() -> Iterator[None]:
    """Look through what other tests have imported once, and not a third of a second per call."""
    with older_objects_kept():
        yield
