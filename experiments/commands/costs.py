"""`factormodels costs`: calls and searches of assessors against the length of a response."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    sentences: Annotated[
        int, typer.Option(min=2, metavar="N", help="Sentences of the response; longest drawn.")
    ] = 30,
    claims: Annotated[
        float, typer.Option(min=0.1, metavar="X", help="Claims per sentence (M/N).")
    ] = 4.2,
    queries: Annotated[int, typer.Option(min=1, metavar="Q", help="Searches per claim (q).")] = 1,
    unsure: Annotated[
        float,
        typer.Option(min=0, max=1, metavar="P", help="Share that FaStfact has to verify (p)."),
    ] = 0.35,
    stride: Annotated[int, typer.Option(min=1, metavar="W", help="Sentences per call (w).")] = 10,
    per_claim: Annotated[int, typer.Option(min=0, metavar="K", help="Contexts per claim (k).")] = 3,
    distinct: Annotated[
        float, typer.Option(min=0, max=1, metavar="X", help="Share of distinct contexts, m/(kn).")
    ] = 0.8,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write costs.csv, .pdf and .png there.")
    ] = None,
) -> None:
    """Count the calls and searches that assessors need for a response.

    FactScore, SAFE, VeriScore and FaStfact after FaStfact's table 6; FR1, FR2
    and FR3 by the pairs that they ask about. The figure draws calls against
    the number of sentences.

    [b]Examples[/b]

      factormodels costs
      factormodels costs --sentences 51 --stride 28 --out results/costs
    """
    from experiments.assessment_costs import METHODS, Load, cost_figure, load_of_length
    from experiments.console import number, output, plain_table
    from experiments.outputs import prepare_folder
    from experiments.selection_study import csv_text
    from factormodels.io.files import write_text

    settings = Load(0, 0, queries, unsure, stride, per_claim)
    load = load_of_length(sentences, settings, claims_per_sentence=claims, distinct_share=distinct)
    numbers = {name: cost(load) for name, cost in METHODS.items()}
    columns = ("extracting", "verifying", "searches", "calls")
    rows = [
        {"assessor": name, **{column: getattr(cost, column) for column in columns}}
        for name, cost in numbers.items()
    ]
    console = output()
    console.print(
        f"N = {load.sentences} sentences, M = n = {load.claims} claims, m = {load.distinct} "
        f"contexts, q = {queries}, p = {unsure:g}, w = {stride}, k = {per_claim}",
        soft_wrap=True,
    )
    table = plain_table()
    table.add_column("assessor", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for name, cost in numbers.items():
        table.add_row(name, *(number(float(getattr(cost, column)), 0) for column in columns))
    console.print(table)
    if out is None:
        return
    from calibration.figures import save_figure

    prepare_folder(out)
    write_text(out / "costs.csv", csv_text(rows))
    figure = cost_figure(
        settings, longest=sentences, distinct_share=distinct, claims_per_sentence=claims
    )
    for path in (out / "costs.csv", *save_figure(figure, out / "costs")):
        console.print(f"wrote {path}", soft_wrap=True)
