"""Tests between the cells of a study, paired by response and corrected together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.config import Study
from experiments.config_parts import Selector
from experiments.judgements import Judgements, read_judgements
from experiments.paper_table import PaperColumn, PaperTable
from experiments.rows import CellRows, RowsFile

if TYPE_CHECKING:
    import pandas as pd

_COLUMN = {"backend": "backend_label"}

COLUMNS = (
    *("dataset", "first", "second", "elsewhere", "measure", "n_responses", "n_claims"),
    *("value_first", "value_second", "difference", "lower", "upper"),
    *("p_value", "corrected", "stars", "status"),
)
"""Columns of significance.csv; `elsewhere` is what both cells share."""


def significance_table(study: Study, rows: RowsFile) -> pd.DataFrame:
    """Return every test that a study asks for, with p-values corrected over all of them.

    A pair is tested wherever two cells differ in it alone, over the labelled claims that both
    judged; `lower` and `upper` bound the difference, by the bootstrap over responses.

    Raises:
        InputError: for a measure that cannot be compared, such as an infinite log loss.
    """
    import pandas as pd

    from calibration.significance import adjust, stars

    found = list(_tests(study, rows))
    correction = study.significance.correction
    if correction != "none" and found:
        corrected = adjust([one["p_value"] for one in found], correction)
        for one, value in zip(found, corrected, strict=True):
            one |= {"corrected": float(value), "stars": stars(float(value))}
    return pd.DataFrame(found, columns=list(COLUMNS))


def paper(tests: pd.DataFrame, study: Study) -> PaperTable:
    """Return the tests of a study as a table of a paper, a block per dataset."""
    settings = study.significance
    corrected = settings.correction != "none"
    p_value = "corrected" if corrected else "p_value"
    texts = (("first", "First"), ("second", "Second"), ("elsewhere", "Where"))
    columns = (
        *(PaperColumn(name, title.lower(), title) for name, title in texts),
        PaperColumn("measure", "measure", "Measure"),
        PaperColumn(
            "difference", "difference", "Difference", digits=4,
            lower="lower", upper="upper", stars="stars",
        ),
        PaperColumn(p_value, "p", "$p$", digits=4),
    )  # fmt: skip
    note = "p not corrected; "
    if corrected:
        how = f"corrected ({settings.correction}) over {len(tests)} tests"
        note = f"* p < 0.05, ** p < 0.01, *** p < 0.001, {how}; "
    return PaperTable(
        tests,
        columns,
        f"Paired {settings.test} tests over responses, {settings.alternative}.",
        "dataset",
        f"{note}in brackets 95% intervals of the difference, by the bootstrap over responses.",
    )


def _tests(study: Study, rows: RowsFile) -> Iterator[dict[str, Any]]:
    cells = rows.cells()
    for first, second in study.significance.pairs:
        for one in cells:
            if not _matches(one, first):
                continue
            other = next((cell for cell in cells if _counterpart(one, cell, second)), None)
            if other is not None:
                yield from _compared(study, rows, (one, first), (other, second))


def _matches(cell: CellRows, selector: Selector) -> bool:
    named = cell.named()
    return all(named[_COLUMN.get(name, name)] == value for name, value in selector.given().items())


def _counterpart(cell: CellRows, other: CellRows, selector: Selector) -> bool:
    told_apart = {_COLUMN.get(name, name) for name in selector.given()}
    if "backend_label" in told_apart and "seed" not in told_apart:
        # Of a backend without seeds there is one cell, to be compared with every seed's.
        told_apart.add("seed")
    mine, its = cell.named(), other.named()
    return _matches(other, selector) and all(
        mine[name] == its[name] for name in mine if name not in told_apart
    )


def _compared(
    study: Study,
    rows: RowsFile,
    first: tuple[CellRows, Selector],
    second: tuple[CellRows, Selector],
) -> Iterator[dict[str, Any]]:
    from calibration.significance import compare_methods

    settings = study.significance
    pair = labelled_pair(
        read_judgements(rows, first[0]), read_judgements(rows, second[0]), study.unlabelled
    )
    names = [
        " ".join(str(value) for value in selector.given().values())
        for _, selector in (first, second)
    ]
    shared = {
        "dataset": first[0].named()["dataset"],
        "first": names[0],
        "second": names[1],
        "elsewhere": _elsewhere(*first),
        "corrected": np.nan,
        "stars": "",
    }
    p, other, y, responses = pair
    for measure in settings.measures:
        if not len(y):
            empty = dict.fromkeys(COLUMNS[7:13], np.nan)
            yield {**shared, **empty, "measure": measure, "n_responses": 0, "n_claims": 0,
                   "status": "no_labels"}  # fmt: skip
            continue
        table = compare_methods(
            {"second": other, "first": p},
            y,
            responses,
            measures=[measure],
            test=settings.test,
            alternative=settings.alternative,
            correction=None,
            k=study.k,
            n_resamples=settings.resamples,
            intervals=_intervals(study.seed),
        )
        one, against = table.cell("first", measure), table.cell("second", measure)
        lower, upper = difference_interval(p, other, y, responses, measure, study.k, study.seed)
        yield {
            **shared,
            "measure": measure,
            "n_responses": table.n_responses,
            "n_claims": table.n_claims,
            "value_first": one.estimate,
            "value_second": against.estimate,
            "difference": one.difference,
            "lower": lower,
            "upper": upper,
            "p_value": one.p_value,
            "status": one.status,
        }


def labelled_pair(
    first: Judgements, second: Judgements, policy: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (p of the first, p of the second, labels, responses) of the claims that both judged.

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
    mine, its = mine[both], its[both]
    place = np.arange(len(mine))
    # The policy decides by label alone, so that the positions it keeps are the same for both.
    scored = apply_policy(first.p[mine], first.label[mine], place, policy)
    kept = np.array(scored.responses, dtype=np.int64)
    return scored.p, second.p[its][kept], scored.y, first.index[mine][kept]


def difference_interval(
    p: np.ndarray,
    other: np.ndarray,
    y: np.ndarray,
    responses: np.ndarray,
    measure: str,
    k: int | str,
    seed: int,
) -> tuple[float, float]:
    """Return the interval of a measure's difference, by the paired bootstrap over responses.

    Args:
        p: probabilities (n,) of one method.
        other: those of the other, of the same claims.
        y: labels (n,).
        responses: responses (n,).
        measure: a measure of `calibration.significance`.
        k: how the K of F1@K is chosen.
        seed: seed of the bootstrap.
    """
    from calibration.grouping import group_by_response
    from calibration.significance.measures import Judged, measures_named, response_k
    from calibration.significance.paired import bootstrap_difference

    grouping = group_by_response(responses)
    (chosen,) = measures_named([measure])
    sides = [Judged(values, y, grouping, response_k(k, grouping)) for values in (p, other)]
    result = bootstrap_difference(
        chosen.sums(sides[0]), chosen.sums(sides[1]), n_bootstrap=_REPLICATES, seed=seed
    )
    return result.lower, result.upper


_REPLICATES = 2000


def _intervals(seed: int) -> Any:
    from calibration.estimands import IntervalSettings

    # Those of each method alone are not shown, and this way costs least.
    return IntervalSettings(method="delta", seed=seed)


def _elsewhere(cell: CellRows, selector: Selector) -> str:
    told_apart = {"dataset", *(_COLUMN.get(name, name) for name in selector.given())}
    return " ".join(str(v) for name, v in cell.named().items() if name not in told_apart)
