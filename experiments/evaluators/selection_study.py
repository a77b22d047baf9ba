"""What selection takes from labelled responses: how many claims, where, and which of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from calibration.self_knowledge import (
    IntervalSettings,
    PositionTable,
    label_positions,
)
from experiments.findings.table import data_frame
from experiments.settings.labelled_claims import claims_of_graphs
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.selection import Selection, restricted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

QUANTITIES = ("factuality", "supported_number", "unsupported_number", "irrelevant_number")
"""What is compared at each position."""


@dataclass(frozen=True)
class SelectionStudy:
    """Claims before and after selection.

    Attributes:
        rows: claims by place of their sentence, from "1", and last "all": sentence, responses (with
            claims there), before and after (number of claims), supported_before and supported_after
            (of these, labelled true), survival (the share that is left), true_before, true_after.
        before, after: claims by relative position.
    """

    rows: pd.DataFrame
    before: PositionTable
    after: PositionTable


def selection_study(
    found: Sequence[tuple[FactGraph, Selection]],
    *,
    source: object,
    intervals: IntervalSettings | None = None,
    n_positions: int = 5,
) -> SelectionStudy:
    """What selection does to labelled responses.

    Args:
        found: labelled responses with claims, each with what was selected. One that does not say
            how many sentences it has is split into them.
        source: their file, which errors name.
        intervals: how intervals over responses are made.
        n_positions: bins of relative position.

    Raises:
        InputError: if no claim has a label, text or sentence, or selection leaves no labelled one.
    """
    before = [_with_length(graph) for graph, _ in found]
    # Claims are told apart by it, where one response would take in the other.
    if len({graph.id for graph in before}) < len(before):
        raise InputError(f"{source}: two responses have the same id; name each differently")
    after = [
        restricted(graph, [claim.id for claim in selection.chosen])
        for graph, (_, selection) in zip(before, found, strict=True)
    ]
    settings = intervals or IntervalSettings()
    tables = [
        label_positions(
            # The number of sentences is that of the response, before and after, so positions stay
            # comparable.
            claims_of_graphs(versions, source).records,
            n_positions=n_positions,
            intervals=settings,
        )
        for versions in (before, after)
    ]
    return SelectionStudy(_sentence_rows(before, after), tables[0], tables[1])


def factuality_figure(study: SelectionStudy) -> Figure:
    """Factuality by relative position, of all and of the selected claims."""
    from calibration.figures.panels import COLUMN, name_lines, nth_look, panels, reach

    positions = study.before.positions[:-1]
    with panels(1, 1, (COLUMN, 2.3)) as (figure, ((place,),)):
        lines = {}
        for at, (name, table) in enumerate((("all", study.before), ("selected", study.after))):
            found = table["factuality"]
            # The last position is all of them together.
            middle, lower, upper = found.estimate[:-1], found.lower[:-1], found.upper[:-1]
            across = [position + 0.06 * (2 * at - 1) for position in range(len(positions))]
            arms = reach(middle, lower, upper)
            drawn = place.errorbar(across, middle, yerr=arms, elinewidth=0.8, **nth_look(at))
            lines[name] = drawn.lines[0]
        place.set_xticks(range(len(positions)), positions)
        place.set(ylim=(0, 1), xlabel="relative position of the sentence")
        place.set_ylabel("share of claims that are supported")
        name_lines(place, lines)
        return figure


def _with_length(graph: FactGraph) -> FactGraph:
    if "sentences" in graph.metadata or not graph.response.strip():
        return graph
    from factormodels.extraction.sentences import split_sentences

    found = len(split_sentences(graph.response))
    # The splitter may find fewer sentences than the annotators counted.
    length = max(found, *(atom.sentence or 0 for atom in graph.atoms))
    return replace(graph, metadata={**graph.metadata, "sentences": length})


def _sentence_rows(before: Sequence[FactGraph], after: Sequence[FactGraph]) -> pd.DataFrame:
    """Claims before and after selection by place of the sentence, and last their sum."""
    claims = data_frame(
        [
            (graph.id, atom.sentence or 0, atom.id in kept, atom.label is True)
            for graph, left in zip(before, after, strict=True)
            for kept in [set(left.atom_ids)]
            for atom in graph.atoms
        ],
        ["response", "sentence", "kept", "true"],
    )
    claims["true_kept"] = claims["kept"] & claims["true"]
    # A response counts once at a place, however many claims it has there.
    counts = {
        "responses": ("response", "nunique"),
        "before": ("kept", "size"),
        "after": ("kept", "sum"),
        "supported_before": ("true", "sum"),
        "supported_after": ("true_kept", "sum"),
    }
    places = claims.groupby("sentence").agg(**counts)
    places.loc["all"] = [len(before), *places.iloc[:, 1:].sum()]
    places.index = places.index.map(str)
    rows = places.reset_index()
    rows["survival"] = rows["after"] / rows["before"]
    rows["true_before"] = rows["supported_before"] / rows["before"]
    rows["true_after"] = rows["supported_after"] / rows["after"].where(rows["after"] > 0)
    return rows
