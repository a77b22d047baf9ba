"""Few calls: of the pairs that a variant asks about, how few give the verdicts that all give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from calibration.figures.panels import PAGE, nth_look, panels
from calibration.unasked import (
    AnswerLaw,
    Answers,
    AskablePairs,
    Asked,
    early_stopped,
    learn_law,
    play,
    replay,
    stated_risk,
)
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.evaluators.unasked import Askable, answers_of, askable, overlap, with_asked
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame
from experiments.study.config import STRICT, DatasetChoice
from factormodels.claims import RelationKind
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant
from inference import infer_batch

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

VALUE, WORDS = "value", "value, words too"
"""Our own order among the methods: without any text, and with the overlap of words."""

_EDGES = (0.02, 0.05, 0.2, 0.5, 1.0)
"""Where classes of the stated risk end."""


@dataclass(frozen=True)
class Settings:
    """On what, and where the orders are looked at.

    Attributes:
        datasets: responses whose relations are recorded; with the variant FR1 only passages that
            were found for a claim are asked about, otherwise all.
        shares: shares of the calls after which verdicts are compared.
        risks_at: those after which stated risks are compared with what changes.
        folds: folds of responses from which the law of answers is learned.
        together: whether one law is learned from all the data, as that of `assess` is; otherwise
            each has its own.
        least: relations that are less probable count as neutral, as they do for `assess` below
            1/2; embedded ones are counted whatever their probability.
    """

    __pydantic_config__: ClassVar = STRICT

    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1)]
    shares: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.42, 0.53, 0.7, 0.85)
    risks_at: tuple[float, ...] = (0.1, 0.2, 0.3)
    folds: Annotated[int, Field(ge=2)] = 5
    together: bool = False
    least: Annotated[float, Field(ge=0, le=1)] = 0.0


@dataclass(frozen=True, eq=False)
class Recorded:
    """Responses all of whose pairs were asked.

    Attributes:
        graphs: the responses, with equal passages merged.
        asked: their pairs.
        answers: answers to these.
        fold: number of the fold of each response.
    """

    graphs: Sequence[FactGraph]
    asked: Sequence[Askable]
    answers: Sequence[Answers]
    fold: NDArray[np.int64]

    @property
    def pairs(self) -> list[AskablePairs]:
        """The pairs as numbers."""
        return [each.pairs for each in self.asked]


def recorded(
    graphs: Sequence[FactGraph], name: str, folds: int, seed: int, least: float = 0.0
) -> Recorded:
    """The responses that have a pair which a variant asks about, in random folds.

    Args:
        graphs: the responses.
        name: the variant.
        folds: number of folds.
        seed: seed of the folds.
        least: relations that are less probable count as neutral; their distributions stay.
    """
    graphs = [
        graph.derived(graph.contexts, tuple(
            replace(one, kind=RelationKind.NEUTRAL) if one.probability < least else one
            for one in graph.relations
        ))
        for graph in (variant(graph, "FR2") for graph in graphs if graph.atoms and graph.contexts)
    ]  # fmt: skip
    asked = [askable(graph, name) for graph in graphs]
    answers = [answers_of(graph, each) for graph, each in zip(graphs, asked, strict=True)]
    fold = np.random.default_rng(seed).permutation(len(graphs)) % folds
    return Recorded(graphs, asked, answers, fold)


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Verdicts kept by order and share of calls, and how far stated risks hold."""
    kept: list[dict[str, Any]] = []
    risks: list[dict[str, Any]] = []
    of = [(choice.variants or ("FR2",))[0] for choice in settings.datasets]
    loaded = context.load(settings.datasets)
    data = [recorded(one.graphs, name, settings.folds, context.seed, settings.least)
            for one, name in zip(loaded, of, strict=True)]  # fmt: skip
    for one, name, own in zip(loaded, of, data, strict=True):
        with context.track(f"{one.name}, {name}", 2 * (settings.folds + 3)) as step:
            learned_from = data if settings.together else [own]
            found = compared(own, name, learned_from, settings, context.seed, step)
            for rows, more in zip((kept, risks), found, strict=True):
                rows += [{"data": one.name, "variant": name, **row} for row in more]
    frame, stated = data_frame(kept), data_frame(risks)
    return Artefacts(
        tables={"kept": _kept_table(frame), "risks": _risk_table(stated)},
        figures={"frontier": PaperFigure(_figure(frame), frame, "verdicts kept against calls")},
    )


def compared(
    own: Recorded,
    name: str,
    learned_from: Sequence[Recorded],
    settings: Settings,
    seed: int,
    step: Any,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of both tables; verdicts are those of exact inference under *implication*."""
    graphs, asked, pairs, answers = own.graphs, own.asked, own.pairs, own.answers
    laws = _laws(own, learned_from, seed, step)
    orders = {VALUE: play(laws, pairs, answers)}
    words = None
    # What words buy can be told where there are texts.
    if all(context.content for graph in graphs for context in graph.contexts):
        worded = replace(own, asked=[askable(graph, name, (overlap,)) for graph in graphs])
        words = np.concatenate([each.columns[:, -1] for each in worded.pairs])
        orders[WORDS] = play(_laws(worded, [worded], seed, step), worded.pairs, answers)
    orders |= rivals(pairs, answers, np.random.default_rng(seed), words)
    total = sum(each.size for each in pairs)
    whole = posteriors(graphs, asked, orders[VALUE])
    rows = []
    for method, order in orders.items():
        for share in settings.shares:
            p = posteriors(graphs, asked, _first(order, round(share * total)))
            same = float((true(p) == true(whole)).mean())
            change = float(np.abs(p - whole).mean())
            rows.append({"method": method, "share": share, "kept": same, "change": change,
                         "calls": round(share * total)})  # fmt: skip
        step()
    risks, changed = [], []
    for share in settings.risks_at:
        first = _first(orders[VALUE], round(share * total))
        for number, (law, each, told) in enumerate(zip(laws, pairs, answers, strict=True)):
            state, odds = replay(law, each, told, first.pair[first.response == number])
            risks.append(stated_risk(law, each, state, odds, told.weight, seed=seed))
        changed.append(true(posteriors(graphs, asked, first)) != true(whole))
    return rows, risk_rows(np.concatenate(risks), np.concatenate(changed))


def _laws(own: Recorded, learned_from: Sequence[Recorded], seed: int, step: Any) -> list[AnswerLaw]:
    """For each response the law of the responses of other folds."""
    found = {}
    for number in np.unique(own.fold).tolist():
        found[number] = learned(learned_from, number, seed)
        step()
    return [found[number] for number in own.fold.tolist()]


def learned(data: Sequence[Recorded], without: int | None = None, seed: int = 0) -> AnswerLaw:
    """The law of answers of all these responses, or of those that are not of a fold."""
    told = [
        (pairs, answers)
        for one in data
        for pairs, answers, fold in zip(one.pairs, one.answers, one.fold, strict=True)
        if fold != without
    ]
    return learn_law([pairs for pairs, _ in told], [answers for _, answers in told], seed=seed)


def rivals(
    pairs: Sequence[AskablePairs],
    answers: Sequence[Answers],
    generator: np.random.Generator,
    words: Floats | None = None,
) -> dict[str, Asked]:
    """The orders of others: by rank and own passages first, with neighbours', at random.

    Args:
        pairs: pairs of each response.
        answers: answers to them.
        generator: draws what the orders leave open.
        words: of all pairs, the share of the claim's words that the passage has, where there are
            texts: what is alike then comes first among neighbours, and an order has nothing else.
    """
    response = np.repeat(np.arange(len(pairs)), [each.size for each in pairs])
    pair = np.concatenate([np.arange(each.size) for each in pairs])
    columns = np.concatenate([each.columns for each in pairs])
    own, distance, rank = columns[:, 1] > 0, np.expm1(columns[:, 4]), columns[:, 7]
    drawn = generator.random(pair.size)

    def by(*keys: NDArray[np.generic]) -> Asked:
        order = np.lexsort((drawn, *reversed(keys)))
        return Asked(response[order], pair[order])

    ranked = by(~own, np.where(own, rank, distance))
    near = np.where(own, 0, np.where(distance <= 1, 1, 2))
    found = {
        "rank order": ranked,
        "rank order, stopping early": early_stopped(ranked, pairs, answers, 1e-9),
        "own, then neighbours'": by(near, rank if words is None else -words),
        "random": by(),
    }
    if words is not None:
        found["overlap, stopping early"] = early_stopped(by(-words), pairs, answers, 1e-9)
    return found


def posteriors(graphs: Sequence[FactGraph], asked: Sequence[Askable], order: Asked) -> Floats:
    """Posterior of every claim if these pairs were all that is asked, by exact inference."""
    seen = [
        with_asked(graph, each, order.pair[order.response == number])
        for number, (graph, each) in enumerate(zip(graphs, asked, strict=True))
    ]
    found = infer_batch((graph.to_factor_graph() for graph in seen), "exact")
    return np.concatenate(
        [
            each.marginals.of_state(1, graph.atom_ids)
            for each, graph in zip(found, seen, strict=True)
        ]
    )


def true(p: Floats) -> NDArray[np.bool_]:
    """Verdicts; a posterior of 1/2 to rounding is none of true."""
    return p > 0.5 + 1e-9


def risk_rows(stated: Floats, changed: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """By class of the stated risk: claims, the mean risk stated, and the share that changes."""
    of = np.searchsorted(_EDGES, stated)
    return [
        {"most": edge, "claims": int((of == k).sum()),
         "stated": float(stated[of == k].mean()), "changed": float(changed[of == k].mean())}
        for k, edge in enumerate(_EDGES) if (of == k).any()
    ]  # fmt: skip


def _first(order: Asked, count: int) -> Asked:
    return Asked(order.response[:count], order.pair[:count])


def _kept_table(frame: pd.DataFrame) -> Table:
    wide = frame.pivot_table("kept", ["data", "variant", "share", "calls"], "method").reset_index()
    methods = list(dict.fromkeys(frame["method"]))
    return Table(
        wide,
        (
            *(Column("data", "data"), Column("variant", "variant")),
            *(Column("share", "share of calls", digits=2), Column("calls", "calls", digits=0)),
            *(Column(method, method, digits=3) for method in methods),
        ),
        "Share of verdicts that are those of all calls, by the order in which pairs are asked.",
    )


def _risk_table(frame: pd.DataFrame) -> Table:
    return Table(
        frame,
        (
            *(Column("data", "data"), Column("variant", "variant")),
            *(Column("most", "risk up to", digits=2), Column("claims", "claims", digits=0)),
            *(Column("stated", "mean stated", digits=3), Column("changed", "changed", digits=3)),
        ),
        "Stated risk that a verdict changes, and the share of verdicts that do.",
    )


def _figure(frame: pd.DataFrame) -> Figure:
    groups = list(frame.groupby(["data", "variant"], sort=False))
    with panels(1, len(groups), (PAGE, 2.6), sharey=True) as (figure, (axes,)):
        for place, ((data, name), part) in zip(axes, groups, strict=True):
            for look, (method, own) in enumerate(part.groupby("method", sort=False)):
                place.plot(own["share"], own["kept"], label=str(method), **nth_look(look))
            place.set_title(f"{data}, {name}", fontsize=8)
            place.set_xlabel("share of calls")
        axes[0].set_ylabel("verdicts kept")
        axes[-1].legend(fontsize=6)
        return figure
