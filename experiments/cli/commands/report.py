"""`factormodels report`: the HTML report of a finished run, or of assessed responses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="Folder of a run's results, or a file that `factormodels assess` wrote.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of the report; RUN/report if not given, or FILE-report."
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH",
            help="Where to find a data file that the run read; repeatable.",
        ),
    ] = None,
    response: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Make pages for these responses only; repeatable."),
    ] = None,
    pages: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Make pages for this many responses of every dataset, from the first; if not "
            "given, as the study says (report.responses).",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Show only these cells on the pages, as in `factormodels run`; repeatable.",
        ),
    ] = None,
) -> None:
    """Make the HTML report of a finished run, or of assessed responses.

    The report is a folder of pages that any browser opens without a server or a
    network. It shows the summary, tests, plots and failures; and for each response
    every atom, its posterior by backend, the contexts that support or contradict
    it, and what removing each would change. A study whose `outputs` include
    `report` makes it by itself.

    [b]Examples[/b]

      factormodels report results/compare
      factormodels report results/mine --data claims=claims.jsonl --out report
      factormodels report results/mine --response q17 --response q23
      factormodels report assessed.jsonl
    """
    from functools import partial

    from experiments.cli.console import messages, output
    from experiments.cli.progress import step_progress
    from experiments.findings.text import counted
    from experiments.report.assessed import make_assessed_report
    from experiments.report.from_run_folder import make_report
    from factormodels.errors import InputError

    watch = partial(step_progress, messages(), "pages")
    if run.is_file():
        if data or only:
            raise InputError(f"{run}: --data and --only are for the folder of a run; drop them")
        written = make_assessed_report(run, out, chosen=response or (), pages=pages, watch=watch)
    else:
        written = make_report(
            run,
            out,
            files=data or (),
            only=only or (),
            chosen=response or (),
            pages=pages,
            watch=watch,
        )
    output().print(f"{written[0]}: {counted(len(written), 'page')}", soft_wrap=True)
