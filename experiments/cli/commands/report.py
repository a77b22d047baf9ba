"""`factormodels report`: the HTML report of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run's results.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the report; RUN/report if not given."),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH",
            help="Where a file is that the run read its data from; repeatable.",
        ),
    ] = None,
    response: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Make pages of these responses alone; repeatable."),
    ] = None,
    pages: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Pages for the first so many responses of every dataset; as the study says "
            "(report.responses) if not given.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Show these cells alone on the pages, as in `factormodels run`; repeatable.",
        ),
    ] = None,
) -> None:
    """Make the HTML report of a finished run.

    A folder of pages that any browser opens without a server or a network: the
    summary, tests, plots and failures; and for each response every atom, its
    posterior by backend, the contexts that support or contradict it and what
    removing each would change. A study whose `outputs` name `report` makes it by
    itself.

    [b]Examples[/b]

      factormodels report results/compare
      factormodels report results/mine --data claims=claims.jsonl --out report
      factormodels report results/mine --response q17 --response q23
    """
    from functools import partial

    from experiments.cli.console import messages, output
    from experiments.cli.progress import step_progress
    from experiments.paper.text import counted
    from experiments.report.finished import make_report

    written = make_report(
        run,
        out,
        files=data or (),
        only=only or (),
        chosen=response or (),
        pages=pages,
        watch=partial(step_progress, messages(), "pages"),
    )
    output().print(f"{written[0]}: {counted(len(written), 'page')}", soft_wrap=True)
