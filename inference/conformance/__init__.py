"""Conformance checks of backends, for the test suite of this project or of another.

    import pytest
    from inference.conformance import CHECKS, Exactness

    @pytest.mark.parametrize("check", CHECKS)
    def test_my_backend(check):
        check(MyBackend(), Exactness("forests", 1e-9, "one pass over a forest"))

A check takes a backend and its exactness, returns nothing if it passes, and raises a
`ConformanceError` with one sentence otherwise.
"""

from __future__ import annotations

from inference.conformance.checks import CHECKS
from inference.conformance.exactness import ConformanceError, Exactness

__all__ = ["CHECKS", "ConformanceError", "Exactness"]
