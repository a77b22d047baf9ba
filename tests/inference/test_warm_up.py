"""What a person in front of a terminal is told while kernels are compiled."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from experiments.cli.progress import announced


@pytest.mark.parametrize(
    ("terminal", "patience", "told"), [(True, 0.0, True), (False, 0.0, False), (True, 60.0, False)]
)
def test_a_long_silence_is_explained_in_a_terminal(
    terminal: bool, patience: float, told: bool
) -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=100)
    with announced(console, patience):
        deadline = time.monotonic() + (10.0 if told else 0.1)
        while time.monotonic() < deadline and not stream.getvalue():
            time.sleep(0.01)
    assert ("compiling kernels: once" in stream.getvalue()) == told
