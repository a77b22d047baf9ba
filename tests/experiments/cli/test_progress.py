"""Progress of a long run without a terminal for a bar."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from experiments.cli.progress import TerminalWatcher
from factormodels.extraction.language_model import Completion
from factormodels.extraction.language_model.accounting import Ledger


def test_a_log_is_told_where_a_study_stands_but_not_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("experiments.cli.progress.LINE_SECONDS", 0.0)
    log, ledger = io.StringIO(), Ledger()
    with TerminalWatcher(Console(file=log, width=200)).texts("mine", ledger, 2) as report:
        ledger.add("relations", Completion("neutral"))
        report()
        report()
    first, second = log.getvalue().splitlines()
    assert first == "mine: asking about 2 responses"
    assert second.startswith("1 of 2 responses, ")
    assert second.endswith(" remaining, 1 call, 0 from the cache")


def test_no_time_is_estimated_from_the_first_steps_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.cli.progress.LINE_SECONDS", 0.0)
    log = io.StringIO()
    with TerminalWatcher(Console(file=log, width=200)).texts("mine", Ledger(), 200) as report:
        report()
        report()
    _, first, second = log.getvalue().splitlines()
    assert first.startswith("1 of 200 responses, ")
    assert "remaining" not in first
    assert "remaining" in second
