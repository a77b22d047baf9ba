"""`factormodels run`: a study, from its configuration to tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from experiments.study.reading import RawStudy


def command(
    config: Annotated[
        str | None,
        typer.Argument(
            metavar="CONFIG",
            help="A YAML file, or the name of an embedded study; --list shows them.",
        ),
    ] = None,
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
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="Go on, and do the units that failed once more."),
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
            help="Run these cells alone, by dataset, variant, relation_model, encoding, prior, "
            "strength, backend or seed; repeatable.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check the study and its data, and count its units; of an analysis, its settings.",
        ),
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="List the embedded studies, and what each is for.")
    ] = False,
) -> None:
    """Run a study: datasets x variants x encodings x backends over all responses.

    Relations may be found anew from the texts by relation models, and claims be
    judged by prompts (assessors) beside the backends; a language model is asked
    once about each, before the units, and its answers are kept in a cache.

    Writes tidy rows (Parquet and CSV), a summary, a table for LaTeX and for
    Markdown, reliability diagrams, a report (HTML) and a manifest, all of them or
    none; then prints the summary. A response that a backend cannot answer is recorded with
    its error and the rest goes on. Finished units are kept as they come: a run
    that was interrupted or killed goes on with --resume, and its tables are those
    of one that was not; --retry-failed also does again what failed. Priors may be
    learned, and selections say which atoms count. A value of an override is read
    as YAML.

    A study with the key analysis asks for something else, such as sizes of
    datasets: it writes its own tables and figures, with a manifest.

    [b]Examples[/b]

      factormodels run compare
      factormodels run compare variants='\\[FR1]' backends='\\[exact, lbp]'
      factormodels run compare 'backends\\[1].settings.damping=0.3' \\
          --out results/damped
      factormodels run my-study.yaml priors.context=0.95 --dry-run
      factormodels run my-study.yaml --workers 8 --resume
      factormodels run my-study.yaml relation_models='\\[recorded, lexical]'
      factormodels run my-study.yaml assessors=factscore \\
          language_model=openai/NAME
      factormodels run my-study.yaml --only backend=exact --dask tcp://head:8786
    """
    import time
    from functools import partial

    from experiments.analyses.study import is_analysis
    from experiments.cli.console import messages, output
    from experiments.cli.progress import run_progress, step_progress, text_progress
    from experiments.cli.views import run as run_view
    from experiments.cli.views.assessment import show_ledger
    from experiments.paper.text import duration
    from experiments.report.writing import write_pages
    from experiments.run.runner import Where, design, failures_of, run_study
    from experiments.run.workers import WorkerError
    from experiments.study.reading import read_raw, validated
    from factormodels.errors import InputError
    from factormodels.extraction.accounting import Ledger

    if listed:
        run_view.show_embedded(output())
        return
    if config is None:
        raise InputError("name a study: a YAML file or an embedded one; --list shows the latter")
    if (resume or retry_failed) and overwrite:
        wish = "--resume" if resume else "--retry-failed"
        raise InputError(f"{wish} goes on with a run and --overwrite drops it; give one of them")
    if workers is not None and dask is not None:
        raise InputError("--dask has workers of its own; leave --workers out")
    start = time.perf_counter()
    raw = read_raw(config, overrides or ())
    if is_analysis(raw):
        given = {"--resume": resume, "--workers": workers, "--dask": dask, "--only": only}
        given["--retry-failed"] = retry_failed
        _analyse(raw, out, dry_run, [name for name, value in given.items() if value])
        return
    loaded = validated(raw)
    folder = out if out is not None else Path("results") / loaded.study.study
    planned = design(loaded)
    console, remarks, ledger = output(), messages(), Ledger()
    if dry_run:
        run_view.show_plan(console, planned, folder, only or ())
        return
    try:
        results, finished = run_study(
            planned,
            folder,
            Where(workers, dask),
            only=only or (),
            resume=resume or retry_failed,
            overwrite=overwrite,
            retry_failed=retry_failed,
            monitor=partial(run_progress, remarks, loaded.study.study),
            text_monitor=partial(text_progress, remarks, loaded.study.study, ledger),
            ledger=ledger,
            notice=partial(remarks.print, soft_wrap=True, markup=False, highlight=False),
            pages=partial(write_pages, watch=partial(step_progress, remarks, "pages")),
        )
    except (KeyboardInterrupt, WorkerError, OSError):
        run_view.show_kept(remarks, planned, folder)
        raise
    run_view.show_results(console, planned, results, failures_of(planned, finished), folder)
    show_ledger(remarks, ledger)
    remarks.print(f"done in {duration(time.perf_counter() - start)}")


def _analyse(raw: RawStudy, out: Path | None, dry_run: bool, given: list[str]) -> None:
    """Run a study that asks for an analysis."""
    from functools import partial

    from experiments.analyses.study import load_analysis, run_analysis
    from experiments.cli.console import messages, output
    from experiments.cli.progress import step_progress
    from experiments.cli.views import run as run_view
    from factormodels.errors import InputError
    from factormodels.io.files import results_folder

    if given:
        raise InputError(f"{given[0]} is for studies of units; an analysis is run as a whole")
    loaded = load_analysis(raw)
    folder = out if out is not None else Path("results") / loaded.study.study
    if dry_run:
        run_view.show_analysis_plan(output(), loaded, folder)
        return
    with results_folder(folder):
        results = run_analysis(loaded, folder, partial(step_progress, messages()))
    run_view.show_analysis(output(), results, folder)
