"""Every score by name, as the file of `calibration.scores.families` that computes it defines it.

A score has one name wherever it is asked for or given: in `calibration.score`, in the columns of
tables, in the `measures` of a study.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import calibration.scores.families as families
from calibration.estimate import Estimate
from calibration.forecasts import Sample
from calibration.grouping import Grouping
from calibration.scores.definition import SampleSettings, ScoreDefinition
from calibration.scores.measures import choose_k
from calibration.validation import Floats
from factormodels.errors import InputError, unknown_name

REGISTRY: Mapping[str, ScoreDefinition] = MappingProxyType(
    {
        score.name: score
        for family in pkgutil.iter_modules(families.__path__)
        for score in importlib.import_module(f"{families.__name__}.{family.name}").FAMILY
    }
)
"""Every score by its name."""

USUAL_SCORES = tuple(
    sorted(
        (name for name, score in REGISTRY.items() if score.usual), key=lambda n: REGISTRY[n].usual
    )
)
"""Those that are shown of probabilities unless it is said which."""

MEASURES = (
    *("precision", "f1_at_k", "entropy", "precision_mae", "f1", "brier", "log_loss", "accuracy"),
    *("expected_precision", "mean_surprisal", "human_precision"),
    *("supported", "contradicted", "undecided"),
)
"""The measures of the papers, in the order of a table of methods."""

DEFAULT_MEASURES = MEASURES[:8]
"""Those that a table of a study shows unless it is told which."""

SAMPLE_SCORES = tuple(name for name, score in REGISTRY.items() if score.of_sample is not None)
"""Names of the scores that samples of forecasts have, and responses have not."""


def sample_scores(
    sample: Sample, settings: SampleSettings, names: Collection[str]
) -> dict[str, Estimate]:
    """Scores of a sample, by name.

    Args:
        sample: the sample.
        settings: what they are computed with.
        names: some of `SAMPLE_SCORES`.
    """
    scores: dict[str, Estimate] = {}
    for name in names:
        compute = REGISTRY[name].of_sample
        if name not in scores and compute is not None:
            scores |= {each.name: each for each in compute(sample, settings)}
    return {name: scores[name] for name in names}


def scores_named(names: Sequence[str], argument: str = "scores") -> tuple[ScoreDefinition, ...]:
    """Scores by name.

    Args:
        names: the names.
        argument: what an error calls them.

    Raises:
        InputError: for no name, an unknown one, or one given twice.
    """
    if isinstance(names, str) or not names:
        raise InputError(f"{argument} is {names!r}; give a list of some of {', '.join(REGISTRY)}")
    for name in names:
        if name not in REGISTRY:
            raise InputError(unknown_name(f"{argument}: the score {name!r}", name, REGISTRY))
    if len(set(names)) < len(names):
        raise InputError(f"{argument} is {list(names)!r}; give each once")
    return tuple(REGISTRY[name] for name in names)


def response_k(k: str | float, grouping: Grouping) -> Floats:
    """K of F1@K of every response, as `choose_k` chooses it."""
    return choose_k(k, grouping.sizes)
