"""`factormodels fit`: priors and reliabilities learned from labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli import options


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Labelled responses, or the name of an embedded dataset."
        ),
    ],
    atom_prior: Annotated[
        str, typer.Option(metavar="WHAT", help="Prior of atoms: learn, keep, or a number.")
    ] = "learn",
    context_prior: Annotated[
        str, typer.Option(metavar="WHAT", help="Prior of contexts: learn, keep, or a number.")
    ] = "keep",
    relations: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="Relations: temperature (on the logit of what each states), probability (one for "
            "each class, in its place), or keep.",
        ),
    ] = "temperature",
    by: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="Classes of relations that have values of their own: kind, or stance "
            "(Factcheck-Bench).",
        ),
    ] = None,
    encoding: options.Encoding = "implication",
    objective: Annotated[
        str, typer.Option(metavar="NAME", help="likelihood, log_loss or brier.")
    ] = "likelihood",
    backend: options.BackendName = "exact",
    penalty: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="Standard deviation of a normal prior on logit and log scales."
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option(min=0, metavar="N", help="Folds of the cross-validation; 0: none.")
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of folds and bootstrap.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the responses with what was learned there."),
    ] = None,
) -> None:
    """Learn priors and reliabilities of relations from labels.

    By maximum likelihood, with standard errors over responses. Then every
    response is judged by what the others teach, and compared with the graphs
    as they are given.

    [b]Examples[/b]

      factormodels fit factcheck-bench
      factormodels fit factcheck-bench --relations probability --by stance
      factormodels fit graphs.jsonl --context-prior learn --out learned.jsonl
    """
    from experiments.cli.console import output
    from experiments.cli.views.learning import show
    from experiments.run import learning

    graphs = learning.labelled_graphs(file)
    specification = learning.specification(atom_prior, context_prior, relations, by, encoding)
    settings = learning.Settings(objective, backend, penalty, folds, seed)
    analysed = learning.analyse(graphs, specification, settings)
    console = output()
    show(console, analysed)
    if out is not None:
        learning.write_learned(analysed, graphs, out)
        console.print(f"wrote {out}", soft_wrap=True)
