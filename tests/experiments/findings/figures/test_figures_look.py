"""Figures can be read at every venue: nothing overlaps, is cut off, covered or empty."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calibration.figures.panels import COLUMN
from calibration.figures.style import laid_out, paper_style
from experiments.findings.artifacts import PaperFigure
from experiments.findings.figures.graph_figure import LETTERS_SIZE, draw_fact_graph
from experiments.findings.venues import VENUES, Venue, fitted
from factormodels.datasets import load
from tests.experiments.findings.embedded_figures import of_commands, of_functions, of_studies
from tests.experiments.findings.figures.drawing_functions import (
    Place,
    drawing_functions,
    functions_behind,
    scripts_that_draw,
)
from tests.experiments.findings.study_figures import kept_calls
from tests.figure_faults import drawn_texts, figure_faults

SAME = 0.1
"""Share by which widths may differ that count as one."""


def faults(figures: Mapping[str, PaperFigure], venues: Iterable[Venue]) -> dict[str, list[str]]:
    """Return what is wrong with figures, by name and width in points."""
    faults_of = {}
    for name, shown in figures.items():
        widths: list[float] = []
        for venue in venues:
            with fitted(shown.figure, venue), paper_style(), laid_out(shown.figure):
                width = shown.figure.get_figwidth()
                if any(abs(width - other) < SAME * width for other in widths):
                    continue
                widths.append(width)
                if wrong := figure_faults(shown.figure):
                    faults_of[f"{name} at {72 * width:.0f} points"] = wrong
    return faults_of


def narrow_and_wide(figures: Mapping[str, PaperFigure]) -> dict[str, list[str]]:
    """Return what is wrong with figures in the narrowest column, or on the narrowest page."""
    narrow = {name for name, shown in figures.items() if shown.figure.get_figwidth() <= COLUMN}
    wide = figures.keys() - narrow
    return {
        **faults({name: figures[name] for name in narrow}, [VENUES["acl"]]),
        **faults({name: figures[name] for name in wide}, [VENUES["slides"]]),
    }


class Drawing(Protocol):
    """A function that draws figures of the gate."""

    def __call__(self, *, whole: bool = True) -> dict[str, PaperFigure]:
        """Draw all figures, or leave out figures that differ from others in their data alone."""


DRAWN: tuple[Drawing, ...] = (of_commands, of_functions, of_studies)


class Gate(NamedTuple):
    """The figures that are looked at, and the functions that drew each."""

    figures: dict[str, PaperFigure]
    behind: dict[Figure, set[Place]]

    def functions(self, name: str) -> set[Place]:
        """Return the functions behind a figure."""
        return self.behind.get(self.figures[name].figure, set())


@pytest.fixture(scope="module")
def drawn() -> Gate:
    """The figures of the gate; a figure that differs from another in its data alone is left out."""
    gate = Gate({}, {})
    for draw in DRAWN:

        def drawn_by(draw: Drawing = draw) -> None:
            gate.figures.update(draw(whole=False))

        gate.behind.update(functions_behind(drawn_by))
    return gate


def one_of_each_kind(drawn: Gate) -> dict[str, PaperFigure]:
    """Return the first figure of each set of functions that draw together."""
    drawing = drawing_functions()
    kinds: dict[frozenset[Place], str] = {}
    for name in drawn.figures:
        kinds.setdefault(frozenset(drawn.functions(name) & drawing), name)
    return {name: drawn.figures[name] for name in kinds.values()}


@pytest.mark.slow
def test_a_figure_of_each_kind_can_be_read_where_there_is_least_room(drawn: Gate) -> None:
    chosen = one_of_each_kind(drawn)
    assert {*drawn.behind} >= {shown.figure for shown in chosen.values()}
    assert narrow_and_wide(chosen) == {}


@pytest.mark.slow
def test_every_function_that_draws_a_figure_is_in_the_gate(drawn: Gate) -> None:
    functions = drawing_functions()
    assert Place("calibration/figures/positions.py", "position_figure") in functions
    assert functions - set().union(*drawn.behind.values()) == set()
    # Scripts that draw with functions of others.
    kept = {call["study"] for call in kept_calls().values()} | {*drawn.figures}
    assert scripts_that_draw() - kept == set()


def count_in(text: str) -> bool:
    """Return whether a text gives a sample size, such as "1,424 claims"."""
    return re.search(r"\d\S* (claim|response|sentence|pair)s?\b", text) is not None


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_sample_sizes_stand_in_captions_and_not_in_labels_of_axes(drawn: Gate, whole: bool) -> None:
    figures = drawn.figures
    if whole:
        figures = {name: shown for draw in DRAWN for name, shown in draw().items()}
    labels = {
        label
        for shown in figures.values()
        for figure in [shown.figure]
        for label in (
            *(text.get_text() for text in (figure._supxlabel, figure._supylabel) if text),  # type: ignore[attr-defined]
            *(axis.get_label_text() for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)),
        )
    }
    assert count_in("95% intervals over 94 responses")
    assert {"Observed frequency", "Relative position of the sentence"} <= labels
    assert [label for label in labels if count_in(label) or "|Δ" in label] == []
    assert any(count_in(shown.caption) for name, shown in figures.items() if "known" in name)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("draw", DRAWN)
def test_figures_can_be_read_at_every_venue(draw: Drawing) -> None:
    """Some hundred pictures."""
    assert faults(draw(), VENUES.values()) == {}


@pytest.mark.parametrize("pixels", [390, 662])
def test_a_drawn_graph_has_letters_of_eleven_pixels_at_any_width(pixels: int) -> None:
    graph = load("at-odds").graphs[0]
    figure = draw_fact_graph(graph, title="A title", width=pixels / 96)
    with paper_style(), laid_out(figure):
        assert figure_faults(figure) == []
        # A point is 96 / 72 pixels.
        assert LETTERS_SIZE * 96 / 72 >= 11
        texts = [*figure.texts, *figure.axes[0].texts, *figure.legends[0].get_texts()]
        assert {text.get_fontsize() for text in texts} == {LETTERS_SIZE}
        assert figure.get_figwidth() * 96 == pytest.approx(pixels)


def legend_over_data(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], label="line")
    axes.legend(loc="center")


def empty(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], color="0.5")


def without_finite_points(axes: Axes) -> None:
    axes.plot([0, 1], [float("nan")] * 2)


def cut_label(axes: Axes) -> None:
    axes.plot([0, 1])
    axes.set_ylabel("a label that is longer than the figure is high")


def crowded_ticks(axes: Axes) -> None:
    axes.plot([0, 1])
    axes.set_xticks([0.2, 0.25], ["one tick", "other tick"])


def text_over_data(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1])
    axes.text(0.5, 0.5, "covered", ha="center", va="center")


def slanted_texts(axes: Axes) -> None:
    axes.plot([0, 1])
    for shift in (0.0, 0.02):
        axes.text(0.1 + shift, 0.5, f"slanted {shift}", rotation=45)


def text_at_the_edge(axes: Axes) -> None:
    axes.plot([0, 1])
    axes.figure.text(0.0, 0.4, "first letters")


def axis_below_bars(axes: Axes) -> None:
    axes.bar([0, 1], [1, 2])
    axes.tick_params(axis="y", direction="in", pad=-22)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (legend_over_data, "the legend that begins with 'line' is over data"),
        (empty, "panel 1 is empty"),
        (without_finite_points, "panel 1 is empty"),
        (cut_label, "'a label that is longer than the figure is high' is outside the figure"),
        (crowded_ticks, "'one tick' is over 'other tick'"),
        (text_over_data, "'covered' is over data"),
        (slanted_texts, "'slanted 0.0' is over 'slanted 0.02'"),
        (text_at_the_edge, "'first letters' touches the edge of the figure"),
        (axis_below_bars, "'1.0' is over data"),
    ],
)
def test_faults_of_a_figure_are_noticed(spoil: Callable[[Axes], None], message: str) -> None:
    with paper_style():
        figure = Figure((2.4, 1.6), layout="constrained")
        spoil(figure.add_subplot())
        with laid_out(figure):
            # Without the breaking of long labels, which would mend one of them.
            for axes in figure.axes:
                axes.set_ylabel(axes.get_ylabel().replace("\n", " "))
            assert message in figure_faults(figure)


def test_ticks_beyond_a_logarithmic_axis_are_not_looked_at() -> None:
    with paper_style():
        figure = Figure((2.4, 1.6), layout="constrained")
        axes = figure.add_subplot()
        axes.set_yscale("log")
        # The first lies beyond the axis, by less than a part in a billion of its length in numbers.
        axes.set_yticks([1e-14, 1e-12, 1e-4], ["beyond", "first", "second"])
        axes.set_ylim(3e-13, 0.7)
        with laid_out(figure):
            texts = {text.get_text() for text in drawn_texts(figure)}
    assert {"first", "second"} <= texts
    assert "beyond" not in texts


def test_nothing_is_wrong_with_slanted_texts_side_by_side() -> None:
    with paper_style():
        figure = Figure((3.0, 2.4), layout="constrained")
        axes = figure.add_subplot()
        axes.plot([0, 1, 2], [1, 2, 3], label="line")
        axes.set_xticks(range(3), [f"a long name {at}" for at in range(3)], rotation=45)
        figure.legend(loc="outside upper center")
        with laid_out(figure):
            assert figure_faults(figure) == []
