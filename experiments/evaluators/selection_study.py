"""What selection takes from labelled responses: how many claims, where, and which of them.

And the plain program beside selection under uncertain redundancy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from calibration.self_knowledge import (
    IntervalSettings,
    PositionTable,
    label_positions,
)
from experiments.evaluators.robustness import CoreChoices
from experiments.findings.artefacts import PaperFigure
from experiments.findings.table import Column, Table, columns_as, data_frame, interval_column, named
from experiments.settings.labelled_claims import claims_of_graphs
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.selection import Selection, adjusted_precision, restricted
from factormodels.selection.expected import (
    expected_weight,
    redundancy,
    score_distribution,
    select_expected,
)

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
    from factormodels.extraction.sentences import sentences_of

    found = len(sentences_of(graph))
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


def uncertain_rows(
    found: Sequence[tuple[FactGraph, Selection]],
    choices: CoreChoices,
    *,
    samples: int = 200,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Every response under three readings of the same judgements; precision is by human labels.

    Columns: response; claims; plain_count and plain_precision of Core's program, which decides each
    entailment; expected_count and expected_precision of the set of greatest expected weight, each
    claim counted with the probability that nothing heavier makes it redundant; gain, the expected
    weight of that set over that of the plain program's; proved, whether that set is the best;
    sampled_precision, lower and upper: mean and central 95 % of Core's precision over sampled
    redundancy graphs.

    Args:
        found: labelled responses with claims, each with what Core's program selects; a claim
            without a label is not supported.
        choices: how that was selected.
        samples: redundancy graphs per response.
        seed: seed of the graphs.

    Raises:
        InputError: as `score_distribution` does.
    """
    rows = []
    for graph, plain in found:
        supported = [atom.label is True for atom in graph.atoms]
        weights = plain.program.weights
        r = redundancy(plain.entailments, choices.rule)
        # Starting from the plain set, it can only be as good or better.
        best = select_expected(weights, r, start=plain.solution.chosen)
        drawn = score_distribution(
            weights, r, supported, samples=samples, seed=seed, solver=choices.solver
        )
        base = expected_weight(plain.solution.chosen, weights, r)
        lower, upper = drawn.interval()
        rows.append(
            {
                "response": graph.id,
                "claims": len(graph.atoms),
                "plain_count": len(plain.solution.chosen),
                "plain_precision": adjusted_precision(supported, plain.solution.chosen),
                "expected_count": best.expected_count,
                "expected_precision": best.precision(supported),
                "gain": best.expected_weight / base if base > 0 else float("nan"),
                "proved": best.status == "optimal",
                "sampled_precision": float(drawn.scores.mean()),
                "lower": lower,
                "upper": upper,
            }
        )
    return rows


def study_tables(study: SelectionStudy) -> dict[str, Table]:
    """Claims by sentence, and each of `QUANTITIES` by relative position."""
    positions = [
        {
            "quantity": quantity.replace("_", " "),
            "claims": name,
            **{
                f"p{cell}{part}": float(values[cell])
                for cell in range(len(table.positions))
                for part, values in named(
                    "", (table[quantity].estimate, table[quantity].lower, table[quantity].upper)
                ).items()
            },
        }
        for quantity in QUANTITIES
        for name, table in (("all", study.before), ("selected", study.after))
    ]
    before = study.before["factuality"]
    by_sentence = Table(
        study.rows,
        (
            Column("sentence", "sentence", right=True),
            *columns_as(
                "responses:0 | before:0 | after:0 | survival:2 share left | "
                "true_before:2 true before | true_after:2 true after"
            ),
        ),
        "Claims by the place of their sentence, before and after selection.",
    )
    by_position = Table(
        data_frame(positions),
        (
            *columns_as("claims"),
            *(
                interval_column(f"p{cell}", position, 2)
                for cell, position in enumerate(study.before.positions)
            ),
        ),
        "Claims by relative position, before and after selection.",
        group="quantity",
        note=f"In brackets: {100 * before.level:g}% intervals over responses.",
    )
    return {"sentences": by_sentence, "positions": by_position}


def study_figures(study: SelectionStudy) -> dict[str, PaperFigure]:
    """Factuality by relative position."""
    rows = [
        {"claims": name, **row}
        for name, table in (("all", study.before), ("selected", study.after))
        for row in table.rows()
        if row["quantity"] == "factuality"
    ]
    title = "Factuality by relative position, before and after selection"
    return {"selection": PaperFigure(factuality_figure(study), data_frame(rows), title)}


def uncertain_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The rows as a table, and last their means."""
    own = [{**row, "proved": float(row["proved"])} for row in rows]
    mean = dict(data_frame(own).drop(columns="response").mean())
    last = {**mean, "response": "mean", "lower": math.nan, "upper": math.nan}
    return Table(
        data_frame([*own, last]),
        columns_as(
            "response | claims:0 | plain_count:1 plain | plain_precision:2 Pr | "
            "expected_count:1 expected | expected_precision:2 Pr | gain:2 | proved:2 | "
            "sampled_precision:2[] sampled Pr"
        ),
        "Plain program, expected weight, sampled redundancy graphs.",
        note="gain: of expected weight; proved: 1 where the set is the best; in brackets the "
        "central 95% of the samples.",
    )
