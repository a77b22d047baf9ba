"""Quality of relation models: against labeled pairs, and against graded judgments as in UNLI.

Source of graded judgments: Chen et al. 2020, "Uncertain Natural Language Inference".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.estimate import Estimate
from calibration.intervals import IntervalSettings, redrawn_interval
from calibration.scores import USUAL_SCORES
from calibration.scoring import ScoreTable, score
from factormodels.claims import JUDGED_KINDS, RelationKind
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import Judgment, RelationModel, TextPair
from factormodels.extraction.relation_models.lexical import softmax_against_neutral
from factormodels.extraction.relation_models.lexical_features import FEATURES, pair_features
from factormodels.extraction.stages.relations import ask
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.factcheck_bench import passage_key
from factormodels.io.formats.items import JudgedPair
from factormodels.nouns import counted
from factormodels.validation import validated_probability


@dataclass(frozen=True, slots=True)
class LabeledPair:
    """A pair of texts with the known relation from the first to the second.

    Attributes:
        pair: the texts.
        kind: entailment, contradiction or neutral.
        response: id of the response that the pair belongs to; intervals resample responses.
    """

    pair: TextPair
    kind: RelationKind
    response: str


@dataclass(frozen=True, eq=False)
class RelationForecasts:
    """A relation model's probabilities with human labels, for n answered pairs.

    Attributes:
        p: (n,) probability that a relation holds, or that a hypothesis is true.
        y: (n,) True if the relation holds, or the human probability.
        responses: (n,) response of each pair, or the number of its premise: pairs of the same
            response or premise are dependent.
        missing: number of pairs without an answer, left out.
    """

    p: NDArray[np.float64]
    y: NDArray[Any]
    responses: NDArray[Any]
    missing: int


def labeled_pairs(graphs: Iterable[FactGraph], *, complete: bool = False) -> list[LabeledPair]:
    """The recorded relations from contexts to atoms as labeled pairs.

    Args:
        graphs: graphs with texts and human relations; in Factcheck-Bench, map the stance
            "irrelevant" to a neutral relation.
        complete: True if a pair without a record counts as neutral, as in the demonstration corpus.

    Raises:
        InputError: if no pair has both texts.
    """
    pairs = []
    for graph in graphs:
        # Relation models are asked only from context to atom.
        known = {(relation.source, relation.target): relation.kind for relation in graph.relations}
        for context in graph.contexts:
            for atom in graph.atoms:
                kind = known.get((context.id, atom.id))
                if kind is None and complete:
                    kind = RelationKind.NEUTRAL
                if kind is None or not (context.content and atom.text):
                    continue
                # Relation models have three answers; an equivalent context entails the claim.
                if kind is RelationKind.EQUIVALENCE:
                    kind = RelationKind.ENTAILMENT
                pair = TextPair(
                    *(context.content, atom.text, context.id, atom.id, context.title, graph.query)
                )
                pairs.append(LabeledPair(pair, kind, graph.id))
    if not pairs:
        raise InputError("no recorded relation joins two texts; give graphs with texts")
    return pairs


def relation_forecasts(
    model: RelationModel, labeled: Sequence[LabeledPair]
) -> dict[RelationKind, RelationForecasts]:
    """A model's probabilities of entailment, contradiction and neutral for labeled pairs.

    If a judgment has only the probability of its own relation, the other two share the rest
    equally. The arrays go into `calibration`: `calibration.auroc`, `calibration.score`,
    `calibration.reliability_diagram`, `calibration.corp_curve`.
    """
    kept, shares = _answered(model, [item.pair for item in labeled])
    answered = [labeled[index] for index in kept]
    responses = np.array([item.response for item in answered], dtype=object)
    return {
        kind: RelationForecasts(
            shares[:, column],
            np.array([item.kind is kind for item in answered], dtype=bool),
            responses,
            len(labeled) - len(answered),
        )
        for column, kind in enumerate(JUDGED_KINDS)
    }


def _answered(
    model: RelationModel, pairs: Sequence[TextPair]
) -> tuple[list[int], NDArray[np.float64]]:
    """Indices of the answered pairs, and their distributions, (n, 3)."""
    answers = ask(model, list(pairs))
    kept = [index for index, each in enumerate(answers) if isinstance(each, Judgment)]
    shares = [distribution(each) for each in answers if isinstance(each, Judgment)]
    # The reshape keeps three columns if nothing was answered.
    return kept, np.array(shares).reshape(-1, len(JUDGED_KINDS))


def relation_scores(
    model: RelationModel,
    labeled: Sequence[LabeledPair],
    *,
    scores: Sequence[str] = USUAL_SCORES,
    n_bootstrap: int = 1000,
    seed: int = 0,
) -> dict[RelationKind, ScoreTable]:
    """Scores of `calibration` for each relation, with intervals over responses.

    Args:
        model: the relation model.
        labeled: pairs whose relation is known.
        scores: names of `calibration.scores.REGISTRY`.
        n_bootstrap: number of bootstrap replicates.
        seed: seed of the bootstrap.

    Raises:
        InputError: if no pair was answered.
    """
    forecasts = relation_forecasts(model, labeled)
    if not forecasts[JUDGED_KINDS[0]].p.size:
        raise InputError(f"{model.name} answered none of the {counted(len(labeled), 'pair')}")
    return {
        kind: score(
            *(forecast.p, forecast.y, forecast.responses),
            scores=scores,
            intervals=IntervalSettings(n_bootstrap=n_bootstrap, seed=seed),
        )
        for kind, forecast in forecasts.items()
    }


@dataclass(frozen=True, eq=False)
class LexicalFit:
    """Refitted coefficients of the lexical relation model.

    Attributes:
        intercepts: log odds of entailment and contradiction against neutral without any overlap.
        coefficients: (2, 6) coefficients of `FEATURES` in the two log odds.
        cross_validated: (n, 3) out-of-fold probabilities of each pair.
        folds: int64 (n,), the fold of each pair; AUROC compares pairs within a fold, because folds
            have different fits.
    """

    intercepts: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    cross_validated: NDArray[np.float64]
    folds: NDArray[np.int64]

    def distributions(self, labeled: Sequence[LabeledPair]) -> NDArray[np.float64]:
        """Probabilities of entailment, contradiction and neutral for other pairs, (n, 3)."""
        features = pair_features([item.pair for item in labeled])
        return softmax_against_neutral(self.intercepts + features @ self.coefficients.T)


def passages_of(graph: FactGraph) -> frozenset[str]:
    """Hashes of the passages of a labeled response; empty for an unlabeled one."""
    if not any(atom.label is not None for atom in graph.atoms):
        return frozenset()
    keys = (context.key or passage_key(context.text) for context in graph.contexts)
    return frozenset(filter(None, keys))


def in_sample(passages: frozenset[str]) -> int:
    """Number of passages, given by `passages_of`, in the training data of the lexical model."""
    return len(passages & factcheck_bench_passages()) if passages else 0


@cache
def factcheck_bench_passages() -> frozenset[str]:
    """Hashes of the passages of Factcheck-Bench, by `passage_key`.

    Cached, because reading them takes longer than assessing a response and every table row needs
    them.
    """
    from factormodels import datasets

    bench = datasets.load("factcheck-bench").graphs
    return frozenset(context.key for graph in bench for context in graph.contexts if context.key)


def fit_lexical(labeled: Sequence[LabeledPair], *, folds: int = 10) -> LexicalFit:
    """The multinomial logistic regression (ridge penalty 1) behind the lexical model.

    The published coefficients were fitted to Factcheck-Bench and rounded to two decimals.

    Raises:
        InputError: if a relation does not occur, or there are fewer responses than folds.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict

    codes = np.array([JUDGED_KINDS.index(item.kind) for item in labeled])
    groups = np.array([item.response for item in labeled])
    for column, kind in enumerate(JUDGED_KINDS):
        if not (codes == column).any():
            raise InputError(f"no pair is labeled {kind}; give pairs of all three relations")
    if len(set(groups)) < folds:
        raise InputError(
            f"{len(set(groups))} responses do not make {counted(folds, 'fold')}; use fewer"
        )
    features = pair_features([item.pair for item in labeled])
    # scikit-learn's C is the inverse of the ridge penalty.
    model = LogisticRegression(C=1.0, max_iter=1000)
    # Folds consist of whole responses, because pairs of a response share texts, which would leak.
    parts = list(GroupKFold(folds).split(features, codes, groups))
    validated = cross_val_predict(model, features, codes, cv=parts, method="predict_proba")
    fold = np.empty(len(codes), dtype=np.int64)
    for number, (_, held_out) in enumerate(parts):
        fold[held_out] = number
    model.fit(features, codes)
    # The regression is symmetric in the three relations; report coefficients relative to neutral.
    intercepts = model.intercept_[:2] - model.intercept_[2]
    coefficients = model.coef_[:2] - model.coef_[2]
    return LexicalFit(intercepts, coefficients.reshape(2, len(FEATURES)), validated, fold)


def distribution(answer: Judgment) -> tuple[float, float, float]:
    """A judgment's probabilities of (entailment, contradiction, neutral).

    If the answer has only the probability of its own relation, the other two share the rest
    equally.
    """
    if answer.distribution is not None:
        return answer.distribution
    rest = (1.0 - answer.probability) / 2
    entailment, contradiction, neutral = (
        answer.probability if kind is answer.kind else rest for kind in JUDGED_KINDS
    )
    return entailment, contradiction, neutral


CONTRADICTED, ENTAILED = 0.1, 0.9
"""Default bounds for contradiction and entailment, a convention of this project."""

NEUTRAL_TRUTH = 0.5
"""Default probability of a hypothesis with a neutral premise: an atom's default prior."""


def labeled_from_judged(
    pairs: Sequence[JudgedPair], *, contradicted: float = CONTRADICTED, entailed: float = ENTAILED
) -> list[LabeledPair]:
    """Convert judged pairs to labeled pairs by cutting the human probability into three relations.

    The result is an input of `relation_forecasts`, `relation_scores` and `fit_lexical`. Intervals
    treat the pairs of a premise as a response.

    Args:
        pairs: pairs with probabilities.
        contradicted: largest probability of a contradiction.
        entailed: smallest probability of an entailment; between the two, a pair is neutral.

    Raises:
        InputError: if the bounds are not probabilities or cross, or there are no pairs.
    """
    low = validated_probability(contradicted, "contradicted")
    high = validated_probability(entailed, "entailed")
    if low >= high:
        raise InputError(f"contradicted {low} is not below entailed {high}; lower it")
    if not pairs:
        raise InputError("there are no judged pairs; give at least one")
    return [
        LabeledPair(
            TextPair(pair.premise, pair.hypothesis),
            RelationKind.CONTRADICTION
            if pair.probability <= low
            else RelationKind.ENTAILMENT
            if pair.probability >= high
            else RelationKind.NEUTRAL,
            f"premise-{group}",
        )
        for pair, group in zip(pairs, _groups(pairs), strict=True)
    ]


def graded_forecasts(
    model: RelationModel, pairs: Sequence[JudgedPair], *, neutral: float = NEUTRAL_TRUTH
) -> RelationForecasts:
    """A model's probabilities of hypotheses: P(entailment) + `neutral` · P(neutral).

    Args:
        model: the relation model.
        pairs: pairs with human probabilities.
        neutral: probability of a hypothesis with a neutral premise.

    Raises:
        InputError: if `neutral` is not a probability.
    """
    # With a neutral premise, the hypothesis keeps its prior.
    weight = validated_probability(neutral, "neutral")
    kept, shares = _answered(model, [TextPair(pair.premise, pair.hypothesis) for pair in pairs])
    groups = _groups(pairs)
    return RelationForecasts(
        shares @ np.array([1.0, 0.0, weight]),
        np.array([pairs[index].probability for index in kept], dtype=np.float64),
        np.array([groups[index] for index in kept], dtype=np.int64),
        len(pairs) - len(kept),
    )


def graded_scores(
    forecasts: RelationForecasts, *, n_bootstrap: int = 1000, seed: int = 0, level: float = 0.95
) -> dict[str, Estimate]:
    """Scores of forecasts against graded judgments, with percentile intervals over premises.

    By name: `bias` (mean forecast minus mean judgment), `mae`, `rmse`, `pearson`, `spearman`; NaN
    if a correlation is undefined.

    Args:
        forecasts: the forecasts.
        n_bootstrap: number of bootstrap replicates.
        seed: seed of the bootstrap.
        level: coverage of the intervals.

    Raises:
        InputError: if no pair was answered, or a setting of the bootstrap is out of range.
    """
    if not forecasts.p.size:
        raise InputError(
            f"none of the {counted(forecasts.missing, 'pair')} was answered; give a model that "
            "answers"
        )
    settings = IntervalSettings(n_bootstrap=n_bootstrap, seed=seed, level=level)
    values = _scores(forecasts.p, forecasts.y)
    premises, position = np.unique(forecasts.responses, return_inverse=True)

    def redrawn(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        # A premise that is drawn k times contributes each of its pairs k times.
        times = weights[:, position].astype(np.int64)
        indices = [np.repeat(np.arange(position.size), row) for row in times]
        return np.array([list(_scores(forecasts.p[i], forecasts.y[i]).values()) for i in indices])

    lower, upper = redrawn_interval(redrawn, len(premises), settings)
    ends = zip(values.items(), lower.tolist(), upper.tolist(), strict=True)
    return {
        name: Estimate(name, value, low, high, n=len(premises)) for (name, value), low, high in ends
    }


def _scores(forecast: NDArray[Any], judged: NDArray[Any]) -> dict[str, float]:
    from scipy.stats import rankdata

    errors = forecast - judged
    return {
        "bias": float(errors.mean()),
        "mae": float(np.abs(errors).mean()),
        "rmse": float(np.sqrt((errors**2).mean())),
        "pearson": _correlation(forecast, judged),
        "spearman": _correlation(rankdata(forecast), rankdata(judged)),
    }


def _correlation(x: NDArray[Any], y: NDArray[Any]) -> float:
    # The correlation of a constant is undefined; numpy would also return NaN, with a warning.
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def _groups(pairs: Sequence[JudgedPair]) -> list[int]:
    numbers: dict[str, int] = {}
    return [numbers.setdefault(pair.premise, len(numbers)) for pair in pairs]
