"""Claims and tokens by the stride of extraction, in the form of FaStfact's figure 3."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from calibration.figures.panels import name_lines, nth_look, small_multiples
from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.shared.loading import language_model, load
from experiments.analyses.papers.shared.published import Published, with_published
from experiments.analyses.papers.shared.sources import DATA_FILE, SourceName
from experiments.evaluators.costs import stride_ablation
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame
from experiments.study.config import STRICT, Count
from factormodels.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        data: name of the responses with texts, their atoms the claims that people find.
        strides: sentences per extracting call; all: the whole response.
        published: the numbers that stand in the table of published ones.
        data_file: file that says where data are; None: the default one, if it exists.
    """

    __pydantic_config__: ClassVar = STRICT

    data: SourceName
    strides: Annotated[tuple[Count | Literal["all"], ...], Field(min_length=1)] = (1, 2, 4, "all")
    published: tuple[Published, ...] = ()
    data_file: str | None = None


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """The table and the figure of each stride."""
    loaded = load(settings.data, context, settings.data_file)
    graphs, remark = loaded.graphs, loaded.remark
    user = loaded.user
    models = {name: language_model(name, access, context) for name, access in user.models.items()}
    if not models:
        raise InputError(
            f"{context.where}: it asks a language model for claims; name one under models in "
            f"{user.where or DATA_FILE}"
        )
    strides = [None if stride == "all" else stride for stride in settings.strides]
    people = sum(len(graph.atoms) for graph in graphs) / len(graphs)
    rows = []
    with context.track("models", len(models)) as advance:
        for name, model in models.items():
            for row in stride_ablation(graphs, model, strides):
                rows.append(
                    {
                        "model": name,
                        **asdict(row),
                        "stride": "all" if row.stride is None else str(row.stride),
                        "claims_per_response": row.claims / len(graphs),
                        "claims_of_people": people,
                        "tokens_per_response": (row.prompt_tokens + row.completion_tokens)
                        / len(graphs),
                    }
                )
            advance()
    frame = data_frame(rows)
    columns = (
        Column("model", "model"),
        Column("stride", "stride", right=True),
        Column("calls", "calls", digits=0),
        Column("claims_per_response", "claims per response", digits=2),
        Column("claims_of_people", "of people", digits=2),
        Column("claim_difference", "mean |difference|", digits=2),
        Column("tokens_per_response", "tokens per response", digits=0),
    )
    caption = f"FaStfact, figure 3: claims and tokens by stride. {remark}"
    tables = {"strides": Table(frame, columns, caption)}
    figures = {
        f"figure-3-{what}": PaperFigure(
            _figure(frame, f"{what}_per_response", f"{what} per response"), frame, caption
        )
        for what in ("claims", "tokens")
    }
    return with_published(tables, settings.published, remark, figures)


def _figure(frame: pd.DataFrame, column: str, label: str) -> Figure:
    strides = list(frame["stride"].unique())
    with small_multiples(list(frame["model"].unique()), (2.3, 2.1)) as (figure, places):
        for place, names in places:
            lines = {}
            for at, name in enumerate(names):
                own = frame[frame["model"] == name][column]
                (lines[name],) = place.plot(range(len(strides)), own, **nth_look(at))
            if column == "claims_per_response":
                people = frame["claims_of_people"].iloc[0]
                look: dict[str, Any] = {"color": "0.4", "linestyle": ":", "zorder": 1}
                (lines["people"],) = place.plot([0, len(strides) - 1], [people, people], **look)
            place.set_xticks(range(len(strides)), strides)
            place.set_xlabel("sentences per call")
            name_lines(place, lines)
        places[0][0].set(ylabel=label, ylim=(0, None))
        return figure
