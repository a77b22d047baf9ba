"""Printed numbers of the papers, beside the numbers of a study or of any file with the same
columns."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration.scores.registry import REGISTRY
from experiments.findings.table import Table, columns_as, data_frame
from factormodels.errors import InputError, unknown_name
from factormodels.io.source.opening import exists
from factormodels.io.tables.data_table import read_table

if TYPE_CHECKING:
    import pandas as pd

OTHER_DATA = "other data"
"""Text in place of a number from data other than the paper's."""

_MISSING = "-"
"""Text in place of a number that is not in the results."""

STEM = "published"
"""The files of the comparison are published.csv, published.md and published.tex."""


def printed(stem: str, **reading: Any) -> pd.DataFrame:
    """Read a file of printed numbers by its stem, with further options of pandas."""
    import pandas as pd

    folder = resources.files("experiments.analyses.papers") / "printed"
    with (folder / f"{stem}.csv").open(encoding="utf-8") as file:
        frame: pd.DataFrame = pd.read_csv(file, **reading)
    return frame


@cache
def published_numbers() -> pd.DataFrame:
    """The printed numbers of `published.csv` in `papers`, one per row, all as text.

    `of` is the analysis or command whose results contain our number: in its table `table`, in the
    row that `row` selects ("column=value & column=value"), in the column `column`, shown with
    `digits` decimals. `source` describes the number, `printed` is the paper's value, `needs` names
    the data and models that it requires, `data` is the source of these data in
    `experiments.analyses.user_data` ("other": our number always has other data; empty: any data
    suffice), `why` is the reason why our number differs, and `command` computes our number.
    """
    return printed(STEM, dtype=str, keep_default_na=False)


def compare_published(
    of: str,
    results: Mapping[str, pd.DataFrame] | str | os.PathLike[str],
    sources: Collection[str] | None = None,
) -> Table:
    """Compare the papers' printed numbers with the same numbers of results.

    A number that is not in the results is shown as "-", and a number from data other than the
    paper's as "other data".

    Args:
        of: a value of the column `of` of `published_numbers`.
        results: tables by name; or a folder or a CSV file, whose tables have the names of their
            files.
        sources: sources of the results' data; None: the sources that the numbers need.

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
            "ours": ours,
            "needs": number["needs"],
            "why": _why(number, ours),
        }
        for number in paper_numbers.to_dict("records")
        for ours in [_ours(number, tables) if _is_of(number, sources) else OTHER_DATA]
    ]
    columns = columns_as(
        "source | printed> | ours> we get | needs data and models of the paper | "
        "why why ours differs"
    )
    caption = "Published numbers, and what this run gives."
    return Table(data_frame(rows), columns, caption)


_REASONS = {OTHER_DATA: "embedded data replace the paper's", _MISSING: "the results lack it"}
"""Reasons for each text that replaces our number."""


def _why(number: Mapping[Any, Any], ours: str) -> str:
    """Reason why our number differs: the stated one, unless the embedded data are the reason."""
    if ours == OTHER_DATA and number["data"] != "other":
        return _REASONS[OTHER_DATA]
    return str(number["why"]) or _REASONS.get(ours, "")


_TABLED = ("factscore", "biographies-wikipedia")
"""The embedded biographies, and the printed tables of the same responses."""

_FACTREASONER = (
    *("supported", "contradicted", "undecided", "precision", "f1", "f1_at_k"),
    *("precision_mae", "entropy"),
)
"""Measures of FactReasoner's tables 3 and 6 to 19, in their order."""


def factreasoner_tables(means: pd.DataFrame, variants: Collection[str]) -> Table:
    """FactReasoner's tables 3 and 6 to 19 for the datasets of a study, beside its results.

    A printed row is compared with the cell of the same dataset, relation model and variant. The
    embedded biographies have different passages and a different relation model from the paper's.

    Args:
        means: means over responses by cell, of `experiments.study.report.scores.response_means`.
        variants: variants of the study.
    """
    tables = printed("factreasoner_tables", dtype=str, keep_default_na=False)
    embedded, stand_in = _TABLED
    datasets = {stand_in if name == embedded else name for name in means["dataset"]}
    cells = means.to_dict("records")
    rows = []
    for row in tables.to_dict("records"):
        dataset = f"{row['dataset']}-{row['source']}"
        if dataset not in datasets or row["assessor"] not in variants:
            continue
        matching = [
            cell
            for cell in cells
            if (cell["dataset"], cell["relation_model"], cell["variant"])
            == (dataset, row["model"], row["assessor"])
        ]
        table = f"FactReasoner, table {row['table']}: {row['dataset']}, {row['source']}"
        rows.append(
            {**row, "of": table, "ours": _means_text(matching[0]) if matching else OTHER_DATA}
        )
    columns = columns_as(
        "model relations | assessor variant | supported> #S | contradicted> #C | undecided> #U | "
        "precision> Pr | f1> F1 | f1_at_k> F1@K | precision_mae> MAE | entropy> E | ours we get"
    )
    others = sorted({f"{r['dataset']}-{r['source']}" for r in tables.to_dict("records")} - datasets)
    of_embedded = (
        "The embedded biographies have the paper's responses and labels; their passages and "
        "relations are not the paper's. "
        if embedded in {*means["dataset"]}
        else ""
    )
    note = (
        f"We get {OTHER_DATA} where the study has no cell of the dataset, the relation model and "
        f"the variant. {of_embedded}Other tables need datasets called {', '.join(others)}."
    )
    caption = "The paper's numbers, means over responses ± standard deviations, and ours."
    return Table(data_frame(rows), columns, caption, "of", note)


def _means_text(cell: Mapping[Any, Any]) -> str:
    """The means of a cell in the order of the printed columns."""
    names = ["f1_by_response" if name == "f1" else name for name in _FACTREASONER]
    known = [name for name in names if name in cell and not math.isnan(cell[name])]
    return ", ".join(f"{REGISTRY[name].title} {cell[name]:.2f}" for name in known)


def _is_of(number: Mapping[Any, Any], sources: Collection[str] | None) -> bool:
    """Return True if the results and a printed number come from the same data."""
    if number["data"] in ("", "other"):
        return not number["data"]
    return sources is None or number["data"] in sources


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
        return _MISSING
    for column, value in wanted.items():
        frame = frame[frame[column].astype(str) == value]
    if len(frame) > 1:
        raise InputError(
            f"{number['source']}: {len(frame)} rows of {number['table']} are of {number['row']}; "
            "give results of one run"
        )
    cell = frame[number["column"]].iloc[0] if len(frame) else ""
    # A cell of a file is text, and may be empty.
    value = math.nan if cell == "" else float(cell)
    return _MISSING if math.isnan(value) else f"{value:.{number['digits']}f}"
