"""ROC curves of relation models on judged pairs, in the form of FactReasoner's figures 6 to 10."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from calibration.figures.panels import nth_colour, nth_dash, small_multiples
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.shared.loading import language_model, load
from experiments.analyses.papers.shared.published import Published, with_published
from experiments.analyses.papers.shared.sources import SourceName, UserData
from experiments.analyses.posteriors import LabelledAtoms, scores_with_intervals
from experiments.evaluators.relation_quality import (
    LabelledPair,
    RelationForecasts,
    fit_lexical,
    labelled_pairs,
    of_factcheck_bench,
    relation_forecasts,
)
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, interval_column
from experiments.study.config import STRICT, Count
from factormodels.claims import RelationKind
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import TextPair
from factormodels.extraction.relation_models.lexical import KINDS
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FITTED = "lexical, fitted to these pairs and cross-validated"


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        data: name of the judged pairs, as fact graphs with texts and relations.
        figures: the relation that each figure is of, by its number in the paper.
        relations: models beside those of the user's file: "lexical", "fitted" (the lexical one
            with coefficients fitted to these very pairs, cross-validated), or "nli:FOLDER".
        folds: folds of the cross-validation.
        published: the numbers that stand in the table of published ones.
        data_file: file that says where data are; None: the default one, if it exists.
    """

    __pydantic_config__: ClassVar = STRICT

    data: SourceName
    figures: Annotated[Mapping[str, RelationKind], Field(min_length=1)]
    relations: tuple[str, ...] = ("lexical", "fitted")
    folds: Count = 5
    published: tuple[Published, ...] = ()
    data_file: str | None = None


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """A table of areas under the curve and a figure per relation."""
    loaded = load(settings.data, context, settings.data_file)
    remark = loaded.remark
    pairs = (
        labelled_pairs(loaded.graphs)
        if any(graph.relations for graph in loaded.graphs)
        else continuation_pairs(loaded.graphs)
    )
    if not pairs:
        raise InputError(
            f"{context.where}: {settings.data} holds no relations and no continuations; "
            "give judged pairs as fact graphs, or FACTOR's file"
        )
    forecasts = _forecasts(pairs, settings, loaded.user, context)
    frame = _areas(forecasts, settings, context.seed)
    count = partial(Column, show=lambda n: f"{int(n):,}", right=True)
    columns = (
        Column("model", "relation model"),
        Column("relation", "relation"),
        count("pairs", "pairs"),
        count("holds", "of these it holds"),
        interval_column("auroc", "AUROC", 3),
    )
    caption = f"Areas under the ROC curves of relation models. {remark}"
    note = "In brackets: 95% intervals over responses."
    if FITTED in forecasts:
        note += " Cross-validated: AUROC and curve are of pairs of one fold."
    seen = int(of_factcheck_bench(item.pair for item in pairs).sum())
    if seen and "lexical" in forecasts:
        note += f" In-sample: the lexical model was fitted to {seen:,} of the pairs."
    tables = {"auroc": Table(frame, columns, caption, note=note)}
    figures = {
        f"figure-{number}": _figure(number, kind, forecasts, remark)
        for number, kind in settings.figures.items()
    }
    return with_published(tables, settings.published, remark, figures)


def _forecasts(
    pairs: Sequence[LabelledPair], settings: Settings, user: UserData, context: AnalysisContext
) -> dict[str, dict[RelationKind, RelationForecasts]]:
    from experiments.asking.relation_models import relation_model
    from factormodels.extraction.relation_models.prompted import PromptedRelationModel

    found = {}
    with context.track("relation models", len(settings.relations) + len(user.models)) as advance:
        for name, access in user.models.items():
            model = PromptedRelationModel(language_model(name, access, context), "logprobs")
            found[name] = relation_forecasts(model, pairs)
            advance()
        for name in settings.relations:
            if name == "fitted":
                found[FITTED] = _fitted(pairs, settings.folds)
            else:
                found[name] = relation_forecasts(relation_model(name)[0], pairs)
            advance()
    if not found:
        raise InputError(f"{context.where}: settings.relations is empty; name a relation model")
    return found


def _fitted(pairs: Sequence[LabelledPair], folds: int) -> dict[RelationKind, RelationForecasts]:
    fit = fit_lexical(pairs, folds=folds)
    responses = np.array([item.response for item in pairs], dtype=object)
    # Its columns are in the order of the codes, which are the places in KINDS.
    return {
        kind: RelationForecasts(
            fit.cross_validated[:, column],
            np.array([item.kind is kind for item in pairs], dtype=bool),
            responses,
            0,
            fit.folds,
        )
        for column, kind in enumerate(KINDS)
    }


def _areas(
    forecasts: Mapping[str, Mapping[RelationKind, RelationForecasts]],
    settings: Settings,
    seed: int,
) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for kind in dict.fromkeys(settings.figures.values()):
        for name, by_kind in forecasts.items():
            found = by_kind[kind]
            everything = np.ones(found.p.size, dtype=np.bool_)
            atoms = LabelledAtoms(found.y.astype(np.float64), found.responses, everything)
            rows.append(
                {
                    "model": name,
                    "relation": str(kind),
                    "pairs": found.p.size,
                    "holds": int(found.y.sum()),
                    "missing": found.missing,
                    **scores_with_intervals(found.p, atoms, ("auroc",), seed, found.folds),
                }
            )
    return data_frame(rows)


def _figure(
    number: str,
    kind: RelationKind,
    forecasts: Mapping[str, Mapping[RelationKind, RelationForecasts]],
    remark: str,
) -> PaperFigure:
    import pandas as pd

    curves = {}
    for name, by_kind in forecasts.items():
        found = by_kind[kind]
        if found.y.all() or not found.y.any():
            raise InputError(f"figure {number}: the pairs are all {kind}, or none is; give both")
        wrong, right = roc_within(found)
        curves[name] = pd.DataFrame(
            {
                "model": name,
                "relation": str(kind),
                "false_positive_rate": wrong,
                "true_positive_rate": right,
            }
        )
    title = f"FactReasoner, figure {number}: predicting {kind}. {remark}"
    return PaperFigure(_drawn(curves, kind), pd.concat(curves.values()), title)


def roc_within(found: RelationForecasts) -> tuple[Floats, Floats]:
    """False and true positive rates of a ROC curve, (m,) each, whose area is the AUROC.

    Of folds, the mean of their curves at every false positive rate, each counting as the pairs of
    claims that it compares.
    """
    from sklearn.metrics import roc_curve

    fold = np.zeros(found.p.size, dtype=np.int64) if found.folds is None else found.folds
    inside = [fold == number for number in np.unique(fold)]
    pairs = np.array([found.y[own].sum() * (~found.y[own]).sum() for own in inside], dtype=float)
    curves = [
        roc_curve(found.y[own], found.p[own], drop_intermediate=False)[:2]
        for own, count in zip(inside, pairs, strict=True)
        if count > 0
    ]
    rates = np.unique(np.concatenate([wrong for wrong, _ in curves]))
    # At each rate a curve may rise: from its least to its greatest height there.
    ends = []
    for wrong, right in curves:
        own, first = np.unique(wrong, return_index=True)
        last = np.append(first[1:], wrong.size) - 1
        at = np.searchsorted(own, rates, side="right") - 1
        after = np.minimum(at + 1, own.size - 1)
        share = (rates - own[at]) / np.maximum(own[after] - own[at], 1e-300)
        between = right[last[at]] + share * (right[first[after]] - right[last[at]])
        there = rates == own[at]
        ends.append(
            (np.where(there, right[first[at]], between), np.where(there, right[last[at]], between))
        )
    least, greatest = np.average(np.array(ends), axis=0, weights=pairs[pairs > 0])
    return np.repeat(rates, 2), np.stack([least, greatest], axis=1).ravel()


def _drawn(curves: Mapping[str, pd.DataFrame], kind: RelationKind) -> Figure:
    with small_multiples(list(curves), (3.4, 2.4)) as (figure, places):
        for place, names in places:
            place.plot([0, 1], [0, 1], color="0.7", linewidth=0.6)
            for at, name in enumerate(names):
                wrong, right = (curves[name][f"{side}_positive_rate"] for side in ("false", "true"))
                look = {"color": nth_colour(at), "linestyle": nth_dash(at)}
                place.plot(wrong, right, label=name, **look)
            place.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
            # Curves lie above the diagonal: the corner below it is free.
            for text in place.legend(loc="lower right").get_texts():
                text.set_parse_math(False)
        figure.supxlabel(f"false positive rate, {kind}", fontsize=8.0)
        figure.supylabel("true positive rate", fontsize=8.0)
        return figure


def continuation_pairs(graphs: Iterable[FactGraph]) -> list[LabelledPair]:
    """The pairs of texts with relations that FACTOR implies.

    The text with its true continuation entails that continuation and contradicts the false ones.
    FactReasoner does not say how it made its pairs. Graphs without a text, or without exactly one
    true continuation, give none.
    """
    found = []
    for graph in graphs:
        true = [atom for atom in graph.atoms if atom.label]
        if not graph.query or len(true) != 1:
            continue
        premise = f"{graph.query.rstrip()} {true[0].text}"
        found += [
            LabelledPair(
                TextPair(premise, atom.text, "text", atom.id),
                RelationKind.ENTAILMENT if atom.label else RelationKind.CONTRADICTION,
                graph.id,
            )
            for atom in graph.atoms
            if atom.label is not None
        ]
    return found
