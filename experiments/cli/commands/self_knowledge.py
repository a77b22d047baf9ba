"""`factormodels self-knowledge`: what a model says of its own claims, against what people say."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli import findings
from experiments.cli.commands.assess import INCOMPLETE
from experiments.cli.console import messages, output, plain_table, show_table
from experiments.cli.options import shared
from experiments.cli.options.grouped import grouped
from experiments.cli.options.model import ModelOptions
from factormodels.errors import InputError


@dataclass(frozen=True)
class AskOptions(ModelOptions):
    """Asking the model."""

    model: Annotated[
        str | None,
        typer.Option(
            "--ask",
            metavar="MODEL",
            help="Ask this model for its judgements in the paper's three settings; FILE holds its "
            "responses with labelled claims. As litellm spells it; its key comes from the "
            "environment.",
        ),
    ] = None
    extract: Annotated[
        bool,
        typer.Option(
            "--extract",
            help="First split responses without claims into claims, and label these by passages.",
        ),
    ] = False
    documents: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Documents that --extract uses for labels.")
    ] = None
    retriever: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A search instead of documents: wikipedia or google."),
    ] = None


def _column(help_text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(metavar="COLUMN", help=help_text)
    return option


@dataclass(frozen=True)
class ColumnOptions:
    """Columns of the table."""

    response: Annotated[str | None, _column("Id of the response.")] = None
    label: Annotated[str | None, _column("The human label of the claim.")] = None
    true: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD", help="A label that means true; all others are then false; repeatable."
        ),
    ] = None
    irrelevant: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD", help="A label of claims that do not count; repeatable."),
    ] = None
    judgement: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[SETTING=]COLUMN",
            help="What the model says: correct/incorrect, yes/no, A/B/C; repeatable by setting.",
        ),
    ] = None
    confidence: Annotated[str | None, _column("Its confidence, from 0 to 1.")] = None
    votes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Several answers per claim: a column of lists, or repeated, a column each.",
        ),
    ] = None
    claim: Annotated[str | None, _column("Id of the claim, if several rows are about one.")] = None
    sentence: Annotated[str | None, _column("Index of its sentence, from 1.")] = None
    sentences: Annotated[str | None, _column("Number of sentences of the response.")] = None
    position: Annotated[str | None, _column("Relative position, instead of a sentence.")] = None
    in_order: Annotated[
        bool,
        typer.Option(
            "--in-order",
            help="Claims are in the order of their response: use their order as position.",
        ),
    ] = False
    model_column: Annotated[str | None, _column("The model being judged.")] = None
    condition: Annotated[
        str | None, _column("What distinguishes answers, such as with and without retrieval.")
    ] = None
    setting: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|NAME",
            help="How the model was asked: a column, or direct_asking, question_answering or "
            "none_of_the_above.",
        ),
    ] = None


@dataclass(frozen=True)
class MeasureOptions:
    """What is measured."""

    threshold: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="T",
            help="Confidence or share of votes that counts as judged correct; by default 0.5, "
            "or a majority of votes.",
        ),
    ] = None
    sweep: Annotated[
        str | None,
        typer.Option(metavar="T,T,...", help="Other thresholds to tabulate, such as 0.5,0.7,0.9."),
    ] = None
    neither: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="How to count 'none of the above': incorrect or exclude."
        ),
    ] = "incorrect"
    interval: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Intervals over responses: bootstrap, delta, or automatic: delta under 60 "
            "responses, where it covers better.",
        ),
    ] = "automatic"


@grouped
def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Claims with a label and what the model says about each: CSV, TSV, Parquet, "
            "JSON Lines or JSON.",
        ),
    ],
    bins: shared.PositionBins = 5,
    seed: shared.BootstrapSeed = 0,
    out: findings.OutFolder = None,
    report: findings.ReportPage = None,
    json_: findings.Json = False,
    *,
    columns: ColumnOptions,
    measures: MeasureOptions,
    ask: AskOptions,
) -> None:
    """Measure Self-Known, Self-Unknown and sigma of judged claims.

    Shows, overall and by fifth of the response: factuality, SK, SU, flips, the
    share judged correct, sigma and Rogan-Gladen, with intervals over responses. Also
    tests whether sigma equals the factuality, predicts the factuality of other
    responses, shows whether SK and SU go with it, and compares models and
    conditions in pairs. Columns with an obvious name are recognised, and the command
    says which.

    [b]Examples[/b]

      factormodels self-knowledge claims.csv
      factormodels self-knowledge claims.jsonl --confidence p --threshold 0.9 \\
          --sweep 0.5,0.7,0.9 --true Y
      factormodels self-knowledge sampled.jsonl --votes answers --in-order \\
          --out results/self-knowledge --report self-knowledge.html
      factormodels self-knowledge responses.jsonl --ask openai/NAME \\
          --out results/self-knowledge
    """
    from experiments.cli.progress import activity
    from experiments.methods.self_knowledge import find_self_knowledge

    wanted = {**asdict(columns), **asdict(measures), "bins": bins, "seed": seed}
    wanted["model"] = wanted.pop("model_column")
    wanted["sweep"] = findings.numbers(measures.sweep, "--sweep")
    if ask.model is not None:
        _ask(file, wanted, ask, out, report, json_)
        return
    if ask.extract or ask.documents is not None or ask.retriever is not None:
        raise InputError(
            "--extract, --documents and --retriever are for a model; name it with --ask"
        )
    with activity(messages()) as progress:
        found = find_self_knowledge(file, wanted, progress)
    findings.deliver(found, out=out, report=report, json_=json_)


def _ask(
    file: Path,
    wanted: dict[str, Any],
    ask: AskOptions,
    out: Path | None,
    report: Path | None,
    json_: bool,
) -> None:
    """Ask the model of its responses, and measure what it says."""
    from experiments.asking.session import language_model
    from experiments.assess.batch import BatchOptions, responses_under_way
    from experiments.assess.inputs import load_responses
    from experiments.cli.progress import activity, response_progress
    from experiments.cli.tables import ledger_at_limit
    from experiments.methods.self_judged_claims import (
        Asking,
        ask_claims,
        check_askable,
        planned_calls,
    )
    from experiments.methods.self_knowledge import find_in_answers, settings_of_asked
    from factormodels.extraction.language_model.accounting import Consumption, Ledger
    from factormodels.extraction.prompts.replaced import read_prompts
    from factormodels.extraction.self_judgement import SETTINGS
    from factormodels.io.files import prepare_folder, write_text
    from factormodels.io.json_text import encode

    settings = settings_of_asked(wanted)
    prompts, budget, ledger = read_prompts(ask.prompts), ask.budget(), Ledger()
    graphs = load_responses(file).graphs
    asking = Asking(
        settings=(wanted["setting"],) if wanted["setting"] else tuple(SETTINGS),
        extract=ask.extract,
        documents=ask.documents,
        retriever=ask.retriever,
        cache=ask.cache,
        replay=ask.replay,
        budget=budget,
        price_search=ask.price_search,
    )
    check_askable(graphs, asking)
    if ask.dry_run:
        table = plain_table(["stage"], ["calls"])
        for stage, calls in planned_calls(graphs, asking).items():
            table.add_row(stage, f"{calls:,}")
        show_table(output(), table)
        if ask.extract:
            output().print("and those that extract and label the claims of the others")
        return
    asked_model = language_model(
        ask.settings(), ask.cache, ledger, replay=ask.replay, budget=budget
    )
    if out is not None:
        prepare_folder(out)
    options = BatchOptions(
        None if out is None else out / "responses.jsonl", responses_under_way(ask.concurrency)
    )
    with ledger_at_limit(messages(), ledger):
        asked = ask_claims(
            graphs,
            Consumption(asked_model),
            prompts,
            asking,
            options,
            response_progress(messages(), len(graphs), ledger),
        )
    with activity(messages()) as progress:
        found = find_in_answers(asked, file.name, settings, ledger, progress)
    if out is not None:
        # The same command reads it without a model.
        path = out / "claims.jsonl"
        write_text(path, "".join(f"{encode(row, str(path))}\n" for row in asked.rows))
    findings.deliver(found, out=out, report=report, json_=json_)
    if asked.failures:
        raise typer.Exit(INCOMPLETE)
