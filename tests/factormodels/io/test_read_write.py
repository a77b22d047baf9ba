"""`read` and `write`: any file of a model, told apart by its content."""

from __future__ import annotations

import gzip
import json
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
from factormodels.io.guarded_opening import size_limit
from factormodels.io.reading import read_each
from tests.processes import run_python
from tests.refusals import refused

GRAPH = FactGraph(
    "r1",
    (Atom("a1", "One\u2028line."), Atom("a2")),
    (Context("c1"),),
    (Relation("c1", "a1", RelationKind.ENTAILMENT, 0.9),),
)
OTHER = FactGraph("r2", (Atom("a1"),), metadata={"k": [1]})

FACTREASONER = {
    "input": "Who?",
    "output": "Someone.",
    "topic": "x",
    "atoms": [{"id": "a0", "text": "Someone is.", "label": "S", "contexts": ["c_a0_0"]}],
    "contexts": [{"id": "c_a0_0", "title": "t", "text": "p", "snippet": "", "link": ""}],
}
FACTSCORE = {
    "input": "Who?",
    "output": "Someone.",
    "topic": "x",
    "cat": ["rare"],
    "annotations": [
        {
            "text": "Someone.",
            "is-relevant": True,
            "human-atomic-facts": [{"text": "Someone is.", "label": "NS"}],
        }
    ],
}


def written(folder: Path, text: str, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


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
    assert [context.id for context in factreasoner.contexts] == ["c_a0_0"]


def test_lines_of_other_formats(tmp_path: Path) -> None:
    lines = [json.dumps(record) for record in (FACTREASONER, FACTSCORE)]
    write_many([OTHER], tmp_path / "g.jsonl")
    lines.append((tmp_path / "g.jsonl").read_text(encoding="utf-8").strip())
    graphs = read_many(written(tmp_path, "\n\n".join(lines) + "\n\n", "mixed.jsonl"))
    assert [graph.id for graph in graphs] == ["mixed-001", "mixed-003", "r2"]
    assert [atom.label for graph in graphs for atom in graph.atoms] == [True, False, None]
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
    ],
)
def test_what_is_no_model_is_told_in_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}")
    assert words in message
    assert "\n" not in message


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
        list(read_each(tmp_path / "file.txt"))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (['{"id": "x", "nodes": [], "edges": []}', '{"id": '], ", line 2: column 8 is not JSON"),
        (['{"id": "x", "nodes": [', '{"id": "y"}'], ", line 1: column 23 is not JSON"),
        (['{"nodes": [], "edges": []}', "{}"], ", line 2: its keys are []"),
        (['{"nodes": [], "edges": []}', "5"], ", line 2: 5 is not a JSON object"),
        (['{"nodes": [], "edges": []}', '{"nodes": []}'], ", line 2: the key 'edges' is missing"),
        (['{"id": "x", "nodes": [], "edges": []}'] * 2, ": lines 1 and 2 both hold the id 'x'"),
        (["MARKOV 0 0"], ": it is not JSON; give one JSON object per line, or ask infer of UAI"),
        ([""], ": it is not JSON"),
    ],
)
def test_damaged_lines_are_named(lines: list[str], words: str, tmp_path: Path) -> None:
    path = written(tmp_path, "\n".join(lines), "bad.jsonl")
    with pytest.raises(InputError) as caught:
        read_many(path)
    assert str(caught.value).startswith(f"{path}{words}")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    refused("there is no such file", read, tmp_path / "absent.json")
    refused("this is a folder", read, tmp_path)
    path = tmp_path / "latin.uai"
    path.write_bytes("MARKOV é".encode("latin-1"))
    refused(r"byte 7 \(0xe9\) is not UTF-8", read, path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("g.uai", "to_factor_graph"),
        ("g.txt", "cannot be written to .txt; use .json or .jsonl"),
        ("g", "no suffix; use .json or .jsonl"),
    ],
)
def test_suffixes_that_do_not_fit_a_fact_graph(name: str, words: str, tmp_path: Path) -> None:
    refused(words, write, GRAPH, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_suffixes_that_do_not_fit_others(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be written to \.json; use \.uai"):
        write(GRAPH.to_factor_graph(), tmp_path / "g.json")
    refused(r"use the suffix \.jsonl", write_many, [GRAPH], tmp_path / "g.json")
    refused("cannot be written", write, GRAPH, tmp_path / "absent" / "g.json")
    assert not list(tmp_path.iterdir())


def test_real_files_of_every_kind(shared_data: Path) -> None:
    kinds = {
        "factreasoner/fact_graph.json": (FactGraph, 1),
        "factreasoner/flaherty_wikipedia.json": (FactGraph, 26),
        "uai2014/MAR/Grids_11.uai": (FactorGraph, 100),
        "merlin/cancer.uai": (FactorGraph, 5),
    }
    for name, (kind, count) in kinds.items():
        model = read(shared_data / name)
        assert isinstance(model, kind)
        assert len(model.atoms if isinstance(model, FactGraph) else model.names) == count
    for name, count in {
        "factscore_dev/ChatGPT.jsonl": 31,
        "factcheck_bench/factcheck-GPT-benchmark.jsonl": 94,
    }.items():
        graphs = read_many(shared_data / name)
        assert len(graphs) == count
        refused(f"it holds {count} records", read, shared_data / name)


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


def test_a_refused_record_before_what_is_no_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    path.write_text('[{"a": 1, "a": 2, "b": }]')
    refused(r"records\.json, line 1: column \d+ is not JSON", read_many, path)
    path.write_text('[{"b": {"a": 1, "a": 2}, "c": }]')
    refused(r"records\.json, line 1: the key 'a' is given twice", read_many, path)


def test_an_array_that_is_nested_too_deeply_is_refused_with_the_mend(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    refused("line 1: its values are nested too deeply; flatten them", read_many, path)
