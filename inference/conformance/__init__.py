"""What every backend is held to: checks for a test suite, of this project or of another.

    import pytest
    from inference.conformance import CHECKS, Exactness

    @pytest.mark.parametrize("check", CHECKS)
    def test_my_backend(check):
        check(MyBackend(), Exactness("forests", 1e-9, "one pass over a forest"))

A check takes a backend and where it is exact, returns nothing if it holds, and raises
`ConformanceError` with one sentence if it does not.
"""

from __future__ import annotations

from inference.conformance.checks import CHECKS
from inference.conformance.exactness import ConformanceError, Exactness

__all__ = ["CHECKS", "ConformanceError", "Exactness"]
