"""`factormodels run`: a study, from its configuration to tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from experiments.cli.console import (
    INCOMPLETE,
    messages,
    output,
    plain_table,
    show_folder,
    show_table,
)
from experiments.findings.text import (
    ABSENT,
    counted,
    duration,
    in_sample_remark,
)
from factormodels.errors import InputError, LimitReachedError
from factormodels.io.files import results_folder

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.analyses.study import AnalysisResults, LoadedAnalysis
    from experiments.runner.outputs import Results
    from experiments.runner.runner import StudyDesign, UnitFailure
    from experiments.runner.selections import Selections
    from experiments.study.reading import RawStudy


def command(
    config: Annotated[
        str | None,
        typer.Argument(
            metavar="CONFIG",
            help="A YAML file, or the name of an embedded study (--list shows them).",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE", help="Replaces a value of the study, as in priors.context=0.95."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the results; results/STUDY if not given."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the run in the folder; finished units are kept."),
    ] = False,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="Continue, and repeat the units that failed."),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Discard any run that the folder holds.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of processes; 1 means this one only. If not given: this one at first, "
            "then one per processor if the run is long.",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address of the scheduler of a Dask cluster that runs the units.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Run only these cells, by dataset, variant, relation_model, encoding, prior, "
            "strength, backend or seed; repeatable.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check the study and its data and count its units (for an analysis: show its "
            "settings), without running it.",
        ),
    ] = False,
    every_cell: Annotated[
        bool,
        typer.Option("--every-cell", help="Print a row for every cell, even if posteriors agree."),
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="List the embedded studies, and what each is for.")
    ] = False,
) -> None:
    """Run a study: datasets x variants x encodings x backends over all responses.

    Relation models can find relations in the texts, and assessors can judge claims
    by prompts, to compare with the backends. A language model is asked once about
    each, before the run, and its answers are kept in a cache.

    Writes tidy rows (Parquet and CSV), a summary, a table for LaTeX and for
    Markdown, reliability diagrams, a report (HTML) and a manifest: all of them, or
    none. Then prints the summary, in which cells whose posteriors agree share a
    row, and sums it up in a few sentences. If a backend cannot answer a response,
    the error is recorded, the rest goes on, and the exit code is 1. Finished units
    are kept: a run that was interrupted or killed continues with --resume, and its
    tables are the same as if nothing had happened; --retry-failed also repeats what
    failed. Priors can be learned, and selections choose which atoms count. Values of
    overrides are read as YAML.

    A study with the key analysis asks for something else, such as sizes of
    datasets. It writes its own tables and figures, with a manifest.

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

    from experiments.cli.progress import ledger_at_limit, show_ledger
    from experiments.cli.running import run_watched
    from experiments.evaluators.dask_cluster import WorkerError
    from experiments.results.files import study_folder
    from experiments.runner.runner import Execution, bounded_of, design, failures_of
    from experiments.runner.workers import EarlyWorkers
    from experiments.study.reading import is_analysis, read_raw, validated
    from factormodels.extraction.language_model.accounting import Ledger

    if listed:
        _show_embedded(output())
        return
    if config is None:
        raise InputError("name a study: a YAML file or an embedded one; --list shows the latter")
    # Options that contradict each other are refused before anything is read.
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
    folder = study_folder(loaded.study.study, out)
    console, remarks, ledger = output(), messages(), Ledger()
    with EarlyWorkers(None if dry_run else workers) as early:
        planned = design(loaded, early)
        if dry_run:
            _show_plan(console, planned, folder, only or ())
            return
        try:
            with ledger_at_limit(remarks, ledger):
                results, finished = run_watched(
                    planned,
                    folder,
                    Execution(workers, dask),
                    remarks,
                    ledger,
                    early,
                    only=only or (),
                    resume=resume or retry_failed,
                    overwrite=overwrite,
                    retry_failed=retry_failed,
                )
        # What ends a run without being the user's mistake; what is finished is kept, which is worth
        # saying.
        except (KeyboardInterrupt, WorkerError, OSError, LimitReachedError):
            _show_kept(remarks, planned, folder)
            raise
    failures = failures_of(planned, finished)
    _show_results(console, planned, results, failures, folder, every_cell=every_cell)
    for where, count in bounded_of(planned, finished).items():
        console.print(
            f"{where}: {counted(count, 'unit')} would take long to solve exactly: log Z is "
            "bounded, and posteriors are estimates; answered_by in the rows says whose",
            soft_wrap=True,
        )
    show_ledger(remarks, ledger)
    remarks.print(f"done in {duration(time.perf_counter() - start)}")
    if any(not failure.cell.algorithm.error for failure in failures):
        raise typer.Exit(INCOMPLETE)


def _analyse(raw: RawStudy, out: Path | None, dry_run: bool, given: list[str]) -> None:
    """Run a study that asks for an analysis."""
    from functools import partial

    from experiments.analyses.study import load_analysis, run_analysis
    from experiments.cli.progress import step_progress
    from experiments.results.files import study_folder

    if given:
        raise InputError(f"{given[0]} is for studies of units; an analysis is run as a whole")
    loaded = load_analysis(raw)
    folder = study_folder(loaded.study.study, out)
    if dry_run:
        _show_analysis_plan(output(), loaded, folder)
        return
    with results_folder(folder):
        results = run_analysis(loaded, folder, partial(step_progress, messages()))
    _show_analysis(output(), results, folder)


def _show_plan(console: Console, planned: StudyDesign, folder: Path, only: Iterable[str]) -> None:
    """Print how many units a run has, cell by cell, and how many are finished.

    Raises:
        InputError: if the folder holds another run, or `only` selects no cell.
    """
    from experiments.runner.predicted_inference import MOST_PREDICTED, predicted_inference
    from experiments.runner.runner import n_finished
    from experiments.study.cell_choice import select
    from experiments.study.cell_names import shown

    wanted = select(planned.cells, only)
    sizes, finished = planned.sizes, n_finished(folder, planned)
    for dataset in planned.data:
        console.print(
            f"{dataset.name}: {counted(len(dataset.graphs), 'response')}, "
            f"{counted(dataset.n_atoms, 'atom')}, {dataset.n_labelled:,} labelled"
        )
    console.print()
    columns = {name: title for name, title in _TITLES.items() if name not in _hidden(planned)}
    heads = ["units", "finished", "induced width", "exact in"]
    table = plain_table([*columns.values()], heads, fold=True)
    costs = predicted_inference(planned.data, [planned.cells[position] for position in wanted])
    for position, cost in zip(wanted, costs, strict=True):
        key = planned.cells[position].key()
        # As a study writes it: 1 and not 1.0.
        key["strength"] = f"{key['strength']:g}"
        counts = (sizes[position], finished[position])
        values = (shown(str(key[name])) for name in columns)
        width, seconds = (ABSENT, ABSENT)
        if cost is not None:
            width, seconds = f"{cost.induced_width}", duration(cost.seconds)
        table.add_row(*values, *(f"{count:,}" for count in counts), width, seconds)
    show_table(console, table)
    of = "the response that takes longest"
    if any(len(dataset.graphs) > MOST_PREDICTED for dataset in planned.data):
        of += f" of the first {MOST_PREDICTED:,}"
    console.print(
        f"induced width, exact in: of {of}, about; {ABSENT} where relations are found in the run",
        soft_wrap=True,
    )
    total, done = (sum(each[position] for position in wanted) for each in (sizes, finished))
    console.print(
        f"{counted(total, 'unit')} in {counted(len(wanted), 'cell')}, {done:,} finished; "
        f"results go to {folder}",
        soft_wrap=True,
    )
    _show_questions(console, planned, wanted)
    for question in planned.prior_requests:
        folds = counted(question.learned.folds, "fold")
        console.print(f"learned before the units: {question.title}, in {folds}", soft_wrap=True)
    for algorithm in planned.algorithms:
        if algorithm.error:
            console.print(f"{algorithm.title} will fail: {algorithm.error}", soft_wrap=True)


_TITLES = {
    "dataset": "dataset",
    "variant": "variant",
    "relation_model": "relations",
    "encoding": "encoding",
    "prior": "priors",
    "strength": "strength",
    "backend_label": "backend",
    "seed": "seed",
}


def _hidden(planned: StudyDesign) -> tuple[str, ...]:
    return () if len(planned.study.relation_models) > 1 else ("relation_model",)


def _show_questions(console: Console, planned: StudyDesign, wanted: Sequence[int]) -> None:
    """Print how much text models are asked in all; what is known already is not asked again."""
    from experiments.runner.text_models import n_asked

    # As if no unit were done, for the number of a whole run.
    nothing = [np.zeros((len(planned.cells), len(one.graphs)), np.bool_) for one in planned.data]
    requests = planned.text_requests(wanted, nothing)
    for title, (asked, what) in n_asked(requests, planned.data, planned.models).items():
        console.print(f"{title}: {counted(asked, what)} to be asked about, once", soft_wrap=True)


def _show_results(
    console: Console,
    planned: StudyDesign,
    results: Results,
    failures: Sequence[UnitFailure],
    folder: Path,
    *,
    every_cell: bool,
) -> None:
    """Print the summary of a run, its tests, what is missing or failed, and the files."""
    from experiments.findings.terminal import show
    from experiments.paper import study_table
    from experiments.results import significance
    from experiments.results.agreement import short_table
    from experiments.results.sentences import sentences
    from experiments.study.cell_names import CELL
    from experiments.study.design import absent_backends

    cells, study = results.summary.cells, planned.study
    absent = absent_backends(planned.cells)
    if every_cell or len(results.groups) == len(cells):
        show(console, study_table.paper(cells, "", study.measures, absent, times=True))
    else:
        show(console, short_table(cells, results.groups, "", study.measures, times=True))
        for label, why in absent.items():
            console.print(f"{label} is absent: {why}.", soft_wrap=True)
    if study.significance.pairs:
        show(console, significance.paper(results.tests, study))
    for use in results.texts:
        if use.in_sample:
            console.print(in_sample_remark(use.in_sample), soft_wrap=True)
        if use.missing or use.failed:
            console.print(
                f"{use.model.title}: {use.missing:,} of {use.asked:,} answers missing, "
                f"{counted(use.failed, 'response')} without any; the first: {use.reason}",
                soft_wrap=True,
            )
    by_cell: dict[str, list[UnitFailure]] = {}
    for failure in failures:
        cell = failure.cell
        if cell.algorithm.title in absent:
            continue
        by_cell.setdefault(f"{cell.algorithm.title} on {cell.dataset}", []).append(failure)
    for where, failed in by_cell.items():
        first = failed[0]
        console.print(
            f"{where}: {counted(len(failed), 'unit')} failed, the first at {first.response}: "
            f"{first.error}",
            soft_wrap=True,
        )
    _show_unsettled(console, planned, results.selections)
    # Selections repeat a cell's units.
    once = cells.drop_duplicates(list(CELL))
    missing = sum(planned.sizes) - int(once["n_responses"].sum())
    if missing:
        console.print(f"{counted(missing, 'unit')} not run yet; go on with --resume")
    if results.summary.n_misordered:
        console.print(
            f"E does not rank by truth in {results.summary.n_misordered} of "
            f"{counted(len(cells), 'row')}, because it falls again for atoms with P below 1/e; use "
            "mean_surprisal or expected_precision in summary.csv.",
            soft_wrap=True,
        )
    for sentence in sentences(cells, results.groups):
        console.print(f"- {sentence}", soft_wrap=True)
    show_folder(console, folder, results.files)


def _show_embedded(console: Console) -> None:
    """Print the embedded studies with what each is for."""
    from experiments.study.reading import embedded_studies
    from factormodels.io.plain_yaml import parse_yaml

    table = plain_table()
    table.add_column("study", no_wrap=True)
    table.add_column("what it is for")
    for name, text in embedded_studies().items():
        table.add_row(name, parse_yaml(text, name).get("description", ""))
    show_table(console, table)


def _show_analysis_plan(console: Console, loaded: LoadedAnalysis, folder: Path) -> None:
    """Print what an analysis would do."""
    console.print(f"{loaded.study.study}: {loaded.analysis.summary}", soft_wrap=True)
    console.print(f"results go to {folder}", soft_wrap=True)


def _show_analysis(console: Console, results: AnalysisResults, folder: Path) -> None:
    """Print the tables of an analysis, its remarks and its files."""
    from experiments.findings.terminal import show

    for table in results.artefacts.tables.values():
        show(console, table)
    for remark in results.artefacts.remarks:
        console.print(remark, soft_wrap=True)
    show_folder(console, folder, results.files)


def _show_unsettled(console: Console, planned: StudyDesign, selections: Selections) -> None:
    """Say which responses could not be selected from, or not to the end."""
    from experiments.results.rows import FAILED

    for dataset, title in selections.found:
        answers = selections.found[dataset, title]
        graphs = next(one.graphs for one in planned.data if one.name == dataset)
        for status, said in (
            (FAILED, "could not be selected from"),
            ("limit", "reached the time limit of the selection"),
        ):
            places = [at for at, answer in enumerate(answers) if answer.status == status]
            if places:
                first = answers[places[0]]
                why = first.error or f"a better set weighs at most {first.gap:g} more"
                console.print(
                    f"{title} of {dataset}: {counted(len(places), 'response')} {said}, the first "
                    f"{graphs[places[0]].id}: {why}",
                    soft_wrap=True,
                )


def _show_kept(console: Console, planned: StudyDesign, folder: Path) -> None:
    """Say how many units of a run that ended early are kept, if any."""
    from experiments.runner.resumption import n_answers
    from experiments.runner.runner import n_finished

    # This comes on top of another error, which it must not hide.
    with suppress(InputError, OSError):
        kept, answers = sum(n_finished(folder, planned)), n_answers(folder)
        if kept or answers:
            texts = f" and {answers:,} answers about texts" if answers else ""
            console.print(
                f"{folder}: {kept:,} of {counted(sum(planned.sizes), 'unit')}{texts} are kept; go "
                "on with --resume",
                soft_wrap=True,
            )
