"""A graph as a figure or a file: drawn by matplotlib, laid out by Graphviz, or Graphviz's text."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.findings.graph_figure import draw_fact_graph, legible, to_dot
from factormodels.errors import InputError, MissingDependencyError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.io.files import atomic_path, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from inference.posterior import Posterior

FORMATS = ("pdf", "png", "svg")


def graph_figure(
    graph: FactGraph | FactorGraph, posterior: Posterior, *, neutral: bool = False
) -> Figure:
    """A graph drawn by matplotlib; of a large fact graph its `legible` part.

    In factor graphs circles are variables, each with its likeliest state, and squares are factors.

    Args:
        graph: the graph.
        posterior: of its variables.
        neutral: whether neutral relations are drawn too.

    Raises:
        InputError: for a fact graph without claims, or a factor graph too large for a page.
    """
    if isinstance(graph, FactGraph):
        return draw_fact_graph(graph, _of_claims(graph, posterior), neutral=neutral)
    from experiments.findings.network_figure import draw_factor_graph

    return draw_factor_graph(graph, posterior)


def graph_text(graph: FactGraph | FactorGraph, posterior: Posterior) -> str:
    """All of a graph as text for Graphviz."""
    if isinstance(graph, FactGraph):
        return to_dot(graph, _of_claims(graph, posterior))
    from experiments.findings.network_figure import network_dot

    return network_dot(graph, posterior)


def _of_claims(graph: FactGraph, posterior: Posterior) -> dict[str, float]:
    return {atom.id: float(posterior.marginals[atom.id][1]) for atom in graph.atoms}


def draw_to(
    path: Path,
    graph: FactGraph | FactorGraph,
    posterior: Posterior,
    *,
    neutral: bool = False,
    graphviz: bool = False,
) -> None:
    """Write a drawing of a graph, whole or not at all.

    Args:
        path: the file; its suffix says what it is: .pdf, .png, .svg, or .dot for Graphviz's text.
        graph: the graph.
        posterior: of its variables.
        neutral: whether matplotlib draws neutral relations too; Graphviz draws them.
        graphviz: whether Graphviz places the nodes, of the `legible` part of a fact graph.

    Raises:
        InputError: as `graph_figure`; for another suffix, or a file that cannot be written.
        MissingDependencyError: if Graphviz is asked for and not installed.
    """
    suffix = path.suffix.lstrip(".")
    if suffix == "dot":
        write_text(path, graph_text(graph, posterior))
        return
    if suffix not in FORMATS:
        known = ", ".join(f".{name}" for name in FORMATS)
        raise InputError(f"{path}: {path.suffix!r} is unknown; end the name in {known} or .dot")
    if graphviz:
        drawn = legible(graph)[0] if isinstance(graph, FactGraph) else graph
        _by_graphviz(graph_text(drawn, posterior), path, suffix)
        return
    from calibration.figures import save_figure

    figure = graph_figure(graph, posterior, neutral=neutral)
    title = graph.id if isinstance(graph, FactGraph) else path.stem
    save_figure(figure, path.with_suffix(""), formats=(suffix,), metadata={"Title": title})


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
