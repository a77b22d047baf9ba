"""Label bias, a model's preference for some answers regardless of the question, and its correction.

from calibration.label_bias import mean_answer, without_bias
corrected = without_bias(p, mean_answer(p))

Arrays of probabilities have a row for each answer and a column for each label.
"""

from __future__ import annotations

from calibration.label_bias.arrays import label_columns, label_probabilities
from calibration.label_bias.correction import (
    left_out_means,
    mean_answer,
    smoothed_mean,
    without_bias,
)
from calibration.label_bias.scores import (
    LabelScores,
    beats_constant,
    compare_corrections,
    estimate_label_scores,
    label_scores,
)
from calibration.label_bias.vector_scaling import (
    CrossFittedScaling,
    VectorScaling,
    cross_fit_scaling,
    fit_vector_scaling,
)

__all__ = [
    "CrossFittedScaling",
    "LabelScores",
    "VectorScaling",
    "beats_constant",
    "compare_corrections",
    "cross_fit_scaling",
    "estimate_label_scores",
    "fit_vector_scaling",
    "label_columns",
    "label_probabilities",
    "label_scores",
    "left_out_means",
    "mean_answer",
    "smoothed_mean",
    "without_bias",
]
