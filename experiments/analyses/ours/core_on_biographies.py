"""What Core keeps of labelled responses, sentence by sentence, and what padding gains beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from calibration.figures.panels import name_lines, nth_colour, nth_marker, panels, reach
from experiments.analyses.context import AnalysisContext
from experiments.analyses.interval_values import difference_of_clusters, mean_of_clusters, named
from experiments.analyses.papers.padding import LABELS, with_a_true_claim
from experiments.analyses.papers.shared.loading import load
from experiments.analyses.papers.shared.sources import SourceName
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, interval_column
from experiments.padding.assessors import by_labels
from experiments.padding.robustness import CoreChoices, padded_scores, padding_gains
from experiments.study.config import STRICT, Count
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.selection import select, subclaims_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

KNOWN, BLIND = "templates known", "words alone"


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        data: name of the labelled responses with texts.
        relations: the relation model of the selection: "lexical" or "nli:FOLDER".
        weights: of the claims.
        appended: sentences of padding.
        sentences: sentences that have a row of their own; the later ones share one.
        data_file: file that says where data are; None: the default one, if it exists.
    """

    __pydantic_config__: ClassVar = STRICT

    data: SourceName
    relations: str = "lexical"
    weights: Literal["informativeness", "uniform"] = "informativeness"
    appended: Count = 20
    sentences: Annotated[int, Field(ge=1)] = 10
    data_file: str | None = None


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Tables of what is kept and of what padding gains, and their figure."""
    from experiments.asking.relation_models import relation_model

    loaded = load(settings.data, context, settings.data_file)
    graphs = [graph for graph in loaded.graphs if graph.atoms]
    padded, remark = with_a_true_claim(loaded)
    model = relation_model(settings.relations)[0]
    with context.track("selection and padding", 3) as step:
        blind = CoreChoices(model, settings.weights)
        kept = data_frame(kept_rows(graphs, blind, settings.sentences, context.seed))
        step()
        rows: list[Mapping[str, Any]] = []
        for judge, choices in (BLIND, blind), (KNOWN, replace(blind, templates_known=True)):
            scores = padded_scores(padded, {LABELS: by_labels}, choices, appended=settings.appended)
            rows += [{"judge": judge, **asdict(row)} for row in padding_gains(scores)]
            step()
    gains = data_frame(rows)
    figure = core_figure(kept, gains)
    return Artefacts(
        tables={"kept": _kept_table(kept, loaded.remark), "gains": gains_table(gains, remark)},
        figures={"core": PaperFigure(figure, gains, "what Core keeps, and what padding gains")},
    )


def kept_rows(
    graphs: Sequence[FactGraph], choices: CoreChoices, sentences: int, seed: int
) -> list[dict[str, Any]]:
    """Shares of claims that selection keeps, and of true ones before and after, by sentence.

    Truth is of claims with a label. Intervals redraw responses; the change of the true share is
    paired.

    Raises:
        InputError: if an atom has no sentence.
    """
    # Of each claim: whose it is, its row, whether it is kept, labelled, and true.
    claims: list[tuple[int, int, bool, bool, bool]] = []
    for number, graph in enumerate(graphs):
        chosen = {one.id for one in select(subclaims_of(graph), choices.core(graph)).chosen}
        for atom in graph.atoms:
            if atom.sentence is None:
                raise InputError(
                    f"response {graph.id!r}: the atom {atom.id!r} does not say which sentence it "
                    "is from; give labelled responses by sentence"
                )
            place = min(atom.sentence, sentences + 1)
            states = atom.id in chosen, atom.label is not None, atom.label is True
            claims.append((number, place, *states))
    owner, place, kept, labelled, true = np.array(claims).T
    n = len(graphs)

    def sums(mask: Any) -> Any:
        return np.bincount(owner, mask, minlength=n)

    titles = [*map(str, range(1, sentences + 1)), f"from {sentences + 1}", "all"]
    rows = []
    for at, title in enumerate(titles, start=1):
        own = np.ones_like(place) if title == "all" else (place == at).astype(np.int64)
        if not own.any():
            continue
        before = sums(own * true), sums(own * labelled)
        after = sums(own * true * kept), sums(own * labelled * kept)
        rows.append(
            {
                "sentence": title,
                "claims": int(own.sum()),
                **named("kept", mean_of_clusters(sums(own * kept), sums(own), seed)),
                **named("true", mean_of_clusters(*before, seed)),
                **named("true_kept", mean_of_clusters(*after, seed)),
                **named("change", difference_of_clusters(after, before, seed)),
            }
        )
    return rows


def _kept_table(frame: pd.DataFrame, remark: str) -> Table:
    columns = (
        Column("sentence", "sentence"),
        Column("claims", "claims", digits=0),
        interval_column("kept", "kept", 2),
        interval_column("true", "true", 3),
        interval_column("true_kept", "true of kept", 3),
        interval_column("change", "change", 3),
    )
    note = "Intervals: 95 % over responses, the change's paired. True: of claims with a label."
    return Table(frame, columns, f"What Core keeps by place of the sentence. {remark}", note=note)


def gains_table(frame: pd.DataFrame, remark: str) -> Table:
    """The table of gains, with a remark on the data."""
    columns = (
        Column("kind", "padding"),
        interval_column("plain", "gain without Core", 3),
        interval_column("core", "gain with Core", 3),
        interval_column("kept_off", "kept off by Core", 3),
    )
    note = (
        "Gain: mean precision by human labels less that of the response as it was, with or without "
        "Core for both. Intervals: 95 % over responses, paired. Words alone: the relation model "
        "judges the words of the padding; templates known: it sees through them."
    )
    return Table(
        frame, columns, f"What padding gains in precision. {remark}", group="judge", note=note
    )


def core_figure(kept: pd.DataFrame, gains: pd.DataFrame) -> Figure:
    """Shares by sentence, and gains of padding with and without Core.

    Args:
        kept: the table of what is kept.
        gains: the table of gains.
    """
    with panels(1, 2, (7.0, 3.0), width_ratios=(3, 2)) as (figure, ((left, right),)):
        rows = kept[kept["sentence"] != "all"]
        across = np.arange(len(rows))
        lines: dict[str, Line2D] = {}
        for at, (name, label) in enumerate(
            (
                ("kept", "kept"),
                ("true", "true of all"),
                ("true_kept", "true of kept"),
            )
        ):
            arms = reach(rows[name], rows[f"{name}_lower"], rows[f"{name}_upper"])
            look = {"color": nth_colour(at), "marker": nth_marker(at), "elinewidth": 0.6}
            drawn = left.errorbar(across + 0.06 * at, rows[name], yerr=arms, **look)
            lines[label] = drawn.lines[0]
        left.set_xticks(across, rows["sentence"])
        left.set(xlabel="sentence", ylabel="share of claims", ylim=(0, 1))
        name_lines(left, lines)
        own = gains[(gains["judge"] == BLIND) & gains["kind"].str.endswith("appended")]
        heights = np.arange(len(own))[::-1]
        for at, (name, label) in enumerate((("plain", "without Core"), ("core", "with Core"))):
            arms = reach(own[name], own[f"{name}_lower"], own[f"{name}_upper"])
            look = {"color": nth_colour(at), "marker": nth_marker(at), "linestyle": "none"}
            right.errorbar(own[name], heights - 0.12 * at, xerr=arms, label=label, **look)
        right.axvline(0.0, color="0.6", linewidth=0.7)
        right.set_yticks(heights, [kind.removesuffix(", appended") for kind in own["kind"]])
        right.set_xlabel("gain in precision")
        # Above the panel: within it, a row holds what is measured wherever a legend would lie.
        right.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    return figure
