"""A graph as a figure or a file: drawn by matplotlib, laid out by Graphviz, or as Graphviz text."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibration.figures.panels import PAGE, legend_below
from calibration.figures.style import COLORS, paper_style
from experiments.findings.figures.graph_figure import LETTERS_SIZE, draw_fact_graph, legible, to_dot
from factormodels.control_characters import printable
from factormodels.errors import InputError, MissingDependencyError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from factormodels.io.source.files import atomic_path, write_text
from factormodels.nouns import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from calibration.validation import Floats
    from inference.posterior import Posterior


FORMATS = ("pdf", "png", "svg")


def graph_figure(
    graph: FactGraph | FactorGraph,
    posterior: Posterior,
    *,
    neutral: bool = False,
    width: float = PAGE,
) -> Figure:
    """Draw a graph with matplotlib; for a large fact graph, draw only its `legible` part.

    In factor graphs, circles are variables, each with its most probable state, and squares are
    factors.

    Args:
        graph: the graph.
        posterior: posterior of its variables.
        neutral: whether neutral relations are drawn too.
        width: width of the figure, in inches.

    Raises:
        InputError: for a fact graph without claims, or a factor graph too large for a page.
    """
    if isinstance(graph, FactGraph):
        return draw_fact_graph(graph, _of_claims(graph, posterior), neutral=neutral, width=width)

    return draw_factor_graph(graph, posterior, width)


def graph_text(graph: FactGraph | FactorGraph, posterior: Posterior) -> str:
    """A whole graph as text for Graphviz."""
    if isinstance(graph, FactGraph):
        return to_dot(graph, _of_claims(graph, posterior))

    return network_dot(graph, posterior)


def _of_claims(graph: FactGraph, posterior: Posterior) -> dict[str, float]:
    return {atom.id: float(posterior.marginals[atom.id][1]) for atom in graph.atoms}


def check_drawing(path: Path) -> None:
    """Check that a file can hold a drawing, by its suffix.

    Raises:
        InputError: if its suffix is not a supported format.
    """
    if path.suffix.lstrip(".") not in (*FORMATS, "dot"):
        known = ", ".join(f".{name}" for name in FORMATS)
        raise InputError(f"{path}: {path.suffix!r} is unknown; end the name in {known} or .dot")


def draw_to(
    path: Path,
    graph: FactGraph | FactorGraph,
    posterior: Posterior,
    *,
    neutral: bool = False,
    graphviz: bool = False,
    width: float = PAGE,
) -> None:
    """Write a drawing of a graph, whole or not at all.

    Args:
        path: the file, whose suffix determines the format: .pdf, .png, .svg, or .dot for Graphviz
            text.
        graph: the graph.
        posterior: posterior of its variables.
        neutral: whether matplotlib draws neutral relations too; Graphviz draws them.
        graphviz: whether Graphviz places the nodes; for a fact graph, only its `legible` part.
        width: width of matplotlib's drawing, in inches.

    Raises:
        InputError: as `graph_figure`; for another suffix, or a file that cannot be written.
        MissingDependencyError: if `graphviz` is true and Graphviz is not installed.
    """
    check_drawing(path)
    suffix = path.suffix.lstrip(".")
    if suffix == "dot":
        write_text(path, graph_text(graph, posterior))
        return
    if graphviz:
        drawn = legible(graph)[0] if isinstance(graph, FactGraph) else graph
        _by_graphviz(graph_text(drawn, posterior), path, suffix)
        return
    from calibration.figures import save_figure

    figure = graph_figure(graph, posterior, neutral=neutral, width=width)
    title = graph.id if isinstance(graph, FactGraph) else path.stem
    save_figure(figure, path.with_suffix(""), formats=(suffix,), metadata={"Title": title})


def _by_graphviz(text: str, path: Path, suffix: str) -> None:
    program = shutil.which("dot")
    if program is None:
        raise MissingDependencyError(
            "Graphviz is not installed: there is no program 'dot'; install it from "
            "https://graphviz.org or your system's packages, or leave --graphviz out"
        )
    # Graphviz writes incrementally, and a failure must not leave half a file.
    with atomic_path(path) as temporary:
        done = subprocess.run(
            [program, f"-T{suffix}", "-o", str(temporary)],
            input=text.encode("utf-8", "replace"),
            capture_output=True,
            check=False,
        )
        if done.returncode:
            messages = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"]
            raise InputError(f"{path}: Graphviz cannot draw the graph ({messages[0]})")


MOST_NODES = 150
"""Maximum number of variables and factors that fit on a page."""

_STEPS = 300

_LEAST_HEIGHT = 4.0
"""Minimum height of a drawing of a factor graph, in inches."""


def draw_factor_graph(graph: FactorGraph, posterior: Posterior, width: float = PAGE) -> Figure:
    """Draw a factor graph at a width in inches; observed variables are filled.

    Raises:
        InputError: without variables, or for a graph that is too large for a page.
    """
    from calibration.figures.shown_figure import ShownFigure

    nodes = graph.n_variables + graph.n_factors
    if not graph.n_variables or nodes > MOST_NODES:
        raise InputError(
            f"the graph has {counted(graph.n_variables, 'variable')} and "
            f"{counted(graph.n_factors, 'factor')}, and a "
            f"page has room for 1 to {MOST_NODES} of both; write .dot for Graphviz"
        )
    edges = _edges(graph)
    places = _layout(nodes, edges)
    with paper_style():
        size = (width, max(0.75 * width, _LEAST_HEIGHT))
        figure = ShownFigure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.set_axis_off()
        for node, other in edges:
            axes.plot(*places[[node, other]].T, color="0.7", linewidth=0.8, zorder=1)
        variables, factors = places[: graph.n_variables], places[graph.n_variables :]
        observed = graph.evidence != UNOBSERVED
        face = [COLORS[1] if seen else "white" for seen in observed]
        axes.scatter(
            variables[:, 0],
            variables[:, 1],
            s=160,
            facecolors=face,
            edgecolors=COLORS[0],
            zorder=3,
        )
        if len(factors):
            axes.scatter(factors[:, 0], factors[:, 1], s=28, marker="s", color="0.3", zorder=2)
        for number, point in enumerate(variables):
            axes.annotate(
                _label(graph, posterior, number), point, (0, 9), textcoords="offset points",
                ha="center", va="bottom", fontsize=LETTERS_SIZE, zorder=4,
                bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.5},
            )  # fmt: skip
        axes.margins(0.08)
        looks = [
            ("variable: most probable state, its probability", "o", "white", COLORS[0]),
            *([("observed", "o", COLORS[1], COLORS[0])] if observed.any() else []),
            *([("factor", "s", "0.3", "0.3")] if len(factors) else []),
        ]
        handles = [
            axes.plot([], [], marker, mfc=inside, mec=edge, markersize=6)[0]
            for _, marker, inside, edge in looks
        ]
        names = [name for name, *_ in looks]
        legend_below(figure, handles, names, len(names), fontsize=LETTERS_SIZE)
    return figure


def network_dot(graph: FactorGraph, posterior: Posterior) -> str:
    """A factor graph in Graphviz's language."""
    lines = ["graph {", "  node [fontsize=10];"]
    for number in range(graph.n_variables):
        text = _label(graph, posterior, number).replace("\\", "\\\\").replace('"', '\\"')
        style = ", style=filled" if graph.evidence[number] != UNOBSERVED else ""
        lines.append(f'  v{number} [label="{text}"{style}];')
    lines += [
        f'  f{factor} [shape=square, label="", width=0.12, style=filled, fillcolor=gray30];'
        for factor in range(graph.n_factors)
    ]
    lines += [
        f"  v{variable} -- f{other - graph.n_variables};" for variable, other in _edges(graph)
    ]
    return "\n".join([*lines, "}", ""])


def _label(graph: FactorGraph, posterior: Posterior, number: int) -> str:
    """Name, most probable state, and its probability."""
    name = graph.names[number]
    p = posterior.marginals[name]
    state = int(np.argmax(p))
    state_name = str(state) if graph.state_names is None else graph.state_names[number][state]
    return printable(f"{name} = {state_name}, {p[state]:.2f}")


def _edges(graph: FactorGraph) -> list[tuple[int, int]]:
    """Pairs (variable, number of variables + factor), one for each position in a scope."""
    return [
        (variable, graph.n_variables + factor)
        for factor in range(graph.n_factors)
        for variable in graph.scope(factor)
    ]


def _layout(count: int, edges: list[tuple[int, int]]) -> Floats:
    """Positions of nodes that repel each other and are pulled together by edges, (count, 2).

    Fruchterman and Reingold 1991, starting from a circle, so that every run gives the same layout.
    """
    angle = 2 * np.pi * np.arange(count) / count
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    ideal = 2 / np.sqrt(count)
    for step in range(_STEPS):
        apart = places[:, np.newaxis] - places
        distance = np.maximum(np.hypot(apart[..., 0], apart[..., 1]), 1e-3)
        push = (apart / distance[..., np.newaxis] ** 2 * ideal**2).sum(axis=1)
        along = places[ends[:, 0]] - places[ends[:, 1]]
        length = np.maximum(np.hypot(along[:, 0], along[:, 1]), 1e-3)[:, np.newaxis]
        pull = along * length / ideal
        np.add.at(push, ends[:, 0], -pull)
        np.add.at(push, ends[:, 1], pull)
        size = np.maximum(np.hypot(push[:, 0], push[:, 1]), 1e-9)[:, np.newaxis]
        # Steps become shorter, so that the layout settles.
        places = places + push / size * np.minimum(size, 0.2 * (1 - step / _STEPS))
    return places
