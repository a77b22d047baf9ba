"""Notebook 11: what was asked and labeled stays within what there was, and numbers by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from factormodels import datasets
from tests.notebooks.execution import run

pytestmark = [pytest.mark.notebook, pytest.mark.nightly]


def test_numbers(tmp_path: Path) -> None:
    folder = run("11_few_labels_few_calls", tmp_path)
    graphs = sorted(
        datasets.load("factscore").graphs, key=lambda graph: len(graph.atoms) * len(graph.contexts)
    )[:40][1::2]
    pairs = sum(len(g.atoms) * len({c.key or c.id for c in g.contexts}) for g in graphs)
    frontier = pd.read_csv(folder / "frontier.csv")
    # What a thirtieth of 50 dollars buys at 620 tokens a call and 14 dollars a million.
    bought = min(1.0, int(50 / 30 / (620 * 14 / 1e6)) / pairs)
    assert np.isclose(frontier.share, bought).any()
    kept = frontier.set_index(["order", "share"]).kept
    assert kept["settled at 0.5"].is_monotonic_increasing
    for share in (0.1, 0.2, 0.3):
        assert kept["settled at 0.5", share] > kept["at random", share]
    shares = pd.read_csv(folder / "shares.csv")
    truth = np.mean([a.label for g in graphs for a in g.atoms if a.label is not None])
    assert ((shares.share_lower <= truth) & (truth <= shares.share_upper)).all()
    widths = shares.share_upper - shares.share_lower
    assert (widths <= widths[0]).all()
