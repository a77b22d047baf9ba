"""Fixtures for the tests of stages that ask a language model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.factormodels.extraction.server import Reply, ScriptedServer

KEY = "sk-not-a-real-key-0123"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """A language model's server, which answers "none" until changed, and its key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ScriptedServer(lambda _request, _number: Reply("none")) as running:
        yield running
