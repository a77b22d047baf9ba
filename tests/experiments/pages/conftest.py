"""Pages without what takes most of their time."""

from __future__ import annotations

import pytest

from experiments.pages import study_page


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave plots out of the pages of studies; test_report.py reads a page that has them."""
    monkeypatch.setattr(study_page, "_plots", lambda *_: ([], []))
