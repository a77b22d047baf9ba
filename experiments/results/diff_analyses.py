"""What changed from one run of an analysis to another: every value of its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.results.diff import SAME, changed_settings
from experiments.results.files import read_manifest
from factormodels.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ValueChange:
    """A value of a table that changed.

    Attributes:
        table: stem of the table, or of the data of a figure.
        row: the texts of its row; with a number where several rows have the same.
        column: its column.
        before: its value in the first run.
        after: its value in the second run.
    """

    table: str
    row: str
    column: str
    before: Any
    after: Any

    @property
    def difference(self) -> float | None:
        """After less before; None where one of them is no number."""
        if isinstance(self.before, int | float) and isinstance(self.after, int | float):
            return float(self.after) - float(self.before)
        return None


@dataclass(frozen=True)
class TableChange:
    """What changed in a table that both runs have.

    Attributes:
        table: its stem.
        n_values: number of values that both have.
        only_before: number of rows without a counterpart in the second run.
        only_after: number of rows without one in the first.
        columns: columns that only one of them has.
        values: the values that changed.
    """

    table: str
    n_values: int
    only_before: int
    only_after: int
    columns: tuple[str, ...]
    values: tuple[ValueChange, ...]

    @property
    def same(self) -> bool:
        """Whether nothing changed."""
        return not (self.values or self.only_before or self.only_after or self.columns)


@dataclass(frozen=True)
class AnalysisDifference:
    """What changed from one run of an analysis to another.

    Attributes:
        settings: (place, value before, value after) of what differs in study, data and versions.
        tables: the tables that both have.
        only_before: tables of the first run alone.
        only_after: tables of the second run alone.
    """

    settings: tuple[tuple[str, str, str], ...]
    tables: tuple[TableChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]


def are_analyses(before: Path, after: Path) -> bool:
    """Return whether two runs are of analyses.

    Raises:
        InputError: if only one of them is, or a folder holds no run.
    """
    kinds = ["analysis" in read_manifest(folder)["config"] for folder in (before, after)]
    if kinds[0] != kinds[1]:
        analysis, other = (before, after) if kinds[0] else (after, before)
        raise InputError(
            f"{analysis} is a run of an analysis and {other} one of units, which have no number in "
            "common; name two of one kind"
        )
    return kinds[0]


def compare_analyses(before: Path, after: Path) -> AnalysisDifference:
    """Return what changed from one run of an analysis to another.

    Rows belong together whose texts are the same, in order where several are. Where one run has
    more of these than the other, none of them is compared.

    Args:
        before: folder of the first run.
        after: folder of the second run.

    Raises:
        InputError: if a folder holds no run, or a table of it cannot be read.
    """
    first, second = (_tables(folder) for folder in (before, after))
    return AnalysisDifference(
        changed_settings(before, after),
        tuple(
            _table_change(stem, _read(path), _read(second[stem]))
            for stem, path in first.items()
            if stem in second
        ),
        only_before=tuple(stem for stem in first if stem not in second),
        only_after=tuple(stem for stem in second if stem not in first),
    )


def as_rows(difference: AnalysisDifference) -> list[dict[str, Any]]:
    """Return one row per value that changed."""
    return [
        {
            "table": value.table,
            "row": value.row,
            "column": value.column,
            "before": value.before,
            "after": value.after,
            "difference": value.difference,
        }
        for table in difference.tables
        for value in table.values
    ]


def _tables(folder: Path) -> dict[str, Path]:
    names = [Path(name) for name in read_manifest(folder)["files"]]
    return {name.stem: folder / name for name in names if name.suffix == ".csv"}


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_csv(path)
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: the table cannot be read ({error}); run the study anew"
        ) from None


def _table_change(stem: str, before: pd.DataFrame, after: pd.DataFrame) -> TableChange:
    from pandas.api.types import is_numeric_dtype

    common = [name for name in before.columns if name in after.columns]
    texts = [
        name
        for name in common
        if not (is_numeric_dtype(before[name]) or is_numeric_dtype(after[name]))
    ]
    left, right = (dict(_by_texts(frame, texts)) for frame in (before, after))
    alike, others = _counts(left), _counts(right)
    matched = {key for key in left if alike[key[0]] == others[key[0]]}
    numbers = [name for name in common if name not in texts]
    values = [
        ValueChange(stem, _row_name(key, alike), name, left[key][name], right[key][name])
        for key in left
        if key in matched
        for name in numbers
        if not _same(left[key][name], right[key][name])
    ]
    return TableChange(
        stem,
        n_values=len(matched) * len(numbers),
        only_before=len(left) - len(matched),
        only_after=len(right) - len(matched),
        columns=tuple(n for n in (*before, *after) if n not in common),
        values=tuple(values),
    )


Key = tuple[tuple[str, ...], int]
"""The texts of a row, and how many rows before it have the same."""


def _by_texts(frame: pd.DataFrame, texts: list[str]) -> Iterator[tuple[Key, dict[str, Any]]]:
    seen: Counter[tuple[str, ...]] = Counter()
    for row in frame.to_dict("records"):
        key = tuple(str(row[name]) for name in texts)
        yield (key, seen[key]), {str(name): value for name, value in row.items()}
        seen[key] += 1


def _counts(rows: dict[Key, dict[str, Any]]) -> Counter[tuple[str, ...]]:
    return Counter(texts for texts, _ in rows)


def _row_name(key: Key, alike: Counter[tuple[str, ...]]) -> str:
    texts, place = key
    words = ", ".join(text for text in texts if text != "nan")
    return f"{words} [{place}]".strip() if alike[texts] > 1 else words


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, int | float) and isinstance(after, int | float):
        both_missing = before != before and after != after
        return before == after or both_missing or abs(after - before) <= SAME
    return bool(before == after)
