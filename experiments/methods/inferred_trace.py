"""The trace of one call of inference, for `factormodels infer --trace`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from experiments.findings.artifacts import PaperFigure
from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as
from experiments.findings.text import duration

if TYPE_CHECKING:
    from inference.posterior import Posterior
    from inference.trace import Trace


def trace_findings(source: str, trace: Trace, answer: Posterior) -> Findings:
    """Findings on each algorithm over time, as tables `trace` and `marginals` and a figure.

    Args:
        source: what the model is called.
        trace: the trace.
        answer: the posterior that was returned.
    """
    steps = trace.to_frame()
    marginals = trace.marginals_frame()
    table = Table(
        steps,
        columns_as(
            "algorithm | processor_seconds> processor time | lower:4 | upper:4 | "
            "estimate:4 | error:4 standard error | best_lower:4 best lower | "
            "best_upper:4 best upper",
            processor_seconds=duration,
        ),
        f"Results of each algorithm on {source}, by the processor time at which it ended.",
        note="lower and upper: its certain bounds on log Z; best: of all until then.",
    )
    every = Table(
        marginals,
        columns_as("step:0 | algorithm | variable | state | p:6"),
        f"Marginals of {source} by each algorithm.",
    )

    def draw() -> Mapping[str, PaperFigure]:
        from experiments.findings.figures.trace_figure import distances, trace_figure

        distance = distances(marginals, answer.marginals.flat)
        data = steps.assign(distance=steps["step"].map(distance))
        title = "Bounds, estimates and marginals against processor time"
        return {"anytime": PaperFigure(trace_figure(steps, distance), data, title)}

    return Findings(
        source=source,
        tables={"trace": table, "marginals": every},
        draw=draw,
        unshown=("marginals",),
        command="infer",
    )
