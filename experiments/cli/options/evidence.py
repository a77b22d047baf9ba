"""Where evidence comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from experiments.cli.options import shared


@dataclass(frozen=True)
class EvidenceOptions:
    """Evidence."""

    retriever: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Evidence: given (as recorded), local (--documents, or the input's own passages), "
            "dense (the same by embeddings), wikipedia, or google (key in SERPER_API_KEY).",
        ),
    ] = None
    documents: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Documents to search: .txt, .md, .html, .pdf, .jsonl; or a dataset."
        ),
    ] = None
    queries: Annotated[
        bool, typer.Option("--queries", help="Let the language model write the searches.")
    ] = False
    question_contexts: Annotated[
        bool,
        typer.Option(
            "--question-contexts",
            help="Also search for the question (used by FR2 and FR3).",
        ),
    ] = False
    top_k: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="Passages per claim; 3 by default, 5 with Google."),
    ] = None
    reading: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What to read of a web page: snippet, head (its first 4,000 characters) or "
            "chunks (the best parts).",
        ),
    ] = "head"
    summarise: Annotated[
        bool,
        typer.Option(
            "--summarise",
            help="Let the language model cut each passage down to what matters for its claims; "
            "its confidence scales the passage's prior.",
        ),
    ] = False
    embeddings: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For --retriever dense: a folder of sentence-transformers, or a model as "
            "litellm spells it.",
        ),
    ] = None
    embeddings_base: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Address of an embedding server with a compatible API."),
    ] = None
    search_base: shared.SearchBase = None
    price_embeddings: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="USD",
            help="Price of a million embedded tokens; litellm's price if not given.",
        ),
    ] = None
