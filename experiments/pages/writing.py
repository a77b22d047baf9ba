"""The folder of a report: made whole beside its place, then moved there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.findings.page import page
from experiments.pages.index_page import index_page
from experiments.pages.pages import ASSESSED, INDEX, RESPONSE, report_templates
from experiments.pages.removals import REPORT_SECONDS, removals_of
from experiments.pages.report import AS_PLANNED, ReportSettings
from experiments.pages.reported_datasets import Part, Step, Watch, parts_of
from experiments.pages.response_page import response_page
from experiments.study.files import move_into_place
from experiments.study.outputs import RunContents
from factormodels.errors import InputError
from factormodels.io.files import errors_naming, unfinished_folder
from factormodels.io.guarded_opening import system_advice

if TYPE_CHECKING:
    from experiments.pages.assessment_pages import Assessment


def write_pages(
    subject: RunContents,
    folder: Path,
    shown: ReportSettings = AS_PLANNED,
    *,
    watch: Watch | None = None,
    assessment: Assessment | None = None,
) -> list[Path]:
    """Write the pages of a report into a folder that exists; equal runs give equal bytes.

    Args:
        subject: the run.
        folder: where to write.
        shown: which responses have a page; none: the first ones of every dataset, as many as the
            study says.
        watch: shows how far it is.
        assessment: the responses, if they are assessed ones without a study around them.

    Returns:
        The pages, the first one first.
    """
    parts = parts_of(subject, shown)
    # A part may show some responses only; this is where each stands among all of its dataset.
    at = {data.name: {graph.id: n for n, graph in enumerate(data.graphs)} for data in subject.data}
    places = [(part, number) for part in parts for number in range(len(part.responses))]
    templates = report_templates()
    shared = {
        "run": subject.study.study,
        "sha256": "" if assessment else subject.manifest["config_sha256"],
    }
    command = "report" if assessment is None else "assess"
    alone = assessment is not None and assessment.alone
    # One budget for the whole report, used up in the order of the pages.
    seconds = REPORT_SECONDS
    paths = [] if alone else [folder / INDEX]
    with (watch or _unwatched)(len(places) + len(paths)) as step:
        for order, (part, number) in enumerate(places):
            graph, file = part.responses[number]
            views = [view for _, view in part.views]
            name, response = part.data.name, at[part.data.name][graph.id]
            related = part.data.related[response] if part.data.related else {}
            fits = [one.of([response]) for one in subject.fits if one.request.dataset == name]
            removals, seconds = removals_of(graph, views, seconds, related, fits)
            filled = {
                **shared,
                **response_page(part, graph, removals),
                "before": _file(places, order - 1),
                "after": _file(places, order + 1),
                "assessed": None if assessment is None else assessment.of_response(graph),
                "manifest": subject.manifest,
            }
            paths.append(folder / (INDEX if alone else file))
            _write(paths[-1], page(templates, RESPONSE, command, filled))
            step()
        if assessment is None:
            first = {**shared, **index_page(subject, parts)}
            _write(paths[0], page(templates, INDEX, "report", first))
            step()
        elif not alone:
            first = {**shared, **assessment.of_all(parts), "manifest": subject.manifest}
            _write(paths[0], page(templates, ASSESSED, command, first))
            step()
    return paths


def _write(path: Path, content: bytes) -> None:
    with errors_naming(path):
        path.write_bytes(content)


def _file(places: Sequence[tuple[Part, int]], order: int) -> str:
    if not 0 <= order < len(places):
        return ""
    part, number = places[order]
    return part.responses[number][1]


@contextmanager
def _unwatched(_: int) -> Iterator[Step]:
    yield lambda: None


def write_report(
    subject: RunContents,
    folder: Path,
    shown: ReportSettings = AS_PLANNED,
    *,
    watch: Watch | None = None,
    assessment: Assessment | None = None,
) -> list[Path]:
    """Write a report as a folder, whole or not at all; a report that is there is replaced.

    Args:
        subject: the run.
        folder: the folder of the report.
        shown: as in `write_pages`.
        watch: shows how far it is.
        assessment: as in `write_pages`.

    Raises:
        InputError: if the folder cannot be written, or holds what is no report.
    """
    # Before any work, and before anything is written.
    check_replaceable(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        mend = system_advice(error, "name another folder")
        raise InputError(
            f"{folder}: the folder cannot be made ({error.strerror}); {mend}"
        ) from None
    with unfinished_folder(folder) as unfinished:
        # Temporary folders can be read by their owner alone, and this one is to be published.
        unfinished.chmod(0o755)
        paths = write_pages(subject, unfinished, shown, watch=watch, assessment=assessment)
        move_into_place(unfinished, folder)
    return [folder / path.name for path in paths]


def check_replaceable(folder: Path) -> None:
    """Refuse to replace what is not a report.

    Raises:
        InputError: if the folder is a file, or holds files that no report has.
    """
    if not folder.exists():
        return
    # A report's folder holds pages and nothing else; anything more was put there by somebody.
    pages = re.compile(rf"{re.escape(INDEX)}|response-.*\.html")
    if not folder.is_dir() or not all(pages.fullmatch(path.name) for path in folder.iterdir()):
        raise InputError(
            f"{folder}: it holds something other than a report, which would be lost; name another "
            "folder"
        )
