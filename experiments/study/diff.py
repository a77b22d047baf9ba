"""What changed from one run to another: settings, posteriors and measures, values of tables.

Runs of units are compared cell by cell, with intervals; analyses and what commands found table by
table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibration.cells import paired_claims
from calibration.intervals import IntervalSettings
from calibration.scores.registry import REGISTRY
from experiments.findings.diff import FINDINGS, SAME, read_findings
from experiments.findings.findings import Findings
from experiments.findings.markup import read_csv
from experiments.findings.table import Table
from experiments.study.cell_names import CELL
from experiments.study.files import MANIFEST, ROWS, read_manifest
from experiments.study.frame import Judgements, read_judgements
from experiments.study.rows import UNANSWERED, CellRows, RowsFile
from experiments.study.scores import REPLICATES
from factormodels.errors import InputError

LABELLED = ("precision_mae", "f1", "accuracy", "brier", "log_loss")
"""Measures that are compared over the labelled claims of both runs."""


UNLABELLED = ("precision", "expected_precision")
"""Measures that are compared over all claims of both runs: the means over responses of the share
with P > 1/2, and of the mean of P."""


Row = dict[str, Any]
"""Values by column."""


@dataclass(frozen=True)
class RunDifference:
    """What changed from one run of units to another.

    Attributes:
        settings: what differs in study, data and versions, as `setting_changes` tells it.
        cells: of each cell that both have, the cell; the numbers of claims that both runs judged
            (`n_claims`), that only one did (`n_only_before`, `n_only_after`), of common claims
            whose posterior differs by more than `SAME` (`n_changed`) and of these that lie on the
            other side of 1/2 (`n_flipped`); the largest and the mean absolute difference of a
            posterior (`max_difference`, `mean_difference`); how many common responses ended
            differently (`n_status`) and units failed (`failed_before`, `failed_after`); `same`,
            whether nothing changed; and `measures`.
        only_before: cells of the first run alone.
        only_after: cells of the second run alone.

    `measures` has, if a posterior changed, a row per measure (`measure`): its value in the first
    run (`before`), in the second over the same claims (`after`), the `difference`, after less
    before, and the ends of its interval by the bootstrap over responses (`lower`, `upper`).
    """

    settings: tuple[Row, ...]
    cells: tuple[Row, ...]
    only_before: tuple[Mapping[str, Any], ...]
    only_after: tuple[Mapping[str, Any], ...]


def are_of_units(before: Path, after: Path) -> bool:
    """Whether two folders are of runs of units; if not, both have tables.

    Raises:
        InputError: if only one of them is a run of units, or a folder holds no results.
    """
    of_units = [_is_of_units(folder) for folder in (before, after)]
    if of_units[0] != of_units[1]:
        units, other = (before, after) if of_units[0] else (after, before)
        raise InputError(
            f"{other} holds tables and {units} a run of units, which have no number in "
            "common; name two of one kind"
        )
    return of_units[0]


def _is_of_units(folder: Path) -> bool:
    """Whether a folder is of a run of units; if not, an analysis or a command wrote its tables."""
    return not _is_of_findings(folder) and "analysis" not in read_manifest(folder)["config"]


def _is_of_findings(folder: Path) -> bool:
    return (folder / FINDINGS).is_file() and not (folder / MANIFEST).exists()


def compare_runs(before: Path, after: Path, *, seed: int = 0) -> RunDifference:
    """What changed from one run of units to another; a cell of each is in memory at a time.

    Where a single value of a column is gone and a single one is new, as when a prior was replaced
    or the settings of a backend, cells are compared across the two.

    Args:
        before: folder of the first run.
        after: folder of the second run.
        seed: seed of the bootstrap.

    Raises:
        InputError: if a folder holds no run, or a file of it cannot be read.
    """
    # The second run says how both are scored, since two policies would differ for no other reason.
    config = read_manifest(after)["config"]
    scoring = _Scoring(config["unlabelled"], config["k"], seed)
    first, second = (RowsFile(folder / ROWS) for folder in (before, after))
    # Without this a renamed prior would leave every cell without a counterpart.
    replaced = _replaced(first.cells(), second.cells())
    # Keys as they would be called in the second run, so that both sides meet in one dictionary.
    left = {_renamed(cell, replaced): cell for cell in first.cells()}
    right = {_renamed(cell, {}): cell for cell in second.cells()}
    changes = []
    for key, cell in left.items():
        if key in right:
            other = right[key]
            named, its = cell.named(), other.named()
            # The title of a compared cell names both values where one was replaced.
            named |= {
                name: f"{value} → {its[name]}"
                for name, value in named.items()
                if value != its[name]
            }
            sides = (read_judgements(first, cell), read_judgements(second, other))
            changes.append(_cell_change(named, sides[0], sides[1], scoring))
    return RunDifference(
        setting_changes(before, after),
        tuple(changes),
        only_before=tuple(cell.named() for key, cell in left.items() if key not in right),
        only_after=tuple(cell.named() for key, cell in right.items() if key not in left),
    )


def tables_of(folder: Path) -> Findings:
    """The tables that an analysis, or a command with --out, wrote to a folder.

    Raises:
        InputError: if there are none, or one of them cannot be read.
    """
    if _is_of_findings(folder):
        return read_findings(folder)
    files = [Path(name) for name in read_manifest(folder)["files"]]
    frames = {file.stem: read_csv(folder / file) for file in files if file.suffix == ".csv"}
    return Findings(str(folder), (), {n: Table(f, ()) for n, f in frames.items()}, command="run")


def as_rows(difference: RunDifference) -> list[Row]:
    """One row per cell and measure, or per cell where none moved."""
    none: Row = dict.fromkeys(("measure", "before", "after", "difference", "lower", "upper"))
    rows = []
    for cell in difference.cells:
        own = {name: value for name, value in cell.items() if name not in ("same", "measures")}
        rows += [own | one for one in cell["measures"] or [none]]
    return rows


def setting_changes(before: Path, after: Path) -> tuple[Row, ...]:
    """What differs in study, data and versions, or in what commands were asked.

    Of each `place` the values of the first and the second, "--" for none.
    """
    facts, others = _facts(before), _facts(after)
    return tuple(
        {"place": place, "before": _shown(facts.get(place)), "after": _shown(others.get(place))}
        # The places of both, in the order of the first; a set would shuffle them from run to run.
        for place in dict.fromkeys((*facts, *others))
        if facts.get(place) != others.get(place)
    )


def _facts(folder: Path) -> dict[str, Any]:
    """What a run's results may depend on, by place."""
    if _is_of_findings(folder):
        found = read_findings(folder)
        asked = dict(_flat(dict(found.settings), ""))
        return {"command": found.command, "source": found.source, **asked}
    manifest = read_manifest(folder)
    facts: dict[str, Any] = {}
    for part in ("config", "data", "models", "code", "packages"):
        facts.update(_flat(manifest.get(part, {}), "" if part == "config" else f"{part}."))
    for name in ("python", "platform", "processor"):
        facts[name] = manifest.get(name)
    return facts


def _flat(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield (place, value) of everything in nested plain data."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            # A list of plain values stays one fact; lists of objects are taken apart by position.
            yield from _flat(item, f"{place}{key}." if isinstance(item, dict) else f"{place}{key}")
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for position, item in enumerate(value):
            start = f"{place}[{position}]"
            yield from _flat(item, f"{start}." if isinstance(item, dict) else start)
    else:
        yield place.rstrip("."), value


def _shown(value: Any) -> str:
    return "--" if value is None else value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True)
class _Scoring:
    """What an unlabelled claim counts as, how K is chosen, and the seed of the bootstrap."""

    policy: str
    k: int | str
    seed: int


def _replaced(before: Sequence[CellRows], after: Sequence[CellRows]) -> dict[str, tuple[Any, Any]]:
    """The columns of which one value is gone and one is new, with these two."""
    result = {}
    for name in CELL:
        values = [{cell.named()[name] for cell in cells} for cells in (before, after)]
        # With two or more on a side it would be a guess which one replaced which.
        gone, new = values[0] - values[1], values[1] - values[0]
        if len(gone) == len(new) == 1:
            result[name] = (*gone, *new)
    return result


def _renamed(cell: CellRows, replaced: Mapping[str, tuple[Any, Any]]) -> tuple[Any, ...]:
    """The values of a cell, where one is replaced the new one."""
    return tuple(
        replaced[name][1] if name in replaced and value == replaced[name][0] else value
        for name, value in cell.named().items()
    )


def _cell_change(
    key: Mapping[str, Any],
    before: Judgements,
    after: Judgements,
    scoring: _Scoring,
) -> Row:
    """What changed in a cell, over the claims that both runs judged."""
    mine, its = before.same_rows(after)
    both = before.judged[mine] & after.judged[its]
    differences = (after.p[its] - before.p[mine])[both]
    # `both` counts claims judged in both runs, so units that failed in one are left out here and
    # counted as only before or only after.
    changed = np.abs(differences) > SAME
    flipped = (before.p[mine][both] > 0.5) != (after.p[its][both] > 0.5)
    statuses = [dict(zip(one.responses, one.status, strict=True)) for one in (before, after)]
    common = statuses[0].keys() & statuses[1].keys()
    counts = {
        "n_only_before": int(before.judged.sum() - both.sum()),
        "n_only_after": int(after.judged.sum() - both.sum()),
        "n_changed": int(changed.sum()),
    }
    n_status = sum(statuses[0][response] != statuses[1][response] for response in common)
    return {
        **key,
        "n_claims": int(both.sum()),
        **counts,
        "n_flipped": int((changed & flipped).sum()),
        "max_difference": float(np.abs(differences).max(initial=0.0)),
        "mean_difference": float(np.abs(differences).mean()) if differences.size else 0.0,
        "n_status": n_status,
        "failed_before": int(np.isin(before.status, UNANSWERED).sum()),
        "failed_after": int(np.isin(after.status, UNANSWERED).sum()),
        "same": not (n_status or any(counts.values())),
        "measures": list(_measures(before, after, scoring)) if changed.any() else [],
    }


def _measures(before: Judgements, after: Judgements, scoring: _Scoring) -> Iterator[Row]:
    """Yield how far each measure moved, over all common claims or the labelled ones."""
    from calibration.significance.differences import difference_of

    # An unlabelled claim is left out rather than refused: the runs themselves were not.
    policy = "exclude" if scoring.policy == "error" else scoring.policy
    intervals = IntervalSettings(n_bootstrap=REPLICATES, seed=scoring.seed)
    for names, unlabelled in ((UNLABELLED, "false"), (LABELLED, policy)):
        # The later run first: a rise has a positive sign.
        sides = paired_claims(after, before, unlabelled=unlabelled, k=scoring.k)
        if sides is None:
            continue
        for name in names:
            moved = difference_of(REGISTRY[name], *sides, intervals)
            # An infinite log loss has no difference.
            if math.isfinite(moved.value):
                yield {
                    "measure": name,
                    "before": moved.second,
                    "after": moved.first,
                    "difference": moved.value,
                    "lower": moved.lower,
                    "upper": moved.upper,
                }
