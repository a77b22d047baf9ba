"""The retrieval stage: queries of atoms, their passages as contexts, equal ones merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from factormodels.claims import Context
from factormodels.errors import InputError
from factormodels.extraction.retrieval.base import Retriever
from factormodels.extraction.retrieval.web import WebRetriever
from factormodels.fact_graph import FactGraph
from factormodels.metadata.evidence_source import RETRIEVAL_KEY
from factormodels.nouns import counted
from factormodels.variants import merge_duplicate_contexts

METADATA_KEY = RETRIEVAL_KEY


def with_contexts(
    graph: FactGraph, retriever: Retriever, queries: Sequence[str], *, question: str = ""
) -> FactGraph:
    """Graph with the passages found for its atoms as contexts, in place of those it has.

    Contexts are named c1, c2, ... in the order found; equal texts become one context, named after
    the first and retrieved for all their atoms, so that numbers may be left out. Relations are
    dropped. `metadata["retrieval"]` holds the retriever's name and the number of passages that it
    gives a query (`top_k`), if it has one, the numbers of queries, passages and contexts, the
    failures and the pages that were left out, as [atom, reason]; in place of the atom stands "" for
    the question. `unsearched`, where there are any, are the reasons of searches that were not
    answered at all, `refused` of those among them that will not be until something is mended, such
    as a key.

    Args:
        graph: the atoms.
        retriever: what answers queries.
        queries: one query per atom, in order.
        question: a further query, for the question as a whole: what it finds is retrieved for no
            atom, and FR2 and FR3 alone see it; empty for none.

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
    failures: list[list[str]] = []
    dropped: list[list[str]] = []
    answers = retriever.retrieve([query for _, query in asked])
    for (atom, _), answer in zip(asked, answers, strict=True):
        # Of the question nothing is lost while its search found something: it stands for no claim.
        reasons = failures if atom or not answer.passages else dropped
        reasons += [[atom, reason] for reason in answer.failures]
        dropped += [[atom, reason] for reason in answer.dropped]
        for passage in answer.passages:
            contexts.append(
                Context(
                    f"c{len(contexts) + 1}",
                    passage.text,
                    title=passage.title,
                    link=passage.link,
                    snippet=passage.snippet,
                    retrieved_for=(atom,) if atom else (),
                )
            )
    merged = merge_duplicate_contexts(replace(graph, contexts=tuple(contexts), relations=()))
    counts: dict[str, object] = {
        "retriever": retriever.name,
        "queries": len(asked),
        "passages": len(contexts),
        "contexts": len(merged.contexts),
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
