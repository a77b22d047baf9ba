"""Selection of a study's cells by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.columns.cell_names import CELL
from experiments.study.design import StudyCell
from factormodels.errors import InputError, nearest

_COLUMNS = {name.removesuffix("_label"): name for name in CELL}
"""Dimensions of cells, and the column that has the names of each."""


def select(cells: Sequence[StudyCell], names: Mapping[str, Sequence[str]]) -> list[int]:
    """The positions of the cells that have one of the names in every dimension that is given.

    Args:
        cells: the cells of a study.
        names: names by dimension, such as dataset or backend; a text may hold several with commas
            between.

    Raises:
        InputError: for a name that no cell has, with the nearest, or names that no cell has
            together.
    """
    wanted: dict[str, set[str]] = {}
    for dimension, texts in names.items():
        option = f"--{dimension.replace('_', '-')}"
        present = list(dict.fromkeys(_text(cell, dimension) for cell in cells))
        for text in texts:
            # A whole name may hold commas: labels of backends do.
            for name in [text] if text in present else map(str.strip, text.split(",")):
                if name not in present:
                    near = nearest(name, present)
                    hint = f" (did you mean {near!r}?)" if near else ""
                    raise InputError(
                        f"{option} {text}: no cell of the study has {name!r}{hint}; use some of "
                        f"{', '.join(present)}"
                    )
                wanted.setdefault(dimension, set()).add(name)
    positions = [
        position
        for position, cell in enumerate(cells)
        if all(_text(cell, dimension) in chosen for dimension, chosen in wanted.items())
    ]
    # Every name exists by itself here, but not together.
    if not positions:
        options = " and ".join(f"--{dimension.replace('_', '-')}" for dimension in wanted)
        raise InputError(f"no cell of the study has what {options} name together; give fewer")
    return positions


def _text(cell: StudyCell, dimension: str) -> str:
    value = cell.key()[_COLUMNS[dimension]]
    # As a user writes it: 1 and not 1.0.
    return f"{value:g}" if isinstance(value, float) else str(value)
