"""Few calls: how many verdicts of all calls does the rule of `assess --few-calls` keep?

Question: the rule asks about a claim's own passages first, then about others by overlap of words,
until a relation decides. How many verdicts agree with those of all calls after a share of them?
Data: demonstration, at-odds, factscore (every claim with every passage) and factcheck-bench (a
claim's own passages), embedded: recorded relations, asked as if they had to be. Responses with
texts are judged by lexical relations as well.
Rival: the rule without a threshold, the order of the data, and a random order.

    python notebooks/questions/few_calls.py --out docs/results/few-calls
    python notebooks/questions/few_calls.py --data FOLDER/graphs.jsonl
    python notebooks/questions/few_calls.py --data FILE --record NAME

The last takes the relations that a model gave for the responses of FILE, with their texts.

The first takes 13 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from experiments.evaluators.calls.asking_orders import (
    asking_orders,
    first_of_each,
    posteriors,
    true,
)
from experiments.evaluators.calls.few_calls import DECISIVE
from experiments.evaluators.recorded_relations import (
    read_record,
    recorded_graphs,
    recorded_pairs,
)
from experiments.findings.artifacts import Artifacts
from experiments.findings.notebook import answer_question
from experiments.findings.table import Column, Table, columns_as, data_frame
from experiments.settings.inputs import read_graphs
from factormodels.extraction.asking.table import RELATION
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.stages.relations import relation_pairs, with_relations
from factormodels.fact_graph import FactGraph
from factormodels.io.relation_record import RelationRecord
from factormodels.selection import restricted
from factormodels.variants import variant

OWN_PASSAGES = ("factcheck-bench",)
"""Data in which only the passages that were found for a claim are asked about."""

_BEFORE = "data | relations | variant | "


def few_calls(
    *,
    data: tuple[Path, ...] = (
        Path("demonstration"),
        Path("at-odds"),
        Path("factscore"),
        Path("factcheck-bench"),
    ),
    shares: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2),
    decisive: tuple[float, ...] = (DECISIVE, 0.9),
    lexical: bool = True,
    record: str = "",
    seed: int = 0,
) -> Artifacts:
    """Return the verdicts kept by share of the calls, and at the end of the rule.

    Args:
        data: files or embedded datasets of responses whose relations are recorded.
        shares: shares of the pairs of each response that are asked.
        decisive: least probabilities of the relation that settles a claim.
        lexical: judge responses that have texts by lexical relations as well.
        record: record of a model's answers to the pairs of a claim and its own passages; its
            relations replace those of the data.
        seed: seed of the random order.
    """
    answers = read_record(record) if record else None
    kept, ends = list[dict[str, Any]](), list[dict[str, Any]]()
    for path in data:
        name = "FR1" if answers or str(path) in OWN_PASSAGES else "FR2"
        read = read_graphs(path) if answers is None else judged_by(answers, read_graphs(path))
        by_model = "recorded" if answers is None else answers.origin.model
        for relations, graphs in _related(read, name, by_model, lexical):
            of = {"data": str(path), "relations": relations, "variant": name}
            for row in compared(graphs, name, shares, decisive, seed):
                kept += [{**of, **share} for share in row.pop("shares")]
                ends += [{**of, **row}] if row["asked"] < 1 else []
    return Artifacts({"kept": _kept_table(kept), "settled": _settled_table(ends)})


def judged_by(record: RelationRecord, graphs: Sequence[FactGraph]) -> list[FactGraph]:
    """Return the whole responses of a record with its relations, and their labeled claims alone.

    The record has every pair of a labeled claim and a passage that was found for it.

    Args:
        record: the record.
        graphs: the responses of its dataset.
    """
    pairs = recorded_pairs(record, RELATION.prompt)
    answers = dict(zip(pairs.keys, pairs.p.tolist(), strict=True))
    return [
        restricted(graph, [atom.id for atom in graph.atoms if atom.label is not None])
        for graph in recorded_graphs(graphs, record, RELATION.prompt, answers)
    ]


def _related(
    graphs: Sequence[FactGraph], name: str, by_model: str, lexical: bool
) -> Iterator[tuple[str, list[FactGraph]]]:
    """Yield the responses with recorded relations, and those with texts with lexical ones."""
    usable = [variant(graph, "FR2") for graph in graphs if graph.atoms and graph.contexts]
    yield by_model, usable
    if lexical and all(context.content for graph in usable for context in graph.contexts):
        yield "lexical", [with_relations(graph, LexicalRelations(), name) for graph in usable]


def compared(
    graphs: Sequence[FactGraph],
    name: str,
    shares: Sequence[float],
    decisive: Sequence[float],
    seed: int,
) -> Iterator[dict[str, Any]]:
    """Yield for each method of `asking_orders` what is kept at its end, and rows by share.

    Verdicts are those of exact inference under *implication*.
    """
    pairs = [relation_pairs(graph, name) for graph in graphs]
    total = sum(map(len, pairs))
    whole = true(posteriors(graphs, pairs, [range(len(each)) for each in pairs]))
    for method, orders in asking_orders(graphs, pairs, decisive, seed).items():
        rows = []
        for share in shares:
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


if __name__ == "__main__":
    answer_question(few_calls, __file__)
