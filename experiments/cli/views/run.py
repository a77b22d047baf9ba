"""What the terminal shows of a run: its plan, its results, and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.cli.console import heading, show_table
from experiments.cli.views import paper_table, study_table
from experiments.paper.text import counted, interval, number, plain_table, small
from experiments.results.rows import CELL, FAILED
from experiments.run.folder import n_answers
from experiments.run.runner import Design, Failure, n_finished
from experiments.run.selections import Selections
from experiments.run.text_answers import n_asked
from experiments.study.cell_choice import select
from experiments.study.cell_names import shown
from factormodels.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from experiments.analyses.study import AnalysisResults, LoadedAnalysis
    from experiments.run.outputs import Results


def show_plan(console: Console, planned: Design, folder: Path, only: Iterable[str]) -> None:
    """Print how many units a run has, cell by cell, and how many are finished.

    Raises:
        InputError: if the folder holds another run, or `only` selects no cell.
    """
    wanted = select(planned.cells, only)
    sizes, finished = planned.sizes, n_finished(folder, planned)
    for dataset in planned.data:
        console.print(
            f"{dataset.name}: {counted(len(dataset.graphs), 'response')}, "
            f"{counted(dataset.n_atoms, 'atom')}, {dataset.n_labelled:,} labelled"
        )
    console.print()
    table = plain_table()
    columns = {name: title for name, title in _TITLES.items() if name not in _hidden(planned)}
    for title in columns.values():
        table.add_column(title, overflow="fold")
    for title in ("units", "finished"):
        table.add_column(title, justify="right", no_wrap=True)
    for position in wanted:
        key = planned.cells[position].key()
        key["strength"] = f"{key['strength']:g}"
        counts = (sizes[position], finished[position])
        values = (shown(str(key[name])) for name in columns)
        table.add_row(*values, *(f"{count:,}" for count in counts))
    show_table(console, table)
    total, done = (sum(each[position] for position in wanted) for each in (sizes, finished))
    console.print(
        f"{counted(total, 'unit')} in {counted(len(wanted), 'cell')}, {done:,} finished; "
        f"results go to {folder}",
        soft_wrap=True,
    )
    _show_questions(console, planned, wanted)
    for question in planned.questions:
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


def _hidden(planned: Design) -> tuple[str, ...]:
    return () if len(planned.study.relation_models) > 1 else ("relation_model",)


def _show_questions(console: Console, planned: Design, wanted: Sequence[int]) -> None:
    """Print how much text models are asked in all; what is known already is not asked again."""
    nothing = [np.zeros((len(planned.cells), len(one.graphs)), np.bool_) for one in planned.data]
    for title, (asked, what) in n_asked(planned.places(wanted, nothing), planned.data).items():
        console.print(f"{title}: {counted(asked, what)} to be asked about, once", soft_wrap=True)


def show_results(
    console: Console,
    planned: Design,
    results: Results,
    failures: Sequence[Failure],
    folder: Path,
) -> None:
    """Print the summary of a run, its tests, what is missing or failed, and the files."""
    cells, study = results.summary.cells, planned.study
    study_table.show(console, cells, study.measures)
    if study.significance.pairs:
        _show_tests(console, results.tests, study.significance.correction)
    for use in results.texts:
        if use.missing or use.failed:
            console.print(
                f"{use.model.title}: {use.missing:,} of {use.asked:,} answers missing, "
                f"{counted(use.failed, 'response')} without any; the first: {use.reason}",
                soft_wrap=True,
            )
    by_cell: dict[str, list[Failure]] = {}
    for failure in failures:
        cell = failure.cell
        by_cell.setdefault(f"{cell.algorithm.title} on {cell.dataset}", []).append(failure)
    for where, failed in by_cell.items():
        first = failed[0]
        console.print(
            f"{where}: {counted(len(failed), 'unit')} failed, the first at {first.response}: "
            f"{first.error}",
            soft_wrap=True,
        )
    _show_unsettled(console, planned, results.selections)
    once = cells.drop_duplicates(list(CELL))
    missing = sum(planned.sizes) - int(once["n_responses"].sum())
    if missing:
        console.print(f"{counted(missing, 'unit')} not run yet; go on with --resume")
    if results.summary.n_misordered:
        console.print(
            f"E is no order of truth in {results.summary.n_misordered} of "
            f"{counted(len(cells), 'row')}: it falls again for atoms with P below 1/e; summary.csv "
            "has mean_surprisal and expected_precision.",
            soft_wrap=True,
        )
    console.print(f"{folder}: {', '.join(file.name for file in results.files)}", soft_wrap=True)


def show_embedded(console: Console) -> None:
    """Print the embedded studies with what each is for."""
    from experiments.study.plain_yaml import parse_yaml
    from experiments.study.reading import embedded_studies

    table = plain_table()
    table.add_column("study", no_wrap=True)
    table.add_column("what it is for")
    for name, text in embedded_studies().items():
        table.add_row(name, parse_yaml(text, name).get("description", ""))
    show_table(console, table)


def show_analysis_plan(console: Console, loaded: LoadedAnalysis, folder: Path) -> None:
    """Print what an analysis would do."""
    console.print(f"{loaded.study.study}: {loaded.analysis.summary}", soft_wrap=True)
    console.print(f"results go to {folder}", soft_wrap=True)


def show_analysis(console: Console, results: AnalysisResults, folder: Path) -> None:
    """Print the tables of an analysis, its remarks and its files."""
    for table in results.artefacts.tables.values():
        paper_table.show(console, table)
    for remark in results.artefacts.remarks:
        console.print(remark, soft_wrap=True)
    console.print(f"{folder}: {', '.join(file.name for file in results.files)}", soft_wrap=True)


def _show_unsettled(console: Console, planned: Design, selections: Selections) -> None:
    """Say which responses could not be selected from, or not to the end."""
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


def show_kept(console: Console, planned: Design, folder: Path) -> None:
    """Say how many units of a run that ended early are kept, if any."""
    with suppress(InputError, OSError):
        kept, answers = sum(n_finished(folder, planned)), n_answers(folder)
        if kept or answers:
            texts = f" and {answers:,} answers about texts" if answers else ""
            console.print(
                f"{folder}: {kept:,} of {counted(sum(planned.sizes), 'unit')}{texts} are kept; go "
                "on with --resume",
                soft_wrap=True,
            )


_LEAST_DECIMAL = 1e-3
"""The least p-value with three decimals; smaller ones have an exponent."""


def _show_tests(console: Console, tests: pd.DataFrame, correction: str) -> None:
    table = plain_table()
    for title in ("dataset", "first", "second", "where", "measure"):
        table.add_column(title, overflow="fold")
    for title in ("difference", "95% interval", "p"):
        table.add_column(title, justify="right", no_wrap=True)
    for record in tests.to_dict("records"):
        p = record["p_value"] if correction == "none" else record["corrected"]
        table.add_row(
            *(record[name] for name in ("dataset", "first", "second", "elsewhere", "measure")),
            number(record["difference"]),
            interval(record["lower"], record["upper"]),
            f"{number(p) if p >= _LEAST_DECIMAL else small(p)}{record['stars']}",
        )
    corrected = "" if correction == "none" else f", corrected ({correction})"
    heading(console, f"tests paired by response{corrected}")
    show_table(console, table)
    console.print()
