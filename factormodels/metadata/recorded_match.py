"""Figures of how much of each claim's text the passages contain, as recorded in metadata.

`factormodels.extraction.text_match` computes the figures from texts. A file without texts keeps
them in the metadata of a graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from factormodels.decoded_values import as_object, shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph

TEXT_MATCH_KEY = "text_match"
"""Metadata key of a graph without texts for the figures of its claims, by id."""

FIGURES: Mapping[str, str] = {
    "names found": "share of the claim's names that any passage of the response contains",
    "words in one sentence": "largest share of the claim's content words and numbers that one "
    "sentence of a passage contains",
    "words in another": "the second largest such share",
}
"""Names and descriptions of the figures of a claim, which ignore the words of the topic. A figure
is 1 if the claim has no such words, and 0 if there are no passages."""


def recorded_match(figures: NDArray[np.float64], atoms: Sequence[str]) -> dict[str, list[float]]:
    """Return figures (n, 3) in the form of the metadata under `TEXT_MATCH_KEY`."""
    return dict(zip(atoms, figures.tolist(), strict=True))


def match_in_metadata(graph: FactGraph) -> NDArray[np.float64]:
    """Return the figures (n, 3) that the metadata hold for n claims.

    Raises:
        InputError: if the metadata hold something else under `TEXT_MATCH_KEY`.
    """
    where = f"response {graph.id!r}: metadata {TEXT_MATCH_KEY!r}"
    by_claim = as_object(graph.metadata[TEXT_MATCH_KEY], where)
    rows = [_figures(by_claim.get(atom), f"{where}, claim {atom!r}") for atom in graph.atom_ids]
    return np.array(rows, np.float64).reshape(-1, len(FIGURES))


def _figures(value: object, where: str) -> list[float]:
    numbers = value if isinstance(value, list | tuple) else []
    figures = [float(x) for x in numbers if isinstance(x, int | float) and 0 <= x <= 1]
    if len(figures) != len(FIGURES):
        raise InputError(
            f"{where}: {shown(value)} are not figures of its text; give {len(FIGURES)} numbers "
            f"from 0 to 1 ({', '.join(FIGURES)})"
        )
    return figures
