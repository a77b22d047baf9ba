"""What a person is told of the compilation of kernels."""

from __future__ import annotations

import io
import logging

import pytest
from rich.console import Console

import inference.kernels.compiled
from experiments.cli.progress import announced
from inference.kernels.compiled import kernel


def double(x: float) -> float:
    return x + x


@pytest.mark.parametrize("terminal", [True, False])
def test_how_long_compilations_took_is_said_once(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.cli.progress._WORTH_SAYING", 0.0)
    monkeypatch.setattr(inference.kernels.compiled, "PATIENCE", 0.0)
    inference.kernels.compiled._announce.cache_clear()
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=100)
    kernels = logging.getLogger(inference.kernels.compiled.__name__)
    before = (kernels.level, kernels.propagate, list(kernels.handlers))
    with announced(console):
        compiled = kernel(double)
        assert (compiled(1), compiled(1.5)) == (2, 3.0)
    assert (kernels.level, kernels.propagate, kernels.handlers) == before
    text = stream.getvalue()
    assert text.count("compiled kernels in ") == terminal
    assert ("later runs start at once" in text) == terminal
    # The first line comes from a timer of no seconds, which may lose against a quick compiler.
    assert ("compiling kernels: once" in text) <= terminal


def test_what_a_kernel_calls_is_part_of_its_own_time() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    logger = logging.getLogger("inference.kernels.compiled")
    with announced(console):
        (heard,) = logger.handlers
        for created, seconds in ((10.0, 2.0), (15.0, 8.0), (30.0, 1.5)):
            record = logger.makeRecord(logger.name, logging.INFO, "", 0, "compiled", (), None)
            record.created, record.seconds = created, seconds
            heard.handle(record)
    assert "9.50" in stream.getvalue()


def test_what_to_expect_is_said_before_the_waiting_and_of_nothing_else() -> None:
    stream = io.StringIO()
    kernels = logging.getLogger(inference.kernels.compiled.__name__)
    inference.kernels.compiled._announce.cache_clear()
    with announced(Console(file=stream, force_terminal=True, color_system=None, width=200)):
        inference.kernels.compiled._announce()
        kernels.warning("compiled kernels cannot be kept on disk")
    first, second = stream.getvalue().splitlines()
    assert "compiling kernels: once, for they are kept on disk; a backend took 10 to 60" in first
    assert "10 to 60" not in second


def test_where_nothing_is_compiled_nothing_is_said() -> None:
    stream = io.StringIO()
    with announced(Console(file=stream, force_terminal=True)):
        pass
    assert not stream.getvalue()
