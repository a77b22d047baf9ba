"""Scores of one model by name, as `calibration.score` gives them, and claims of several models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibration import score
from calibration.estimate import Estimate
from calibration.intervals import IntervalSettings
from calibration.scores.registry import REGISTRY

OF_PROBABILITIES = tuple(
    name for name, each in REGISTRY.items() if each.of_sample or name in ("brier", "log_loss")
)
"""Scores that depend on probabilities and labels, and not on the responses that claims are of."""

QUICK = IntervalSettings(n_bootstrap=30)


def scored(
    p: Any, y: Any, responses: Any = None, *, n_bootstrap: int = 0, seed: int = 0, **how: Any
) -> Mapping[str, Estimate]:
    """Scores of one model, those of `OF_PROBABILITIES` if none are named."""
    intervals = None
    if n_bootstrap:
        intervals = IntervalSettings(n_bootstrap=n_bootstrap, seed=seed)
    how = {"scores": OF_PROBABILITIES, "intervals": intervals, **how}
    return score(p, y, responses, **how).models[0].scores


def compared(methods: Mapping[str, Any], y: Any, responses: Any, **how: Any) -> Any:
    """Models of the same claims, with few replicates."""
    return score(dict(methods), y, responses, **{"intervals": QUICK, **how})


def models(seed: int, n_responses: int = 30) -> dict[str, Any]:
    """Arguments of `compared`: a blunt model, a sharp one, and the blunt one again."""
    generator = np.random.default_rng(seed)
    responses = np.repeat(np.arange(n_responses), generator.integers(3, 12, n_responses))
    truth = generator.random(responses.size)
    y = generator.random(responses.size) < truth
    sharp = np.clip(truth + generator.normal(0, 0.05, truth.size), 0.02, 0.98)
    blunt = np.clip(truth + generator.normal(0, 0.5, truth.size), 0.02, 0.98)
    methods = {"blunt": blunt, "sharp": sharp, "same": blunt.copy()}
    return {"methods": methods, "y": y, "responses": responses}
