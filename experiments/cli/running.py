"""Running a study with its progress shown and its report made: for the command, and for Python."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.cli.console import messages, silent
from experiments.cli.progress import run_progress, step_progress, text_progress
from experiments.pages.writing import write_pages
from experiments.results.files import study_folder
from experiments.results.study_run import StudyRun
from experiments.runner import runner
from experiments.runner.outputs import Results
from experiments.runner.resumption import FinishedUnits
from experiments.runner.runner import Execution, StudyDesign
from experiments.runner.workers import EarlyWorkers
from experiments.study.reading import Configuration, LoadedStudy, Overrides, load_study
from factormodels.errors import InputError, options_as_arguments
from factormodels.extraction.language_model.accounting import Ledger

if TYPE_CHECKING:
    from rich.console import Console


def run_study(
    study: Configuration | LoadedStudy,
    out: str | os.PathLike[str] | None = None,
    *,
    overrides: Overrides = (),
    workers: int | None = None,
    only: Iterable[str] = (),
    resume: bool = False,
    retry_failed: bool = False,
    overwrite: bool = False,
) -> StudyRun:
    """Run a study and write its results, as the command `factormodels run` does.

    from experiments import run_study
    run_study({"study": "mine", "datasets": "demonstration", "backends": "lbp"}).summary

    Progress is shown where standard error is a terminal. A response that a backend cannot answer is
    recorded with its error, and the rest goes on.

    Args:
        study: the name of an embedded study, the path of a YAML file, a dict with the keys of one,
            or what `load_study` returned.
        out: the folder of the results; results/STUDY if not given.
        overrides: what replaces values of the study: a dict by place, such as
            ``{"priors.atom": 0.4}``, or texts "key=value".
        workers: number of processes; 1 is this one; None: this one, then as many as there are
            processors if the run is long.
        only: which cells to run, each a text such as "backend=exact,variant=FR1".
        resume: keep the units that the folder holds, and go on from there.
        retry_failed: go on, and repeat the units that failed.
        overwrite: discard any run that the folder holds.

    Raises:
        InputError: for a key or value that a study cannot have, bad data, or a folder that holds
            another run.
        MissingDependencyError: if a library that learning or selecting needs is not installed.
    """
    if overwrite and (resume or retry_failed):
        wish = "resume" if resume else "retry_failed"
        raise InputError(f"`{wish}` continues a run and `overwrite` discards it; give one of them")
    if not isinstance(study, LoadedStudy):
        study = load_study(study, overrides)
    elif overrides:
        raise InputError("a loaded study takes no overrides; give them to load_study")
    folder = study_folder(study.study.study, None if out is None else Path(out))
    shown = messages()
    with options_as_arguments(), EarlyWorkers(workers) as early:
        results, _ = run_watched(
            runner.design(study, early),
            folder,
            Execution(workers),
            shown if shown.is_terminal else silent(),
            Ledger(),
            early,
            only=only,
            resume=resume or retry_failed,
            overwrite=overwrite,
            retry_failed=retry_failed,
        )
    return StudyRun(study.study, folder, results.summary.cells)


def run_watched(
    planned: StudyDesign,
    folder: Path,
    execution: Execution,
    console: Console,
    ledger: Ledger,
    early: EarlyWorkers,
    *,
    only: Iterable[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    retry_failed: bool = False,
) -> tuple[Results, FinishedUnits]:
    """Run a study, its progress shown on a console, and its report made if it asks for one.

    The arguments and errors are those of `experiments.runner.runner.run_study`.
    """
    name = planned.study.study
    return runner.run_study(
        planned,
        folder,
        execution,
        only=only,
        resume=resume,
        overwrite=overwrite,
        retry_failed=retry_failed,
        monitor=partial(run_progress, console, name),
        text_monitor=partial(text_progress, console, name, ledger),
        ledger=ledger,
        notice=partial(console.print, soft_wrap=True, markup=False, highlight=False),
        pages=partial(write_pages, watch=partial(step_progress, console, "pages")),
        early=early,
    )
