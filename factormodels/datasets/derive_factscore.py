"""Derive the embedded biographies from FActScore's files, leaving every text out.

    python -m factormodels.datasets.derive_factscore LABELLED PASSAGES OUT

LABELLED is `ChatGPT.jsonl` of the release (github.com/shmsw25/FActScore, data/labeled), PASSAGES
what was retrieved for its atoms, as JSON Lines with name, sent and passages.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from factormodels.claims import Relation, RelationKind
from factormodels.datasets.deriving import run_derivation
from factormodels.datasets.factscore_file import record_line
from factormodels.extraction.relation_models.base import Judgement, TextPair
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.fact_graph import FactGraph
from factormodels.io.files import read_text, write_text
from factormodels.io.json_text import decode_lines
from factormodels.io.published.factcheck_bench import passage_key
from factormodels.io.published.factscore import parse_factscore_record, with_passages


def derive(
    labelled: str | os.PathLike[str],
    passages: str | os.PathLike[str],
    out: str | os.PathLike[str],
) -> int:
    """Write the annotated biographies of `labelled` to `out`, whole or not at all.

    Returns:
        Their number.

    Raises:
        InputError: if a file is malformed or `out` cannot be written.
    """
    graphs = [
        parse_factscore_record(obj, labelled, line)
        for line, obj in decode_lines(read_text(labelled), labelled)
    ]
    annotated = [graph for graph in graphs if graph.metadata["annotated"]]
    lines = [record_line(_related(graph)) for graph in with_passages(annotated, passages)]
    write_text(out, "".join(f"{line}\n" for line in lines))
    return len(lines)


def _related(graph: FactGraph) -> FactGraph:
    """A biography with keys of its passages and everything that they say, in short."""
    contexts = [replace(context, key=passage_key(context.text)) for context in graph.contexts]
    return replace(graph, contexts=tuple(contexts), relations=tuple(_relations(graph)))


def _relations(graph: FactGraph) -> Iterator[Relation]:
    claims = {atom.id: atom.text for atom in graph.atoms}
    claims |= {context.id: context.text for context in graph.contexts}
    pairs = [
        TextPair(context.text, text, context.id, id)
        for context in graph.contexts
        for id, text in claims.items()
        if id != context.id
    ]
    for pair, answer in zip(pairs, LexicalRelations().judge(pairs), strict=True):
        # The lexical model answers every pair, with a distribution.
        if isinstance(answer, Judgement) and answer.distribution is not None:
            entails, contradicts, neutral = answer.distribution
            yield Relation(
                pair.source,
                pair.target,
                RelationKind(answer.kind),
                answer.probability,
                (entails, contradicts, 0.0, neutral),
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 2 for bad input."""
    return run_derivation(
        "factormodels.datasets.derive_factscore",
        "Derive the embedded biographies, without text, from FActScore's files.",
        {
            "labelled": "ChatGPT.jsonl of the release",
            "passages": "JSON Lines of the passages of its atoms",
        },
        derive,
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
