"""Networks that backends are measured on: files, folders and patterns of names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.networks.config import load_networks
from experiments.networks.data import NetworkSource, sources
from experiments.study.reading import is_of_networks, read_raw
from factormodels import datasets, write_many
from factormodels.io import write
from factormodels.synthetic import grid
from tests.refusals import refused


def networks(*entries: dict[str, object]) -> tuple[NetworkSource, ...]:
    raw = read_raw({"study": "s", "datasets": list(entries)})
    assert is_of_networks(raw)
    return sources(load_networks(raw))


def test_a_pattern_names_the_networks_that_fit_it(tmp_path: Path) -> None:
    for name in ("grid_1.uai", "grid_2.uai", "other.uai"):
        write(grid(2, 2, coupling=1.0, field=0.5, seed=0), tmp_path / name)
    (tmp_path / "grid_1.uai.evid").write_text("1 0 1")
    (tmp_path / "grid_2.evid").write_text("1 3 0")
    (tmp_path / "grid_2.uai.PR").write_text("PR\n0.5")
    first, second = networks({"path": str(tmp_path / "grid_*")})
    assert (first.dataset, first.name) == ("grid", "grid_1.uai")
    assert (second.dataset, second.name) == ("grid", "grid_2.uai")
    (graph,), reference = first.load()
    assert graph.evidence.tolist() == [1, -1, -1, -1]
    assert reference is None
    (graph,), reference = second.load()
    assert graph.evidence.tolist() == [-1, -1, -1, 0]
    assert reference is not None
    assert reference.source == "grid_2.uai.PR"
    assert reference.log_z == pytest.approx(0.5 * np.log(10.0), rel=1e-15)
    # Other evidence is other data.
    (tmp_path / "grid_1.uai.evid").write_text("1 0 0")
    assert networks({"path": str(tmp_path / "grid_1.uai")})[0].sha256 != first.sha256
    (tmp_path / "grid_1.evid").write_text("1 0 0")
    refused("both contain evidence; keep one", networks, {"path": str(tmp_path / "grid_1.uai")})


def test_a_folder_holds_networks_of_both_formats_and_what_is_none_is_refused(
    tmp_path: Path,
) -> None:
    write(grid(2, 2, coupling=1.0, field=1.0, seed=0), tmp_path / "grid.uai")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "rain.bif").write_text(
        "network unknown {}\nvariable Rain { type discrete [ 2 ] { yes, no }; }\n"
        "probability ( Rain ) { table 0.2, 0.8; }\n"
    )
    here: dict[str, object] = {"path": str(tmp_path)}
    assert [each.name for each in networks(here)] == ["deep/rain.bif", "grid.uai"]
    assert len(networks(here | {"limit": 1})) == 1
    refused("give the datasets different names", networks, here, here)
    (tmp_path / "empty").mkdir()
    refused(r"no \.uai or \.bif file", networks, {"path": str(tmp_path / "empty")})
    refused("no file matches", networks, {"path": str(tmp_path / "nothing_*.uai")})
    write_many(datasets.load("worked-examples").graphs[:1], tmp_path / "claims.jsonl")
    (tmp_path / "claims.jsonl").rename(tmp_path / "claims.uai")
    refused("this is a fact graph", networks, {"path": str(tmp_path / "claims.uai")})


def test_drawn_networks_depend_on_the_seed_of_the_study() -> None:
    def drawn(seed: int, **entry: object) -> tuple[NetworkSource, ...]:
        raw = read_raw({"study": "s", "seed": seed, "datasets": [{"name": "g", **entry}]})
        return sources(load_networks(raw))

    first, second = drawn(0, grid=3, graphs=2)
    assert first.sha256 != second.sha256
    assert first.sha256 == drawn(0, grid=3)[0].sha256 != drawn(1, grid=3)[0].sha256
    # A batch begins with the graphs of a smaller one.
    (batch,) = drawn(0, grid=3, batch=2)
    graphs, _ = batch.load()
    assert [len(graphs), batch.variables] == [2, 18]
    assert np.array_equal(graphs[1].log_values, second.load()[0][0].log_values)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"grid": 2}, "generated networks need a name"),
        ({"name": "g", "grid": 2, "shape": {}}, "give one of path, shape and grid"),
        ({"name": "g", "grid": 2, "limit": 1}, "limit applies to a path"),
        ({"path": "x.uai", "graphs": 2}, "graphs and batch apply to generated networks"),
        ({"name": "g", "shape": {"atoms": 0}}, "shape.atoms"),
    ],
)
def test_a_wrong_entry_is_one_sentence(entry: dict[str, object], message: str) -> None:
    assert "datasets[0]" in refused(message, networks, entry)
