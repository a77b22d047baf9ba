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

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

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

Part = TypeVar("Part", Atom, Context, Relation)

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


def graph_from_object(obj: Mapping[str, Any], *, checked: bool = True) -> FactGraph:
    """Return the fact graph of a decoded line.

    Args:
        obj: the line.
        checked: whether to check the parts of the graph, which takes several times as long as
            making it; the embedded dataset is valid.
    """
    numbers = range(1, len(obj["atoms"]) + 1)
    atoms: dict[str, Sequence[Any]] = {
        "id": [f"a{number}" for number in numbers],
        "label": [LABELS[annotation] for _, annotation in obj["atoms"]],
        "annotation": [annotation for _, annotation in obj["atoms"]],
        "sentence": [sentence for sentence, _ in obj["atoms"]],
    }
    contexts: dict[str, Sequence[Any]] = {
        "id": [f"c{number}" for number, _ in enumerate(obj["passages"], start=1)],
        "key": [key for key, _ in obj["passages"]],
        "retrieved_for": [tuple(f"a{atom}" for atom in owners) for _, owners in obj["passages"]],
    }
    relations = _relations(atoms["id"], contexts["id"], obj["evidence"], obj["between"])
    metadata = {
        "categories": obj["categories"],
        "sentences": obj["sentences"],
        EVIDENCE_KEY: _SOURCE,
    }
    # Older files have no figures of texts.
    if "texts" in obj:
        figures = np.array(obj["texts"], np.float64).reshape(-1, len(FIGURES)) / _UNITS
        metadata[TEXT_MATCH_KEY] = recorded_match(figures, atoms["id"])
    if not checked:
        return FactGraph.unchecked(obj["id"], atoms, contexts, relations, metadata=metadata)
    parts = (_made(Atom, atoms), _made(Context, contexts), _made(Relation, relations))
    return FactGraph(obj["id"], *parts, metadata=metadata)


def _made(kind: Callable[..., Part], columns: Mapping[str, Sequence[Any]]) -> tuple[Part, ...]:
    """Return atoms, contexts or relations from columns of their fields."""
    rows = zip(*columns.values(), strict=True)
    return tuple(kind(**dict(zip(columns, row, strict=True))) for row in rows)


def _relations(
    atom_ids: Sequence[str],
    context_ids: Sequence[str],
    evidence: Sequence[Sequence[int]],
    between: Sequence[Sequence[int]],
) -> dict[str, Sequence[Any]]:
    """Return columns of relations: of each passage to all atoms and to all other passages."""
    sources: list[str] = []
    targets: list[str] = []
    judgments: list[int] = []
    for name, *rows in zip(context_ids, evidence, between, strict=True):
        others = [other for other in context_ids if other != name]
        for ends, row in zip((atom_ids, others), rows, strict=True):
            if len(row) != 2 * len(ends):
                raise ValueError(f"{name} has {len(row)} figures for {len(ends)} texts")
            sources += [name] * len(ends)
            targets += ends
            judgments += row
    entails, contradicts = np.array(judgments, np.int64).reshape(-1, 2).T
    shares = np.stack([entails, contradicts, _UNITS - entails - contradicts])
    columns = (shares / _UNITS).tolist()
    return {
        "source": sources,
        "target": targets,
        "kind": [JUDGED_KINDS[best] for best in shares.argmax(axis=0).tolist()],
        "probability": (shares.max(axis=0) / _UNITS).tolist(),
        "distribution": [(*both, 0.0, rest) for *both, rest in zip(*columns, strict=True)],
    }


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
