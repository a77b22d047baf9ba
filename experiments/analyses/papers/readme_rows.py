"""The rows of `experiments/README.md` on published numbers, from the studies that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from experiments.analyses.papers.published import STEM

if TYPE_CHECKING:
    import pandas as pd

    from experiments.paper.table import PaperTable

HEADING = (
    "| source | printed | we get | command | data and models of the paper | why ours differs |"
)


def paper_studies() -> tuple[str, ...]:
    """Return the names of the embedded studies of the papers."""
    from experiments.study.reading import embedded_studies

    return tuple(name for name in embedded_studies() if name.startswith("papers/"))


def published_of(study: str, *overrides: str) -> pd.DataFrame | None:
    """Run an embedded study and return its published numbers; None if it has none."""
    from experiments.analyses.study import load_analysis, run_analysis
    from experiments.study.reading import read_raw

    with TemporaryDirectory() as folder:
        results = run_analysis(load_analysis(read_raw(study, overrides)), Path(folder), _untracked)
    table: PaperTable | None = results.artefacts.tables.get(STEM)
    return None if table is None else table.frame


def readme_rows(study: str, published: pd.DataFrame) -> list[str]:
    """Return the rows of the README for the published numbers of a study."""
    return [
        "| " + " | ".join(_escaped(text) for text in row) + " |"
        for row in zip(
            published["source"],
            published["printed"],
            published["ours"],
            [f"`factormodels run {study}`"] * len(published),
            published["needs"],
            published["why"],
            strict=True,
        )
    ]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


@contextmanager
def _untracked(_what: str, _steps: int) -> Iterator[Callable[[], None]]:
    yield lambda: None


if __name__ == "__main__":
    typer.echo(HEADING)
    typer.echo("| --- | --- | --- | --- | --- | --- |")
    for name in paper_studies():
        found = published_of(name)
        for line in [] if found is None else readme_rows(name, found):
            typer.echo(line)
