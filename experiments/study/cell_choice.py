"""Which cells of a study `--only` chooses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from experiments.columns.cell_names import CELL
from experiments.study.design import StudyCell
from factormodels.errors import InputError, nearest

_ONLY = {name.removesuffix("_label"): name for name in CELL}
"""Keys of --only, and the column that each restricts."""


def select(chosen: Sequence[StudyCell], only: Iterable[str]) -> list[int]:
    """The positions of the cells that texts like "backend=exact,lbp" select.

    Of texts with one key any must hold, of different keys all.

    Raises:
        InputError: for an unknown key, or a value that no cell has; it names the nearest.
    """
    wanted: dict[str, set[str]] = {}
    for text in only:
        key, equals, values = text.partition("=")
        if not equals or key not in _ONLY:
            near = nearest(key, _ONLY)
            hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(_ONLY)}"
            raise InputError(f"--only {text!r}: it is not a KEY=VALUE of a study's cells; {hint}")
        present = list(dict.fromkeys(_text(cell, key) for cell in chosen))
        # A whole value may hold commas: labels of backends do.
        for value in [values] if values in present else values.split(","):
            if value not in present:
                near = nearest(value, present)
                hint = f" (did you mean {near!r}?)" if near else ""
                raise InputError(
                    f"--only {text!r}: no cell has the {key} {value!r}{hint}; use some of "
                    f"{', '.join(present)}"
                )
            wanted.setdefault(key, set()).add(value)
    selected = [
        position
        for position, cell in enumerate(chosen)
        if all(_text(cell, key) in values for key, values in wanted.items())
    ]
    # Every value exists by itself here, but not together.
    if not selected:
        raise InputError("--only: no cell meets all conditions; give fewer")
    return selected


def _text(cell: StudyCell, key: str) -> str:
    value = cell.key()[_ONLY[key]]
    # As a user writes it: 1 and not 1.0.
    return f"{value:g}" if isinstance(value, float) else str(value)
