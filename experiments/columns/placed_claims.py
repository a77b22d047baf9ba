"""Reading of labeled claims by position, from fact graphs or records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calibration.self_knowledge import (
    ClaimLabel,
    ClaimRecord,
    read_records,
)
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io import read_many
from factormodels.io.claim_records import looks_like_record
from factormodels.io.json import decode
from factormodels.io.source.opening import first_line


@dataclass(frozen=True)
class LabeledClaims:
    """The claims of a file.

    Attributes:
        records: every claim with a human label.
        n_responses: number of responses in the file, annotated or not.
        n_annotated: number of annotated responses.
        n_sentences: number of sentences of the annotated responses.
        n_unlabeled: number of unlabeled claims, which are left out.
    """

    records: tuple[ClaimRecord, ...]
    n_responses: int
    n_annotated: int
    n_sentences: int
    n_unlabeled: int


def load_claims(path: Path) -> LabeledClaims:
    """Read the claims of a file of FActScore or Factcheck-Bench, of fact graphs, or of records.

    Raises:
        InputError: if the file cannot be read, or has no positions of claims.
    """
    # The first line determines the format of the file.
    try:
        is_record = looks_like_record(decode(first_line(path), ""))
    except InputError:
        is_record = False
    if is_record:
        records = read_records(path)
        lengths = {record.response: record.sentences for record in records}
        n_responses = len(lengths)
        return LabeledClaims(tuple(records), n_responses, n_responses, sum(lengths.values()), 0)
    return claims_of_graphs(read_many(path), path)


def claims_of_graphs(graphs: Sequence[FactGraph], source: object) -> LabeledClaims:
    """The labeled atoms of fact graphs as records.

    An unannotated response has no atoms and is only counted; a sentence without atoms counts in the
    number of sentences, and therefore in the positions of the others.

    Args:
        graphs: the responses.
        source: name of the file, for errors.

    Raises:
        InputError: if no atom has a label, or an atom has no sentence.
    """
    records: list[ClaimRecord] = []
    n_annotated = n_sentences = n_unlabeled = 0
    for graph in graphs:
        if not graph.atoms:
            continue
        length = _n_sentences(graph, source)
        n_annotated += 1
        n_sentences += length
        for atom in graph.atoms:
            label = _label(atom.annotation, atom.label)
            if label is None:
                n_unlabeled += 1
                continue
            if atom.sentence is None:
                raise InputError(
                    f"{source}: atom {atom.id!r} of response {graph.id!r} has no sentence; add "
                    "'sentence', counted from 1"
                )
            records.append(ClaimRecord(graph.id, atom.sentence, length, atom.id, label))
    if not records:
        raise InputError(f"{source}: no atom has a human label; give a labeled file")
    return LabeledClaims(tuple(records), len(graphs), n_annotated, n_sentences, n_unlabeled)


def _n_sentences(graph: FactGraph, source: object) -> int:
    length = graph.metadata.get("sentences")
    # A boolean is an integer in Python.
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise InputError(
            f"{source}: response {graph.id!r} has no number of sentences; add 'sentences' to its "
            "metadata"
        )
    return length


def _label(annotation: str | None, label: bool | None) -> ClaimLabel | None:
    # The annotator's word is more specific than true or false: it may be "irrelevant".
    if annotation in set(ClaimLabel):
        return ClaimLabel(annotation)
    if label is None:
        return None
    return ClaimLabel.SUPPORTED if label else ClaimLabel.UNSUPPORTED
