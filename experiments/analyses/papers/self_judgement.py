"""What models say of their own claims by position, in the form of Self-Known's figures 2 to 6."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from calibration.figures.panels import name_lines, nth_look, reach, small_multiples
from calibration.figures.positions import Panel, knowledge_panels, position_figure
from calibration.intervals import SumMethod
from calibration.self_knowledge import (
    ClaimLabel,
    ClaimRecord,
    IntervalSettings,
    Neither,
    PositionTable,
    Setting,
    flip_rates,
    label_positions,
    read_records,
    self_knowledge,
)
from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.shared.published import Published, with_published
from experiments.analyses.papers.shared.sources import Place, data_of, hash_of, user_data
from experiments.analyses.positions import position_table
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.study.config import STRICT, Count, Probability
from experiments.study.judged_claims import ClaimColumns, judged_claims, judged_graphs
from factormodels.datasets import load
from factormodels.errors import InputError, unknown_name
from factormodels.io.claim_records import looks_like_record
from factormodels.io.tables import read_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "self-judged"

FigureName = Literal["2", "3", "4", "5", "6a", "6b"]


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        models: the models of the figures, by name, at least one; where the user's file names
            records, it must name those of each, else the embedded ones stand for all.
        figures: which of the paper's figures to draw.
        setting: the setting of figures 3 to 6, the paper's third.
        threshold: confidence, or share of votes, from which a claim counts as judged correct in
            that setting, where a file has these in place of judgements.
        positions: number of bins of relative position.
        intervals: how intervals over responses are made.
        n_bootstrap: replicates of the bootstrap.
        published: the numbers that stand in the table of published ones.
        data_file: file that says where data are; None: the default one, if it exists.
    """

    __pydantic_config__: ClassVar = STRICT

    models: Annotated[tuple[str, ...], Field(min_length=1)]
    figures: Annotated[tuple[FigureName, ...], Field(min_length=1)]
    setting: Setting = Setting.NONE_OF_THE_ABOVE
    threshold: Probability = 0.5
    positions: Count = 5
    intervals: SumMethod = "delta"
    n_bootstrap: Count = 1000
    published: tuple[Published, ...] = ()
    data_file: str | None = None


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


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """The tables by position and the figures."""
    records, remark = _records(settings, context)
    made = IntervalSettings(settings.intervals, settings.n_bootstrap, context.seed)
    found: dict[str, ModelTables] = {}
    with context.track("models", len(records)) as advance:
        for name, claims in records.items():
            found[name] = model_tables(claims, settings.positions, made)
            if settings.setting not in found[name].knowledge:
                raise InputError(
                    f"{name}: no claim was judged in the setting {settings.setting.value!r}"
                )
            advance()
    knowledge = {
        f"{name}, {setting_title(setting)}": table
        for name, model in found.items()
        for setting, table in model.knowledge.items()
    }
    tables = {
        "knowledge": position_table(knowledge, f"Self-knowledge by position. {remark}"),
        "claims": position_table(
            {name: model.labels for name, model in found.items()},
            f"Kinds of claims by position. {remark}",
        ),
    }
    flips = {name: model.flips for name, model in found.items() if model.flips is not None}
    if flips:
        tables["flips"] = position_table(
            flips, f"Claims judged correct as an answer and not with a third choice. {remark}"
        )
    figures = {
        f"figure-{name}": paper_figure(
            name,
            found,
            settings.setting,
            f"Self-Known, figure {name} ({setting_title(settings.setting)}). {remark}",
        )
        for name in settings.figures
    }
    # Only who was asked in both settings can have changed between them.
    published = [each for each in settings.published if flips or each.table != "flips"]
    return with_published(tables, published, remark, figures)


def _records(
    settings: Settings, context: AnalysisContext
) -> tuple[dict[str, list[ClaimRecord]], str]:
    places, remark = _places(settings, context.where)
    read = {name: _claims(place, settings) for name, place in places.items()}
    for name, claims in read.items():
        context.data[f"{SOURCE}: {name}"] = {
            "sha256": hash_of(places[name]),
            "responses": len({claim.response for claim in claims}),
            "atoms": len(claims),
            "labelled": sum(claim.label is not ClaimLabel.IRRELEVANT for claim in claims),
        }
    return read, remark


def _claims(place: Place, settings: Settings) -> list[ClaimRecord]:
    """Claims: records, or a table of confidences or votes of one model, or an embedded dataset."""
    if isinstance(place, Path):
        table = read_table(place)
        if all(looks_like_record(row) for row in table.rows):
            return read_records(place)
        judged = judged_claims(table, ClaimColumns(setting=settings.setting))
    else:
        judged = judged_graphs(load(place).graphs, place, setting=settings.setting)
    if len(judged.groups) > 1:
        raise InputError(f"{place}: it holds several models; write a file for each")
    (group,) = judged.groups
    return judged.records(group, None if judged.kind == "judgement" else settings.threshold)


def _places(settings: Settings, where: str) -> tuple[Mapping[str, Place], str]:
    """Where the claims of each model of the study are, or of the one that is embedded."""
    user = user_data(settings.data_file)
    given, remark = data_of(SOURCE, user, where)
    if not isinstance(given, Mapping):
        raise InputError(f"{user.where}: datasets.{SOURCE} is one file; write one for each model")
    if SOURCE not in user.paths:
        return given, remark
    for name in settings.models:
        # Another model's claims would say nothing of this one.
        if name not in given:
            subject = f"{where}: the model {name!r} of settings.models"
            known = unknown_name(subject, name, given)
            raise InputError(f"{known}; datasets.{SOURCE} in {user.where} names their files")
    return {name: given[name] for name in settings.models}, remark


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


def setting_title(setting: Setting) -> str:
    """A setting in words."""
    return setting.value.replace("_", " ")


def paper_figure(
    name: FigureName,
    found: Mapping[str, ModelTables],
    setting: Setting,
    title: str,
    said: Callable[[Setting], str] = setting_title,
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
