"""An assessment as a person reads it: atoms with what speaks for and against them, measures."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calibration.scores.measures import entropy_warnings
from experiments.assess.response import (
    METADATA_KEY,
    AssessedResponse,
    AssessmentView,
    summarise_judged,
)
from experiments.cli.console import heading, show_table
from experiments.cli.views.posterior import verdict
from experiments.paper.text import ABSENT, counted, number, plain_table
from factormodels.claims import Context, RelationKind
from factormodels.extraction.accounting import Ledger
from factormodels.extraction.pipeline import ASSESSORS_KEY
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    from rich.console import Console

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


def show_atoms(console: Console, graph: FactGraph, variant: str) -> None:
    """Print the atoms of an assessed response under a variant, each with its evidence below.

    Evidence: the context, its relation and the relation's probability; "change" is what the
    posterior loses when the context is taken away.
    """
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
        for item in sorted(judged["evidence"], key=_strength):
            against = item["relation"] == RelationKind.CONTRADICTION
            what = f"{item['relation']} {item['probability']:.2f}"
            change = "" if item["change"] is None else f"{item['change']:+.3f}"
            row = [f"  {item['context']}", "-" if against else "+", what, change]
            source = _source(contexts[item["context"]])
            table.add_row(*row, *([""] if labelled else []), source, style="dim")
    show_table(console, table)


def show_verdicts(console: Console, graph: FactGraph) -> None:
    """Print what assessors say of the atoms of a response; nothing if there are none."""
    assessors = graph.metadata.get(ASSESSORS_KEY, {})
    if not assessors:
        return
    heading(console, f"{graph.id}: assessors")
    table = plain_table()
    table.add_column("", no_wrap=True)
    for name in assessors:
        table.add_column(name, no_wrap=True)
    table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)
    for atom in graph.atoms:
        verdicts = (facts["verdicts"].get(atom.id) for facts in assessors.values())
        table.add_row(
            atom.id,
            *("missing" if verdict is None else verdict["label"] for verdict in verdicts),
            _short(atom.text),
        )
    show_table(console, table)


def show_measures(
    console: Console,
    responses: Sequence[AssessedResponse],
    views: Sequence[AssessmentView],
    assessors: Sequence[str] = (),
) -> None:
    """Print the measures of every variant and assessor over all responses; scores with labels."""
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
    table = plain_table()
    for title in ("variant", "encoding", "backend"):
        table.add_column(title, no_wrap=True)
    for title in ("#S", "#C", "#U", *(title for _, title in shown)):
        table.add_column(title, justify="right", no_wrap=True)
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


def stage_remarks(graph: FactGraph) -> list[str]:
    """Return one line per stage: what it did with a response, and what is missing."""
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


def show_ledger(console: Console, ledger: Ledger) -> None:
    """Print what a run asked language models and paid, by stage; nothing if it asked nothing."""
    if not ledger.stages:
        return
    table = plain_table()
    table.add_column("stage", no_wrap=True)
    for title in ("calls", "cached", "failed", "tokens in", "tokens out", "cost (US$)"):
        table.add_column(title, justify="right", no_wrap=True)
    rows = [*ledger.stages.items(), *([("all", ledger.total)] if len(ledger.stages) > 1 else [])]
    for stage, usage in rows:
        counts = (usage.calls, usage.cached, usage.failures)
        tokens = (usage.prompt_tokens, usage.completion_tokens)
        cost = "unknown" if usage.unpriced else f"{usage.cost:.4f}"
        table.add_row(stage, *(f"{count:,}" for count in (*counts, *tokens)), cost)
    show_table(console, table)


def _strength(item: dict[str, Any]) -> float:
    size: float = item["probability"] if item["change"] is None else item["change"]
    return -abs(size)


def _source(context: Context) -> str:
    return _short(f"{context.title}: {context.text}" if context.title else context.text)


def _short(text: str) -> str:
    return textwrap.shorten(text, _TEXT_SHOWN, placeholder=" ...")
