"""Learned priors: what atoms, contexts and relations are worth, fitted to labels.

from calibration.learned_priors import Specification, fit
learned = fit(graphs, Specification(encoding="conditional"))
learned.apply(graph)

The log probability of a response's labels is log Z with the labels observed less log Z; beliefs are
its gradient. `cross_validate` says whether what was learned helps responses it has not seen.
"""

from __future__ import annotations

from calibration.learned_priors.adaptation import (
    AdaptationStatus,
    AdaptedPrior,
    adapt_prior,
    labelled_share,
)
from calibration.learned_priors.approximation import (
    ApproximationBias,
    BackendBias,
    approximation_bias,
)
from calibration.learned_priors.cross_fitting import CrossFitting, cross_fitting
from calibration.learned_priors.cross_validation import CrossValidation, cross_validate
from calibration.learned_priors.fitting import fit
from calibration.learned_priors.learned import (
    FitStatus,
    LearnedPriors,
    LearnedValue,
    ValueStatus,
)
from calibration.learned_priors.objectives import Objective
from calibration.learned_priors.specification import (
    ClassProbability,
    Free,
    Specification,
    Temperature,
    stance_class,
)

__all__ = [
    "AdaptationStatus",
    "AdaptedPrior",
    "ApproximationBias",
    "BackendBias",
    "ClassProbability",
    "CrossFitting",
    "CrossValidation",
    "FitStatus",
    "Free",
    "LearnedPriors",
    "LearnedValue",
    "Objective",
    "Specification",
    "Temperature",
    "ValueStatus",
    "adapt_prior",
    "approximation_bias",
    "cross_fitting",
    "cross_validate",
    "fit",
    "labelled_share",
    "stance_class",
]
