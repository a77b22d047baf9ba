"""FactReasoner's JSON: atoms with their contexts, and what its assessors and baselines conclude.

Source: the FactReasoner release (IBM/FactReasoner, Apache-2.0; the package fact-reasoner 0.5 to
0.8), which reads and writes such files. They hold atoms, the contexts that were retrieved for each,
and human labels, but no relations. An output (factreasoner_output.json, factscore_output.json,
factverify_output.json, veriscore_output.json) has `results` beside these; the package also writes
the results alone, a line per response. They say of each atom by id its verdict (`predictions`: S,
NS, or of baselines with three C and U), and FactReasoner's also its posterior (`marginals`, and
again in `factuality_score_per_atom`).

What its miner of relations between claims saves (`MiningResult.save`) has the texts of `atoms` by
id, a `fact_graph`, and of each of the `relations` the discourse sense that it comes from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from factormodels.claims import CONTEXT_PRIOR, Atom, Context
from factormodels.decoded_values import (
    as_object,
    as_text,
    list_field,
    located,
    objects_field,
    shown,
    text_field,
    texts_field,
)
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import parse_fact_graph
from factormodels.io.json_records import record_at, record_id
from factormodels.nouns import counted
from factormodels.recorded_verdicts import (
    ASSESSORS_KEY,
    SECONDS_KEY,
    RecordedVerdict,
    verdict_facts,
)
from factormodels.validation import validated_probability

LABELS: Mapping[str, bool] = MappingProxyType({"S": True, "NS": False})
"""Annotations that are labels: supported and not supported. Any other leaves an atom unlabelled."""

VERDICTS: Mapping[str, RecordedVerdict] = MappingProxyType(
    {
        "S": RecordedVerdict("supported", 1.0),
        "NS": RecordedVerdict("unsupported", 0.0),
        "C": RecordedVerdict("contradicted", 0.0),
        "U": RecordedVerdict("undecided", 0.5),
    }
)
"""Predictions, with the P(true) of one that has no posterior."""

_SUM_TOLERANCE = 5e-3
"""By how much two probabilities may miss one: files round them to two digits and more."""

_WRITERS = ("factscore", "factverify", "veriscore", "factreasoner")
"""Assessors of the release. Nothing but the name of a file says which of the first three wrote
it."""

_PAIR = re.compile(r"(\S+): (\S+)")
_IN_WORDS = re.compile(rf"\s*(?:{_PAIR.pattern}\s*)*")

UNNAMED = "recorded"
"""What an assessor is called whose name nothing says."""


def looks_like_results(record: Mapping[str, Any]) -> bool:
    """Whether a record has the keys of results alone, without atoms and contexts.

    An older version writes predictions only where there are labels to compare them with.
    """
    keys = ("predictions", "factuality_score_per_atom", "marginals")
    return "factuality_score" in record and not record.keys().isdisjoint(keys)


def parse_mined(obj: object, source: str | os.PathLike[str], line: int | None = None) -> FactGraph:
    """Fact graph of mined relations between claims, with the texts of the claims.

    The metadata hold the sense of each relation (`senses`, by the ids of its claims), where the
    file tells it. The response itself is not in such a file.

    Args:
        obj: the JSON value.
        source: the file it comes from; its stem is the graph's id.
        line: its line in a file of many, which the id then carries.

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    texts = as_object(record.get("atoms"), f"{where}: key 'atoms'")
    graph = as_object(record.get("fact_graph"), f"{where}: key 'fact_graph'")
    nodes = [
        {**node, "text": texts.get(text_field(node, "id", location, ""))}
        for node, location in objects_field(graph, "nodes", f"{where}: key 'fact_graph'")
    ]
    senses: dict[str, str] = {}
    for relation, location in objects_field(record, "relations", where):
        ends = (text_field(relation, key, location, "") for key in ("source_id", "target_id"))
        senses[" ".join(ends)] = text_field(relation, "level2_sense", location, "")
    metadata = {"senses": {pair: sense for pair, sense in senses.items() if sense}}
    read = parse_fact_graph({**graph, "nodes": nodes}, source, line)
    return replace(read, metadata={key: value for key, value in metadata.items() if value})


def parse_results(
    obj: object, source: str | os.PathLike[str], line: int | None = None
) -> FactGraph:
    """Fact graph of results alone: the atoms that they judge, without texts.

    Labels are those of `references`, where these are.

    Args:
        obj: the JSON value.
        source: the file it comes from; its stem is the graph's id.
        line: its line in a file of many, which the id then carries.

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    name, by_variable = _verdicts(record, source, where)
    # Atoms have predictions; other variables, which some lists have too, have none.
    verdicts = {
        atom: verdict for atom, verdict in by_variable.items() if verdict.label
    } or by_variable
    labels = _by_atom(record, "references", where)
    atoms = [
        _atom({"id": atom, "text": "", "label": labels.get(atom)}, f"{where}: atom {atom!r}")
        for atom in verdicts
    ]
    query = text_field(record, "query", where, "") or text_field(record, "input", where, "")
    response = text_field(record, "response", where, "")
    topic = text_field(record, "topic", where, "")
    model = text_field(record, "model_name", where, "")
    seconds = _seconds(record.get("elapsed_time"), where)
    with located(where):
        return FactGraph(
            id=record_id(source, line),
            atoms=tuple(atoms),
            query=query,
            response=response,
            topic=topic,
            metadata={
                **({"model": model} if model else {}),
                ASSESSORS_KEY: {name: verdict_facts(verdicts)},
                **({SECONDS_KEY: seconds} if seconds else {}),
            },
        )


def parse_factreasoner(
    obj: object, source: str | os.PathLike[str], line: int | None = None
) -> FactGraph:
    """Fact graph of one record in FactReasoner's atoms-and-contexts format.

    A context is retrieved for the atoms that name it; one that no atom names was retrieved for
    the question. The prior of a context is its `probability` where that is given: the release
    writes the confidence of the context's summary there. Annotations other than S and NS stay as
    annotations and leave the label None. The metadata hold `cat`, the atoms' wording before
    revision (`original`, by atom, where it differs), the contexts' summaries (`synthetic_summary`,
    by context), and what the `results` of an output say of the atoms, as
    `factormodels.recorded_verdicts` has it; each only where there is any. Atoms that have no label
    of their own have that of the results' `references`. Other keys are passed over, but relations
    are refused: a graph without them says of every claim what its prior says.

    Args:
        obj: the JSON value.
        source: the file it comes from; its stem is the graph's id.
        line: its line in a file of many, which the id then carries.

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    _refuse_relations(record, where)
    retrieved_for: dict[str, list[str]] = {}
    atoms: list[Atom] = []
    original: dict[str, str] = {}
    summaries: dict[str, str] = {}
    contexts: list[Context] = []
    atom_items = objects_field(record, "atoms", where)
    # Some copies of the program write what they conclude beside the atoms.
    beside = record if looks_like_results(record) else {}
    results = as_object(record.get("results") or beside, f"{where}: key 'results'")
    references = _by_atom(results, "references", f"{where}: key 'results'")
    for item, location in objects_field(record, "contexts", where):
        context = _context(item, location)
        retrieved_for.setdefault(context.id, [])
        contexts.append(context)
        summary = text_field(item, "synthetic_summary", location, "")
        if summary:
            summaries[context.id] = summary
    for item, location in atom_items:
        labelled = item.get("label") is not None
        atom = _atom(
            item if labelled else {**item, "label": references.get(str(item.get("id")))}, location
        )
        atoms.append(atom)
        before = text_field(item, "original", location, atom.text)
        if before != atom.text:
            original[atom.id] = before
        for key in texts_field(item, "contexts", location):
            if key not in retrieved_for:
                raise InputError(
                    f"{location}: key 'contexts' names the context {key!r}, which is not among the "
                    "file's contexts; add it or drop the reference"
                )
            retrieved_for[key].append(atom.id)
    metadata = {
        "cat": texts_field(record, "cat", where),
        "original": original,
        "synthetic_summary": summaries,
        ASSESSORS_KEY: _assessors(results, atoms, contexts, source, f"{where}: key 'results'"),
        SECONDS_KEY: _seconds(results.get("elapsed_time"), f"{where}: key 'results'"),
    }
    query, response = (
        text_field(record, "input", where, ""),
        text_field(record, "output", where, ""),
    )
    topic = text_field(record, "topic", where, "")
    with located(where):
        return FactGraph(
            id=record_id(source, line),
            atoms=tuple(atoms),
            contexts=tuple(
                replace(context, retrieved_for=tuple(dict.fromkeys(retrieved_for[context.id])))
                for context in contexts
            ),
            query=query,
            response=response,
            topic=topic,
            metadata={key: value for key, value in metadata.items() if value},
        )


def _assessors(
    results: Mapping[str, Any],
    atoms: Sequence[Atom],
    contexts: Sequence[Context],
    source: str | os.PathLike[str],
    where: str,
) -> dict[str, Any]:
    """What the metadata hold of the results of an output."""
    if not results:
        return {}
    name, verdicts = _verdicts(results, source, where)
    known = {atom.id for atom in atoms}
    # Some lists have every variable of the network, contexts too.
    strange = verdicts.keys() - known - {context.id for context in contexts}
    if strange:
        raise InputError(
            f"{where}: they judge {min(strange)!r}, which is not among the file's atoms; add it or "
            "drop it"
        )
    of_atoms = {atom.id: verdicts[atom.id] for atom in atoms if atom.id in verdicts}
    return {name: verdict_facts(of_atoms)} if of_atoms else {}


def _seconds(value: object, where: str) -> float:
    """What an assessment took; 0 where nothing says it."""
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise InputError(
            f"{where}: key 'elapsed_time': {shown(value)} is no number of seconds; give one from "
            "0, or leave it out"
        )
    return float(value)


def _verdicts(
    results: Mapping[str, Any], source: str | os.PathLike[str], where: str
) -> tuple[str, dict[str, RecordedVerdict]]:
    """Whose results they are, and the verdict on each variable that they judge, in order."""
    posteriors: dict[str, float] = {}
    labels: dict[str, str] = {}
    for item, location in objects_field(results, "factuality_score_per_atom", where, []):
        for atom, value in item.items():
            scored = as_object(value, f"{location}: {atom!r}")
            with located(f"{location}: {atom!r}"):
                posteriors[atom] = validated_probability(scored.get("score"), "score")
            labels[atom] = text_field(scored, "support", f"{location}: {atom!r}", "")
    for item, location in objects_field(results, "marginals", where, []):
        pair = list_field(item, "probabilities", location)
        if len(pair) != 2:
            raise InputError(
                f"{location}: key 'probabilities' has {counted(len(pair), 'number')}; give those "
                "of false and of "
                "true"
            )
        variable = text_field(item, "variable", location)
        with located(location):
            false = validated_probability(pair[0], "false")
            posteriors[variable] = validated_probability(pair[1], "true")
        if abs(false + posteriors[variable] - 1.0) > _SUM_TOLERANCE:
            raise InputError(
                f"{location}: key 'probabilities': {shown(pair)} does not sum to 1; give the "
                "probabilities of false and of true"
            )
    for atom, label in _by_atom(results, "predictions", where).items():
        labels[atom] = as_text(label, f"{where}: key 'predictions', {atom!r}")
    by_variable: dict[str, RecordedVerdict] = {}
    for atom in {**labels, **posteriors}:
        label = labels.get(atom, "")
        if label and label not in VERDICTS:
            raise InputError(
                f"{where}: the verdict on {atom!r} is {shown(label)}; use one of "
                f"{', '.join(VERDICTS)}"
            )
        verdict = VERDICTS[label] if label else RecordedVerdict("", None)
        by_variable[atom] = replace(verdict, p_true=posteriors.get(atom, verdict.p_true))
    stem = record_id(source).casefold()
    unnamed = _WRITERS[-1] if posteriors else UNNAMED
    return next((writer for writer in _WRITERS if writer in stem), unnamed), by_variable


def _by_atom(results: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    """Labels by atom: an object, or as an older version writes them, " a0: S a1: NS"."""
    value = results.get(key) or {}
    if isinstance(value, str) and _IN_WORDS.fullmatch(value):
        return dict(_PAIR.findall(value))
    return as_object(value, f"{where}: key {key!r}")


def _refuse_relations(record: Mapping[str, Any], where: str) -> None:
    """Refuse what the format does not have and a reader of it would lose without a word."""
    for key in ("relations", "edges"):
        if record.get(key):
            raise InputError(
                f"{where}: key {key!r}: a record of 'atoms' and 'contexts' has no relations, and "
                "these would be lost; write a fact graph, with claims and passages as 'nodes' and "
                "relations as 'edges'"
            )


def _atom(item: Mapping[str, Any], where: str) -> Atom:
    annotation = item.get("label")
    if annotation is not None and not isinstance(annotation, str):
        raise InputError(
            f"{where}: key 'label': {shown(annotation)} is not an annotation; "
            "give 'S', 'NS', another text, or leave it out"
        )
    name, text = text_field(item, "id", where), text_field(item, "text", where)
    label = None if annotation is None else LABELS.get(annotation)
    with located(where):
        return Atom(id=name, text=text, label=label, annotation=annotation)


def _context(item: Mapping[str, Any], where: str) -> Context:
    name = text_field(item, "id", where)
    text, title = text_field(item, "text", where, ""), text_field(item, "title", where, "")
    link, snippet = text_field(item, "link", where, ""), text_field(item, "snippet", where, "")
    prior = CONTEXT_PRIOR if item.get("probability") is None else item["probability"]
    with located(where):
        return Context(id=name, text=text, prior=prior, title=title, link=link, snippet=snippet)
