"""Numbers that the papers print and that follow from what they print: computed again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from calibration.scores.measures import entropy_measure, f1_at_k, factual_precision
from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.shared.published import (
    Published,
    printed,
    rows_of,
    with_published,
)
from experiments.findings.artefacts import Artefacts
from experiments.findings.table import Column, Table, data_frame
from experiments.study.config import STRICT
from factormodels.claims import Context as Passage
from factormodels.claims import Relation, RelationKind
from factormodels.fact_graph import FactGraph

Number = tuple[str, float, float, str]
"""What it is, the printed number, ours, and how ours was made."""

_EXAMPLE = "factreasoner-example-1"


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        published: the numbers that stand in the table of published ones.
    """

    __pydantic_config__: ClassVar = STRICT

    published: tuple[Published, ...] = ()


def run(settings: Settings, _context: AnalysisContext) -> Artefacts:
    """A table of the numbers."""
    rows = [*_factreasoner(), *_core(), *_fastfact()]
    frame = data_frame(rows, columns=["number", "printed", "ours", "how"])
    columns = (
        Column("number", "number"),
        Column("printed", "printed", show=lambda value: f"{value:g}", right=True),
        Column("ours", "we get", show=lambda value: f"{value:.6g}", right=True),
        Column("how", "how"),
    )
    caption = "Printed numbers that follow from other printed numbers."
    tables = {"numbers": Table(frame, columns, caption)}
    return with_published(tables, settings.published)


def _factreasoner() -> Iterator[Number]:
    from factormodels import datasets

    graphs = {graph.id: graph for graph in datasets.load("worked-examples").graphs}
    example = graphs[_EXAMPLE]
    first = _posterior(example)
    yield "FactReasoner, figure 1: P(a1)", 0.32, first, "48/151, encoding implication"
    yield "FactReasoner, figure 1: P(not a1)", 0.68, 1 - first, "103/151"
    for strength in (0.98, 0.99):
        yield (
            f"FactReasoner, figure 2: P(a1), strength {strength}",
            0.59,
            _posterior(_with_third(example, strength)),
            f"a third context contradicts the second with {strength}, which only a figure shows",
        )
    lower, upper = _strengths(example, 0.585, 0.595)
    yield "FactReasoner, figure 2: least strength", math.nan, lower, "that rounds to 0.59"
    yield "FactReasoner, figure 2: largest strength", math.nan, upper, "that rounds to 0.59"
    entropy = entropy_measure([0.5] * 7)
    yield "FactReasoner, section 3.2: E of undecided atoms", 0.150515, entropy, "-0.5 log10 0.5"
    six_of_14 = [1.0] * 6 + [0.0] * 8
    how = "6 of 14 atoms supported, K = 7"
    yield "FactReasoner, figure 5: Pr", 0.43, factual_precision(six_of_14), how
    yield "FactReasoner, figure 5: F1@7", 0.57, f1_at_k(six_of_14, 7), how
    yield "FactReasoner, table 2: Pr* of Biographies", 0.62, 20 / 31, "ratio of the printed means"


def _core() -> Iterator[Number]:
    from factormodels.selection.program import Program, solve

    chained = Program((1.0,) * 4, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)))
    split = Program((1.0,) * 4, ((1, 2), (1, 3)))
    how = "uniform weights, the conflicts of the figure's entailments"
    yield "Core, figure 3, up: claims selected", 3, len(solve(split).chosen), how
    yield "Core, figure 3, down: claims selected", 1, len(solve(chained).chosen), how


def _fastfact() -> Iterator[Number]:
    second = printed("fastfact_table_2")
    for benchmark in second["benchmark"].unique():
        block = rows_of(second, benchmark=benchmark).set_index("statistic")["printed"]
        yield (
            f"FaStfact, table 2: |difference of F1@K'|, {benchmark}",
            block["f1_difference"],
            abs(block["f1_human"] - block["f1_fastfact"]),
            "difference of the two printed means, not the mean of differences",
        )
    seventh = printed("fastfact_table_7")
    parts = ["refuted", "not_enough_evidence", "conflicting_evidence", "others"]
    for benchmark in seventh["benchmark"].unique():
        block = rows_of(seventh, benchmark=benchmark).set_index("statistic")["printed"]
        yield (
            f"FaStfact, table 7: % non-supported, {benchmark}",
            block["unsupported"],
            float(block[parts].sum()),
            "sum of its four parts",
        )
    for benchmark in seventh["benchmark"].unique():
        block = rows_of(seventh, benchmark=benchmark).set_index("statistic")["printed"]
        yield (
            f"FaStfact, table 7: % in all, {benchmark}",
            100.0,
            float(block[["supported", "unsupported", "irrelevant"]].sum()),
            "supported, non-supported and irrelevant",
        )
    eighth = printed("fastfact_table_8")
    for model in eighth["model"].unique():
        scores = rows_of(eighth, model=model).set_index("benchmark")["f1"]
        average, mean = scores["Avg"], scores.drop("Avg").mean()
        yield f"FaStfact, table 8: mean F1@K', {model}", average, mean, "mean over benchmarks"
    yield "FaStfact, section 3.2: % of failures of SAFE", 68, 100 * 39 / 57, "39 of 57 claims"


def _posterior(graph: FactGraph) -> float:
    from inference import infer

    factors = graph.to_factor_graph("implication")
    return float(infer(factors, "exact").marginals.of_state(1, ["a1"])[0])


def _with_third(graph: FactGraph, strength: float) -> FactGraph:
    third = Relation("c3", "c2", RelationKind.CONTRADICTION, strength)
    return replace(
        graph,
        contexts=(*graph.contexts, Passage("c3", prior=graph.contexts[0].prior)),
        relations=(*graph.relations, third),
    )


def _strengths(graph: FactGraph, low: float, high: float) -> tuple[float, float]:
    """The strengths of figure 2's contradiction at which P(a1) is `low` and `high`."""
    from scipy.optimize import brentq

    def strength(wanted: float) -> float:
        return float(
            brentq(lambda p: _posterior(_with_third(graph, p)) - wanted, 0.6, 0.9999, xtol=1e-10)
        )

    return strength(low), strength(high)
