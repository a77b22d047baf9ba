"""Learning the priors of a study: before its units, once for each view of a dataset, in folds."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.folds import response_folds
from calibration.learned_priors import CrossFitting, cross_fitting
from experiments.paper.text import counted
from experiments.run.cross_fits import (
    WHOLE,
    CrossFit,
    FoldFit,
    Key,
    as_plain,
    from_plain,
    specification_of,
)
from experiments.run.keyed_journal import KeyedJournal
from experiments.run.units import sentence
from experiments.study.backend_settings import build_backend
from experiments.study.cell_names import cell_words
from experiments.study.config import Learned, PriorSetting
from experiments.study.data import StudyData, related_graph
from experiments.study.design import GraphView, StudyCell
from experiments.study.reading import LoadedStudy
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from inference import Backend

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Question:
    """Which priors are to be learned, and of what.

    Attributes:
        dataset: name of the dataset.
        variant: view of its graphs.
        relation_model: what the study calls the source of their relations.
        encoding: encoding of their relations.
        prior: the setting of the priors.
        backend: the algorithm that fits.
        place: what errors begin with.
    """

    dataset: str
    variant: str
    relation_model: str
    encoding: str
    prior: PriorSetting
    backend: Backend
    place: str

    @property
    def title(self) -> str:
        """What messages call it."""
        view = {"variant": self.variant, "relation_model": self.relation_model}
        words = cell_words(view, view)
        return f"priors {self.prior.title!r} of {self.dataset} ({words}, {self.encoding})"

    @property
    def learned(self) -> Learned:
        """What is learned, and how."""
        return self.prior.learned or Learned()

    def key(self, fold: int) -> str:
        """Return what the fit without a fold is kept under."""
        return json.dumps(
            [self.dataset, self.variant, self.relation_model, self.encoding, self.prior.title, fold]
        )

    def answers(self, dataset: str, view: GraphView) -> bool:
        """Whether these are the priors of a view of a dataset, at whatever strength."""
        own = (self.dataset, self.variant, self.relation_model, self.encoding, self.prior)
        its = (view.variant, view.relation_model, view.encoding, view.prior)
        return own == (dataset, *its)

    def crossing(self, graphs: Sequence[FactGraph], seed: int) -> CrossFitting:
        """Return the cross-fitting over the responses of the dataset in this view.

        Raises:
            InputError: for a relation that cannot be learned of, or nothing to learn.
        """
        learned = self.learned
        return cross_fitting(
            graphs,
            specification_of(self.prior, self.encoding),
            n_folds=learned.folds,
            seed=seed,
            objective=learned.objective,
            backend=self.backend,
            penalty=learned.penalty,
            max_iterations=learned.max_iterations,
        )


def questions(
    loaded: LoadedStudy, cells: Sequence[StudyCell], data: Sequence[StudyData]
) -> tuple[Question, ...]:
    """Return which priors the cells of a study have learned, each once.

    Raises:
        InputError: for a dataset with no label, or with fewer labelled responses than folds, or a
            setting that the algorithm does not have.
        MissingDependencyError: if a library that the algorithm needs is not installed.
    """
    by_name = {dataset.name: dataset for dataset in data}
    places = {
        setting.title: loaded.blame(f"priors[{position}].learned")
        for position, priors in enumerate(loaded.study.priors)
        for setting in priors.settings()
    }
    found: dict[tuple[str, Key], Question] = {}
    for cell in cells:
        view, learned = cell.view, cell.view.prior.learned
        shown = (view.variant, view.relation_model, view.encoding)
        key = (cell.dataset, (*shown, view.prior.title))
        if learned is None or key in found:
            continue
        place = places[view.prior.title]
        _check_labels(by_name[cell.dataset], learned, place)
        backend = build_backend(
            learned.backend, learned.settings, partial("{}.settings.{}".format, place)
        )
        found[key] = Question(cell.dataset, *shown, view.prior, backend, place)
    return tuple(found.values())


def fit_all(
    asked: Sequence[Question],
    data: Sequence[StudyData],
    seed: int,
    kept: KeyedJournal,
    *,
    finished: Collection[tuple[str, GraphView]] = (),
    again: bool = False,
    notice: Callable[[str], None] = logger.info,
) -> tuple[CrossFit, ...]:
    """Return the learned priors; those that are kept are not fitted again.

    Args:
        asked: which priors.
        data: the datasets of the study.
        seed: seed of the folds.
        kept: fits of this run that are done; what is fitted goes there at once.
        finished: datasets and views of which units are finished: their fits must be there.
        again: fit anew what failed.
        notice: is told what is being fitted.

    Raises:
        InputError: for data that the specification cannot be learned of, or if the fits of
            finished units are gone.
    """
    by_name = {dataset.name: dataset for dataset in data}
    found = []
    for question in asked:
        if any(question.answers(*view) for view in finished) and not kept.get(question.key(0)):
            raise InputError(
                f"{kept.path}: the {question.title}, by which units are finished, are not in it; "
                "start anew with --overwrite"
            )
        dataset = by_name[question.dataset]
        found.append(_fit(question, dataset, seed, kept, again, notice))
    return tuple(found)


def kept_fits(
    asked: Sequence[Question], data: Sequence[StudyData], seed: int, values: Mapping[str, Any]
) -> tuple[CrossFit, ...]:
    """Return the learned priors of which every fit is kept, without fitting any.

    Args:
        asked: which priors.
        data: the datasets of the study.
        seed: seed of the folds.
        values: what is kept, by key.
    """
    by_name = {dataset.name: dataset for dataset in data}
    found = []
    for question in asked:
        fold, needed = _folds(question, by_name[question.dataset], seed)
        if all(question.key(number) in values for number in needed):
            fits = {number: from_plain(values[question.key(number)]) for number in needed}
            found.append(_cross_fit(question, fold, fits))
    return tuple(found)


def _check_labels(dataset: StudyData, learned: Learned, place: str) -> None:
    labelled = len(_labelled(dataset))
    if not labelled:
        raise InputError(
            f"{place}: no atom of {dataset.name!r} has a label to learn of; leave the dataset out "
            "of these priors with `only`, or give labelled data"
        )
    if labelled < learned.folds:
        raise InputError(
            f"{place}.folds: {learned.folds} folds, but {dataset.name!r} has "
            f"{counted(labelled, 'labelled response')}, which are never split; "
            + (f"give at most {labelled}" if labelled > 1 else "give more labelled data")
        )


def _labelled(dataset: StudyData) -> list[int]:
    """Return the positions of the responses with a labelled atom."""
    return [
        position
        for position, graph in enumerate(dataset.graphs)
        if any(atom.label is not None for atom in graph.atoms)
    ]


def _fit(
    question: Question,
    dataset: StudyData,
    seed: int,
    kept: KeyedJournal,
    again: bool,
    notice: Callable[[str], None],
) -> CrossFit:
    fold, needed = _folds(question, dataset, seed)

    @cache
    def views() -> list[FactGraph]:
        related = dataset.related or ({},) * len(dataset.graphs)
        return [
            related_graph(graph, own, question.relation_model, question.variant)
            for graph, own in zip(dataset.graphs, related, strict=True)
        ]

    @cache
    def crossing() -> CrossFitting:
        notice(f"learning {question.title}: {counted(len(needed), 'fit')}")
        return question.crossing(views(), seed)

    def fitted(number: int) -> dict[str, Any]:
        try:
            if number == WHOLE:
                unseen = [views()[at] for at in np.flatnonzero(fold == WHOLE)]
                return as_plain(crossing().whole(unseen))
            return as_plain(crossing().without(number))
        except InputError as error:
            raise InputError(f"{question.place}: {question.title}: {error}") from None
        except Exception as error:
            # As with a unit, the rest of the study must not be lost to one fit.
            logger.debug("%s, fold %d: the fit failed", question.title, number, exc_info=error)
            return {"error": sentence(error)}

    fits = {}
    for number in needed:
        value = kept.get(question.key(number))
        if value is None or (again and value["error"]):
            value = fitted(number)
            kept.put(question.key(number), value)
        fits[number] = from_plain(value)
    return _cross_fit(question, fold, fits)


def _folds(
    question: Question, dataset: StudyData, seed: int
) -> tuple[NDArray[np.int64], list[int]]:
    """Return the fold of every response, (n_responses,), and the folds without which is fitted."""
    labelled = _labelled(dataset)
    n_folds = question.learned.folds
    fold = np.full(len(dataset.graphs), WHOLE)
    fold[labelled] = response_folds([dataset.graphs[at].id for at in labelled], n_folds, seed)
    return fold, [*range(n_folds), *([WHOLE] if (fold == WHOLE).any() else [])]


def _cross_fit(
    question: Question, fold: NDArray[np.int64], fits: Mapping[int, FoldFit]
) -> CrossFit:
    return CrossFit(
        question.dataset,
        question.variant,
        question.relation_model,
        question.encoding,
        question.prior,
        tuple(fold.tolist()),
        fits,
    )
