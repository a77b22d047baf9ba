"""Comparison of printed p-values with the means and standard deviations printed beside them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from calibration.scores.registry import REGISTRY
from experiments.analyses.context import AnalysisContext
from experiments.analyses.published import printed
from experiments.findings.artifacts import Artifacts
from experiments.findings.table import Column, Table, columns_as, data_frame
from experiments.settings.keyed import Keyed

RESPONSES: Mapping[str, int] = {
    "biographies": 157,
    "askh": 200,
    "books": 200,
    "eli5": 200,
    "lfobj": 380,
}
"""Responses of each dataset (FactReasoner, table 2)."""

_HALF_P = 0.00005
"""Half a unit of the last place of printed p-values."""

_LEAST_SD = 1e-3
"""Tables whose printed standard deviations may round down to zero."""

_EXCHANGED = {"FV": "VS", "VS": "FV", "FS": "FS"}

READINGS = ("as printed", "FV and VS exchanged", "FR3 in place of FR2", "both")
"""Rows of the printed means to which a printed p-value may refer."""


class Settings(Keyed):
    """Settings of the analysis."""

    rounding: float = 0.005
    """Half a unit of the last place of printed means and standard deviations."""


def run(settings: Settings, _context: AnalysisContext) -> Artifacts:
    """Compare every printed p-value with an unpaired t-test of the printed means."""
    frame = data_frame(list(implied_tests(settings.rounding)))
    note = (
        "Unpaired: Welch's one-sided t-test of means and standard deviations that round to the "
        "printed ones, as if the two assessors had judged different responses; a printed p-value "
        "agrees if it lies in the range that these allow. Table 12 calls its second and third "
        "assessors FB and FV; they are read as FV and VS, the order of the other tables."
    )
    columns = columns_as(
        "table | model | comparison assessors | measure | printed:4 printed p | "
        "implied:4[] unpaired p | reading agrees if read"
    )
    kinds = (*READINGS, "none")
    counts = frame.pivot_table(
        index="table", columns="reading", values="printed", aggfunc="count", fill_value=0,
        margins=True, margins_name="all", sort=False,
    ).reindex(columns=[*kinds, "all"], fill_value=0)  # fmt: skip
    counts = counts.rename(columns={"all": "tests"}).reset_index()
    shown = (Column(name, name, digits=0) for name in ("tests", *kinds))
    caption = (
        "Printed p-values (FactReasoner, tables 4 and 20 to 27) and p-values of the printed means "
        "and standard deviations (tables 10 and 12 to 19)."
    )
    agreeing = "Number of printed p-values that agree, by reading."
    return Artifacts(
        {
            "tests": Table(frame, columns, caption, note=note),
            "agreement": Table(counts, (Column("table", "table"), *shown), agreeing, note=note),
        }
    )


def implied_tests(rounding: float) -> Iterator[dict[str, Any]]:
    """Yield every printed p-value with the value implied by the printed means in each reading."""
    keys = ["dataset", "source", "model", "measure"]
    statistics = {
        tuple(row[key] for key in (*keys, "assessor")): (row["mean"], row["sd"])
        for row in printed("factreasoner_means").to_dict("records")
    }
    for test in printed("factreasoner_tests", dtype={"table": str}).to_dict("records"):
        block = tuple(test[key] for key in keys)
        against = (test["against"], _EXCHANGED[test["against"]])
        pairs = itertools.product(("FR2", "FR3"), against)
        higher_is_better = bool(REGISTRY[_SCORES[test["measure"]]].higher_is_better)
        size = RESPONSES[test["dataset"]]
        ranges = {
            reading: _range(
                statistics[*block, first],
                statistics[*block, second],
                higher_is_better,
                size,
                rounding,
            )
            for reading, (first, second) in zip(READINGS, pairs, strict=True)
        }
        agreeing = [
            reading
            for reading, (_, lower, upper) in ranges.items()
            if lower - _HALF_P <= test["p_value"] <= upper + _HALF_P
        ]
        yield {
            **{name: test[name] for name in ("table", "dataset", "source", "model")},
            "comparison": f"FR2 vs {test['against']}",
            "measure": test["measure"],
            "printed": test["p_value"],
            **dict(zip(("implied", "lower", "upper"), ranges[READINGS[0]], strict=True)),
            "reading": agreeing[0] if agreeing else "none",
        }


_SCORES = {"precision": "precision", "f1": "f1", "f1_at_k": "f1_at_k", "mae": "precision_mae"}


def _range(
    first: tuple[float, float], second: tuple[float, float], greater: bool, n: int, rounding: float
) -> tuple[float, float, float]:
    """Return the p-value of two printed means, and the least and largest that rounding allows.

    Args:
        first: mean and standard deviation of the one side.
        second: mean and standard deviation of the other side.
        greater: whether the alternative is that the first mean is greater.
        n: number of responses of each side.
        rounding: by how much a printed number may differ from the number itself.
    """
    from scipy.stats import ttest_ind_from_stats

    means, sds = zip(first, second, strict=True)

    def p_value(change: float, other_change: float, spread: float) -> float:
        spreads = [max(sd + spread, _LEAST_SD) for sd in sds]
        test = ttest_ind_from_stats(
            *(means[0] + change, spreads[0], n),
            *(means[1] + other_change, spreads[1], n),
            equal_var=False,
            alternative="greater" if greater else "less",
        )
        return float(test.pvalue)

    # p is monotone in each mean, and for given means in the common change of the spreads: its
    # extremes lie at corners of the box of numbers that round to the printed ones.
    ends = (-rounding, rounding)
    p_values = [p_value(*changes) for changes in itertools.product(ends, ends, ends)]
    return p_value(0.0, 0.0, 0.0), min(p_values), max(p_values)
