"""Whether scores stand up to true sentences that add nothing, with and without selection.

Source: Core, section 5.3, table 4 and figure 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from experiments.asking.settings import Model
from experiments.evaluators.assessors import (
    assessors_by_name,
    by_labels,
    by_related_atoms,
    labelled_by,
)
from experiments.evaluators.gaming import known_templates
from experiments.evaluators.robustness import (
    CoreChoices,
    gains_table,
    padded_scores,
    padding_gains,
    robustness_curves,
    robustness_figure,
    robustness_table,
)
from experiments.findings.artefacts import PaperFigure
from experiments.findings.findings import Findings
from experiments.findings.table import Column, Table, columns_as
from experiments.findings.text import counted
from experiments.progress import tell
from experiments.settings import Option, Settings
from factormodels.errors import InputError
from factormodels.selection import CachedRelations

if TYPE_CHECKING:
    import pandas as pd

    from experiments.methods.select import SelectSettings
    from factormodels.extraction.language_model import LanguageModel
    from factormodels.fact_graph import FactGraph

_POINTS = 4
"""Points of each curve beside 0, evenly spaced."""


class PaddingSettings(Settings, together={"append": "verifier paraphrases templates_known"}):
    """Padding."""

    append: Annotated[int, Field(ge=0)] = 0
    """Append up to this many true sentences that add nothing, and show whether scores rise."""

    verifier: Annotated[str | None, Option("NAME")] = None
    """The assessor whose verdicts stand for labels of padded responses. Without it people's labels
    count; where there are none, FR2 on the recorded relations, or on those of --relations."""

    paraphrases: Model = None
    """Also repeat claims as paraphrases written by this language model."""

    templates_known: bool = False
    """Recognise the templates of the padding instead of judging it by its words alone."""


def check_padding(settings: SelectSettings) -> None:
    """Check that what is asked for can be asked of appended sentences.

    Raises:
        InputError: if not.
    """
    if settings.share is not None:
        raise InputError(
            "--share is about sentences of the response, and what --append adds is in none; leave "
            "one out"
        )
    if settings.relevance is not None:
        raise InputError("--relevance is not asked of what --append adds; leave one out")


def pad(
    graphs: Sequence[FactGraph],
    choices: CoreChoices,
    settings: SelectSettings,
    source: str,
    model: LanguageModel | None,
    writer: LanguageModel | None,
) -> Findings:
    """Scores of normal and padded responses, what padding gains, and curves by its length.

    Args:
        graphs: responses with claims.
        choices: how they are selected.
        settings: what is appended, and whose verdicts count.
        source: what the responses are called.
        model: of the assessors that judge by a prompt; None leaves them out.
        writer: of paraphrases; None: there are none.

    Raises:
        InputError: for an unknown verifier, or one that supports no claim.
    """
    missing: Counter[str] = Counter()
    assessors = assessors_by_name(choices.relations, model, missing)
    labelled, whose, remark = labelled_by(graphs, settings.verifier, assessors, source)
    choices = replace(choices, templates_known=settings.templates_known)
    judge = choices.relations
    # One cache for all versions of all responses, since they share most of their claims.
    related = CachedRelations(
        known_templates(judge, labelled, settings.append) if settings.templates_known else judge
    )
    assessors = {
        whose: by_labels,
        **assessors,
        "FR2, atoms related": by_related_atoms("FR2", related),
    }
    tell("padded responses")
    scores = padded_scores(
        labelled, assessors, choices, appended=settings.append, paraphraser=writer
    )
    tell("curves")
    counts = [round(settings.append * point / _POINTS) for point in range(_POINTS + 1)]
    curves = robustness_curves(labelled, assessors, choices, counts=counts, seed=settings.seed)
    told = [
        f"{name}: {counted(number, 'verdict')} missing in all tables and curves of padding; they "
        "count as not supported."
        for name, number in missing.items()
        if number
    ]
    return Findings(
        source,
        (*((remark,) if remark else ()), *told),
        {
            "padding": _scores(robustness_table(labelled, scores)),
            "gains": gains_table(
                padding_gains(scores),
                "assessor",
                "What padding gains in precision over the normal response.",
                "In brackets: 95% intervals over responses, paired.",
            ),
            "curves": _curves(curves),
        },
        draw=lambda: _figures(curves),
    )


def _scores(frame: pd.DataFrame) -> Table:
    columns = (
        *columns_as("core Core | kind response", core=_with),
        *columns_as("counted:1 claims | precision:3 Pr | f1:3 F1@K'"),
    )
    return Table(frame, columns, "Normal and padded responses.", group="assessor")


def _curves(points: pd.DataFrame) -> Table:
    """A line per curve: precision by number of sentences, and how many responses rise at last."""
    of = ["assessor", "core", "response", "padding"]
    counts = sorted(points["appended"].unique())
    wide = points.pivot_table(index=of, columns="appended", values="precision")
    last = points[points["appended"] == counts[-1]][[*of, "raised", "responses"]]
    # In the order of the points, which pivoting does not keep.
    frame = last.merge(wide.rename(columns="p{}".format).reset_index(), on=of)
    columns = (
        *columns_as("core Core | padding | response", core=_with),
        *(Column(f"p{count}", str(count), digits=3) for count in counts),
        *columns_as("raised:0 | responses:0 of"),
    )
    return Table(
        frame,
        columns,
        "Precision by the number of appended sentences.",
        group="assessor",
        note="Raised: responses that, with all sentences appended, score above the clean response.",
    )


def _figures(curves: pd.DataFrame) -> dict[str, PaperFigure]:
    figures = {}
    drawn = zip(curves["assessor"], curves["padding"], strict=True)
    for assessor, padding in dict.fromkeys(drawn):
        own = curves[(curves["assessor"] == assessor) & (curves["padding"] == padding)]
        # Names of assessors hold commas and spaces, which file names had better not.
        stem = f"padding-{assessor}-{padding}".replace(", ", "-").replace(" ", "-")
        title = f"Precision with {padding} sentences appended, {assessor}"
        figures[stem] = PaperFigure(robustness_figure(curves, assessor, padding), own, title)
    return figures


def _with(core: bool) -> str:
    return "with" if core else "without"
