"""Settings of the pages of a finished run, or of assessed responses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from experiments.settings import USUAL, NewNames, Option, Words
from experiments.settings.cells import CellSettings


def _named(value: Any) -> Any:
    """Paths by name as texts NAME=PATH."""
    if not isinstance(value, Mapping):
        return value
    return tuple(f"{name}={os.fspath(path)}" for name, path in value.items())


Data = Annotated[
    Words,
    Option("NAME=PATH", python="str | Sequence[str] | Mapping[str, str | os.PathLike[str]]"),
    BeforeValidator(_named),
]
"""Files by the names of datasets."""


class ReportSettings(CellSettings):
    """Page.

    Options of `report`.
    """

    writes_page = True
    absent_output = MappingProxyType(
        {
            # The page is the output, and has no tables that could be presented.
            "report": "the page is the output; write --out {value}",
            "show": "a page shows every column; leave it out",
            "venue": "a page has no venue; the tables and figures of a run are written for one by "
            "`factormodels run STUDY --resume --venue {value}`",
        }
    )

    out: Annotated[Path | None, Option("FILE", command_line=False, writes=True)] = None
    """Write the page to this file; by default RESULTS/report.html, or FILE-report.html."""

    rename: Annotated[NewNames, Option(command_line=False)] = Field(default_factory=dict)
    """Replace a name on the page; of a run, in addition to the names that the run replaces."""

    data: Annotated[Data, USUAL] = ()
    """Path of a data file that the run read; repeatable."""

    response: Annotated[Words, Option("ID", usual=True)] = ()
    """List these responses only; repeatable."""

    first: Annotated[int | None, Field(ge=1), Option("N")] = None
    """List the first N responses of every dataset; by default, report.responses of the study."""


AS_PLANNED = ReportSettings()
"""Values as in the study."""
