"""Posteriors of a dataset as rows of a single cell of a study, without a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.columns.frame import LONG
from experiments.settings.inputs import Responses, graphs_of
from experiments.study.cells import StudyCell
from experiments.study.data import StudyData
from experiments.study.design import cell_of
from experiments.study.outputs import row_tables
from experiments.study.parts import units_of
from experiments.study.rows import as_frame
from experiments.study.units import TaskQueue, decode, run_task
from factormodels.encodings import DEFAULT_ENCODING, get_encoding
from factormodels.errors import InputError, unknown_name
from factormodels.variants import VARIANTS
from inference import Backend
from inference.registry import as_backend
from inference.warm_up import warm_up

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_STUDY = "posteriors"


def posteriors(
    dataset: Responses,
    variant: str = "FR2",
    backend: str | Backend = "auto",
    encoding: str = DEFAULT_ENCODING,
    **settings: Any,
) -> pd.DataFrame:
    """Compute the posterior of every claim of responses, as in a study with a single cell.

    from experiments import posteriors
    posteriors("factcheck-bench", variant="FR1", backend="lbp", damping=0.5)

    Args:
        dataset: the name of an embedded dataset, the path of a file of responses, or one or several
            fact graphs.
        variant: view of the fact graphs: given (as recorded), FR1, FR2 or FR3.
        backend: name of a backend, or a backend.
        encoding: encoding of relations.
        settings: settings of a backend given by name.

    Returns:
        A row per claim: response, claim (its id; `atom` in rows.parquet), text, p (of being true)
        and label (missing without a label), then the other columns of rows.parquet. If the backend
        cannot answer for a response, p is missing and `error` has the reason.

    Raises:
        InputError: for an unknown name or setting, or data that cannot be read.
        MissingDependencyError: if a library that the backend needs is not installed.
    """
    if variant not in VARIANTS:
        raise InputError(unknown_name(f"the variant {variant!r}", variant, VARIANTS))
    get_encoding(encoding)
    built = as_backend(backend, **settings)
    name = Path(dataset).stem if isinstance(dataset, str | os.PathLike) else "graphs"
    data = StudyData(name, graphs_of(dataset), sha256="")
    table = _cell_table(data, cell_of(name, variant, encoding, built))
    frame = as_frame(table).rename(columns={"atom": "claim"})
    # In a study, a response without atoms has a row, so that it is counted.
    claims = frame[frame["claim"].notna()].reset_index(drop=True)
    claims["text"] = [text for graph in data.graphs for text in graph.column("atoms", "text")]
    return claims[[*LONG, *(column for column in claims if column not in LONG)]]


def _cell_table(data: StudyData, cell: StudyCell) -> pa.Table:
    """The rows of a cell, with its units run in this process."""
    import pyarrow as pa

    if cell.algorithm.backend is not None:
        warm_up(cell.algorithm.backend)
    size = len(data.graphs)
    queue = TaskQueue([data], [cell], [0], [np.zeros(size, dtype=np.bool_)])
    answers = []
    while (task := queue.take()) is not None:
        answer = run_task(task)
        queue.settle(task, answer)
        answers.append(decode(answer.units))
    finished = units_of(answers, 1)
    return pa.concat_tables(row_tables(_STUDY, [data], [cell], finished))
