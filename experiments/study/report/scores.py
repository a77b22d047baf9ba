"""Scores of the cells of a study, and tests of pairs of cells, from the tidy rows.

A cell of the long frame is scored by `calibration.score`, cells are compared by `calibration.cells`
and `calibration.significance`; this module chooses the cells, and reads them one at a time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.cells import (
    agreeing,
    claims_of_each,
    largest_difference,
    paired_claims,
    significantly_best,
)
from calibration.intervals import IntervalSettings
from calibration.scores.estimates import judged_claims, labeled_claims
from calibration.scores.measures import entropy_warnings
from calibration.scores.registry import MEASURES, REGISTRY
from calibration.scoring import DEFAULT_INTERVALS
from experiments.columns.cell_names import ABSENT, CELL, FAILED, NO_GRAPH, cell_words
from experiments.evaluators.convention_measures import in_logarithms, logarithm_factor
from experiments.evaluators.response import COLUMNS, measured
from experiments.findings.table import named
from experiments.study.config import Selector, Study
from experiments.study.report.frame import Judgments, cross_fitted_folds, read_judgments
from experiments.study.rows import CellRows, RowsFile
from factormodels.conventions import Conventions

if TYPE_CHECKING:
    import pandas as pd

REFERENCE = "exact"
"""Backend that the posteriors of the others are compared with."""

WITHIN_FOLDS = "within_folds"
"""Status of an AUROC within folds, for priors that were learned in folds."""

TIMES = ("seconds_total", "seconds_median")
"""Columns that differ between runs, which have a separate file."""

COMPARED = ("precision_mae", "f1", "accuracy", "brier", "log_loss")
"""Measures against labels, which can be better or worse."""

REPLICATES = 2000
"""Replicates of the intervals of differences."""

TESTS = (
    *("dataset", "first", "second", "elsewhere", "measure", "n_responses", "n_claims"),
    *("value_first", "value_second", "difference", "lower", "upper", "coverage"),
    *("p_value", "resamples", "corrected", "stars", "status", "reason"),
)
"""Columns of significance.csv. `elsewhere` has the values that both sides share; `n_claims` is the
number of claims of the first side, because sides with different selections use their own claims.
`coverage` is the simulated coverage of intervals if it differs from their level, and `resamples`
the number of permutations or replicates of a p-value."""


@dataclass(frozen=True)
class StudySummary:
    """Findings of a study, cell by cell.

    Attributes:
        cells: one row per cell, in the order of the study; missing numbers are NaN. Columns: the
            columns of a cell, `backend`, `setting`; `n_responses`, `n_failed` and `n_absent`
            (units; a unit is absent if its backend lacks its library); `n_atoms` and `n_labeled`
            (judged ones); `n_missing` (claims of units that did not fail, without an assessor's
            verdict or with an excluding one, or without any answered relation); the measures of
            `experiments.evaluators.response`, with the ends of their 95% intervals over responses
            as MEASURE_lower and MEASURE_upper; `n_not_converged`; `max_difference`, the largest
            |Δp| against the exact backend over atoms that both judged (NaN for itself);
            `seconds_total` and `seconds_median` per response. Further scores of the study also have
            MEASURE_status, the reason for a missing value, or a note that an AUROC is within folds.
            MEASURE_best marks the significantly best cells of a dataset, for each of `COMPARED`.
            Each selection has its own row, with `selection`, over its atoms.
        n_misordered: number of rows in which E does not order responses by truth.
    """

    cells: pd.DataFrame
    n_misordered: int


def study_scores(study: Study, rows: RowsFile) -> StudySummary:
    """The summary of a study's rows.

    Args:
        study: the study.
        rows: its tidy rows; only a cell and the exact backend's cell are in memory at a time.

    Raises:
        InputError: for unlabeled atoms under the policy "error".
    """
    import pandas as pd

    # Every cell would repeat the warning about E.
    with entropy_warnings() as misordered:
        cells = pd.DataFrame(list(_summary(study, rows)))
    return StudySummary(cells.join(_best(study, rows, cells)), len(misordered))


def _summary(study: Study, rows: RowsFile) -> Iterator[dict[str, Any]]:
    # Cells of the same question are adjacent in the file, so at most two are in memory: the
    # reference and the summarized one.
    for _, group in itertools.groupby(rows.cells(), key=lambda cell: cell.question):
        cells = list(group)
        exact = next((cell for cell in cells if cell.backend == REFERENCE), None)
        # Read the reference first, whatever its position.
        reference = None if exact is None else read_judgments(rows, exact, study.declared)
        for cell in cells:
            known = reference if cell is exact else None
            judged = known or read_judgments(rows, cell, study.declared)
            against = None if cell is exact else reference
            folds = cross_fitted_folds(study, judged) if "auroc" in study.measures else None
            for name in study.selected or (None,):
                yield {
                    **cell.named(),
                    **({} if name is None else {"selection": name}),
                    "backend": cell.backend,
                    "setting": cell.setting,
                    **_scored(study, judged.selected(name), against, folds),
                }


def _scored(
    study: Study, cell: Judgments, reference: Judgments | None, folds: dict[str, int] | None
) -> dict[str, Any]:
    """Row of the summary, over the atoms with a posterior."""
    more = tuple(name for name in study.measures if name not in MEASURES)
    p, label, index = cell.claims
    row: dict[str, Any] = {"n_atoms": 0, "n_labeled": 0, **dict.fromkeys(_of_measures(MEASURES))}
    added: dict[str, Any] = {}
    for name in more:
        added |= {**named(name, (np.nan,) * 3), f"{name}_status": "no_labels"}
    if p.size:
        fold = None
        if folds is not None:
            fold = np.array([folds[response] for response in cell.responses])[index]
        scored = measured(
            *(p, label, index),
            policy=study.unlabeled,
            k=study.k,
            intervals=DEFAULT_INTERVALS,
            more=more,
            folds=fold,
        )
        scored = in_logarithms(scored, study.declared)
        row = {name: value for name, value in scored.items() if name not in added}
        added = {name: scored[name] for name in added}
        if fold is not None and added.get("auroc_status") == "ok":
            added["auroc_status"] = WITHIN_FOLDS
    # Failed units have no time.
    done = cell.seconds[~np.isnan(cell.seconds)]
    return {
        **row,
        "n_responses": len(cell.ids),
        "n_failed": int((cell.status == FAILED).sum()),
        "n_absent": int((cell.status == ABSENT).sum()),
        "n_missing": cell.n_missing,
        "n_not_converged": int((cell.status == "not_converged").sum()),
        "max_difference": np.nan if reference is None else largest_difference(cell, reference),
        "seconds_total": float(done.sum()) if done.size else np.nan,
        "seconds_median": float(np.median(done)) if done.size else np.nan,
        **added,
    }


def response_means(study: Study, rows: RowsFile) -> pd.DataFrame:
    """Means and standard deviations over responses of every cell, as papers print them.

    A row per cell and selection: its columns, and MEASURE and MEASURE_sd for each measure of the
    study that is defined for every response. Empty unless F1 is a mean over responses by
    convention.
    """
    import pandas as pd

    if study.declared.f1 == "pooled":
        return pd.DataFrame()
    return pd.DataFrame(
        [
            {
                **side.named(),
                "n_responses": len(np.unique(judged.claims[2])),
                **_moments(study, judged),
            }
            for side in _sides(study, rows)
            if (judged := side.judgments(rows)).judged.any()
        ]
    )


def _moments(study: Study, cell: Judgments) -> dict[str, float]:
    """The mean and the standard deviation of each measure of one cell."""
    every = judged_claims(*cell.claims, k=study.k)
    labeled = labeled_claims(every, study.unlabeled, study.k)
    moments = {}
    for name in study.measures:
        score = REGISTRY[name]
        claims = labeled if score.needs_labels else every
        if score.ratio is None or claims is None:
            continue
        sums = score.ratio(claims)
        numerator, denominator = sums.numerator[:, 0], sums.denominator[:, 0]
        known = denominator > 0
        values = logarithm_factor(name, study.declared) * numerator[known] / denominator[known]
        moments[name] = float(values.mean()) if values.size else math.nan
        moments[f"{name}_sd"] = float(values.std(ddof=1)) if values.size > 1 else math.nan
    return moments


def _of_measures(names: Sequence[str]) -> Iterator[str]:
    """Columns of measures without a value if nothing was judged."""
    yield from (name for name in COLUMNS if not name.startswith("n_"))
    yield from (f"{name}_{end}" for name in names for end in ("lower", "upper"))


@dataclass(frozen=True)
class _Side:
    """Side of a comparison: a cell, and the atoms that count.

    Attributes:
        cell: the cell.
        selection: the selection; None without selections.
        conventions: conventions of the study.
    """

    cell: CellRows
    selection: str | None
    conventions: Conventions

    def named(self) -> dict[str, Any]:
        """Values that distinguish the side, by column."""
        selection = {} if self.selection is None else {"selection": self.selection}
        return {**self.cell.named(), **selection}

    def judgments(self, rows: RowsFile) -> Judgments:
        """Its judgments, with NaN for atoms that the selection leaves out."""
        return read_judgments(rows, self.cell, self.conventions).selected(self.selection)

    @property
    def without_graph(self) -> bool:
        """True for an assessor, which has no graph."""
        return bool(self.named()["variant"] == NO_GRAPH)


def _sides(study: Study, rows: RowsFile) -> list[_Side]:
    """Comparable sides, in the order of the summary's rows."""
    return [
        _Side(cell, name, study.declared)
        for cell in rows.cells()
        for name in study.selected or (None,)
    ]


def _best(study: Study, rows: RowsFile, cells: pd.DataFrame) -> pd.DataFrame:
    """Columns MEASURE_best: True for the significantly best cells of a dataset.

    Cells with failed or missing units or verdicts are left out.
    """
    import pandas as pd

    best = pd.DataFrame(False, index=cells.index, columns=[f"{name}_best" for name in COMPARED])
    sides = _sides(study, rows)
    # Selections have different claims, so they cannot be compared on the same ones.
    together = ["dataset", *(["selection"] if study.selected else [])]
    for _, group in cells.groupby(together, sort=False):
        # A cell with missing units would be compared on other responses than the rest.
        whole = group["n_responses"] == group["n_responses"].max()
        # A comparison is meaningful only on the same claims.
        complete = group[whole & (group[["n_failed", "n_absent", "n_missing"]] == 0).all(axis=1)]
        if len(complete) < 2 or not complete["n_labeled"].max():
            continue
        readers = [partial(sides[row].judgments, rows) for row in complete.index]
        for measure in COMPARED:
            leaders = significantly_best(
                readers,
                complete[measure],
                measure,
                unlabeled=study.unlabeled,
                k=study.k,
                n_resamples=study.significance.resamples,
                seed=study.seed,
            )
            best.loc[complete.index[leaders], f"{measure}_best"] = True
    return best


def study_tests(study: Study, rows: RowsFile) -> pd.DataFrame:
    """All tests of a study, with p-values corrected over all of them.

    A pair is tested if two cells differ only in it, on the labeled claims that both judged or, if
    they differ in selection, on the labeled claims of each; `lower` and `upper` bound the
    difference, paired by response. An undefined difference, such as with an infinite log loss, has
    a `status` and a `reason`. AUROC is within folds if priors were learned.
    """
    import pandas as pd

    from calibration.significance import adjust, stars

    tests = list(_tests(study, rows))
    # Compute all tests first, because the correction is over all of them.
    correction = study.significance.correction
    if correction != "none" and tests:
        corrected = adjust([test["p_value"] for test in tests], correction)
        for test, value in zip(tests, corrected.tolist(), strict=True):
            test |= {"corrected": value, "stars": stars(value)}
    return pd.DataFrame(tests, columns=list(TESTS))


_COLUMN = {"backend": "backend_label"}


def _tests(study: Study, rows: RowsFile) -> Iterator[dict[str, Any]]:
    sides = _sides(study, rows)
    for first, second in study.significance.pairs:
        # Iterate over all cells that match the first side; the second is then determined.
        for side in sides:
            if not _matches(side, first):
                continue
            others = (other for other in sides if _counterpart(side, other, second))
            # An assessor has a single cell, which is compared with every view's.
            for other in others if side.without_graph else islice(others, 1):
                yield from _compared(study, rows, (side, first), (other, second))


def _matches(side: _Side, selector: Selector) -> bool:
    """Return True if a side has the values of a selector."""
    values = side.named()
    # A study without selections has no such column.
    return all(
        values.get(_COLUMN.get(name, name), value) == value
        for name, value in selector.values().items()
    )


def _columns_that_may_differ(selector: Selector) -> set[str]:
    """Columns in which the two sides of a pair may differ."""
    return {_COLUMN.get(name, name) for name in selector.values()}


def _counterpart(side: _Side, other: _Side, selector: Selector) -> bool:
    """Return True if two sides differ only in the keys of the pair."""
    may_differ = _columns_that_may_differ(selector)
    if "backend_label" in may_differ:
        # A backend without seeds has a single cell, which is compared with every seed's.
        may_differ.add("seed")
        if side.without_graph != other.without_graph:
            # Without a graph there is no variant, encoding or prior to compare.
            may_differ |= set(CELL) - {"dataset"}
    own_names, its = side.named(), other.named()
    return _matches(other, selector) and all(
        own_names[name] == its[name] for name in own_names if name not in may_differ
    )


def _compared(
    study: Study,
    rows: RowsFile,
    first: tuple[_Side, Selector],
    second: tuple[_Side, Selector],
) -> Iterator[dict[str, Any]]:
    """Yield a row per measure for a pair of sides."""
    from calibration.significance import compare_judged

    settings = study.significance
    cells = [side.judgments(rows) for side, _ in (first, second)]
    shared = {
        "dataset": first[0].named()["dataset"],
        **{
            name: " ".join(str(value) for value in side[1].values().values())
            for name, side in (("first", first), ("second", second))
        },
        "elsewhere": _elsewhere(*(second if first[0].without_graph else first)),
        "corrected": np.nan,
        "stars": "",
    }
    # If only one side was learned, both are compared within its folds.
    folds = (cross_fitted_folds(study, cell) for cell in cells)
    # With the same selection on both sides, both use exactly the same claims.
    pair = paired_claims if first[0].selection == second[0].selection else claims_of_each
    sides = pair(
        *cells,
        unlabeled=study.unlabeled,
        k=study.k,
        folds=next((fold for fold in folds if fold is not None), None),
    )
    if sides is None:
        shared |= dict.fromkeys(("resamples", "n_responses", "n_claims"), 0)
        shared |= {"p_value": np.nan, "status": "no_labels"}
        shared["reason"] = "no claim with a label was judged by both"
        yield from (shared | {"measure": measure} for measure in settings.measures)
        return
    for difference in compare_judged(
        *sides,
        settings.measures,
        test=settings.test,
        alternative=settings.alternative,
        n_resamples=settings.resamples,
        intervals=IntervalSettings(n_bootstrap=REPLICATES, seed=study.seed),
    ):
        factor = logarithm_factor(difference.name, study.declared)
        yield {
            **shared,
            "measure": difference.name,
            "n_responses": len(sides[0].grouping.responses),
            "n_claims": sides[0].y.size,
            "value_first": factor * difference.first,
            "value_second": factor * difference.second,
            "difference": factor * difference.value,
            "lower": factor * difference.lower,
            "upper": factor * difference.upper,
            "coverage": difference.coverage,
            "p_value": difference.p_value,
            "resamples": difference.n_resamples,
            "status": str(difference.status),
            "reason": difference.reason,
        }


def _elsewhere(side: _Side, selector: Selector) -> str:
    values = side.named()
    may_differ = _columns_that_may_differ(selector)
    return cell_words(values, [name for name in values if name not in {"dataset", *may_differ}])


@dataclass(frozen=True)
class AgreeingCells:
    """Cells of a dataset (and selection) with equal posteriors.

    Attributes:
        dataset: the dataset.
        selection: the selection of claims; empty without selections.
        rows: positions of the cells in the summary, in its order.
        name: common name of the cells, such as "FR2 = FR3, exact = lbp".
        apart: largest difference between two posteriors of a claim; NaN for a single cell, and for
            cells without posteriors.
        answered: True if they have posteriors; cells without posteriors are grouped too, but do not
            agree.
    """

    dataset: str
    selection: str
    rows: tuple[int, ...]
    name: str
    apart: float
    answered: bool = True


_NAMED = (
    "variant", "relation_model", "encoding", "prior", "strength", "backend_label", "seed",
)  # fmt: skip
"""The columns that identify the cells of one dataset, in the order of a cell's name."""


def agreeing_cells(rows: RowsFile, cells: pd.DataFrame) -> list[AgreeingCells]:
    """Group the cells of a study whose posteriors never differ by more than 0.005.

    Datasets come in decreasing order of the differences between their cells.

    Args:
        rows: the tidy rows.
        cells: the summary, one row per cell, or per cell and selection.
    """
    by_key = {cell.key: cell for cell in rows.cells()}
    parts: dict[tuple[str, str], list[tuple[int, CellRows]]] = {}
    columns = [name for name in (*CELL, "selection") if name in cells]
    for row, record in enumerate(cells[columns].to_dict("records")):
        part = (record["dataset"], str(record.get("selection", "")))
        cell = by_key[tuple(record[name] for name in CELL)]
        parts.setdefault(part, []).append((row, cell))
    agreements = {
        (dataset, selection): agreeing(
            read_judgments(rows, cell).selected(selection or None) for _, cell in part
        )
        for (dataset, selection), part in parts.items()
    }
    most: dict[str, float] = {}
    for (dataset, _), agreement in agreements.items():
        most[dataset] = max(most.get(dataset, 0.0), agreement.spread)
    inferred = cells[cells["variant"] != NO_GRAPH]
    varying = [name for name in _NAMED if inferred[name].nunique() > 1 or name == "backend_label"]
    records = with_absent_named(cells)[list(CELL)].to_dict("records")
    groups = []
    # Sorting keeps the order of the study among equals.
    for dataset, selection in sorted(agreements, key=lambda part: -most[part[0]]):
        for group in agreements[dataset, selection].groups:
            members = tuple(parts[dataset, selection][at][0] for at in group.positions)
            name = _name([records[row] for row in members], varying)
            alone = len(members) == 1 or not group.answered
            apart = np.nan if alone else group.apart
            groups.append(AgreeingCells(dataset, selection, members, name, apart, group.answered))
    return groups


def with_absent_named(cells: pd.DataFrame) -> pd.DataFrame:
    """The summary with "(absent)" behind the backends whose library is not installed."""
    labels = zip(cells["backend_label"], cells["n_absent"], strict=True)
    return cells.assign(backend_label=[f"{name} (absent)" if n else name for name, n in labels])


def _name(cells: Sequence[dict[Any, Any]], varying: Sequence[str]) -> str:
    """Name cells by few blocks, in each of which every combination of values occurs."""
    blocks = [{name: [cell[name]] for name in varying} for cell in cells]
    for name in reversed(varying):
        merged: list[dict[str, list[Any]]] = []
        for block in blocks:
            rest = {other: values for other, values in block.items() if other != name}
            for earlier in merged:
                if rest == {other: earlier[other] for other in rest}:
                    earlier[name] = [*earlier[name], *block[name]]
                    break
            else:
                merged.append(block)
        blocks = merged
    return "; ".join(", ".join(filter(None, _parts(block))) for block in blocks)


def _parts(block: dict[str, list[Any]]) -> list[str]:
    return [
        " = ".join(filter(None, (cell_words({name: value}, [name]) for value in values)))
        if len(values) == 1
        # A default value is named if other values occur too.
        else " = ".join(
            f"{value:g}" if isinstance(value, float) else str(value) for value in values
        )
        for name, values in block.items()
    ]
