"""`factormodels run`: a study, from its configuration to tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG", help="A YAML file, or the name of an embedded study (compare)."
        ),
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Replaces what the file says at a place."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the results; results/STUDY if not given."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the units that the folder holds.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Drop whatever run the folder holds.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Processes; 1 is this one. If not given: this one, then as many as there are "
            "processors if the run is long.",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster that runs the units."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Run these cells alone, by dataset, variant, encoding, prior, strength, backend "
            "or seed; repeatable.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the study and its data, and count its units.")
    ] = False,
) -> None:
    """Run a study: datasets x variants x encodings x backends over all responses.

    Writes tidy rows (Parquet and CSV), a summary, a table for LaTeX and for
    Markdown, reliability diagrams, a report (HTML) and a manifest, all of them or
    none; then prints the summary. A response that a backend cannot answer is recorded with
    its error and the rest goes on. Finished units are kept as they come: a run
    that was interrupted or killed goes on with --resume, and its tables are those
    of one that was not. A value of an override is read as YAML.

    [b]Examples[/b]

      factormodels run compare
      factormodels run compare variants='\\[FR1]' backends='\\[exact, lbp]'
      factormodels run compare 'backends\\[1].settings.damping=0.3' --out results/damped
      factormodels run my-study.yaml priors.context=0.95 --dry-run
      factormodels run my-study.yaml --workers 8 --resume
      factormodels run my-study.yaml --only backend=exact --dask tcp://head:8786
    """
    import time
    from functools import partial

    from experiments import run_view
    from experiments.config_file import load_study
    from experiments.console import duration, messages, output
    from experiments.progress import page_progress, run_progress
    from experiments.runner import Where, design, failures_of, run_study
    from experiments.workers import WorkerError
    from factormodels.errors import InputError

    if resume and overwrite:
        raise InputError("--resume goes on with a run and --overwrite drops it; give one of them")
    if workers is not None and dask is not None:
        raise InputError("--dask has workers of its own; leave --workers out")
    start = time.perf_counter()
    loaded = load_study(config, overrides or ())
    folder = out if out is not None else Path("results") / loaded.study.study
    planned = design(loaded)
    console, remarks = output(), messages()
    if dry_run:
        run_view.show_plan(console, planned, folder, only or ())
        return
    try:
        results, finished = run_study(
            planned,
            folder,
            Where(workers, dask),
            only=only or (),
            resume=resume,
            overwrite=overwrite,
            monitor=partial(run_progress, remarks, loaded.study.study),
            watch=partial(page_progress, remarks),
        )
    except (KeyboardInterrupt, WorkerError, OSError):
        run_view.show_kept(remarks, planned, folder)
        raise
    run_view.show_results(console, planned, results, failures_of(planned, finished), folder)
    remarks.print(f"done in {duration(time.perf_counter() - start)}")
