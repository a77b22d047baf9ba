"""The pages of a finished run, or of assessed responses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as, data_frame
from experiments.progress import watcher
from experiments.settings import Option, Settings, Words, front_door
from factormodels.errors import InputError
from factormodels.nouns import counted


def _named(value: Any) -> Any:
    """Paths by name as texts NAME=PATH."""
    if not isinstance(value, Mapping):
        return value
    return tuple(f"{name}={os.fspath(path)}" for name, path in value.items())


class ReportSettings(Settings):
    """What the pages show."""

    writes_several_files = True

    out: Annotated[Path | None, Option("DIR", command_line=False, writes=True)] = None
    """Folder of the pages; RESULTS/report if not given, or FILE-report."""

    data: Annotated[Words, Option("NAME=PATH", usual=True), BeforeValidator(_named)] = ()
    """Where to find a data file that the run read; repeatable."""

    response: Annotated[Words, Option("ID", usual=True)] = ()
    """Make pages for these responses only; repeatable."""

    pages: Annotated[int | None, Field(ge=1), Option("N")] = None
    """Make pages for this many responses of every dataset, from the first; if not given, as the
    study says (report.responses)."""

    only: Annotated[Words, Option("KEY=VALUE,...")] = ()
    """Show only these cells on the pages, as in `factormodels run`; repeatable."""


AS_PLANNED = ReportSettings()
"""What the study says."""


@front_door
def report(
    results: str | os.PathLike[str],
    settings: ReportSettings,
) -> Findings:
    """Make the HTML report of a finished run, or of assessed responses.

    The report is a folder of pages that any browser opens without a server or a network. It shows
    the summary, tests, plots and failures; and for each response every atom, its posterior by
    backend, the contexts that support or contradict it, and what removing each would change. A
    study whose `outputs` include `report` makes it by itself. --out names the folder, which
    otherwise is RESULTS/report, or FILE-report.

    Examples::

        factormodels report results/compare
        factormodels report results/mine --out pages --data claims=claims.jsonl
        factormodels report results/mine --response q17 --response q23
        factormodels report assessed

    Args:
        results: Folder of a run's results, or what `factormodels assess --out` wrote: the folder,
            or its file graphs.jsonl.
        settings: what the pages show.

    Returns:
        The pages, the one that leads to the others first, in the table `pages`.

    Raises:
        InputError: if the folder holds no finished run, its data are absent or not the same, or the
            report cannot be written.
    """
    from experiments.evaluators.batch import GRAPHS
    from experiments.pages.assessed import report_folder, report_of_graphs
    from experiments.pages.from_run_folder import make_report
    from experiments.study.files import MANIFEST
    from factormodels.io import read_many

    source = Path(results)
    if not (source / MANIFEST).exists() and (source / GRAPHS).is_file():
        source = source / GRAPHS
    watch = partial(watcher().steps, "pages")
    if source.is_file():
        if settings.data or settings.only:
            raise InputError(f"{source}: --data and --only are for the folder of a run; drop them")
        folder = settings.out or report_folder(source)
        written = report_of_graphs(read_many(source), source.stem, folder, settings, watch)
    else:
        written = make_report(source, settings.out, settings, watch)
    frame = data_frame({"page": [str(page) for page in written]})
    return Findings(
        source=str(source),
        sentences=(f"{written[0]}: {counted(len(written), 'page')}",),
        tables={"pages": Table(frame, columns_as("page"), "Pages")},
        unshown=("pages",),
        written=(),
    )
