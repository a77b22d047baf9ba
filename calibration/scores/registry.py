"""Every score by name, as the file that computes it defines it.

A score has one name wherever it is asked for or given: the rows of `score_table`, the fields of
`summarise`, the columns of `compare_methods`, the `measures` of a study.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import MappingProxyType
from typing import Any

from numpy.typing import ArrayLike

from calibration.forecasts import Estimate, Sample
from calibration.grouping import Grouping
from calibration.labels import LabelPolicy, apply_policy, labelled_atoms
from calibration.scores.calibration_error import FAMILY as BINNED
from calibration.scores.decomposition import FAMILY as CORP
from calibration.scores.definition import JudgedClaims, SampleSettings, ScoreDefinition
from calibration.scores.logistic_calibration import FAMILY as LOGISTIC
from calibration.scores.measures import choose_k
from calibration.scores.pointwise import FAMILY as POINTWISE
from calibration.scores.ranking import FAMILY as RANKING
from calibration.scores.response_scores import FAMILY as OF_RESPONSES
from calibration.scores.selective import FAMILY as SELECTIVE
from calibration.scores.smooth import FAMILY as SMOOTH
from calibration.validation import Floats
from factormodels.errors import InputError

REGISTRY = MappingProxyType(
    {
        score.name: score
        for family in (OF_RESPONSES, POINTWISE, CORP, BINNED, SMOOTH, LOGISTIC, RANKING, SELECTIVE)
        for score in family
    }
)
"""Every score by its name."""

MEASURES = (
    *("precision", "f1_at_k", "entropy", "precision_mae", "f1", "brier", "log_loss", "accuracy"),
    *("expected_precision", "mean_surprisal", "human_precision"),
    *("supported", "contradicted", "undecided"),
)
"""Names of the scores of `summarise`, in the order of a table of methods."""

DEFAULT_MEASURES = MEASURES[:8]
"""Those that a table shows unless it is told which."""

USUAL_MEASURES = ("precision", "f1_at_k", "precision_mae", "f1", "accuracy", "brier", "log_loss")
"""Those that methods are compared in unless it is said which."""

SAMPLE_SCORES = tuple(name for name, score in REGISTRY.items() if score.of_sample is not None)
"""Names of the scores of a sample of forecasts: those of `score_table`."""


def sample_scores(
    sample: Sample, settings: SampleSettings, names: Collection[str]
) -> dict[str, Estimate]:
    """Scores of a sample, by name.

    Args:
        sample: the sample.
        settings: what they are computed with.
        names: some of `SAMPLE_SCORES`.
    """
    found: dict[str, Estimate] = {}
    for name in names:
        compute = REGISTRY[name].of_sample
        if name not in found and compute is not None:
            found |= compute(sample, settings)
    return {name: found[name] for name in names}


def scores_named(names: Sequence[str]) -> tuple[ScoreDefinition, ...]:
    """Scores by name.

    Raises:
        InputError: for no name, an unknown one, or one given twice.
    """
    if isinstance(names, str) or not names:
        raise InputError(f"measures is {names!r}; give a list of some of {', '.join(REGISTRY)}")
    for name in names:
        if name not in REGISTRY:
            raise InputError(f"measure {name!r} is unknown; choose some of {', '.join(REGISTRY)}")
    if len(set(names)) < len(names):
        raise InputError(f"measures is {list(names)!r}; give each measure once")
    return tuple(REGISTRY[name] for name in names)


def response_k(k: str | float, grouping: Grouping) -> Floats:
    """K of F1@K of every response, as `choose_k` chooses it."""
    return choose_k(k, grouping.sizes)


def judged_claims(
    p: ArrayLike,
    y: Any,
    responses: Any,
    *,
    k: str | float = "median",
    folds: Any = None,
    unlabelled: str = LabelPolicy.EXCLUDE,
    told: bool = False,
) -> JudgedClaims:
    """Labelled claims of one method, checked.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabelled.
        responses: response ids (n,).
        k: how the K of F1@K is chosen, as in `choose_k`.
        folds: fold of each claim, (n,), if `p` is cross-fitted.
        unlabelled: what claims without a label count as, as in `apply_policy`.
        told: whether the remark on those has been made already.

    Raises:
        InputError: for bad arrays, lengths that differ, or no labelled claim.
    """
    atoms = apply_policy(p, y, policy=unlabelled) if told else labelled_atoms(p, y, unlabelled)
    grouping = atoms.grouping(responses)
    return JudgedClaims(
        p=atoms.p,
        y=atoms.y,
        grouping=grouping,
        k=response_k(k, grouping),
        folds=None if folds is None else atoms.grouping(folds, "folds").index,
        n_unlabelled=atoms.n_unlabelled,
    )
