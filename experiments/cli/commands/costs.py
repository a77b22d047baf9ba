"""`factormodels costs`: calls and searches of assessors against the length of a response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.console import heading, output, plain_table, show_written
from experiments.cli.options import shared
from experiments.findings.text import number
from factormodels.errors import InputError
from factormodels.io.files import prepare_folder, write_text

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.assess.costs import StrideRow


def command(
    sentences: Annotated[
        int,
        typer.Option(min=2, metavar="N", help="Sentences in the response; also the longest drawn."),
    ] = 30,
    claims: Annotated[
        float, typer.Option(min=0.1, metavar="X", help="Claims per sentence (M/N).")
    ] = 4.2,
    queries: Annotated[int, typer.Option(min=1, metavar="Q", help="Searches per claim (q).")] = 1,
    unsure: Annotated[
        float,
        typer.Option(
            min=0, max=1, metavar="P", help="Share of claims that FaStfact has to verify (p)."
        ),
    ] = 0.35,
    stride: Annotated[int, typer.Option(min=1, metavar="W", help="Sentences per call (w).")] = 10,
    per_claim: Annotated[int, typer.Option(min=0, metavar="K", help="Contexts per claim (k).")] = 3,
    distinct: Annotated[
        float, typer.Option(min=0, max=1, metavar="X", help="Share of distinct contexts, m/(kn).")
    ] = 0.8,
    ablate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Split the responses of this file or dataset into claims with every stride of "
            "--strides.",
        ),
    ] = None,
    strides: Annotated[
        str, typer.Option(metavar="LIST", help="Sentences per call to compare; all means one call.")
    ] = "1,2,5,10,all",
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Language model for --ablate, as litellm spells it."),
    ] = None,
    api_base: shared.ApiBase = None,
    cache: shared.AnswerCache = Path("answers.sqlite"),
    replay: shared.Replay = False,
    prompts: shared.PromptsFolder = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write costs.csv, .pdf and .png (and strides.csv) to this folder."
        ),
    ] = None,
) -> None:
    """Count the calls and searches that assessors need for a response.

    Counts for FactScore, SAFE, VeriScore and FaStfact follow FaStfact's table 6;
    those for FR1, FR2 and FR3 the pairs that they ask about. The figure draws calls
    against the number of sentences. With --ablate, a language model splits responses
    with several strides, to compare calls, claims and tokens (FaStfact, figure 3).

    [b]Examples[/b]

      factormodels costs
      factormodels costs --sentences 51 --stride 28 --out results/costs
      factormodels costs --ablate demonstration --model openai/NAME \\
          --strides 1,5,all
    """
    from calibration.table_markup import csv_text
    from experiments.assess.costs import METHODS, Load, cost_figure, load_of_length

    settings = Load(0, 0, queries, unsure, stride, per_claim)
    load = load_of_length(sentences, settings, claims_per_sentence=claims, distinct_share=distinct)
    numbers = {name: cost(load) for name, cost in METHODS.items()}
    columns = ("extracting", "verifying", "searches", "calls")
    rows = [
        {"assessor": name, **{column: getattr(cost, column) for column in columns}}
        for name, cost in numbers.items()
    ]
    # Before anything is printed: it may be refused.
    compared = (
        None
        if ablate is None
        else _ablation(ablate, strides, model, api_base, cache, replay, prompts)
    )
    console = output()
    console.print(
        f"N = {load.sentences} sentences, M = n = {load.claims} claims, m = {load.distinct} "
        f"contexts, q = {queries}, p = {unsure:g}, w = {stride}, k = {per_claim}",
        soft_wrap=True,
    )
    table = plain_table(["assessor"], columns)
    for name, cost in numbers.items():
        table.add_row(name, *(number(float(getattr(cost, column)), 0) for column in columns))
    console.print(table)
    if compared is not None:
        _show_strides(console, compared)
    if out is None:
        return
    from calibration.figures import save_figure

    prepare_folder(out)
    write_text(out / "costs.csv", csv_text(rows))
    figure = cost_figure(
        settings, longest=sentences, distinct_share=distinct, claims_per_sentence=claims
    )
    written = [out / "costs.csv"]
    if compared is not None:
        written.append(out / "strides.csv")
        write_text(written[-1], csv_text([asdict(row) for row in compared]))
    show_written(console, [*written, *save_figure(figure, out / "costs")])


def _ablation(
    file: Path,
    strides: str,
    model: str | None,
    api_base: str | None,
    cache: Path,
    replay: bool,
    prompts: Path | None,
) -> list[StrideRow]:
    from experiments.asking.session import language_model
    from experiments.assess.costs import stride_ablation
    from experiments.assess.setup import stride_of
    from experiments.study.inputs import read_graphs
    from factormodels.extraction.language_model.accounting import Ledger
    from factormodels.extraction.language_model.litellm_model import LitellmSettings
    from factormodels.extraction.prompts.replaced import WithPrompts, read_prompts

    lengths = [stride_of(text.strip(), "--strides") for text in strides.split(",")]
    if model is None:
        raise InputError("--ablate needs a language model; name one with --model")
    graphs = read_graphs(file)
    for graph in graphs:
        if not graph.response.strip():
            raise InputError(
                f"--ablate {file}: the response {graph.id!r} has no text to take claims from; give "
                "a file with the texts of its responses"
            )
    answering = language_model(LitellmSettings(model, api_base), cache, Ledger(), replay=replay)
    asked = WithPrompts(answering, read_prompts(prompts))
    return stride_ablation(graphs, asked, lengths)


def _show_strides(console: Console, rows: Sequence[StrideRow]) -> None:
    console.print()
    heading(console, "extraction by stride")
    titles = ("stride", "calls", "N/w", "claims", "|Δ claims|", "tokens in", "out", "failed")
    table = plain_table(right=titles)
    for row in rows:
        difference = row.claim_difference
        table.add_row(
            "all" if row.stride is None else str(row.stride),
            f"{row.calls:,}",
            f"{row.expected:,}",
            f"{row.claims:,}",
            number(difference, 1),
            f"{row.prompt_tokens:,}",
            f"{row.completion_tokens:,}",
            f"{row.failures:,}",
        )
    console.print(table)
