"""The folder of a run: what it was begun for, what of it is finished, who may go on with it.

Beside the results stands the folder `journal`: the plan of the run, its finished units, and what
was worked out once for them.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from experiments.results.manifest import code_identity
from experiments.runner.text_models import TextModel
from experiments.runner.units import decode, schema
from experiments.study.config import Study, computed_part
from experiments.study.data import StudyData
from experiments.study.design import StudyCell
from factormodels.errors import InputError
from factormodels.io import json_text
from factormodels.io.appended_records import (
    Journal,
    JournalErrors,
    KeyedJournal,
    open_journal,
    open_keyed_journal,
    read_journal,
    read_keyed_journal,
)
from factormodels.io.arrow_files import undamaged
from factormodels.io.files import prepare_folder, read_text, remove_empty, write_text
from factormodels.io.long_columns import stored_table
from factormodels.io.plain_yaml import plain_hash

JOURNAL = "journal"
"""The folder of the plan and the units, within that of the results."""

_PLAN, _UNITS = "plan.json", "units.bin"

PRIORS, SELECTIONS, TEXTS = "priors.bin", "selections.bin", "texts.bin"
"""What is worked out once for a run, beside its units."""


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

    @staticmethod
    def of(
        study: Study,
        cells: Sequence[StudyCell],
        data: Sequence[StudyData],
        models: Iterable[TextModel] = (),
    ) -> RunPlan:
        """The plan of a study."""
        return RunPlan(
            study=computed_part(study),
            # With the settings that defaults fill in, so that a changed default makes it another
            # run.
            cells=[{**cell.key(), "setting": cell.algorithm.setting} for cell in cells],
            data={dataset.name: dataset.sha256 for dataset in data},
            models={one.place: dict(one.facts) for one in models},
        )

    @property
    def sha256(self) -> str:
        """Its hash."""
        return plain_hash(vars(self))


@dataclass(frozen=True)
class FinishedUnits:
    """The finished units of a run, in the order of cells and responses.

    Attributes:
        table: their results, as `experiments.runner.units.schema` has them.
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
        return dict(sorted((one["values"], one["counts"]) for one in counts))


@dataclass(frozen=True)
class OpenRun:
    """A run whose folder is this process's alone.

    Attributes:
        journal: where finished units go.
        finished: those that it held.
        code: versions of the code that its units were computed with, the first one first.
        folder: where its journals are.
    """

    journal: Journal
    finished: FinishedUnits
    code: tuple[str, ...]
    folder: Path

    def keyed(self, name: str) -> AbstractContextManager[KeyedJournal]:
        """Open one of the journals beside that of the units."""
        return open_keyed_journal(self.folder / name, _errors(self.folder / name))


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
    absent = [place for place in (folder, *folder.parents) if not place.exists()]
    own = folder / JOURNAL
    units = own / _UNITS
    try:
        # Before anything is created, so that a refusal leaves the folder as it was.
        if not overwrite:
            _refuse_another(folder, plan)
        prepare_folder(folder)
        prepare_folder(own)
        # The lock on this journal is the lock on the whole folder; everything below happens under
        # it.
        with open_journal(units, _errors(units), anew=overwrite) as journal:
            try:
                records = (record for _, record in journal.records())
                finished = finished_units(records, sizes, units)
                if not overwrite and not resume:
                    _refuse_unfinished(folder, finished, sizes, n_answers(folder))
                # Earlier versions of the code matter only if some of their units are kept.
                code = _codes(own / _PLAN) if resume and finished.table.num_rows else ()
                # Nothing is lost here: the folder is empty, complete, or to be overwritten.
                if not resume:
                    journal.clear()
                    for name in (PRIORS, SELECTIONS, TEXTS):
                        (own / name).unlink(missing_ok=True)
                    finished = finished_units((), sizes, units)
                current = code_identity()
                code = code if current in code else (*code, current)
                # Written under the lock and before the first unit: units without their plan could
                # not be told from those of another study.
                document = {**vars(plan), "sha256": plan.sha256, "code": code}
                write_text(own / _PLAN, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
                yield OpenRun(journal, finished, code, own)
            except BaseException as error:
                # Bad input is to be mended, which may make it another run: then fits are no reason
                # to hold on to the folder.
                kept = (_UNITS, TEXTS) if isinstance(error, InputError) else (_UNITS, TEXTS, PRIORS)
                if not any(_has_records(own / name) for name in kept):
                    shutil.rmtree(own, ignore_errors=True)
                raise
    except BaseException:
        remove_empty(absent)
        raise


def read_finished(folder: Path, plan: RunPlan, sizes: Sequence[int]) -> FinishedUnits:
    """The units that a folder holds of a plan.

    Args:
        folder: the folder of the results.
        plan: the plan.
        sizes: number of responses of every cell's dataset.

    Raises:
        InputError: if the folder holds another run, or its journal is damaged.
    """
    _refuse_another(folder, plan)
    path = folder / JOURNAL / _UNITS
    return finished_units(read_journal(path, _errors(path)), sizes, path)


def read_kept(folder: Path, name: str) -> dict[str, Any]:
    """What is kept in one of the journals beside that of the units, by key.

    Args:
        folder: the folder of the results.
        name: `PRIORS`, `SELECTIONS` or `TEXTS`.

    Raises:
        InputError: if it is damaged, or of another version.
    """
    path = folder / JOURNAL / name
    return read_keyed_journal(path, _errors(path))


def n_answers(folder: Path) -> int:
    """How many answers of text models a folder holds."""
    journal = folder / JOURNAL / TEXTS
    return sum(1 for _ in read_journal(journal, _errors(journal)))


def finished_units(records: Iterable[bytes], sizes: Sequence[int], place: object) -> FinishedUnits:
    """The finished units of a journal; of a unit that was done twice the later result.

    Args:
        records: the journal's records.
        sizes: number of responses of every cell's dataset.
        place: what errors call the journal.

    Raises:
        InputError: if a record is none of this study's.
    """
    table = stored_table((_decoded(record, place) for record in records), schema())
    cells, responses = (table[name].to_numpy() for name in ("cell", "response"))
    if len(cells) and (cells.max() >= len(sizes) or (responses >= np.asarray(sizes)[cells]).any()):
        raise InputError(f"{place}: it holds units of another study; start anew with --overwrite")
    # Sorted by cell, response and place in the journal: of equal units the last one was done last.
    order = np.lexsort((responses, cells))
    # A unit is done twice if it failed and was retried; the later result replaces the earlier one.
    same_as_next = (np.diff(cells[order]) == 0) & (np.diff(responses[order]) == 0)
    # Without any unit, `append` still yields one entry; the slice drops it.
    order = order[~np.append(same_as_next, False)[: len(order)]]
    # One bound more than there are cells, so that the last cell's slice is no special case.
    starts = np.searchsorted(cells[order], np.arange(len(sizes) + 1))
    return FinishedUnits(_in_order(table, order), starts.astype(np.int64))


def _decoded(record: bytes, place: object) -> pa.RecordBatch:
    # Of records with other columns some end too soon for what is looked for.
    with undamaged(place, "start anew with --overwrite"):
        return decode(record)


def _in_order(table: pa.Table, order: NDArray[np.int64]) -> pa.Table:
    """Some rows of a table in another order."""
    # A task's units follow each other in the journal, so that the order is made of few stretches.
    bounds = [0, *(np.flatnonzero(np.diff(order) != 1) + 1).tolist(), len(order)]
    if len(bounds) * _LONG_STRETCH > len(order):
        return table.take(pa.array(order)).combine_chunks()
    stretches = [
        table.slice(int(order[start]), end - start) for start, end in itertools.pairwise(bounds)
    ]
    return pa.concat_tables(stretches)


_LONG_STRETCH = 64
"""Units of which a stretch costs no more as it is than copied."""


def _refuse_another(folder: Path, plan: RunPlan) -> None:
    path = folder / JOURNAL / _PLAN
    if not path.exists():
        return
    before = _read_plan(path)
    if before.get("sha256") == plan.sha256:
        return
    raise InputError(
        f"{folder}: it holds a run that differs in {_differences(before, plan)}; give another "
        "--out, or drop that run with --overwrite"
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
        keys += [place for place, facts in plan.models.items() if models.get(place) != facts]
    data = before.get("data", {})
    changed = [name for name in plan.data if name in data and data[name] != plan.data[name]]
    keys += [f"the content of {name!r}" for name in changed]
    return ", ".join(keys) or "its version"


def _has_records(journal: Path) -> bool:
    return any(True for _ in read_journal(journal, _errors(journal)))


def _errors(journal: Path) -> JournalErrors:
    return JournalErrors(
        busy=f"{journal.parent.parent}: another run is at work in this folder; wait for it, or "
        "give another --out",
        foreign=f"{journal}: this is not a journal of a run, or one of another version; start anew "
        "with --overwrite",
        damaged=f"{journal}: a record before the last one is damaged; start anew with --overwrite",
    )


def _refuse_unfinished(
    folder: Path, finished: FinishedUnits, sizes: Sequence[int], n_texts: int
) -> None:
    count = finished.table.num_rows
    if count < sum(sizes) and (count or n_texts):
        answers = f" and {n_texts:,} answers about its texts" if n_texts else ""
        raise InputError(
            f"{folder}: it holds {count:,} of {sum(sizes):,} units{answers} of this study; go on "
            "with --resume, or drop them with --overwrite"
        )


def _read_plan(path: Path) -> dict[str, Any]:
    try:
        # Whatever the damage, the user is told the one sentence below.
        plan = json_text.decode(read_text(path), path)
    except InputError:
        plan = None
    if not isinstance(plan, dict):
        raise InputError(f"{path}: the plan of a run cannot be read; drop the run with --overwrite")
    return plan


def _codes(path: Path) -> tuple[str, ...]:
    return tuple(_read_plan(path).get("code", ())) if path.exists() else ()
