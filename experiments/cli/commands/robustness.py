"""`factormodels robustness`: how scores stand up to padding, with and without selection."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from experiments.cli import options


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Labelled fact graphs with texts; an embedded dataset."
        ),
    ] = Path("demonstration"),
    relations: options.EntailmentModel = "lexical",
    weights: options.ClaimWeights = "informativeness",
    blind: Annotated[
        bool,
        typer.Option(
            "--blind", help="Judge the padding by its words; else its templates are seen through."
        ),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Language model of the prompt-based assessors, as litellm spells it; its key "
            "comes from the environment.",
        ),
    ] = None,
    api_base: options.ApiBase = None,
    cache: options.AnswerCache = Path("answers.sqlite"),
    replay: options.Replay = False,
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
    relations, FR2 on the relation model's, FR2 with atoms related to each other,
    and with --model those that judge by a prompt): normal and padded responses
    with and without Core, and curves against the number of appended sentences.

    [b]Examples[/b]

      factormodels robustness
      factormodels robustness demonstration --blind --out results/robustness
      factormodels robustness --model openai/NAME --appended 4
    """
    from experiments.assess.setup import Wishes, language_model, relation_model
    from experiments.cli.console import output
    from experiments.cli.views import robustness as robustness_view
    from experiments.padding.gaming import known_templates
    from experiments.padding.robustness import CoreChoices, robustness_curves, robustness_table
    from experiments.paper.text import counted
    from experiments.study.inputs import read_graphs
    from factormodels.extraction.accounting import Ledger
    from factormodels.extraction.litellm_model import LitellmSettings
    from factormodels.selection import CachedRelations

    graphs = read_graphs(file)
    judge, _ = relation_model(relations, Wishes())
    choices = CoreChoices(judge, weights, templates_known=not blind)
    claims = CachedRelations(judge if blind else known_templates(judge, graphs, appended))
    missing: Counter[str] = Counter()
    prompted = None
    if model is not None:
        settings = LitellmSettings(model, api_base)
        prompted = language_model(settings, cache, Ledger(), replay=replay)
    assessors = robustness_view.assessors_at_hand(judge, claims, prompted, missing)
    counts = [round(appended * k / 4) for k in range(5)]
    table = robustness_table(graphs, assessors, choices, appended=appended)
    curves = robustness_curves(graphs, assessors, choices, counts=counts, seed=seed)
    written = [] if out is None else robustness_view.write(table, curves, out)
    console = output()
    robustness_view.show(console, table, curves)
    for name, n in missing.items():
        if n:
            console.print(
                f"{name}: {counted(n, 'verdict')} missing in all tables and curves; they count as "
                "not supported",
                soft_wrap=True,
            )
    for path in written:
        console.print(f"wrote {path}", soft_wrap=True)
