"""Table of a session's calls to language models and their cost."""

from __future__ import annotations

from experiments.findings.findings import Findings
from experiments.findings.table import Column, Table, columns_as, data_frame
from factormodels.extraction.language_model.accounting import Ledger, StageUsage
from factormodels.nouns import counted


def ledger_table(ledger: Ledger, n_responses: int | None = None) -> Table:
    """Table of calls and costs with a row per stage; empty if nothing was asked.

    The original cost of answers from the cache is in a separate column.

    Args:
        ledger: the calls.
        n_responses: number of responses that the calls were about; None if they were about none.
    """
    rows = [*ledger.stages.items(), *([("all", ledger.total)] if len(ledger.stages) > 1 else [])]
    names = {
        "calls": "calls",
        "cached": "cached",
        "failures": "failed",
        "prompt_tokens": "tokens in",
        "completion_tokens": "tokens out",
        "cost": "cost (US$)",
    }
    if ledger.total.prefix_tokens:
        names |= {"prefix_tokens": "in prefix cache"}
    if ledger.total.cached:
        names |= {
            "cached_prompt_tokens": "cached in",
            "cached_completion_tokens": "cached out",
            "cached_cost": "cached cost (US$)",
        }
    frame = data_frame(
        [
            {"stage": stage}
            | {name: getattr(usage, name) for name in names}
            # The cost of a model with an unknown price is undefined.
            | ({"cost": None} if usage.unpriced else {})
            | ({"cached_cost": None} if usage.cached_unpriced else {})
            for stage, usage in rows
        ],
        ["stage", *names],
    )
    columns = (
        Column(name, title, show=_cost if name.endswith("cost") else "{:,}".format, right=True)
        for name, title in names.items()
    )
    of = "" if n_responses is None else f" for {counted(n_responses, 'response')}"
    return Table(
        frame,
        (Column("stage", "stage"), *columns),
        f"Calls, tokens and cost{of}, by stage.",
        note=_prefix_note(ledger.total),
    )


def _prefix_note(total: StageUsage) -> str:
    """Sentence on the prefixes that the server cached; empty if it reports none."""
    if not total.prefix_tokens:
        return ""
    share = total.prefix_tokens / total.taken.prompt_tokens
    of = "tokens in plus cached in" if total.cached else "tokens in"
    return f"In prefix cache: tokens that the server already had in its cache, {share:.0%} of {of}."


def cost_tables(ledger: Ledger, n_responses: int | None = None) -> dict[str, Table]:
    """The ledger's table, as `ledger_table`, as a table of findings; empty without a model."""
    return {"cost": ledger_table(ledger, n_responses)} if ledger.stages else {}


def planned_findings(source: str, ledger: Ledger) -> Findings:
    """Findings of a dry run: the planned calls, a row per stage."""
    rows = [(stage, usage.failures) for stage, usage in ledger.stages.items()]
    frame = data_frame(rows, ["stage", "calls"])
    return Findings(
        source=source,
        sentences=("Nothing was sent; calls that depend on answers are not counted.",),
        tables={"calls": Table(frame, columns_as("stage | calls:0"), "Calls that would be made.")},
    )


def _cost(dollars: float | None) -> str:
    return "unknown" if dollars is None or dollars != dollars else f"{dollars:.4f}"
