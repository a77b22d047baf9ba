"""`factormodels assess`: from the text of a response to the probability of every claim."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

INCOMPLETE = 1
"""Exit code of a batch in which some responses failed."""


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A response: text, or JSON (one, or one per line) with response, query, topic and "
            "id; or fact graphs, or an embedded dataset. - is standard input.",
        ),
    ],
    query: Annotated[str | None, typer.Option(metavar="TEXT", help="What was asked.")] = None,
    topic: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What it is about; searched with each claim.")
    ] = None,
    response: Annotated[
        str | None, typer.Option(metavar="ID", help="The response to take from many.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Language model as litellm spells it, such as openai/NAME; its key comes from the "
            "environment.",
        ),
    ] = None,
    api_base: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of a compatible server.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, metavar="N", help="Calls under way at a time.")
    ] = 16,
    cache: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Where answers and searches are kept: none is repeated."),
    ] = Path("answers.sqlite"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show calls, tokens and cost by stage; send nothing.")
    ] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Take every answer from the cache; ask nobody.")
    ] = False,
    atoms: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Claims: given (as recorded), model (listed by the language model), or sentences "
            "(each sentence one claim).",
        ),
    ] = None,
    stride: Annotated[
        str, typer.Option(metavar="W", help="Sentences per call that lists claims, or all.")
    ] = "1",
    revise: Annotated[
        bool, typer.Option("--revise", help="Rewrite claims to be understood alone.")
    ] = False,
    queries: Annotated[
        bool, typer.Option("--queries", help="Let the language model write the searches.")
    ] = False,
    retriever: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Evidence: given (as recorded), local (--documents, or the input's own passages), "
            "wikipedia, or google (key in SERPER_API_KEY).",
        ),
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Documents to search: .txt, .md, .html, .jsonl; or a dataset."
        ),
    ] = None,
    passages: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON Lines of passages for FActScore's atoms."),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="Passages per claim; 3, of Google 5."),
    ] = None,
    reading: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Of a web page: snippet, head (its first 4,000 characters) or chunks (the best).",
        ),
    ] = "head",
    relations: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Relation model: lexical, model, recorded:FILE or nli:FOLDER."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The language model's probabilities: logprobs, verbalised or samples.",
        ),
    ] = "logprobs",
    variant: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="FR1, FR2 (default) or FR3; repeatable."),
    ] = None,
    assessor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Have the language model judge the claims by a prompt too: factscore, "
            "factverify, veriscore, own-knowledge or fastfact; repeatable.",
        ),
    ] = None,
    encoding: Annotated[
        str, typer.Option(metavar="NAME", help="implication or conditional.")
    ] = "implication",
    backend: Annotated[
        str, typer.Option(metavar="NAME", help="Algorithm; `factormodels backends` lists them.")
    ] = "exact",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the backend; repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the graphs with posteriors there, as JSON Lines."),
    ] = None,
) -> None:
    """Assess a response: its claims, the evidence, the probability of each claim.

    Takes the response apart, finds passages, asks a relation model which of them
    support or contradict which claim, and infers the probability of every claim;
    shows what each passage changes. With --out a batch may be interrupted at any
    time: the same command goes on where it stopped. The output can be read by
    every other command.

    Without a language model, claims are sentences and relations are lexical: a
    baseline that compares words and numbers, and is often wrong.

    [b]Examples[/b]

      factormodels assess demonstration --response demo-01-marie-curie \\
          --retriever local
      factormodels assess answer.txt --query "Who was she?" --documents notes
      factormodels assess answers.jsonl --documents notes --out assessed.jsonl
      factormodels assess answers.jsonl --model openai/NAME \\
          --retriever wikipedia --dry-run
      factormodels assess answers.jsonl --model openai/NAME \\
          --retriever wikipedia --out out.jsonl
      factormodels assess demonstration --variant FR1 --variant FR2 --variant FR3
      factormodels assess demonstration --model openai/NAME --assessor factscore
    """
    from experiments.assess.batch import assess_responses
    from experiments.assess.estimate import NamedModel, estimate
    from experiments.assess.inputs import load_responses
    from experiments.assess.setup import Wishes, language_model, make_plan
    from experiments.cli.console import messages, output
    from experiments.cli.progress import announced, response_progress
    from experiments.cli.views.assessment import (
        show_atoms,
        show_ledger,
        show_measures,
        show_verdicts,
        stage_remarks,
    )
    from experiments.cli.views.estimate import show_estimate
    from experiments.paper.text import counted
    from experiments.study.backend_settings import build_backend, parse_settings
    from factormodels.extraction.accounting import Ledger
    from factormodels.extraction.consumption import Consumption
    from factormodels.extraction.litellm_model import LitellmSettings
    from factormodels.fact_graph import FactGraph
    from inference.warm_up import warm_up

    algorithm = build_backend(backend, parse_settings(set_ or ()))
    graphs = load_responses(file, query=query, topic=topic, response=response, passages=passages)
    ledger = Ledger()
    consumption = None
    if model is not None and dry_run:
        consumption = Consumption(NamedModel(model))
    elif model is not None:
        settings = LitellmSettings(model, api_base, concurrency)
        consumption = Consumption(language_model(settings, cache, ledger, replay=replay))
    wishes = Wishes(
        model=consumption,
        stride=stride,
        revise=revise,
        queries=queries,
        method=method,
        atoms=atoms,
        retriever=retriever,
        documents=documents,
        top_k=top_k,
        reading=reading,
        relations=relations,
        variants=tuple(variant or ("FR2",)),
        encoding=encoding,
        assessors=tuple(assessor or ()),
        cache=None if dry_run else cache,
        replay=replay,
    )
    plan = make_plan(graphs, wishes, algorithm)
    remarks, console = messages(), output()
    if dry_run:
        show_estimate(console, estimate(graphs, plan.choices))
        return
    with announced(remarks):
        warm_up(algorithm)
    shown: list[FactGraph] = []
    with response_progress(remarks, len(graphs), ledger) as report:
        batch = assess_responses(
            graphs,
            plan.stages,
            plan.views,
            plan.settings,
            out=out,
            report=report,
            keep=shown.append if len(graphs) == 1 else None,
            consumption=consumption,
        )
    for graph in shown:
        for view in plan.views:
            show_atoms(console, graph, view.variant)
            console.print()
        show_verdicts(console, graph)
        for line in stage_remarks(graph):
            console.print(line, soft_wrap=True)
        console.print()
    show_measures(console, batch.responses, plan.views, plan.choices.assessors)
    show_ledger(console, ledger)
    if batch.resumed:
        remarks.print(f"{batch.resumed:,} responses were finished by an earlier run")
    missing = sum(response.missing for response in batch.responses)
    failures = sum(response.failures for response in batch.responses)
    unjudged = sum(response.unjudged for response in batch.responses)
    if missing or failures or unjudged:
        verdicts = f"{unjudged:,} verdicts missing, " if unjudged else ""
        remarks.print(
            f"{missing:,} relations missing, {verdicts}{failures:,} failures in other stages"
        )
    for name, reason in batch.failed:
        remarks.print(f"{name} failed: {reason}", soft_wrap=True)
    if out is not None:
        remarks.print(f"wrote {out}: {counted(len(batch.responses), 'response')}", soft_wrap=True)
    if batch.failed:
        raise typer.Exit(INCOMPLETE)
