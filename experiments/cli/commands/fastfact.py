"""`factormodels fastfact`: FaStfact's verdicts and score on one's own responses."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli.commands.assess import INCOMPLETE
from experiments.cli.console import messages, output, show_written
from experiments.cli.options.core import CoreOptions
from experiments.cli.options.fastfact import (
    ExtractionOptions,
    FastFactOutputOptions,
    PageOptions,
    ScoreOptions,
)
from experiments.cli.options.grouped import grouped
from experiments.cli.options.model import ModelOptions
from experiments.cli.options.responses import ResponseOptions
from experiments.cli.options.web import WebOptions
from experiments.findings.text import counted
from factormodels.errors import InputError


@grouped
def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Responses: a text, a table of any kind, a folder of texts, fact graphs, or "
            "an embedded dataset. Use - for standard input.",
        ),
    ],
    responses: ResponseOptions,
    model: ModelOptions,
    extraction: ExtractionOptions,
    pages: PageOptions,
    web: WebOptions,
    score: ScoreOptions,
    core: CoreOptions,
    output_to: FastFactOutputOptions,
) -> None:
    """Judge responses as FaStfact does: F1@K', with calls, searches and cost by stage.

    One call splits a chunk of sentences into claims and says what the model knows
    about each; claims it is sure of are skipped. For the others it searches, shows
    the best pieces of the pages to a verifier, and gets one of five labels. F1@K'
    needs a K' counted by people; without it, precision and the curve of recall over
    K' are printed instead. With --out you can interrupt a run at any time: the same
    command continues where it stopped.

    [b]Examples[/b]

      factormodels fastfact answers.jsonl --model openai/NAME --documents notes
      factormodels fastfact answers.jsonl --model openai/NAME \\
          --retriever google --k-prime 22 --out judged.jsonl
      factormodels fastfact answers.jsonl --model openai/NAME \\
          --documents notes --stride 10 --audit 0.2 --tables tables
      factormodels fastfact answers.jsonl --model openai/NAME \\
          --documents notes --dry-run
    """
    from experiments.asking.session import language_model
    from experiments.assess.batch import BatchOptions, responses_under_way
    from experiments.assess.fastfact import PageEvidence, Scoring, plan_fastfact, run_fastfact
    from experiments.assess.fastfact_tables import guaranteed_threshold
    from experiments.assess.setup import stride_of
    from experiments.cli.assessment_tables import show_failed
    from experiments.cli.fastfact_display import (
        evaluation_as_json,
        show_bound,
        show_evaluation,
        threshold_sentence,
    )
    from experiments.cli.progress import response_progress
    from experiments.cli.tables import ledger_at_limit
    from experiments.methods.fastfact import fastfact_findings
    from factormodels.extraction.fastfact import FastFactSettings
    from factormodels.extraction.language_model.accounting import Consumption, Ledger
    from factormodels.extraction.prompts.replaced import read_prompts

    if model.model is None:
        raise InputError("FaStfact asks a language model; name one with --model")
    if extraction.target_error is not None and extraction.audit < 1:
        raise InputError("--target-error needs every skipped claim verified; add --audit 1")
    prompts, budget = read_prompts(model.prompts), model.budget()
    loaded = responses.load(file)
    shown: Any = extraction.context
    plan = plan_fastfact(
        loaded.graphs,
        FastFactSettings(
            stride_of(extraction.stride, "--stride"),
            shown,
            extraction.theta,
            extraction.audit,
            extraction.seed,
        ),
        PageEvidence(
            **asdict(pages),
            # No file is made where nothing is sent.
            cache=None if model.dry_run else model.cache,
            replay=model.replay,
            budget=budget,
            price_search=model.price_search,
            http=web.settings(),
        ),
        Scoring(score.k_prime, score.gamma, tuple(score.by or ("model", "benchmark"))),
    )
    remarks, console = messages(), output()
    for remark in loaded.remarks:
        remarks.print(remark, soft_wrap=True)
    if model.dry_run:
        show_bound(console, plan)
        return
    ledger = Ledger()
    answering = Consumption(
        language_model(model.settings(), model.cache, ledger, replay=model.replay, budget=budget)
    )
    monitor = response_progress(remarks, len(loaded.graphs), ledger)
    options = BatchOptions(
        output_to.out,
        responses_under_way(model.concurrency),
        output_to.retry_failed,
        output_to.partial,
    )
    with ledger_at_limit(remarks, ledger):
        found = run_fastfact(
            plan,
            answering,
            ledger,
            prompts,
            options,
            monitor,
            core=core.settings(),
            failure_types=extraction.failure_types,
        )
    if output_to.json:
        console.print(evaluation_as_json(found), soft_wrap=True, markup=False, highlight=False)
    else:
        show_evaluation(console, found)
    if extraction.target_error is not None:
        chosen = guaranteed_threshold(found.claims, extraction.target_error)
        remarks.print(threshold_sentence(chosen, extraction.target_error), soft_wrap=True)
    if output_to.tables is not None:
        show_written(remarks, found.save(output_to.tables))
    if output_to.report is not None:
        asked = {**asdict(plan.settings), "gamma": score.gamma, "model": model.model}
        findings = fastfact_findings(found, file.name, asked)
        show_written(remarks, [findings.report(output_to.report)])
    show_failed(remarks, found.failures)
    if output_to.out is not None and found.graphs:
        remarks.print(
            f"wrote {output_to.out}: {counted(len(found.graphs), 'response')}", soft_wrap=True
        )
    if found.failures:
        raise typer.Exit(INCOMPLETE)
