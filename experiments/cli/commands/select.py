"""`factormodels select`: which claims of responses count, and where they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli import findings
from experiments.cli.console import messages
from experiments.cli.options import shared


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
            help="What decides entailment: lexical, model (given by --model), recorded:FILE or "
            "nli:FOLDER.",
        ),
    ] = None,
    weights: shared.ClaimWeights = "informativeness",
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
        typer.Option(min=1, max=20, metavar="N", help="Bins of relative position; 5 by default."),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Also select under uncertain redundancy, with this many sampled redundancy "
            "graphs.",
        ),
    ] = 0,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, max=2**63 - 1, metavar="N", help="Seed of intervals and graphs; 0 by default."
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="P",
            help="Smallest share of claims that must be entailed by their sentence.",
        ),
    ] = None,
    epsilon: Annotated[
        float, typer.Option(min=0, metavar="E", help="Amount subtracted from each informativeness.")
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
            help="What the labels of an NLI model mean, if their names do not say.",
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
            help="Language model that decides entailment, as litellm spells it; its key comes "
            "from the environment.",
        ),
    ] = None,
    relevance: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Language model that decides which claims are relevant to the question; "
            "others do not count.",
        ),
    ] = None,
    api_base: shared.ApiBase = None,
    cache: shared.AnswerCache = Path("answers.sqlite"),
    replay: shared.Replay = False,
    prompts: shared.PromptsFolder = None,
    out: findings.OutFolder = None,
    report: findings.ReportPage = None,
    json_: findings.Json = False,
) -> None:
    """Select the claims that count (Core) and tabulate what that changes.

    Shows the claims of each response before and after; with --out also each claim
    with its weight and the reason why it does not count. For responses with labels,
    also shows claims by sentence, and factuality by relative position, before and
    after. Responses without claims are split into sentences.

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
    from experiments.methods.select import find_selection
    from factormodels.extraction.language_model.accounting import Ledger
    from factormodels.extraction.language_model.litellm_model import LitellmSettings
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
        "bins": bins,
        "samples": samples,
        "seed": seed,
    }
    loaded = load_responses(file)
    ledger = Ledger()
    for option, name in (("model", model), ("relevance", relevance)):
        if name is not None:
            settings = LitellmSettings(name, api_base)
            answering = language_model(settings, cache, ledger, replay=replay)
            wanted[option] = WithPrompts(answering, read_prompts(prompts))
    with step_progress(messages(), "responses", len(loaded.graphs)) as advance:
        found = find_selection(
            loaded.graphs,
            file.name,
            wanted,
            remarks=loaded.remarks,
            advance=advance,
            ledger=ledger,
        )
    findings.deliver(found, out=out, report=report, json_=json_)
