"""Checks of curves and sentences on their bands and terms, for figures of `calibration.curves`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibration.curves import CorpCurve, RiskCurve
from factormodels.errors import InputError
from factormodels.nouns import counted


def check_curves(methods: Mapping[str, Any], kind: type[Any], maker: str) -> None:
    """Check that there is at least one curve, and that all are of the kind that `maker` returns.

    Raises:
        InputError: if there is no curve, or a value has another type.
    """
    if not methods:
        raise InputError("methods is empty; give at least one method by name")
    for name, curve in methods.items():
        if not isinstance(curve, kind):
            raise InputError(
                f"methods[{name!r}] is of type {type(curve).__name__}; give what {maker} returns"
            )


def span(values: Sequence[float]) -> str:
    """Format a number, or the smallest and the largest if they differ as printed."""
    ends = dict.fromkeys(f"{end:.4f}" for end in (min(values), max(values)))
    return " to ".join(ends)


def band_note(curves: Sequence[CorpCurve | RiskCurve]) -> str:
    """Describe the bands and the number of responses."""
    bands = {curve.band for curve in curves if isinstance(curve, CorpCurve)}
    if bands == {"none"}:
        return "No band"
    kind = "confidence bands"
    if len(bands) == 1:
        kind = f"{bands.pop()} bands"
    elif bands:
        kind = "bands"
    levels = {curve.level for curve in curves}
    note = f"{100 * levels.pop():g}% {kind}" if len(levels) == 1 else kind
    numbers = {curve.n_responses for curve in curves}
    if len(numbers) > 1:
        return note
    n_responses = numbers.pop()
    if n_responses is None:
        return f"{note}, claims independent"
    return f"{note}, {counted(n_responses, 'response')}"
