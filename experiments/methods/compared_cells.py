"""Changes of cells from one run or frame to another, with measures and their paired difference.

A cell of a run stays in arrays, one pair of cells in memory at a time, because cells of runs
usually have the same claims in the same order: `CellClaims.same_rows` then takes a hundredth of the
time of an outer merge of two data frames, or less, and these need not be made
(docs/results/house.md).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.columns.cell_names import CELL, cell_words
from experiments.findings.table import Column, Table, columns_as, data_frame, text_columns
from experiments.findings.text import small
from experiments.study.files import ROWS, read_manifest
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd

    from calibration.cells import CellClaims
    from experiments.study.rows import CellRows, RowsFile

SAME = 1e-12
"""Largest difference of two numbers that counts as rounding."""

_MOST_VALUES = 6

LABELED = ("precision_mae", "f1", "accuracy", "brier", "log_loss", "auroc")
"""Measures that are compared over the labeled claims of both sides."""

UNLABELED = ("precision", "expected_precision")
"""Measures that are compared over all claims of both sides: means over responses of the share of
claims with P > 1/2 and of the mean of P."""


@dataclass(frozen=True)
class CellDifferences:
    """Changes of cells from one run or frame to another.

    Attributes:
        cells: a row for each cell of both sides: the columns of the cell; the numbers of claims
            that both sides judged (`n_claims`), of claims that only one side judged
            (`n_only_before`, `n_only_after`), of common claims whose posterior differs by more than
            `SAME` (`n_changed`), and of changed claims that crossed 1/2 (`n_flipped`); the largest
            and the mean absolute difference of a posterior (`max_difference`, `mean_difference`);
            in runs the numbers of common responses with another status (`n_status`) and of failed
            units (`failed_before`, `failed_after`); `same`, True if nothing changed; and
            `measures`.
        only_before: cells that only the first side has.
        only_after: cells that only the second side has.

    If a posterior changed, `measures` has a row per measure (`measure`): its values on the first
    side (`before`) and on the second side over the same claims (`after`), the `difference` (after
    minus before), and the ends of its interval over responses (`lower`, `upper`).
    """

    cells: tuple[dict[str, Any], ...]
    only_before: tuple[Mapping[str, Any], ...]
    only_after: tuple[Mapping[str, Any], ...]


def compare_runs(before: Path, after: Path, *, seed: int = 0) -> CellDifferences:
    """Compare two runs of units, holding one cell of each in memory at a time.

    If exactly one value of a column disappeared and exactly one appeared, as after a change of a
    prior or of a backend's settings, cells with the old value are compared with cells with the new
    value.

    Args:
        before: folder of the first run.
        after: folder of the second run.
        seed: seed of the bootstrap.

    Raises:
        InputError: if a folder contains no run, or one of its files cannot be read.
    """
    import numpy as np

    from experiments.columns.cell_names import UNANSWERED
    from experiments.study.reading import study_of_plain
    from experiments.study.report.frame import cross_fitted_folds, read_judgments
    from experiments.study.rows import RowsFile

    # Both runs are scored with the settings of the second: two policies for the same posteriors
    # would produce differences of their own.
    studies = [
        study_of_plain(read_manifest(folder)["config"], str(folder)) for folder in (before, after)
    ]
    scoring = _Scoring(studies[1].unlabeled, studies[1].k, seed)
    first, second = (RowsFile(folder / ROWS) for folder in (before, after))
    changes = []
    pairs = list(paired_cells(first, second))
    for cell, other in pairs:
        sides = (read_judgments(first, cell), read_judgments(second, other))
        folds = [cross_fitted_folds(*each) for each in zip(studies, sides, strict=True)]
        statuses = [dict(zip(side.responses, side.status, strict=True)) for side in sides]
        common = statuses[0].keys() & statuses[1].keys()
        n_status = sum(statuses[0][response] != statuses[1][response] for response in common)
        change = _cell_change(sides[0], sides[1], scoring, _common_folds(folds))
        changes.append(
            both_named(cell.named(), other.named())
            | change
            | {
                "n_status": n_status,
                "failed_before": int(np.isin(sides[0].status, UNANSWERED).sum()),
                "failed_after": int(np.isin(sides[1].status, UNANSWERED).sum()),
                "same": change["same"] and not n_status,
            }
        )
    compared = [{each.key for each in side} for side in zip(*pairs, strict=True)] or [set(), set()]
    return CellDifferences(
        tuple(changes),
        only_before=tuple(cell.named() for cell in first.cells() if cell.key not in compared[0]),
        only_after=tuple(cell.named() for cell in second.cells() if cell.key not in compared[1]),
    )


def _common_folds(folds: Sequence[Mapping[str, int] | None]) -> dict[str, int] | None:
    """Folds of responses that share a fold on both sides; None if no side is cross-fitted."""
    known = [each for each in folds if each is not None]
    if not known:
        return None
    numbers: dict[tuple[int | None, ...], int] = {}
    responses = dict.fromkeys(chain.from_iterable(known))
    return {
        response: numbers.setdefault(tuple(each.get(response) for each in known), len(numbers))
        for response in responses
    }


def compare_frames(
    before: pd.DataFrame, after: pd.DataFrame, by: Sequence[str] = (), *, seed: int = 0
) -> CellDifferences:
    """Compare two frames of claims, cell by cell.

    Args:
        before: claims with probabilities, a row for each claim and cell.
        after: other such claims.
        by: columns of both frames that name a cell. Cells of which one value was replaced are
            paired as in `compare_runs`.
        seed: seed of the bootstrap.

    Raises:
        InputError: if a frame has no probabilities, or a claim twice in a cell.
    """
    first, second = (_cells_of_frame(frame, by) for frame in (before, after))
    pairs = _paired([cell.named for cell in first], [cell.named for cell in second])
    scoring = _Scoring("exclude", "median", seed)
    return CellDifferences(
        tuple(
            both_named(first[at].named, second[other].named)
            | _cell_change(first[at], second[other], scoring)
            for at, other in pairs
        ),
        *(
            tuple(cell.named for at, cell in enumerate(cells) if at not in {*positions})
            for cells, positions in (
                (first, [pair[0] for pair in pairs]),
                (second, [pair[1] for pair in pairs]),
            )
        ),
    )


def _cells_of_frame(frame: pd.DataFrame, by: Sequence[str]) -> list[CellClaims]:
    """The cells of a frame of claims, by the columns that name them.

    Raises:
        InputError: as `read_claims`.
    """
    from calibration.cells import cells_of
    from experiments.columns.claims import read_claims
    from experiments.columns.options import ProbabilityColumns

    read = read_claims(frame, ProbabilityColumns(by=tuple(by)), labeled=False)
    claims = read.frame[["response", "claim", "p", "label"]].assign(model=read.frame["column"])
    for position, name in enumerate(read.by):
        claims[name] = [values[position] for values in read.frame["by"]]
    cells = cells_of(claims, [*(read.by or ["model"])])
    return cells if by else [replace(cell, named={}) for cell in cells]


def both_named(named: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a compared cell, with both values where one was replaced."""
    return {
        name: value if value == other[name] else f"{value} → {other[name]}"
        for name, value in named.items()
    }


def paired_cells(first: RowsFile, second: RowsFile) -> Iterator[tuple[CellRows, CellRows]]:
    """Yield the cells that two runs have in common, in the order of the first."""
    cells, others = first.cells(), second.cells()
    for at, other in _paired([c.named() for c in cells], [c.named() for c in others]):
        yield cells[at], others[other]


def _paired(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> list[tuple[int, int]]:
    """Positions of the cells that two sides have in common, in the order of the first."""
    # Without this step, a renamed prior would leave every cell without a counterpart.
    replaced = _replaced(before, after)
    # Keys use the names of the second side, so that both sides match in one dictionary.
    of_second = {_renamed(named, {}): position for position, named in enumerate(after)}
    pairs = [(at, of_second.get(_renamed(named, replaced))) for at, named in enumerate(before)]
    return [(at, other) for at, other in pairs if other is not None]


@dataclass(frozen=True)
class _Scoring:
    """Settings of the scores: policy for unlabeled claims, choice of K, seed of the bootstrap."""

    policy: str
    k: int | str
    seed: int


def _replaced(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[Any, Any]]:
    """The columns in which one value was replaced by another, with both values."""
    result = {}
    for name in before[0] if before else ():
        values = [{named[name] for named in cells} for cells in (before, after)]
        # With two or more new or missing values, the pairing would be a guess.
        gone, new = values[0] - values[1], values[1] - values[0]
        if len(gone) == len(new) == 1:
            result[name] = (*gone, *new)
    return result


def _renamed(named: Mapping[str, Any], replaced: Mapping[str, tuple[Any, Any]]) -> tuple[Any, ...]:
    """Values of a cell, with replaced values in their new form."""
    return tuple(
        replaced[name][1] if name in replaced and value == replaced[name][0] else value
        for name, value in named.items()
    )


def _cell_change(
    before: CellClaims,
    after: CellClaims,
    scoring: _Scoring,
    folds: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Changes in a cell, over the claims that both sides judged."""
    import numpy as np

    own_rows, its = before.same_rows(after)
    both = before.judged[own_rows] & after.judged[its]
    differences = (after.p[its] - before.p[own_rows])[both]
    # `both` counts claims judged on both sides, so units that failed in one are left out here and
    # counted as only before or only after.
    changed = np.abs(differences) > SAME
    flipped = (before.p[own_rows][both] > 0.5) != (after.p[its][both] > 0.5)
    counts = {
        "n_only_before": int(before.judged.sum() - both.sum()),
        "n_only_after": int(after.judged.sum() - both.sum()),
        "n_changed": int(changed.sum()),
    }
    return {
        "n_claims": int(both.sum()),
        **counts,
        "n_flipped": int((changed & flipped).sum()),
        "max_difference": float(np.abs(differences).max(initial=0.0)),
        "mean_difference": float(np.abs(differences).mean()) if differences.size else 0.0,
        "same": not any(counts.values()),
        "measures": list(_measures(before, after, scoring, folds)) if changed.any() else [],
    }


def _measures(
    before: CellClaims, after: CellClaims, scoring: _Scoring, folds: Mapping[str, int] | None
) -> Iterator[dict[str, Any]]:
    """Yield the change of each measure over all common claims or the labeled ones."""
    from calibration.cells import paired_claims
    from calibration.intervals import IntervalSettings
    from calibration.scores.registry import REGISTRY
    from calibration.significance.differences import difference_of
    from experiments.study.report.scores import REPLICATES

    # Unlabeled claims are skipped and not refused, because the runs accepted them.
    policy = "exclude" if scoring.policy == "error" else scoring.policy
    intervals = IntervalSettings(n_bootstrap=REPLICATES, seed=scoring.seed)
    for names, unlabeled in ((UNLABELED, "false"), (LABELED, policy)):
        # The later side comes first, so that an increase is positive.
        sides = paired_claims(after, before, unlabeled=unlabeled, k=scoring.k, folds=folds)
        if sides is None:
            continue
        for name in names:
            moved = difference_of(REGISTRY[name], *sides, intervals)
            # The difference of infinite log losses is undefined.
            if math.isfinite(moved.value):
                yield {
                    "measure": name,
                    "before": moved.second,
                    "after": moved.first,
                    "difference": moved.value,
                    "lower": moved.lower,
                    "upper": moved.upper,
                }


def cell_tables(compared: CellDifferences) -> tuple[dict[str, Table], list[str]]:
    """Posteriors and measures of changed cells, and cells that occur on one side only."""
    sentences = []
    for title, cells in (("before", compared.only_before), ("after", compared.only_after)):
        for group in grouped(cells):
            n_cells = math.prod(len(values) for values in group.values())
            name = cell_title({column: _listed(values) for column, values in group.items()}, group)
            sentences.append(f"only {title}: {counted(n_cells, 'cell')}, {name}")
    changed = [cell for cell in compared.cells if not cell["same"]]
    of_cell = [name for name in _names(compared.cells) if name not in _CHANGES]
    varying = [
        name
        for name in of_cell
        if name == "backend_label" or len({cell[name] for cell in changed}) > 1
    ]
    # A frame without columns of a cell is a single cell, which has no name.
    if of_cell or sentences:
        n_same = len(compared.cells) - len(changed)
        sentences.append(f"{counted(n_same, 'cell')} of {len(compared.cells):,} unchanged")
    measures = [
        {"cell": cell_title(cell, varying), **each} for cell in changed for each in cell["measures"]
    ]
    every = data_frame(
        [
            {name: value for name, value in cell.items() if name not in ("same", "measures")}
            | moved
            for cell in compared.cells
            for moved in cell["measures"] or [_UNMOVED]
        ]
    )
    shown = text_columns(*every.columns) or columns_as("difference")
    named = columns_as("cell") if varying else ()
    of_units = columns_as("failed> | n_status:0 status") if "n_status" in every else ()
    return {
        "posteriors": Table(
            data_frame([_posteriors(cell, varying) for cell in changed]),
            (
                *named,
                *columns_as("claims> | n_changed:0 changed | n_flipped:0 flipped"),
                Column("max_difference", "max |Δp|", show=small, right=True),
                Column("mean_difference", "mean |Δp|", show=small, right=True),
                *of_units,
            ),
            "Posteriors that changed, by cell." if named else "Posteriors that changed.",
        ),
        "measures": Table(
            data_frame(measures),
            (
                *named,
                *columns_as(
                    "measure | before:4 | after:4 | difference:4[]",
                    measure=lambda name: str(name).replace("_", " "),
                ),
            ),
            "Measures, with 95% intervals of the difference over responses.",
        ),
        "numbers": Table(
            every.reindex(columns=[column.name for column in shown]), shown, "Every number."
        ),
    }, sentences


_UNMOVED = dict.fromkeys(("measure", "before", "after", "difference", "lower", "upper"))

_CHANGES = frozenset(
    (
        *("n_claims", "n_only_before", "n_only_after", "n_changed", "n_flipped"),
        *("max_difference", "mean_difference", "n_status", "failed_before", "failed_after"),
        *("same", "measures"),
    )
)
"""Columns of a compared cell that do not name it."""


def _names(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns of cells, those of a study's cells first and in their order."""
    names = list(cells[0]) if cells else []
    return [*(name for name in CELL if name in names), *(n for n in names if n not in CELL)]


def _posteriors(cell: Mapping[str, Any], varying: Collection[str]) -> dict[str, Any]:
    lost = cell["n_only_before"] + cell["n_only_after"]
    # Claims that only one side judged are in brackets, because no difference includes them.
    others = f" (-{cell['n_only_before']} +{cell['n_only_after']})" if lost else ""
    numbers = ("n_changed", "n_flipped", "max_difference", "mean_difference")
    row = {
        "cell": cell_title(cell, varying),
        "claims": f"{cell['n_claims']:,}{others}",
        **{name: cell[name] for name in numbers},
    }
    if "n_status" in cell:
        row["failed"] = f"{cell['failed_before']} → {cell['failed_after']}"
        row["n_status"] = cell["n_status"]
    return row


def cell_title(key: Mapping[str, Any], columns: Collection[str]) -> str:
    """Name of a cell, from some of its columns."""
    return cell_words(key, [name for name in _names([key]) if name in columns])


def grouped(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, tuple[Any, ...]]]:
    """Group cells into full grids: every combination of the values of each column."""
    names = _names(cells)
    groups = [{name: (cell[name],) for name in names} for cell in cells]
    # Merge one column at a time: groups that agree in all other columns become one, so that a full
    # grid becomes one line.
    for name in reversed(names):
        merged: dict[tuple[tuple[Any, ...], ...], dict[str, tuple[Any, ...]]] = {}
        for group in groups:
            rest = tuple(values for column, values in group.items() if column != name)
            so_far = merged.setdefault(rest, {**group, name: ()})
            so_far[name] += group[name]
        groups = list(merged.values())
    return groups


def _listed(values: Sequence[Any]) -> Any:
    """Format a single value, several values in braces, or the first of many."""
    if len(values) == 1:
        return values[0]
    more = f", {len(values) - _MOST_VALUES:,} more" if len(values) > _MOST_VALUES else ""
    return f"{{{', '.join(map(str, values[:_MOST_VALUES]))}{more}}}"
