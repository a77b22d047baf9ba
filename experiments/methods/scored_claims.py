"""Claims of a table with one or several scores, groups of responses, and dependencies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from calibration.filtering import ScoredClaims
from calibration.filtering.dependencies import Dependencies
from calibration.validation import Floats
from experiments.columns.claims import read_claims
from experiments.columns.frame import ClaimFrame
from experiments.columns.options import ProbabilityColumns
from experiments.columns.sources import table_of
from experiments.findings.text import some_of
from experiments.settings import USUAL, ColumnName, ColumnNames
from factormodels.decoded_values import shown
from factormodels.errors import InputError, nearest
from factormodels.io.claim_rows import cell_name
from factormodels.io.tables.data_table import DataTable
from factormodels.nouns import counted, is_or_are

if TYPE_CHECKING:
    import pandas as pd

    from calibration.filtering.calibrator import Group
    from experiments.columns.sources import Data

_SEPARATOR = re.compile(r"[,;]")


class ScoreColumns(ProbabilityColumns):
    """Columns of the table.

    Options that name the columns of scores, groups and dependencies.
    """

    p: Annotated[ColumnNames, USUAL] = ()
    """Probability or score from 0 to 1. Several scores, as in p,q or repeated, are combined on a
    part of the labeled responses."""

    by: Annotated[ColumnNames, USUAL] = ()
    """Groups of responses, each with its own threshold and guarantee: domain, model; repeatable."""

    depends: Annotated[ColumnName, USUAL] = None
    """Ids of the claims that a claim depends on: it is kept only with them; entailed_by in graphs
    with relations between claims."""


@dataclass(frozen=True, eq=False)
class ScoredTable:
    """Claims of a table with their scores.

    Attributes:
        claims: scores, responses, groups and dependencies.
        frame: a row per claim, as in `ClaimFrame.frame`, with response names that are unique over
            groups.
        names: columns of the scores.
        source: name of the table.
        remarks: remarks on reading the table.
    """

    claims: ScoredClaims
    frame: pd.DataFrame
    names: tuple[str, ...]
    source: str
    remarks: tuple[str, ...]

    @property
    def labels(self) -> Floats:
        """Labels, float (n,): 1, 0, or NaN without a label that counts."""
        labels = self.frame["label"]
        return np.where(labels.isna(), np.nan, labels.fillna(False).astype(np.float64))


def read_scores(
    data: Data, columns: ScoreColumns, *, labeled: bool, names: Sequence[str] = ()
) -> ClaimFrame:
    """Read claims with a row per claim and score, and unique response names.

    Args:
        data: the data.
        columns: the columns.
        labeled: True if labels are required.
        names: names of the scores if no column is requested; a single score may have another name
            here.

    Raises:
        InputError: as `read_claims`, or if there are several scores and none is requested.
    """
    table = table_of(data)
    changed: dict[str, Any] = {}
    if not columns.p and (len(names) > 1 or set(names) <= set(table.columns)):
        changed["p"] = tuple(names)
    if not labeled and columns.label is not None and columns.label not in table.columns:
        # Only the labeled responses need labels.
        changed["label"] = None
    settings = columns.model_copy(update=changed)
    carried = {} if columns.depends is None else {"--depends": columns.depends}
    claims = read_claims(table, settings, labeled=labeled, texts=True, carried=carried)
    if len(claims.columns) > 1 and not settings.p:
        raise InputError(
            f"{claims.table.source}: there are several probabilities, "
            f"{', '.join(claims.columns)}; choose one or several with --p"
        )
    remarks = [*claims.remarks, *(_split_remark(claims, columns.by) if columns.by else ())]
    frame = claims.frame.assign(response=_names_of_responses(claims.frame))
    return replace(claims, frame=frame, remarks=remarks)


def with_scores(claims: ClaimFrame, columns: ScoreColumns) -> ScoredTable:
    """Claims with a row per claim and their scores side by side.

    Raises:
        InputError: if no claim has every score, or a dependency is not a claim of the same
            response.
    """
    frame, names = claims.frame, claims.columns
    remarks = list(claims.remarks)
    first = frame.drop_duplicates("place").set_index("place")
    values = frame.pivot_table(index="place", columns="column", values="p", sort=False)
    values = values.reindex(first.index)[list(names)]
    whole = values.notna().all(axis=1)
    if not whole.any():
        raise InputError(
            f"{claims.table.source}: no claim has all of the scores {', '.join(names)}; give "
            "scores of the same claims"
        )
    if not whole.all():
        lacking = int((~whole).sum())
        remarks.append(
            f"{counted(lacking, 'claim')} without all of the scores {is_or_are(lacking)} left out."
        )
    taught = frame.groupby("place")["taught"].any().reindex(first.index)
    rows = first.assign(taught=taught)[whole].reset_index()
    groups = [by if columns.by else () for by in rows["by"]]
    scored = ScoredClaims(
        values[whole].to_numpy(dtype=np.float64),
        rows["response"].tolist(),
        groups,
        _dependencies(rows, claims.table),
        names,
    )
    return ScoredTable(scored, rows, names, claims.table.source, tuple(remarks))


def _names_of_responses(rows: pd.DataFrame) -> list[str]:
    """Names of responses; an id in several groups gets the values of the group columns."""
    parts = rows.groupby("response")["by"].nunique()
    several = set(parts[parts > 1].index)
    return [
        ", ".join((*by, str(response))) if response in several else str(response)
        for by, response in zip(rows["by"], rows["response"], strict=True)
    ]


def _split_remark(claims: ClaimFrame, by: Sequence[str]) -> list[str]:
    groups = claims.frame.groupby("response", sort=False)["by"].nunique()
    split = groups[groups > 1].index.tolist()
    if not split:
        return []
    return [
        f"{counted(len(split), 'response')} ({some_of(split)}) {is_or_are(len(split))} in several "
        f"groups of {', '.join(by)}, and {'counts' if len(split) == 1 else 'count'} once in each."
    ]


def _dependencies(rows: pd.DataFrame, table: DataTable) -> Dependencies:
    """Edges from each claim to the claims that its cell of dependencies names.

    Raises:
        InputError: if claims have no ids, or a cell names an unknown claim.
    """
    claims: list[int] = []
    on: list[int] = []
    if "depends" in rows:
        if rows["claim"].isna().any():
            raise InputError(
                f"{table.source}: --depends refers to claim ids, and no column contains them; "
                "name it with --claim"
            )
        ids: dict[str, dict[str, int]] = {}
        for position, (response, claim) in enumerate(
            zip(rows["response"], rows["claim"], strict=True)
        ):
            ids.setdefault(response, {})[str(claim)] = position
        columns = zip(rows["response"], rows["depends"], rows["place"], strict=True)
        for position, (response, cell, line) in enumerate(columns):
            for name in _named_claims(cell, ids[response]):
                if name not in ids[response]:
                    near = nearest(name, ids[response])
                    raise InputError(
                        f"{table.locate(int(line))}: --depends names {shown(name)}, which is no "
                        f"claim with a score of response {response!r}"
                        + (f" (did you mean {near!r}?)" if near else "")
                        + "; name claims of the response by their ids, separated by commas"
                    )
                claims.append(position)
                on.append(ids[response][name])
    return Dependencies(np.array(claims, dtype=np.int64), np.array(on, dtype=np.int64))


def _named_claims(cell: Any, ids: Mapping[str, int]) -> list[str]:
    """Ids in a cell: a list, one id, or several with commas or semicolons between."""
    if isinstance(cell, list | tuple):
        return [name for name in map(cell_name, cell) if name]
    text = cell_name(cell)
    if text in ids:
        return [text]
    return [part.strip() for part in _SEPARATOR.split(text) if part.strip()]


def group_name(group: Group) -> str:
    """Name of a group for display."""
    return ", ".join(group)
