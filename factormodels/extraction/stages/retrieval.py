"""The retrieval stage: the passages found for atoms become contexts, and equal ones are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from factormodels.claims import Context
from factormodels.errors import InputError
from factormodels.extraction.asking.stage import Extent
from factormodels.extraction.retrieval.base import Retriever
from factormodels.extraction.retrieval.web import WebRetriever
from factormodels.fact_graph import FactGraph
from factormodels.metadata.evidence_source import RETRIEVAL_KEY
from factormodels.nouns import counted
from factormodels.samples import is_sample
from factormodels.variants import merge_duplicate_contexts

METADATA_KEY = RETRIEVAL_KEY


def n_searches(extent: Extent, for_question: bool) -> int:
    """Return the number of searches of `with_contexts`: one per atom, and one for the question."""
    return extent.atoms + for_question


def with_contexts(
    graph: FactGraph, retriever: Retriever, queries: Sequence[str], *, question: str = ""
) -> FactGraph:
    """Return the graph with the passages found for its atoms as contexts, replacing earlier ones.

    Contexts are named c1, c2, ... in the order in which they were found. Equal texts become one
    context, named after the first and retrieved for all their atoms, so that some numbers may be
    absent. Sampled answers stay. Relations are dropped. `metadata["retrieval"]` holds the
    retriever's name, its number of passages per query (`top_k`), if it has one, and the numbers of
    queries, passages and contexts. It also has the failures and the pages that were left out, as
    [atom, reason], where "" denotes the question. If some searches were not answered at all,
    `unsearched` holds the reasons, and `refused` the reasons that persist until the user fixes
    something, such as a key.

    Args:
        graph: the atoms.
        retriever: the retriever.
        queries: one query per atom, in order.
        question: a further query, for the question as a whole; its passages are retrieved for no
            atom, so that only FR2 and FR3 use them; empty for none.

    Raises:
        InputError: if the numbers of queries and atoms differ.
    """
    if len(queries) != len(graph.atoms):
        raise InputError(
            f"{len(queries)} queries do not fit {counted(len(graph.atoms), 'atom')}; give one for "
            "each"
        )
    if isinstance(retriever, WebRetriever):
        retriever = retriever.checking(graph.response)
    asked = [(atom.id, query) for atom, query in zip(graph.atoms, queries, strict=True)]
    asked += [("", question)] if question.strip() else []
    contexts: list[Context] = []
    samples = tuple(filter(is_sample, graph.contexts))
    taken = {context.id for context in samples}
    names = (name for number in count(1) if (name := f"c{number}") not in taken)
    failures: list[list[str]] = []
    dropped: list[list[str]] = []
    answers = retriever.retrieve([query for _, query in asked])
    for (atom, _), answer in zip(asked, answers, strict=True):
        # If the question's search found something, its failures count as dropped pages, since no
        # claim lacks evidence because of them.
        reasons = failures if atom or not answer.passages else dropped
        reasons += [[atom, reason] for reason in answer.failures]
        dropped += [[atom, reason] for reason in answer.dropped]
        for passage in answer.passages:
            contexts.append(
                Context(
                    next(names),
                    passage.text,
                    title=passage.title,
                    link=passage.link,
                    snippet=passage.snippet,
                    retrieved_for=(atom,) if atom else (),
                )
            )
    with_passages = replace(graph, contexts=(*contexts, *samples), relations=())
    merged = merge_duplicate_contexts(with_passages)
    counts: dict[str, object] = {
        "retriever": retriever.name,
        "queries": len(asked),
        "passages": len(contexts),
        "contexts": len(merged.contexts) - len(samples),
        "dropped": dropped,
        "failures": failures,
    }
    top_k = getattr(retriever, "top_k", None)
    if top_k is not None:
        counts["top_k"] = top_k
    lost = [answer.failures[0] for answer in answers if not answer.searched]
    if lost:
        counts["unsearched"] = lost
    refused = [answer.failures[0] for answer in answers if answer.refused]
    if refused:
        counts["refused"] = refused
    return replace(merged, metadata={**graph.metadata, METADATA_KEY: counts})
