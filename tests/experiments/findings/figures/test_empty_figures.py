"""A figure that shows no number is not written, and a sentence says so."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calibration.figures.points import has_points
from experiments import run, score
from experiments.findings.artifacts import PaperFigure
from experiments.findings.findings import Findings
from factormodels import write_many
from factormodels.datasets import load

NOT_A_NUMBER = [math.nan, math.nan]


def figure_with(draw: Callable[[Axes], object]) -> Figure:
    figure = Figure((2.0, 1.0))
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color="0.5")
    axes.axhline(0.0)
    draw(axes)
    return figure


@pytest.mark.parametrize(
    "draw",
    [
        lambda axes: axes.plot([], [], "o"),
        lambda axes: axes.plot([0, 1], NOT_A_NUMBER, "o"),
        lambda axes: axes.errorbar([0, 1], NOT_A_NUMBER, yerr=NOT_A_NUMBER, marker="o"),
        lambda axes: axes.scatter([0, 1], NOT_A_NUMBER),
        lambda axes: axes.bar([0, 1], NOT_A_NUMBER),
        lambda axes: axes.fill_between([0, 1], NOT_A_NUMBER, NOT_A_NUMBER),
    ],
)
def test_axes_and_lines_of_reference_are_no_points(draw: Callable[[Axes], object]) -> None:
    assert not has_points(figure_with(draw))


@pytest.mark.parametrize(
    "draw",
    [
        lambda axes: axes.plot([0, 1], [0.5, math.nan], "o"),
        lambda axes: axes.plot([0, 0.5, 1], [0.5, 0.6, 0.7]),
        lambda axes: axes.errorbar([0], [0.5], yerr=[0.1], linestyle="none"),
        lambda axes: axes.scatter([0, 1], [0.5, math.nan]),
        lambda axes: axes.bar([0], [0.0]),
        lambda axes: axes.fill_between([0, 1], [0.1, 0.2], [0.3, 0.4]),
        lambda axes: axes.set_axis_off(),
    ],
)
def test_a_single_number_is_a_point(draw: Callable[[Axes], object]) -> None:
    assert has_points(figure_with(draw))


def test_an_empty_figure_is_not_written_and_a_sentence_says_so(tmp_path: Path) -> None:
    def drawn(values: list[float]) -> PaperFigure:
        figure = figure_with(lambda axes: axes.plot([0, 1], values, "o"))
        return PaperFigure(figure, pd.DataFrame({"y": values}))

    findings = Findings(
        "data",
        ("Something was found.",),
        draw=lambda: {"full": drawn([0.25, 0.5]), "empty": drawn(NOT_A_NUMBER)},
    )
    findings.save(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.pdf")) == ["full.pdf"]
    assert not list(tmp_path.glob("empty*"))
    sentence = (
        "There is no figure empty: nothing that it would show is a finite number; the tables say "
        "why."
    )
    assert json.loads((tmp_path / "findings.json").read_text())["findings"] == [
        *findings.sentences, sentence,
    ]  # fmt: skip
    page = findings.report(tmp_path / "page.html").read_text()
    assert sentence in page
    assert page.count("<svg") == 1


def test_a_diagram_of_one_kind_of_label_is_not_drawn_and_the_label_is_named() -> None:
    def sentences(*labels: bool) -> list[str]:
        rows = [
            {"p": 0.9 - 0.3 * at, "label": label, "response": at} for at, label in enumerate(labels)
        ]
        findings = score(rows, scores=["brier"], n_bootstrap=5).with_figures()
        return [each for each in findings.sentences if each.startswith("There is no figure")]

    same = "There is no figure risk-coverage: the risk is the same at every coverage."
    one_kind = "There is no figure reliability: every label is"
    assert sentences(True) == [f"{one_kind} true.", same]
    assert sentences(False, False) == [f"{one_kind} false.", same]
    assert sentences(True, False) == []


def test_a_study_of_one_kind_of_label_says_why_it_has_no_diagram(tmp_path: Path) -> None:
    graph = load("worked-examples").graphs[0]
    claims = [replace(atom, label=True) for atom in graph.atoms]
    write_many([replace(graph, atoms=tuple(claims))], tmp_path / "g.jsonl")
    study = {
        "study": "one-label",
        "datasets": [{"path": str(tmp_path / "g.jsonl")}],
        "variants": ["FR1"],
        "backends": ["exact"],
    }
    results = run(study, out=tmp_path / "run")
    sentence = "There is no reliability diagram of g, implication: every label is true."
    assert sentence in results.sentences
    assert not list((tmp_path / "run").glob("reliability*"))
