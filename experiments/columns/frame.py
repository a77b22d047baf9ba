"""The long frame of claims, with a row for each claim and judge, its checks and its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from experiments.columns.options import TaughtSettings
from experiments.columns.roles import DATA
from experiments.columns.verdicts import label_of
from experiments.findings.table import Table, columns_as, data_frame
from experiments.findings.text import some_of
from factormodels.claims import Atom
from factormodels.conventions import Conventions
from factormodels.errors import InputError
from factormodels.io.tables.data_table import DataTable
from factormodels.nouns import counted
from factormodels.words import folded

if TYPE_CHECKING:
    import pandas as pd

LONG = ("response", "claim", "text", "p", "label")
"""Columns with which the claims of every method's findings begin; those of a cell follow."""


def claim_row(response: str, atom: Atom, p: float | None, **cell: Any) -> dict[str, Any]:
    """Row of a long frame: a claim, its probability and label, and the columns of its cell."""
    return dict(zip(LONG, (response, atom.id, atom.text, p, label_of(atom)), strict=True)) | cell


def long_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows of `claim_row` as a frame: the columns of `LONG`, then the others; p is float64."""
    listed = list(rows)
    names = dict.fromkeys([*LONG, *(name for row in listed for name in row)])
    return data_frame(listed, list(names)).astype({"p": float})


def long_table(rows: Iterable[Mapping[str, Any]], caption: str) -> Table:
    """A long frame as a table, which shows the columns of `LONG`."""
    return Table(
        long_frame(rows), columns_as("response | claim | p:3 P(true) | label | text"), caption
    )


@dataclass(frozen=True, eq=False)
class ClaimFrame:
    """Claims with probabilities and labels, a row for each claim and judge.

    Attributes:
        frame: a row for each claim and column of probabilities: response, claim (its id, or None),
            p, label (True, False, or None without a label that counts), irrelevant (True if a label
            excludes the claim), place (row of the table), by (values of the columns that separate
            data and models), column (column of p), and taught (True if labels of the response
            trained p). If requested and available, text and answer (texts of the claim and the
            whole response, possibly empty).
        table: the table of the claims.
        by: the columns that separate data and models.
        columns: the columns of probabilities.
        remarks: remarks on reading the table.
        of_numbers: True if labels are arbitrary numbers, and p their predictions.
    """

    frame: pd.DataFrame
    table: DataTable
    by: tuple[str, ...]
    columns: tuple[str, ...]
    remarks: list[str]
    of_numbers: bool = False

    @property
    def has_label(self) -> Any:
        """True for rows with a label that counts, bool (n,)."""
        return self.frame["label"].notna()

    def without_taught(self, labeled: Any, settings: TaughtSettings) -> ClaimFrame:
        """Claims without responses whose own labels trained the probabilities.

        Args:
            labeled: bool (n,), True for rows whose label is used.
            settings: settings on leaving such responses out.

        Raises:
            InputError: if such a response has a label and may not be left out, or no response is
                left.
        """
        frame, source = self.frame, self.table.source
        taught = frame["response"].isin(frame.loc[frame["taught"], "response"])
        if not taught.any():
            return self
        named = frame.loc[taught & labeled, "response"].unique().tolist()
        if named and not settings.leave_out_taught:
            raise InputError(
                f"{source}: labels of {counted(len(named), 'response')} ({some_of(named)}) "
                "trained the probabilities, and cannot judge or correct them; give labels of "
                "other responses, or cross-fitted posteriors from factormodels fit, or leave "
                "these responses out with --leave-out-taught"
            )
        left_out = frame.loc[taught, "response"].unique().tolist()
        if taught.all():
            raise InputError(
                f"{source}: labels of all {counted(len(left_out), 'response')} trained the "
                "probabilities; give other responses, or cross-fitted posteriors from "
                "factormodels fit"
            )
        remark = (
            f"{counted(len(left_out), 'response')} ({some_of(left_out)}) "
            f"{'is' if len(left_out) == 1 else 'are'} left out, because their labels trained the "
            "probabilities."
        )
        kept = frame[~taught].reset_index(drop=True)
        return replace(self, frame=kept, remarks=[*self.remarks, remark])

    def under(self, conventions: Conventions) -> ClaimFrame:
        """The claims with the conventions' treatment of irrelevant claims.

        Raises:
            InputError: if no claim is left.
        """
        frame, irrelevant = self.frame, self.frame["irrelevant"].astype(bool)
        if conventions.irrelevant_claims == "counted" or not irrelevant.any():
            return self
        if conventions.irrelevant_claims == "false":
            return replace(self, frame=frame.assign(label=frame["label"].mask(irrelevant, False)))
        if irrelevant.all():
            raise InputError(
                f"{self.table.source}: every claim is irrelevant, and --irrelevant-claims "
                "left-out leaves none; give --irrelevant-claims false or counted"
            )
        return replace(self, frame=frame[~irrelevant].reset_index(drop=True))

    def parts(self) -> dict[str, pd.DataFrame]:
        """The frame by data, with the models in a column.

        A column that separates responses identifies data; any other column identifies models.

        Raises:
            InputError: if two models, or two datasets, have the same name.
        """
        keys = self.frame["by"]
        of_data = [index for index in range(len(self.by)) if self._is_data(index)]
        # If every column separates the responses, models share no responses.
        if len(of_data) == len(self.by) and self.by and not any(map(_is_known_data, self.by)):
            of_data = []
        several = len(self.columns) > 1
        of_models = [index for index in range(len(self.by)) if index not in of_data]
        models = [
            ", ".join(filter(None, (_joined(key, of_models), column if several else "")))
            or self.columns[0]
            for key, column in zip(keys, self.frame["column"], strict=True)
        ]
        data = [_joined(key, of_data) for key in keys]
        self._refuse_one_name(models, data)
        named = self.frame.assign(model=models, data=data)
        if several and not of_models:
            # Columns of a row belong to the same claim, whatever its id.
            named["claim"] = named["place"]
        elif named["claim"].isna().any():
            named = named.drop(columns="claim")
        return {str(name): part for name, part in named.groupby("data", sort=False)}

    def _is_data(self, index: int) -> bool:
        """Return True if a column of `by` identifies data, by its name or its division of
        responses."""
        if _is_known_data(self.by[index]):
            return True
        values = self.frame.assign(part=[key[index] for key in self.frame["by"]])
        return bool(values.groupby("response")["part"].nunique().max() == 1)

    def _refuse_one_name(self, models: Sequence[str], data: Sequence[str]) -> None:
        first: dict[tuple[str, str], Sequence[str]] = {}
        for key, model, of in zip(self.frame["by"], models, data, strict=True):
            if tuple(first.setdefault((of, model), key)) != tuple(key):
                earlier, later = (" and ".join(map(repr, k)) for k in (first[of, model], key))
                raise InputError(
                    f"--by {','.join(self.by)}: rows with {earlier} and rows with {later} have "
                    f"the same name, {', '.join(key)!r}; give them values that differ without "
                    "the commas"
                )

    def labeled_parts(self) -> tuple[dict[str, pd.DataFrame], list[str]]:
        """Return the `parts` and models with labels, and remarks.

        Raises:
            InputError: if no part has a label.
        """
        labeled, remarks = {}, list[str]()
        for name, part in self.parts().items():
            has_label = part["label"].notna().groupby(part["model"], sort=False).any()
            if not has_label.any():
                remarks.append(f"{name}: no claim has a label, so nothing is scored.")
                continue
            labeled[name] = part[part["model"].map(has_label)]
            remarks += [
                f"{f'{name}: ' if name else ''}No row of {model!r} has a label, so it is not "
                "scored; repeat the label of a claim in each of its rows."
                for model in has_label.index[~has_label]
            ]
        if not labeled:
            raise InputError("no claim with a probability has a label; give labeled claims")
        return labeled, remarks


def _is_known_data(name: str) -> bool:
    return folded(name) in DATA.names


def _joined(key: Sequence[str], indices: Sequence[int]) -> str:
    return ", ".join(key[index] for index in indices)
