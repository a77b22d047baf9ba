"""Scores of padded responses with and without Core, in the form of its figure 4 and table 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.shared.loading import Loaded, language_model, load
from experiments.analyses.papers.shared.published import (
    Published,
    printed,
    records,
    with_published,
)
from experiments.analyses.papers.shared.sources import SourceName, UserData
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, text_columns
from experiments.padding.assessors import Assessor, by_inference, by_labels, by_prompt
from experiments.padding.gaming import paddings_of
from experiments.padding.robustness import (
    CoreChoices,
    CurveRow,
    TableRow,
    padded_scores,
    robustness_curves,
    robustness_figure,
    robustness_table,
)
from experiments.study.config import STRICT, Count, Probability
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    import pandas as pd

LABELS = "human labels"


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        data: name of the labelled responses with texts.
        relations: the relation model of the selection: "lexical" or "nli:FOLDER".
        weights: of the claims.
        templates_known: whether the relation model sees through the templates of padding.
        assessors: "labels", "FR1", "FR2" or "FR3"; those by a prompt come with the user's models.
        prompts: the prompt-based assessors that are asked of the user's models.
        appended: sentences of padding, in the table; a multiple of `steps`.
        steps: points of the curves beside 0.
        corrupt: share of true claims that are turned false in the curves.
        published: the numbers that stand in the table of published ones.
        data_file: file that says where data are; None: the default one, if it exists.
    """

    __pydantic_config__: ClassVar = STRICT

    data: SourceName
    relations: str = "lexical"
    weights: Literal["informativeness", "uniform"] = "informativeness"
    templates_known: bool = False
    assessors: Annotated[
        tuple[Literal["labels", "FR1", "FR2", "FR3"], ...], Field(min_length=1)
    ] = ("labels", "FR1")
    prompts: tuple[str, ...] = ("factscore",)
    appended: Count = 20
    steps: Count = 4
    corrupt: Probability = 0.5
    published: tuple[Published, ...] = ()
    data_file: str | None = None


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """The table of normal and padded responses and the curves of each assessor."""
    from experiments.asking.relation_models import relation_model

    loaded = load(settings.data, context, settings.data_file)
    graphs, remark = with_a_true_claim(loaded)
    choices = CoreChoices(
        relation_model(settings.relations)[0],
        settings.weights,
        templates_known=settings.templates_known,
    )
    assessors = _assessors(settings, loaded.user, context)
    with context.track("table and curves", 2) as advance:
        scores = padded_scores(graphs, assessors, choices, appended=settings.appended)
        rows = robustness_table(graphs, scores)
        advance()
        counts = [round(settings.appended * k / settings.steps) for k in range(settings.steps + 1)]
        curves = robustness_curves(
            graphs,
            assessors,
            choices,
            counts=counts,
            corrupt=settings.corrupt,
            seed=context.seed,
        )
        advance()
    tables = {"table-4": _table(rows, remark), "curves": _curve_table(curves, remark)}
    figures = {
        f"figure-4-{padding}-{name.replace(' ', '-').replace(':', '')}": PaperFigure(
            robustness_figure(curves, name, padding),
            _curves(curves, name, padding),
            f"Core, figure 4: {padding} sentences appended, {name}. {remark}",
        )
        for name in assessors
        for padding in paddings_of(graphs)
    }
    return with_published(tables, settings.published, remark, figures)


def with_a_true_claim(loaded: Loaded) -> tuple[list[FactGraph], str]:
    """The responses that repetition can pad, and the remark on the data."""
    graphs = [graph for graph in loaded.graphs if any(atom.label for atom in graph.atoms)]
    if not graphs:
        raise InputError(f"{loaded.user.where}: no claim is labelled true; give labelled responses")
    left_out = len(loaded.graphs) - len(graphs)
    said = f" {left_out} responses without a true claim are left out." if left_out else ""
    return graphs, loaded.remark + said


def _assessors(settings: Settings, user: UserData, context: AnalysisContext) -> dict[str, Assessor]:
    found: dict[str, Assessor] = {
        LABELS if name == "labels" else name: by_labels if name == "labels" else by_inference(name)
        for name in settings.assessors
    }
    for name, access in user.models.items():
        model = language_model(name, access, context)
        for prompt in settings.prompts:
            found[f"{prompt}, {name}"] = by_prompt(prompt, model)
    return found


_KINDS = {
    "normal": "Normal",
    "uninformative, alone": "Info",
    "repetitive, alone": "Rep",
    "uninformative, appended": "Normal + Info",
    "repetitive, appended": "Normal + Rep",
}
"""Our columns; the first three are the paper's."""


def _table(rows: Sequence[TableRow], remark: str) -> Table:
    found: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    for row in rows:
        key = ("ours", "ours", row.assessor, _with(row.core))
        found.setdefault(key, {})[row.kind] = 100 * row.precision
    for theirs in records(printed("core_table_4")):
        block = f"{theirs['domain']}, {theirs['generator']}, as the paper prints it"
        key = ("printed", block, theirs["metric"], theirs["core"])
        kind = "normal" if theirs["kind"] == "normal" else f"{theirs['kind']}, alone"
        found.setdefault(key, {})[kind] = theirs["precision"]
    frame = data_frame(
        [
            {"origin": origin, "block": block, "assessor": name, "core": core}
            | {kind: values.get(kind, float("nan")) for kind in _KINDS}
            for (origin, block, name, core), values in found.items()
        ]
    )
    columns = [Column("assessor", "metric"), Column("core", "Core")]
    columns += [Column(kind, title, digits=1) for kind, title in _KINDS.items()]
    caption = f"Core, table 4: factual precision in percent, with and without Core. {remark}"
    note = (
        "Ours: Info and Rep are responses of padding alone, from templates; the paper's are of "
        "models tuned to pad. The last two columns, padding after a normal one, are ours alone."
    )
    return Table(frame, tuple(columns), caption, group="block", note=note)


def _curve_table(rows: Sequence[CurveRow], remark: str) -> Table:
    frame = data_frame([{**asdict(row), "core": _with(row.core)} for row in rows])
    columns = (
        *text_columns("assessor", "core", "response", "padding"),
        Column("appended", "appended", digits=0),
        Column("precision", "precision", digits=3),
        Column("raised", "above clean", digits=0),
    )
    return Table(frame, columns, f"Core, figure 4: the points of the curves. {remark}")


def _curves(rows: Sequence[CurveRow], name: str, padding: str) -> pd.DataFrame:
    mine: list[Mapping[str, Any]] = [
        {**asdict(row), "core": _with(row.core)}
        for row in rows
        if (row.assessor, row.padding) == (name, padding)
    ]
    return data_frame(mine)


def _with(core: bool) -> str:
    return "with" if core else "without"
