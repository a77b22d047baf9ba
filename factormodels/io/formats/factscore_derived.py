"""Embedded form of FActScore's biographies: one JSON object per response, without texts.

    {"id": "ChatGPT-001", "categories": ["rare"], "sentences": 8,
     "atoms": [[1, "S"], [1, "NS"]],
     "passages": [["0123456789abcdef", [1, 2]]],
     "evidence": [[4012, 113, 250, 17]],
     "between": [[]],
     "texts": [10000, 6667, 5000, 5000, 2500, 0]}

An atom has its sentence and annotation; a passage its key and the numbers of the atoms that it was
retrieved for. `evidence` has a row per passage: the relation model's probabilities of entailment
and of contradiction for each atom, in ten-thousandths; the remainder is neutral. `between` has the
same for each passage and every other passage, in order. `texts` has three figures for each atom,
also in ten-thousandths: the share of its text in the passages, as in `extraction.text_match`. Atoms
are a1, a2, ..., passages c1, c2, ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from factormodels.claims import JUDGED_KINDS, Atom, Context, Relation
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.factscore import LABELS
from factormodels.io.formats.format import Format
from factormodels.io.source.places import location
from factormodels.io.tables.records import Source
from factormodels.metadata.evidence_source import EVIDENCE_KEY
from factormodels.metadata.recorded_match import FIGURES, TEXT_MATCH_KEY, recorded_match

_UNITS = 10_000

_SOURCE = {"relation_model": "lexical", "retriever": "BM25 on Wikipedia", "top_k": 5}
"""Relation model and retriever of the evidence."""


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the keys of the embedded form."""
    return {"atoms", "passages", "evidence", "between"} <= record.keys()


def read(obj: Any, source: Source, line: int | None = None) -> FactGraph:
    """Return the fact graph of a decoded line of a user's file.

    Raises:
        InputError: if the line does not have the embedded form.
    """
    try:
        return graph_from_object(obj)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{location(source, line)}: this is not a biography in the form of the embedded "
            f"dataset 'factscore' ({error!r}); take the dataset by that name"
        ) from None


def graph_from_object(obj: Mapping[str, Any]) -> FactGraph:
    """Return the fact graph of a decoded line."""
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
    # Older files have no figures of texts.
    if "texts" in obj:
        figures = np.array(obj["texts"], np.float64).reshape(-1, len(FIGURES)) / _UNITS
        metadata[TEXT_MATCH_KEY] = recorded_match(figures, atom_ids)
    return FactGraph(obj["id"], atoms, contexts, tuple(relations), metadata=metadata)


def _relations(source: str, targets: Sequence[str], row: Sequence[int]) -> Iterator[Relation]:
    for index, target in enumerate(targets):
        entails, contradicts = row[2 * index], row[2 * index + 1]
        shares = (entails, contradicts, _UNITS - entails - contradicts)
        best = shares.index(max(shares))
        distribution = (entails / _UNITS, contradicts / _UNITS, 0.0, shares[2] / _UNITS)
        yield Relation(source, target, JUDGED_KINDS[best], shares[best] / _UNITS, distribution)


FORMAT = Format(
    name="factscore-derived",
    title="FActScore's biographies with relations, without texts",
    owner="this project, the embedded dataset factscore",
    holds="responses",
    keys=("atoms", "passages", "evidence", "between"),
    recognize=recognize,
    read=read,
    fields=("id", "categories", "sentences", "atoms", "passages", "evidence", "between", "texts"),
    closed=True,
)
