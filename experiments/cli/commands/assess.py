"""`factormodels assess`: from the text of a response to the probability of every claim."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli import options
from experiments.cli.console import heading, messages, output, plain_table, show_table
from experiments.paper.text import ABSENT, counted, number, verdict
from factormodels.claims import Context, RelationKind
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.assess.estimate import StageEstimate
    from experiments.assess.response import AssessedResponse, AssessmentView

INCOMPLETE = 1
"""Exit code of a batch in which some responses failed."""

_TEXT_SHOWN = 160
_MEASURES = (
    ("precision", "Pr"),
    ("f1_at_k", "F1@K"),
    ("entropy", "E"),
    ("expected_precision", "E[Pr]"),
    ("human_precision", "human Pr"),
    ("precision_mae", "MAE"),
    ("f1", "F1"),
    ("brier", "Brier"),
    ("accuracy", "accuracy"),
)


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
    api_base: options.ApiBase = None,
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
    replay: options.Replay = False,
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
    encoding: options.Encoding = "implication",
    backend: options.BackendName = "exact",
    set_: options.BackendSettings = None,
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
    from experiments.assess.setup import AssessmentOptions, language_model, make_plan
    from experiments.cli.progress import announced, response_progress
    from experiments.cli.tables import show_ledger
    from experiments.study.backend_settings import build_backend, parse_settings
    from factormodels.extraction.accounting import Ledger
    from factormodels.extraction.consumption import Consumption
    from factormodels.extraction.litellm_model import LitellmSettings
    from inference.warm_up import warm_up

    algorithm = build_backend(backend, parse_settings(set_ or ()))
    graphs = load_responses(file, query=query, topic=topic, response=response, passages=passages)
    ledger = Ledger()
    consumption = None
    # A model in name only: a dry run needs neither a key nor the library.
    if model is not None and dry_run:
        consumption = Consumption(NamedModel(model))
    elif model is not None:
        settings = LitellmSettings(model, api_base, concurrency)
        consumption = Consumption(language_model(settings, cache, ledger, replay=replay))
    wanted = AssessmentOptions(
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
        # No file is made where nothing is sent.
        cache=None if dry_run else cache,
        replay=replay,
    )
    plan = make_plan(graphs, wanted, algorithm)
    remarks, console = messages(), output()
    if dry_run:
        _show_estimate(console, estimate(graphs, plan.choices))
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
            # A single response is shown in full; of a batch only the measures are.
            keep=shown.append if len(graphs) == 1 else None,
            consumption=consumption,
        )
    for graph in shown:
        for view in plan.views:
            _show_atoms(console, graph, view.variant)
            console.print()
        _show_verdicts(console, graph)
        for line in _stage_remarks(graph):
            console.print(line, soft_wrap=True)
        console.print()
    _show_measures(console, batch.responses, plan.views, plan.choices.assessors)
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


def _show_atoms(console: Console, graph: FactGraph, variant: str) -> None:
    """Print the atoms of an assessed response under a variant, each with its evidence below.

    Evidence: the context, its relation and the relation's probability; "change" is what the
    posterior loses when the context is taken away.
    """
    from experiments.assess.response import METADATA_KEY, by_strength

    view = graph.metadata[METADATA_KEY][variant]
    heading(console, f"{graph.id}: {variant}, {view['encoding']}, {view['backend']}")
    if "error" in view:
        console.print(view["error"])
        return
    contexts = {context.id: context for context in graph.contexts}
    labelled = any(atom.label is not None for atom in graph.atoms)
    table = plain_table()
    table.add_column("", no_wrap=True)
    table.add_column("P(true)", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("change", justify="right", no_wrap=True)
    if labelled:
        table.add_column("label", no_wrap=True)
    table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)
    for atom in graph.atoms:
        judged = view["atoms"][atom.id]
        label = [] if not labelled else ["" if atom.label is None else str(atom.label).lower()]
        row = [atom.id, f"{judged['p']:.3f}", verdict(judged["p"]), "", *label]
        table.add_row(*row, _short(atom.text))
        for item in by_strength(judged["evidence"]):
            against = item["relation"] == RelationKind.CONTRADICTION
            what = f"{item['relation']} {item['probability']:.2f}"
            change = "" if item["change"] is None else f"{item['change']:+.3f}"
            row = [f"  {item['context']}", "-" if against else "+", what, change]
            source = _source(contexts[item["context"]])
            table.add_row(*row, *([""] if labelled else []), source, style="dim")
    show_table(console, table)


def _show_verdicts(console: Console, graph: FactGraph) -> None:
    """Print what assessors say of the atoms of a response; nothing if there are none."""
    from factormodels.extraction.pipeline import ASSESSORS_KEY

    assessors = graph.metadata.get(ASSESSORS_KEY, {})
    if not assessors:
        return
    heading(console, f"{graph.id}: assessors")
    table = plain_table(["", *assessors])
    table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)
    for atom in graph.atoms:
        verdicts = (facts["verdicts"].get(atom.id) for facts in assessors.values())
        table.add_row(
            atom.id,
            *("missing" if verdict is None else verdict["label"] for verdict in verdicts),
            _short(atom.text),
        )
    show_table(console, table)


def _show_measures(
    console: Console,
    responses: Sequence[AssessedResponse],
    views: Sequence[AssessmentView],
    assessors: Sequence[str] = (),
) -> None:
    """Print the measures of every variant and assessor over all responses; scores with labels."""
    from calibration.scores.measures import entropy_warnings
    from experiments.assess.response import summarise_judged

    named = [(view.variant, (view.variant, view.encoding, view.backend.name)) for view in views]
    named += [(name, (ABSENT, ABSENT, name)) for name in assessors]
    with entropy_warnings() as misordered:
        summaries = [(texts, summarise_judged(responses, name)) for name, texts in named]
    known = [(texts, summary) for texts, summary in summaries if summary is not None]
    if not known:
        return
    shown = [
        (name, title)
        for name, title in _MEASURES
        if any(not math.isnan(getattr(summary, name)) for _, summary in known)
    ]
    first = known[0][1]
    heading(
        console,
        f"{counted(first.n_responses, 'response')}, {counted(first.n_atoms, 'atom')}, "
        f"{first.n_labelled:,} labelled",
    )
    table = plain_table(
        ["variant", "encoding", "backend"], ["#S", "#C", "#U", *(title for _, title in shown)]
    )
    for texts, summary in known:
        counts = (summary.supported, summary.contradicted, summary.undecided)
        table.add_row(
            *texts,
            *(number(count, 1) for count in counts),
            *(number(getattr(summary, name)) for name, _ in shown),
        )
    show_table(console, table)
    if misordered:
        console.print(
            f"E is no order of truth in {len(misordered)} of {len(known)} rows: it falls again for "
            "atoms with P below 1/e; --out has mean_surprisal and expected_precision."
        )


def _stage_remarks(graph: FactGraph) -> list[str]:
    """One line per stage: what it did with a response, and what is missing."""
    from factormodels.extraction.pipeline import ASSESSORS_KEY

    lines = []
    facts: dict[str, Any] = dict(graph.metadata)
    if "retrieval" in facts:
        found = facts["retrieval"]
        lines.append(
            f"{found['retriever']}: {found['queries']} queries, {found['passages']} passages, "
            f"{found['contexts']} contexts after duplicates, {len(found['failures'])} failures"
        )
    if "relations" in facts:
        asked = facts["relations"]
        kinds = ", ".join(
            f"{asked[kind]} {kind}" for kind in ("entailment", "contradiction", "neutral")
        )
        lines.append(
            f"{asked['model']}: {asked['asked']} pairs asked, {kinds} ({asked['made_neutral']} "
            f"of them for a probability below {asked['least']:g}), {len(asked['missing'])} missing"
        )
    for name, found in facts.get(ASSESSORS_KEY, {}).items():
        lines.append(
            f"{name}: {len(found['verdicts'])} verdicts of {found['model']}, "
            f"{len(found['missing'])} missing"
        )
    return lines


def _source(context: Context) -> str:
    return _short(f"{context.title}: {context.text}" if context.title else context.text)


def _short(text: str) -> str:
    return textwrap.shorten(text, _TEXT_SHOWN, placeholder=" ...")


def _show_estimate(console: Console, rows: Sequence[StageEstimate]) -> None:
    """Print an estimate, the stages that are not chosen dimmed, and the sum of those that are."""
    from experiments.assess.estimate import ATOMS_PER_SENTENCE

    heading(console, "dry run: nothing was sent")
    table = plain_table(["stage"], ["calls", "tokens in", "tokens out", "cost (US$)"])
    for row in rows:
        calls = f"{'' if row.exact else 'about '}{row.calls:,}"
        table.add_row(*_estimate_cells(row, calls), style=None if row.chosen else "dim")
    show_table(console, table)
    console.print(
        "tokens: characters / 4. Answers in the cache are not taken off. Where claims are not yet "
        f"known: {ATOMS_PER_SENTENCE:g} per sentence, and no two passages alike. Verdicts of "
        "assessors count at their longest."
    )


def _estimate_cells(row: StageEstimate, calls: str) -> list[str]:
    cost = ABSENT if row.cost is None else f"{row.cost:.4f}"
    name = row.stage if row.chosen else f"({row.stage})"
    return [name, calls, f"{row.prompt_tokens:,}", f"{row.completion_tokens:,}", cost]
