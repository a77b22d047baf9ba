"""Attribution of changes between two results to conventions, for `diff`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration.scores.measures import entropy_warnings
from calibration.scores.registry import MEASURES
from experiments.columns.assessed_metadata import METADATA_KEY, conventions_of
from experiments.columns.cell_names import CELL, RECORDED
from experiments.evaluators.convention_effects import (
    MOST_SHOWN,
    Attribution,
    Comparison,
    Posteriors,
    attributions,
    changed_most,
    claims_table,
    conventions_table,
    effect_sentences,
    measures_table,
    names_that_differ,
)
from experiments.evaluators.convention_measures import in_logarithms, measure_names, scores_under
from experiments.evaluators.response import measured
from experiments.findings.findings import Findings
from experiments.findings.table import Table
from experiments.methods.solved_views import least_reduced, marginals_of_claims, solved_views
from experiments.settings.backend_settings import AlgorithmSettings
from experiments.settings.inputs import ModelSettings
from experiments.study.cells import NO_VIEW, StudyCell
from experiments.study.data import load_dataset, related_graph
from experiments.study.design import algorithms, cells
from experiments.study.files import read_manifest
from experiments.study.reading import LoadedStudy, study_of_plain
from experiments.study.report.frame import Judgments, read_judgments
from experiments.study.rows import CellRows, RowsFile
from experiments.study.units import factor_graph
from factormodels.conventions import Conventions, differing, switched
from factormodels.errors import FactormodelsError, InputError
from factormodels.extraction.stages.relations import only_asked
from factormodels.fact_graph import FactGraph
from factormodels.io import read_many
from factormodels.nouns import counted
from inference import get_backend

if TYPE_CHECKING:
    from experiments.study.data import StudyData
    from inference.backend import Backend

Explained = tuple[dict[str, Table], list[str]]
"""Tables and sentences about conventions; empty if the conventions are equal."""

MOST_SOLVED = 500
"""Largest number of responses of a cell that are solved again."""

_GRAPHS = "graphs.jsonl"


@dataclass(frozen=True)
class _JudgedView:
    """A response as a command judged it.

    Attributes:
        graph: the response, as recorded.
        variant: the view of it.
        conventions: conventions that turn it into a model.
        backend: the algorithm.
        p: P(true) by id of claim.
    """

    graph: FactGraph
    variant: str
    conventions: Conventions
    backend: Backend
    p: Mapping[str, float]


def explained_findings(
    before: Findings, after: Findings, folders: Sequence[Path | None]
) -> Explained:
    """Conventions that explain the posteriors of two findings of `infer` or `assess`.

    Args:
        before: the first.
        after: the second.
        folders: folder that each was read from; None for findings in memory.
    """
    if {before.command, after.command} - {"infer", "assess"}:
        return {}, []
    try:
        first, second = (
            {(each.graph.id, each.variant): each for each in _judged_views(findings, folder)}
            for findings, folder in zip((before, after), folders, strict=True)
        )
    except FactormodelsError as error:
        if _declared(before) == _declared(after):
            return {}, []
        return {}, [f"The differences cannot be attributed to conventions: {error}."]
    groups: dict[tuple[str, Conventions, Conventions], list[tuple[_JudgedView, _JudgedView]]] = {}
    for key, judged in first.items():
        if key in second and names_that_differ(
            judged.conventions, second[key].conventions, [judged.variant]
        ):
            group = (judged.variant, judged.conventions, second[key].conventions)
            groups.setdefault(group, []).append((judged, second[key]))
    remarks: list[str] = []
    compared = []
    for (variant, conventions, other), pairs in groups.items():
        kept = pairs[:MOST_SOLVED]
        remarks += _limited(len(pairs), variant, "changes of claims are")
        graphs = [least_reduced((a.graph, b.graph)) for a, b in kept]
        solve = partial(solved_views, graphs, variant, kept[0][0].backend)
        sides = [
            {(pair[side].graph.id, claim): p for pair in kept for claim, p in pair[side].p.items()}
            for side in (0, 1)
        ]
        compared.append(Comparison(variant, variant, sides[0], sides[1], conventions, other, solve))
    if not compared:
        return {}, []
    attributed = [attribution for _, attribution in attributions(compared)]
    return _explained(attributed, compared[0], remarks)


def _declared(findings: Findings) -> Conventions:
    return _model_settings(findings).declared()


def _model_settings(findings: Findings) -> ModelSettings:
    asked = findings.settings
    kept = {name: asked[name] for name in ModelSettings.model_fields if asked.get(name) is not None}
    if not isinstance(kept.get("variant", ""), str):
        del kept["variant"]
    return ModelSettings.from_given(kept)


def _judged_views(findings: Findings, folder: Path | None) -> Iterator[_JudgedView]:
    """Yield the responses of findings with their posteriors.

    Raises:
        InputError: if they cannot be read again.
    """
    if findings.command == "assess":
        graphs: Iterable[FactGraph] = findings.graphs
        if folder is not None:
            graphs = read_many(folder / _GRAPHS if folder.is_dir() else folder)
        for graph in graphs:
            for variant, view in graph.metadata.get(METADATA_KEY, {}).items():
                if "atoms" not in view:
                    continue
                lacking = set(view["unanswered"])
                p = {a: judged["p"] for a, judged in view["atoms"].items() if a not in lacking}
                backend = get_backend(view["backend"])
                asked = only_asked(graph, variant)
                yield _JudgedView(asked, variant, conventions_of(view), backend, p)
        return
    if "posteriors" not in findings.tables:
        return
    settings = _model_settings(findings)
    as_given = ModelSettings(response=settings.response, variant="given")
    algorithm = AlgorithmSettings.from_given(
        {name: findings.settings.get(name) for name in AlgorithmSettings.model_fields}
    ).algorithm
    by_response: dict[str, dict[str, float]] = {}
    for row in findings.tables["posteriors"].records():
        if row.get("kind") == "atom":
            by_response.setdefault(str(row["response"]), {})[str(row["variable"])] = row["p"]
    for model in as_given.load(findings.source):
        known = model.fact_graph
        if known is not None and known.id in by_response:
            variant = settings.variant or "given"
            p = by_response[known.id]
            yield _JudgedView(known, variant, settings.declared(), algorithm, p)


def _explained(
    attributed: Sequence[Attribution], ends: Comparison, remarks: Iterable[str]
) -> Explained:
    """Tables and sentences about the effects of conventions in one or several comparisons.

    Args:
        attributed: the effects of each comparison.
        ends: a comparison with the conventions of both sides.
        remarks: further sentences.
    """
    names = tuple(dict.fromkeys(name for each in attributed for name in each.names))
    effects = [effect for each in attributed for effect in each.effects]
    tables = {"conventions": conventions_table(effects, ends.first, ends.second, names)}
    if effects:
        sides = ("before", "after")
        every = claims_table(effects, names, sides)
        tables["explained"] = every
        if len(effects) > MOST_SHOWN:
            caption = (
                f"The {MOST_SHOWN} claims that changed most, with the conventions that explain "
                "the change."
            )
            most = changed_most(effects, MOST_SHOWN)
            tables["explained"] = claims_table(most, names, sides, caption)
            tables["explained_claims"] = every
    return tables, [*effect_sentences(effects), *dict.fromkeys(remarks)]


def _limited(n_responses: int, cell: str, what: str) -> Iterator[str]:
    if n_responses > MOST_SOLVED:
        yield (
            f"{cell}: {what} attributed to conventions for the first {MOST_SOLVED:,} of "
            f"{counted(n_responses, 'response')}."
        )


# --- Runs of studies -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """A run of units that can be solved again.

    Attributes:
        rows: its rows.
        cells: its cells, by the values of their columns.
        declared: its conventions, without the encoding.
        measures: its measures.
    """

    rows: RowsFile
    cells: Mapping[tuple[Any, ...], StudyCell]
    declared: Conventions
    measures: tuple[str, ...]

    def conventions(self, cell: StudyCell) -> Conventions:
        """The conventions of a cell."""
        return replace(self.declared, encoding=cell.view.encoding)


def explained_runs(
    before: Path,
    after: Path,
    paired: Callable[[RowsFile, RowsFile], Iterable[tuple[CellRows, CellRows]]],
    titled: Callable[[CellRows, CellRows], str],
) -> Explained:
    """Conventions that explain the posteriors and measures of two runs of units.

    Args:
        before: folder of the first run.
        after: folder of the second.
        paired: yields the pairs of cells to compare.
        titled: name of a pair of compared cells.
    """
    remarks: list[str] = []
    attributed: list[Attribution] = []
    ends: Comparison | None = None
    names: dict[str, None] = {}
    measures: list[dict[str, Any]] = []
    for compared, attribution in attributions(
        _compared_cells(before, after, paired, titled, remarks)
    ):
        attributed.append(attribution)
        ends = ends or replace(compared, sides=None)
        names |= dict.fromkeys((*attribution.names, *compared.of_measures))
        measures += _measures(compared, attribution)
    if ends is None:
        return {}, list(dict.fromkeys(remarks))
    tables: dict[str, Table] = {}
    sentences: list[str] = []
    if any(attribution.effects for attribution in attributed):
        tables, sentences = _explained(attributed, ends, remarks)
    changed = [row for row in measures if abs(row["after"] - row["before"]) > _ROUNDING]
    if changed:
        filled = [{**dict.fromkeys(names, row["before"]), **row} for row in changed]
        tables["convention_measures"] = measures_table(filled, tuple(names))
    return tables, sentences or list(dict.fromkeys(remarks))


@dataclass(frozen=True)
class _ComparedCells(Comparison):
    """A cell of two runs.

    Attributes:
        sides: its rows in each run; None if its measures are not compared.
        of_measures: conventions that differ and that only measures depend on.
        measures: names of the measures of the study.
    """

    sides: tuple[Judgments, Judgments] | None
    of_measures: tuple[str, ...]
    measures: tuple[str, ...]


def _compared_cells(
    before: Path,
    after: Path,
    paired: Callable[[RowsFile, RowsFile], Iterable[tuple[CellRows, CellRows]]],
    titled: Callable[[CellRows, CellRows], str],
    remarks: list[str],
) -> Iterator[_ComparedCells]:
    """Yield the cells of two runs whose conventions differ, and add remarks on the others."""
    first, second = _run(before), _run(after)
    manifest = read_manifest(before)
    data: dict[str, StudyData] = {}
    for cell, other in paired(first.rows, second.rows):
        keys = [tuple(each.named().values()) for each in (cell, other)]
        if keys[0] not in first.cells or keys[1] not in second.cells:
            continue
        of_cells = first.cells[keys[0]], second.cells[keys[1]]
        declared, declared_after = first.conventions(of_cells[0]), second.conventions(of_cells[1])
        view = of_cells[0].view
        variant = "" if view == NO_VIEW else view.variant
        of_graphs = names_that_differ(declared, declared_after, filter(None, [variant]))
        of_measures = tuple(
            name
            for name in differing(declared, declared_after)
            if name in measure_names(scores_under(first.measures, declared))
        )
        if not of_graphs and not of_measures:
            continue
        title = titled(cell, other)
        sides = read_judgments(first.rows, cell), read_judgments(second.rows, other)
        graphs: Sequence[FactGraph] = ()
        if of_graphs:
            reason = _unsolvable(of_cells[0])
            if not reason:
                try:
                    graphs = _data_of(manifest, before, cell.named()["dataset"], data).graphs
                except InputError as error:
                    reason = str(error)
            if reason:
                remarks.append(
                    f"{title}: the difference cannot be attributed to a convention, because "
                    f"{reason}."
                )
                continue
            what = "measures are not attributed, and changes of claims are"
            remarks += _limited(len(graphs), title, what)
        solved = graphs[:MOST_SOLVED]
        # Claims of responses that are not solved again have no known cause.
        ids = {graph.id for graph in solved}
        p, its = (
            {key: value for key, value in _posteriors(side).items() if key[0] in ids}
            for side in sides
        )
        yield _ComparedCells(
            title,
            variant,
            p,
            its,
            declared,
            declared_after,
            partial(_solved_cell, solved, of_cells[0]),
            None if len(graphs) > MOST_SOLVED else sides,
            of_measures,
            first.measures,
        )


_ROUNDING = 1e-12


def _run(folder: Path) -> _Run:
    manifest = read_manifest(folder)
    study = study_of_plain(manifest["config"], str(folder))
    loaded = LoadedStudy(study, folder, str(folder))
    of_study = cells(study, algorithms(loaded))
    by_key = {tuple(each.key()[name] for name in CELL): each for each in of_study}
    rows = RowsFile(folder / "rows.parquet")
    return _Run(rows, by_key, study.declared, tuple(study.measures))


def _unsolvable(cell: StudyCell) -> str:
    """Reason why a cell cannot be solved again; empty if it can."""
    if cell.view.relation_model != RECORDED:
        return f"the relations that {cell.view.relation_model} found are not kept"
    if cell.view.prior.learned is not None:
        return "its priors were learned"
    return cell.algorithm.error


def _data_of(
    manifest: Mapping[str, Any], folder: Path, name: str, known: dict[str, StudyData]
) -> StudyData:
    """Read the dataset of a run again.

    Raises:
        InputError: if it is missing, or has changed since the run.
    """
    if name in known:
        return known[name]
    study = study_of_plain(manifest["config"], str(folder))
    choice = next(each for each in study.datasets if each.title == name)
    places = (Path(), folder, *folder.resolve().parents[:2])
    if choice.path is not None:
        # A manifest has file names without folders.
        places = tuple(each for each in places if (each / str(choice.path)).exists())
        if not places:
            raise InputError(
                f"{choice.path} is neither in this folder nor next to {folder}; run diff in the "
                "folder of that file"
            )
    data = load_dataset(choice, places[0], str(folder))
    if data.sha256 != manifest["data"][name]["sha256"]:
        raise InputError(f"{name} has changed since {folder} was written")
    known[name] = data
    return data


def _solved_cell(
    graphs: Sequence[FactGraph], cell: StudyCell, conventions: Conventions
) -> Posteriors:
    """P(true) of the claims of responses in a cell under other conventions."""
    view = replace(cell.view, conventions=conventions.graph, encoding=conventions.encoding)
    views = [related_graph(graph, {}, RECORDED, view.variant, conventions) for graph in graphs]
    models = [factor_graph(each.compiled_for(view.encoding), view) for each in views]
    backend = cell.algorithm.backend
    if backend is None:
        return {}
    return marginals_of_claims(views, models, backend)


def _posteriors(judgments: Judgments) -> Posteriors:
    """P(true) by response and claim, for claims that have it."""
    responses, claims = judgments.responses, judgments.atoms.to_pylist()
    return {
        (responses[at], claim): p
        for at, claim, p in zip(judgments.index.tolist(), claims, judgments.p.tolist(), strict=True)
        if claim is not None and not math.isnan(p)
    }


def _measures(compared: _ComparedCells, attribution: Attribution) -> Iterator[dict[str, Any]]:
    """Yield the measures of a cell on both sides, and with one convention switched."""
    if compared.sides is None:
        return
    named = list(dict.fromkeys("f1" if n == "f1_by_response" else n for n in compared.measures))
    conventions = compared.first, compared.second
    values = [
        _values(side, each, named) for side, each in zip(compared.sides, conventions, strict=True)
    ]
    names = (*attribution.names, *compared.of_measures)
    with_one = {}
    for name in names:
        judgments = _with_posteriors(compared.sides[0], attribution.alone.get(name))
        with_one[name] = _values(judgments, switched(*conventions, name), named)
    for measure in named:
        ends = [of_side.get(measure, math.nan) for of_side in values]
        if all(map(math.isfinite, ends)):
            each = {name: with_one[name].get(measure, ends[0]) for name in names}
            yield {"cell": compared.cell, "measure": measure.replace("_", " "), "before": ends[0],
                   "after": ends[1], **each}  # fmt: skip


def _with_posteriors(judgments: Judgments, p: Posteriors | None) -> Judgments:
    """The judgments with other posteriors; unchanged if `p` is None."""
    import numpy as np

    if p is None:
        return judgments
    posteriors = _posteriors(judgments)
    responses, claims = judgments.responses, judgments.atoms.to_pylist()
    of_rows = map(responses.__getitem__, judgments.index.tolist())
    keys = list(zip(of_rows, claims, strict=True))
    values = [p.get(key, posteriors.get(key, math.nan)) for key in keys]
    return replace(judgments, p=np.array(values, dtype=np.float64))


def _values(
    judgments: Judgments, conventions: Conventions, measures: Sequence[str]
) -> dict[str, float]:
    """Measures of a cell under conventions, by their names in studies."""
    p, label, index = judgments.under(conventions).claims
    if not p.size:
        return {}
    with_f1 = scores_under(measures, conventions)
    with entropy_warnings():
        row = measured(
            *(p, label, index),
            policy=conventions.unlabeled,
            k=conventions.k,
            more=[name for name in with_f1 if name not in MEASURES],
        )
    row = in_logarithms(row, conventions)
    return {
        measure: row[name]
        for measure, name in zip(measures, with_f1, strict=True)
        if isinstance(row.get(name), int | float)
    }
