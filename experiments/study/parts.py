"""The folder of a run: its plan, its finished parts, and the lock.

Finished units are Parquet files, ``parts/<cell>/<number>.parquet``: the results of some responses
in a cell, which is identified by its number in the study. A part is written to a temporary file and
renamed, so that it exists as a whole or not at all; a run continues from the existing parts. If a
response is in two parts, as after a retry, the part with the larger number counts. Each part names
its plan. The plan itself and one-time results are in the folder's store, whose lock protects the
folder.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from experiments.study.manifest import code_identity
from experiments.study.units import schema
from factormodels.errors import InputError
from factormodels.io.json import plain_hash
from factormodels.io.source.files import errors_naming, prepare_folder, remove_empty
from factormodels.io.store.results import (
    STORE,
    ResultStore,
    open_store,
    read_store,
    remove_store,
)
from factormodels.io.tables.arrow import ParquetGroups
from factormodels.nouns import counted

logger = logging.getLogger(__name__)

PARTS = "parts"
"""Folder of the finished units, within the folder of the results."""

PLAN = "plan"

PRIORS, SELECTIONS, TEXTS = "priors", "selections", "texts"
"""Kinds of content that a run computes once, besides its units."""

NETWORKS = "networks"
"""Kind of the measurements of a study of networks, which are its units."""

MEND = "start over with --overwrite"

_LEFT_OUT = "it is left out, and its units are done again"

_PLAN_OF_PART = b"plan"
"""Metadata key of a part for the hash of its plan."""

_EARLIER_UNITS = "units"
"""Kinds of content in stores before parts existed."""

_KEPT_UNITS = 250_000
"""Largest number of units kept in memory: at about 330 bytes per unit, 80 MB."""

_DIGITS = 8
"""Number of digits in part names, so that names sort like numbers."""


@dataclass(frozen=True)
class RunPlan:
    """Plan of a run; equal plans have equal posteriors.

    Attributes:
        study: the part of the study that posteriors depend on, as plain data.
        cells: every cell with its settings.
        data: hashes of the data by name.
        models: facts that the answers of text models depend on, by path in the study.
    """

    study: dict[str, Any]
    cells: list[dict[str, Any]]
    data: dict[str, str]
    models: dict[str, Any]

    @property
    def sha256(self) -> str:
        """Its hash."""
        return plain_hash(vars(self))


@dataclass(frozen=True, eq=False)
class FinishedUnits:
    """The finished units of a run; cells of large runs are read on request.

    Attributes:
        counts: int64 (n_cells,), number of finished units of each cell.
        read: reads the units of a cell, with `experiments.study.units.schema`, in the order of
            responses.
    """

    counts: NDArray[np.int64]
    read: Callable[[int], pa.Table]
    _kept: dict[int, pa.Table] = field(default_factory=dict, repr=False)

    @property
    def n_units(self) -> int:
        """Number of finished units."""
        return int(self.counts.sum())

    def of_cell(self, cell: int) -> pa.Table:
        """The finished units of a cell, in the order of responses."""
        if self.n_units > _KEPT_UNITS:
            return self.read(cell)
        if cell not in self._kept:
            self._kept[cell] = self.read(cell)
        return self._kept[cell]

    def responses(self, cell: int) -> NDArray[np.int64]:
        """The indices of the responses of a cell's units, int64 (n_units,)."""
        return np.asarray(self.of_cell(cell)["response"].to_numpy(), dtype=np.int64)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the units of each nonempty cell."""
        return map(self.of_cell, np.flatnonzero(self.counts).tolist())

    @cached_property
    def statuses(self) -> dict[str, int]:
        """Number of units by their status."""
        counts: Counter[str] = Counter()
        for table in self.tables():
            pairs = table["status"].value_counts().to_pylist()
            counts.update({pair["values"]: pair["counts"] for pair in pairs})
        return dict(sorted(counts.items()))


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A run whose folder this process has locked.

    Attributes:
        store: store of one-time results.
        folder: the folder of the parts.
        plan: the hash of its plan.
        finished: the units that were finished when the run was opened.
        code: versions of the code that computed its units, in order.
    """

    store: ResultStore
    folder: Path
    plan: str
    finished: FinishedUnits
    code: tuple[str, ...]
    _next: dict[int, int] = field(default_factory=dict, repr=False)

    def keep(self, units: pa.Table) -> None:
        """Write finished units, a part per cell.

        Raises:
            OSError: if a part cannot be written, as on a full disk.
        """
        cells = np.asarray(units["cell"].to_numpy())
        for cell in np.unique(cells).tolist():
            of_cell = units if (cells == cell).all() else units.filter(pa.array(cells == cell))
            write_part(of_cell, self.folder / str(cell), self._number(cell), self.plan)

    def _number(self, cell: int) -> int:
        """The number of the next part of a cell."""
        if cell not in self._next:
            numbers = [number for number, _ in _parts(self.folder / str(cell))]
            self._next[cell] = max(numbers, default=-1) + 1
        self._next[cell] += 1
        return self._next[cell] - 1


def write_part(units: pa.Table, folder: Path, number: int, plan: str) -> None:
    """Write a part as a whole, or not at all.

    Args:
        units: finished units of one cell.
        folder: the folder of the cell.
        number: the number of the part.
        plan: the hash of its plan.
    """
    path = folder / f"{number:0{_DIGITS}}.parquet"
    temporary = path.with_suffix(".unfinished")
    with errors_naming(path, temporary):
        folder.mkdir(parents=True, exist_ok=True)
        # Do not wait for the disk: a part torn by a power loss is detected as damaged and
        # recomputed.
        pq.write_table(
            units.sort_by("response").replace_schema_metadata({_PLAN_OF_PART: plan}),
            temporary,
            compression="zstd",
            # Checksums detect damage on the disk.
            write_page_checksum=True,
        )
        temporary.replace(path)


def _parts(folder: Path) -> list[tuple[int, Path]]:
    """The parts of a cell with their numbers, in order."""
    files = folder.iterdir() if folder.is_dir() else ()
    return sorted(
        (int(file.stem), file)
        for file in files
        if re.fullmatch(rf"\d{{{_DIGITS}}}\.parquet", file.name)
    )


@contextmanager
def open_run(
    folder: Path,
    plan: RunPlan,
    sizes: Sequence[int],
    *,
    resume: bool,
    overwrite: bool,
    n_measurements: int = 0,
) -> Iterator[OpenRun]:
    """Open the folder of a run; if the block fails and nothing is finished, leave no trace.

    Args:
        folder: the folder of the results.
        plan: the plan of the run.
        sizes: number of responses of every cell's dataset.
        resume: continue with finished units.
        overwrite: discard any run in the folder.
        n_measurements: number of measurements of a study of networks.

    Raises:
        InputError: if the folder cannot be written, another run is using it, or it has units that
            this run may neither continue nor discard.
    """
    # If the run fails, remove only folders that it created.
    absent = [path for path in (folder, *folder.parents) if not path.exists()]
    path, parts = folder / STORE, folder / PARTS
    try:
        # Check before creating anything, so that a refusal leaves the folder unchanged.
        if not overwrite:
            with read_store(path, MEND) as before:
                _refuse_another(before, plan)
        prepare_folder(folder)
        # The lock on the store protects the whole folder during everything below.
        with open_store(path, MEND, anew=overwrite) as store:
            if overwrite:
                _remove_parts(parts)
            try:
                if not resume:
                    _refuse_unmeasured(store, n_measurements)
                yield _begun(store, parts, plan, sizes, resume=resume)
            except BaseException as error:
                # Correcting invalid input may change the plan, so fits alone do not reserve the
                # folder.
                kept = (TEXTS, NETWORKS, *(() if isinstance(error, InputError) else (PRIORS,)))
                if not any(parts.glob("*/*.parquet")):
                    _remove_parts(parts)
                    if not any(store.n_records(kind) for kind in kept):
                        remove_store(path)
                raise
    except BaseException:
        remove_empty(absent)
        raise


def _begun(
    store: ResultStore, parts: Path, plan: RunPlan, sizes: Sequence[int], *, resume: bool
) -> OpenRun:
    """Return a run with an open store, and its finished units that may be kept."""
    finished = finished_units(parts, plan.sha256, sizes, remove_damaged=True)
    if not resume:
        _refuse_unfinished(store, finished, sizes)
        # Nothing is lost: the folder has no run, or a complete one.
        _remove_parts(parts)
        store.clear()
        finished = finished_units(parts, plan.sha256, sizes)
    # Earlier versions of the code matter only if their units are kept.
    n_kept = finished.n_units + store.n_records(NETWORKS)
    code = tuple(_plan(store).get("code", ())) if n_kept else ()
    current = code_identity()
    code = code if current in code else (*code, current)
    # Write the plan before the first unit, so that a run of another study can name the differences.
    store.put(PLAN, PLAN, {**vars(plan), "sha256": plan.sha256, "code": code})
    return OpenRun(store, parts, plan.sha256, finished, code)


def _remove_parts(folder: Path) -> None:
    """Remove all parts."""
    if folder.is_symlink() or not folder.exists():
        return
    with errors_naming(folder):
        shutil.rmtree(folder)


def read_finished(folder: Path, plan: RunPlan, sizes: Sequence[int]) -> FinishedUnits:
    """The units of a plan that a folder contains.

    Args:
        folder: the folder of the results.
        plan: the plan.
        sizes: number of responses of every cell's dataset.

    Raises:
        InputError: if the folder holds another run, or its store is damaged.
    """
    with read_store(folder / STORE, MEND) as store:
        _refuse_another(store, plan)
    return finished_units(folder / PARTS, plan.sha256, sizes)


def read_kept(folder: Path, kind: str) -> dict[str, Any]:
    """One-time results of a run, by key.

    Args:
        folder: the folder of the results.
        kind: `PRIORS`, `SELECTIONS` or `TEXTS`.

    Raises:
        InputError: if the content is damaged, or from another version.
    """
    with read_store(folder / STORE, MEND) as store:
        return dict(store.items(kind))


def n_answers(folder: Path) -> int:
    """Number of text models' answers in a folder."""
    with read_store(folder / STORE, MEND) as store:
        return store.n_records(TEXTS)


def finished_units(
    folder: Path, plan: str, sizes: Sequence[int], *, remove_damaged: bool = False
) -> FinishedUnits:
    """The finished units of a folder of parts; a damaged part is left out, with a warning.

    Args:
        folder: the folder of the parts.
        plan: the hash of their plan.
        sizes: number of responses of every cell's dataset.
        remove_damaged: True to remove damaged parts.

    Raises:
        InputError: if a part is of another plan.
    """
    paths: list[list[Path]] = []
    counts = np.zeros(len(sizes), dtype=np.int64)
    tables: dict[int, pa.Table] | None = {}
    for cell, size in enumerate(sizes):
        whole: list[tuple[Path, pa.Table]] = []
        for _, path in _parts(folder / str(cell)):
            try:
                whole.append((path, _read_part(path, plan, cell, size)))
            except _OtherPlanError:
                raise InputError(
                    f"{folder}: it has units of another study, or of another version; {MEND}"
                ) from None
            except InputError as error:
                logger.warning("%s", error)
                if remove_damaged:
                    path.unlink()
        paths.append([path for path, _ in whole])
        units = _latest([table for _, table in whole])
        counts[cell] = units.num_rows
        if tables is not None:
            tables[cell] = units
            if counts.sum() > _KEPT_UNITS:
                tables = None
    if tables is not None:
        return FinishedUnits(counts, tables.__getitem__)

    def read(cell: int) -> pa.Table:
        return _latest([_read_part(path, plan, cell, sizes[cell]) for path in paths[cell]])

    return FinishedUnits(counts, read)


def units_of(tables: Sequence[pa.Table], n_cells: int) -> FinishedUnits:
    """Finished units that are not in a folder."""
    every = pa.concat_tables(tables) if tables else schema().empty_table()
    cells = np.asarray(every["cell"].to_numpy())
    by_cell = [_latest([every.filter(pa.array(cells == cell))]) for cell in range(n_cells)]
    counts = np.array([table.num_rows for table in by_cell], dtype=np.int64)
    return FinishedUnits(counts, by_cell.__getitem__)


class _OtherPlanError(InputError):
    """A part of another plan."""


def _read_part(path: Path, plan: str, cell: int, size: int) -> pa.Table:
    """The units of a part.

    Raises:
        InputError: if it is damaged, or of another plan.
    """
    part = ParquetGroups(path, _LEFT_OUT)
    if (part.schema.metadata or {}).get(_PLAN_OF_PART) != plan.encode():
        raise _OtherPlanError(f"{path}: it is of another study")
    with part.undamaged():
        units = part.read().cast(schema())
        responses = np.asarray(units["response"].to_numpy())
        if not ((units["cell"].to_numpy() == cell).all() and (responses < size).all()):
            raise ValueError("a unit does not belong to this study")
    return units


def _latest(parts: Sequence[pa.Table]) -> pa.Table:
    """The units of a cell's parts in the order of responses; the last part wins."""
    if not parts:
        return schema().empty_table()
    units = pa.concat_tables(parts)
    responses = np.asarray(units["response"].to_numpy())
    if (responses[1:] > responses[:-1]).all():
        return units
    # Among equal responses the last written comes last.
    order = np.argsort(responses, kind="stable")
    last = np.append(np.diff(responses[order]) != 0, True)
    return units.take(pa.array(order[last])).combine_chunks()


def _refuse_another(store: ResultStore, plan: RunPlan) -> None:
    before = _plan(store)
    if store.n_records(_EARLIER_UNITS):
        raise InputError(
            f"{store.path.parent}: the folder has a run of an earlier version, with its units in "
            f"{STORE}; give another --out, or {MEND}"
        )
    if before and before.get("sha256") != plan.sha256:
        raise InputError(
            f"{store.path.parent}: the folder has a run that differs in "
            f"{_differences(before, plan)}; give another --out, or discard that run with "
            "--overwrite"
        )


def _differences(before: Mapping[str, Any], plan: RunPlan) -> str:
    """Keys of the study, settings or data in which two plans differ."""
    study = before.get("study", {})
    # A changed key also changes cells and models, so name those only if no key explains the
    # difference.
    keys = [key for key in {**study, **plan.study} if study.get(key) != plan.study.get(key)]
    if not keys and before.get("cells") != plan.cells:
        keys.append("the settings of its backends")
    models = before.get("models", {})
    if not keys and models != plan.models:
        keys += [key for key, facts in plan.models.items() if models.get(key) != facts]
    data = before.get("data", {})
    changed = [name for name in plan.data if name in data and data[name] != plan.data[name]]
    keys += [f"the content of {name!r}" for name in changed]
    return ", ".join(keys) or "its version"


def _refuse_unfinished(store: ResultStore, finished: FinishedUnits, sizes: Sequence[int]) -> None:
    count, n_texts = finished.n_units, store.n_records(TEXTS)
    if count < sum(sizes) and (count or n_texts):
        answers = f" and {counted(n_texts, 'answer')} about its texts" if n_texts else ""
        raise InputError(
            f"{store.path.parent}: the folder has {count:,} of "
            f"{counted(sum(sizes), 'unit')}{answers} of this study; continue with --resume, or "
            "discard them with --overwrite"
        )


def _refuse_unmeasured(store: ResultStore, n_measurements: int) -> None:
    count = store.n_records(NETWORKS)
    if 0 < count < n_measurements:
        raise InputError(
            f"{store.path.parent}: the folder has {count:,} of "
            f"{counted(n_measurements, 'measurement')} of this study; continue with --resume, or "
            "discard them with --overwrite"
        )


def _plan(store: ResultStore) -> dict[str, Any]:
    """The plan of a store's run; empty for a new store."""
    plan: dict[str, Any] | None = store.value(PLAN, PLAN)
    if plan is None and store.n_records():
        raise InputError(
            f"{store.path}: the plan of its run is damaged, or belongs to an assessment; {MEND}"
        )
    return plan or {}
