"""`factormodels draw`: a fact graph as a figure for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli.help_text import choices
from experiments.cli.options import shared
from factormodels.encodings import DEFAULT_ENCODING, ENCODINGS


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Fact graph JSON, UAI or BIF; or the name of an embedded dataset.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="The figure; its suffix chooses the format: .pdf, .png, .svg, or .dot (text).",
        ),
    ],
    response: shared.ResponseId = None,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Variant of the fact graph: given (default), FR1, FR2 or FR3."
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"Encoding: {choices(ENCODINGS, DEFAULT_ENCODING)}."),
    ] = None,
    backend: Annotated[
        str, typer.Option(metavar="NAME", help="Algorithm whose posteriors to show.")
    ] = "auto",
    set_: shared.BackendSettings = None,
    neutral: Annotated[bool, typer.Option("--neutral", help="Draw neutral relations too.")] = False,
    graphviz: Annotated[
        bool,
        typer.Option("--graphviz", help="Let Graphviz place the nodes; it must be installed."),
    ] = False,
) -> None:
    """Draw a graph: evidence, claims, relations with their strengths, posteriors.

    The colour and the dashes of a line show the kind of relation, its thickness how
    probable it is. The bar of a claim is its posterior, the tick at an end the human
    label. A graph with more than about 40 nodes does not fit on a page; of one with
    more than 120 claims or passages the most decided part is drawn. In other
    factor graphs (UAI, BIF), circles are variables with their likeliest states and
    squares are factors.

    [b]Examples[/b]

      factormodels draw worked-examples --response factreasoner-example-1 \\
          --out example.pdf
      factormodels draw graph.json --variant FR2 --backend lbp --out graph.png
      factormodels draw graph.json --graphviz --out graph.svg
      factormodels draw graph.json --out graph.dot
    """
    from experiments.cli.console import messages, output
    from experiments.cli.progress import announced
    from experiments.findings.text import counted
    from experiments.paper.drawing import draw, draw_network
    from experiments.paper.graph_figure import legible
    from experiments.study.backend_settings import build_backend, parse_settings
    from experiments.study.inputs import load_model
    from factormodels.errors import InputError
    from inference.warm_up import warm_up

    algorithm = build_backend(backend, parse_settings(set_ or ()))
    model = load_model(file, response=response, variant=variant, encoding=encoding)
    if model.fact_graph is None and (neutral or graphviz):
        raise InputError(
            f"{file}: this is a network without claims; --neutral and --graphviz are for fact "
            "graphs"
        )
    with announced(messages()):
        warm_up(algorithm)
    posterior = algorithm.infer(model.factor_graph)
    if model.fact_graph is None:
        draw_network(model.factor_graph, posterior, out)
        output().print(f"{out}: {model.factor_graph.n_variables} variables", soft_wrap=True)
        return
    posteriors = {
        atom.id: float(posterior.marginals[atom.id][1]) for atom in model.fact_graph.atoms
    }
    draw(model.fact_graph, posteriors, out, neutral=neutral, graphviz=graphviz)
    output().print(f"{out}: {counted(len(model.fact_graph.atoms), 'claim')}", soft_wrap=True)
    _, left_out = legible(model.fact_graph)
    if left_out and out.suffix != ".dot":
        messages().print(f"{left_out} A name that ends in .dot has all of them.", soft_wrap=True)
