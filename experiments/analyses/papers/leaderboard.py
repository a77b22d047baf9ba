"""Models ranked by F1@K' of their responses, in the form of FaStfact's figure 4."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from calibration.claims.counts import f1_at_k_prime
from calibration.figures.panels import PAGE, draw_interval, nth_colour, panels
from calibration.intervals import mean_interval
from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.shared.judged_claims import counts_of, judged_graphs
from experiments.analyses.papers.shared.loading import load_by_model
from experiments.analyses.papers.shared.published import (
    Published,
    printed_rows,
    with_published,
)
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, text_columns
from experiments.study.config import STRICT
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SOURCE = "fastfact-models"


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        gamma: of F1@K'; the paper does not print its own.
        published: the numbers that stand in the table of published ones.
        data_file: file that says where data are; None: the default one, if it exists.
    """

    __pydantic_config__: ClassVar = STRICT

    gamma: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.1
    published: tuple[Published, ...] = ()
    data_file: str | None = None


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """The ranking and its figure."""
    loaded = load_by_model(SOURCE, "model", context, settings.data_file)
    remark = loaded.remark
    rows = [_row(name, data.graphs, settings.gamma) for name, data in loaded.parts.items()]
    rows.sort(key=lambda row: (math.isnan(row["f1"]), -row["f1"]))
    printed = printed_rows("fastfact_table_8", "benchmark", "model", "f1", "precision", "claims")
    averages = [row for row in printed if row.pop("benchmark") == "Avg"]
    frame = data_frame(rows + averages)
    columns = (
        *text_columns("origin", "model"),
        Column("f1", "F1@K'", digits=3, lower="lower", upper="upper"),
        Column("precision", "precision", digits=3),
        Column("claims", "claims per response", digits=1),
    )
    caption = f"FaStfact, figure 4 and the averages of table 8. {remark}"
    note = (
        f"Gamma of F1@K' is {settings.gamma:g}; in brackets 95% intervals over responses "
        "(delta). K' is what people counted (k_prime of a response); responses without it "
        f"have no score: {sum(row['uncounted'] for row in rows):,} here."
    )
    tables = {"ranking": Table(frame, columns, caption, note=note)}
    figures = {"figure-4": PaperFigure(_figure(frame), frame, caption)}
    return with_published(tables, settings.published, remark, figures)


def _row(name: str, graphs: Sequence[FactGraph], gamma: float) -> dict[str, Any]:
    responses = judged_graphs(graphs)
    counts = counts_of(responses)
    # Never the model's own count: padding would then cost nothing.
    known = [place for place, graph in enumerate(graphs) if "k_prime" in graph.metadata]
    k_prime = [graphs[place].metadata["k_prime"] for place in known]
    scores = f1_at_k_prime(counts.supported[known], counts.unsupported[known], k_prime, gamma)
    total = counts.supported + counts.unsupported
    mean, lower, upper = mean_interval(scores)
    return {
        "origin": "ours",
        "model": name,
        "f1": mean,
        "lower": lower,
        "upper": upper,
        "precision": float((counts.supported[total > 0] / total[total > 0]).mean()),
        "claims": float(total.mean()),
        "uncounted": len(graphs) - len(known),
    }


_RULE: dict[str, Any] = {"color": "0.9", "linewidth": 0.5, "zorder": 0}


def _figure(frame: pd.DataFrame) -> Figure:
    rows = frame.to_dict("records")
    size = (PAGE, 0.6 + 0.17 * len(rows))
    with panels(1, 2, size, sharey=True, width_ratios=(2, 1)) as (figure, ((left, right),)):
        heights = range(len(rows) - 1, -1, -1)
        for height, row in zip(heights, rows, strict=True):
            ours = row["origin"] == "ours"
            look = {"color": nth_colour(0) if ours else "0.45", "marker": "o" if ours else "D"}
            draw_interval(left, height, (row["f1"], row["lower"], row["upper"]), **look)
            right.plot([row["claims"]], [height], markersize=4.0, **look)
        for place in (left, right):
            place.hlines(heights, 0, 1, transform=place.get_yaxis_transform(), **_RULE)
        names = [row["model"] + ("" if row["origin"] == "ours" else " (paper)") for row in rows]
        left.set_yticks(heights, names)
        left.set(xlim=(0, 1), xlabel="F1@K'")
        right.set(xlabel="claims per response", xlim=(0, None))
        return figure
