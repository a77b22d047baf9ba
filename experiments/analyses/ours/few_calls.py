"""Few calls: how many verdicts the rule of `assess --few-calls` keeps of those of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass

from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.evaluators.few_calls import DECISIVE, ask_until_settled
from experiments.findings.artefacts import Artefacts
from experiments.findings.table import Column, Table, columns_as, data_frame
from experiments.settings.limits import Probability
from experiments.study.config import STRICT, DatasetChoice
from factormodels.extraction.relation_models.base import TextPair
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.relation_models.recorded import recorded_in_graphs
from factormodels.extraction.stages.relations import relation_pairs, with_relations
from factormodels.fact_graph import FactGraph
from factormodels.variants import between_claims, variant
from inference import infer_batch

_CERTAIN = 0.999
"""Probability of the neutral answer to a pair whose relation is not recorded."""

_BEFORE = "data | relations | variant | "


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Data, and the shares of calls after which verdicts are compared.

    Attributes:
        datasets: responses whose relations are recorded. With the variant FR1 only the passages
            that were found for a claim are asked about, otherwise all.
        shares: shares of the pairs of each response that are asked.
        decisive: least probabilities of the relation that settles a claim.
        lexical: whether responses that have texts are judged by lexical relations as well.
    """

    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1)]
    shares: tuple[Probability, ...] = (0.05, 0.1, 0.15, 0.2)
    decisive: tuple[Probability, ...] = (DECISIVE, 0.9)
    lexical: bool = True


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Return the verdicts kept by share of the calls, and at the end of the rule."""
    kept, ends = list[dict[str, Any]](), list[dict[str, Any]]()
    names = [(choice.variants or ("FR2",))[0] for choice in settings.datasets]
    for data, name in zip(context.load(settings.datasets), names, strict=True):
        for relations, graphs in _related(data.graphs, name, settings.lexical):
            of = {"data": data.name, "relations": relations, "variant": name}
            with context.track(f"{data.name}, {relations}", len(settings.decisive) + 2) as step:
                for row in compared(graphs, name, settings, context.seed):
                    kept += [{**of, **share} for share in row.pop("shares")]
                    ends += [{**of, **row}] if row["asked"] < 1 else []
                    step()
    return Artefacts({"kept": _kept_table(kept), "settled": _settled_table(ends)})


def _related(
    graphs: Sequence[FactGraph], name: str, lexical: bool
) -> Iterator[tuple[str, list[FactGraph]]]:
    """Yield the responses with recorded relations, and those with texts with lexical ones."""
    usable = [variant(graph, "FR2") for graph in graphs if graph.atoms and graph.contexts]
    yield "recorded", usable
    if lexical and all(context.content for graph in usable for context in graph.contexts):
        yield "lexical", [with_relations(graph, LexicalRelations(), name) for graph in usable]


def compared(
    graphs: Sequence[FactGraph], name: str, settings: Settings, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield for each method of `asking_orders` what is kept at its end, and rows by share.

    Verdicts are those of exact inference under *implication*.
    """
    pairs = [relation_pairs(graph, name) for graph in graphs]
    total = sum(map(len, pairs))
    whole = true(posteriors(graphs, pairs, [range(len(each)) for each in pairs]))
    for method, orders in asking_orders(graphs, pairs, settings.decisive, seed).items():
        rows = []
        for share in settings.shares:
            asked = first_of_each(orders, pairs, share)
            same = true(posteriors(graphs, pairs, asked)) == whole
            calls = sum(round(share * len(each)) for each in pairs)
            rows.append(
                {"method": method, "share": share, "calls": calls, "kept": float(same.mean())}
            )
        same = true(posteriors(graphs, pairs, orders)) == whole
        yield {
            "method": method,
            "asked": sum(map(len, orders)) / total,
            "kept": float(same.mean()),
            "shares": rows,
        }


def asking_orders(
    graphs: Sequence[FactGraph],
    pairs: Sequence[Sequence[TextPair]],
    decisive: Sequence[float],
    seed: int,
) -> dict[str, list[Sequence[int]]]:
    """Return the places of the pairs of each response in the order of asking, by method.

    Methods are the rule by threshold ("settled at 0.5"), the rule without one ("never settled"),
    and a random order.

    Args:
        graphs: responses whose relations are recorded; a pair without one is neutral.
        pairs: pairs of each response.
        decisive: thresholds of the rule.
        seed: seed of the random order.
    """
    methods = {f"settled at {least:g}": _orders(graphs, pairs, least) for least in decisive}
    generator = np.random.default_rng(seed)
    return methods | {
        "never settled": _orders(graphs, pairs, inf),
        "at random": [generator.permutation(len(each)).tolist() for each in pairs],
    }


def _orders(
    graphs: Sequence[FactGraph], pairs: Sequence[Sequence[TextPair]], decisive: float
) -> list[Sequence[int]]:
    orders: list[Sequence[int]] = []
    for graph, each in zip(graphs, pairs, strict=True):
        model = recorded_in_graphs([graph], unrecorded=_CERTAIN)
        answers, _ = ask_until_settled(model, graph, each, decisive)
        orders.append(list(answers))
    return orders


def first_of_each(
    orders: Sequence[Sequence[int]], pairs: Sequence[Sequence[TextPair]], share: float
) -> list[Sequence[int]]:
    """Return the pairs of each response that a share of its calls asks."""
    return [order[: round(share * len(each))] for order, each in zip(orders, pairs, strict=True)]


def posteriors(
    graphs: Sequence[FactGraph],
    pairs: Sequence[Sequence[TextPair]],
    asked: Sequence[Sequence[int]],
) -> Floats:
    """Posteriors of all claims if these pairs alone were asked, float64 (n_claims,), exact."""
    seen = []
    for graph, each, places in zip(graphs, pairs, asked, strict=True):
        known = {(each[index].source, each[index].target) for index in places}
        relations = [
            relation for relation in graph.relations if (relation.source, relation.target) in known
        ]
        seen.append(replace(graph, relations=(*relations, *between_claims(graph))))
    solved = infer_batch((graph.to_factor_graph() for graph in seen), "exact")
    return np.concatenate([
        each.marginals.of_state(1, graph.atom_ids)
        for each, graph in zip(solved, seen, strict=True)
    ])  # fmt: skip


def true(p: Floats) -> NDArray[np.bool_]:
    """Whether each claim is more likely true than not; 1/2 to rounding is undecided."""
    return p > 0.5 + 1e-9


def _kept_table(rows: list[dict[str, Any]]) -> Table:
    frame = data_frame(rows)
    keys = ["data", "relations", "variant", "share", "calls"]
    wide = frame.pivot_table("kept", keys, "method", sort=False).reset_index()
    columns = columns_as(f"{_BEFORE}share:2 share of calls | calls:0")
    columns += tuple(Column(name, name, digits=3) for name in dict.fromkeys(frame["method"]))
    title = "Share of verdicts that are those of all calls, after a share of the calls."
    return Table(wide, columns, title)


def _settled_table(rows: list[dict[str, Any]]) -> Table:
    columns = columns_as(f"{_BEFORE}method | asked:3 share of calls | kept:3 verdicts kept")
    title = "Calls and verdicts where every claim is asked about until a relation settles it."
    return Table(data_frame(rows), columns, title)
