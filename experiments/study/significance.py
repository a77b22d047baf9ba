"""Tests between the cells of a study, paired by response and corrected together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.findings.table import Column, Table
from experiments.study.cell_names import CELL, NO_GRAPH, cell_words
from experiments.study.config import Selector, Study
from experiments.study.judgements import Judgements, cross_fitted_folds, read_judgements
from experiments.study.rows import CellRows, RowsFile

if TYPE_CHECKING:
    import pandas as pd

    from calibration.intervals import RatioSums
    from calibration.scores.definition import JudgedClaims

_COLUMN = {"backend": "backend_label"}

REPLICATES = 2000
"""Replicates of the intervals of differences."""

COLUMNS = (
    *("dataset", "first", "second", "elsewhere", "measure", "n_responses", "n_claims"),
    *("value_first", "value_second", "difference", "lower", "upper", "coverage"),
    *("p_value", "resamples", "corrected", "stars", "status", "reason"),
)
"""Columns of significance.csv; `elsewhere` is what both sides share, `n_claims` those of the first:
sides that differ in selection are each over their own. `coverage` is what intervals of such a
difference cover in simulations where that is not their level. `resamples` is how many swaps or
replicates a p-value is counted in."""


def significance_table(study: Study, rows: RowsFile) -> pd.DataFrame:
    """Every test that a study asks for, with p-values corrected over all of them.

    A pair is tested wherever two cells differ in it alone, over the labelled claims that both
    judged or, where they differ in selection, over those of each; `lower` and `upper` bound the
    difference, paired by response. A difference that is not defined, such as that of an infinite
    log loss, has a `status` and a `reason`. AUROC is within folds where priors were learned.
    """
    import pandas as pd

    from calibration.significance import adjust, stars

    found = list(_tests(study, rows))
    # Corrected over all tests of the study at once, so every one of them is computed first.
    correction = study.significance.correction
    if correction != "none" and found:
        corrected = adjust([one["p_value"] for one in found], correction)
        for one, value in zip(found, corrected, strict=True):
            one |= {"corrected": float(value), "stars": stars(float(value))}
    return pd.DataFrame(found, columns=list(COLUMNS))


@dataclass(frozen=True)
class Side:
    """What may be compared with another: a cell, and which of its atoms count.

    Attributes:
        cell: the cell.
        selection: what counts; None where every atom does and nothing else.
    """

    cell: CellRows
    selection: str | None

    def named(self) -> dict[str, Any]:
        """What tells it from the others, by column."""
        own = {} if self.selection is None else {"selection": self.selection}
        return {**self.cell.named(), **own}

    def judgements(self, rows: RowsFile) -> Judgements:
        """Its judgements, those of atoms that the selection leaves out made NaN."""
        everything = read_judgements(rows, self.cell)
        return everything if self.selection is None else everything.selected(self.selection)


def sides_of(study: Study, rows: RowsFile) -> list[Side]:
    """What may be compared, in the order of the summary's rows."""
    return [Side(cell, one) for cell in rows.cells() for one in study.selected or (None,)]


def paper(tests: pd.DataFrame, study: Study) -> Table:
    """The tests of a study as a table of a paper, a block per dataset."""
    settings = study.significance
    corrected = settings.correction != "none"
    measured = bool(tests["coverage"].notna().any())
    p_value = "corrected" if corrected else "p_value"
    texts = (("first", "First"), ("second", "Second"), ("elsewhere", "Where"))
    columns = (
        *(Column(name, title.lower(), title) for name, title in texts),
        Column("measure", "measure", "Measure"),
        Column(
            "difference", "difference", "Difference", digits=4,
            lower="lower", upper="upper", stars="stars",
        ),
        *((Column("coverage", "covers", "Covers", digits=2),) if measured else ()),
        Column(p_value, "p", "$p$", digits=4),
    )  # fmt: skip
    note = "p not corrected; "
    if corrected:
        how = f"corrected ({settings.correction}) over {len(tests)} tests"
        note = f"* p < 0.05, ** p < 0.01, *** p < 0.001, {how}; "
    return Table(
        tests,
        columns,
        f"Paired {settings.test} tests over responses, {settings.alternative}.",
        "dataset",
        f"{note}in brackets: 95% intervals of the difference, paired by response."
        f"{_COVERS if measured else ''}"
        f"{_folds_note(study)}",
    )


_COVERS = (
    " Covers: what intervals of such a difference of so many responses cover in simulations, where "
    "that is not their level."
)


def _folds_note(study: Study) -> str:
    if "auroc" not in study.significance.measures or not any(p.learned for p in study.priors):
        return ""
    return " AUROC of learned priors compares claims of one fold."


def _tests(study: Study, rows: RowsFile) -> Iterator[dict[str, Any]]:
    sides = sides_of(study, rows)
    for first, second in study.significance.pairs:
        # The first side of a pair runs over all cells it matches; the second is then determined.
        for one in sides:
            if not _matches(one, first):
                continue
            others = (side for side in sides if _counterpart(one, side, second))
            # An assessor has one cell, to be compared with every view's.
            for other in others if _without_graph(one) else islice(others, 1):
                yield from _compared(study, rows, (one, first), (other, second))


def _matches(side: Side, selector: Selector) -> bool:
    """Whether a side has the values that a selector names."""
    named = side.named()
    # A study of a single selection, all, has no such column.
    return all(
        named.get(_COLUMN.get(name, name), value) == value
        for name, value in selector.given().items()
    )


def _counterpart(one: Side, other: Side, selector: Selector) -> bool:
    """Whether two sides are the same in all but what the pair tells apart."""
    told_apart = {_COLUMN.get(name, name) for name in selector.given()}
    if "backend_label" in told_apart and "seed" not in told_apart:
        # Of a backend without seeds there is one cell, to be compared with every seed's.
        told_apart.add("seed")
    if "backend_label" in told_apart and _without_graph(one) != _without_graph(other):
        # Without a graph there is no variant, encoding or prior to agree in.
        told_apart.update(set(CELL) - {"dataset"})
    mine, its = one.named(), other.named()
    return _matches(other, selector) and all(
        mine[name] == its[name] for name in mine if name not in told_apart
    )


def _without_graph(side: Side) -> bool:
    return bool(side.named()["variant"] == NO_GRAPH)


def _compared(
    study: Study,
    rows: RowsFile,
    first: tuple[Side, Selector],
    second: tuple[Side, Selector],
) -> Iterator[dict[str, Any]]:
    """Yield a row per measure for one pair of sides."""
    from calibration.intervals import IntervalSettings
    from calibration.significance import compare_judged

    settings = study.significance
    judgements = [side.judgements(rows) for side, _ in (first, second)]
    shared = {
        "dataset": first[0].named()["dataset"],
        **{name: _title(side[1]) for name, side in (("first", first), ("second", second))},
        "elsewhere": _elsewhere(*(second if _without_graph(first[0]) else first)),
        "corrected": np.nan,
        "stars": "",
    }
    if first[0].selection == second[0].selection:
        p, other, y, responses = labelled_pair(judgements[0], judgements[1], study.unlabelled)
        # With one selection on both sides, both are taken over the very same claims.
        names = np.array(judgements[0].responses, dtype=object)[responses]
        claims = [(p, y, names), (other, y, names)]
    else:
        claims = _claims_of_each(judgements[0], judgements[1], study.unlabelled)
    if not len(claims[0][0]):
        shared |= dict.fromkeys(("resamples", "n_responses", "n_claims"), 0)
        shared |= {"p_value": np.nan, "status": "no_labels"}
        shared["reason"] = "no claim with a label was judged by both"
        yield from (shared | {"measure": measure} for measure in settings.measures)
        return
    # What was learned on one side alone is compared within its folds on both.
    folds = [
        _folds(study, side.cell, judged)
        for judged, (side, _) in zip(judgements, (first, second), strict=True)
    ]
    fold = next((one for one in folds if one is not None), None)
    sides = [
        judged_claims(
            *own, study.k, None if fold is None else np.array([fold[id] for id in own[2]])
        )
        for own in claims
    ]
    for found in compare_judged(
        sides[0],
        sides[1],
        settings.measures,
        test=settings.test,
        alternative=settings.alternative,
        n_resamples=settings.resamples,
        intervals=IntervalSettings(n_bootstrap=REPLICATES, seed=study.seed),
    ):
        yield {
            **shared,
            "measure": found.name,
            "n_responses": len(sides[0].grouping.responses),
            "n_claims": sides[0].y.size,
            "value_first": found.first,
            "value_second": found.second,
            "difference": found.value,
            "lower": found.lower,
            "upper": found.upper,
            "coverage": found.coverage,
            "p_value": found.p_value,
            "resamples": found.n_resamples,
            "status": str(found.status),
            "reason": found.reason,
        }


def _folds(study: Study, cell: CellRows, judgements: Judgements) -> dict[str, int] | None:
    """Fold of every response by its name, if the cell's priors were learned."""
    folds = cross_fitted_folds(study, cell, judgements)
    return None if folds is None else dict(zip(judgements.responses, folds.tolist(), strict=True))


def _title(selector: Selector) -> str:
    return " ".join(str(value) for value in selector.given().values())


_Claims = tuple[np.ndarray, np.ndarray, np.ndarray]
"""(p, labels, responses) of some claims."""


def _claims_of_each(first: Judgements, second: Judgements, policy: str) -> list[_Claims]:
    """The labelled claims of each side, in the responses in which both have some."""
    from calibration.labels import apply_policy

    sides: list[_Claims] = []
    for one in (first, second):
        if not one.judged.any():
            return [(np.empty(0),) * 3] * 2
        names = np.array(one.responses, dtype=object)[one.index[one.judged]]
        scored = apply_policy(one.p[one.judged], one.label[one.judged], policy)
        # By name rather than number: two cells may number their responses differently.
        sides.append((scored.p, scored.y, names[scored.kept]))
    # The test pairs by response, so one that only a single side has is of no use.
    both = set(sides[0][2].tolist()) & set(sides[1][2].tolist())
    kept = [np.array([name in both for name in own.tolist()], dtype=bool) for *_, own in sides]
    return [(p[at], y[at], names[at]) for (p, y, names), at in zip(sides, kept, strict=True)]


def labelled_pair(
    first: Judgements, second: Judgements, policy: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(p of the first, p of the second, labels, responses) of the claims that both judged.

    Args:
        first: one cell.
        second: another, of the same dataset.
        policy: what unlabelled atoms count as.

    Raises:
        InputError: for unlabelled atoms under the policy "error".
    """
    from calibration.labels import apply_policy

    mine, its = first.same_rows(second)
    both = first.judged[mine] & second.judged[its]
    if not both.any():
        return (np.empty(0),) * 3 + (np.empty(0, dtype=np.int64),)
    # From here on position i is the same claim on both sides.
    mine, its = mine[both], its[both]
    # The policy decides by label alone, so that the claims it keeps are the same for both.
    scored = apply_policy(first.p[mine], first.label[mine], policy)
    return scored.p, second.p[its][scored.kept], scored.y, first.index[mine][scored.kept]


def moved(first: RatioSums, second: RatioSums, seed: int) -> tuple[float, float, float, float]:
    """Two values of a measure, and the ends of the interval of the first less the second.

    Args:
        first: the sums of one side.
        second: those of the other, over the same responses.
        seed: seed of the paired bootstrap over these.

    Raises:
        InputError: if there is no difference, as of an infinite log loss.
    """
    from calibration.significance.paired import bootstrap_difference

    result = bootstrap_difference(first, second, n_bootstrap=REPLICATES, seed=seed)
    value, other = (float(sums.estimate()[0]) for sums in (first, second))
    return value, other, result.lower, result.upper


def judged_claims(
    p: np.ndarray,
    y: np.ndarray,
    responses: np.ndarray,
    k: int | str,
    folds: np.ndarray | None = None,
) -> JudgedClaims:
    """Claims (n,) of responses (n,), in a form that measures take."""
    from calibration.grouping import group_by_response
    from calibration.scores.definition import JudgedClaims
    from calibration.scores.registry import response_k

    grouping = group_by_response(responses)
    return JudgedClaims(p, y, grouping, response_k(k, grouping), folds)


def _elsewhere(side: Side, selector: Selector) -> str:
    told_apart = {"dataset", *(_COLUMN.get(name, name) for name in selector.given())}
    named = side.named()
    return cell_words(named, [name for name in named if name not in told_apart])
