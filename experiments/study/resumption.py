"""The folder of a run: what it was begun for, what of it is finished, who may go on with it.

Beside the results stands their store: the plan of the run, its finished units, and what was worked
out once for them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from experiments.study.manifest import code_identity
from experiments.study.units import decode, schema
from factormodels.errors import InputError
from factormodels.io.source.files import prepare_folder, remove_empty
from factormodels.io.store.results import (
    STORE,
    ResultStore,
    open_store,
    read_store,
    remove_store,
)
from factormodels.io.tables.arrow import undamaged
from factormodels.io.tables.long_columns import stored_table
from factormodels.io.yaml import plain_hash
from factormodels.nouns import counted

PLAN, UNITS = "plan", "units"

PRIORS, SELECTIONS, TEXTS = "priors", "selections", "texts"
"""What is worked out once for a run, beside its units."""

MEND = "start anew with --overwrite"


@dataclass(frozen=True)
class RunPlan:
    """What a run computes: equal plans have equal posteriors.

    Attributes:
        study: what the posteriors depend on, as plain data.
        cells: every cell with its settings.
        data: hashes of the data by name.
        models: what the answers of text models depend on, by their place in the study.
    """

    study: dict[str, Any]
    cells: list[dict[str, Any]]
    data: dict[str, str]
    models: dict[str, Any]

    @property
    def sha256(self) -> str:
        """Its hash."""
        return plain_hash(vars(self))


@dataclass(frozen=True)
class FinishedUnits:
    """The finished units of a run, in the order of cells and responses.

    Attributes:
        table: their results, as `experiments.study.units.schema` has them.
        starts: int64 (n_cells + 1,); those of cell c are rows ``starts[c]`` to ``starts[c + 1]``.
    """

    table: pa.Table
    starts: NDArray[np.int64]

    @cached_property
    def responses(self) -> NDArray[np.int64]:
        """The position of every unit's response, int64 (n_units,)."""
        return np.asarray(self.table["response"].to_numpy(), dtype=np.int64)

    def of_cell(self, cell: int) -> slice:
        """The rows of a cell."""
        return slice(int(self.starts[cell]), int(self.starts[cell + 1]))

    def where(self, kept: NDArray[np.bool_]) -> FinishedUnits:
        """The units for which `kept`, bool (n_units,), holds."""
        # before[i] counts the kept ones among the first i units, so indexing it moves the bounds.
        before = np.concatenate([[0], np.cumsum(kept)])
        return FinishedUnits(self.table.filter(pa.array(kept)), before[self.starts])

    def statuses(self) -> dict[str, int]:
        """How many units ended in each way, by name."""
        counts = self.table["status"].value_counts().to_pylist()
        return dict(sorted((count["values"], count["counts"]) for count in counts))


@dataclass(frozen=True)
class OpenRun:
    """A run whose folder is this process's alone.

    Attributes:
        store: where all that is finished goes.
        finished: the units that it held.
        code: versions of the code that its units were computed with, the first one first.
    """

    store: ResultStore
    finished: FinishedUnits
    code: tuple[str, ...]

    def keep(self, units: bytes) -> None:
        """Keep finished units, as `experiments.study.units.encode` writes them."""
        self.store.append(UNITS, units)


@contextmanager
def open_run(
    folder: Path, plan: RunPlan, sizes: Sequence[int], *, resume: bool, overwrite: bool
) -> Iterator[OpenRun]:
    """Open the folder of a run; if the block fails and nothing is finished, leave no trace.

    Args:
        folder: the folder of the results.
        plan: what is to be computed.
        sizes: number of responses of every cell's dataset.
        resume: go on with what is finished.
        overwrite: drop whatever run the folder holds.

    Raises:
        InputError: if the folder cannot be written, another run is at work in it, or it holds
            units that this one neither goes on with nor may drop.
    """
    # Only folders that this run itself creates may be removed if it fails.
    absent = [path for path in (folder, *folder.parents) if not path.exists()]
    path = folder / STORE
    try:
        # Before anything is created, so that a refusal leaves the folder as it was.
        if not overwrite:
            with read_store(path, MEND) as before:
                _refuse_another(before, plan)
        prepare_folder(folder)
        # The lock on the store is the lock on the whole folder; everything below happens under it.
        with open_store(path, MEND, anew=overwrite) as store:
            try:
                yield _begun(store, plan, sizes, resume=resume)
            except BaseException as error:
                # Bad input is to be mended, which may make it another run: then fits are no reason
                # to hold on to the folder.
                kept = (UNITS, TEXTS) if isinstance(error, InputError) else (UNITS, TEXTS, PRIORS)
                if not any(store.n_records(kind) for kind in kept):
                    remove_store(path)
                raise
    except BaseException:
        remove_empty(absent)
        raise


def _begun(store: ResultStore, plan: RunPlan, sizes: Sequence[int], *, resume: bool) -> OpenRun:
    """A run whose store is open, with what of it may be kept."""
    finished = finished_units(store.records(UNITS), sizes, store.path)
    if not resume:
        _refuse_unfinished(store, finished, sizes)
        # Nothing is lost here: the store is empty or that of a complete run.
        store.clear()
        finished = finished_units((), sizes, store.path)
    # Earlier versions of the code matter only if some of their units are kept.
    code = tuple(_plan(store).get("code", ())) if finished.table.num_rows else ()
    current = code_identity()
    code = code if current in code else (*code, current)
    # Written before the first unit: units without their plan could not be told from those of
    # another study.
    store.put(PLAN, PLAN, {**vars(plan), "sha256": plan.sha256, "code": code})
    return OpenRun(store, finished, code)


def read_finished(folder: Path, plan: RunPlan, sizes: Sequence[int]) -> FinishedUnits:
    """The units that a folder holds of a plan.

    Args:
        folder: the folder of the results.
        plan: the plan.
        sizes: number of responses of every cell's dataset.

    Raises:
        InputError: if the folder holds another run, or its store is damaged.
    """
    with read_store(folder / STORE, MEND) as store:
        _refuse_another(store, plan)
        return finished_units(store.records(UNITS), sizes, store.path)


def read_kept(folder: Path, kind: str) -> dict[str, Any]:
    """What is kept beside the units, by key.

    Args:
        folder: the folder of the results.
        kind: `PRIORS`, `SELECTIONS` or `TEXTS`.

    Raises:
        InputError: if it is damaged, or of another version.
    """
    with read_store(folder / STORE, MEND) as store:
        return dict(store.items(kind))


def n_answers(folder: Path) -> int:
    """How many answers of text models a folder holds."""
    with read_store(folder / STORE, MEND) as store:
        return store.n_records(TEXTS)


def finished_units(records: Iterable[bytes], sizes: Sequence[int], place: object) -> FinishedUnits:
    """The finished units of a store; of a unit that was done twice the later result.

    Args:
        records: those of the store.
        sizes: number of responses of every cell's dataset.
        place: what errors call the store.

    Raises:
        InputError: if a record is none of this study's.
    """
    table = stored_table((_decoded(record, place) for record in records), schema())
    cells, responses = (table[name].to_numpy() for name in ("cell", "response"))
    if len(cells) and (cells.max() >= len(sizes) or (responses >= np.asarray(sizes)[cells]).any()):
        raise InputError(f"{place}: it holds units of another study; {MEND}")
    # Sorted by cell, response and place in the store: of equal units the last one was done last.
    order = np.lexsort((responses, cells))
    # A unit is done twice if it failed and was retried; the later result replaces the earlier one.
    same_as_next = (np.diff(cells[order]) == 0) & (np.diff(responses[order]) == 0)
    # Without any unit, `append` still yields one entry; the slice drops it.
    order = order[~np.append(same_as_next, False)[: len(order)]]
    # One bound more than there are cells, so that the last cell's slice is no special case.
    starts = np.searchsorted(cells[order], np.arange(len(sizes) + 1))
    return FinishedUnits(_in_order(table, order), starts.astype(np.int64))


def _decoded(record: bytes, source: object) -> pa.RecordBatch:
    # Of records with other columns some end too soon for what is looked for.
    with undamaged(source, MEND):
        return decode(record)


def _in_order(table: pa.Table, order: NDArray[np.int64]) -> pa.Table:
    """Some rows of a table in another order."""
    # A task's units follow each other in the store, so that the order is made of few stretches.
    bounds = [0, *(np.flatnonzero(np.diff(order) != 1) + 1).tolist(), len(order)]
    if len(bounds) * _LONG_STRETCH > len(order):
        return table.take(pa.array(order)).combine_chunks()
    stretches = [
        table.slice(int(order[start]), end - start) for start, end in itertools.pairwise(bounds)
    ]
    return pa.concat_tables(stretches)


_LONG_STRETCH = 64
"""Units of which a stretch costs no more as it is than copied."""


def _refuse_another(store: ResultStore, plan: RunPlan) -> None:
    before = _plan(store)
    if before and before.get("sha256") != plan.sha256:
        raise InputError(
            f"{store.path.parent}: it holds a run that differs in {_differences(before, plan)}; "
            "give another --out, or drop that run with --overwrite"
        )


def _differences(before: Mapping[str, Any], plan: RunPlan) -> str:
    """In which keys of the study, settings or data two plans differ."""
    study = before.get("study", {})
    # A changed key shows up in the cells and models as well, so those are named only if no key
    # explains the difference.
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
    count, n_texts = finished.table.num_rows, store.n_records(TEXTS)
    if count < sum(sizes) and (count or n_texts):
        answers = f" and {counted(n_texts, 'answer')} about its texts" if n_texts else ""
        raise InputError(
            f"{store.path.parent}: it holds {count:,} of {counted(sum(sizes), 'unit')}{answers} "
            "of this "
            "study; go on with --resume, or drop them with --overwrite"
        )


def _plan(store: ResultStore) -> dict[str, Any]:
    """The plan of the run that a store is of; empty of a new one."""
    plan: dict[str, Any] | None = store.value(PLAN, PLAN)
    if plan is None and store.n_records():
        raise InputError(
            f"{store.path}: the plan of its run is damaged, or it is that of an assessment; {MEND}"
        )
    return plan or {}
