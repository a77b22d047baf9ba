"""Selection of a study's cells by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.columns.cell_names import CELL
from experiments.study.cells import StudyCell
from factormodels.errors import InputError, nearest

_COLUMNS = {name.removesuffix("_label"): name for name in CELL}
"""Dimensions of cells, and the column with the names of each."""


def select(cells: Sequence[StudyCell], names: Mapping[str, Sequence[str]]) -> list[int]:
    """Positions of the cells that match one of the names in every given dimension.

    Args:
        cells: the cells of a study.
        names: names by dimension, such as dataset or backend; a text may have several names,
            separated by commas.

    Raises:
        InputError: for an unknown name (the message has the nearest one), or names that no cell
            combines.
    """
    wanted: dict[str, set[str]] = {}
    for dimension, texts in names.items():
        option = f"--{dimension.replace('_', '-')}"
        present = list(dict.fromkeys(_text(cell, dimension) for cell in cells))
        for text in texts:
            # Names may contain commas, as labels of backends do.
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
    # Each name exists, but no cell combines them.
    if not positions:
        options = " and ".join(f"--{dimension.replace('_', '-')}" for dimension in wanted)
        raise InputError(f"no cell of the study matches {options} together; leave some of them out")
    return positions


def _text(cell: StudyCell, dimension: str) -> str:
    value = cell.key()[_COLUMNS[dimension]]
    # Format as a user writes it: 1, not 1.0.
    return f"{value:g}" if isinstance(value, float) else str(value)
