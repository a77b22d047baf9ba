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
) -> None:
    """Run a study: datasets x variants x encodings x backends over all responses.

    Writes tidy rows (Parquet and CSV), a summary, a table for LaTeX and for
    Markdown, reliability diagrams and a manifest, all of them or none; then
    prints the summary. A response that a backend cannot answer is recorded with
    its error and the rest goes on. A value of an override is read as YAML.

    [b]Examples[/b]

      factormodels run compare
      factormodels run compare variants='\\[FR1]' backends='\\[exact, lbp]'
      factormodels run compare 'backends\\[1].settings.damping=0.3' --out results/damped
      factormodels run my-study.yaml priors.context=0.95
    """
    import time

    from experiments import tables
    from experiments.config_file import load_study
    from experiments.console import duration, messages, output
    from experiments.outputs import results_folder, write_results
    from experiments.progress import unit_progress
    from experiments.runner import UnitResult, algorithms, count_units, run_study, warm_up_all
    from experiments.study_data import load_data
    from experiments.warm_up import announced

    start = time.perf_counter()
    loaded = load_study(config, overrides or ())
    study = loaded.study
    folder = out if out is not None else Path("results") / study.study
    backends = algorithms(study, loaded.where)
    data = load_data(study, loaded.folder, loaded.where)
    remarks = messages()
    total = count_units(study, data)
    failures: dict[str, list[str]] = {}
    statuses: list[str] = []
    with results_folder(folder):
        remarks.print(f"{study.study}: {total:,} units; loading and compiling backends")
        with announced(remarks):
            warm_up_all(backends)
        with unit_progress(remarks, total) as bar:

            def report(result: UnitResult) -> None:
                bar(result)
                statuses.append(result.status)
                row = result.rows[0]
                if row["error"] is not None:
                    where = f"{row['backend_label']} on {row['dataset']}"
                    failures.setdefault(where, []).append(f"{row['response']}: {row['error']}")

            rows = run_study(study, data, backends, report)
        summary, files = write_results(study, data, rows, statuses, folder)
    console = output()
    tables.show(console, summary.cells)
    for where, errors in failures.items():
        console.print(f"{where}: {len(errors)} units failed, the first at {errors[0]}")
    if summary.n_misordered:
        console.print(
            f"E is no order of truth in {summary.n_misordered} of {len(summary.cells)} rows: it "
            "falls again for atoms with P below 1/e; summary.csv has mean_surprisal and "
            "expected_precision."
        )
    console.print(f"{folder}: {', '.join(file.name for file in files)}", soft_wrap=True)
    remarks.print(f"{total:,} units in {duration(time.perf_counter() - start)}")
