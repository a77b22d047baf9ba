"""`factormodels robustness`: how scores stand up to padding, with and without selection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Labelled fact graphs with texts; an embedded dataset."
        ),
    ] = Path("demonstration"),
    relations: Annotated[
        str,
        typer.Option(metavar="NAME", help="Who entails whom: lexical, recorded:FILE, nli:FOLDER."),
    ] = "lexical",
    weights: Annotated[
        str, typer.Option(metavar="NAME", help="informativeness or uniform.")
    ] = "informativeness",
    blind: Annotated[
        bool,
        typer.Option(
            "--blind", help="Judge the padding by its words; else its templates are seen through."
        ),
    ] = False,
    appended: Annotated[
        int, typer.Option(min=1, metavar="N", help="Sentences appended, at most.")
    ] = 20,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the corruption.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the tables and the figures there.")
    ] = None,
) -> None:
    """Append repetitive or uninformative true sentences and see whether scores rise.

    For each assessor at hand (human labels, FR1, FR2 and FR3 on the recorded
    relations, FR2 on the relation model's): normal and padded responses with
    and without Core, and curves against the number of appended sentences.

    [b]Examples[/b]

      factormodels robustness
      factormodels robustness demonstration --blind --out results/robustness
    """
    from experiments import robustness_view
    from experiments.assessment_setup import Wishes, relation_model
    from experiments.console import output
    from experiments.models import read_graphs
    from experiments.robustness import CoreChoices, robustness_curves, robustness_table

    graphs = read_graphs(file)
    model, _ = relation_model(relations, Wishes())
    choices = CoreChoices(model, weights, templates_known=not blind)
    assessors = robustness_view.assessors_at_hand(model)
    counts = [round(appended * k / 4) for k in range(5)]
    table = robustness_table(graphs, assessors, choices, appended=appended)
    curves = robustness_curves(graphs, assessors, choices, counts=counts, seed=seed)
    written = [] if out is None else robustness_view.write(table, curves, out)
    console = output()
    robustness_view.show(console, table, curves)
    for path in written:
        console.print(f"wrote {path}", soft_wrap=True)
