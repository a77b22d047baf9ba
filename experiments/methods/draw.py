"""Figure of a graph for a paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from experiments.findings.artifacts import PaperFigure
from experiments.findings.figures.drawing import (
    check_drawing,
    draw_to,
    graph_figure,
    graph_text,
)
from experiments.findings.figures.graph_figure import legible
from experiments.findings.findings import Findings
from experiments.methods.infer import findings_of, name_of
from experiments.settings import USUAL, Option, front_door
from experiments.settings.backend_settings import AlgorithmSettings
from experiments.settings.inputs import Models, ModelSettings
from factormodels.errors import InputError

_PIXELS = 96
"""CSS pixels per inch."""


class DrawSettings(ModelSettings, AlgorithmSettings):
    """Drawing.

    Options of `draw`.
    """

    neutral: bool = False
    """Draw neutral relations too."""

    graphviz: Annotated[bool, USUAL] = False
    """Let Graphviz place the nodes of TARGET; it must be installed."""

    width: Annotated[int, Field(ge=240, le=4000), Option("PIXELS", usual=True)] = 662
    """Width of the drawing in CSS pixels (96 per inch): 390 fits a phone, 662 a page. Letters are
    11 pixels high at any width."""


@front_door
def draw(source: Models, target: Path | None = None, *, settings: DrawSettings) -> Findings:
    """Draw a graph: evidence, claims, relations with their strengths, posteriors.

    The color and dashes of a line show the kind of relation, and its thickness the probability. The
    bar of a claim shows its posterior, and the tick at one end of the bar the human label. A graph
    with more than about 40 nodes does not fit on a page. For a graph with more than 120 claims or
    passages, only the first 120 claims and the passages with the strongest relations to them are
    drawn. In other factor graphs (UAI, BIF), circles are variables with their most probable states
    and squares are factors.

    Examples::

        draw("worked-examples", "example.pdf", response="factreasoner-example-1")
        draw("graph.json", "graph.png", variant="FR2", backend="lbp")
        draw("graph.json", "graph.svg", graphviz=True)
        draw("graph.json", "graph.dot")
        draw("graph.json").save("figures", venue="acl")

    Args:
        source: Fact graph JSON, UAI or BIF; or the name of an embedded dataset. In Python also a
            graph.
        target: File of the figure; its suffix chooses the format: .pdf, .png, .svg, or .dot (text).
        settings: options; in Python, pass the fields as keywords instead.

    Raises:
        InputError: if the source cannot be read, or an option does not fit it.
        MissingDependencyError: if `graphviz` is set and Graphviz is not installed.
    """
    from inference.warm_up import warm_up_for

    if target is not None:
        check_drawing(Path(target))
    algorithm = settings.algorithm
    model = settings.load_one(source)
    name = name_of(source)
    if settings.graphviz and target is None:
        raise InputError("--graphviz needs a file to draw into; name it as TARGET")
    if settings.graphviz and "width" in settings.model_fields_set:
        raise InputError("--width: Graphviz chooses the width itself; leave --width out")
    if model.fact_graph is None and (settings.neutral or settings.graphviz):
        raise InputError(
            f"{name}: this is a network without claims; leave out --neutral and --graphviz, "
            "which apply to fact graphs"
        )
    warm_up_for(algorithm, [model.factor_graph])
    posterior = algorithm.infer(model.factor_graph)
    graph = model.fact_graph or model.factor_graph
    width = settings.width / _PIXELS
    title = name if model.fact_graph is None else model.fact_graph.id
    if target is not None:
        path = Path(target)
        how = {"neutral": settings.neutral, "graphviz": settings.graphviz}
        draw_to(path, graph, posterior, **how, width=width)
    findings = findings_of(name, [(model, posterior)])
    sentences = [*([f"{target}: {title}."] if target is not None else []), *findings.sentences]
    if model.fact_graph is not None and (left_out := legible(model.fact_graph)[1]):
        sentences.append(f"{left_out} A .dot file contains all of them.")
    return replace(
        findings,
        sentences=tuple(sentences),
        texts={"graph.dot": graph_text(graph, posterior)},
        draw=lambda: {
            "graph": PaperFigure(
                graph_figure(graph, posterior, neutral=settings.neutral, width=width),
                findings["posteriors"],
                title,
            )
        },
    )
