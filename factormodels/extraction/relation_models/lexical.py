"""A transparent baseline: shared words, names, numbers and negation, with fixed coefficients.

It does not understand meaning: a passage that shares the words of a claim entails it here even if
it states something else. The baseline runs without a language model, and is the minimum that a real
relation model must exceed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from factormodels.claims import JUDGED_KINDS, RelationKind, likeliest_kind
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.extraction.relation_models.lexical_features import FEATURES, pair_features

INTERCEPTS: Mapping[RelationKind, float] = MappingProxyType(
    {RelationKind.ENTAILMENT: -3.13, RelationKind.CONTRADICTION: -5.12}
)
"""Log odds of each relation against neutral for a pair without any overlap."""

COEFFICIENTS: Mapping[RelationKind, Mapping[str, float]] = MappingProxyType(
    {
        RelationKind.ENTAILMENT: MappingProxyType(
            {
                "sentence": 1.00,
                "passage": 2.57,
                "names": 0.56,
                "numbers": 0.47,
                "number_conflict": -0.75,
                "negation": -0.16,
            }
        ),
        RelationKind.CONTRADICTION: MappingProxyType(
            {
                "sentence": -0.05,
                "passage": 3.56,
                "names": 1.16,
                "numbers": -0.22,
                "number_conflict": 1.72,
                "negation": 0.28,
            }
        ),
    }
)
"""Coefficients of each feature in these log odds.

Fitted once by multinomial logistic regression (ridge penalty 1) to the 3,098 judged pairs of a
claim and a passage of Factcheck-Bench (both supporting stances as entailment, refute as
contradiction, irrelevant as neutral), then rounded and fixed. Cross-validated over responses, the
area under the ROC curve is 0.70 for entailment and 0.72 for contradiction, within folds."""


@dataclass(frozen=True, slots=True)
class LexicalRelations:
    """The lexical relation model: a multinomial logit of six features, the same for every pair.

    log P(k)/P(neutral) = INTERCEPTS[k] + sum over f of COEFFICIENTS[k][f] * feature f, where the
    features are those of `factormodels.extraction.relation_models.lexical_features.pair_features`.
    The model is deterministic and offline; the judgment of a pair does not depend on the others.
    """

    name: str = "lexical"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        """Return the most probable relation of each pair with the distribution; none is missing."""
        distributions = relation_distributions(pair_features(pairs))
        return [
            Judgment(*likeliest_kind(*row), "lexical", (row[0], row[1], row[2]))
            for row in distributions.tolist()
        ]


def relation_distributions(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities of entailment, contradiction and neutral, (n, 3).

    Args:
        features: (n, 6) as `pair_features` returns them.
    """
    logits = np.empty((len(features), 2))
    for column, kind in enumerate(JUDGED_KINDS[:2]):
        weights = np.array([COEFFICIENTS[kind][name] for name in FEATURES])
        # A matrix product rounds a row differently with other rows beside it.
        logits[:, column] = INTERCEPTS[kind] + (features * weights).sum(axis=1)
    return softmax_against_neutral(logits)


def softmax_against_neutral(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities of entailment, contradiction and neutral, (n, 3).

    Args:
        log_odds: (n, 2) log odds of the first two against neutral.
    """
    logits = np.hstack([log_odds, np.zeros((len(log_odds), 1))])
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    distributions: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return distributions
