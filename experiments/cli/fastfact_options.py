"""Options of `factormodels fastfact`, in groups by what they are about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer


@dataclass(frozen=True)
class ExtractionOptions:
    """Extraction and pre-verification."""

    stride: Annotated[
        str, typer.Option(metavar="W", help="Sentences per call that lists claims, or all.")
    ] = "all"
    context: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What that call is shown beside the question: its chunk of sentences, or the "
            "whole response with it.",
        ),
    ] = "chunk"
    theta: Annotated[
        float,
        typer.Option(min=0, max=1, metavar="X", help="Confidence above which a claim is skipped."),
    ] = 0.995
    audit: Annotated[
        float,
        typer.Option(
            min=0, max=1, metavar="SHARE", help="Share of the skipped claims verified anyway."
        ),
    ] = 0.0
    target_error: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="With --audit 1: find the theta with at most this share of skipped claims wrong.",
        ),
    ] = None
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the audit's draw.")] = 0
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
        int, typer.Option(min=1, metavar="N", help="Pieces of these shown to the verifier.")
    ] = 10
    words: Annotated[int, typer.Option(min=1, metavar="N", help="Words of a piece.")] = 250
    overlap: Annotated[
        int, typer.Option(min=0, metavar="N", help="Words that neighbouring pieces share.")
    ] = 40
    search_base: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Address of the search, for a server of one's own; its API alike."
        ),
    ] = None


@dataclass(frozen=True)
class ScoreOptions:
    """Score."""

    k_prime: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="Claims that people find in a response: a number, or the column that holds it; "
            "the column k_prime, if there is one.",
        ),
    ] = None
    gamma: Annotated[float, typer.Option(metavar="X", help="How fast recall falls off K'.")] = 0.1
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Group by it; model and benchmark; repeatable."),
    ] = None


@dataclass(frozen=True)
class FastFactOutputOptions:
    """Output."""

    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the judged responses there, as JSON Lines."),
    ] = None
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed",
            help="Ask again for what an interrupted batch noted as failed or missing.",
        ),
    ] = False
    partial: Annotated[
        bool,
        typer.Option(
            "--partial", help="Judge responses that an outage cut off by what there is of them."
        ),
    ] = False
    tables: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write every table there, as CSV.")
    ] = None
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all of it as one page for a browser.")
    ] = None
    json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False
