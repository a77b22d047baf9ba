"""`factormodels infer`: the posterior of one model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Fact graph JSON, UAI or BIF, told apart by content; or the name of an embedded "
            "dataset.",
        ),
    ],
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Evidence: a UAI evidence file, or a JSON object from names to states (or to a "
            "list of likelihoods, one per state).",
        ),
    ] = None,
    backend: Annotated[
        str, typer.Option(metavar="NAME", help="Algorithm; `factormodels backends` lists them.")
    ] = "exact",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the backend; repeatable."),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How a relation of a fact graph becomes a table: implication (default) or "
            "conditional.",
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="View of the fact graph: given (default, as recorded), FR1, FR2 or FR3.",
        ),
    ] = None,
    response: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The response to take from a file that holds many."),
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write that JSON object to a file.")
    ] = None,
    rows: Annotated[
        int, typer.Option(min=0, metavar="N", help="Rows of the table to show; 0 shows all.")
    ] = 200,
) -> None:
    """Compute the posterior of one model.

    Shows the probability of every variable, log Z (with what it is: exact, a
    bound or an estimate), how the algorithm ended, and how long it took (without
    loading and compiling, which the first call does). In a fact graph these are
    the probabilities that claims and passages are true; the unnamed variables
    of a UAI file are called 0, 1, ...

    [b]Examples[/b]

      factormodels infer graph.json
      factormodels infer graph.json --variant FR1 --encoding conditional
      factormodels infer network.uai --evidence network.uai.evid --json
      factormodels infer network.uai --backend lbp --set damping=0.5
      factormodels infer corpus.jsonl --response bridge --out posterior.json
      factormodels infer worked-examples --response factreasoner-example-1
    """
    from experiments.cli.console import messages, output
    from experiments.cli.progress import announced
    from experiments.cli.views import posterior as posterior_view
    from experiments.study.backend_settings import build_backend, parse_settings
    from experiments.study.inputs import load_model, with_evidence_file
    from factormodels.errors import InputError
    from factormodels.io.files import write_text
    from inference import ZeroPartitionError
    from inference.posterior import Status
    from inference.warm_up import warm_up

    if out is not None and out.is_dir():
        raise InputError(f"{out}: this is a folder; name a file in it")
    algorithm = build_backend(backend, parse_settings(set_ or ()))
    model = load_model(file, response=response, variant=variant, encoding=encoding)
    graph = model.factor_graph
    if evidence is not None:
        graph = with_evidence_file(graph, evidence)
    with announced(messages()):
        warm_up(algorithm)
    try:
        posterior = algorithm.infer(graph)
    except ZeroPartitionError as error:
        raise ZeroPartitionError(f"{file}: {error}") from None
    if out is not None:
        write_text(out, posterior_view.as_json(posterior))
    if json_:
        typer.echo(posterior_view.as_json(posterior), nl=False)
        return
    console = output()
    posterior_view.show(console, posterior, graph, model.fact_graph, limit=rows)
    if posterior.status is Status.NOT_CONVERGED:
        messages().print(
            f"{posterior.backend} did not converge: these numbers are where it stood when it "
            f"stopped; see `factormodels backends {posterior.backend}` for its settings"
        )
