"""What the terminal shows of a run: its plan, its results, and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from experiments import paper_table, tables
from experiments.console import counted, heading, number, plain_table, small
from experiments.runner import Design, Failure, n_finished, select
from factormodels.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from experiments.analyses.study import AnalysisResults, LoadedAnalysis
    from experiments.outputs import Results


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
    for title in ("dataset", "variant", "encoding", "priors", "strength", "backend", "seed"):
        table.add_column(title, overflow="fold")
    for title in ("units", "finished"):
        table.add_column(title, justify="right", no_wrap=True)
    for position in wanted:
        key = planned.cells[position].key()
        key["strength"] = f"{key['strength']:g}"
        counts = (sizes[position], finished[position])
        table.add_row(*map(str, key.values()), *(f"{count:,}" for count in counts))
    console.print(table)
    total, done = (sum(each[position] for position in wanted) for each in (sizes, finished))
    console.print(
        f"{counted(total, 'unit')} in {counted(len(wanted), 'cell')}, {done:,} finished; "
        f"results go to {folder}",
        soft_wrap=True,
    )
    for algorithm in planned.algorithms:
        if algorithm.backend is None:
            console.print(f"{algorithm.title} will fail: {algorithm.error}", soft_wrap=True)


def show_results(
    console: Console,
    planned: Design,
    results: Results,
    failures: Sequence[Failure],
    folder: Path,
) -> None:
    """Print the summary of a run, its tests, what failed, and the files."""
    cells, study = results.summary.cells, planned.study
    tables.show(console, cells, study.measures)
    if study.significance.pairs:
        _show_tests(console, results.tests, study.significance.correction)
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
    missing = sum(planned.sizes) - int(cells["n_responses"].sum())
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
    from experiments.config_file import embedded_studies
    from experiments.text_input import parse_yaml

    table = plain_table()
    table.add_column("study", no_wrap=True)
    table.add_column("what it is for")
    for name, text in embedded_studies().items():
        table.add_row(name, parse_yaml(text, name).get("description", ""))
    console.print(table)


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


def show_kept(console: Console, planned: Design, folder: Path) -> None:
    """Say how many units of a run that ended early are kept, if any."""
    with suppress(InputError, OSError):
        kept = sum(n_finished(folder, planned))
        if kept:
            console.print(
                f"{folder}: {kept:,} of {counted(sum(planned.sizes), 'unit')} are kept; go on with "
                "--resume",
                soft_wrap=True,
            )


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
            f"[{number(record['lower'])}, {number(record['upper'])}]",
            f"{small(p)}{record['stars']}",
        )
    corrected = "" if correction == "none" else f", corrected ({correction})"
    heading(console, f"tests paired by response{corrected}")
    console.print(table)
    console.print()
