"""Runs of studies, from configuration to tables, figures and findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_origin

from pydantic import Field

from experiments.findings.findings import Findings
from experiments.findings.table import Column, Table, columns_as, data_frame
from experiments.findings.text import ABSENT, duration, in_sample_remark
from experiments.findings.venues import VENUE_MEANING
from experiments.progress import watcher
from experiments.settings import USUAL, NewNames, Option, front_door, option_of
from experiments.settings.cells import CellSettings, chosen_cells
from experiments.settings.conventions import ConventionSettings
from experiments.settings.limits import DaskAddress, DryRun
from factormodels.errors import InputError, LimitReachedError
from factormodels.io.source.files import results_folder
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd

    from experiments.networks.design import NetworkDesign
    from experiments.study.outputs import Results
    from experiments.study.parts import FinishedUnits
    from experiments.study.prepared.selections import Selections
    from experiments.study.reading import Configuration, LoadedStudy, Overrides, RawStudy
    from experiments.study.runner import StudyDesign, UnitFailure


class RunSettings(CellSettings, ConventionSettings):
    """Run.

    Options of `run`.
    """

    writes_several_files = True

    usual_output: ClassVar = frozenset({"rename", "venue"})

    out: Annotated[Path | None, Option("DIR", command_line=False, writes=True)] = None
    """Write everything to this folder; results/STUDY by default."""

    data: Annotated[Path | None, Option("FILE")] = None
    """Responses for an analysis instead of the embedded ones, such as FActScore's ChatGPT.jsonl;
    for a study of networks, an additional network, folder or pattern to measure."""

    venue: Annotated[
        str | None, Field(description=VENUE_MEANING), Option("NAME", command_line=False)
    ] = None

    rename: Annotated[NewNames, Option(command_line=False)] = Field(default_factory=dict)
    """Replace a name in tables, figures and the page; data files keep it. Repeatable."""

    resume: Annotated[bool, USUAL] = False
    """Continue the run in the folder; finished units are kept."""

    retry_failed: bool = False
    """Continue, and repeat the units that failed."""

    overwrite: Annotated[bool, USUAL] = False
    """Discard the run in the folder, if there is one."""

    workers: Annotated[int | None, Field(ge=1), Option("N", usual=True)] = None
    """Number of processes; 1 means this process only. By default the run starts in this process,
    and a long run continues with one process per processor."""

    dask: DaskAddress = None

    dry_run: DryRun = False

    every_cell: bool = False
    """Show a row for every cell, even if posteriors agree."""

    @classmethod
    def instead_of(cls, option: str, value: str) -> str:
        """Name the key of a study that sets what other commands have as an option."""
        from experiments.settings.backend_settings import backends_with
        from experiments.study.config import Study

        key = option.replace("-", "_")
        if key in Study.model_fields:
            a_list = get_origin(Study.model_fields[key].annotation) is tuple
            given = f"[{value}]" if a_list and not value.startswith("[") else value
            return f"it is a key of studies; write '{key}={given}'"
        if have := backends_with(option):
            choice = f"{{backend: {have[0]}, settings: {{{key}: {value}}}}}"
            return f"it is a setting of {', '.join(have)}; write 'backends=[{choice}]'"
        return ""


@front_door
def run(
    config: Configuration | LoadedStudy | None = None,
    overrides: Overrides = (),
    *,
    settings: RunSettings,
) -> Findings:
    """Run a study: datasets x variants x encodings x backends over all responses.

    Relation models can find relations in the texts, and assessors can judge claims by prompts, for
    comparison with the backends. A language model answers each question once, before the run; its
    answers are cached.

    Writes tidy rows (Parquet and CSV), a summary, tables for LaTeX and Markdown, reliability
    diagrams, a page (HTML) and a manifest to --out, or results/STUDY: all files or none. Then shows
    the summary, in which cells with equal posteriors share a row, with a few sentences on the
    results. If a backend cannot answer a response, the error is recorded, the run continues, and
    the exit code is 1. Finished units are kept: --resume continues a run that was interrupted or
    killed, with the same tables as an uninterrupted run; --retry-failed also repeats failed units.
    A study can also learn priors, and select the atoms that count. Values of overrides are parsed
    as YAML.

    A study whose datasets are networks (UAI, BIF, or drawn) compares backends on them: errors
    against reference files or an exact answer, certified brackets, time and memory. Measurements
    are saved one by one, and --resume continues after the last.

    A study with the key analysis runs an analysis instead, such as dataset statistics. It writes
    tables and figures of its own, with a manifest.

    Examples::

        run("compare")
        run("compare", ["variants=[FR1]", "backends=[exact, lbp]"])
        run("compare", ["backends[1].settings.damping=0.3"], out="damped")
        run("my-study.yaml", ["strengths=[0.5, 1]"], dry_run=True)
        run("my-study.yaml", workers=8, resume=True)
        run("my-study.yaml", ["relation_models=[recorded, lexical]"])
        run("my-study.yaml", backend="exact", variant=["FR1", "FR2"])
        run("my-study.yaml", dask="tcp://head:8786")
        run("bench/inference", data="networks/*.uai")

    Args:
        config: A YAML file, or the name of an embedded study (`factormodels list studies` shows
            them). In Python also a dict with a study's keys, or the result of `load_study`.
        overrides: KEY=VALUE replaces a value of the study, as in variants=[FR1]. In
            Python, also a dict from key to value.
        settings: options of the run.

    Returns:
        Tables `cells`, with the measures of each cell, and `tests`. Further tables are computed on
        demand. `frame` has a row per claim and cell (response, claim, text, p, label, and the
        columns that distinguish cells), which `calibration.score` accepts. `claims` adds the status
        of the answer and the selections that keep the claim. `rows` has every column of
        rows.parquet, and `summary` a row per cell with every measure. A study of networks has
        `accuracy`, `costs` and `networks`, with a row per measurement, and the main numbers in
        `frame`. An analysis has its own tables and figures.

    Raises:
        InputError: for an invalid key or value, invalid data, or a folder with another run.
        MissingDependencyError: if a library for learning or selection is not installed.
        WorkerError: if worker processes cannot run the units.
    """
    from experiments.study.reading import (
        LoadedStudy,
        is_analysis,
        is_of_networks,
        read_raw,
        validated,
    )

    if config is None:
        raise InputError(
            "no study is named; give a YAML file, or an embedded study from `factormodels list "
            "studies`"
        )
    # Contradictory options are refused before anything is read.
    if (settings.resume or settings.retry_failed) and settings.overwrite:
        wish = "--resume" if settings.resume else "--retry-failed"
        raise InputError(f"{wish} continues a run and --overwrite discards it; give one of them")
    if settings.workers is not None and settings.dask is not None:
        raise InputError("--dask uses the workers of its cluster; leave --workers out")
    if isinstance(config, LoadedStudy):
        if overrides or _declared(settings):
            raise InputError("a loaded study takes no overrides; pass them to load_study")
        return _units(config, settings)
    raw = read_raw(config, overrides)
    declared = _declared(settings)
    if declared:
        raw = read_raw(config, {**_by_place(overrides), **declared})
    if is_analysis(raw):
        return _analysis(raw, settings)
    if is_of_networks(raw):
        return _networks(raw, settings)
    if settings.data is not None:
        raise InputError(
            f"--data {settings.data}: a study of claims takes its data from the key datasets; "
            "leave --data out and give datasets='[{name: mine, path: FILE}]'"
        )
    return _units(validated(raw), settings)


def _declared(settings: RunSettings) -> dict[str, Any]:
    """Overrides of the study's keys from options, by path."""
    keys_of_cells = {name: getattr(settings, name) for name in ("k", "unlabeled")}
    declared = {"venue": settings.venue, "rename": settings.rename or None, **keys_of_cells}
    for name in ConventionSettings.model_fields:
        if name not in keys_of_cells:
            declared[f"conventions.{name}"] = getattr(settings, name)
    return {key: value for key, value in declared.items() if value is not None}


def _by_place(overrides: Overrides) -> dict[str, Any]:
    from factormodels.io.yaml import parse_assignment

    if isinstance(overrides, dict):
        return dict(overrides)
    return dict(parse_assignment(text, f"override {text!r}") for text in overrides)


def _analysis(raw: RawStudy, settings: RunSettings) -> Findings:
    """Run a study that requests an analysis."""
    from experiments.analyses.study import load_analysis, run_analysis, takes_data
    from experiments.study.files import study_folder

    of_units = (*CellSettings.model_fields, *ConventionSettings.model_fields)
    for name in ("resume", "workers", "dask", "retry_failed", *of_units):
        if getattr(settings, name):
            option = option_of(RunSettings, name).name
            raise InputError(
                f"--{option} applies to studies of claims, and this is an analysis; leave it out"
            )
    loaded = load_analysis(raw)
    if settings.data is not None and not takes_data(loaded):
        raise InputError(
            f"--data {settings.data}: the analysis {loaded.analysis.name} does not use that "
            "option; leave it out"
        )
    folder = study_folder(loaded.study.study, settings.out)
    if settings.dry_run:
        sentences = (f"{loaded.study.study}: {loaded.analysis.summary}", f"results go to {folder}")
        study = data_frame({"study": [loaded.study.study]})
        tables = {"study": Table(study, columns_as("study"), "The study.")}
        return Findings(loaded.study.study, sentences, tables, unshown=("study",), written=())
    with results_folder(folder):
        artifacts, files = run_analysis(loaded, folder, watcher().steps, settings.data)
    return Findings(
        *(loaded.study.study, artifacts.remarks, artifacts.tables),
        draw=lambda: artifacts.figures,
        written=files,
    )


_MEASURED = (
    *("dataset", "network", "backend", "seed", "status", "max_error", "log_z", "log_z_kind"),
    *("log_z_error", "lower", "upper", "seconds", "peak_bytes"),
)
"""First measurement of a backend on a network."""


def _networks(raw: RawStudy, settings: RunSettings) -> Findings:
    """Run a study that compares backends on networks."""
    from experiments.networks.config import load_networks
    from experiments.networks.design import design
    from experiments.networks.runner import run_networks
    from experiments.pages.networks_page import write_networks_page
    from experiments.study.files import study_folder

    of_claims = set(CellSettings.model_fields) - {"dataset", "backend", "seed"}
    for name in ("dask", "every_cell", *of_claims, *ConventionSettings.model_fields):
        if getattr(settings, name):
            option = option_of(RunSettings, name).name
            raise InputError(
                f"--{option} applies to studies of claims, and this is a study of networks; leave "
                "it out"
            )
    loaded = load_networks(raw, settings.data)
    folder = study_folder(loaded.study.study, settings.out)
    planned = design(loaded)
    if settings.dry_run:
        return _networks_plan(planned, folder)
    try:
        results = run_networks(
            planned,
            folder,
            workers=settings.workers,
            chosen=chosen_cells(settings),
            resume=settings.resume or settings.retry_failed,
            overwrite=settings.overwrite,
            retry_failed=settings.retry_failed,
            write_page=write_networks_page,
        )
    except (KeyboardInterrupt, OSError):
        watcher().notice(f"measurements are kept in {folder}; continue with --resume")
        raise
    artifacts = results.artifacts
    return Findings(
        source=loaded.study.study,
        sentences=artifacts.remarks,
        tables=artifacts.tables,
        unshown=("networks",),
        draw=lambda: artifacts.figures,
        incomplete=results.failed,
        frames={"rows": lambda: results.measured},
        written=results.files,
        tidy=lambda: results.measured[[*_MEASURED]],
    )


def _networks_plan(planned: NetworkDesign, folder: Path) -> Findings:
    """Planned networks and measurements of a study."""
    counts: dict[str, list[int]] = {}
    for source in planned.sources:
        backends = sum(cell.dataset == source.dataset for cell in planned.cells)
        of_dataset = counts.setdefault(source.dataset, [0, 0, backends])
        of_dataset[0] += 1
        of_dataset[1] = max(of_dataset[1], source.variables)
    frame = data_frame(
        [
            dict(zip(("networks", "variables", "backends"), each, strict=True))
            for each in counts.values()
        ]
    ).assign(dataset=list(counts))
    columns = columns_as("dataset | networks:0 | variables:0 most variables | backends:0")
    absent = {cell.algorithm.title: cell.algorithm.error for cell in planned.cells}
    total = len(planned.measurements())
    return Findings(
        source=planned.loaded.study.study,
        sentences=(
            f"{counted(total, 'measurement')} of {counted(len(planned.sources), 'network')}; "
            f"results go to {folder}",
            *(f"{title} is absent: {why}." for title, why in absent.items() if why),
        ),
        tables={"networks": Table(frame, columns, "Networks")},
        written=(),
    )


def _units(loaded: LoadedStudy, settings: RunSettings) -> Findings:
    """Run a study that compares backends, relation models or assessors."""
    from experiments.asking.failed_calls import with_failed_calls
    from experiments.asking.ledger_table import cost_tables
    from experiments.pages.study_page import write_study_page
    from experiments.parallel_map import WorkerError, processes
    from experiments.study.files import study_folder
    from experiments.study.report.frame import long_frame
    from experiments.study.rows import read_rows
    from experiments.study.runner import bounded_of, design, failures_of, run_study
    from factormodels.extraction.language_model.accounting import Ledger

    folder, ledger, watched = study_folder(loaded.study.study, settings.out), Ledger(), watcher()
    several = settings.workers if not settings.dry_run and (settings.workers or 1) > 1 else None
    with nullcontext() if several is None else processes(several) as workers:
        planned = design(loaded, workers)
        if settings.dry_run:
            return _plan(planned, folder, settings)
        try:
            results, finished = run_study(
                planned,
                folder,
                workers=workers or settings.workers,
                dask=settings.dask,
                chosen=chosen_cells(settings),
                resume=settings.resume or settings.retry_failed,
                overwrite=settings.overwrite,
                retry_failed=settings.retry_failed,
                monitor=partial(watched.units, loaded.study.study),
                text_monitor=partial(watched.texts, loaded.study.study, ledger),
                ledger=ledger,
                notice=watched.notice,
                write_page=partial(write_study_page, watch=partial(watched.steps, "responses")),
            )
        # Errors that end a run and are not the user's mistake: report that finished units are kept.
        except (KeyboardInterrupt, WorkerError, OSError, LimitReachedError) as error:
            if isinstance(error, LimitReachedError):
                watched.limit_reached(ledger)
            _tell_kept(planned, folder)
            raise
    failures = failures_of(planned, finished.tables())
    tables = _tables(planned, results, settings)
    tables |= cost_tables(ledger)
    bounded = (
        f"{where}: {counted(count, 'unit')} would take long to solve exactly: log Z is bounded, "
        "and posteriors are estimates; the column answered_by of the rows names the algorithm"
        for where, count in bounded_of(planned, finished).items()
    )
    calls = {
        f"{use.model.title}, {stage}": made
        for use in results.texts
        for stage, made in use.calls.items()
    }

    def claims() -> pd.DataFrame:
        return long_frame(read_rows(folder), planned.data)

    findings = Findings(
        source=loaded.study.study,
        sentences=(
            *_sentences(planned, results, finished, failures, tables["cells"].note),
            *bounded,
        ),
        tables=tables,
        incomplete=any(not failure.cell.algorithm.error for failure in failures),
        frames={
            "summary": lambda: results.summary.cells,
            "rows": lambda: read_rows(folder),
            "claims": claims,
        },
        written=results.files,
        tidy=lambda: claims().drop(columns=["selections", "status"]),
    )
    return with_failed_calls(findings.presented(loaded.study.rename), calls)


def _tables(planned: StudyDesign, results: Results, settings: RunSettings) -> dict[str, Table]:
    """Tables of tests and of cells with their measures; cells with equal posteriors share a row."""
    from experiments.study.cells import absent_backends
    from experiments.study.report.tables import (
        cells_table,
        conventions_note,
        means_table,
        short_table,
        significance_table,
    )

    cells, study = results.summary.cells, planned.study
    caption = study.description or study.study
    if settings.every_cell or len(results.groups) == len(cells):
        absent = absent_backends(planned.cells)
        shown = cells_table(
            *(cells, caption, study.measures, absent),
            times=True,
            conventions=conventions_note(study),
        )
    else:
        shown = short_table(
            *(cells, results.groups, caption, study.measures),
            times=True,
            conventions=conventions_note(study),
        )
    tables = {"cells": shown}
    if len(results.means):
        tables["means"] = means_table(results.means, study, caption)
        if study.study == "factreasoner":
            from experiments.analyses.published import factreasoner_tables

            tables["published"] = factreasoner_tables(results.means, study.variants)
    if study.significance.pairs:
        tables["tests"] = significance_table(results.tests, study)
    return tables


def _sentences(
    planned: StudyDesign,
    results: Results,
    finished: FinishedUnits,
    failures: Sequence[UnitFailure],
    note: str,
) -> Iterator[str]:
    """Sentences on missing and failed results that the table's note omits, and on the findings."""
    from experiments.asking.relation_correction import RelationCorrection
    from experiments.study.cells import absent_backends
    from experiments.study.report.sentences import sentences

    cells, absent = results.summary.cells, absent_backends(planned.cells)
    for label, why in absent.items():
        # The note of a table with every cell says so.
        if why not in note:
            yield f"{label} is absent: {why}."
    for use in results.texts:
        facts = use.facts
        if "probe" in facts:
            yield f"{use.model.title}: {facts['probe']['remark']}"
        if "in_sample" in facts:
            yield in_sample_remark(facts["in_sample"])
        if isinstance(use.model.correction, RelationCorrection) and "judge" in facts:
            yield from use.model.correction.remarks(facts["judge"])
        if facts["missing"] or facts["failed"]:
            yield (
                f"{use.model.title}: {facts['missing']:,} of {facts['asked']:,} answers missing, "
                f"{counted(facts['failed'], 'response')} without any; the first: {use.reason}"
            )
    by_cell: dict[str, list[UnitFailure]] = {}
    for failure in failures:
        cell = failure.cell
        if cell.algorithm.title not in absent:
            by_cell.setdefault(f"{cell.algorithm.title} on {cell.dataset}", []).append(failure)
    for where, failed in by_cell.items():
        first = failed[0]
        yield (
            f"{where}: {counted(len(failed), 'unit')} failed, the first at {first.response}: "
            f"{first.error}"
        )
    yield from _unsettled(planned, results.selections)
    missing = sum(planned.sizes) - finished.n_units
    if missing:
        yield f"{counted(missing, 'unit')} not run yet; continue with --resume"
    if results.summary.n_misordered:
        yield (
            f"E does not rank by truth in {results.summary.n_misordered} of "
            f"{counted(len(cells), 'row')}, because E decreases for atoms with P below 1/e; use "
            "mean_surprisal or expected_precision in summary.csv."
        )
    yield from sentences(cells, results.groups)
    yield from results.remarks


def _unsettled(planned: StudyDesign, selections: Selections) -> Iterator[str]:
    """Sentences on responses whose selection failed or was not completed."""
    from experiments.columns.cell_names import FAILED

    for dataset, title in selections.selected:
        answers = selections.selected[dataset, title]
        graphs = next(each.graphs for each in planned.data if each.name == dataset)
        for status, ending in (
            (FAILED, "could not be selected from"),
            ("limit", "reached the time limit of the selection"),
        ):
            places = [at for at, answer in enumerate(answers) if answer.status == status]
            if places:
                first = answers[places[0]]
                why = first.error or f"a better set weighs at most {first.gap:g} more"
                yield (
                    f"{title} of {dataset}: {counted(len(places), 'response')} {ending}, the first "
                    f"{graphs[places[0]].id}: {why}"
                )


def _tell_kept(planned: StudyDesign, folder: Path) -> None:
    """Report the number of kept units of a run that ended early, if any."""
    from experiments.study.parts import n_answers
    from experiments.study.runner import n_finished

    # Another error is being raised; this report must not hide it.
    with suppress(InputError, OSError):
        kept, answers = sum(n_finished(folder, planned)), n_answers(folder)
        if kept or answers:
            texts = f" and {answers:,} answers about texts" if answers else ""
            watcher().notice(
                f"{folder}: {kept:,} of {counted(sum(planned.sizes), 'unit')}{texts} are kept; "
                "continue with --resume"
            )


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


def _plan(planned: StudyDesign, folder: Path, settings: RunSettings) -> Findings:
    """Numbers of units and of finished units of a run, by cell.

    Raises:
        InputError: if the folder has another run, or no cell is chosen.
    """
    from experiments.columns.cell_names import shown
    from experiments.study.cell_choice import select
    from experiments.study.predicted_inference import predicted_inference
    from experiments.study.runner import n_finished

    wanted = select(planned.cells, chosen_cells(settings))
    sizes, finished = planned.sizes, n_finished(folder, planned)
    several = len(planned.study.relation_models) > 1
    keys = {name: title for name, title in _TITLES.items() if several or name != "relation_model"}
    costs = predicted_inference(planned.data, [planned.cells[position] for position in wanted])
    rows = []
    for position, cost in zip(wanted, costs, strict=True):
        key = planned.cells[position].key()
        # Format as in a study: 1, not 1.0.
        key["strength"] = f"{key['strength']:g}"
        rows.append(
            {name: shown(str(key[name])) for name in keys}
            | {"units": sizes[position], "finished": finished[position]}
            | {"width": ABSENT if cost is None else str(cost.induced_width)}
            | {"seconds": ABSENT if cost is None else duration(cost.seconds)}
        )
    columns = (
        *(Column(name, title) for name, title in keys.items()),
        *columns_as("units:0 | finished:0 | width> induced width | seconds> exact in"),
    )
    return Findings(
        source=planned.study.study,
        sentences=tuple(_planned(planned, folder, wanted, finished)),
        tables={"cells": Table(data_frame(rows), columns, "Units and costs of each cell.")},
        written=(),
    )


def _planned(
    planned: StudyDesign, folder: Path, wanted: Sequence[int], finished: Sequence[int]
) -> Iterable[str]:
    """Describe the work of a run in words."""
    import numpy as np

    from experiments.study.predicted_inference import MOST_PREDICTED
    from experiments.study.prepared.text_models import n_asked, probe_calls_of

    for dataset in planned.data:
        yield (
            f"{dataset.name}: {counted(len(dataset.graphs), 'response')}, "
            f"{counted(dataset.n_atoms, 'atom')}, {dataset.n_labeled:,} labeled"
        )
    of = "the response that takes longest"
    if any(len(dataset.graphs) > MOST_PREDICTED for dataset in planned.data):
        of += f" of the first {MOST_PREDICTED:,}"
    yield f"induced width, exact in: estimates for {of}; {ABSENT} if the run finds the relations"
    total, done = (sum(each[at] for at in wanted) for each in (planned.sizes, finished))
    yield (
        f"{counted(total, 'unit')} in {counted(len(wanted), 'cell')}, {done:,} finished; "
        f"results go to {folder}"
    )
    # Count as if no unit were finished, for the size of the whole run; known answers are not asked
    # again.
    nothing = [np.zeros(size, np.bool_) for size in planned.sizes]
    requests = planned.text_requests(wanted, nothing)
    for title, (asked, what) in n_asked(requests, planned.data, planned.models).items():
        yield f"{title}: {counted(asked, what)} to be asked about, once"
    if calls := probe_calls_of(planned.loaded.study, planned.models):
        yield f"{counted(calls, 'call')} of the probe first; probe: false leaves them out"
    for question in planned.prior_requests:
        folds = counted(question.learned.folds, "fold")
        yield f"learned before the units: {question.title}, in {folds}"
    for algorithm in planned.algorithms:
        if algorithm.error:
            yield f"{algorithm.title} will fail: {algorithm.error}"
