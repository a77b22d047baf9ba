"""Numbers that the papers print, beside those of a study or of any file with the same columns."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.findings.table import Table, columns_as, data_frame
from factormodels.errors import InputError, unknown_name
from factormodels.io.source.opening import exists
from factormodels.io.tables.data_table import read_table

if TYPE_CHECKING:
    import pandas as pd

STEM = "published"
"""The files of the comparison are published.csv, published.md and published.tex."""


def printed(stem: str, **reading: Any) -> pd.DataFrame:
    """A file of printed numbers by its stem, read with what else pandas is told."""
    import pandas as pd

    folder = resources.files("experiments.analyses.papers") / "printed"
    with (folder / f"{stem}.csv").open(encoding="utf-8") as file:
        frame: pd.DataFrame = pd.read_csv(file, **reading)
    return frame


@cache
def published_numbers() -> pd.DataFrame:
    """The printed numbers, one a row, texts all; of `published.csv` in `papers`.

    `of` is the analysis or command whose results have our number: of its table `table` the row
    that `row` tells ("column=value & column=value"), its column `column`, shown with `digits`
    decimals. `source` says what it is, `printed` what the paper has, `needs` of which data and
    models, `why` why ours differs, and `command` how ours is made.
    """
    return printed(STEM, dtype=str, keep_default_na=False)


def compare_published(
    of: str, results: Mapping[str, pd.DataFrame] | str | os.PathLike[str]
) -> Table:
    """What the papers print beside the same numbers of results.

    A number that the results do not have is shown as "-".

    Args:
        of: whose numbers, of the column `of` of `published_numbers`.
        results: tables by name; or a folder, or a CSV file, each table named as its file is.

    Raises:
        InputError: for an unknown name, a folder without tables, or a number of several rows.
    """
    numbers = published_numbers()
    paper_numbers = numbers[numbers["of"] == of]
    if paper_numbers.empty:
        raise InputError(unknown_name(f"the published numbers of {of!r}", of, numbers["of"]))
    tables = (
        results
        if isinstance(results, Mapping)
        else _read(Path(results), dict.fromkeys(paper_numbers["table"]))
    )
    rows = [
        {
            "source": number["source"],
            "printed": number["printed"],
            "ours": _ours(number, tables),
            "needs": number["needs"],
            "why": number["why"],
        }
        for number in paper_numbers.to_dict("records")
    ]
    columns = columns_as(
        "source | printed> | ours> we get | needs data and models of the paper | "
        "why why ours differs"
    )
    caption = "Published numbers, and what this run gives."
    return Table(data_frame(rows), columns, caption)


def _read(path: Path, names: Iterable[str]) -> dict[str, pd.DataFrame]:
    import pandas as pd

    files = [path] if path.is_file() else [path / f"{name}.csv" for name in names]
    tables = {file.stem: pd.DataFrame(read_table(file).rows) for file in files if exists(file)}
    if not tables:
        raise InputError(f"{path}: it has no {' or '.join(names)}.csv; name the folder of results")
    return tables


def _ours(number: Mapping[Any, Any], tables: Mapping[str, pd.DataFrame]) -> str:
    wanted = dict(part.split("=", 1) for part in number["row"].split(" & "))
    frame = tables.get(number["table"])
    if frame is None or not {*wanted, number["column"]} <= {*frame.columns}:
        return "-"
    for column, value in wanted.items():
        frame = frame[frame[column].astype(str) == value]
    if len(frame) > 1:
        raise InputError(
            f"{number['source']}: {len(frame)} rows of {number['table']} are of {number['row']}; "
            "give results of one run"
        )
    cell = frame[number["column"]].iloc[0] if len(frame) else ""
    # A cell of a file is a text, and may be empty.
    value = math.nan if cell == "" else float(cell)
    return "-" if math.isnan(value) else f"{value:.{number['digits']}f}"
