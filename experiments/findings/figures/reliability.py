"""The reliability diagram of commands and studies, with the numbers that it shows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from experiments.findings.artifacts import PaperFigure
from experiments.findings.table import data_frame

if TYPE_CHECKING:
    import pandas as pd

    from calibration.curves import CorpCurve, ReliabilityBins


def reliability_figure(
    curves: Mapping[str, CorpCurve],
    bins: Mapping[str, ReliabilityBins],
    title: str,
    *,
    panels: Mapping[str, str] = MappingProxyType({}),
) -> PaperFigure:
    """Return the CORP lines of models, and bins with intervals beside them.

    Args:
        curves: the curves by model.
        bins: the bins by model; none if claims have weights.
        title: description of the figure, for its caption.
        panels: text by model; models with the same text share a panel.
    """
    from calibration.figures import corp_diagram

    figure = corp_diagram(curves, bins=bins, panels=panels)
    return PaperFigure(figure, _numbers(curves, bins), title, _says_nothing(curves))


def _says_nothing(curves: Mapping[str, CorpCurve]) -> str:
    """Return the reason why no line can rise: the frequency is 0 or 1 at every probability."""
    frequencies = {float(each) for curve in curves.values() for each in curve.recalibrated}
    if len(frequencies) > 1 or not frequencies <= {0.0, 1.0}:
        return ""
    return f"every label is {'true' if frequencies == {1.0} else 'false'}"


def _numbers(curves: Mapping[str, CorpCurve], bins: Mapping[str, ReliabilityBins]) -> pd.DataFrame:
    """A row for each end of a step of a line, and a row for each bin, with its edges."""
    rows = []
    for model, curve in curves.items():
        for p, recalibrated in zip(curve.p, curve.recalibrated, strict=True):
            rows.append({"model": model, "part": "line", "predicted": p, "observed": recalibrated})
        if model not in bins:
            continue
        model_bins = bins[model]
        for row, position in zip(model_bins.rows(), model_bins.position, strict=True):
            rows.append(
                {
                    "model": model,
                    "part": "bin",
                    "predicted": row["mean_predicted"],
                    **{name: row[name] for name in ("observed", "lower", "upper", "count")},
                    "bin_start": model_bins.edges[position],
                    "bin_end": model_bins.edges[position + 1],
                }
            )
    return data_frame(rows)
