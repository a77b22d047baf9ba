"""The report of responses that `factormodels assess` wrote: pages without a study around them.

Posteriors and verdicts are those of the file; nothing is inferred anew but what the removal of a
context changes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.evaluators.assessed_metadata import check_assessment
from experiments.evaluators.batch import CONSUMPTION_KEY
from experiments.evaluators.response import METADATA_KEY
from experiments.pages.assessment_pages import Assessment
from experiments.pages.report import AS_PLANNED, ReportSettings
from experiments.pages.reported_datasets import Watch
from experiments.pages.writing import write_report
from experiments.study.config import Priors, Study
from experiments.study.data import StudyData
from experiments.study.design import NO_VIEW, GraphView, StudyAlgorithm, StudyCell
from experiments.study.manifest import code_identity, manifest_of_units
from experiments.study.outputs import RunContents, row_tables
from experiments.study.packed_graphs import Responses
from experiments.study.reading import study_of_plain
from experiments.study.resumption import finished_units
from experiments.study.rows import FAILED, RowsFile, write_rows
from experiments.study.scores import TESTS, study_scores
from experiments.study.text_models import ASSESSING, JUDGED, RELATIONS
from experiments.study.units import UnitResult, encode
from factormodels.errors import InputError
from factormodels.extraction.language_model.accounting import total
from factormodels.fact_graph import FactGraph
from factormodels.recorded_verdicts import ASSESSORS_KEY

MOST_PAGES = 500
"""Responses that have a page, if none are chosen."""


def report_folder(file: Path) -> Path:
    """Where the pages of an assessed file stand: beside it."""
    return file.with_name(f"{file.name.partition('.')[0]}-report")


def report_of_graphs(
    graphs: Sequence[FactGraph],
    name: str,
    folder: Path,
    shown: ReportSettings = AS_PLANNED,
    watch: Watch | None = None,
) -> list[Path]:
    """Make the pages of assessed responses.

    Args:
        graphs: the responses, with their assessment in their metadata.
        name: what the pages call them.
        folder: the folder of the report.
        shown: what the pages show; without a number of them all have one, up to `MOST_PAGES`.
        watch: shows how far it is.

    Raises:
        InputError: if a response was not assessed, or the folder cannot be written.
    """
    for graph in graphs:
        if not graph.metadata.get(METADATA_KEY):
            raise InputError(
                f"{name}: the response {graph.id!r} was not assessed; give what `factormodels "
                "assess --out` wrote, or the folder of a run"
            )
        check_assessment(graph, name)
    found = Responses.of(graphs)
    data = StudyData(name, found.graphs, found.sha256, known_claims=found.claims)
    cells = _cells(name, graphs)
    study = _study(name, graphs, cells)
    sizes = [len(graphs)] * len(cells)
    finished = finished_units([encode(list(_units(cells, graphs)))], sizes, name)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "rows.parquet"
        write_rows(row_tables(study.study, [data], cells, finished), path, {})
        import pandas as pd

        rows = RowsFile(path)
        subject = RunContents(
            study=study,
            data=(data,),
            cells=cells,
            rows=rows,
            summary=study_scores(study, rows).cells,
            tests=pd.DataFrame(columns=list(TESTS)),
            manifest=manifest_of_units(
                study, [data], finished.statuses(), 0, [code_identity()], _models(graphs)
            ),
        )
        names = tuple(
            cell.algorithm.name if cell.algorithm.assessor else cell.view.variant for cell in cells
        )
        assessment = Assessment(name, graphs, names)
        return write_report(subject, folder, shown, watch=watch, assessment=assessment)


def _cells(name: str, graphs: Sequence[FactGraph]) -> tuple[StudyCell, ...]:
    """A cell for each variant and for each assessor."""
    (own,) = Priors().settings()
    found: dict[str, StudyCell] = {}
    for graph in graphs:
        for variant, view in graph.metadata[METADATA_KEY].items():
            algorithm = StudyAlgorithm(0, view["backend"], view["backend"], 0, "{}", None)
            cell = StudyCell(name, GraphView(variant, view["encoding"], own, 1.0), algorithm)
            if found.setdefault(variant, cell) != cell:
                raise InputError(
                    f"{name}: its responses were assessed with several encodings or backends; "
                    "assess them with one"
                )
    for graph in graphs:
        for position, assessor in enumerate(graph.metadata.get(ASSESSORS_KEY, {})):
            judge = StudyAlgorithm(position, assessor, assessor, 0, "{}", None, assessor=True)
            found.setdefault(f"{ASSESSORS_KEY} {assessor}", StudyCell(name, NO_VIEW, judge))
    return tuple(found.values())


def _study(name: str, graphs: Sequence[FactGraph], cells: Sequence[StudyCell]) -> Study:
    """The study that the responses could be of, for what the pages say of it."""
    inferred = [cell for cell in cells if not cell.algorithm.assessor]
    backends = dict.fromkeys(cell.algorithm.name for cell in inferred)
    raw = {
        "study": name,
        "description": "Responses as `factormodels assess` judged them",
        "datasets": [{"path": f"{name}.jsonl", "name": name}],
        "variants": [cell.view.variant for cell in inferred],
        "encodings": list(dict.fromkeys(cell.view.encoding for cell in inferred)),
        "backends": [{"backend": backend} for backend in backends],
        "report": {"responses": max(1, min(MOST_PAGES, len(graphs)))},
    }
    return study_of_plain(raw, name)


def _units(cells: Sequence[StudyCell], graphs: Sequence[FactGraph]) -> Iterator[UnitResult]:
    """What the file says of every response in every cell."""
    for number, cell in enumerate(cells):
        for position, graph in enumerate(graphs):
            if cell.algorithm.assessor:
                yield _judged(number, position, graph, cell.algorithm.name)
            else:
                yield _inferred(number, position, graph, cell.view.variant)


def _inferred(cell: int, position: int, graph: FactGraph, variant: str) -> UnitResult:
    view = graph.metadata[METADATA_KEY].get(variant)
    if view is None or "error" in view:
        error = "not assessed under this variant" if view is None else view["error"]
        return UnitResult(cell, position, FAILED, error=error)
    # Of a claim whose every relation is missing nothing is known.
    known = {
        atom: one["p"] for atom, one in view["atoms"].items() if atom not in view["unanswered"]
    }
    p = np.array([known.get(atom, np.nan) for atom in graph.atom_ids], dtype=np.float64)
    return UnitResult(
        cell,
        position,
        view["status"],
        p,
        log_z=_real(view["log_z"]),
        log_z_kind=view["log_z_kind"],
        log_z_lower=_real(view.get("log_z_lower")),
        answered_by=view.get("answered_by"),
    )


def _real(number: float | None) -> float | None:
    """Return a number of a file as a float, since whole numbers of JSON have any size."""
    return None if number is None else float(number)


def _judged(cell: int, position: int, graph: FactGraph, assessor: str) -> UnitResult:
    facts = graph.metadata.get(ASSESSORS_KEY, {}).get(assessor)
    if facts is None:
        return UnitResult(cell, position, FAILED, error="not judged by this assessor")
    known = (facts["verdicts"].get(atom, {}).get("p") for atom in graph.atom_ids)
    p = np.array([np.nan if one is None else one for one in known], dtype=np.float64)
    return UnitResult(cell, position, JUDGED, p=p, log_z_kind="none")


def _models(graphs: Sequence[FactGraph]) -> dict[str, Any]:
    """What relation models and assessors were asked, as a run's manifest tells it."""
    asked: dict[str, dict[str, dict[str, Any]]] = {}

    def add(kind: str, name: str, count: int, missing: int) -> None:
        facts = asked.setdefault(kind, {}).setdefault(
            name, {"responses": 0, "asked": 0, "missing": 0}
        )
        facts["responses"] += 1
        facts["asked"] += count
        facts["missing"] += missing

    for graph in graphs:
        facts = graph.metadata.get("relations")
        if facts:
            add(RELATIONS, facts["model"], facts["asked"], len(facts["missing"]))
        for name, judged in graph.metadata.get(ASSESSORS_KEY, {}).items():
            add(ASSESSING, name, len(graph.atoms), len(judged["missing"]))
    for name, kept in asked.get(RELATIONS, {}).items():
        own = [
            graph.metadata[CONSUMPTION_KEY]["relations"]
            for graph in graphs
            if graph.metadata.get("relations", {}).get("model") == name
            and "relations" in graph.metadata.get(CONSUMPTION_KEY, {})
        ]
        if own:
            kept.update(total(own))
    return asked
