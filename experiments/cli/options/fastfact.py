"""Options of `factormodels fastfact`, in groups by what they are about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from experiments.cli import findings
from experiments.cli.options import shared


@dataclass(frozen=True)
class ExtractionOptions:
    """Extraction and pre-verification."""

    stride: shared.Stride = "all"
    context: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What such a call sees beside the question: only its chunk of sentences, or "
            "the whole response too.",
        ),
    ] = "chunk"
    theta: Annotated[
        float,
        typer.Option(min=0, max=1, metavar="X", help="Confidence above which a claim is skipped."),
    ] = 0.995
    audit: Annotated[
        float,
        typer.Option(
            min=0, max=1, metavar="SHARE", help="Share of skipped claims to verify anyway."
        ),
    ] = 0.0
    target_error: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="With --audit 1: find the theta at which at most this share of skipped claims "
            "is wrong.",
        ),
    ] = None
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Seed for drawing the audited claims.")
    ] = 0
    failure_types: Annotated[
        bool,
        typer.Option(
            "--failure-types",
            help="Also judge which extracted claims are unverifiable, redundant or missing.",
        ),
    ] = False


@dataclass(frozen=True)
class PageOptions:
    """Pages and their pieces."""

    retriever: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Evidence: local (--documents, or the input's own passages), wikipedia, or google "
            "(key in SERPER_API_KEY).",
        ),
    ] = None
    documents: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Documents to search: .txt, .md, .html, .jsonl; or a dataset."
        ),
    ] = None
    pages: Annotated[int, typer.Option(min=1, metavar="N", help="Pages read per claim.")] = 5
    pieces: Annotated[
        int, typer.Option(min=1, metavar="N", help="Pieces of the pages shown to the verifier.")
    ] = 10
    words: Annotated[int, typer.Option(min=1, metavar="N", help="Words per piece.")] = 250
    overlap: Annotated[
        int, typer.Option(min=0, metavar="N", help="Words shared by neighbouring pieces.")
    ] = 40
    search_base: shared.SearchBase = None


@dataclass(frozen=True)
class ScoreOptions:
    """Score."""

    k_prime: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="How many claims people find in a response: a number, or the column that "
            "holds it (k_prime by default, if there is one).",
        ),
    ] = None
    gamma: Annotated[
        float, typer.Option(metavar="X", help="How fast recall falls off from K'.")
    ] = 0.1
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column to group by (model and benchmark by default); repeatable.",
        ),
    ] = None


@dataclass(frozen=True)
class FastFactOutputOptions:
    """Output."""

    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the judged responses to this file, as JSON Lines."
        ),
    ] = None
    retry_failed: shared.RetryFailed = False
    partial: Annotated[
        bool,
        typer.Option(
            "--partial", help="Judge responses that an outage cut off by whatever was obtained."
        ),
    ] = False
    tables: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write every table to this folder, as CSV.")
    ] = None
    report: findings.ReportPage = None
    json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False
