"""Registry of the methods that learn from labeled responses.

The methods are recalibration, learning on graphs, classifiers without graphs, and the field. All
are cross-fitted in the same folds of responses, and choose their settings within the training
folds.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibration.estimation.cross_prediction import FoldJudges
from calibration.folds import response_folds
from calibration.learned_potentials.columns import (
    FAMILIES,
    RESPONSE,
    SENTENCE,
    ClaimTable,
    claim_table,
    records_texts,
    stated,
)
from calibration.learned_potentials.fitting import FieldSettings, fit_fields
from calibration.learned_potentials.graph_fitting import cross_fitting
from calibration.learned_potentials.graph_loss import with_labels
from calibration.learned_potentials.graph_potentials import Potentials
from calibration.validation import Floats, Integers
from factormodels.claims import Relation, RelationKind
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant
from inference.batch import claim_posteriors

Predict = Callable[[ClaimTable], Floats]
"""Function from a table with the same columns to the probability of each claim, (n,)."""

Learner = Callable[[ClaimTable, Sequence[Integers]], list[Predict]]
"""Function from a table and parts of its labeled claims to a predictor for each part."""

_INNER_FOLDS = 3

EDGES = (0.15, 0.3, 0.45, 0.6, 0.8)
"""Upper bounds of the classes of P(entailment)."""

PENALTY = 3.0
"""Standard deviation of the normal prior on learned numbers. It keeps classes with few labels near
their initial values and hardly affects the others."""

_LEARNED = ("evidence", "position", "neighbors")
_MORE = ("evidence", "position", "others")
_TEXTS = ("evidence", "position", "texts")
_ALL = (*_LEARNED, "texts")


def cross_fitted(
    learner: Learner, table: ClaimTable, fold: Integers, parts: Sequence[Integers] | None = None
) -> Floats:
    """Cross-fitted probability of each claim, (n,); arguments as in `fold_judges`."""
    return fold_judges(learner, table, fold, parts).unseen()


def fold_judges(
    learner: Learner, table: ClaimTable, fold: Integers, parts: Sequence[Integers] | None = None
) -> FoldJudges:
    """Fit a predictor for each fold to the labels of the other folds.

    Args:
        learner: the learner.
        table: the claims.
        fold: fold of each claim, (n,), from 0 on; -1 for claims outside all folds, whose
            probability is the mean over folds.
        parts: training claims for each fold; None for all labeled claims of the other folds.
    """
    if parts is None:
        labeled = table.labeled
        parts = [labeled[fold[labeled] != number] for number in range(int(fold.max()) + 1)]
    return FoldJudges(fold, np.array([predict(table) for predict in learner(table, parts)]))


def labeled_folds(table: ClaimTable, n_folds: int, seed: int) -> Integers:
    """Fold of every claim, int64 (n,); -1 for claims of responses without labels.

    Raises:
        InputError: for more folds than labeled responses.
    """
    labeled = np.unique(table.responses[~np.isnan(table.labels)])
    fold = np.full(table.n_responses, -1)
    fold[labeled] = response_folds(labeled, n_folds, seed)
    folds: Integers = fold[table.responses]
    return folds


def field(settings: FieldSettings | None = None) -> Learner:
    """Return the learner that fits a field to a table's columns and causes."""
    return lambda table, parts: [f.probabilities for f in fit_fields(table, parts, settings)]


def of_each(fit: Callable[[ClaimTable, Integers], Predict]) -> Learner:
    """Return the learner that calls `fit` for each part."""
    return lambda table, parts: [fit(table, part) for part in parts]


@of_each
def base_rate(table: ClaimTable, part: Integers) -> Predict:
    """Predict the share of true training claims."""
    rate = float(table.labels[part].mean())
    return lambda asked: np.full(len(asked.labels), rate)


@of_each
def as_given(table: ClaimTable, part: Integers) -> Predict:  # noqa: ARG001
    """Predict the table's only column unchanged."""
    return lambda asked: asked.values[:, 0]


def recalibrated(name: str) -> Learner:
    """Return the learner that recalibrates the table's only column by a named recalibrator."""

    @of_each
    def learner(table: ClaimTable, part: Integers) -> Predict:
        from calibration.recalibration import RECALIBRATORS

        recalibrator = RECALIBRATORS[name]().fit(table.values[part, 0], table.labels[part])
        return lambda asked: np.asarray(recalibrator.predict(asked.values[:, 0]))

    return learner


def of_posteriors(table: ClaimTable, p: Floats) -> ClaimTable:
    """Table with the given posteriors as its only column."""
    return replace(table, names=("given",), values=p[:, np.newaxis], groups={})


@of_each
def logistic(table: ClaimTable, part: Integers) -> Predict:
    """Fit a logistic regression on standardized columns, with its penalty chosen by inner folds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    estimator = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return _searched(estimator, {"logisticregression__C": [0.003, 0.03, 0.3]}, table, part)


@of_each
def boosted_trees(table: ClaimTable, part: Integers) -> Predict:
    """Fit boosted trees on the columns, with depth and number chosen by inner folds."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    estimator = HistGradientBoostingClassifier(
        learning_rate=0.05, min_samples_leaf=40, random_state=0
    )
    return _searched(estimator, {"max_depth": [2, 3], "max_iter": [60, 120]}, table, part)


def _searched(
    estimator: Any, grid: dict[str, list[Any]], table: ClaimTable, part: Integers
) -> Predict:
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from threadpoolctl import threadpool_limits

    columns, labels, responses = table.values[part], table.labels[part], table.responses[part]
    n_folds = min(_INNER_FOLDS, len(np.unique(responses)))
    inner = GroupKFold(n_folds).split(columns, labels, responses) if n_folds > 1 else ()
    splits = [(taught, tested) for taught, tested in inner if np.ptp(labels[taught]) > 0]
    # If nothing can be held out, take the first setting, which stays nearest to the base rate.
    search = estimator.set_params(**{name: values[0] for name, values in grid.items()})
    if splits:
        search = GridSearchCV(estimator, grid, scoring="neg_brier_score", cv=splits, n_jobs=1)
    # For few rows, threads cost more time than they save.
    with threadpool_limits(1):
        search.fit(columns, labels)
    return lambda asked: np.asarray(search.predict_proba(asked.values)[:, 1])


@dataclass(frozen=True, eq=False)
class CrossFitTask:
    """Labeled responses in folds.

    Attributes:
        graphs: the responses as recorded, each with a label.
        table: all columns and causes of their claims, n of them.
        fold: int64 (n,), the fold of each claim.
        default: posterior of each claim, (n,), under its FR1 graph as given, with *implication*.
        n_folds: number of folds.
        seed: seed of the folds.
    """

    graphs: tuple[FactGraph, ...]
    table: ClaimTable
    fold: Integers
    default: Floats
    n_folds: int
    seed: int


def cross_fit_task(graphs: Sequence[FactGraph], n_folds: int, seed: int) -> CrossFitTask:
    """Prepare the task of some responses; responses without a label are ignored.

    Raises:
        InputError: if no claim has a label, or for more folds than labeled responses.
    """
    kept = tuple(with_labels(graphs))
    texts = ("texts",) if records_texts(kept) else ()
    table = claim_table(kept, (*_LEARNED, "others", *texts))
    fold = response_folds([graph.id for graph in kept], n_folds, seed)[table.responses]
    default = claim_posteriors([variant(graph, "FR1") for graph in kept])
    return CrossFitTask(kept, table, fold, default, n_folds, seed)


@dataclass(frozen=True)
class ColumnMethod:
    """A method that learns from columns of claims.

    Attributes:
        learner: the learner.
        families: families of columns; empty for the default posterior as the only column.
        causes: levels of hidden causes, for a field.
    """

    learner: Learner
    families: tuple[str, ...] = ("evidence", "position")
    causes: tuple[str, ...] = ()

    def table(self, task: CrossFitTask) -> ClaimTable:
        """Columns and causes of the claims that the method uses."""
        if not self.families:
            return of_posteriors(task.table, task.default)
        names = [name for family in self.families for name in FAMILIES[family]]
        return task.table.of(names, self.causes)

    def suits(self, task: CrossFitTask) -> bool:
        """Return whether the responses record the columns that the method uses."""
        return "texts" not in self.families or set(FAMILIES["texts"]) <= set(task.table.names)

    def __call__(self, task: CrossFitTask, parts: Sequence[Integers] | None = None) -> Floats:
        """Return the cross-fitted probability of each claim, (n,)."""
        return cross_fitted(self.learner, self.table(task), task.fold, parts)


@dataclass(frozen=True)
class GraphMethod:
    """A method that learns the strengths of six classes of relations on whole graphs.

    Attributes:
        view: graph variant.
    """

    view: str

    def suits(self, task: CrossFitTask) -> bool:
        """Return whether all relations of the responses state distributions."""
        return _with_distributions(task)

    def __call__(self, task: CrossFitTask, parts: Sequence[Integers] | None = None) -> Floats:
        """Return the cross-fitted probability of each claim, (n,)."""
        if parts is not None:
            raise InputError("graphs are learned from all other folds; choose a method of columns")
        graphs = taught_classes(task, self.view, DEFAULT_ENCODING)
        return claim_posteriors(graphs, DEFAULT_ENCODING, _backend_of(self.view))


def taught_classes(task: CrossFitTask, view: str, encoding: str) -> list[FactGraph]:
    """Graph of every response in a view, with strengths learned from the other folds.

    There is a strength for each of six classes of relations, or for each kind if relations state
    no distribution. Strengths are learned for `encoding`, which must also encode the graphs. Under
    *mixture*, the probability that remains beside a learned strength is neutral.
    """
    by_class, graphs = _with_distributions(task), [variant(graph, view) for graph in task.graphs]
    if by_class:
        # If every context is related to every claim, most pairs are unrelated.
        least = 0.0 if view == "FR1" else EDGES[0]
        graphs = [as_support(graph, least) for graph in graphs]
    crossing = cross_fitting(
        graphs,
        Potentials(("atom_prior", "probability"), six_classes if by_class else "kind", encoding),
        n_folds=task.n_folds,
        seed=task.seed,
        backend=_backend_of(view),
        penalty=PENALTY,
        with_errors=False,
    )
    return crossing.learned()[1]


def as_support(graph: FactGraph, least: float = 0.0) -> FactGraph:
    """Response whose relations from contexts are entailments with their P(entailment).

    Args:
        graph: the response.
        least: smallest probability; relations below it are left out.
    """
    contexts, kept = set(graph.context_ids), []
    for relation in graph.relations:
        if relation.source not in contexts:
            kept.append(relation)
        elif (p := stated(relation)[0]) >= least:
            kept.append(Relation(relation.source, relation.target, RelationKind.ENTAILMENT, p))
    return replace(graph, relations=tuple(kept))


def six_classes(graph: FactGraph, relation: Relation) -> str:
    """Name the class of a relation by its probability; "between" for relations between contexts."""
    if relation.target in graph.context_ids:
        return "between"
    return f"p{bisect.bisect(EDGES, relation.probability)}"


def _with_distributions(task: CrossFitTask) -> bool:
    return all(r.distribution is not None for graph in task.graphs for r in graph.relations)


def _backend_of(view: str) -> str:
    return "exact" if view == "FR1" else "lbp"


_LINEAR, _SMALL = FieldSettings(), FieldSettings("small")
_BOTH = (SENTENCE, RESPONSE)

RIVALS: Mapping[str, ColumnMethod] = {
    "base rate": ColumnMethod(base_rate, ()),
    "Platt": ColumnMethod(recalibrated("platt"), ()),
    "beta": ColumnMethod(recalibrated("beta"), ()),
    "logistic regression": ColumnMethod(logistic),
    "boosted trees": ColumnMethod(boosted_trees),
    "boosted trees, neighbors": ColumnMethod(boosted_trees, _LEARNED),
    "logistic regression, texts": ColumnMethod(logistic, _TEXTS),
    "boosted trees, neighbors, texts": ColumnMethod(boosted_trees, _ALL),
}
"""Methods without graphs."""

CLASSES: Mapping[str, GraphMethod] = {
    "six classes": GraphMethod("FR1"),
    "six classes, FR2": GraphMethod("FR2"),
}
"""Methods that learn a strength for each class of relations."""

FIELDS: Mapping[str, ColumnMethod] = {
    "field: columns": ColumnMethod(field(_LINEAR), ("evidence",)),
    "with position": ColumnMethod(field(_LINEAR)),
    "with causes of sentences": ColumnMethod(field(_LINEAR), causes=(SENTENCE,)),
    "with causes of biographies": ColumnMethod(field(_LINEAR), causes=_BOTH),
    "with passages of other claims": ColumnMethod(field(_LINEAR), _MORE, _BOTH),
    "with a module": ColumnMethod(field(_SMALL), causes=_BOTH),
    "linear, neighbors": ColumnMethod(field(_LINEAR), _LEARNED, _BOTH),
    "module, neighbors": ColumnMethod(field(_SMALL), _LEARNED, _BOTH),
    "with texts": ColumnMethod(field(_LINEAR), _TEXTS, _BOTH),
    "neighbors, texts": ColumnMethod(field(_LINEAR), _ALL, _BOTH),
    "module, texts": ColumnMethod(field(_SMALL), _TEXTS, _BOTH),
}
"""Fields with successively more columns and causes."""

METHODS: Mapping[str, ColumnMethod | GraphMethod] = {
    "default": ColumnMethod(as_given, ()),
    **dict(list(RIVALS.items())[:3]),
    **CLASSES,
    **dict(list(RIVALS.items())[3:]),
    **FIELDS,
}
"""All methods by name."""


def learning_parts(task: CrossFitTask, size: int, seed: int) -> list[Integers]:
    """Claims of `size` random responses outside each fold, or of all if there are fewer.

    A larger size adds responses to those of a smaller size.
    """
    order = np.random.default_rng(seed).permutation(task.table.n_responses)
    of_response = np.zeros(task.table.n_responses, np.int64)
    of_response[task.table.responses] = task.fold
    parts = []
    for number in range(task.n_folds):
        chosen = [response for response in order if of_response[response] != number][:size]
        kept = np.isin(task.table.responses[task.table.labeled], chosen)
        parts.append(task.table.labeled[kept])
    return parts
