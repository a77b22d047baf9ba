"""`factormodels draw`: a graph as a figure, laid out here or by Graphviz."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PIL import Image

from experiments.findings.figures import graph_figure
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.io.fact_graph_json import write_fact_graph
from tests.experiments.conftest import invoke


@pytest.mark.parametrize(("name", "start"), [("g.pdf", b"%PDF"), ("g.svg", b"<?xml")])
def test_a_figure_is_what_its_name_says(graph_file: Path, name: str, start: bytes) -> None:
    invoke("draw", graph_file, name)
    assert Path(name).read_bytes().startswith(start)


def test_a_picture_is_not_blank(graph_file: Path) -> None:
    invoke("draw", graph_file, "g.png", "--variant", "FR1")
    with Image.open("g.png") as image:
        assert image.info["Title"] == "figure-1"
        assert len(image.convert("RGB").getcolors(maxcolors=1_000_000) or []) > 50


def test_the_text_for_graphviz_has_the_posterior(graph_file: Path) -> None:
    invoke("draw", graph_file, "g.dot")
    # 48/151 = 0.3179
    assert "P = 0.32" in Path("g.dot").read_text()


def stand_in(folder: Path, script: str) -> None:
    """Put a program `dot` in front of all others."""
    program = folder / "bin" / "dot"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_graphviz_is_given_the_text_and_the_file(
    graph_file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whether the true program is installed depends on the machine; what it is told does not.
    stand_in(folder, 'echo "$1" > "$3"; cat >> "$3"')
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    invoke("draw", graph_file, "g.svg", "--graphviz")
    written = Path("g.svg").read_text()
    assert written.startswith("-Tsvg\ndigraph")
    assert "P = 0.32" in written


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("g.jpg", "end the name in .pdf, .png, .svg or .dot"),
        ("none/g.pdf", "none/g"),
        ("g.pdf --graphviz", "Graphviz is not installed"),
        ("g.pdf --backend exac", "did you mean 'exact'"),
    ],
)
def test_a_mistake_is_one_sentence(
    graph_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: str,
    message: str,
) -> None:
    monkeypatch.setenv("PATH", "")
    assert message in invoke("draw", graph_file, *arguments.split(), code=2).stderr
    assert list(Path().glob("*.pdf")) == []


def test_the_name_of_a_figure_is_checked_before_the_graph_is_read() -> None:
    assert "end the name in" in invoke("draw", "absent.json", "g.jpg", code=2).stderr


def test_graphviz_that_fails_leaves_no_file(
    graph_file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(folder, "echo broken >&2; exit 3")
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    result = invoke("draw", graph_file, "g.pdf", "--graphviz", code=2)
    assert "Graphviz cannot draw the graph (broken)" in result.stderr
    assert not Path("g.pdf").exists()


def test_options_of_fact_graphs_are_refused_for_a_network(network_file: Path) -> None:
    result = invoke("draw", network_file, "--neutral", "g.pdf", code=2)
    assert "network without claims" in result.stderr
    assert not Path("g.pdf").exists()


@pytest.mark.parametrize(
    "most", [12, pytest.param(graph_figure.MOST_ROWS, marks=pytest.mark.nightly)]
)
def test_a_drawing_that_is_too_large_says_what_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(graph_figure, "MOST_ROWS", most)
    contexts = tuple(Context(f"c{i}") for i in range(most + 10))
    relations = tuple(
        Relation(context.id, "a", RelationKind.ENTAILMENT, 0.9) for context in contexts
    )
    graph = FactGraph("g", atoms=(Atom("a"),), contexts=contexts, relations=relations)
    write_fact_graph(graph, folder / "large.json")
    result = invoke("draw", "large.json", "g.png")
    missing = f"10 of {most + 10}"
    assert f"Not drawn: {missing} passages, {missing} relations." in result.stdout
    invoke("draw", "large.json", "g.dot")
    assert Path("g.dot").read_text().count("->") == most + 10


def test_a_folder_has_the_figure_for_a_paper_and_the_text(graph_file: Path) -> None:
    invoke("draw", graph_file, "--out", "paper", "--venue", "acl", "--report", "page.html")
    names = {path.name for path in Path("paper").iterdir()}
    assert {"graph.pdf", "graph.png", "graph.tex", "graph.csv", "graph.dot"} < names
    assert "P = 0.32" in Path("paper/graph.dot").read_text()
    assert "<svg" in Path("page.html").read_text()
    assert "TARGET" in invoke("draw", graph_file, "--graphviz", code=2).stderr


def test_the_width_of_a_drawing_is_chosen_in_pixels(graph_file: Path) -> None:
    invoke("draw", graph_file, "g.svg", "--width", "390")
    # A pixel is three quarters of a point.
    assert 'width="292.5pt"' in Path("g.svg").read_text("utf-8")
    errors = invoke("draw", graph_file, "g.svg", "--width", "390", "--graphviz", code=2).stderr
    assert "leave --width out" in errors
