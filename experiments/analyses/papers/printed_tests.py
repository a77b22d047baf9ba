"""Printed p-values held against the means and standard deviations that are printed beside them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.shared.assessor_measures import DIRECTIONS
from experiments.analyses.papers.shared.published import (
    Published,
    printed,
    records,
    rows_of,
    with_published,
)
from experiments.findings.artefacts import Artefacts
from experiments.findings.table import Column, Table, data_frame, text_columns
from experiments.study.config import STRICT

if TYPE_CHECKING:
    import pandas as pd

RESPONSES: Mapping[str, int] = {
    "biographies": 157,
    "askh": 200,
    "books": 200,
    "eli5": 200,
    "lfobj": 380,
}
"""Responses of each dataset (FactReasoner, table 2)."""

_HALF = 0.005
"""Half a unit of the last place of printed means and standard deviations."""

_HALF_P = 0.00005
"""The same of printed p-values."""

_LEAST_SD = 1e-3
"""Where a printed standard deviation may round down to none."""

_EXCHANGED = {"FV": "VS", "VS": "FV", "FS": "FS"}

READINGS = ("as printed", "FV and VS exchanged", "FR3 in place of FR2", "both")
"""Which rows of the printed means a printed p-value may be of."""


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        published: the numbers that stand in the table of published ones.
    """

    __pydantic_config__: ClassVar = STRICT

    published: tuple[Published, ...] = ()


def run(settings: Settings, _context: AnalysisContext) -> Artefacts:
    """What an unpaired t-test of the printed means gives for every printed p-value."""
    frame = _implied()
    counts = _counts(frame)
    note = (
        "Unpaired: Welch's one-sided t-test of means and standard deviations that round to the "
        "printed ones, as if the two assessors had judged different responses; a printed p-value "
        "agrees if it lies in the range that these allow. Table 12 calls its second and third "
        "assessors FB and FV; they are read as FV and VS, the order of the other tables."
    )
    columns = (
        *text_columns("table", "model"),
        Column("comparison", "assessors"),
        Column("measure", "measure"),
        Column("printed", "printed p", digits=4),
        Column("implied", "unpaired p", digits=4, lower="lower", upper="upper"),
        Column("reading", "agrees if read"),
    )
    kinds = [Column("table", "table"), Column("tests", "tests", digits=0)]
    kinds += [Column(name, name, digits=0) for name in (*READINGS, "none")]
    tables = {
        "tests": Table(
            frame,
            columns,
            "Printed p-values (FactReasoner, tables 4 and 20 to 27) and those of the printed means "
            "and standard deviations (tables 10 and 12 to 19).",
            note=note,
        ),
        "agreement": Table(
            counts, tuple(kinds), "How many printed p-values agree, by reading.", note=note
        ),
    }
    return with_published(tables, settings.published)


def _implied() -> pd.DataFrame:
    means = printed("factreasoner_tables")
    means = means[means["sd"].notna() & ~means["table"].isin(["11", "C.2"])]
    second = {"FB": "FV", "FV": "VS"}
    means["assessor"] = means["assessor"].mask(
        means["table"] == "12", means["assessor"].replace(second)
    )
    rows: list[dict[str, Any]] = []
    for test in records(printed("factreasoner_tests")):
        block = rows_of(
            means,
            dataset=test["dataset"],
            source=test["source"],
            model=test["model"],
            measure=test["measure"],
        ).set_index("assessor")
        against = (test["against"], _EXCHANGED[test["against"]])
        pairs = itertools.product(("FR2", "FR3"), against)
        ranges = {
            reading: _range(block, one, other, test["measure"], RESPONSES[test["dataset"]])
            for reading, (one, other) in zip(READINGS, pairs, strict=True)
        }
        agreeing = [
            reading
            for reading, (_, lower, upper) in ranges.items()
            if lower - _HALF_P <= test["p_value"] <= upper + _HALF_P
        ]
        implied, lower, upper = ranges[READINGS[0]]
        rows.append(
            {
                **{name: test[name] for name in ("table", "dataset", "source", "model")},
                "comparison": f"FR2 vs {test['against']}",
                "measure": test["measure"],
                "printed": test["p_value"],
                "implied": implied,
                "lower": lower,
                "upper": upper,
                "reading": agreeing[0] if agreeing else "none",
            }
        )
    return data_frame(rows)


def _range(
    block: pd.DataFrame, one: str, other: str, measure: str, n: int
) -> tuple[float, float, float]:
    """The p-value of the printed means, and the least and largest that rounding allows."""
    from scipy.stats import ttest_ind_from_stats

    alternative = "greater" if DIRECTIONS[measure] > 0 else "less"
    means: Mapping[Any, float] = block["mean"].to_dict()
    deviations: Mapping[Any, float] = block["sd"].to_dict()

    def p_value(change: float, other_change: float, spread: float) -> float:
        return float(
            ttest_ind_from_stats(
                means[one] + change,
                max(deviations[one] + spread, _LEAST_SD),
                n,
                means[other] + other_change,
                max(deviations[other] + spread, _LEAST_SD),
                n,
                equal_var=False,
                alternative=alternative,
            ).pvalue
        )

    # p is monotone in each mean, and for given means in the common change of the spreads: its
    # extremes lie at corners of the box of numbers that round to the printed ones.
    ends = (-_HALF, _HALF)
    found = [p_value(*changes) for changes in itertools.product(ends, ends, ends)]
    return p_value(0.0, 0.0, 0.0), min(found), max(found)


def _counts(frame: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for table in [*frame["table"].unique(), "all"]:
        block = frame if table == "all" else frame[frame["table"] == table]
        found = block["reading"].value_counts()
        rows.append(
            {
                "table": table,
                "tests": len(block),
                **{name: int(found.get(name, 0)) for name in (*READINGS, "none")},
            }
        )
    return data_frame(rows)
