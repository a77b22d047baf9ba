"""What a notebook needs beside the packages: how thorough to be, and where its results go.

from experiments.notebook import fast, write_results
draws = 500 if fast() else 10_000

Two environment variables are read, when they are asked for: FACTORMODELS_FAST=1 asks for less
thorough numbers in less time, FACTORMODELS_RESULTS names the folder of results.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from factormodels.errors import InputError

if TYPE_CHECKING:
    from IPython.display import Image
    from matplotlib.figure import Figure
    from pandas import DataFrame

FAST = "FACTORMODELS_FAST"
RESULTS = "FACTORMODELS_RESULTS"

_PREVIEW_DPI = 200


def fast() -> bool:
    """Return whether a notebook is to answer in seconds, at the cost of wider intervals.

    Raises:
        InputError: if FACTORMODELS_FAST is set to anything but 0 or 1.
    """
    value = os.environ.get(FAST, "0")
    if value not in ("", "0", "1"):
        raise InputError(f"{FAST} is {value!r}; set it to 1 for the fast mode, or to 0")
    return value == "1"


def results_folder(notebook: str) -> Path:
    """Return the folder of a notebook's results, ``results/notebooks/NAME`` of the checkout.

    Args:
        notebook: its name without suffix, such as ``01_worked_examples``.
    """
    return Path(os.environ.get(RESULTS, "../results/notebooks")) / notebook


def preview(figure: Figure) -> Image:
    """Return a figure as a notebook shows it: what the paper gets, at its size."""
    from io import BytesIO

    from IPython.display import Image

    from calibration.figure_style import paper_style

    buffer = BytesIO()
    with paper_style():
        figure.savefig(buffer, format="png", dpi=_PREVIEW_DPI)
    return Image(buffer.getvalue(), width=round(100 * figure.get_figwidth()))


def write_results(
    notebook: str,
    tables: Mapping[str, tuple[DataFrame, str]],
    figures: Mapping[str, tuple[Figure, DataFrame]],
) -> tuple[Path, ...]:
    """Write tables and figures of a notebook to its folder of results; return the paths."""
    from calibration.figure_style import save_figure

    folder = results_folder(notebook)
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for stem, (frame, _) in tables.items():
        frame.to_csv(folder / f"{stem}.csv", index=False)
        paths.append(folder / f"{stem}.csv")
    for stem, (figure, data) in figures.items():
        paths += save_figure(figure, folder / stem)
        data.to_csv(folder / f"{stem}.csv", index=False)
    return tuple(paths)
