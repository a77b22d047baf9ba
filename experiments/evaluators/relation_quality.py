"""How good a relation model is: its probabilities held against pairs whose relation is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.scores import ScoreRow, score_table
from factormodels.claims import RelationKind
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import Judgement, RelationModel, TextPair
from factormodels.extraction.relation_models.lexical import KINDS, softmax_against_neutral
from factormodels.extraction.relation_models.lexical_features import FEATURES, pair_features
from factormodels.extraction.stages.relations import ask
from factormodels.fact_graph import FactGraph
from factormodels.io.published.factcheck_bench import passage_key


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A pair of texts and the relation that is known to hold from the first to the second.

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
    """A relation model's probabilities of one relation, with what is known; n pairs were answered.

    Attributes:
        p: (n,) probability that the relation holds.
        y: (n,) whether it does.
        responses: (n,) response of each pair.
        missing: number of pairs without an answer, left out.
        folds: int64 (n,), fold of each pair if `p` is cross-fitted, else None: AUROC and ROC curve
            are then within folds.
    """

    p: NDArray[np.float64]
    y: NDArray[np.bool_]
    responses: NDArray[Any]
    missing: int
    folds: NDArray[np.int64] | None = None


def labelled_pairs(graphs: Iterable[FactGraph], *, complete: bool = False) -> list[LabelledPair]:
    """The recorded relations from contexts to atoms as pairs whose relation is known.

    Args:
        graphs: graphs with texts whose relations people judged; in Factcheck-Bench, map the stance
            "irrelevant" to a neutral relation.
        complete: whether a pair without a record counts as neutral, as in the demonstration corpus.

    Raises:
        InputError: if no pair has both texts.
    """
    found = []
    for graph in graphs:
        # Only from context to atom: a relation model is asked in this direction.
        known = {(relation.source, relation.target): relation.kind for relation in graph.relations}
        for context in graph.contexts:
            for atom in graph.atoms:
                kind = known.get((context.id, atom.id))
                if kind is None and complete:
                    kind = RelationKind.NEUTRAL
                if kind is None or not (context.content and atom.text):
                    continue
                # A relation model has three answers; an equivalent context entails the claim.
                if kind is RelationKind.EQUIVALENCE:
                    kind = RelationKind.ENTAILMENT
                pair = TextPair(
                    *(context.content, atom.text, context.id, atom.id, context.title, graph.query)
                )
                found.append(LabelledPair(pair, kind, graph.id))
    if not found:
        raise InputError("no recorded relation joins two texts; give graphs with texts")
    return found


def relation_forecasts(
    model: RelationModel, labelled: Sequence[LabelledPair]
) -> dict[RelationKind, RelationForecasts]:
    """A model's probabilities of entailment, contradiction and neutral for labelled pairs.

    Where a judgement has the probability of its own relation alone, the other two share the rest.
    The arrays go into `calibration`: `calibration.auroc`, `calibration.score_table`,
    `calibration.reliability_diagram`, `calibration.corp_curve`.
    """
    answers = ask(model, [item.pair for item in labelled])
    answered = [
        (item, answer)
        for item, answer in zip(labelled, answers, strict=True)
        if isinstance(answer, Judgement)
    ]
    # The reshape keeps three columns if nothing was answered.
    shares = np.array([distribution(answer) for _, answer in answered]).reshape(-1, len(KINDS))
    responses = np.array([item.response for item, _ in answered], dtype=object)
    return {
        kind: RelationForecasts(
            shares[:, column],
            np.array([item.kind is kind for item, _ in answered], dtype=bool),
            responses,
            len(labelled) - len(answered),
        )
        for column, kind in enumerate(KINDS)
    }


def relation_scores(
    model: RelationModel,
    labelled: Sequence[LabelledPair],
    *,
    scores: Sequence[str] | None = None,
    n_bootstrap: int = 1000,
    seed: int = 0,
) -> dict[RelationKind, tuple[ScoreRow, ...]]:
    """Scores of `calibration` for each relation, with intervals over responses.

    Args:
        model: the relation model.
        labelled: pairs whose relation is known.
        scores: names of `calibration.scores.SCORES`; all of them if None.
        n_bootstrap: number of bootstrap replicates.
        seed: seed of the bootstrap.

    Raises:
        InputError: if no pair was answered.
    """
    forecasts = relation_forecasts(model, labelled)
    if not forecasts[KINDS[0]].p.size:
        raise InputError(f"{model.name} answered none of the {len(labelled)} pairs")
    return {
        kind: score_table(
            found.p,
            found.y,
            responses=found.responses,
            n_bootstrap=n_bootstrap,
            seed=seed,
            scores=scores,
        )
        for kind, found in forecasts.items()
    }


@dataclass(frozen=True, eq=False)
class LexicalFit:
    """Coefficients of the lexical relation model, fitted anew.

    Attributes:
        intercepts: log odds of entailment and contradiction against neutral without any overlap.
        coefficients: (2, 6) what each of `FEATURES` adds to them.
        cross_validated: (n, 3) probabilities of each pair from fits without its response's fold.
        folds: int64 (n,), the fold of each pair: fits of different folds learned from different
            pairs, so that AUROC compares pairs of one fold.
    """

    intercepts: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    cross_validated: NDArray[np.float64]
    folds: NDArray[np.int64]

    def distributions(self, labelled: Sequence[LabelledPair]) -> NDArray[np.float64]:
        """(n, 3) probabilities of entailment, contradiction and neutral of other pairs."""
        features = pair_features([item.pair for item in labelled])
        return softmax_against_neutral(self.intercepts + features @ self.coefficients.T)


def of_factcheck_bench(pairs: Iterable[TextPair]) -> NDArray[np.bool_]:
    """Whether each pair's passage is one of Factcheck-Bench, to which the lexical model was fitted.

    Its numbers on these are in-sample. Passages are known by their hashes.
    """
    known = factcheck_bench_passages()
    return np.array([passage_key(pair.premise) in known for pair in pairs], dtype=np.bool_)


def passages_of(graph: FactGraph) -> frozenset[str]:
    """Hashes of the passages of a response that has labels; none of another one."""
    if not any(atom.label is not None for atom in graph.atoms):
        return frozenset()
    keys = (context.key or passage_key(context.text) for context in graph.contexts)
    return frozenset(filter(None, keys))


def in_sample(passages: frozenset[str]) -> int:
    """How many of these passages, by `passages_of`, the lexical model was fitted to."""
    return len(passages & factcheck_bench_passages()) if passages else 0


def factcheck_bench_passages() -> frozenset[str]:
    """Hashes of the passages of Factcheck-Bench, as `passage_key` makes them."""
    from factormodels import datasets

    bench = datasets.load("factcheck-bench").graphs
    return frozenset(context.key for graph in bench for context in graph.contexts if context.key)


def fit_lexical(labelled: Sequence[LabelledPair], *, folds: int = 10) -> LexicalFit:
    """The multinomial logistic regression (ridge penalty 1) behind the lexical model.

    Its published coefficients are those of Factcheck-Bench, rounded to two decimals.

    Raises:
        InputError: if a relation does not occur, or there are fewer responses than folds.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict

    codes = np.array([KINDS.index(item.kind) for item in labelled])
    groups = np.array([item.response for item in labelled])
    for column, kind in enumerate(KINDS):
        if not (codes == column).any():
            raise InputError(f"no pair is labelled {kind}; give pairs of all three relations")
    if len(set(groups)) < folds:
        raise InputError(f"{len(set(groups))} responses do not make {folds} folds; use fewer")
    features = pair_features([item.pair for item in labelled])
    # scikit-learn's C is the inverse of the ridge penalty.
    model = LogisticRegression(C=1.0, max_iter=1000)
    # Folds of whole responses: pairs of one response share texts, which would leak.
    parts = list(GroupKFold(folds).split(features, codes, groups))
    validated = cross_val_predict(model, features, codes, cv=parts, method="predict_proba")
    fold = np.empty(len(codes), dtype=np.int64)
    for number, (_, own) in enumerate(parts):
        fold[own] = number
    model.fit(features, codes)
    # The regression is symmetric in the three relations; what matters is against neutral.
    intercepts = model.intercept_[:2] - model.intercept_[2]
    coefficients = model.coef_[:2] - model.coef_[2]
    return LexicalFit(intercepts, coefficients.reshape(2, len(FEATURES)), validated, fold)


def distribution(answer: Judgement) -> tuple[float, float, float]:
    """A judgement's probabilities of (entailment, contradiction, neutral).

    Where it has that of its own relation alone, the other two share the rest.
    """
    if answer.distribution is not None:
        return answer.distribution
    rest = (1.0 - answer.probability) / 2
    entailment, contradiction, neutral = (
        answer.probability if kind is answer.kind else rest for kind in KINDS
    )
    return entailment, contradiction, neutral
