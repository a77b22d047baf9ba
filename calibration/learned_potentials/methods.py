"""Every way to learn from labelled responses, by name: recalibrated, on graphs, without, the field.

All are cross-fitted in the same folds of responses; what a method chooses, it chooses inside the
folds that it learns from.
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
"""Probability of each claim of a table with the same columns, (n,)."""

Learner = Callable[[ClaimTable, Sequence[Integers]], list[Predict]]
"""From a table and parts of its labelled claims to what each part teaches."""

_INNER_FOLDS = 3

EDGES = (0.15, 0.3, 0.45, 0.6, 0.8)
"""Where the six classes of P(entailment) end."""

PENALTY = 3.0
"""Standard deviation of the normal prior on learned numbers: it keeps classes that few labels bear
on near their start, and hardly moves the others."""

_LEARNED = ("evidence", "position", "neighbours")
_MORE = ("evidence", "position", "others")
_TEXTS = ("evidence", "position", "texts")
_ALL = (*_LEARNED, "texts")


def cross_fitted(
    learner: Learner, table: ClaimTable, fold: Integers, parts: Sequence[Integers] | None = None
) -> Floats:
    """Probability of each claim by what the other folds teach, (n,); arguments as `fold_judges`."""
    return fold_judges(learner, table, fold, parts).unseen()


def fold_judges(
    learner: Learner, table: ClaimTable, fold: Integers, parts: Sequence[Integers] | None = None
) -> FoldJudges:
    """Probabilities by the judges that the labels of all folds but one teach.

    Args:
        learner: the learner.
        table: the claims.
        fold: the fold of each, (n,), from 0 on; -1 for none, where no label is held out: the mean
            over folds is its probability.
        parts: what is learned from where each fold is asked; None: all labels of the others.
    """
    if parts is None:
        labelled = table.labelled
        parts = [labelled[fold[labelled] != number] for number in range(int(fold.max()) + 1)]
    return FoldJudges(fold, np.array([predict(table) for predict in learner(table, parts)]))


def labelled_folds(table: ClaimTable, n_folds: int, seed: int) -> Integers:
    """The fold of every claim: labelled responses are dealt out, others have none, which is -1.

    Raises:
        InputError: for more folds than labelled responses.
    """
    labelled = np.unique(table.responses[~np.isnan(table.labels)])
    fold = np.full(table.n_responses, -1)
    fold[labelled] = response_folds(labelled, n_folds, seed)
    folds: Integers = fold[table.responses]
    return folds


def field(settings: FieldSettings | None = None) -> Learner:
    """The field of a table's columns and causes."""
    return lambda table, parts: [f.probabilities for f in fit_fields(table, parts, settings)]


def of_each(fit: Callable[[ClaimTable, Integers], Predict]) -> Learner:
    """The learner of what is fitted to one part after another."""
    return lambda table, parts: [fit(table, part) for part in parts]


@of_each
def base_rate(table: ClaimTable, part: Integers) -> Predict:
    """Share of true claims."""
    rate = float(table.labels[part].mean())
    return lambda asked: np.full(len(asked.labels), rate)


@of_each
def as_given(table: ClaimTable, part: Integers) -> Predict:  # noqa: ARG001
    """The table's only column as it is."""
    return lambda asked: asked.values[:, 0]


def recalibrated(name: str) -> Learner:
    """A recalibrator of `calibration.recalibration` of the table's only column."""

    @of_each
    def learner(table: ClaimTable, part: Integers) -> Predict:
        from calibration.recalibration import RECALIBRATORS

        recalibrator = RECALIBRATORS[name]().fit(table.values[part, 0], table.labels[part])
        return lambda asked: np.asarray(recalibrator.predict(asked.values[:, 0]))

    return learner


def of_posteriors(table: ClaimTable, p: Floats) -> ClaimTable:
    """The table with given posteriors as its only column."""
    return replace(table, names=("given",), values=p[:, np.newaxis], groups={})


@of_each
def logistic(table: ClaimTable, part: Integers) -> Predict:
    """Logistic regression on the standardised columns, its penalty chosen by inner folds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    estimator = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return _searched(estimator, {"logisticregression__C": [0.003, 0.03, 0.3]}, table, part)


@of_each
def boosted_trees(table: ClaimTable, part: Integers) -> Predict:
    """Boosted trees on the columns, depth and number chosen by inner folds."""
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
    # Where nothing can be held out, what moves least from the base rate is taken: the first.
    search = estimator.set_params(**{name: values[0] for name, values in grid.items()})
    if splits:
        search = GridSearchCV(estimator, grid, scoring="neg_brier_score", cv=splits, n_jobs=1)
    # So few rows lose more by being shared among threads than they win.
    with threadpool_limits(1):
        search.fit(columns, labels)
    return lambda asked: np.asarray(search.predict_proba(asked.values)[:, 1])


@dataclass(frozen=True, eq=False)
class CrossFitTask:
    """Labelled responses in folds.

    Attributes:
        graphs: the responses as recorded, each with a label.
        table: all columns and causes of their claims, n of them.
        fold: int64 (n,), the fold of each claim.
        default: posterior of each under its graph of FR1 as given, *implication*, (n,).
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
    """The task of some responses; those without a label play no part.

    Raises:
        InputError: if no claim has a label, or for more folds than labelled responses.
    """
    kept = tuple(with_labels(graphs))
    texts = ("texts",) if records_texts(kept) else ()
    table = claim_table(kept, (*_LEARNED, "others", *texts))
    fold = response_folds([graph.id for graph in kept], n_folds, seed)[table.responses]
    default = claim_posteriors([variant(graph, "FR1") for graph in kept])
    return CrossFitTask(kept, table, fold, default, n_folds, seed)


@dataclass(frozen=True)
class ColumnMethod:
    """A learner of columns of claims.

    Attributes:
        learner: the learner.
        families: families of columns that it sees; none: the default posterior alone.
        causes: levels of hidden causes, of a field.
    """

    learner: Learner
    families: tuple[str, ...] = ("evidence", "position")
    causes: tuple[str, ...] = ()

    def table(self, task: CrossFitTask) -> ClaimTable:
        """What it sees of the claims."""
        if not self.families:
            return of_posteriors(task.table, task.default)
        names = [name for family in self.families for name in FAMILIES[family]]
        return task.table.of(names, self.causes)

    def suits(self, task: CrossFitTask) -> bool:
        """Whether the responses state what it reads."""
        return "texts" not in self.families or set(FAMILIES["texts"]) <= set(task.table.names)

    def __call__(self, task: CrossFitTask, parts: Sequence[Integers] | None = None) -> Floats:
        """Cross-fitted probability of each claim, (n,)."""
        return cross_fitted(self.learner, self.table(task), task.fold, parts)


@dataclass(frozen=True)
class GraphMethod:
    """Strengths of six classes of relations, learned on whole graphs.

    Attributes:
        view: the view of them.
    """

    view: str

    def suits(self, task: CrossFitTask) -> bool:
        """Whether the responses state the distributions that it reads."""
        return _with_distributions(task)

    def __call__(self, task: CrossFitTask, parts: Sequence[Integers] | None = None) -> Floats:
        """Cross-fitted probability of each claim, (n,)."""
        if parts is not None:
            raise InputError("graphs are learned from all other folds; take a method of columns")
        graphs = taught_classes(task, self.view, DEFAULT_ENCODING)
        return claim_posteriors(graphs, DEFAULT_ENCODING, _backend_of(self.view))


def taught_classes(task: CrossFitTask, view: str, encoding: str) -> list[FactGraph]:
    """Every response's graph of a view with six classes' strengths from the folds without it.

    Where relations state no distribution there is a strength for each kind instead. Strengths are
    learned under the encoding, by which the graphs are to be encoded; what a learned relation is
    not of its kind, *mixture* takes for neutral.
    """
    by_class, graphs = _with_distributions(task), [variant(graph, view) for graph in task.graphs]
    if by_class:
        # Where every context meets every claim, most pairs have nothing to do with each other.
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
    """Relations of contexts as entailments with the probability that they are one.

    Args:
        graph: the response.
        least: relations of contexts with a smaller probability are left out.
    """
    contexts, kept = set(graph.context_ids), []
    for relation in graph.relations:
        if relation.source not in contexts:
            kept.append(relation)
        elif (p := stated(relation)[0]) >= least:
            kept.append(Relation(relation.source, relation.target, RelationKind.ENTAILMENT, p))
    return replace(graph, relations=tuple(kept))


def six_classes(graph: FactGraph, relation: Relation) -> str:
    """Class of a relation by its probability; relations between contexts are one of their own."""
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
    "boosted trees, neighbours": ColumnMethod(boosted_trees, _LEARNED),
    "logistic regression, texts": ColumnMethod(logistic, _TEXTS),
    "boosted trees, neighbours, texts": ColumnMethod(boosted_trees, _ALL),
}
"""What learns without a graph."""

CLASSES: Mapping[str, GraphMethod] = {
    "six classes": GraphMethod("FR1"),
    "six classes, FR2": GraphMethod("FR2"),
}
"""Graphs whose relations have a strength for each class of what they state."""

FIELDS: Mapping[str, ColumnMethod] = {
    "field: columns": ColumnMethod(field(_LINEAR), ("evidence",)),
    "with position": ColumnMethod(field(_LINEAR)),
    "with causes of sentences": ColumnMethod(field(_LINEAR), causes=(SENTENCE,)),
    "with causes of biographies": ColumnMethod(field(_LINEAR), causes=_BOTH),
    "with passages of other claims": ColumnMethod(field(_LINEAR), _MORE, _BOTH),
    "with a module": ColumnMethod(field(_SMALL), causes=_BOTH),
    "linear, neighbours": ColumnMethod(field(_LINEAR), _LEARNED, _BOTH),
    "module, neighbours": ColumnMethod(field(_SMALL), _LEARNED, _BOTH),
    "with texts": ColumnMethod(field(_LINEAR), _TEXTS, _BOTH),
    "neighbours, texts": ColumnMethod(field(_LINEAR), _ALL, _BOTH),
    "module, texts": ColumnMethod(field(_SMALL), _TEXTS, _BOTH),
}
"""The field, a step at a time."""

METHODS: Mapping[str, ColumnMethod | GraphMethod] = {
    "default": ColumnMethod(as_given, ()),
    **dict(list(RIVALS.items())[:3]),
    **CLASSES,
    **dict(list(RIVALS.items())[3:]),
    **FIELDS,
}
"""Every method: as given, recalibrated, learned on graphs, without any graph, and the field."""


def learning_parts(task: CrossFitTask, size: int, seed: int) -> list[Integers]:
    """Claims of so many responses outside each fold, at random; fewer if there are no more.

    With a larger size the same responses are among them.
    """
    order = np.random.default_rng(seed).permutation(task.table.n_responses)
    of_response = np.zeros(task.table.n_responses, np.int64)
    of_response[task.table.responses] = task.fold
    parts = []
    for number in range(task.n_folds):
        chosen = [response for response in order if of_response[response] != number][:size]
        kept = np.isin(task.table.responses[task.table.labelled], chosen)
        parts.append(task.table.labelled[kept])
    return parts
