"""Learned priors of a study: fitted in folds before its units, once for each view of a dataset.

They are fitted to the data as stated; strengths then act on the learned priors. A response is
judged with priors learned on the other folds by `CrossFitting` of `calibration`, or with a judge
that `fit` saved, if one is named (`judge: FILE`), whose posteriors are those of `apply`
(`tests/experiments/study/test_judge_in_a_study.py`). `calibration` learns. This module determines
the views and datasets that need priors, their description in tables, and the store: a run keeps the
fit of each fold, so that a killed run repeats none, and a failed fit fails only its own units.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError

from calibration.learned_potentials import read_judge
from calibration.learned_potentials.graph_fitting import (
    WHOLE,
    CrossFitting,
    LearnedPotentials,
    labeled_folds,
)
from calibration.learned_potentials.graph_potentials import Potentials, apply, stance_class
from calibration.learned_potentials.judge import judge_of, with_judged_priors
from experiments.columns.cell_names import FAILED, RECORDED, cell_words
from experiments.findings.text import some_of
from experiments.settings.backend_settings import build_backend
from experiments.study.cells import GraphView, StudyCell
from experiments.study.config import Learned
from experiments.study.data import StudyData, related_graph
from experiments.study.reading import LoadedStudy
from experiments.study.units import sentence
from factormodels.errors import FactormodelsError, InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.source.files import read_text
from factormodels.io.store.results import KeptValues
from factormodels.metadata.learned_from import LearnedFrom
from factormodels.nouns import counted
from inference import Backend

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

COLUMNS = (
    *("dataset", "variant", "relation_model", "encoding", "prior", "fold", "parameter", "estimate"),
    *("standard_error", "lower", "upper", "start", "parameter_status"),
    *("n_responses", "n_labeled", "status", "converged", "error"),
)
"""Columns of priors.csv; a failed fit has a single row without a parameter."""

Key = tuple[str, str, str, str]
"""Variant, relation model, encoding and name of the priors in tables."""


@dataclass(frozen=True)
class PriorRequest:
    """Request for learned priors.

    Attributes:
        dataset: name of the dataset.
        view: view of its graphs, with the setting of the priors, at strength 1.
        backend: the algorithm that fits.
        key_path: beginning of errors.
        judge: text of a judge's file instead of learning; or empty.
    """

    dataset: str
    view: GraphView
    backend: Backend
    key_path: str
    judge: str = ""

    @property
    def view_key(self) -> Key:
        """Values that distinguish the request within its dataset."""
        view = self.view
        return view.variant, view.relation_model, view.encoding, view.prior.title

    @property
    def title(self) -> str:
        """Name in messages."""
        variant, relation_model, encoding, prior = self.view_key
        view = {"variant": variant, "relation_model": relation_model}
        return f"priors {prior!r} of {self.dataset} ({cell_words(view, view)}, {encoding})"

    @property
    def learned(self) -> Learned:
        """Parameters to learn, with the settings of learning."""
        return self.view.prior.learned or Learned()

    def key(self, fold: int) -> str:
        """Key of the fit without a fold."""
        return json.dumps([self.dataset, *self.view_key, fold])

    def matches(self, dataset: str, view: GraphView) -> bool:
        """True if these are the priors of a view of a dataset, at any strength."""
        return (self.dataset, self.view) == (dataset, replace(view, strength=1.0))


@dataclass(frozen=True)
class FoldFit:
    """Fit to the responses outside a fold.

    Attributes:
        weights: values of the weights by name.
        table: rows of `calibration.learned_potentials.graph_fitting.LearnedValue`, as plain data.
        n_responses: number of responses that it was fitted to.
        n_labeled: number of their labeled atoms.
        status: status of the optimizer, or `FAILED`.
        error: reason of a failure.
        judge: text of a judge's file, whose posteriors are the priors; or empty.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    weights: Mapping[str, float] = field(default_factory=dict)
    table: Sequence[Mapping[str, Any]] = ()
    n_responses: int = 0
    n_labeled: int = 0
    status: str = FAILED
    error: str = ""
    judge: str = ""

    @property
    def converged(self) -> bool:
        """True if the optimizer found an optimum, possibly at the end of a range."""
        return self.status in ("converged", "boundary")

    @classmethod
    def of(cls, learned: LearnedPotentials) -> FoldFit:
        """The fit of the learned parameters."""
        table = tuple(asdict(value) for value in learned.table())
        counts = learned.n_responses, learned.n_labeled
        return cls(learned.by_name, table, *counts, str(learned.status))


_FITS = TypeAdapter(FoldFit)


def _kept_fit(plain: Any) -> FoldFit | None:
    """Read a kept fit from plain data; None if another version kept it."""
    try:
        return _FITS.validate_python(plain)
    except ValidationError:
        return None


@dataclass(frozen=True)
class CrossFittedPriors:
    """Priors learned for the responses of a dataset in one view.

    Attributes:
        request: the request.
        fold: the fold of each response, (n_responses,), or `WHOLE`.
        fits: fits without each fold.
    """

    request: PriorRequest
    fold: tuple[int, ...]
    fits: Mapping[int, FoldFit]

    def of(self, responses: Sequence[int]) -> CrossFittedPriors:
        """The same priors for some responses, by index."""
        return replace(self, fold=tuple(self.fold[response] for response in responses))

    def graph(self, response: int, graph: FactGraph, recorded: FactGraph) -> FactGraph:
        """A response's view with parameters learned without its fold.

        Args:
            response: index of the response.
            graph: the view.
            recorded: the response as recorded, which a judge reads.

        Raises:
            FactormodelsError: if the fit failed.
        """
        fit = self.fits[self.fold[response]]
        if fit.error:
            raise FactormodelsError(f"its priors could not be learned: {fit.error}")
        if fit.judge:
            return with_judged_priors(recorded, _judge(fit.judge), graph)
        request = self.request
        return apply(_set(graph, request.view), potentials_of(request), fit.weights)


def prior_requests(
    loaded: LoadedStudy, cells: Sequence[StudyCell], data: Sequence[StudyData]
) -> tuple[PriorRequest, ...]:
    """Requests for learned priors of a study's cells, without duplicates.

    Raises:
        InputError: for a dataset without labels, or with fewer labeled responses than folds, or an
            unknown setting of the algorithm.
        MissingDependencyError: if a library that the algorithm needs is not installed.
    """
    by_name = {dataset.name: dataset for dataset in data}
    # By title, since cells identify their priors by title.
    places = {
        setting.title: loaded.blame(f"priors[{position}].learned")
        for position, priors in enumerate(loaded.study.priors)
        for setting in priors.settings()
    }
    requests: dict[tuple[str, GraphView], PriorRequest] = {}
    for cell in cells:
        view, learned = replace(cell.view, strength=1.0), cell.view.prior.learned
        # Cells that differ only in algorithm or strength share one fit.
        if learned is None or (cell.dataset, view) in requests:
            continue
        location, text = places[view.prior.title], ""
        if learned.judge:
            if view.relation_model != RECORDED:
                raise InputError(
                    f"{location}.judge: a judge reads the relations that the data record, not "
                    f"those of {view.relation_model}; leave out relation_models, or the judge "
                    "with `only`"
                )
            text = _judge_text(loaded, learned.judge, by_name[cell.dataset], location)
        else:
            _check_labels(by_name[cell.dataset], learned, location)
        backend = build_backend(
            learned.backend, learned.settings, partial("{}.settings.{}".format, location)
        )
        requests[cell.dataset, view] = PriorRequest(cell.dataset, view, backend, location, text)
    return tuple(requests.values())


def fit_all(
    asked: Sequence[PriorRequest],
    data: Sequence[StudyData],
    seed: int,
    kept: KeptValues,
    *,
    finished: Collection[tuple[str, GraphView]] = (),
    again: bool = False,
    notice: Callable[[str], None] = logger.info,
) -> tuple[CrossFittedPriors, ...]:
    """Return the learned priors; kept ones are not fitted again.

    Args:
        asked: requests for priors.
        data: the datasets of the study.
        seed: seed of the folds.
        kept: store of finished fits, which receives every new fit at once.
        finished: datasets and views with finished units, whose fits must be in the store.
        again: repeat failed fits.
        notice: function that is called with the name of each fit.

    Raises:
        InputError: for data that do not fit the specification, or if the fits of finished units are
            missing.
    """
    by_name = {dataset.name: dataset for dataset in data}
    priors = []
    for request in asked:
        # All fits of a request are kept before its first unit runs, so fold 0 represents the
        # others. Refitting would mix rows of two fits in one cell.
        first = kept.get(request.key(WHOLE if request.judge else 0))
        if any(request.matches(*view) for view in finished) and not _kept_fit(first):
            raise InputError(
                f"{kept.path}: the {request.title} that finished units used are missing, or from "
                "another version; start over with --overwrite"
            )
        priors.append(_fitted(request, by_name[request.dataset], seed, kept, again, notice))
    return tuple(priors)


def kept_fits(
    asked: Sequence[PriorRequest], data: Sequence[StudyData], seed: int, values: Mapping[str, Any]
) -> tuple[CrossFittedPriors, ...]:
    """The learned priors if every fit is kept, without fitting any.

    Args:
        asked: requests for priors.
        data: the datasets of the study.
        seed: seed of the folds.
        values: kept values by key.
    """
    by_name = {dataset.name: dataset for dataset in data}
    priors = []
    for request in asked:
        fold = _folds(request, by_name[request.dataset], seed)
        kept = {number: _kept_fit(values.get(request.key(number))) for number in _numbers(fold)}
        fits = {number: fit for number, fit in kept.items() if fit}
        if len(fits) == len(kept):
            priors.append(CrossFittedPriors(request, fold, fits))
    return tuple(priors)


def priors_table(fits: Sequence[CrossFittedPriors]) -> pd.DataFrame:
    """Table of the learned parameters, one row per fold and parameter, with the columns `COLUMNS`.

    The fold is empty for the fit to all labeled responses, which judges responses without labels.
    """
    import pandas as pd

    rows = []
    for cross in fits:
        for fold, fit in cross.fits.items():
            shared = {
                "dataset": cross.request.dataset,
                **dict(zip(COLUMNS[1:5], cross.request.view_key, strict=True)),
                "fold": pd.NA if fold == WHOLE else fold,
                **{name: getattr(fit, name) for name in ("n_responses", "n_labeled", "status")},
                "converged": fit.converged,
                "error": fit.error,
            }
            # A failed fit still has a row, with the error. A parameter's status must not hide the
            # status of the fit.
            for value in fit.table or ({},):
                parameter = {
                    "parameter": value.get("name"),
                    "parameter_status": value.get("status"),
                }
                rows.append({**value, **parameter, **shared})
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"fold": "Int64"})


def potentials_of(request: PriorRequest) -> Potentials:
    """Free potentials of graphs whose other priors are set."""
    learned = request.learned
    by = stance_class() if learned.by == "stance" else learned.by
    return Potentials(learned.parameters, by, request.view.encoding)


def _set(graph: FactGraph, view: GraphView) -> FactGraph:
    """A graph with the fixed priors of a view."""
    return graph.with_priors(atoms=view.prior.atom, contexts=view.prior.context)


_judge = cache(judge_of)
"""The judge of a file's text, built once per process."""


def _judge_text(loaded: LoadedStudy, name: str, dataset: StudyData, location: str) -> str:
    """Text of a judge's file, checked against a dataset."""
    path = loaded.folder / name
    try:
        judge = read_judge(path)
        judge.table(dataset.graphs)
    except InputError as error:
        raise InputError(f"{location}.judge: {error}") from None
    marks = judge.learned_from(dataset.graphs)
    taught = [
        graph.id
        for graph, mark in zip(dataset.graphs, marks, strict=True)
        if mark is LearnedFrom.THIS_RESPONSE
    ]
    if taught:
        raise InputError(
            f"{location}.judge: labels of {counted(len(taught), 'response')} of {dataset.name!r} "
            f"({some_of(taught)}) trained the judge, and cannot score it; give data without "
            "these responses, or learn the priors in the folds of the study with the other keys "
            "of `learned`"
        )
    return read_text(path)


def _check_labels(dataset: StudyData, learned: Learned, location: str) -> None:
    labeled = sum(any(a.label is not None for a in graph.atoms) for graph in dataset.graphs)
    if not labeled:
        raise InputError(
            f"{location}: no atom of {dataset.name!r} has a label to learn from; leave the dataset "
            "out of these priors with `only`, or give labeled data"
        )
    # Every fold needs a labeled response; check before fitting.
    if labeled < learned.folds:
        raise InputError(
            f"{location}.folds: {counted(learned.folds, 'fold')}, but {dataset.name!r} has "
            f"{counted(labeled, 'labeled response')}, which are never split; "
            + (f"give at most {labeled}" if labeled > 1 else "give more labeled data")
        )


def _fitted(
    request: PriorRequest,
    dataset: StudyData,
    seed: int,
    kept: KeptValues,
    again: bool,
    notice: Callable[[str], None],
) -> CrossFittedPriors:
    """Fits of a request, from the store if kept; failures are kept too."""
    fold = _folds(request, dataset, seed)
    needed = _numbers(fold)

    # Built on demand: a resumed run with all fits needs no view.
    @cache
    def crossing() -> CrossFitting:
        notice(f"learning {request.title}: {counted(len(needed), 'fit')}")
        related, view = dataset.related or ({},) * len(dataset.graphs), request.view
        views = tuple(
            _set(
                related_graph(
                    graph,
                    graph_relations,
                    view.relation_model,
                    view.variant,
                    view.conventions,
                ),
                view,
            )
            for graph, graph_relations in zip(dataset.graphs, related, strict=True)
        )
        names = ("objective", "penalty", "max_iterations")
        settings = {name: getattr(request.learned, name) for name in names}
        settings["backend"] = request.backend
        return CrossFitting(views, np.array(fold), potentials_of(request), settings)

    def fitted(number: int) -> FoldFit:
        if request.judge:
            # Priors learned elsewhere have no status.
            return FoldFit(status="converged", judge=request.judge)
        try:
            return FoldFit.of(crossing().without(number))
        except InputError as error:
            raise InputError(f"{request.key_path}: {request.title}: {error}") from None
        except Exception as error:
            # Like a failed unit, a failed fit must not end the study.
            logger.debug("%s, fold %d: the fit failed", request.title, number, exc_info=error)
            return FoldFit(error=sentence(error))

    fits = {}
    # Every fit is stored before the next begins, so a killed run loses at most one.
    for number in needed:
        fit = _kept_fit(kept.get(request.key(number)))
        # Keep failures too, or every resumption would repeat them.
        if fit is None or (again and fit.error):
            fit = fitted(number)
            kept.put(request.key(number), asdict(fit))
        fits[number] = fit
    return CrossFittedPriors(request, fold, fits)


def _folds(request: PriorRequest, dataset: StudyData, seed: int) -> tuple[int, ...]:
    """The fold of every response."""
    # A judge was learned on other data, so no response has a fold.
    if request.judge:
        return (WHOLE,) * len(dataset.graphs)
    return tuple(labeled_folds(dataset.graphs, request.learned.folds, seed).tolist())


def _numbers(fold: Sequence[int]) -> list[int]:
    """The held-out folds, `WHOLE` last."""
    return sorted(set(fold), key=lambda number: (number == WHOLE, number))
