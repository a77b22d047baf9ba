"""`factormodels select`: which claims of labelled responses count, and where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from experiments.cli import options
from experiments.cli.console import heading, output, plain_table, show_table, show_written
from experiments.paper.text import number

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.padding.selection_study import SelectionStudy
    from experiments.padding.uncertain_selection import UncertainRow


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
    from experiments.assess.setup import AssessmentOptions, relation_model
    from experiments.padding import selection_study, uncertain_selection
    from experiments.padding.robustness import CoreChoices
    from experiments.study.inputs import read_graphs

    # The facts of the model are for journals, of which there is none here.
    model, _ = relation_model(relations, AssessmentOptions())
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
    _show_study(console, study)
    if samples:
        rows = uncertain_selection.uncertain_rows(graphs, chosen.core, samples=samples, seed=seed)
        console.print()
        _show_uncertain(console, rows)
    show_written(console, written)


def _show_study(console: Console, study: SelectionStudy) -> None:
    """Print the tables."""
    from experiments.padding.selection_study import QUANTITIES

    console.print(study.summary(), soft_wrap=True)
    console.print()
    heading(console, "claims by sentence")
    titles = ("sentence", "responses", "before", "after", "share left", "true before", "after")
    table = plain_table(right=titles)
    for row in study.rows:
        table.add_row(
            "all" if row.sentence is None else str(row.sentence),
            *map(str, (row.responses, row.before, row.after)),
            number(row.survival),
            number(row.supported_before / row.before if row.before else None),
            number(row.supported_after / row.after if row.after else None),
        )
    show_table(console, table)
    console.print()
    for quantity in QUANTITIES:
        heading(console, quantity.replace("_", " "))
        table = plain_table(["claims"], study.before.positions)
        for name, one in (("all", study.before), ("selected", study.after)):
            table.add_row(name, *(number(float(v)) for v in one[quantity].estimate))
        show_table(console, table)


def _show_uncertain(console: Console, rows: Sequence[UncertainRow]) -> None:
    """Print a line per response and the means."""
    heading(console, "plain program, expected weight, sampled redundancy graphs")
    titles = ("claims", "plain", "Pr", "expected", "Pr", "gain", "proved", "sampled Pr", "95 %")
    table = plain_table(["response"], titles)
    for row in rows:
        table.add_row(
            row.response,
            str(row.claims),
            str(row.plain_count),
            number(row.plain_precision),
            number(row.expected_count, 1),
            number(row.expected_precision),
            number(row.gain),
            "yes" if row.proved else "no",
            number(row.sampled_precision),
            f"{number(row.lower)} to {number(row.upper)}",
        )
    table.add_section()
    table.add_row(
        "mean",
        number(_mean(rows, "claims"), 1),
        number(_mean(rows, "plain_count"), 1),
        number(_mean(rows, "plain_precision")),
        number(_mean(rows, "expected_count"), 1),
        number(_mean(rows, "expected_precision")),
        number(_mean(rows, "gain")),
        f"{sum(row.proved for row in rows)} of {len(rows)}",
        number(_mean(rows, "sampled_precision")),
        "",
    )
    show_table(console, table)


def _mean(rows: Sequence[UncertainRow], name: str) -> float:
    return float(np.nanmean([getattr(row, name) for row in rows])) if rows else float("nan")
