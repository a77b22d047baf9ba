"""Options that select cells of a study, one per column, as in `dvc`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from experiments.settings import USUAL, Option, Settings


def _texts(value: Any) -> Any:
    """Return one value or several as a tuple of texts, with numbers as a user writes them."""
    values = value if isinstance(value, list | tuple) else (value,)
    return tuple(
        f"{each:g}" if isinstance(each, int | float) and not isinstance(each, bool) else each
        for each in values
    )


Chosen = Annotated[tuple[str, ...], Option("NAME,..."), BeforeValidator(_texts)]
"""Names of a dimension of a study's cells, single or comma-separated."""

NUMBERED = Option(python="str | float | Sequence[str | float]")
"""Mark of a dimension whose names are numbers."""


class CellSettings(Settings):
    """Cells of the study.

    Options that restrict a study to some of its cells.
    """

    dataset: Annotated[Chosen, USUAL] = ()
    """Only the cells of these datasets; repeatable."""

    variant: Chosen = ()
    """Only these variants of the graphs."""

    relation_model: Chosen = ()
    """Only these relation models."""

    encoding: Chosen = ()
    """Only these encodings."""

    prior: Chosen = ()
    """Only these priors, by their name in the study's tables."""

    strength: Annotated[Chosen, NUMBERED] = ()
    """Only these strengths of relations."""

    backend: Annotated[Chosen, USUAL] = ()
    """Only these backends, by name or label."""

    seed: Annotated[Chosen, NUMBERED] = ()
    """Only these seeds."""


def chosen_cells(settings: CellSettings) -> dict[str, tuple[str, ...]]:
    """The chosen names by dimension; empty for every cell."""
    named = {name: getattr(settings, name) for name in CellSettings.model_fields}
    return {name: values for name, values in named.items() if values}
