"""`factormodels score`: scores of any table of probabilities and labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli import findings
from experiments.cli.console import messages


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Probabilities and labels: CSV, TSV, Excel, Parquet, JSON Lines or JSON; one row "
            "per claim, or per claim and model. Or responses with verdicts: FactReasoner's "
            "outputs, or what `factormodels assess` wrote.",
        ),
    ],
    p: Annotated[
        list[str] | None,
        typer.Option(
            "--p", metavar="COLUMN", help="Probability of being true; repeat it for several models."
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The human label of the claim.")
    ] = None,
    true: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD", help="A label that means true; all others are then false; repeatable."
        ),
    ] = None,
    irrelevant: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD", help="A label of claims that do not count; repeatable."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The response that the claim belongs to."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="What to score separately: model, dataset; repeatable."
        ),
    ] = None,
    claim: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Id of the claim, used to pair models."),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The model to test the others against."),
    ] = None,
    recalibrate: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Also recalibrate, learning from other responses: platt, temperature, beta, "
            "isotonic, histogram, venn-abers, best (chosen within the folds).",
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option(min=2, metavar="N", help="Folds of responses for --recalibrate.")
    ] = 5,
    resamples: Annotated[
        int, typer.Option(min=1, metavar="N", help="Permutations of each test.")
    ] = 2000,
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Seed of intervals, tests and folds.")
    ] = 0,
    out: findings.OutFolder = None,
    report: findings.ReportPage = None,
    json_: findings.Json = False,
) -> None:
    """Score probabilities against labels: any table, no graph needed.

    Prints a row per model: Brier with its CORP parts, log loss, AUROC, calibration
    error, slope and intercept, accuracy and the area under risk against coverage,
    with intervals over responses; paired tests between models on all of them,
    corrected; reliability and risk-coverage diagrams. Columns with an obvious name
    are recognised, and the command says which.

    [b]Examples[/b]

      factormodels score claims.csv
      factormodels score claims.csv --p confidence --label truth --group answer \\
          --recalibrate platt,isotonic,best
      factormodels score results/compare/rows.parquet --by dataset \\
          --by backend_label --out scores --report scores.html
    """
    from experiments.cli.progress import activity
    from experiments.methods.score import find_scores

    wanted = {
        "p": p or (),
        "label": label,
        "true": true or (),
        "irrelevant": irrelevant or (),
        "group": group,
        "by": by or (),
        "claim": claim,
        "reference": reference,
        "recalibrate": [name.strip() for name in (recalibrate or "").split(",") if name.strip()],
        "folds": folds,
        "resamples": resamples,
        "seed": seed,
    }
    with activity(messages()) as progress:
        found = find_scores(file, wanted, progress)
    findings.deliver(found, out=out, report=report, json_=json_)
