"""How claims are related to evidence and judged by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from experiments.cli.options import shared


@dataclass(frozen=True)
class JudgementOptions:
    """Relations and judgement."""

    relations: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Relation model: lexical, model, recorded:FILE or nli:FOLDER."
        ),
    ] = None
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to get probabilities from the language model: automatic (whatever it "
            "allows), logprobs, verbalised or samples.",
        ),
    ] = "automatic"
    window: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="TOKENS",
            help="How much the language model reads at once; longer passages are read in "
            "overlapping parts.",
        ),
    ] = None
    least: Annotated[
        float,
        typer.Option(
            min=0, max=1, metavar="P", help="Smallest probability at which a relation counts."
        ),
    ] = 0.5
    variant: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="FR1, FR2 (default) or FR3; repeatable."),
    ] = None
    assessors: Annotated[
        list[str] | None,
        typer.Option(
            "--assessor",
            metavar="NAME",
            help="Let the language model also judge the claims by a prompt: factscore, "
            "factverify, veriscore, evidence-and-knowledge, own-knowledge or fastfact; or "
            "safe, which rewrites claims to stand alone and searches in steps; repeatable.",
        ),
    ] = None
    encoding: shared.Encoding = "implication"
    backend: shared.BackendName = "auto"
    set_: shared.BackendSettings = None
