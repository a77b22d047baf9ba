"""`factormodels align`: a pipeline's claims and verdicts against those of annotators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli import findings
from experiments.cli.console import messages
from experiments.cli.options import shared


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Responses with claims, as FaStfact-Bench's annotation tool writes them, or with "
            "labels and recorded verdicts, such as FactReasoner's outputs.",
        ),
    ],
    gamma: Annotated[
        float, typer.Option(min=1e-9, metavar="G", help="How fast recall falls in F1@K'.")
    ] = 0.1,
    seed: shared.BootstrapSeed = 0,
    out: findings.OutFolder = None,
    report: findings.ReportPage = None,
    json_: findings.Json = False,
) -> None:
    """Align a pipeline's claims and verdicts with people's (FaStfact, table 2).

    Shows, per response, overall and by benchmark: the claims that annotators
    removed, added, revised and left unchanged; how often they agree with the
    pipeline's verdicts, separately for verdicts at extraction and from evidence; and
    how far its counts and F1@K' are from theirs. Everything comes from what the file
    records. --out saves every claim with its original and its revised text.

    [b]Examples[/b]

      factormodels align annotated.jsonl
      factormodels align annotated.jsonl --out results/align --report align.html
    """
    from experiments.cli.progress import activity
    from experiments.methods.align import find_alignment

    with activity(messages()) as progress:
        found = find_alignment(file, {"gamma": gamma, "seed": seed}, progress)
    findings.deliver(found, out=out, report=report, json_=json_)
