"""Small runs of `tests.endurance.walks` and of `tests.endurance.entered`."""

from __future__ import annotations

import pytest

from factormodels import FactorGraph
from factormodels.synthetic import chain, fr2, grid
from tests.endurance import entered, walks


def test_each_walk_gives_what_the_general_walk_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = {
        "response": lambda: fr2(4, 2, density=0.3, seed=1),
        "chain": lambda: chain(6, coupling=1.0, field=1.0, cardinality=3, seed=1),
        "zeros": lambda: FactorGraph.from_factors(
            [2, 3, 2], [([0], [1, 0]), ([0, 1], [[1, 2, 0], [0, 1, 1]]), ([1, 2], [[3, 0]] * 3)]
        ),
    }
    monkeypatch.setattr(walks, "GRAPHS", graphs)
    # Answers are compared within.
    rows = list(walks.walks(seconds=0.0, large=False))
    both = {
        "scaled sums",
        "chunks, one thread",
        "division",
        "assignments",
        "rows: pairs",
        "removal",
    }
    assert {row["walk"] for row in rows if row["graph"] == "chain"} == both
    assert {row["walk"] for row in rows if row["graph"] == "zeros"} == both
    assert {row["walk"] for row in rows if row["graph"] == "response"} == both | {"rows: counts"}


def test_the_stack_of_rows_holds_less_than_all_rows() -> None:
    stack_bytes, all_bytes = walks.memory_of_rows(grid(4, 4, coupling=1.0, field=1.0, seed=0))
    assert stack_bytes < all_bytes


def test_few_files_are_entered_for_an_answer() -> None:
    # Two more than docs/development/architecture.md counts: each is a file for a newcomer to read.
    most = {"reading": 15, "compiling": 6, "solving": 22, "again": 16}
    files = {row["step"]: len(str(row["names"]).split(", ")) for row in entered.entered()}
    assert files.keys() == most.keys()
    assert all(1 < files[step] <= most[step] for step in most), files
