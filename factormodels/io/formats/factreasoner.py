"""FactReasoner's JSON: atoms with their contexts, and conclusions about them.

Source: the FactReasoner release (IBM/FactReasoner, Apache-2.0; the package fact-reasoner 0.5 to
0.8), which reads and writes such files. They contain atoms, the contexts that were retrieved for
each, and human labels, but no relations. An output (factreasoner_output.json,
factscore_output.json, factverify_output.json, veriscore_output.json) also has `results`, as in the
files that `factreasoner_results` reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from factormodels.claims import CONTEXT_PRIOR, Atom, Context
from factormodels.decoded_values import located
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats import factreasoner_results
from factormodels.io.formats.factreasoner_results import (
    FactreasonerConclusions,
    atom_of,
    by_atom,
    seconds_of,
    verdicts_of,
)
from factormodels.io.formats.format import Format, ToolVerdicts
from factormodels.io.formats.record import EMPTY_IS_NONE, ToolRecord, placed, record_of, root_path
from factormodels.io.source.places import location, record_id
from factormodels.io.tables.records import Source
from factormodels.metadata.recorded_verdicts import ASSESSORS_KEY, SECONDS_KEY, verdict_facts


class FactreasonerAtom(ToolRecord):
    """An atom: a claim, its label, and the ids of the contexts retrieved for it."""

    id: str
    text: str
    label: Any = None
    original: str | None = None
    contexts: list[str] | None = None


class FactreasonerContext(ToolRecord):
    """A context: a passage, and the confidence of its summary."""

    id: str
    text: str | None = None
    title: str | None = None
    link: str | None = None
    snippet: str | None = None
    probability: Any = None
    synthetic_summary: str | None = None


class FactreasonerResponse(ToolRecord):
    """A response with its atoms and contexts, and the results of an output."""

    atoms: list[FactreasonerAtom]
    contexts: list[FactreasonerContext]
    input: str | None = None
    output: str | None = None
    topic: str | None = None
    cat: list[str] | None = None
    results: Annotated[FactreasonerConclusions | None, EMPTY_IS_NONE] = None
    relations: Any = None
    edges: Any = None


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has atoms and contexts."""
    return "atoms" in record and "contexts" in record


def read(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Return the fact graph of one record in FactReasoner's atoms-and-contexts format.

    A context is retrieved for the atoms that refer to it; a context without references was
    retrieved for the question. The prior of a context is its `probability` if given: the release
    writes the confidence of the context's summary there. Annotations other than S and NS are kept
    as annotations and leave the label None. The metadata hold, if present, `cat`, the atoms'
    wording before revision (`original`, by atom, if it differs), the contexts' summaries
    (`synthetic_summary`, by context), and the verdicts in the `results` of an output, in the form
    of `factormodels.metadata.recorded_verdicts`. Atoms without a label take the label in the
    results' `references`. Other keys are ignored, but relations are refused: without them, the
    posterior of every claim would be its prior.

    Args:
        obj: the JSON value.
        source: its file, whose stem is the graph's id.
        line: its line in a JSON Lines file, which is then part of the id.

    Raises:
        InputError: if the record is malformed.
    """
    response, top = record_of(FactreasonerResponse, obj, source, line), root_path(source, line)
    _refuse_relations(response, top)
    results, results_at = response.results or FactreasonerConclusions(), f"{top}.results"
    if not response.results and isinstance(obj, dict) and factreasoner_results.recognize(obj):
        # Some versions of the program write conclusions beside the atoms.
        results, results_at = record_of(FactreasonerConclusions, obj, source, line), top
    references = by_atom(results.references, f"{results_at}.references")
    contexts = [
        _context(each, where) for each, where in placed(response.contexts, f"{top}.contexts")
    ]
    retrieved_for: dict[str, list[str]] = {context.id: [] for context in contexts}
    atoms: list[Atom] = []
    for stated, where in placed(response.atoms, f"{top}.atoms"):
        label = references.get(stated.id) if stated.label is None else stated.label
        atoms.append(atom_of(stated.id, stated.text, label, where))
        for key in stated.contexts or ():
            if key not in retrieved_for:
                raise InputError(
                    f"{where}.contexts names the context {key!r}, which is not among the file's "
                    "contexts; add it or drop the reference"
                )
            retrieved_for[key].append(stated.id)
    metadata = {
        "cat": response.cat,
        "original": {
            each.id: each.original
            for each in response.atoms
            if each.original not in (None, each.text)
        },
        "synthetic_summary": {
            each.id: each.synthetic_summary for each in response.contexts if each.synthetic_summary
        },
        ASSESSORS_KEY: _assessors(results, atoms, contexts, source, results_at),
        SECONDS_KEY: seconds_of(results, results_at),
    }
    with located(location(source, line)):
        return FactGraph(
            id=record_id(source, line),
            atoms=tuple(atoms),
            contexts=tuple(
                replace(context, retrieved_for=tuple(dict.fromkeys(retrieved_for[context.id])))
                for context in contexts
            ),
            query=response.input or "",
            response=response.output or "",
            topic=response.topic or "",
            metadata={key: value for key, value in metadata.items() if value},
        )


def _context(stated: FactreasonerContext, where: str) -> Context:
    with located(where):
        return Context(
            id=stated.id,
            text=stated.text or "",
            prior=CONTEXT_PRIOR if stated.probability is None else stated.probability,
            title=stated.title or "",
            link=stated.link or "",
            snippet=stated.snippet or "",
        )


def _assessors(
    results: FactreasonerConclusions,
    atoms: Sequence[Atom],
    contexts: Sequence[Context],
    source: Source,
    where: str,
) -> dict[str, Any]:
    """Return the metadata of the results of an output."""
    name, verdicts = verdicts_of(results, source, where)
    known = {atom.id for atom in atoms}
    # Some lists include all variables of the network, also contexts.
    strange = verdicts.keys() - known - {context.id for context in contexts}
    if strange:
        raise InputError(
            f"{where}: they judge {min(strange)!r}, which is not among the file's atoms; add it or "
            "drop it"
        )
    of_atoms = {atom.id: verdicts[atom.id] for atom in atoms if atom.id in verdicts}
    return {name: verdict_facts(of_atoms)} if of_atoms else {}


def _refuse_relations(response: FactreasonerResponse, top: str) -> None:
    """Refuse relations, which the format does not have and the reader would silently drop."""
    for key in ("relations", "edges"):
        if getattr(response, key):
            raise InputError(
                f"{top}.{key}: a record of 'atoms' and 'contexts' has no relations, and "
                "these would be lost; write a fact graph, with claims and passages as 'nodes' and "
                "relations as 'edges'"
            )


FORMAT = Format(
    name="factreasoner",
    title="FactReasoner, atoms and contexts",
    owner="IBM/FactReasoner",
    holds="responses",
    keys=("atoms", "contexts"),
    recognize=recognize,
    read=read,
    fields=(
        *("input", "output", "topic", "atoms[].text", "atoms[].label", "atoms[].contexts"),
        *("contexts[].text", "contexts[].title", "contexts[].link"),
    ),
    also=(
        *("cat", "atoms[].id", "atoms[].original", "atoms[].label", "contexts[].id"),
        *("contexts[].snippet", "contexts[].probability", "contexts[].synthetic_summary"),
        *("results", "marginals", "predictions", "factuality_score", "references"),
        "factuality_score_per_atom",
    ),
    verdicts=ToolVerdicts(
        tool="FactReasoner 0.5 to 0.8",
        file=(
            "`factreasoner_output.json`, `factscore_output.json`, `factverify_output.json`, "
            "`veriscore_output.json`, and lines of results alone"
        ),
        probability="the posterior; of verdicts 1, 0, and ½ if undecided",
    ),
)
