"""Networks that backends are measured on: files, folders and patterns of names."""

from __future__ import annotations

from pathlib import Path

from experiments.analyses.measured_graphs import networks
from factormodels.io import write
from factormodels.synthetic import grid
from tests.refusals import refused


def test_a_pattern_names_the_files_that_fit_it(tmp_path: Path) -> None:
    for name in ("grid_1.uai", "grid_2.uai", "other.uai"):
        write(grid(2, 2, coupling=1.0, field=0.5, seed=0), tmp_path / name)
    (tmp_path / "grid_1.uai.evid").write_text("1 0 1")
    (tmp_path / "grid_2.uai.PR").write_text("PR\n0.5")
    (first, second) = networks(tmp_path / "grid_*.uai")
    assert [first[:2], second[:2]] == [("grid", "grid_1.uai"), ("grid", "grid_2.uai")]
    assert first[2][0].evidence.tolist() == [1, -1, -1, -1]
    assert first[3] is None
    assert second[3] is not None
    assert second[3].source == "grid_2.uai.PR"
    refused("no file has such a name", list, networks(tmp_path / "nothing_*.uai"))
