"""`factormodels select`: which claims of labelled responses count, and where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from experiments.cli import findings, options
from experiments.cli.console import heading, messages, output, plain_table, show_table, show_written
from experiments.paper.text import number
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.padding.selection_study import SelectionStudy
    from experiments.padding.uncertain_selection import UncertainRow
    from factormodels.extraction.language_model import LanguageModel


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Responses with the texts of their claims, or as text: FActScore's JSON Lines, "
            "fact graphs, an embedded dataset, a table or a text. Labels are not needed.",
        ),
    ],
    relations: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Who entails whom: lexical, model (that of --model), recorded:FILE, nli:FOLDER.",
        ),
    ] = None,
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
    bins: Annotated[
        int | None,
        typer.Option(min=1, max=20, metavar="N", help="Bins of relative position; 5."),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Also select under uncertain redundancy, and sample so many redundancy graphs.",
        ),
    ] = 0,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**63 - 1, metavar="N", help="Seed of intervals and graphs; 0."),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, metavar="P", help="Least share of claims that their sentence entails."
        ),
    ] = None,
    epsilon: Annotated[
        float, typer.Option(min=0, metavar="E", help="Taken off each informativeness.")
    ] = 0.01,
    cap: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Relation model whose entailment caps informativeness at 0."
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL=RELATION,...",
            help="What the labels of an NLI model mean, where their names do not tell.",
        ),
    ] = None,
    graded: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Relation model that gives P(c given h), as one trained on UNLI."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Language model that says who entails whom, as litellm spells it; its key comes "
            "from the environment.",
        ),
    ] = None,
    relevance: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Language model that says which claims bear on the question; others do not count.",
        ),
    ] = None,
    api_base: options.ApiBase = None,
    cache: options.AnswerCache = Path("answers.sqlite"),
    replay: options.Replay = False,
    prompts: options.PromptsFolder = None,
    out: findings.OutFolder = None,
    report: findings.ReportPage = None,
    json_: findings.Json = False,
) -> None:
    """Select the claims that count (Core) and tabulate what that changes.

    By response: claims before and after, and with --out each claim with its weight
    and why it does not count. Of responses with labels also claims by the sentence
    that they are from, and factuality by relative position, before and after.
    Responses without claims are taken apart into sentences.

    [b]Examples[/b]

      factormodels select ChatGPT.jsonl
      factormodels select ChatGPT.jsonl --weights uniform --rule both \\
          --out results/select
      factormodels select demonstration --domain things --samples 200
      factormodels select answers.jsonl --model openai/NAME \\
          --relevance openai/NAME
    """
    from experiments.assess.inputs import load_responses
    from experiments.assess.setup import language_model
    from experiments.cli.progress import step_progress
    from experiments.cli.tables import show_ledger
    from experiments.methods.select import SelectSettings, find_selection
    from factormodels.extraction.accounting import Ledger
    from factormodels.extraction.litellm_model import LitellmSettings
    from factormodels.extraction.prompts.replaced import WithPrompts, read_prompts

    wanted: dict[str, Any] = {
        "relations": relations,
        "labels": [part for part in (labels or "").split(",") if part],
        "weights": weights,
        "rule": rule,
        "domain": domain,
        "templates": None if templates is None else str(templates),
        "share": share,
        "epsilon": epsilon,
        "cap": cap,
        "graded": graded,
    }
    loaded = load_responses(file)
    graphs = loaded.graphs
    labelled = _has_labels(graphs)
    for option, value in (("--samples", samples or None), ("--bins", bins), ("--seed", seed)):
        if value is not None and (json_ or report is not None or not labelled):
            why = (
                "is about labelled claims that say their sentence, and there are none"
                if not labelled
                else "is about the tables of the terminal; leave --json and --report out"
            )
            raise InputError(f"{option} {why}")
    ledger = Ledger()
    asked: dict[str, LanguageModel] = {}
    for option, name in (("model", model), ("relevance", relevance)):
        if name is not None:
            settings = LitellmSettings(name, api_base)
            answering = language_model(settings, cache, ledger, replay=replay)
            asked[option] = WithPrompts(answering, read_prompts(prompts))
    wanted = {**wanted, **asked}
    if json_ or report is not None or not labelled:
        with step_progress(messages(), "responses", len(graphs)) as advance:
            found = find_selection(
                graphs, file.name, wanted, remarks=loaded.remarks, advance=advance
            )
        findings.deliver(found, out=out, report=report, json_=json_)
        if not json_:
            show_ledger(output(), ledger)
        return
    from calibration.self_knowledge import IntervalSettings
    from experiments.padding import selection_study, uncertain_selection

    chosen = SelectSettings(**{**wanted, "labels": tuple(wanted["labels"] or ())}).choices()
    if relevance is not None:
        raise InputError(
            "--relevance: the tables of labelled claims do not ask for it; add --json or --report"
        )
    study = selection_study.selection_study(
        graphs,
        chosen.core,
        source=file,
        intervals=IntervalSettings(seed=seed or 0),
        n_positions=bins or 5,
    )
    written = []
    if out is not None:
        # Which claims count and why, as of responses without labels.
        own = find_selection(graphs, file.name, wanted, remarks=loaded.remarks)
        written = [*own.save(out), *selection_study.write(study, out, file.stem)]
    console = output()
    _show_study(console, study)
    if samples:
        rows = uncertain_selection.uncertain_rows(
            graphs, chosen.core, samples=samples, seed=seed or 0
        )
        console.print()
        _show_uncertain(console, rows)
    show_ledger(console, ledger)
    show_written(console, written)


def _has_labels(graphs: Sequence[FactGraph]) -> bool:
    """Whether a claim has a label and says its sentence, so that positions can be told."""
    return any(
        (atom.label is not None or atom.annotation) and atom.sentence is not None
        for graph in graphs
        for atom in graph.atoms
    )


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
