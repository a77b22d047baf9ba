"""`factormodels convert`, `backends` and `datasets`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from factormodels import FactGraph, FactorGraph, datasets
from factormodels.io import read
from inference import Entry, entries, infer, register, unregister
from tests.experiments.conftest import Invoke


def test_a_fact_graph_becomes_a_network_with_names(graph_file: Path, invoke: Invoke) -> None:
    result = invoke("convert", graph_file, "graph.uai", "--encoding", "conditional")
    assert result.exit_code == 0
    assert result.stdout == "graph.uai: 3 variables, 5 factors\n"
    network, graph = read("graph.uai"), read(graph_file)
    assert isinstance(network, FactorGraph)
    assert isinstance(graph, FactGraph)
    assert network.names == ("a1", "c1", "c2")
    expected = infer(graph.to_factor_graph("conditional")).marginals
    # UAI holds potentials, not logarithms: a rounding of exp and log.
    for name, vector in infer(network).marginals.items():
        np.testing.assert_allclose(vector, expected[name], atol=1e-14)


def test_a_variant_is_written(folder: Path, invoke: Invoke) -> None:
    id = datasets.load("demonstration").graphs[0].id
    result = invoke("convert", "demonstration", "one.json", "--response", id, "--variant", "FR1")
    assert result.exit_code == 0
    graph = read(folder / "one.json")
    assert isinstance(graph, FactGraph)
    assert all(len(context.retrieved_for) == 1 for context in graph.contexts)


def test_many_responses_become_lines(folder: Path, invoke: Invoke) -> None:
    result = invoke("convert", "demonstration", "all.jsonl")
    assert result.exit_code == 0
    lines = (folder / "all.jsonl").read_text(encoding="utf-8").splitlines()
    graphs = datasets.load("demonstration").graphs
    assert [json.loads(line)["id"] for line in lines] == [graph.id for graph in graphs]
    atoms = sum(len(graph.atoms) for graph in graphs)
    assert result.stdout == f"all.jsonl: {len(graphs)} responses, {atoms} atoms\n"


def test_what_is_converted_twice_stays_the_same(graph_file: Path, invoke: Invoke) -> None:
    assert invoke("convert", graph_file, "one.json").exit_code == 0
    assert invoke("convert", "one.json", "two.json").exit_code == 0
    assert Path("one.json").read_bytes() == Path("two.json").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["graph.json", "graph.bif"], ".bif"),
        (["graph.json", "graph"], "without suffix"),
        (["graph.json", "other.json", "--encoding", "implication"], "--encoding"),
        (["chain.uai", "chain.json"], "general network"),
        (["chain.uai", "chain.jsonl"], "chain.uai"),
        (["demonstration", "all.json"], "--response"),
        (["graph.json", "absent/graph.json"], "existing folder"),
    ],
)
@pytest.mark.usefixtures("graph_file", "network_file")
def test_what_cannot_be_converted(invoke: Invoke, arguments: list[str], said: str) -> None:
    before = sorted(path.name for path in Path().iterdir())
    result = invoke("convert", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert sorted(path.name for path in Path().iterdir()) == before


def test_published_files_are_converted(shared_data: Path, folder: Path, invoke: Invoke) -> None:
    source = shared_data / "factreasoner" / "flaherty_wikipedia.json"
    assert invoke("convert", source, "graph.json").exit_code == 0
    graph = read(folder / "graph.json")
    assert isinstance(graph, FactGraph)
    assert graph.atoms
    result = invoke("convert", shared_data / "factscore_dev" / "ChatGPT.jsonl", "all.jsonl")
    assert result.stdout.startswith("all.jsonl: 31 responses, ")


def test_backends_are_listed_with_settings(invoke: Invoke) -> None:
    result = invoke("backends")
    assert result.exit_code == 0
    for name, entry in entries().items():
        assert any(line.split()[:1] == [name] for line in result.stdout.splitlines())
        assert entry.summary in result.stdout
    assert "damping=adaptive" in result.stdout


def test_a_backend_that_is_not_installed_names_the_command(invoke: Invoke) -> None:
    entry = Entry("absent", "no_such:Thing", "x", "none", requires=("no_such",), extra="things")
    register(entry)
    try:
        result = invoke("backends")
        assert "needs no_such; install it with pip install 'factormodels[things]'" in result.stdout
        refused = invoke("backends", "absent")
        assert refused.exit_code == 2
        assert "pip install 'factormodels[things]'" in refused.stderr
    finally:
        unregister("absent")


def test_a_backend_shows_types_defaults_and_meanings(invoke: Invoke) -> None:
    text = " ".join(invoke("backends", "lbp").stdout.split())
    assert "damping (float | adaptive; default adaptive) weight of the old log message" in text
    assert "schedule (one of sweep, flooding, residual, random; default sweep)" in text
    null = " ".join(invoke("backends", "exact").stdout.split())
    assert "memory_limit (int | null; default null)" in null


def test_every_setting_of_every_backend_has_a_meaning(invoke: Invoke) -> None:
    import dataclasses

    from experiments.cli.commands.backends import _meanings
    from inference.registry import backend_class

    for name, entry in entries().items():
        if not entry.missing:
            backend = backend_class(name)
            settings = {field.name for field in dataclasses.fields(backend)}
            assert set(_meanings(backend)) == settings, name
    assert invoke("backends", "nonsense").exit_code == 2


def test_datasets_are_listed_with_counts(invoke: Invoke) -> None:
    result = invoke("datasets")
    assert result.exit_code == 0
    line = next(line for line in result.stdout.splitlines() if line.startswith("factcheck-bench "))
    # Counts of the issue: 94 responses, 678 claims, 631 of them labelled.
    assert line.split()[1:4] == ["94", "678", "631"]
    assert line.split()[-1] == "Apache-2.0"


@pytest.mark.parametrize("name", datasets.names())
def test_a_dataset_shows_its_card(invoke: Invoke, name: str) -> None:
    result = invoke("datasets", name)
    assert result.exit_code == 0
    card = datasets.card(name)
    for text in (card.title, card.description, card.licence, *card.notes):
        assert text in result.stdout


def test_an_unknown_dataset_is_one_sentence(invoke: Invoke) -> None:
    result = invoke("datasets", "nonsense")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "factcheck-bench" in result.stderr
