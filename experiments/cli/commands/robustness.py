"""`factormodels robustness`: how scores stand up to padding, with and without selection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.console import heading, output, plain_table, show_written
from experiments.cli.options import shared
from experiments.paper.text import counted, number
from factormodels.io.files import prepare_folder, write_text

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.padding.assessors import Assessor
    from experiments.padding.robustness import CurveRow, GainRow, TableRow
    from factormodels.extraction.language_model import LanguageModel
    from factormodels.extraction.relation_models.base import RelationModel


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Labelled fact graphs with texts; an embedded dataset."
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

    For each available assessor (human labels; FR1, FR2 and FR3 on the recorded
    relations; FR2 on the relation model's; FR2 with atoms related to each other; and
    with --model those that judge by a prompt), compares normal and padded responses
    with and without Core, and draws curves against the number of appended
    sentences.

    [b]Examples[/b]

      factormodels robustness
      factormodels robustness demonstration --out results/robustness
      factormodels robustness --templates-known
      factormodels robustness --model openai/NAME --appended 4
    """
    from experiments.assess.setup import AssessmentOptions, language_model, relation_model
    from experiments.padding.gaming import known_templates
    from experiments.padding.robustness import (
        CoreChoices,
        padded_scores,
        padding_gains,
        robustness_curves,
        robustness_table,
    )
    from experiments.study.inputs import read_graphs
    from factormodels.extraction.language_model.accounting import Ledger
    from factormodels.extraction.language_model.litellm_model import LitellmSettings
    from factormodels.extraction.prompts.replaced import WithPrompts, read_prompts
    from factormodels.selection import CachedRelations

    graphs = read_graphs(file)
    judge, _ = relation_model(relations, AssessmentOptions())
    choices = CoreChoices(judge, weights, templates_known=not blind)
    # One cache for all versions of all responses, since they share most of their claims.
    claims = CachedRelations(judge if blind else known_templates(judge, graphs, appended))
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
    assessors = _assessors_at_hand(judge, claims, prompted, missing)
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


def _assessors_at_hand(
    relations: RelationModel,
    claims: RelationModel,
    model: LanguageModel | None,
    missing: Counter[str],
) -> dict[str, Assessor]:
    """The assessors at hand, by name.

    Args:
        relations: the relation model of "FR2, NAME"; the others read what is recorded.
        claims: says which atom entails which, for "FR2, atoms related".
        model: the language model of the prompt-based assessors; None leaves them out.
        missing: where their missing verdicts are counted, by name.
    """
    from experiments.padding.assessors import (
        by_inference,
        by_labels,
        by_prompt,
        by_related_atoms,
    )
    from factormodels.extraction.stages.assessors import ASSESSORS

    assessors = {
        "human labels": by_labels,
        **{name: by_inference(name) for name in ("FR1", "FR2", "FR3")},
        f"FR2, {relations.name}": by_inference("FR2", relations),
        "FR2, atoms related": by_related_atoms("FR2", claims),
    }
    if model is not None:
        assessors |= {name: by_prompt(name, model, missing) for name in ASSESSORS}
    return assessors


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
