"""`factormodels select`: which claims of labelled responses count, and where they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli import options


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Labelled responses with the texts of their claims: FActScore's JSON Lines, fact "
            "graphs, or an embedded dataset.",
        ),
    ],
    relations: options.EntailmentModel = "lexical",
    weights: options.ClaimWeights = "informativeness",
    rule: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Claims exclude each other if either entails the other, or both."
        ),
    ] = "either",
    domain: Annotated[
        str, typer.Option(metavar="NAME", help="Domain of the bleached claims.")
    ] = "people",
    templates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Bleached claims of your own, by domain (JSON)."),
    ] = None,
    bins: options.PositionBins = 5,
    samples: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Also select under uncertain redundancy, and sample so many redundancy graphs.",
        ),
    ] = 0,
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Seed of the intervals and the graphs.")
    ] = 0,
    out: options.TablesFolder = None,
) -> None:
    """Select the claims that count (Core) and tabulate what that changes.

    Claims before and after selection by the sentence that they are from, and
    factuality by relative position before and after.

    [b]Examples[/b]

      factormodels select ChatGPT.jsonl
      factormodels select ChatGPT.jsonl --weights uniform --rule both \\
          --out results/select
      factormodels select demonstration --domain things --samples 200
    """
    from calibration.self_knowledge import IntervalSettings
    from experiments.assess.setup import Wishes, relation_model
    from experiments.cli.console import output
    from experiments.cli.views import selection_study as study_view
    from experiments.cli.views import uncertain_selection as uncertain_view
    from experiments.padding import selection_study, uncertain_selection
    from experiments.padding.robustness import CoreChoices
    from experiments.study.inputs import read_graphs

    model, _ = relation_model(relations, Wishes())
    chosen = CoreChoices(model, weights, rule, templates=templates, domain=domain)  # type: ignore[arg-type]
    graphs = read_graphs(file)
    study = selection_study.selection_study(
        graphs,
        chosen.core,
        source=file,
        intervals=IntervalSettings(seed=seed),
        n_positions=bins,
    )
    written = [] if out is None else selection_study.write(study, out, file.stem)
    console = output()
    study_view.show(console, study)
    if samples:
        rows = uncertain_selection.uncertain_rows(graphs, chosen.core, samples=samples, seed=seed)
        console.print()
        uncertain_view.show(console, rows)
    for path in written:
        console.print(f"wrote {path}", soft_wrap=True)
