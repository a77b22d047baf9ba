"""Settings of Core's selection of claims, shared by commands and studies."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from experiments.settings import USUAL, Settings
from experiments.settings.limits import FilePath, Probability

Weights = Annotated[
    Literal["informativeness", "uniform"],
    Field(description="Weight of a claim: its information, or equal weights."),
]
"""Name of a way to weigh claims, with its description."""


class SelectionRule(Settings):
    """Settings of Core's rule: exclusion and weights of claims."""

    weights: Annotated[Weights, USUAL] = "informativeness"

    rule: Literal["either", "both"] = "either"
    """Claims exclude each other if either entails the other, or if both do."""

    templates: FilePath | None = None
    """Your own bleached claims by domain (JSON)."""

    share: Probability | None = None
    """Smallest share of claims that their sentences must entail."""
