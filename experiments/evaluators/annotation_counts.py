"""Tables of annotators' counts in FaStfact-Bench, for files with counts and no claims."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

from experiments.findings.table import Column, Table, columns_as
from factormodels.io.formats.fastfact_counts import (
    AnnotationCounts,
    GroupedCounts,
    read,
    recognize,
)
from factormodels.io.json import decode
from factormodels.io.source.files import read_text
from factormodels.nouns import counted

OVERALL = "Overall"

UNSUPPORTED = ("refuted", "not enough evidence", "conflicting evidence", "unsupported")
"""Labels of unsupported claims in the annotation protocol."""

JUDGED = ("supported", *UNSUPPORTED, "irrelevant")
"""Labels of the claims in FaStfact's table 7."""

_LABELS = {
    "supported": ("supported",),
    "unsupported": UNSUPPORTED,
    "refuted": ("refuted",),
    "not_enough_evidence": ("not enough evidence",),
    "conflicting_evidence": ("conflicting evidence",),
    "others": ("unsupported",),
    "irrelevant": ("irrelevant",),
}
_OPERATIONS = ("removed", "added", "revised", "unchanged")


def read_counts(file: str | os.PathLike[str]) -> GroupedCounts | None:
    """Read the counts of annotations of a file; None for other kinds of files.

    Raises:
        InputError: if the file cannot be read, or its counts are malformed.
    """
    text = read_text(file)
    # A file with a record per line has no counts, and cannot be decoded as a single value.
    if not text.lstrip().startswith("{") or text.partition("\n")[0].rstrip().endswith("}"):
        return None
    value = decode(text, file)
    return read(value, file) if recognize(value) else None


def shares_of(counts: AnnotationCounts) -> dict[str, float]:
    """Claims per response, and claims of each kind in percent of the claims counted in table 7."""
    n_judged = sum(counts.labels.get(label, 0) for label in JUDGED)
    shares = {
        name: 100 * sum(counts.labels.get(label, 0) for label in labels) / n_judged
        if n_judged
        else math.nan
        for name, labels in _LABELS.items()
    }
    return {"claims": n_judged / counts.n_responses, **shares}


def counts_tables(counts: GroupedCounts) -> dict[str, Table]:
    """Annotators' actions per response, overall, by benchmark and by model.

    Tables: `counts`, by benchmark; `counts-by-model`; `tokens`, if the file has them. There are no
    intervals, because sums do not show the variation over responses.
    """
    tables = {"counts": _table(counts.overall, counts.by_benchmark, "benchmark")}
    if counts.by_model:
        tables["counts-by-model"] = _table(counts.overall, counts.by_model, "model")
    if counts.overall.tokens:
        rows = [
            {"stage": stage, "tokens": tokens} for stage, tokens in counts.overall.tokens.items()
        ]
        columns = columns_as("stage | tokens:0 tokens per response")
        tables["tokens"] = Table(rows, columns, "Tokens of the pipeline, from the file.")
    return tables


def counts_sentences(counts: GroupedCounts) -> Iterator[str]:
    """Yield remarks on counts without claims."""
    overall = counts.overall
    done = ", ".join(f"{overall.operations.get(name, 0):,} {name}" for name in _OPERATIONS)
    yield f"{counted(overall.n_responses, 'annotated response')}: {done} claims."
    yield (
        "The file has sums and no claims, so there are no intervals, no F1@K' and no "
        "differences of counts by response."
    )
    left_out = {label: n for label, n in overall.labels.items() if label not in JUDGED and n}
    if left_out:
        listed = ", ".join(f"{n:,} {label}" for label, n in left_out.items())
        yield f"Labels that no share includes: {listed}."
    if pending := overall.agreements.get("verification_pending", 0):
        yield f"{counted(pending, 'verdict')} pending: not compared."


def _table(overall: AnnotationCounts, parts: Mapping[str, AnnotationCounts], by: str) -> Table:
    groups = {OVERALL: overall, **parts}
    values = {name: _statistics(group) for name, group in groups.items()}
    rows: list[dict[str, Any]] = [
        {"statistic": statistic, **{name: of[statistic] for name, of in values.items()}}
        for statistic in values[OVERALL]
    ]
    sizes = ", ".join(f"{name} {group.n_responses}" for name, group in groups.items())
    return Table(
        rows,
        (*columns_as("statistic"), *(Column(name, name, digits=2) for name in groups)),
        f"Annotators' actions by {by}, pooled over responses (FaStfact, tables 2 and 7).",
        note=f"Responses: {sizes}. Kinds of claims in percent of the supported, unsupported and "
        "irrelevant ones; operations per response.",
    )


def _statistics(counts: AnnotationCounts) -> dict[str, float]:
    shares = shares_of(counts)
    agreed = counts.agreements.get("agreed", 0)
    compared = agreed + counts.agreements.get("disagreed_corrected", 0)
    return {
        "claims per response": shares["claims"],
        **{
            f"{name.replace('_', ' ')}, %": value
            for name, value in shares.items()
            if name != "claims"
        },
        **{
            f"# {name}": counts.operations.get(name, 0) / counts.n_responses for name in _OPERATIONS
        },
        "verdict that people said to agree with, %": 100 * agreed / compared
        if compared
        else math.nan,
    }
