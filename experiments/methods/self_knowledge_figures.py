"""The tables of a model's claims by position, and figures of them in the form of Self-Known's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from calibration.figures.panels import name_lines, nth_look, reach, small_multiples
from calibration.figures.positions import Panel, knowledge_panels, position_figure
from calibration.self_knowledge import (
    ClaimRecord,
    IntervalSettings,
    Neither,
    PositionTable,
    Setting,
    flip_rates,
    label_positions,
    self_knowledge,
)
from experiments.analyses.positions import position_table
from experiments.findings.artefacts import PaperFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FigureName = Literal["2", "3", "4", "5", "6b"]


@dataclass(frozen=True, eq=False)
class ModelTables:
    """The tables of one model by position.

    Attributes:
        labels: kinds of claims.
        knowledge: self-knowledge, by setting.
        flips: between the second setting and the third, where both were asked.
    """

    labels: PositionTable
    knowledge: Mapping[Setting, PositionTable]
    flips: PositionTable | None


def model_tables(
    claims: Sequence[ClaimRecord],
    n_positions: int,
    intervals: IntervalSettings,
    neither: str = Neither.INCORRECT,
) -> ModelTables:
    """The tables of a model's claims, in every setting in which it was asked.

    Args:
        claims: the claims.
        n_positions: number of bins.
        intervals: how intervals over responses are made.
        neither: what the judgement "neither" counts as.

    Raises:
        InputError: for no records, or settings out of range.
    """
    asked = [
        setting
        for setting in Setting
        if any(claim.judgement(setting) is not None for claim in claims)
    ]
    wanted: Any = {"n_positions": n_positions, "intervals": intervals, "neither": neither}
    both = {Setting.QUESTION_ANSWERING, Setting.NONE_OF_THE_ABOVE} <= set(asked)
    return ModelTables(
        label_positions(claims, n_positions=n_positions, intervals=intervals),
        {setting: self_knowledge(claims, setting, **wanted) for setting in asked},
        flip_rates(claims, **wanted) if both else None,
    )


def paper_figure(
    name: FigureName,
    found: Mapping[str, ModelTables],
    setting: Setting,
    title: str,
    said: Callable[[Setting], str],
) -> PaperFigure:
    """A figure in the form of the paper's, with the setting named on it.

    Args:
        name: which of the paper's figures.
        found: the tables by model; figures 2 and 3 show the first one.
        setting: the setting of figures 3 to 6.
        title: what the figure shows.
        said: what a setting is called.
    """
    first_model, first = next(iter(found.items()))
    how = said(setting)
    if name == "2":
        panels = [
            panel for each, table in first.knowledge.items() for panel in _titled(said(each), table)
        ]
        if first.flips is not None:
            rates = {"supported_flip_rate": "supported", "unsupported_flip_rate": "unsupported"}
            panels.append(Panel(first.flips, rates, "Share of claims that flip", (2, 1)))
        shown = {each.value: table for each, table in first.knowledge.items()}
        if first.flips is not None:
            shown["flips"] = first.flips
        figure = position_figure(panels, title=first_model or None)
        return PaperFigure(figure, position_table(shown, "").frame, title)
    if name == "3":
        table = first.knowledge[setting]
        label = _joined("Factuality", first_model, how)
        panel = Panel(table, {"factuality": "human", "sigma": "σ"}, label, (2, 6))
        figure = position_figure([panel])
        return PaperFigure(figure, position_table({"": table}, "").frame, title)
    own = {model: tables.knowledge[setting] for model, tables in found.items()}
    if name == "4":
        figure = position_figure(
            [panel for model, table in own.items() for panel in _titled(_joined(model, how), table)]
        )
        return PaperFigure(figure, position_table(own, "").frame, title)
    if name == "6b":
        quantities = {"self_known": "Self-Known", "self_unknown": "Self-Unknown"}
        figure = position_figure(
            [
                Panel(table, quantities, _joined("Share of claims", model, how), (0, 1))
                for model, table in own.items()
            ]
        )
        return PaperFigure(figure, position_table(own, "").frame, title)
    labels = {model: tables.labels for model, tables in found.items()}
    return PaperFigure(_numbers(labels), position_table(labels, "").frame, title)


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _titled(of: str, table: PositionTable) -> tuple[Panel, Panel]:
    return knowledge_panels(table, _joined("Share of claims", of))


def _numbers(found: Mapping[str, PositionTable]) -> Figure:
    """The number of unsupported claims per sentence by position, a line per model."""
    positions = next(iter(found.values())).positions[:-1]
    with small_multiples(list(found), (2.3, 2.0)) as (figure, places):
        for place, names in places:
            lines = {}
            for at, name in enumerate(names):
                numbers = found[name]["unsupported_number"]
                middle = numbers.estimate[:-1]
                across = [position + 0.05 * at for position in range(len(positions))]
                arms = reach(middle, numbers.lower[:-1], numbers.upper[:-1])
                drawn = place.errorbar(across, middle, yerr=arms, elinewidth=0.8, **nth_look(at))
                lines[name] = drawn.lines[0]
            place.set_xticks(range(len(positions)), positions)
            name_lines(place, lines)
        places[0][0].set_ylim(bottom=0)
        figure.supxlabel("relative position of the sentence", fontsize=8.0)
        figure.supylabel("unsupported claims per sentence", fontsize=8.0)
        return figure
