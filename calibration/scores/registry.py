"""Registry of the scores that the files of `calibration.scores.families` define.

A score has the same name in `calibration.score`, in the columns of tables, and in the `measures` of
a study.
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
"""All scores by name."""

USUAL_SCORES = tuple(
    sorted(
        (name for name, score in REGISTRY.items() if score.usual), key=lambda n: REGISTRY[n].usual
    )
)
"""Names of the scores of probabilities that are shown by default."""

MEASURES = (
    *("precision", "f1_at_k", "entropy", "precision_mae", "f1", "brier", "log_loss", "accuracy"),
    *("expected_precision", "mean_surprisal", "human_precision"),
    *("supported", "contradicted", "undecided"),
)
"""The measures of the papers, in the order of a table of methods."""

DEFAULT_MEASURES = MEASURES[:8]
"""Names of the scores that tables of studies show by default."""

SAMPLE_SCORES = tuple(name for name, score in REGISTRY.items() if score.of_sample is not None)
"""Names of the scores that are defined for samples of forecasts and not by response."""


def sample_scores(
    sample: Sample, settings: SampleSettings, names: Collection[str]
) -> dict[str, Estimate]:
    """Scores of a sample, by name.

    Args:
        sample: the sample.
        settings: settings of the scores.
        names: names of the scores, from `SAMPLE_SCORES`.
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
        argument: name of the argument in errors.

    Raises:
        InputError: for no name, an unknown name, or a duplicate name.
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
    """K of F1@K for every response, as chosen by `choose_k`."""
    return choose_k(k, grouping.sizes)
