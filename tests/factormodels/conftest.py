"""Settings of hypothesis for the tests of models: the same examples every time, no deadline."""

from __future__ import annotations

from hypothesis import settings

# A deadline would fail a test for the machine's load; random examples would fail one in passing.
settings.register_profile("models", deadline=None, derandomize=True)
settings.load_profile("models")
