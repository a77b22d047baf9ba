"""The tables, files and figures of the robustness experiments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.tables import csv_text
from experiments.cli.console import heading
from experiments.padding.assessors import (
    Assessor,
    by_inference,
    by_labels,
    by_prompt,
    by_related_atoms,
)
from experiments.padding.gaming import PADDINGS
from experiments.padding.robustness import CurveRow, TableRow, robustness_figure
from experiments.paper.text import number, plain_table
from factormodels.extraction.assessors import ASSESSORS
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.io.files import prepare_folder, write_text

if TYPE_CHECKING:
    from rich.console import Console


def assessors_at_hand(
    relations: RelationModel,
    claims: RelationModel | None = None,
    model: LanguageModel | None = None,
    missing: Counter[str] | None = None,
) -> dict[str, Assessor]:
    """Return the assessors at hand, by name.

    Args:
        relations: the relation model of "FR2, NAME"; the others read what is recorded.
        claims: says which atom entails which, for "FR2, atoms related"; None takes `relations`.
        model: the language model of the prompt-based assessors; None leaves them out.
        missing: where their missing verdicts are counted, by name.
    """
    assessors = {
        "human labels": by_labels,
        **{name: by_inference(name) for name in ("FR1", "FR2", "FR3")},
        f"FR2, {relations.name}": by_inference("FR2", relations),
        "FR2, atoms related": by_related_atoms("FR2", claims or relations),
    }
    if model is not None:
        assessors |= {name: by_prompt(name, model, missing) for name in ASSESSORS}
    return assessors


def show(console: Console, table: Sequence[TableRow], curves: Sequence[CurveRow]) -> None:
    """Print the table, and of the curves the ends."""
    heading(console, "normal and padded responses")
    shown = plain_table()
    for title in ("assessor", "Core", "response"):
        shown.add_column(title, no_wrap=True)
    for title in ("claims", "Pr", "F1@K'"):
        shown.add_column(title, justify="right", no_wrap=True)
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
    shown = plain_table()
    counts = sorted({row.appended for row in curves})
    for title in ("assessor", "Core", "padding", "response"):
        shown.add_column(title, no_wrap=True)
    for title in (*map(str, counts), "raised"):
        shown.add_column(title, justify="right", no_wrap=True)
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


def write(table: Sequence[TableRow], curves: Sequence[CurveRow], folder: Path) -> list[Path]:
    """Write both tables as CSV and a figure per assessor and padding, and return the paths.

    Raises:
        InputError: if the folder cannot be written.
    """
    from calibration.figures import save_figure

    prepare_folder(folder)
    paths = [folder / "robustness-table.csv", folder / "robustness-curves.csv"]
    write_text(paths[0], csv_text([asdict(row) for row in table]))
    write_text(paths[1], csv_text([asdict(row) for row in curves]))
    for assessor in dict.fromkeys(row.assessor for row in curves):
        for padding in PADDINGS:
            stem = f"robustness-{assessor}-{padding}".replace(", ", "-").replace(" ", "-")
            paths += save_figure(robustness_figure(curves, assessor, padding), folder / stem)
    return paths
