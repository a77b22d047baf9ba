"""Selections of the atoms that count, solved once per response and kept.

`CoreChoices` of the evaluator and `factormodels.selection.select` select. A study adds the recorded
relations of each response, and the store. A solution with lexical relations takes 1.5 ms of
processor time per response of the demonstration, with weights by informativeness 3 ms, and 0.05 ms
if it is kept. A local model judges the pairs again in each process (docs/results/house.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.asking.relation_models import content_hash, relation_model
from experiments.columns.cell_names import FAILED
from experiments.evaluators.core import claims_with_sources
from experiments.evaluators.core_choices import CoreChoices
from experiments.study.config import EVERYTHING, SelectionChoice
from experiments.study.data import StudyData
from experiments.study.reading import LoadedStudy
from experiments.study.units import sentence
from factormodels.errors import InputError
from factormodels.extraction.relation_models.recorded import recorded_in_graphs
from factormodels.fact_graph import FactGraph
from factormodels.io.json import plain_hash
from factormodels.io.store.results import KeptValues
from factormodels.nouns import counted
from factormodels.selection import Core, SolverSettings, select

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

COLUMNS = (
    *("dataset", "selection", "response", "n_atoms", "n_kept"),
    *("status", "weight", "gap", "missing", "error"),
)
"""Columns of selections.csv; status is optimal, limit (the time was up) or failed."""


@dataclass(frozen=True)
class SelectionSolver:
    """A selection of a study, ready to be solved.

    Attributes:
        choice: choice of the study.
        choices: Core's choices; with `own_relations`, the relations are replaced by those of each
            response.
        own_relations: True if the relations between atoms come from the response.
        identity: hash of everything that its answer depends on, except the response.
    """

    choice: SelectionChoice
    choices: CoreChoices
    own_relations: bool
    identity: str

    def core(self, graph: FactGraph) -> Core:
        """Method that selects the atoms of a response.

        Raises:
            InputError: if there are no bleached claims of its domain.
        """
        if not self.own_relations:
            return self.choices.core(graph)
        return replace(self.choices, relations=recorded_in_graphs([graph])).core(graph)


@dataclass(frozen=True)
class Selected:
    """The atoms of a response that a selection keeps.

    Attributes:
        kept: indices of the kept atoms.
        status: optimal, limit or failed.
        weight: sum of their weights.
        gap: upper bound on the additional weight of a better set.
        missing: missing judgments of the relation model.
        error: reason of a failure, after which no atom of the response counts.
    """

    kept: tuple[int, ...]
    status: str = "optimal"
    weight: float | None = None
    gap: float | None = None
    missing: int = 0
    error: str = ""


@dataclass(frozen=True)
class Selections:
    """Atoms kept by the selections of a study.

    Attributes:
        titles: names in tables; empty without selections.
        selected: (dataset, title) -> selection of every response, in order.
    """

    titles: tuple[str, ...] = ()
    selected: Mapping[tuple[str, str], tuple[Selected, ...]] = field(default_factory=dict)

    def of_atoms(self, dataset: StudyData) -> list[list[str]]:
        """The selections that keep each atom of each response, their titles separated by spaces."""
        result = []
        for position, graph in enumerate(dataset.graphs):
            # Use the order of the titles, so that a set of selections always has the same text.
            keeping: list[list[str]] = [[] for _ in graph.atoms]
            for title in self.titles:
                for atom in self.selected[dataset.name, title][position].kept:
                    keeping[atom].append(title)
            texts = [" ".join(titles) for titles in keeping]
            result.append(texts if self.titles else [EVERYTHING] * len(texts))
        return result


def selection_solvers(loaded: LoadedStudy) -> tuple[SelectionSolver, ...]:
    """The selections of a study, ready to be solved; empty if every atom counts.

    Raises:
        InputError: for files that cannot be read, or an unknown domain.
        MissingDependencyError: if a library that a relation model needs is not installed.
    """
    if not loaded.study.selected:
        return ()
    solvers = []
    for position, choice in enumerate(loaded.study.selections):
        try:
            solvers.append(_selection_solver(choice, loaded.folder))
        except InputError as error:
            raise InputError(f"{loaded.blame(f'selections[{position}]')}: {error}") from None
    return tuple(solvers)


def select_all(
    chosen: Sequence[SelectionSolver],
    data: Sequence[StudyData],
    kept: KeptValues,
    *,
    notice: Callable[[str], None] = logger.info,
) -> Selections:
    """Select the atoms that count; kept selections are not solved again.

    A failed selection is recorded with the reason.

    Args:
        chosen: the selections.
        data: the datasets of the study.
        kept: store of finished selections, which receives every new one at once.
        notice: function called with the name of each selection.
    """
    selections = {}
    for solver in chosen:
        title = solver.choice.title
        for dataset in data:
            noticed = False
            answers = []
            for position, graph in enumerate(dataset.graphs):
                # Nothing to solve or keep.
                if solver.choice.selection == EVERYTHING:
                    answers.append(Selected(tuple(range(len(graph.atoms)))))
                    continue
                # Identify by content, so that solutions remain valid if the study is renamed.
                key = f"{solver.identity} {dataset.sha256} {position}"
                value = kept.get(key)
                if value is None:
                    # Report once, and only if there is something to solve.
                    if not noticed:
                        size = counted(len(dataset.graphs), "response")
                        notice(f"selecting {title!r} of {dataset.name}: {size}")
                        noticed = True
                    value = asdict(_selected(solver, graph))
                    kept.put(key, value)
                # Convert new answers too, so that a resumed run reads the same.
                answers.append(Selected(**{**value, "kept": tuple(value["kept"])}))
            selections[dataset.name, title] = tuple(answers)
    return Selections(tuple(solver.choice.title for solver in chosen), selections)


def selections_table(selections: Selections, data: Sequence[StudyData]) -> pd.DataFrame:
    """Table with one row per dataset, selection and response, with the columns `COLUMNS`."""
    import pandas as pd

    rows = [
        {
            **asdict(answer),
            "dataset": dataset.name,
            "selection": title,
            "response": graph.id,
            "n_atoms": len(graph.atoms),
            "n_kept": len(answer.kept),
        }
        for dataset in data
        for title in selections.titles
        for graph, answer in zip(
            dataset.graphs, selections.selected[dataset.name, title], strict=True
        )
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def remarks_of(records: Iterable[Mapping[Any, Any]]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Remarks on responses whose selection may not be optimal.

    Args:
        records: rows of `selections_table`, or of its file.

    Returns:
        The sentences by dataset and response.
    """
    remarks: dict[tuple[str, str], tuple[str, ...]] = {}
    for record in records:
        key = (str(record["dataset"]), str(record["response"]))
        if record["status"] == FAILED:
            remark = f"{record['selection']}: nothing could be selected ({record['error']})"
        elif record["status"] == "limit":
            remark = (
                f"{record['selection']}: the time limit was reached, and the best set so far "
                "was used"
            )
        else:
            continue
        remarks[key] = (*remarks.get(key, ()), remark)
    return remarks


def _selection_solver(choice: SelectionChoice, folder: Path) -> SelectionSolver:
    """A selection with its loaded model, and the identity of its kept results."""
    # The answer does not depend on the name, which may change when a run is resumed.
    identity: dict[str, Any] = {
        **choice.model_dump(mode="json"),
        "name": "",
        "path": "",
        "templates": "",
    }
    templates = None if choice.templates is None else folder / choice.templates
    if templates is not None:
        # Files are identified by content: editing changes the selection, moving does not.
        identity["templates"] = content_hash(templates)
    named = "lexical"
    if choice.path is not None:
        path = folder / choice.path
        # Spelled as on the command line, so that both build the same model.
        named = f"{choice.relations}:{path}"
        identity["path"] = content_hash(path)
    choices = CoreChoices(
        relation_model(named)[0],
        choice.weights,
        choice.rule,
        domain=choice.domain,
        templates=templates,
        solver=SolverSettings(choice.time_limit),
        share=choice.share,
    )
    # Called only for its error: an unknown domain is refused before anything is run.
    if choice.domain is not None:
        choices.bleached(choice.domain)
    own_relations = choice.relations == "recorded" and choice.path is None
    return SelectionSolver(choice, choices, own_relations, plain_hash(identity))


def _selected(solver: SelectionSolver, graph: FactGraph) -> Selected:
    """Selection of a response; any error is recorded as its failure."""
    try:
        core = solver.core(graph)
        selection = select(claims_with_sources(graph, core.share), core)
    except Exception as error:
        logger.debug("nothing could be selected of %s", graph.id, exc_info=error)
        return Selected((), FAILED, error=sentence(error))
    solution = selection.solution
    return Selected(
        tuple(solution.chosen),
        solution.status,
        solution.weight,
        solution.gap,
        selection.missing,
    )
