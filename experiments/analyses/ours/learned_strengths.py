"""Learned priors on real labels: every way to learn, held against every other, graph or none.

All are cross-fitted in the same folds of responses; what a method chooses, it chooses inside the
folds that it learns from. Graphs of FR1 are forests of stars, in which atoms are independent: with
certain contexts, learned strengths are a logistic regression on counts of relations. What sees more
joins atoms: contexts that they share (FR2, FR3), or a hidden cause of each sentence and response.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from calibration.figures.panels import PAGE, draw_interval, panels
from calibration.folds import folds_of
from calibration.learned_priors import (
    ClassProbability,
    Free,
    Specification,
    Temperature,
    cross_fitting,
)
from calibration.validation import Floats, Integers
from experiments.analyses.context import AnalysisContext
from experiments.analyses.interval_values import named
from experiments.analyses.posteriors import (
    LabelledAtoms,
    atom_posteriors,
    labelled_atoms,
    score_change,
    scores_with_intervals,
)
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, interval_column
from experiments.study.config import STRICT, DatasetChoice
from factormodels.claims import Context, Relation, RelationKind
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.errors import InputError, unknown_name
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

EDGES = (0.15, 0.3, 0.45, 0.6, 0.8)
"""Where the six classes of P(entailment) end."""

FINE_EDGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Where the nine classes of the strongest passage of an atom end."""

PENALTY = 3.0
"""Standard deviation of the normal prior on learned numbers: it keeps classes that few labels bear
on near their start, and hardly moves the others."""

SENTENCE, RESPONSE = "sentence", "response"

Make = Callable[[FactGraph], FactGraph]
"""From a response as recorded to the graph that is learned on."""


@dataclass(frozen=True)
class Settings:
    """On what, and which methods.

    Attributes:
        dataset: labelled responses whose relations state distributions over kinds.
        methods: names of methods; empty: all of them.
        folds: folds of the cross-fitting, the same for all.
    """

    __pydantic_config__: ClassVar = STRICT

    dataset: DatasetChoice
    methods: tuple[str, ...] = ()
    folds: Annotated[int, Field(ge=2)] = 5

    def __post_init__(self) -> None:
        for name in self.methods:
            if name not in METHODS:
                raise ValueError(unknown_name(f"the method {name!r}", name, METHODS))


@dataclass(frozen=True, eq=False)
class CrossFitTask:
    """What every method is given.

    Attributes:
        graphs: the responses as recorded.
        views: their views of FR1.
        atoms: the labelled atoms.
        fold: int64 (n,), the fold of each.
        default: posterior of each as the graphs of FR1 are given, *implication*, (n,).
        n_folds: number of folds.
        seed: seed of the folds.
    """

    graphs: Sequence[FactGraph]
    views: Sequence[FactGraph]
    atoms: LabelledAtoms
    fold: Integers
    default: Floats
    n_folds: int
    seed: int


Method = Callable[[CrossFitTask], Floats]
"""Cross-fitted probability of each labelled atom."""


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Scores of every method, all their differences, and the figure of the ladder."""
    (data,) = context.load([settings.dataset], "dataset")
    if bare := _stating_none(data.graphs):
        raise InputError(
            f"{data.name}: response {bare.id!r} has a relation without a distribution over "
            "kinds, which these methods learn from; give data that state one"
        )
    task = problem(data.graphs, settings.folds, context.seed, data.name)
    found: dict[str, Floats] = {}
    names = settings.methods or tuple(METHODS)
    with context.track("methods", len(names)) as step:
        for name in names:
            found[name] = METHODS[name](task)
            step()
    scores = data_frame(score_rows(found, task))
    differences = data_frame(difference_rows(found, task))
    tables = {"scores": scores_table(scores)}
    if len(found) > 1:
        tables["differences"] = _differences_table(differences)
    return Artefacts(
        tables=tables,
        figures={
            "ladder": PaperFigure(ladder_figure(scores), scores, "Brier score of every method")
        },
    )


def problem(graphs: Sequence[FactGraph], n_folds: int, seed: int, where: str) -> CrossFitTask:
    """What every method is given.

    Raises:
        InputError: if no atom is labelled.
    """
    kept = [graph for graph in graphs if any(atom.label is not None for atom in graph.atoms)]
    atoms = labelled_atoms(kept, where)
    views = [variant(graph, "FR1") for graph in kept]
    default = atom_posteriors(views, "implication")[atoms.kept]
    fold = folds_of(atoms.grouping, n_folds, seed)
    return CrossFitTask(kept, views, atoms, fold, default, n_folds, seed)


def _stating_none(graphs: Sequence[FactGraph]) -> FactGraph | None:
    """The first response with a relation that states no distribution over kinds, if any."""
    return next((g for g in graphs if any(r.distribution is None for r in g.relations)), None)


# ------------------------------------------------------------------------------------- graphs


def entailments(graph: FactGraph, least: float = 0.0) -> FactGraph:
    """Every relation as an entailment with the probability that it is one.

    Args:
        graph: the response.
        least: relations with a smaller probability of entailment are left out.
    """
    stated = ((r, (r.distribution or (0.0,))[0]) for r in graph.relations)
    relations = tuple(
        Relation(r.source, r.target, RelationKind.ENTAILMENT, p) for r, p in stated if p >= least
    )
    return replace(graph, relations=relations)


def with_causes(graph: FactGraph) -> FactGraph:
    """The graph with a hidden cause of each sentence's atoms, and one of all sentences.

    A forest of stars becomes a tree. Causes are even, and equivalent to what they cause with a
    probability that is learned: 1/2 says that atoms of a sentence have nothing in common.
    """
    sentences = dict.fromkeys(atom.sentence for atom in graph.atoms)
    causes = [Context(f"{SENTENCE} {each}", prior=0.5) for each in sentences]
    causes.append(Context(RESPONSE, prior=0.5))
    equivalent = RelationKind.EQUIVALENCE
    joins = [Relation(f"{SENTENCE} {a.sentence}", a.id, equivalent, 0.7) for a in graph.atoms]
    joins += [Relation(RESPONSE, f"{SENTENCE} {each}", equivalent, 0.65) for each in sentences]
    return replace(
        graph,
        contexts=(*graph.contexts, *causes),
        relations=(*graph.relations, *joins),
    )


def six_classes(graph: FactGraph, relation: Relation) -> str:
    """The class of P(entailment), of six; causes, and pairs of contexts, have their own."""
    if cause := _cause(relation):
        return cause
    if relation.target in graph.context_ids:
        return "between"
    return f"p{bisect.bisect(EDGES, relation.probability)}"


def ranked_classes() -> Callable[[FactGraph, Relation], str]:
    """A function that names classes: nine of an atom's strongest passage, six of the others."""
    strongest: dict[str, dict[str, str]] = {}

    def name(graph: FactGraph, relation: Relation) -> str:
        if cause := _cause(relation):
            return cause
        if graph.id not in strongest:
            strongest[graph.id] = _strongest(graph)
        if strongest[graph.id][relation.target] == relation.source:
            return f"first{bisect.bisect(FINE_EDGES, relation.probability)}"
        return f"other{bisect.bisect(EDGES, relation.probability)}"

    return name


def _strongest(graph: FactGraph) -> dict[str, str]:
    """The source of the most probable entailment of each atom."""
    best: dict[str, Relation] = {}
    for relation in graph.relations:
        known = best.get(relation.target)
        if known is None or relation.probability > known.probability:
            best[relation.target] = relation
    return {target: relation.source for target, relation in best.items()}


def _cause(relation: Relation) -> str:
    if relation.kind is not RelationKind.EQUIVALENCE:
        return ""
    return RESPONSE if relation.source == RESPONSE else SENTENCE


def _view(name: str) -> Make:
    # Where every context meets every atom, most pairs have nothing to do with each other.
    least = 0.0 if name == "FR1" else EDGES[0]
    return lambda graph: entailments(variant(graph, name), least)


def learned(
    make: Make, specification: Callable[[], Specification], backend: str = "auto"
) -> Method:
    """Posteriors under what the other folds teach."""

    def method(task: CrossFitTask) -> Floats:
        chosen = specification()
        applied = taught(task, make, chosen, backend)
        return atom_posteriors(applied, chosen.encoding, backend)[task.atoms.kept]

    return method


def taught(
    task: CrossFitTask, make: Make, specification: Specification, backend: str = "auto"
) -> list[FactGraph]:
    """Every response's graph with what the folds without it teach, in order."""
    crossing = cross_fitting(
        [make(graph) for graph in task.graphs],
        specification,
        n_folds=task.n_folds,
        seed=task.seed,
        backend=backend,
        penalty=PENALTY,
    )
    fits = [crossing.without(number) for number in range(task.n_folds)]
    return [
        fits[own].apply(graph)
        for graph, own in zip(crossing.graphs, crossing.fold.tolist(), strict=True)
    ]


def taught_classes(
    task: CrossFitTask, view: str, encoding: str = DEFAULT_ENCODING
) -> list[FactGraph]:
    """Every response's graph of a view with six classes' strengths from the folds without it.

    Where relations state no distribution there is a strength for each kind instead. Strengths are
    learned under the encoding, by which the graphs are to be encoded; what a learned relation is
    not of its kind, *mixture* takes for neutral.
    """
    backend = "exact" if view == "FR1" else "lbp"
    if _stating_none(task.graphs) is None:
        classes = replace(_classes(), encoding=encoding)
        return taught(task, _view(view), classes, backend)
    kinds = Specification(relations=ClassProbability("kind"), encoding=encoding)
    return taught(task, lambda graph: variant(graph, view), kinds, backend)


def _fr1(graph: FactGraph) -> FactGraph:
    return variant(graph, "FR1")


def _classes(context_prior: Free | None = None) -> Specification:
    return Specification(Free(), context_prior, ClassProbability(six_classes))


def _ranked() -> Specification:
    return Specification(relations=ClassProbability(ranked_classes()))


# -------------------------------------------------------------------------------- without graphs


def features(task: CrossFitTask, neighbours: bool = False) -> Floats:
    """What the relation model says of each labelled atom, (n, 9), or (n, 13) with neighbours.

    Log odds of entailment of its passages from the strongest on, five of them; their mean and
    number; the largest and the mean logarithm of P(contradiction). With neighbours: the mean of the
    strongest and of the mean over the atoms of its sentence, and of its response.
    """
    rows, sentences = [], []
    for view in task.views:
        stated: dict[str, list[tuple[float, ...]]] = {}
        for relation in view.relations:
            stated.setdefault(relation.target, []).append(relation.distribution or (0.5, 0.5))
        for atom in view.atoms:
            shares = np.array([each[:2] for each in stated.get(atom.id, ())]).reshape(-1, 2)
            inside = np.clip(shares, 1e-4, 1 - 1e-4)
            odds = np.sort(np.log(inside[:, 0]) - np.log1p(-inside[:, 0]))[::-1]
            five = np.full(5, -5.0)
            five[: min(5, len(odds))] = odds[:5]
            against = np.log(inside[:, 1]) if len(inside) else np.full(1, -9.0)
            mean = odds.mean() if len(odds) else -5.0
            rows.append([*five, mean, len(odds), against.max(), against.mean()])
            sentences.append(f"{view.id} {atom.sentence}")
    table = np.array(rows)
    if neighbours:
        responses = [view.id for view in task.views for _ in view.atoms]
        means = [
            np.stack([_means(names, table[:, column]) for column in (0, 5)], axis=1)
            for names in (sentences, responses)
        ]
        table = np.hstack([table, *means])
    return table[task.atoms.kept]


def _means(names: Sequence[str], values: Floats) -> Floats:
    _, index = np.unique(names, return_inverse=True)
    means: Floats = (np.bincount(index, values) / np.bincount(index))[index]
    return means


def _recalibrated(name: str) -> Method:
    def method(task: CrossFitTask) -> Floats:
        from calibration.recalibration import RECALIBRATORS, cross_fit

        return cross_fit(
            RECALIBRATORS[name](),
            task.default,
            task.atoms.labels,
            task.atoms.responses,
            n_folds=task.n_folds,
            seed=task.seed,
        ).p

    return method


def _base_rate(task: CrossFitTask) -> Floats:
    rates = [task.atoms.labels[task.fold != number].mean() for number in range(task.n_folds)]
    return np.array(rates)[task.fold]


def _classified(model: str, neighbours: bool = False) -> Method:
    """A classifier on the features, its settings chosen within the folds that it learns from."""

    def method(task: CrossFitTask) -> Floats:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV, GroupKFold
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        if model == "logistic":
            estimator = make_pipeline(StandardScaler(), LogisticRegression())
            grid: dict[str, list[Any]] = {"logisticregression__C": [0.01, 0.1, 1.0]}
        else:
            estimator = HistGradientBoostingClassifier(
                learning_rate=0.05, min_samples_leaf=40, random_state=0
            )
            grid = {"max_depth": [2, 3], "max_iter": [60, 120]}
        x, p = features(task, neighbours), np.empty(len(task.fold))
        for number in range(task.n_folds):
            rest = task.fold != number
            search = GridSearchCV(
                estimator, grid, scoring="neg_brier_score", cv=GroupKFold(3), n_jobs=1
            )
            search.fit(x[rest], task.atoms.labels[rest], groups=task.atoms.responses[rest])
            p[~rest] = search.predict_proba(x[~rest])[:, 1]
        return p

    return method


METHODS: Mapping[str, Method] = {
    "default": lambda task: task.default,
    "base rate": _base_rate,
    "Platt": _recalibrated("platt"),
    "beta": _recalibrated("beta"),
    "atom prior": learned(_fr1, lambda: Specification(relations=None)),
    "prior and temperature": learned(_fr1, Specification),
    "per kind": learned(_fr1, lambda: Specification(relations=ClassProbability("kind"))),
    "mixture, as stated": lambda task: atom_posteriors(task.views, "mixture")[task.atoms.kept],
    "mixture, prior and temperature": learned(
        _fr1, lambda: Specification(relations=Temperature("kind"), encoding="mixture")
    ),
    "six classes": learned(_view("FR1"), _classes),
    "six classes, false contexts": learned(_view("FR1"), lambda: _classes(Free(0.9))),
    "ranks": learned(_view("FR1"), _ranked),
    "six classes, FR2": learned(_view("FR2"), _classes, "lbp"),
    "six classes, FR3": learned(_view("FR3"), _classes, "lbp"),
    "six classes, causes": learned(lambda graph: with_causes(_view("FR1")(graph)), _classes),
    "ranks, causes": learned(lambda graph: with_causes(_view("FR1")(graph)), _ranked),
    "logistic regression": _classified("logistic"),
    "boosted trees": _classified("trees"),
    "boosted trees, neighbours": _classified("trees", neighbours=True),
}
"""Every method by name: as given, recalibrated, learned on graphs, and without any graph."""


# ---------------------------------------------------------------------------------------- scores


_SCORES = ("brier", "log_loss", "auroc")


def score_rows(found: Mapping[str, Floats], task: CrossFitTask) -> list[dict[str, Any]]:
    """Scores of every method with intervals over responses, AUROC within folds."""
    rows = []
    for name, p in found.items():
        row: dict[str, Any] = {"method": name, "n_atoms": len(p)}
        row |= scores_with_intervals(p, task.atoms, _SCORES, task.seed, task.fold)
        spread = float(np.ptp(p)) > 0.05
        slope = ("calibration_slope",) if spread else ()
        row |= {"slope": np.nan, "slope_lower": np.nan, "slope_upper": np.nan}
        row |= scores_with_intervals(p, task.atoms, slope, task.seed) if slope else {}
        row["mean"] = float(p.mean())
        rows.append(row)
    return rows


def difference_rows(found: Mapping[str, Floats], task: CrossFitTask) -> list[dict[str, Any]]:
    """Every pair of methods: the first's score less the second's, paired over responses."""
    rows = []
    for (first, p), (second, other) in combinations(found.items(), 2):
        row: dict[str, Any] = {"method": first, "other": second}
        for score in _SCORES:
            change = score_change(score, p, other, task.atoms, task.seed, task.fold)
            row |= named(score, change)
        rows.append(row)
    return rows


def scores_table(scores: pd.DataFrame) -> Table:
    """The table of `score_rows`."""
    return Table(
        scores,
        (
            Column("method", "method"),
            interval_column("brier", "Brier", 4),
            interval_column("log_loss", "log loss", 3),
            interval_column("auroc", "AUROC", 3),
            interval_column("slope", "slope", 2),
        ),
        "Every method on responses it has not seen",
        note=(
            "Intervals: 95 % over responses. AUROC: of pairs within a fold. Slope: of calibration, "
            "1 where log odds are right."
        ),
    )


def _differences_table(differences: pd.DataFrame) -> Table:
    return Table(
        differences,
        (
            Column("other", "less"),
            interval_column("brier", "Brier", 4),
            interval_column("log_loss", "log loss", 3),
            interval_column("auroc", "AUROC", 3),
        ),
        "Every method less every other on the same responses",
        group="method",
        note="Intervals: 95 %, paired over responses. Below 0 the first is better, but for AUROC.",
    )


def ladder_figure(scores: pd.DataFrame) -> Figure:
    """The Brier score of every method.

    Args:
        scores: the table of scores.
    """
    names = scores["method"].tolist()
    with panels(1, 1, (PAGE, 0.7 + 0.19 * len(names))) as (figure, ((place,),)):
        for height, row in zip(reversed(range(len(names))), scores.to_dict("records"), strict=True):
            ends = row["brier"], row["brier_lower"], row["brier_upper"]
            draw_interval(place, height, ends, color="0.2", marker="o")
        place.set_yticks(range(len(names) - 1, -1, -1), names)
        place.set_xlabel("Brier score on responses not seen")
    return figure
