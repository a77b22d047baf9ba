"""`factormodels assess`: from the text of a response to the probability of every claim."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli.console import heading, messages, output, plain_table, show_table
from experiments.cli.options.claims import ClaimOptions
from experiments.cli.options.core import CoreOptions
from experiments.cli.options.evidence import EvidenceOptions
from experiments.cli.options.grouped import grouped
from experiments.cli.options.judgement import JudgementOptions
from experiments.cli.options.model import ModelOptions
from experiments.cli.options.output import OutputOptions
from experiments.cli.options.responses import ResponseOptions
from experiments.cli.options.web import WebOptions
from experiments.findings.text import (
    ABSENT,
    counted,
    duration,
    in_sample_remark,
    interval,
    number,
    verdict,
)
from factormodels.claims import Context, RelationKind
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.asking.session import Session
    from experiments.evaluators.estimate import StageEstimate
    from experiments.evaluators.response import AssessedResponse, AssessmentView
    from experiments.evaluators.settings import AssessSettings
    from inference.backend import Backend

INCOMPLETE = 1
"""Exit code of a batch in which responses failed or have no posterior under some variant, or more
is missing than `MOST_MISSING`."""

MOST_MISSING = 0.05
"""The share of relations, or of verdicts, that may be missing of an assessment that is complete."""

_TEXT_SHOWN = 160
_MEASURES = (
    ("precision", "Pr"),
    ("recall_at_k", "R_K"),
    ("f1_at_k", "F1@K"),
    ("entropy", "E"),
    ("expected_precision", "E[Pr]"),
    ("human_precision", "human Pr"),
    ("precision_mae", "MAE"),
    ("f1", "F1"),
    ("brier", "Brier"),
    ("accuracy", "accuracy"),
)


@grouped
def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Responses: a text; a table with a row per response (CSV, TSV, JSON, JSON "
            "Lines, Parquet, Arrow); a folder of texts or of a saved dataset; fact graphs; or "
            "an embedded dataset. Use - for standard input.",
        ),
    ],
    responses: ResponseOptions,
    model: ModelOptions,
    claims: ClaimOptions,
    evidence: EvidenceOptions,
    web: WebOptions,
    judgement: JudgementOptions,
    core: CoreOptions,
    output_to: OutputOptions,
) -> None:
    """Assess a response: its claims, the evidence, the probability of each claim.

    Splits the response into claims, finds passages, asks a relation model which of
    them support or contradict which claim, infers the probability of every claim,
    and shows what each passage changes. With --out you can interrupt a batch at any
    time: the same command continues where it stopped. Every other command can read
    the output.

    Without a language model, claims are sentences and relations are lexical: a
    baseline that compares words and numbers, and is often wrong.

    [b]Examples[/b]

      factormodels assess demonstration --response demo-01-marie-curie \\
          --retriever local
      factormodels assess answer.txt --query "Who was she?" --documents notes
      factormodels assess answers.jsonl --documents notes --out assessed.jsonl
      factormodels assess answers.csv --response answer --question prompt \\
          --documents notes --out assessed.jsonl
      factormodels assess answers.jsonl --model openai/NAME \\
          --retriever wikipedia --dry-run
      factormodels assess answers.jsonl --model openai/NAME \\
          --retriever wikipedia --out out.jsonl
      factormodels assess demonstration --variant FR1 --variant FR2 --variant FR3
      factormodels assess demonstration --model openai/NAME --assessor factscore
      factormodels assess demonstration --retriever local --core \\
          --domain things --no-faithfulness
    """
    from experiments.asking.session import asking
    from experiments.cli.progress import TerminalWatcher
    from experiments.evaluators.settings import AssessSettings
    from experiments.progress import watched

    groups = (responses, model, claims, evidence, web, judgement, core)
    given = {name: value for group in groups for name, value in asdict(group).items()}
    given |= {"retry_failed": output_to.retry_failed, "partial": output_to.partial}
    settings = AssessSettings.of(given)
    with watched(TerminalWatcher(messages())), asking(settings) as session:
        _assess(file, settings, output_to, session)


def _assess(
    file: Path, settings: AssessSettings, output_to: OutputOptions, session: Session
) -> None:
    from collections import Counter
    from contextlib import ExitStack
    from functools import partial

    from experiments.cli.assessment_tables import show_responses, show_unanswered
    from experiments.cli.progress import announced, show_ledger, step_progress
    from experiments.evaluators.batch import BatchOptions, assess_responses, responses_under_way
    from experiments.evaluators.core import with_selection
    from experiments.evaluators.estimate import estimate
    from experiments.evaluators.setup import make_plan
    from experiments.evaluators.stage_remarks import stage_remarks
    from factormodels.extraction.retrieval.web import WebRetriever
    from inference.warm_up import warm_up

    ledger = session.ledger
    loaded = settings.load(file)
    graphs = loaded.graphs
    plan = with_selection(make_plan(graphs, settings, session), graphs, settings, session.model)
    algorithm = plan.views[0].backend
    remarks, console = messages(), output()
    for remark in loaded.remarks:
        remarks.print(remark, soft_wrap=True)
    if settings.dry_run:
        rows = estimate(graphs, plan.choices)
        _show_estimate(console, rows)
        _show_inference(console, rows, algorithm)
        return

    def prepare() -> None:
        with announced(remarks):
            warm_up(algorithm)

    found: list[FactGraph] = []
    pages = None
    if output_to.report:
        from experiments.pages.assessed import report_folder, report_of_graphs
        from experiments.pages.writing import check_replaceable

        pages = report_folder(output_to.out or Path("assessed"))
        check_replaceable(pages)
    local = plan.choices.asks_nobody
    with ExitStack() as places:
        elsewhere = None
        if output_to.dask is not None:
            from experiments.runner.assessment_on_dask import on_cluster

            elsewhere = places.enter_context(
                on_cluster(output_to.dask, algorithm, plan.stages, local=local)
            )
        report = places.enter_context(session.responses(len(graphs)))
        batch = assess_responses(
            graphs,
            plan.stages,
            plan.views,
            plan.settings,
            BatchOptions(
                output_to.out,
                1 if local else responses_under_way(session.calls),
                settings.retry_failed,
                settings.partial,
                prepare,
            ),
            report=report,
            # A single response is shown in full; of a batch only the measures are.
            keep=found.append if len(graphs) == 1 or output_to.report else None,
            elsewhere=elsewhere,
        )
    for graph in found if len(graphs) == 1 else ():
        for view in plan.views:
            _show_atoms(console, graph, view.variant)
            console.print()
        _show_verdicts(console, graph)
        for line in stage_remarks(graph):
            console.print(line, soft_wrap=True)
        console.print()
    if len(graphs) > 1 and batch.responses:
        show_responses(console, batch.responses, plan.views, settings.assessors)
    _show_measures(console, batch.responses, plan.views, settings.assessors)
    if settings.core:
        _show_core(console, batch.responses, plan.views, settings.assessors)
    show_ledger(console, ledger)
    if plan.choices.relations == "model":
        # Where they are from is known only now: a server may refuse log-probabilities.
        origins: Counter[str] = sum((Counter(one.origins) for one in batch.responses), Counter())
        told = ", ".join(f"{count:,} {name}" for name, count in sorted(origins.items()))
        remarks.print(f"{plan.choices.model}: probabilities of relations: {told or 'none'}")
    if isinstance(plan.choices.searcher, WebRetriever):
        store = plan.choices.searcher.store
        asked, price = store.asked, settings.price_search
        paid = "" if price is None else f" ({store.paid:.4f} US dollars)"
        remarks.print(
            f"asked the web for {asked['searches']:,} searches{paid}, {asked['pages']:,} pages"
        )
    if batch.resumed:
        remarks.print(f"{batch.resumed:,} responses were finished by an earlier run")
    failures = sum(response.failures for response in batch.responses)
    lost = {
        what: tuple(sum(getattr(one, name) for one in batch.responses) for name in counts)
        for what, counts in (
            ("relation", ("missing", "asked")),
            ("verdict", ("unjudged", "to_judge")),
        )
    }
    lacking = [
        f"{missing:,} of {counted(asked, what)} missing"
        for what, (missing, asked) in lost.items()
        if missing
    ]
    if lacking or failures:
        lacking.append(f"{counted(failures, 'failure')} in other stages")
        remarks.print(", ".join(lacking), soft_wrap=True)
    incomplete = any(missing > MOST_MISSING * asked for missing, asked in lost.values())
    if incomplete:
        again = "" if local else "; with --retry-failed the same command asks for it again"
        remarks.print(
            f"more than {MOST_MISSING:.0%} of what was asked for is missing: the assessment is "
            f"incomplete{again}",
            soft_wrap=True,
        )
    show_unanswered(remarks, batch.responses, plan.views)
    for line in batch.failures():
        remarks.print(line, soft_wrap=True)
    if output_to.out is not None and batch.responses:
        remarks.print(
            f"wrote {output_to.out}: {counted(len(batch.responses), 'response')}", soft_wrap=True
        )
    if pages is not None and found:
        written = report_of_graphs(
            found,
            file.stem,
            pages,
            failed=batch.failed,
            watch=partial(step_progress, remarks, "pages"),
        )
        remarks.print(f"wrote {written[0]}: {counted(len(written), 'page')}", soft_wrap=True)
    if batch.failed or incomplete or any(response.errors for response in batch.responses):
        raise typer.Exit(INCOMPLETE)


def _show_atoms(console: Console, graph: FactGraph, variant: str) -> None:
    """Print the atoms of an assessed response under a variant, each with its evidence below.

    Evidence: the context, its relation and the relation's probability; "change" is what the
    posterior loses when the context is taken away, with its standard error if it is estimated.
    """
    from experiments.evaluators.response import METADATA_KEY, by_strength

    view = graph.metadata[METADATA_KEY][variant]
    heading(console, f"{graph.id}: {variant}, {view['encoding']}, {_backend(view)}")
    if "error" in view:
        console.print(view["error"])
        return
    contexts = {context.id: context for context in graph.contexts}
    labelled = any(atom.label is not None for atom in graph.atoms)
    table = plain_table([""], ["P(true)"], [""])
    table.add_column("change", justify="right", no_wrap=True)
    if labelled:
        table.add_column("label", no_wrap=True)
    table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)
    for atom in graph.atoms:
        judged = view["atoms"][atom.id]
        label = [] if not labelled else ["" if atom.label is None else str(atom.label).lower()]
        known = atom.id not in view["unanswered"]
        told = [f"{judged['p']:.3f}", verdict(judged["p"])] if known else ["missing", ""]
        row = [atom.id, *told, "", *label]
        table.add_row(*row, _short(atom.text))
        for item in by_strength(judged["evidence"]):
            against = item["relation"] == RelationKind.CONTRADICTION
            what = f"{item['relation']} {item['probability']:.2f}"
            change = "" if item["change"] is None else f"{item['change']:+.3f}"
            if "change_error" in item:
                change += f" ± {item['change_error']:.3f}"
            row = [f"  {item['context']}", "-" if against else "+", what, change]
            source = _source(contexts[item["context"]])
            table.add_row(*row, *([""] if labelled else []), source, style="dim")
    show_table(console, table)


def _backend(view: Mapping[str, Any]) -> str:
    """The backend of a view, with what it chose, if it is one that chooses."""
    name, chosen = view["backend"], view.get("answered_by", view["backend"])
    return str(name) if name == chosen else f"{name} ({chosen}, {view['status']})"


def _show_verdicts(console: Console, graph: FactGraph) -> None:
    """Print what assessors say of the atoms of a response; nothing if there are none."""
    from factormodels.recorded_verdicts import ASSESSORS_KEY

    assessors = graph.metadata.get(ASSESSORS_KEY, {})
    if not assessors:
        return
    heading(console, f"{graph.id}: assessors")
    table = plain_table(["", *assessors], rest="text")
    for atom in graph.atoms:
        verdicts = (facts["verdicts"].get(atom.id) for facts in assessors.values())
        table.add_row(
            atom.id,
            *("missing" if verdict is None else verdict["label"] for verdict in verdicts),
            _short(atom.text),
        )
    show_table(console, table)


def _show_core(
    console: Console,
    responses: Sequence[AssessedResponse],
    views: Sequence[AssessmentView],
    assessors: Sequence[str],
) -> None:
    """Print the measures of the claims that count alone, with the K of all claims."""
    from experiments.evaluators.response import summarise_judged, with_core

    kept = with_core(responses)
    all_counted = [one for one in responses if one.counts is not None]
    console.print()
    console.print(
        f"Core: {sum(sum(one.counts or ()) for one in kept):,} of "
        f"{sum(len(one.labels) for one in all_counted):,} claims count; "
        f"{counted(len(all_counted) - len(kept), 'response')} keep none and are left out below",
        soft_wrap=True,
    )
    names = [*(view.variant for view in views), *assessors]
    own = [one for one in summarise_judged(responses, names).summaries.values() if one is not None]
    if kept and own:
        _show_measures(console, kept, views, assessors, k=own[0].k)


def _show_measures(
    console: Console,
    responses: Sequence[AssessedResponse],
    views: Sequence[AssessmentView],
    assessors: Sequence[str] = (),
    k: str | float = "median",
) -> None:
    """Print the measures of every variant and assessor over all responses; scores with labels."""
    from calibration.scores.measures import entropy_warnings
    from experiments.evaluators.response import summarise_judged

    named = [(view.variant, (view.variant, view.encoding, view.backend.name)) for view in views]
    named += [(name, (ABSENT, ABSENT, name)) for name in assessors]
    with entropy_warnings() as misordered:
        compared = summarise_judged(responses, [name for name, _ in named], k)
    summaries = [(name, texts, compared.summaries[name]) for name, texts in named]
    known = [(name, texts, summary) for name, texts, summary in summaries if summary is not None]
    if not known:
        return
    shown = [
        (measure, title)
        for measure, title in _MEASURES
        if any(not math.isnan(compared.measure(name, measure)) for name, *_ in known)
    ]
    first = known[0][2]
    heading(
        console,
        f"{counted(first.n_responses, 'response')}, {counted(first.n_atoms, 'atom')}, "
        f"{first.n_labelled:,} labelled",
    )
    table = plain_table(
        ["variant", "encoding", "backend"], ["#S", "#C", "#U", *(title for _, title in shown)]
    )
    for name, texts, summary in known:
        counts = (summary.supported, summary.contradicted, summary.undecided)
        table.add_row(
            *texts,
            *(number(count, 1) for count in counts),
            *(number(compared.measure(name, measure)) for measure, _ in shown),
        )
    show_table(console, table)
    of = "a response" if k == "median" else "a response, counting all of them"
    console.print(f"K of R_K and F1@K is {first.k:g}, the median number of claims of {of}")
    for name, ranges in compared.ranges.items():
        told = ", ".join(
            f"{dict(_MEASURES)[measure]} {interval(*ends)}" for measure, ends in ranges.items()
        )
        console.print(
            f"{name}, over all claims and whatever the missing answers would have been: {told}",
            soft_wrap=True,
        )
    if compared.left_out:
        console.print(
            f"{counted(compared.left_out, 'claim')} on which not every row has a verdict are left "
            "out of all of them",
            soft_wrap=True,
        )
    if compared.in_sample:
        console.print(in_sample_remark(compared.in_sample), soft_wrap=True)
    for _, texts, judged in summaries:
        if judged is None:
            console.print(f"{texts[-1]} has no verdict at all, and no row", soft_wrap=True)
    if misordered:
        console.print(
            f"E does not rank by truth in {len(misordered)} of {len(known)} rows, because it falls "
            "again for atoms with P below 1/e; use mean_surprisal or expected_precision in --out."
        )


def _source(context: Context) -> str:
    text = context.content
    return _short(f"{context.title}: {text}" if context.title else text)


def _short(text: str) -> str:
    return textwrap.shorten(text, _TEXT_SHOWN, placeholder=" ...")


def _show_estimate(console: Console, rows: Sequence[StageEstimate]) -> None:
    """Print an estimate, the stages that are not chosen dimmed, and the sum of those that are."""
    from experiments.evaluators.costs import CLAIMS_PER_SENTENCE

    heading(console, "dry run: nothing was sent")
    thinks = any(row.thoughts for row in rows)
    titles = ["calls", "tokens in", "tokens out", "cost (US$)"]
    more = ["thoughts, at most", "their cost (US$)"] if thinks else []
    table = plain_table(["stage"], [*titles, *more])
    for row in rows:
        calls = f"{'' if row.exact else 'about '}{row.calls:,}"
        cells = _estimate_cells(row, calls)
        cells += [f"{row.thoughts:,}", _dollars(row.thoughts_cost)] if thinks else []
        table.add_row(*cells, style=None if row.chosen else "dim")
    chosen = [row for row in rows if row.chosen]
    sums = [f"{sum(getattr(row, name) for row in chosen):,}" for name in _TOKENS]
    last = ["all", "", *sums, _dollars(_total(row.cost for row in chosen))]
    if thinks:
        asked = [row for row in chosen if row.thoughts]
        last += [f"{sum(row.thoughts for row in asked):,}"]
        last += [_dollars(_total(row.thoughts_cost for row in asked))]
    table.add_row(*last)
    show_table(console, table)
    if thinks:
        console.print(
            "thoughts: what the model may spend on reasoning before its answers, if it uses all "
            "the room that it is given; mostly it takes a small part of it.",
            soft_wrap=True,
        )
    console.print(
        "tokens: characters / 4. Answers in the cache are not taken off. Where claims are not yet "
        f"known: {CLAIMS_PER_SENTENCE:g} per sentence, and no two passages alike, as far as there "
        "are so many. Verdicts of assessors count at their longest."
    )


def _show_inference(console: Console, rows: Sequence[StageEstimate], backend: Backend) -> None:
    """Print what exact inference in the largest response would cost, by variant."""
    from experiments.evaluators.estimate import RELATED_SHARE
    from inference.auto import Auto

    known = [(row, row.inference) for row in rows if row.inference is not None]
    if not known:
        return
    console.print()
    first = known[0][1]
    heading(
        console,
        f"exact inference in the largest response: {counted(first.atoms, 'claim')} and "
        f"{counted(first.contexts, 'passage')}, {RELATED_SHARE:.0%} of other pairs related",
    )
    table = plain_table(
        ["variant"], ["induced width", "if all pairs are related", "time, about"], ["answer"]
    )
    for row, expected in known:
        prediction = expected.prediction
        refused = isinstance(backend, Auto) and backend.exact().refuses(prediction)
        answer = f"{backend.name}: bounds, estimates" if refused else backend.name
        if isinstance(backend, Auto) and not refused:
            answer = f"{backend.name}: exact"
        cells = (f"{prediction.induced_width}", f"{expected.widest}", duration(prediction.seconds))
        style = None if row.chosen else "dim"
        table.add_row(row.stage.removeprefix("relations "), *cells, answer, style=style)
    show_table(console, table)


_TOKENS = ("prompt_tokens", "completion_tokens")


def _total(costs: Iterable[float | None]) -> float | None:
    """Sum of costs; None if one of them is not known."""
    known = list(costs)
    return None if None in known else sum(one for one in known if one is not None)


def _dollars(cost: float | None) -> str:
    return ABSENT if cost is None else f"{cost:.4f}"


def _estimate_cells(row: StageEstimate, calls: str) -> list[str]:
    cost = _dollars(row.cost)
    name = row.stage if row.chosen else f"({row.stage})"
    return [name, calls, f"{row.prompt_tokens:,}", f"{row.completion_tokens:,}", cost]
