"""Results that are tables, with a data frame, a short `repr`, and HTML for notebooks."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast

import numpy as np

from factormodels.nouns import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd
    from numpy.typing import NDArray

_SHOWN_ROWS, _SHOWN_COLUMNS = 6, 8


class Tabular:
    """A result that is a table.

    A subclass names its columns, which are arrays (n_rows,). A subclass without names is a single
    row of all its fields, or overrides `rows`.

    Attributes:
        columns: names of the columns, in order; `position` may refer to the array `positions`.
    """

    columns: ClassVar[tuple[str, ...]] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict per row, with Python's own numbers."""
        if not self.columns:
            return [asdict(cast("Any", self))]
        values = [
            getattr(self, name if hasattr(self, name) else f"{name}s") for name in self.columns
        ]
        lists = [each.tolist() if hasattr(each, "tolist") else each for each in values]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*lists, strict=True)]

    def to_frame(self) -> pd.DataFrame:
        """The table as a data frame, with the rows of `rows`."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        frame = self.to_frame()
        shown = frame.to_string(
            index=False,
            max_rows=_SHOWN_ROWS,
            max_cols=_SHOWN_COLUMNS,
            float_format="{:.4g}".format,
        )
        n_rows = counted(len(frame), "row")
        return f"{type(self).__name__}, {n_rows}\n{shown}"

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False, max_rows=60, border=0))


class Frame(Tabular):
    """A table of columns, arrays of equal length."""

    def __init__(self, **columns: Any) -> None:
        """Take columns by name, in order; a scalar is repeated in every row."""
        length = max((len(each) for each in columns.values() if np.ndim(each)), default=0)
        self._columns = {
            name: np.asarray(each) if np.ndim(each) else np.full(length, each)
            for name, each in columns.items()
        }

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A column, (n_rows,)."""
        return self._columns[name]

    def __len__(self) -> int:
        return min((len(each) for each in self._columns.values()), default=0)

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict per row, with Python's own numbers."""
        lists = [each.tolist() for each in self._columns.values()]
        return [dict(zip(self._columns, row, strict=True)) for row in zip(*lists, strict=True)]


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


Row = TypeVar("Row", bound=_Dataclass)


class TableOf(Tabular, tuple[Row, ...]):
    """A table that is a tuple of rows, which are dataclasses of one type."""

    __slots__ = ()

    def __new__(cls, rows: Iterable[Row]) -> TableOf[Row]:
        return super().__new__(cls, rows)

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict per row."""
        return [asdict(row) for row in self]
