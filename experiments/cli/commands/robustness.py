"""`factormodels robustness`: how scores stand up to padding, with and without selection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.console import heading, messages, output, plain_table, show_written
from experiments.cli.options import shared
from experiments.findings.text import counted, number
from factormodels.errors import InputError, unknown_name
from factormodels.io.files import prepare_folder, write_text

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.padding.assessors import Assessor
    from experiments.padding.robustness import CurveRow, GainRow, TableRow
    from factormodels.extraction.language_model import LanguageModel
    from factormodels.extraction.relation_models.base import RelationModel
    from factormodels.fact_graph import FactGraph


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Responses with texts: fact graphs, with labels or without, a table or texts; an "
            "embedded dataset.",
        ),
    ] = Path("demonstration"),
    relations: shared.EntailmentModel = "lexical",
    weights: shared.ClaimWeights = "informativeness",
    blind: Annotated[
        bool,
        typer.Option(
            "--blind/--templates-known",
            help="Judge the padding by its words alone, or recognise its templates.",
        ),
    ] = True,
    verifier: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The assessor whose verdicts stand for labels. Without it people's labels count; "
            "where there are none, FR2 on the recorded relations, or on those of --relations.",
        ),
    ] = None,
    paraphrases: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Also repeat claims as paraphrases written by this language model."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Language model for the prompt-based assessors, as litellm spells it; its key "
            "comes from the environment.",
        ),
    ] = None,
    api_base: shared.ApiBase = None,
    cache: shared.AnswerCache = Path("answers.sqlite"),
    replay: shared.Replay = False,
    prompts: shared.PromptsFolder = None,
    appended: Annotated[
        int, typer.Option(min=1, metavar="N", help="Sentences to append, at most.")
    ] = 20,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, metavar="N", help="Seed of the corruption.")
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the tables and the figures to this folder."),
    ] = None,
) -> None:
    """Append true sentences that add nothing and see whether scores rise.

    The sentences repeat a claim, say something true of anything, or are true claims
    from other responses.

    Which claims are true, people's labels say, or a verifier. A table keeps the ids
    of its responses; a response that nobody took apart has a claim in every sentence.

    For each available assessor (the labels; FR1, FR2 and FR3 on the recorded
    relations; FR2 on the relation model's; FR2 with atoms related to each other; and
    with --model those that judge by a prompt), compares normal and padded responses
    with and without Core, and draws curves against the number of appended
    sentences.

    [b]Examples[/b]

      factormodels robustness
      factormodels robustness demonstration --out results/robustness
      factormodels robustness --templates-known
      factormodels robustness --model openai/NAME --appended 4
      factormodels robustness assessed.jsonl --verifier FR2
    """
    from experiments.assess.inputs import load_responses
    from experiments.assess.setup import AssessmentOptions, language_model, relation_model
    from experiments.padding.assessors import by_labels, by_related_atoms
    from experiments.padding.gaming import known_templates
    from experiments.padding.robustness import (
        CoreChoices,
        padded_scores,
        padding_gains,
        robustness_curves,
        robustness_table,
    )
    from factormodels.extraction.language_model.accounting import Ledger
    from factormodels.extraction.language_model.litellm_model import LitellmSettings
    from factormodels.extraction.prompts.replaced import WithPrompts, read_prompts
    from factormodels.selection import CachedRelations

    graphs = _with_claims(load_responses(file).graphs)
    judge, _ = relation_model(relations, AssessmentOptions())
    choices = CoreChoices(judge, weights, templates_known=not blind)
    missing: Counter[str] = Counter()
    prompted, writer = (
        None
        if name is None
        # The ledger is not shown: what matters of a model here is its missing verdicts.
        else WithPrompts(
            language_model(LitellmSettings(name, api_base), cache, Ledger(), replay=replay),
            read_prompts(prompts),
        )
        for name in (model, paraphrases)
    )
    graphs, whose = _judged(graphs, verifier, _verifiers(judge, prompted, missing), str(file))
    # One cache for all versions of all responses, since they share most of their claims.
    claims = CachedRelations(judge if blind else known_templates(judge, graphs, appended))
    assessors = {
        whose: by_labels,
        **_verifiers(judge, prompted, missing),
        "FR2, atoms related": by_related_atoms("FR2", claims),
    }
    # Five points of each curve, evenly spaced.
    counts = [round(appended * k / 4) for k in range(5)]
    scores = padded_scores(graphs, assessors, choices, appended=appended, paraphraser=writer)
    table = robustness_table(graphs, scores)
    gains = padding_gains(scores)
    curves = robustness_curves(graphs, assessors, choices, counts=counts, seed=seed)
    written = [] if out is None else _write(table, gains, curves, out)
    console = output()
    _show(console, table, curves)
    _show_gains(console, gains)
    for name, n in missing.items():
        if n:
            console.print(
                f"{name}: {counted(n, 'verdict')} missing in all tables and curves; they count as "
                "not supported",
                soft_wrap=True,
            )
    show_written(console, written)


def _with_claims(graphs: Sequence[FactGraph]) -> tuple[FactGraph, ...]:
    """The responses; one without claims with each of its sentences as one."""
    from factormodels.extraction.pipeline import sentences_stage

    taken_apart = sentences_stage()
    return tuple(graph if graph.atoms else taken_apart(graph) for graph in graphs)


def _judged(
    graphs: Sequence[FactGraph],
    verifier: str | None,
    verifiers: Mapping[str, Assessor],
    source: str,
) -> tuple[tuple[FactGraph, ...], str]:
    """The responses with labels, and whose they are.

    Args:
        graphs: the responses.
        verifier: the assessor whose verdicts are taken for labels; None: people's, if there are
            any.
        verifiers: the assessors by name.
        source: the file, for messages.

    Raises:
        InputError: for an unknown assessor, or one that supports no claim of any response.
    """
    from experiments.padding.assessors import verified

    if verifier is None:
        if any(atom.label is not None for graph in graphs for atom in graph.atoms):
            return tuple(graphs), "human labels"
        recorded = any(graph.relations for graph in graphs)
        verifier = "FR2" if recorded else next(name for name in verifiers if "FR2, " in name)
    if verifier not in verifiers:
        raise InputError(unknown_name(f"--verifier {verifier!r}", verifier, verifiers))
    kept = verified(graphs, verifiers[verifier])
    if not kept:
        raise InputError(
            f"{source}: {verifier} supports no claim of it, so nothing true can be appended; give "
            "responses with evidence (`factormodels assess --documents FOLDER --out FILE`), or "
            "another --verifier"
        )
    left_out = len(graphs) - len(kept)
    messages().print(
        f"what {verifier} supports counts as true"
        + (
            f"; {counted(left_out, 'response')} of which it supports no claim left out"
            * bool(left_out)
        ),
        soft_wrap=True,
    )
    return kept, f"verdicts of {verifier}"


def _verifiers(
    relations: RelationModel, model: LanguageModel | None, missing: Counter[str]
) -> dict[str, Assessor]:
    """The assessors that say of every claim whether it is supported, by name.

    Args:
        relations: the relation model of "FR2, NAME"; the others read what is recorded.
        model: the language model of the prompt-based assessors; None leaves them out.
        missing: where their missing verdicts are counted, by name.
    """
    from experiments.padding.assessors import by_inference, by_prompt
    from factormodels.extraction.stages.assessors import ASSESSORS

    return {
        **{name: by_inference(name) for name in ("FR1", "FR2", "FR3")},
        f"FR2, {relations.name}": by_inference("FR2", relations),
        **({} if model is None else {name: by_prompt(name, model, missing) for name in ASSESSORS}),
    }


def _show(console: Console, table: Sequence[TableRow], curves: Sequence[CurveRow]) -> None:
    """Print the table, and of the curves the ends."""
    heading(console, "normal and padded responses")
    shown = plain_table(["assessor", "Core", "response"], ["claims", "Pr", "F1@K'"])
    before = ""
    for row in table:
        if before not in ("", row.assessor):
            shown.add_section()
        before = row.assessor
        shown.add_row(
            row.assessor,
            "with" if row.core else "without",
            row.kind,
            number(row.counted, 1),
            number(row.precision),
            number(row.f1),
        )
    console.print(shown)
    console.print()
    heading(console, "precision against the number of appended sentences")
    counts = sorted({row.appended for row in curves})
    shown = plain_table(["assessor", "Core", "padding", "response"], [*map(str, counts), "raised"])
    for key in dict.fromkeys((r.assessor, r.core, r.padding, r.response) for r in curves):
        mine = [r for r in curves if (r.assessor, r.core, r.padding, r.response) == key]
        mine.sort(key=lambda row: row.appended)
        shown.add_row(
            key[0],
            "with" if key[1] else "without",
            *key[2:],
            *(number(row.precision) for row in mine),
            f"{mine[-1].raised} of {mine[-1].responses}",
        )
    console.print(shown)
    console.print(
        "raised: responses that, with all sentences appended, score above the clean response",
        soft_wrap=True,
    )


def _show_gains(console: Console, gains: Sequence[GainRow]) -> None:
    """Print what padding gains with and without Core, with paired intervals."""
    console.print()
    heading(console, "gain in precision over the normal response, 95% intervals, paired")
    shown = plain_table(["assessor", "padding"], ["without Core", "with Core", "kept off by Core"])
    for row in gains:
        cells = (
            f"{number(value)} [{number(lower)}, {number(upper)}]"
            for value, lower, upper in (
                (row.plain, row.plain_lower, row.plain_upper),
                (row.core, row.core_lower, row.core_upper),
                (row.kept_off, row.kept_off_lower, row.kept_off_upper),
            )
        )
        shown.add_row(row.assessor, row.kind, *cells)
    console.print(shown)


def _write(
    table: Sequence[TableRow], gains: Sequence[GainRow], curves: Sequence[CurveRow], folder: Path
) -> list[Path]:
    """Write both tables as CSV and a figure per assessor and padding, and return the paths.

    Raises:
        InputError: if the folder cannot be written.
    """
    from calibration.figures import save_figure
    from calibration.table_markup import csv_text
    from experiments.padding.robustness import robustness_figure

    prepare_folder(folder)
    paths = []
    for name, rows in (("table", table), ("curves", curves), ("gains", gains)):
        paths.append(folder / f"robustness-{name}.csv")
        write_text(paths[-1], csv_text([asdict(row) for row in rows]))
    for assessor in dict.fromkeys(row.assessor for row in curves):
        for padding in dict.fromkeys(row.padding for row in curves):
            # Names of assessors hold commas and spaces, which file names had better not.
            stem = f"robustness-{assessor}-{padding}".replace(", ", "-").replace(" ", "-")
            paths += save_figure(robustness_figure(curves, assessor, padding), folder / stem)
    return paths
