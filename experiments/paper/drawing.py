"""A fact graph as a file: drawn by matplotlib, laid out by Graphviz, or as Graphviz's text."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.paper.graph_figure import draw_fact_graph, legible, to_dot
from factormodels.errors import InputError, MissingDependencyError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.io.files import atomic_path, write_text

if TYPE_CHECKING:
    from inference.posterior import Posterior

FORMATS = ("pdf", "png", "svg")


def draw(
    graph: FactGraph,
    posteriors: Mapping[str, float],
    path: Path,
    *,
    neutral: bool = False,
    graphviz: bool = False,
) -> None:
    """Write a drawing of a fact graph, whole or not at all; of a large one its `legible` part.

    Graphviz's text has all of it.

    Args:
        graph: the fact graph.
        posteriors: P(true) by id of atom.
        path: the file; its suffix says what it is: .pdf, .png, .svg, or .dot for Graphviz's text.
        neutral: whether matplotlib draws neutral relations too; Graphviz draws them.
        graphviz: whether Graphviz places the nodes.

    Raises:
        InputError: for another suffix, a graph without claims, or a file that cannot be written.
        MissingDependencyError: if Graphviz is asked for and not installed.
    """
    suffix = path.suffix.lstrip(".")
    if suffix == "dot":
        write_text(path, to_dot(graph, posteriors))
        return
    if suffix not in FORMATS:
        known = ", ".join(f".{name}" for name in FORMATS)
        raise InputError(f"{path}: {path.suffix!r} is unknown; end the name in {known} or .dot")
    if graphviz:
        _by_graphviz(to_dot(legible(graph)[0], posteriors), path, suffix)
        return
    from calibration.figures import save_figure

    figure = draw_fact_graph(graph, posteriors, neutral=neutral)
    save_figure(figure, path.with_suffix(""), formats=(suffix,), metadata={"Title": graph.id})


def _by_graphviz(text: str, path: Path, suffix: str) -> None:
    program = shutil.which("dot")
    if program is None:
        raise MissingDependencyError(
            "Graphviz is not installed: there is no program 'dot'; install it from "
            "https://graphviz.org or your system's packages, or leave --graphviz out"
        )
    # Graphviz writes as it goes; a failure must not leave half a file.
    with atomic_path(path) as temporary:
        done = subprocess.run(
            [program, f"-T{suffix}", "-o", str(temporary)],
            input=text.encode("utf-8", "replace"),
            capture_output=True,
            check=False,
        )
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"]
            raise InputError(f"{path}: Graphviz cannot draw the graph ({said[0]})")


def draw_network(graph: FactorGraph, posterior: Posterior, path: Path) -> None:
    """Write a drawing of any factor graph: circles for variables, squares for factors.

    Args:
        graph: the factor graph.
        posterior: of its variables; each shows its likeliest state.
        path: the file, as in `draw`; its name ends in .pdf, .png, .svg or .dot.

    Raises:
        InputError: for another suffix, a graph that is too large for a page, or a file that cannot
            be written.
    """
    from experiments.paper.network_figure import draw_factor_graph, network_dot

    suffix = path.suffix.lstrip(".")
    if suffix == "dot":
        write_text(path, network_dot(graph, posterior))
        return
    if suffix not in FORMATS:
        known = ", ".join(f".{name}" for name in FORMATS)
        raise InputError(f"{path}: {path.suffix!r} is unknown; end the name in {known} or .dot")
    from calibration.figures import save_figure

    figure = draw_factor_graph(graph, posterior)
    metadata = {"Title": path.stem}
    save_figure(figure, path.with_suffix(""), formats=(suffix,), metadata=metadata)
