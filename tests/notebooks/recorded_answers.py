"""The answers that notebook 8 replays, made by a script and recorded as a provider's would be.

    python -m tests.notebooks.recorded_answers     # writes notebooks/data/08_answers.sqlite anew

The script answers every question about one response of the demonstration corpus: with its claims,
two of which a reader needs the response to understand; with the same claims, understandable alone;
and with the relations that were written for its passages. No model was asked.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.evaluators.estimate import CHARACTERS_PER_TOKEN
from factormodels import datasets
from factormodels.claims import Relation, RelationKind
from factormodels.extraction.language_model.cache import AnswerCache, CachedModel
from factormodels.extraction.language_model.litellm_model import LitellmModel, LitellmSettings
from factormodels.extraction.pipeline import (
    atomizer_stage,
    relation_stage,
    retrieval_stage,
    reviser_stage,
    run_stages,
)
from factormodels.extraction.relation_models.prompted import PromptedRelationModel
from factormodels.extraction.retrieval.bm25 import build_collection
from factormodels.extraction.retrieval.documents import documents_of_graphs
from factormodels.fact_graph import FactGraph
from factormodels.io.source.files import atomic_path
from tests.factormodels.extraction.server import Reply, ScriptedServer, label_reply
from tests.notebooks.execution import NOTEBOOKS

ANSWERS = NOTEBOOKS / "data" / "08_answers.sqlite"
RESPONSE = "demo-01-marie-curie"
MODEL = "hosted_vllm/scripted"
PASSAGES = 2

UNREVISED = {
    "a3": "She married Pierre Curie in 1895.",
    "a6": "Her second Nobel Prize, awarded in 1911, was in physics.",
    "a8": "She was killed by a horse-drawn wagon in Paris.",
    "a9": "Irène Joliot-Curie, a daughter of hers, won a Nobel Prize in Chemistry.",
}
"""How the script words these claims at first; the others need no revision."""

UNRELATED = 0.97
"""Probability of neutral where nothing was written about a pair."""


def demonstration() -> tuple[FactGraph, ...]:
    """Return the corpus that the documents are taken from."""
    return tuple(datasets.load("demonstration").graphs)


def response() -> FactGraph:
    """Return the response with what was written about it."""
    return next(graph for graph in demonstration() if graph.id == RESPONSE)


def written_relations() -> Mapping[tuple[str, str], Relation]:
    """Return what the corpus says of two texts of the response, by these texts.

    A contradiction holds both ways and is often written one way; the script answers it both ways.
    """
    graph = response()
    texts = {atom.id: atom.text for atom in graph.atoms}
    texts |= {context.id: context.text for context in graph.contexts}
    known: dict[tuple[str, str], Relation] = {}
    for relation in graph.relations:
        first, other = texts[relation.source], texts[relation.target]
        known[first, other] = relation
        if relation.kind is RelationKind.CONTRADICTION:
            known.setdefault((other, first), relation)
    return known


def answer(request: Mapping[str, Any], relations: Mapping[tuple[str, str], Relation]) -> Reply:
    """Return the script's answer to a question, whose stage it knows by the tags in it."""
    question = request["messages"][-1]["content"]
    if "<premise>" in question:
        pair = (_between(question, "premise"), _between(question, "hypothesis"))
        reply = _relation(relations.get(pair))
    elif "<sentences>" in question:
        number = int(_between(question, "sentences").partition(":")[0])
        claims = [
            {"sentence": number, "claim": UNREVISED.get(atom.id, atom.text)}
            for atom in response().atoms
            if atom.sentence == number
        ]
        reply = Reply(json.dumps(claims, ensure_ascii=False))
    else:
        claim = _between(question, "claim")
        texts = {UNREVISED[atom.id]: atom.text for atom in response().atoms if atom.id in UNREVISED}
        reply = Reply(json.dumps({"claim": texts.get(claim, claim)}, ensure_ascii=False))
    asked = sum(len(message["content"]) for message in request["messages"])
    lengths = (asked, len(reply.text or ""))
    tokens = [round(length / CHARACTERS_PER_TOKEN) for length in lengths]
    return replace(reply, usage=(tokens[0], tokens[1]))


def record(path: Path) -> None:
    """Write the answers to everything that the notebook asks into a new file."""
    relations = written_relations()
    path.unlink(missing_ok=True)
    with ScriptedServer(lambda request, _: answer(request, relations)) as server:
        provider = LitellmModel(LitellmSettings(MODEL, api_base=server.url))
        with closing(AnswerCache(path)) as cache:
            model = CachedModel(provider, cache)
            asked = replace(response(), atoms=(), contexts=(), relations=(), metadata={})
            documents = build_collection(documents_of_graphs(demonstration()), top_k=PASSAGES)
            stages = (
                atomizer_stage(model, 1),
                reviser_stage(model),
                retrieval_stage(documents),
                relation_stage(PromptedRelationModel(model), "FR3"),
            )
            run_stages(asked, stages)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # One file that can be read where nothing can be written, and no larger than it must be.
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")


def stored(path: Path) -> list[tuple[str, ...]]:
    """Return everything that a file of answers holds, in order of the keys."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT * FROM answers ORDER BY key").fetchall()


def _relation(known: Relation | None) -> Reply:
    kind, probability = RelationKind.NEUTRAL, UNRELATED
    if known is not None:
        kind, probability = known.kind, known.probability
    others = {
        str(other): (1.0 - probability) / 2.0
        for other in (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL)
        if other is not kind
    }
    return label_reply(str(kind), probability, others)


def _between(text: str, tag: str) -> str:
    match = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", text, re.DOTALL)
    return match[1].strip() if match else ""


if __name__ == "__main__":
    with atomic_path(ANSWERS) as temporary:
        record(temporary)
