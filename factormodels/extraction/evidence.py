"""The retrieval stage: queries of atoms, their passages as contexts, equal ones merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from factormodels.claims import Context
from factormodels.errors import InputError
from factormodels.extraction.retrieval.base import Retriever
from factormodels.fact_graph import FactGraph
from factormodels.variants import merge_duplicate_contexts

METADATA_KEY = "retrieval"


def with_contexts(graph: FactGraph, retriever: Retriever, queries: Sequence[str]) -> FactGraph:
    """Graph with the passages found for its atoms as contexts, in place of those it has.

    Contexts are named c1, c2, ... in the order found; equal texts become one context, named after
    the first and retrieved for all their atoms, so that numbers may be left out. Relations are
    dropped. `metadata["retrieval"]` holds the retriever's name, the numbers of queries, passages
    and contexts, and the failures, as [atom, reason].

    Args:
        graph: the atoms.
        retriever: what answers queries.
        queries: one query per atom, in order.

    Raises:
        InputError: if the numbers of queries and atoms differ.
    """
    if len(queries) != len(graph.atoms):
        raise InputError(
            f"{len(queries)} queries do not fit {len(graph.atoms)} atoms; give one for each"
        )
    contexts: list[Context] = []
    failures: list[list[str]] = []
    found = retriever.retrieve(list(queries))
    for atom, answer in zip(graph.atoms, found, strict=True):
        failures += [[atom.id, reason] for reason in answer.failures]
        for passage in answer.passages:
            contexts.append(
                Context(
                    f"c{len(contexts) + 1}",
                    passage.text,
                    title=passage.title,
                    link=passage.link,
                    snippet=passage.snippet,
                    retrieved_for=(atom.id,),
                )
            )
    merged = merge_duplicate_contexts(replace(graph, contexts=tuple(contexts), relations=()))
    counts = {
        "retriever": retriever.name,
        "queries": len(queries),
        "passages": len(contexts),
        "contexts": len(merged.contexts),
        "failures": failures,
    }
    return replace(merged, metadata={**graph.metadata, METADATA_KEY: counts})
