"""Derive embedded datasets from their owners' files, leaving every text out.

    python -m factormodels.datasets.derive factcheck-bench RAW OUT
    python -m factormodels.datasets.derive factscore LABELLED PASSAGES OUT
    python -m factormodels.datasets.derive selfcheck RAW OUT
    python -m factormodels.datasets.derive factscore-claims LABELLED OUT
    python -m factormodels.datasets.derive selfcheck-claims RAW OUT

RAW is `factcheck-GPT-benchmark.jsonl` of github.com/yuxiaw/Factcheck-GPT, or
`selfcheck_wikibio.jsonl` of KAIST-CS584-HCI/selfcheckgpt-replication. LABELLED is `ChatGPT.jsonl`
of FActScore's release (github.com/shmsw25/FActScore, data/labeled), PASSAGES what was retrieved for
its atoms, as JSON Lines with name, sent and passages. The last two write relations between claims:
the lexical model judges every two claims at most `CLAIM_WINDOW` apart, in both orders.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from factormodels.claims import Relation, RelationKind
from factormodels.datasets import CLAIM_WINDOW
from factormodels.datasets.factscore_file import record_line
from factormodels.encodings import KIND_CODES
from factormodels.errors import FactormodelsError
from factormodels.extraction.relation_models.base import Judgement, TextPair
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.stages.claim_relations import claim_pairs, with_judged_claims
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import fact_graph_text
from factormodels.io.files import write_text
from factormodels.io.json_text import read_json_lines
from factormodels.io.published.factcheck_bench import passage_key, split_record
from factormodels.io.published.factscore import parse_factscore_record, with_passages
from factormodels.io.published.self_judgements import parse_selfcheck
from factormodels.nouns import counted
from factormodels.variants import between_claims

Path = str | os.PathLike[str]
Parse = Callable[[Any, Path, int], FactGraph]


def factcheck_bench(raw: Path, out: Path) -> int:
    """Write the records of `raw` to `out`, whole or not at all, and return their number.

    Raises:
        InputError: if `raw` is malformed or `out` cannot be written; so of all that follow.
    """
    records = (split_record(obj, raw, line)[0] for line, obj in read_json_lines(raw))
    return _written((json.dumps(record, separators=(",", ":")) for record in records), out)


def factscore(labelled: Path, passages: Path, out: Path) -> int:
    """Write the annotated biographies of `labelled` to `out`, and return their number."""
    annotated = _annotated(parse_factscore_record, labelled)
    related = map(_related, with_passages(annotated, passages))
    return _written(map(record_line, related), out)


def selfcheck(raw: Path, out: Path) -> int:
    """Write the votes on the passages of `raw` to `out`, and return the passages' number."""
    without_texts = (
        replace(graph, response="", atoms=tuple(replace(atom, text="") for atom in graph.atoms))
        for graph in _annotated(parse_selfcheck, raw)
    )
    return _written(map(fact_graph_text, without_texts), out)


def claim_relations(parse: Parse, texts: Path, out: Path) -> int:
    """Write the relations between claims of the responses in `texts`, and return their number."""
    model = LexicalRelations()
    lines = []
    for graph in _annotated(parse, texts):
        judged = with_judged_claims(graph, model, claim_pairs(graph, CLAIM_WINDOW))
        place = {atom: number for number, atom in enumerate(graph.atom_ids)}
        rows = [
            [place[one.source], place[one.target], KIND_CODES[one.kind], round(one.probability, 4)]
            for one in between_claims(judged)
            if one.kind in KIND_CODES
        ]
        lines.append(json.dumps({"id": graph.id, "relations": rows}, separators=(",", ":")))
    return _written(lines, out)


def _annotated(parse: Parse, path: Path) -> list[FactGraph]:
    """Responses of a file that people annotated."""
    graphs = [parse(obj, path, line) for line, obj in read_json_lines(path)]
    return [graph for graph in graphs if graph.metadata.get("annotated", True)]


def _written(lines: Iterable[str], out: Path) -> int:
    made = list(lines)
    write_text(out, "".join(f"{line}\n" for line in made))
    return len(made)


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


_DERIVATIONS: Mapping[str, tuple[Callable[..., int], tuple[str, ...]]] = MappingProxyType(
    {
        "factcheck-bench": (factcheck_bench, ("raw",)),
        "factscore": (factscore, ("labelled", "passages")),
        "selfcheck": (selfcheck, ("raw",)),
        "factscore-claims": (partial(claim_relations, parse_factscore_record), ("labelled",)),
        "selfcheck-claims": (partial(claim_relations, parse_selfcheck), ("raw",)),
    }
)
"""By what is derived, the function and the names of its sources."""


def run_derivation(
    module: str,
    description: str,
    sources: Mapping[str, str],
    derive: Callable[..., int],
    arguments: Sequence[str] | None = None,
) -> int:
    """Run the command and return its exit code: 2 for bad input.

    Args:
        module: name of the script, with its packages.
        description: what it does.
        sources: the arguments that name the owner's files, with what each is.
        derive: given the paths of these and of the file to write, writes it and returns the number
            of responses.
        arguments: words of the command line; those of the process if None.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    for name, what in {**sources, "out": "the file to write"}.items():
        parser.add_argument(name, help=what)
    chosen = parser.parse_args(arguments)
    try:
        count = derive(*(getattr(chosen, name) for name in sources), chosen.out)
    except FactormodelsError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(f"{chosen.out}: {counted(count, 'response')}\n")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 2 for bad input."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    module, about = "factormodels.datasets.derive", "Derive an embedded dataset, without texts."
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("dataset", choices=tuple(_DERIVATIONS))
    name = parser.parse_args(words[:1]).dataset
    derive, sources = _DERIVATIONS[name]
    of_owner = dict.fromkeys(sources, "a file of the dataset's owner")
    return run_derivation(f"{module} {name}", about, of_owner, derive, words[1:])


if __name__ == "__main__":
    sys.exit(main())
