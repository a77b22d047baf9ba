"""The pages of a finished run, or of assessed responses."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from experiments.findings.findings import Findings
from experiments.findings.page import findings_page, write_page
from experiments.findings.table import Table, columns_as, data_frame
from experiments.pages.report_settings import ReportSettings
from experiments.progress import watcher
from experiments.settings import front_door
from experiments.settings.cells import chosen_cells
from factormodels.errors import InputError, unknown_name
from factormodels.nouns import counted


@front_door
def report(
    results: str | os.PathLike[str],
    settings: ReportSettings,
) -> Findings:
    """Write the page of a finished run, or of assessed responses.

    The page is a single file that you can mail, and that any browser opens without a server or a
    network. It shows missing results, the summary, tests and plots of a run. It then shows every
    response, the most doubtful first: its claims marked in its text, the posterior of each claim by
    backend, the deciding sentence, and the posterior without that passage. A study whose `outputs`
    include `report` also writes the page. --out names the file; the default is RESULTS/report.html,
    or FILE-report.html.

    Examples::

        report("results/compare")
        report("results/mine", out="mine.html", data="claims=claims.jsonl")
        report("results/mine", response=["q17", "q23"])
        report("assessed")

    Args:
        results: Folder of a run's results, or output of `factormodels assess --out`: the folder, or
            its file graphs.jsonl.
        settings: options of the page.

    Returns:
        The page in the table `page`, with the numbers of responses and claims that it lists.

    Raises:
        InputError: if the folder holds no finished run, its data are absent or not the same, or the
            page cannot be written.
    """
    from experiments.evaluators.batches.batch import GRAPHS
    from experiments.study.files import MANIFEST, REPORT

    source = Path(results)
    target = settings.out
    watch = partial(watcher().steps, "responses")
    if not (source / MANIFEST).exists() and (source / GRAPHS).is_file():
        target = target or source / REPORT
        source = source / GRAPHS
    if source.is_file():
        for name in ("data", *chosen_cells(settings)):
            if getattr(settings, name):
                option = name.replace("_", "-")
                raise InputError(f"{source}: --{option} is for the folder of a run; drop it")
        target = target or source.with_name(f"{source.name.partition('.')[0]}-{REPORT}")
        content, n_responses = _assessed(source, settings)
        write_page(target, content)
    else:
        from experiments.pages.from_run_folder import make_report

        target = target or source / REPORT
        content, n_responses = make_report(source, target, settings, watch)
    frame = data_frame({"page": [str(target)], "responses": [n_responses]})
    return Findings(
        source=str(source),
        sentences=(f"{target}: {counted(n_responses, 'response')}",),
        tables={"page": Table(frame, columns_as("page | responses:0"), "Page")},
        unshown=("page",),
        written=(),
        page=content,
    )


def _assessed(source: Path, settings: ReportSettings) -> tuple[bytes, int]:
    """The page of assessed responses, and how many there are on it.

    Raises:
        InputError: if a response was not assessed, or there is none of an id.
    """
    from experiments.columns.assessed_metadata import METADATA_KEY, check_assessment
    from experiments.evaluators.batches.batch import GRAPHS
    from experiments.evaluators.display.assessed_page import findings_of_graphs
    from factormodels.io import read_many

    graphs = read_many(source)
    known = [graph.id for graph in graphs]
    for name in settings.response:
        if name not in known:
            raise InputError(unknown_name(f"{source}: the response {name!r}", name, known))
    chosen = [graph for graph in graphs if not settings.response or graph.id in settings.response]
    chosen = chosen[: settings.first]
    for graph in chosen:
        if not graph.metadata.get(METADATA_KEY):
            raise InputError(
                f"{source}: the response {graph.id!r} was not assessed; give what `factormodels "
                "assess --out` wrote, or the folder of a run"
            )
        check_assessment(graph, str(source))
    # The folder of `assess --out` has the name that its owner knows; its file is always the same.
    name = source.resolve().parent.name if source.name == GRAPHS else source.stem
    findings = findings_of_graphs(chosen, name)
    shown = replace(findings, command="report").presented(settings.rename)
    return findings_page(shown), len(chosen)
