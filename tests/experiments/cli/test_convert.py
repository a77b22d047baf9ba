"""`factormodels convert`: a model from one format to another."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from factormodels import FactGraph, FactorGraph, datasets
from factormodels.io import read
from inference import infer
from tests.experiments.conftest import invoke


def test_a_fact_graph_becomes_a_network_with_names(graph_file: Path) -> None:
    result = invoke("convert", graph_file, "graph.uai", "--encoding", "conditional")
    assert result.stdout.splitlines()[3].split() == ["graph.uai", "3", "5"]
    network, graph = read("graph.uai"), read(graph_file)
    assert isinstance(network, FactorGraph)
    assert isinstance(graph, FactGraph)
    assert network.names == ("a1", "c1", "c2")
    expected = infer(graph.to_factor_graph("conditional")).marginals
    # UAI holds potentials, not logarithms: a rounding of exp and log.
    for name, vector in infer(network).marginals.items():
        np.testing.assert_allclose(vector, expected[name], atol=1e-14)


def test_a_variant_is_written(folder: Path) -> None:
    id = datasets.load("demonstration").graphs[0].id
    invoke("convert", "demonstration", "one.json", "--response", id, "--variant", "FR1")
    graph = read(folder / "one.json")
    assert isinstance(graph, FactGraph)
    assert all(len(context.retrieved_for) == 1 for context in graph.contexts)


def test_many_responses_become_lines(folder: Path) -> None:
    result = invoke("convert", "demonstration", "all.jsonl")
    lines = (folder / "all.jsonl").read_text(encoding="utf-8").splitlines()
    graphs = datasets.load("demonstration").graphs
    assert [json.loads(line)["id"] for line in lines] == [graph.id for graph in graphs]
    atoms = sum(len(graph.atoms) for graph in graphs)
    row = result.stdout.splitlines()[3].split()
    assert row[:3] == ["all.jsonl", str(len(graphs)), str(atoms)]


def test_a_second_conversion_changes_nothing(graph_file: Path) -> None:
    invoke("convert", graph_file, "one.json")
    invoke("convert", "one.json", "two.json")
    assert Path("one.json").read_bytes() == Path("two.json").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("graph.json graph.bif", ".bif"),
        ("graph.json graph", "without suffix"),
        ("graph.json other.json --encoding implication", "--encoding"),
        ("chain.uai chain.json", "general network"),
        ("chain.uai chain.jsonl", "chain.uai"),
        ("demonstration all.json", "--response"),
        ("graph.json absent/graph.json", "existing folder"),
    ],
)
@pytest.mark.usefixtures("graph_file", "network_file")
def test_impossible_conversions(arguments: str, message: str) -> None:
    before = sorted(path.name for path in Path().iterdir())
    assert message in invoke("convert", *arguments.split(), code=2).stderr
    assert sorted(path.name for path in Path().iterdir()) == before


def test_published_files_are_converted(shared_data: Path, folder: Path) -> None:
    source = shared_data / "factreasoner" / "flaherty_wikipedia.json"
    invoke("convert", source, "graph.json")
    graph = read(folder / "graph.json")
    assert isinstance(graph, FactGraph)
    assert graph.atoms
    result = invoke("convert", shared_data / "factscore_dev" / "ChatGPT.jsonl", "all.jsonl")
    assert result.stdout.splitlines()[3].split()[:2] == ["all.jsonl", "31"]
