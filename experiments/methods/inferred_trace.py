"""The trace of one call of inference, for `factormodels infer --trace`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.findings.artifacts import PaperFigure
from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as
from experiments.findings.text import duration

if TYPE_CHECKING:
    import pandas as pd

    from inference.posterior import Posterior
    from inference.trace import Trace


def trace_findings(
    source: str,
    trace: Trace,
    answer: Posterior,
    sentences: Sequence[str],
    settings: Mapping[str, Any],
) -> Findings:
    """Findings on each algorithm over time: tables `trace` and `marginals`, and a figure.

    Args:
        source: name of the model.
        trace: the trace.
        answer: the posterior that was returned.
        sentences: sentences on the answer, which are kept with its trace.
        settings: settings of the call, as JSON can represent them.
    """
    steps = trace.to_frame()
    marginals = trace.marginals_frame()
    table = Table(
        steps,
        columns_as(
            "algorithm | processor_seconds> processor time | lower:4 | upper:4 | "
            "estimate:4 | error:4 standard error | bethe:4 Bethe | best_lower:4 best lower | "
            "best_upper:4 best upper",
            processor_seconds=duration,
        ),
        f"Results of each algorithm on {source}, by the processor time at which it ended.",
        note="lower and upper: certain bounds on log Z; Bethe: message passing's approximation, "
        "without an error; best: best bounds so far.",
    )
    every = Table(
        marginals,
        columns_as("step:0 | algorithm | variable | state | p:6"),
        f"Marginals of {source} by each algorithm.",
    )

    def draw() -> Mapping[str, PaperFigure]:
        from experiments.findings.figures.trace_figure import distances, trace_figure

        distance = distances(marginals, answer.marginals.flat)
        caption = _caption(source, answer, steps, bool((distance > 0.0).any()))
        data = steps.assign(distance=steps["step"].map(distance))
        return {"anytime": PaperFigure(trace_figure(steps, distance), data, caption)}

    return Findings(
        source=source,
        sentences=tuple(sentences),
        settings=settings,
        tables={"trace": table, "marginals": every},
        draw=draw,
        unshown=("marginals",),
        command="infer",
    )


def _caption(source: str, answer: Posterior, steps: pd.DataFrame, has_distances: bool) -> str:
    """Return the caption, which explains the zero, the band and the reference of the marginals."""
    ends = steps[["best_lower", "best_upper"]].iloc[-1]
    zero = "the middle of the last bracket" if np.isfinite(ends).all() else "the last number found"
    by = answer.stats.get("marginals_by", answer.answered_by)
    compared = "; distances of other marginals are mean |Δp| to these" if has_distances else ""
    return (
        f"Bounds on and estimates of log Z of {source} by each algorithm, against the processor "
        f"time at which it ended. Band: the best certain bracket so far; zero: {zero}. The "
        f"returned marginals are from {by}, with the status {answer.status}{compared}"
    )
