"""What changed from one run of a study to another, in numbers with intervals."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.results.files import ROWS, read_manifest
from experiments.results.judgements import Judgements, read_judgements
from experiments.results.rows import CELL, FAILED, CellRows, RowsFile
from experiments.results.significance import difference_interval, labelled_pair
from experiments.study.cell_names import cell_words
from factormodels.errors import InputError

if TYPE_CHECKING:
    from calibration.intervals import RatioSums

SAME = 1e-12
"""Posteriors that differ by no more are the same up to rounding."""

LABELLED = ("precision_mae", "f1", "accuracy", "brier", "log_loss")
"""Measures that are compared over the labelled claims of both runs."""

UNLABELLED = ("precision", "expected_precision")
"""Measures that are compared over all claims of both runs: the means over responses of the share
with P > 1/2, and of the mean of P."""


@dataclass(frozen=True)
class MeasureChange:
    """How far a measure moved.

    Attributes:
        measure: its name.
        before: its value in the first run.
        after: in the second, over the same claims.
        difference: after less before.
        lower: lower end of the interval of the difference, by the bootstrap over responses.
        upper: its upper end.
    """

    measure: str
    before: float
    after: float
    difference: float
    lower: float
    upper: float


@dataclass(frozen=True)
class CellChange:
    """What changed in a cell that both runs have.

    Attributes:
        key: the cell.
        n_claims: number of claims that both runs judged.
        n_only_before: number of claims that only the first one judged.
        n_only_after: number of claims that only the second one judged.
        n_changed: number of common claims whose posterior differs by more than `SAME`.
        n_flipped: number of these that lie on the other side of 1/2.
        max_difference: largest difference of a posterior.
        mean_difference: mean absolute difference.
        n_status: number of common responses that ended differently.
        failed_before: number of units that failed in the first run.
        failed_after: in the second.
        measures: how far the measures moved; empty if no posterior changed.
    """

    key: Mapping[str, Any]
    n_claims: int
    n_only_before: int
    n_only_after: int
    n_changed: int
    n_flipped: int
    max_difference: float
    mean_difference: float
    n_status: int
    failed_before: int
    failed_after: int
    measures: tuple[MeasureChange, ...]

    @property
    def same(self) -> bool:
        """Whether nothing changed."""
        return not (self.n_changed or self.n_only_before or self.n_only_after or self.n_status)


@dataclass(frozen=True)
class Difference:
    """What changed from one run to another.

    Attributes:
        settings: (place, value before, value after) of what differs in study, data and versions.
        cells: the cells that both have.
        only_before: cells of the first run alone.
        only_after: cells of the second run alone.
    """

    settings: tuple[tuple[str, str, str], ...]
    cells: tuple[CellChange, ...]
    only_before: tuple[Mapping[str, Any], ...]
    only_after: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class _Scoring:
    """What an unlabelled claim counts as, how K is chosen, and the seed of the bootstrap."""

    policy: str
    k: int | str
    seed: int


def compare_runs(before: Path, after: Path, *, seed: int = 0) -> Difference:
    """Return what changed from one run to another; one cell of each is in memory at a time.

    Where a single value of a column is gone and a single one is new, as when a prior was replaced
    or the settings of a backend, cells are compared across the two.

    Args:
        before: folder of the first run.
        after: folder of the second run.
        seed: seed of the bootstrap.

    Raises:
        InputError: if a folder holds no run, or a file of it cannot be read.
    """
    settings = changed_settings(before, after)
    config = read_manifest(after)["config"]
    scoring = _Scoring(config["unlabelled"], config["k"], seed)
    first, second = (RowsFile(folder / ROWS) for folder in (before, after))
    replaced = _replaced(first.cells(), second.cells())
    left = {_renamed(cell, replaced): cell for cell in first.cells()}
    right = {_renamed(cell, {}): cell for cell in second.cells()}
    changes = []
    for key, cell in left.items():
        if key in right:
            other = right[key]
            named, its = cell.named(), other.named()
            named |= {
                name: f"{value} → {its[name]}"
                for name, value in named.items()
                if value != its[name]
            }
            sides = (read_judgements(first, cell), read_judgements(second, other))
            changes.append(_cell_change(named, sides[0], sides[1], scoring))
    return Difference(
        settings,
        tuple(changes),
        only_before=tuple(cell.named() for key, cell in left.items() if key not in right),
        only_after=tuple(cell.named() for key, cell in right.items() if key not in left),
    )


def _replaced(before: Sequence[CellRows], after: Sequence[CellRows]) -> dict[str, tuple[Any, Any]]:
    """Return the columns of which one value is gone and one is new, with these two."""
    result = {}
    for name in CELL:
        values = [{cell.named()[name] for cell in cells} for cells in (before, after)]
        gone, new = values[0] - values[1], values[1] - values[0]
        if len(gone) == len(new) == 1:
            result[name] = (*gone, *new)
    return result


def _renamed(cell: CellRows, replaced: Mapping[str, tuple[Any, Any]]) -> tuple[Any, ...]:
    """Return the values of a cell, where one is replaced the new one."""
    return tuple(
        replaced[name][1] if name in replaced and value == replaced[name][0] else value
        for name, value in cell.named().items()
    )


def as_rows(difference: Difference) -> list[dict[str, Any]]:
    """Return one row per cell and measure, or per cell where none moved."""
    result = []
    for cell in difference.cells:
        facts = {
            **cell.key,
            **{name: value for name, value in asdict(cell).items() if name.startswith("n_")},
            "max_difference": cell.max_difference,
            "mean_difference": cell.mean_difference,
            "failed_before": cell.failed_before,
            "failed_after": cell.failed_after,
        }
        none = dict.fromkeys(("measure", "before", "after", "difference", "lower", "upper"))
        result += [{**facts, **asdict(one)} for one in cell.measures] or [{**facts, **none}]
    return result


def _cell_change(
    key: Mapping[str, Any],
    before: Judgements,
    after: Judgements,
    scoring: _Scoring,
) -> CellChange:
    mine, its = before.same_rows(after)
    both = before.judged[mine] & after.judged[its]
    differences = (after.p[its] - before.p[mine])[both]
    changed = np.abs(differences) > SAME
    flipped = (before.p[mine][both] > 0.5) != (after.p[its][both] > 0.5)
    statuses = [dict(zip(one.responses, one.status, strict=True)) for one in (before, after)]
    common = statuses[0].keys() & statuses[1].keys()
    return CellChange(
        key=key,
        n_claims=int(both.sum()),
        n_only_before=int(before.judged.sum() - both.sum()),
        n_only_after=int(after.judged.sum() - both.sum()),
        n_changed=int(changed.sum()),
        n_flipped=int((changed & flipped).sum()),
        max_difference=float(np.abs(differences).max(initial=0.0)),
        mean_difference=float(np.abs(differences).mean()) if differences.size else 0.0,
        n_status=sum(statuses[0][response] != statuses[1][response] for response in common),
        failed_before=int((before.status == FAILED).sum()),
        failed_after=int((after.status == FAILED).sum()),
        measures=tuple(_measures(before, after, scoring)) if changed.any() else (),
    )


def _measures(before: Judgements, after: Judgements, scoring: _Scoring) -> Iterator[MeasureChange]:
    from calibration.significance.paired import bootstrap_difference

    mine, its = before.same_rows(after)
    both = before.judged[mine] & after.judged[its]
    index = before.index[mine][both]
    for name in UNLABELLED:
        first, second = (
            _means(np.where(p > 0.5, 1.0, 0.0) if name == "precision" else p, index)
            for p in (before.p[mine][both], after.p[its][both])
        )
        result = bootstrap_difference(second, first, seed=scoring.seed)
        was, now = (float(sums.estimate()[0]) for sums in (first, second))
        yield MeasureChange(name, was, now, result.estimate, result.lower, result.upper)
    # An unlabelled claim is left out rather than refused: the runs themselves were not.
    policy = "exclude" if scoring.policy == "error" else scoring.policy
    p, other, y, responses = labelled_pair(before, after, policy)
    for name in LABELLED if len(y) else ():
        try:
            lower, upper = difference_interval(
                other, p, y, responses, name, scoring.k, scoring.seed
            )
        except InputError:
            continue  # An infinite log loss has no difference.
        was, now = (_value(name, one, y, responses, scoring.k) for one in (p, other))
        yield MeasureChange(name, was, now, now - was, lower, upper)


def _value(name: str, p: np.ndarray, y: np.ndarray, responses: np.ndarray, k: int | str) -> float:
    from calibration.grouping import group_by_response
    from calibration.significance.measures import MEASURES, JudgedClaims, response_k

    grouping = group_by_response(responses)
    judged = JudgedClaims(p, y, grouping, response_k(k, grouping))
    return float(MEASURES[name].sums(judged).estimate()[0])


def _means(values: np.ndarray, index: np.ndarray) -> RatioSums:
    """Return the mean over responses of the mean over their claims, as sums."""
    from calibration.grouping import group_by_response
    from calibration.intervals import RatioSums

    means = group_by_response(index).means(values)[:, np.newaxis]
    return RatioSums(means, np.ones_like(means))


def changed_settings(before: Path, after: Path) -> tuple[tuple[str, str, str], ...]:
    """Return (place, value before, value after) of what differs in study, data and versions.

    Raises:
        InputError: if a folder holds no run.
    """
    return tuple(_changed(_facts(before), _facts(after)))


def _facts(folder: Path) -> dict[str, Any]:
    """Return what a run's results may depend on, by place."""
    manifest = read_manifest(folder)
    facts: dict[str, Any] = {}
    for part in ("config", "data", "models", "code", "packages"):
        facts.update(_flat(manifest.get(part, {}), "" if part == "config" else f"{part}."))
    for name in ("python", "platform", "processor"):
        facts[name] = manifest.get(name)
    return facts


def _flat(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _flat(item, f"{place}{key}." if isinstance(item, dict) else f"{place}{key}")
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for position, item in enumerate(value):
            start = f"{place}[{position}]"
            yield from _flat(item, f"{start}." if isinstance(item, dict) else start)
    else:
        yield place.rstrip("."), value


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for place in dict.fromkeys((*before, *after)):
        values = (before.get(place), after.get(place))
        if values[0] != values[1]:
            yield place, _shown(values[0]), _shown(values[1])


def _shown(value: Any) -> str:
    return "--" if value is None else value if isinstance(value, str) else json.dumps(value)


def cell_title(key: Mapping[str, Any], varying: Sequence[str] = CELL) -> str:
    """Return the name of a cell by some of its columns."""
    return cell_words(key, [name for name in CELL if name in varying])
