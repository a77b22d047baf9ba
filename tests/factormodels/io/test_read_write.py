"""`read` and `write`: any file of a model, told apart by its content."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from factormodels import (
    Atom,
    Context,
    FactGraph,
    FactorGraph,
    InputError,
    Relation,
    RelationKind,
    read,
    read_many,
    write,
    write_many,
)
from factormodels.io.reading import read_each
from factormodels.io.source.opening import size_limit
from tests.factormodels.io.formats.release_records import FACTREASONER, FACTSCORE, written
from tests.processes import run_python
from tests.refusals import refused

GRAPH = FactGraph(
    "r1",
    (Atom("a1", "One\u2028line."), Atom("a2")),
    (Context("c1"),),
    (Relation("c1", "a1", RelationKind.ENTAILMENT, 0.9),),
)
OTHER = FactGraph("r2", (Atom("a1"),), metadata={"k": [1]})


def test_a_fact_graph_is_written_and_read(tmp_path: Path) -> None:
    for name in ("g.json", "g.jsonl", "G.JSON"):
        write(GRAPH, tmp_path / name)
        assert read(tmp_path / name) == GRAPH
        assert read_many(tmp_path / name) == [GRAPH]


def test_many_fact_graphs_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    write_many(iter([GRAPH, OTHER]), path)
    assert read_many(path) == [GRAPH, OTHER]
    # A line separator of Unicode within a text ends no record.
    assert path.read_bytes().count(b"\n") == 2
    again = tmp_path / "again.jsonl"
    write_many(read_many(path), again)
    assert again.read_bytes() == path.read_bytes()
    refused("it holds 2 records; use read_many", read, path)


def test_a_factor_graph_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "g.uai"
    graph = GRAPH.to_factor_graph()
    write(graph, path)
    again = read(path)
    assert isinstance(again, FactorGraph)
    assert again.names == ("a1", "a2", "c1")
    np.testing.assert_array_equal(again.log_values, graph.log_values)


@pytest.mark.parametrize("name", ["x.json", "x.uai", "x", "x.bif.gz"])
def test_content_tells_not_the_name(name: str, tmp_path: Path) -> None:
    write(GRAPH, tmp_path / "g.json")
    text = (tmp_path / "g.json").read_text(encoding="utf-8")
    assert read(written(tmp_path, text, name)) == GRAPH
    assert read(written(tmp_path, "\ufeff \n" + text, name)) == GRAPH
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    assert read(tmp_path / name) == GRAPH
    model = read(written(tmp_path, " \nmarkov 1 2 1 1 0 2 .5 .5", name))
    assert isinstance(model, FactorGraph)
    factreasoner = read(written(tmp_path, json.dumps(FACTREASONER), name))
    assert isinstance(factreasoner, FactGraph)
    assert factreasoner.context_ids == ("c_a0_0", "c_a0_1", "c_q_0")


def test_lines_of_other_formats(tmp_path: Path) -> None:
    lines = [json.dumps(record) for record in (FACTREASONER, FACTSCORE)]
    write_many([OTHER], tmp_path / "g.jsonl")
    lines.append((tmp_path / "g.jsonl").read_text(encoding="utf-8").strip())
    graphs = read_many(written(tmp_path, "\n\n".join(lines) + "\n\n", "mixed.jsonl"))
    assert [graph.id for graph in graphs] == ["mixed-001", "mixed-003", "r2"]
    labels = [atom.label for graph in graphs for atom in graph.atoms]
    assert labels == [True, False, None, True, False, None, None]
    (single,) = read_many(written(tmp_path, json.dumps(FACTSCORE, indent=1), "one.json"))
    assert single == read(tmp_path / "one.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        (" \n\t", "the file is empty"),
        ("MAR\n1 2 0.5 0.5", "it is a UAI result file (MAR), not a model"),
        ("PR\n1.5", "it is a UAI result file (PR), not a model"),
        ("2 184 1 85 1", "it holds only numbers, as UAI evidence does"),
        ("hello world", "it begins with 'HELLO'"),
        ("[1, 2]", "[1, 2] is not a JSON object"),
        ("{}", "its keys are []"),
        ('{"node": 1, "vertices": 2}', "its keys are ['node', 'vertices'], but a fact graph has"),
        ('{"nodes": [', "line 1, column 12 is not JSON"),
        ('{"nodes": [],\n  "edges": [}', "line 2, column 13 is not JSON"),
        ('{"nodes": [], "edges": []', "line 1, column 26 is not JSON"),
        ('{"nodes": [], "edges": []} x', "column 28 is not JSON (Extra data)"),
        ('{"nodes": [],\n "edges": [NaN]}', "line 2, column 12: NaN"),
        ('{"id": "NaN -Infinity", "nodes": [-Infinity]}', "column 35: -Infinity"),
        ('{"id": "1e999",\n\n "nodes": [1e999]}', "line 3, column 12: 1e999 is too large"),
    ],
)
def test_invalid_models_are_reported_in_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    assert refused([words], read, path).startswith(str(path))


@pytest.mark.parametrize("before", ["", "\n"])
@pytest.mark.parametrize("between", [",\n", ", \t\n\n"])
def test_one_value_may_have_a_line_for_each_node(before: str, between: str, tmp_path: Path) -> None:
    nodes = [
        {"id": name, "type": "atom", "text": "Words", "probability": 0.5} for name in ("a1", "a2")
    ]
    text = f'{{"nodes": [{before}{between.join(map(json.dumps, nodes))}], "edges": []}}'
    graph = read(written(tmp_path, text))
    assert isinstance(graph, FactGraph)
    assert [atom.id for atom in graph.atoms] == ["a1", "a2"]
    # Not by its lines, of which one alone is small.
    with size_limit(len(text) - 1), pytest.raises(InputError, match="it holds more than"):
        list(read_each(tmp_path / "data.jsonl"))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (['{"id": "x", "nodes": [], "edges": []}', '{"id": '], ", line 2: column 8 is not JSON"),
        (['{"id": "x", "nodes": [', '{"id": "y"}'], ", line 1: column 23 is not JSON"),
        (['{"nodes": [], "edges": []}', "{}"], ", line 2: its keys are []"),
        (['{"nodes": [], "edges": []}', "5"], ", line 2: 5 is not a JSON object"),
        (['{"nodes": [], "edges": []}', '{"nodes": []}'], ", line 2: the key 'edges' is missing"),
        (['{"id": "x", "nodes": [], "edges": []}'] * 2, ": lines 1 and 2 both hold the id 'x'"),
        (
            ["MARKOV 0 0"],
            ": it is not JSON; give responses as JSON, one object per line (UAI and BIF",
        ),
        ([""], ": it is not JSON"),
    ],
)
def test_damaged_lines_are_named(lines: list[str], words: str, tmp_path: Path) -> None:
    path = written(tmp_path, "\n".join(lines), "bad.jsonl")
    assert refused([], read_many, path).startswith(f"{path}{words}")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    refused("there is no such file", read, tmp_path / "absent.json")
    refused("this is a folder", read, tmp_path)
    path = tmp_path / "latin.uai"
    path.write_bytes("MARKOV é".encode("latin-1"))
    refused(r"byte 7 \(0xe9\) is not UTF-8", read, path)


@pytest.mark.parametrize(
    ("put", "model", "name", "words"),
    [
        (write, GRAPH, "g.uai", "to_factor_graph"),
        (write, GRAPH, "g.txt", "cannot be written to .txt; use .json or .jsonl"),
        (write, GRAPH, "g", "no suffix; use .json or .jsonl"),
        (write, GRAPH.to_factor_graph(), "g.json", r"cannot be written to \.json; use \.uai"),
        (write_many, [GRAPH], "g.json", r"use the suffix \.jsonl"),
        (write, GRAPH, "absent/g.json", "cannot be written"),
    ],
)
def test_suffixes_that_do_not_fit(
    put: Callable[..., None], model: object, name: str, words: str, tmp_path: Path
) -> None:
    refused(words, put, model, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_real_graphs_are_read_back(shared_data: Path, tmp_path: Path) -> None:
    graphs = read_many(shared_data / "factcheck_bench" / "factcheck-GPT-benchmark.jsonl")
    write_many(graphs, tmp_path / "g.jsonl")
    assert read_many(tmp_path / "g.jsonl") == graphs


def test_importing_the_readers_loads_nothing_heavy() -> None:
    code = (
        "import sys, factormodels\n"
        "heavy = {'pgmpy', 'torch', 'jax', 'scipy', 'pandas', 'numba', 'gzip', 'difflib'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run_python(code)[0].strip() == "[]"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"a": 1, "a": 2, "b": }]', r"column \d+ is not JSON"),
        ('[{"b": {"a": 1, "a": 2}, "c": }]', "the key 'a' is given twice"),
        ("[" * 100_000, "its values are nested too deeply; flatten them"),
    ],
)
def test_the_first_error_of_an_array_is_named(text: str, words: str, tmp_path: Path) -> None:
    path = written(tmp_path, text, "records.json")
    refused(rf"records\.json, line 1: {words}", read_many, path)
