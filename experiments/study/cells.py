"""Cells of a study: combinations of a dataset, a view of its responses, and an algorithm.

A worker process needs this module and no configuration, whose classes take most of a second to
make.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.columns.cell_names import CELL, NO_GRAPH, RECORDED
from factormodels.conventions import DEFAULT, GraphConventions
from inference import Backend

if TYPE_CHECKING:
    from experiments.study.config import Learned


@dataclass(frozen=True)
class StudyAlgorithm:
    """A backend with its settings (or the reason why it is unavailable), or an assessor.

    Attributes:
        choice: position in the study's list of backends, or of assessors.
        title: name in tables.
        name: its name in the registry, or the assessor's.
        seed: the seed of its cells.
        setting: all its settings as JSON with sorted keys (only the given settings, if it is not
            installed).
        backend: the backend; None for an assessor, or if a required library is missing.
        error: sentence on the missing library.
        assessor: True for an assessor, which judges texts instead of a graph.
    """

    choice: int
    title: str
    name: str
    seed: int
    setting: str
    backend: Backend | None
    error: str = ""
    assessor: bool = False


@dataclass(frozen=True)
class PriorSetting:
    """Priors of a cell; None keeps the data's priors.

    Attributes:
        title: name in tables.
        atom: prior of every atom.
        context: prior of every context.
        learned: settings of learning; None if nothing is learned.
    """

    title: str
    atom: float | None
    context: float | None
    learned: Learned | None = None


@dataclass(frozen=True)
class GraphView:
    """View of a response as a factor graph.

    Attributes:
        variant: view of the fact graph.
        encoding: encoding of relations.
        prior: priors of atoms and contexts.
        strength: factor for the log odds of every relation's probability.
        relation_model: name of the source of relations in the study.
        conventions: conventions that turn passages and relations into a model.
    """

    variant: str
    encoding: str
    prior: PriorSetting
    strength: float
    relation_model: str = RECORDED
    conventions: GraphConventions = DEFAULT.graph


NO_VIEW = GraphView(NO_GRAPH, NO_GRAPH, PriorSetting(NO_GRAPH, None, None), 1.0, NO_GRAPH)
"""Title of an assessor's cell."""


@dataclass(frozen=True)
class StudyCell:
    """Cell of a study: a combination that is run over all responses of its dataset.

    Attributes:
        dataset: name of the dataset.
        view: view that turns responses into factor graphs.
        algorithm: the algorithm.
    """

    dataset: str
    view: GraphView
    algorithm: StudyAlgorithm

    def key(self) -> dict[str, Any]:
        """Values that distinguish the cell, by column of the rows."""
        of_view = self.view.variant, self.view.relation_model, self.view.encoding
        rest = self.view.prior.title, self.view.strength, self.algorithm.title, self.algorithm.seed
        return dict(zip(CELL, (self.dataset, *of_view, *rest), strict=True))


def absent_backends(cells: Iterable[StudyCell]) -> dict[str, str]:
    """Instructions for installing the missing library of each backend, by name in tables."""
    return {cell.algorithm.title: cell.algorithm.error for cell in cells if cell.algorithm.error}
