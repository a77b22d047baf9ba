"""The embedded form of FActScore's biographies: one JSON object per response, without any text.

    {"id": "ChatGPT-001", "categories": ["rare"], "sentences": 8,
     "atoms": [[1, "S"], [1, "NS"]],
     "passages": [["0123456789abcdef", [1, 2]]],
     "evidence": [[4012, 113, 250, 17]],
     "between": [[]],
     "texts": [10000, 6667, 5000, 5000, 2500, 0]}

An atom has its sentence and annotation; a passage its key and the numbers of the atoms that it was
retrieved for. `evidence` has a row per passage: what the relation model gives to entailment and to
contradiction of each atom, in ten-thousandths, the rest being neutral. `between` has the same for
each passage and every other passage, in order. `texts` has three figures for each atom, in
ten-thousandths too: how much of its text passages hold, as `extraction.text_match` has it. Atoms
are a1, a2, ..., passages c1, c2, ...
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.errors import InputError
from factormodels.evidence_source import EVIDENCE_KEY
from factormodels.extraction.text_match import FIGURES, TEXT_MATCH_KEY, recorded_match, text_match
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import location
from factormodels.io.published.factscore import LABELS

_UNITS = 10_000

_SOURCE = {"relation_model": "lexical", "retriever": "BM25 on Wikipedia", "top_k": 5}
"""What made the evidence: `derive`, and the owner of the passages."""

_KINDS = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL)


def record_line(graph: FactGraph) -> str:
    """Line of a biography, without its end: the same bytes for the same graph.

    Args:
        graph: atoms with sentences and annotations; contexts with keys; a relation with a
            distribution from every context to every atom and to every other context; the texts of
            both.

    Raises:
        InputError: if it has no texts.
    """
    figures = text_match(graph)
    if figures is None:
        raise InputError(f"response {graph.id!r}: it has no texts; give claims and passages theirs")
    stated = {(r.source, r.target): r.distribution or () for r in graph.relations}
    number = {name: place for place, name in enumerate(graph.atom_ids, start=1)}

    def row(source: str, targets: Sequence[str]) -> list[int]:
        shares = [stated[source, target][:2] for target in targets if target != source]
        return [round(share * _UNITS) for pair in shares for share in pair]

    obj = {
        "id": graph.id,
        "categories": graph.metadata["cat"],
        "sentences": graph.metadata["sentences"],
        "atoms": [[atom.sentence, atom.annotation] for atom in graph.atoms],
        "passages": [
            [context.key, [number[atom] for atom in context.retrieved_for]]
            for context in graph.contexts
        ],
        "evidence": [row(name, graph.atom_ids) for name in graph.context_ids],
        "between": [row(name, graph.context_ids) for name in graph.context_ids],
        "texts": np.rint(figures * _UNITS).astype(int).ravel().tolist(),
    }
    return json.dumps(obj, ensure_ascii=True, separators=(",", ":"))


def parse_derived(obj: Any, source: str | os.PathLike[str], line: int | None) -> FactGraph:
    """Fact graph of a decoded line of somebody's file.

    Raises:
        InputError: if the line is not as `record_line` writes it.
    """
    try:
        return graph_from_object(obj)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{location(source, line)}: this is no biography as `derive factscore` writes it "
            f"({error!r}); derive it anew"
        ) from None


def graph_from_object(obj: Mapping[str, Any]) -> FactGraph:
    """Fact graph that a decoded line holds."""
    atoms = tuple(
        Atom(f"a{number}", label=LABELS[annotation], annotation=annotation, sentence=sentence)
        for number, (sentence, annotation) in enumerate(obj["atoms"], start=1)
    )
    contexts = tuple(
        Context(f"c{number}", key=key, retrieved_for=tuple(f"a{atom}" for atom in retrieved))
        for number, (key, retrieved) in enumerate(obj["passages"], start=1)
    )
    atom_ids, context_ids = [atom.id for atom in atoms], [context.id for context in contexts]
    relations: list[Relation] = []
    for name, evidence, between in zip(context_ids, obj["evidence"], obj["between"], strict=True):
        others = [other for other in context_ids if other != name]
        relations += _relations(name, atom_ids, evidence)
        relations += _relations(name, others, between)
    metadata = {
        "categories": obj["categories"],
        "sentences": obj["sentences"],
        EVIDENCE_KEY: _SOURCE,
    }
    # Files that were derived before figures of texts were have none.
    if "texts" in obj:
        figures = np.array(obj["texts"], np.float64).reshape(-1, len(FIGURES)) / _UNITS
        metadata[TEXT_MATCH_KEY] = recorded_match(figures, atom_ids)
    return FactGraph(obj["id"], atoms, contexts, tuple(relations), metadata=metadata)


def _relations(source: str, targets: Sequence[str], row: Sequence[int]) -> Iterator[Relation]:
    for place, target in enumerate(targets):
        entails, contradicts = row[2 * place], row[2 * place + 1]
        shares = (entails, contradicts, _UNITS - entails - contradicts)
        best = shares.index(max(shares))
        distribution = (entails / _UNITS, contradicts / _UNITS, 0.0, shares[2] / _UNITS)
        yield Relation(source, target, _KINDS[best], shares[best] / _UNITS, distribution)
