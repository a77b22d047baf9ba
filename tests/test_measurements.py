"""The page of measurements: its commands are commands, and its tables are made of results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.study.reading import embedded_studies

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script that makes the tables."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import make_measurements

    yield make_measurements
    sys.modules.pop("make_measurements", None)


def test_every_table_is_below_a_command_of_ours(script: Any) -> None:
    blocks = list(script.BLOCK.finditer(script.PAGE.read_text(encoding="utf-8")))
    assert len(blocks) >= 2
    for block in blocks:
        command, study, *_, option, _ = script.words(block)
        assert (command, option) == ("run", "--out")
        assert study in embedded_studies()


def test_shown_values_equal_the_results(script: Any, tmp_path: Path) -> None:
    before = (
        "Before.\n\n<!-- measured: accuracy, frontier -->\n\n<!-- not run: slow -->\n```sh\n"
        "factormodels run bench/inference \\\n  --out results/i\n```\n\n**old**\n\n| a |\n"
        "<!-- end -->\n\nAfter.\n"
    )
    page = tmp_path / "docs" / "appendix" / "page.md"
    page.parent.mkdir(parents=True)
    assert script.updated(before, tmp_path, page) == before
    (tmp_path / "results" / "i").mkdir(parents=True)
    table = "| a |\n| --- |\n| 1 |\n"
    made = f"<!-- study i -->\n\nTitle\n\n## forest\n\n{table}\n## grid\n\n{table}\nA note.\n"
    (tmp_path / "results" / "i" / "accuracy.md").write_text(made)
    # Half of what a command finds would stand beside half of what it found before.
    assert script.updated(before, tmp_path, page) == before
    (tmp_path / "results" / "i" / "frontier.png").write_bytes(b"drawn")
    after = script.updated(before, tmp_path, page)
    assert f"```\n\n### Title\n\n**forest**\n\n{table}\n**grid**\n\n{table}\nA note.\n" in after
    assert "old" not in after
    assert "(../images/i-frontier.png)" in after
    assert (tmp_path / "docs" / "images" / "i-frontier.png").read_bytes() == b"drawn"
    # A page that was made is the same when it is made again.
    assert script.updated(after, tmp_path, page) == after
