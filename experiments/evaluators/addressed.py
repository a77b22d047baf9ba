"""Passages that address their reader, and the verdicts that depend on these sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from experiments.columns.assessed_metadata import METADATA_KEY as ASSESSMENT_KEY
from experiments.evaluators.response import AssessmentView
from experiments.findings.table import Table, columns_as, data_frame
from experiments.findings.text import shortened
from factormodels.errors import FactormodelsError
from factormodels.extraction.stages.addressed import METADATA_KEY, graph_without_address
from factormodels.extraction.stages.relations import only_asked
from factormodels.fact_graph import FactGraph
from factormodels.metadata.recorded_verdicts import ASSESSORS_KEY
from factormodels.nouns import counted
from factormodels.variants import variant as variant_of

_HALF = 0.5
_ROUNDING = 1e-9
"""Distance from 1/2 within which a posterior is undecided."""


@dataclass(frozen=True)
class VerdictWithoutAddress:
    """A claim's posterior with the sentences that address the reader, and without them.

    Attributes:
        response: id of the response.
        variant: the variant, or the assessor.
        atom: id of the claim.
        p: assessed posterior.
        without: posterior without these sentences; NaN if the backend then has no answer.
    """

    response: str
    variant: str
    atom: str
    p: float
    without: float

    @property
    def hangs(self) -> bool:
        """Return True if the verdict (true, false or undecided) changes without the sentences."""
        return not math.isnan(self.without) and _side(self.p) != _side(self.without)


def _side(p: float) -> int:
    return 0 if abs(p - _HALF) <= _ROUNDING else 1 if p > _HALF else -1


def verdicts_without_address(
    graphs: Sequence[FactGraph], views: Sequence[AssessmentView]
) -> list[VerdictWithoutAddress]:
    """Posteriors of responses with such passages, with and without the sentences.

    Claims without an assessed posterior are left out.
    """
    changes: list[VerdictWithoutAddress] = []
    for graph in graphs:
        changes += _of_assessors(graph)
        if (other := graph_without_address(graph)) is None:
            continue
        for view in views:
            assessed = graph.metadata.get(ASSESSMENT_KEY, {}).get(view.variant, {})
            if "atoms" not in assessed:
                continue
            seen = variant_of(only_asked(other, view.variant), view.variant, view.conventions)
            try:
                posterior = view.backend.infer(seen.to_factor_graph(view.encoding))
                p = posterior.marginals.of_state(1, seen.atom_ids).tolist()
            except FactormodelsError:
                p = [math.nan] * len(seen.atom_ids)
            unanswered = set(assessed["unanswered"])
            changes += [
                VerdictWithoutAddress(
                    graph.id, view.variant, atom, assessed["atoms"][atom]["p"], without
                )
                for atom, without in zip(seen.atom_ids, p, strict=True)
                if atom not in unanswered
            ]
    return changes


def _of_assessors(graph: FactGraph) -> Iterator[VerdictWithoutAddress]:
    """Verdicts of assessors on claims that were shown such a passage, with and without it.

    Claims that a verdict excludes from the score, in either case, have no posterior to compare.
    """
    again = graph.metadata.get(METADATA_KEY, {}).get("verdicts", {})
    for name, by_atom in again.items():
        given = graph.metadata[ASSESSORS_KEY][name]["verdicts"]
        for atom, without in by_atom.items():
            p = given.get(atom, {}).get("p")
            if p is not None and without is not None:
                yield VerdictWithoutAddress(graph.id, name, atom, p, without)


def address_sentences(
    graphs: Sequence[FactGraph], verdicts: Sequence[VerdictWithoutAddress]
) -> Iterator[str]:
    """Yield sentences on the passages that address their reader, and on the verdicts that depend on
    them."""
    marked = [
        (graph, text)
        for graph in graphs
        for texts in graph.metadata.get(METADATA_KEY, {}).get("contexts", {}).values()
        for text in texts[:1]
    ]
    if not marked:
        return
    first, text = marked[0]
    tell = "addresses its reader" if len(marked) == 1 else "address their reader"
    yield f"{counted(len(marked), 'passage')} {tell}, the first in {first.id}: {shortened(text)!r}."
    if not verdicts:
        yield "Verdicts without these sentences were not requested."
        return
    hanging = [verdict for verdict in verdicts if verdict.hangs]
    where = f", the first that of {hanging[0].response}, {hanging[0].atom}" if hanging else ""
    yield (
        f"Without these sentences {len(hanging)} of {counted(len(verdicts), 'verdict')} of these "
        f"responses would change{where}."
    )
    if unknown := sum(math.isnan(verdict.without) for verdict in verdicts):
        yield f"Without them inference gave no answer for {counted(unknown, 'verdict')}."


def address_tables(
    graphs: Sequence[FactGraph], verdicts: Sequence[VerdictWithoutAddress]
) -> dict[str, Table]:
    """The tables `addressed`, a row per sentence, and `hanging`, a row per verdict."""
    rows = [
        {"response": graph.id, "context": context, "sentence": sentence}
        for graph in graphs
        for context, texts in graph.metadata.get(METADATA_KEY, {}).get("contexts", {}).items()
        for sentence in texts
    ]
    if not rows:
        return {}
    tables = {
        "addressed": Table(
            data_frame(rows, ["response", "context", "sentence"]),
            columns_as("response | context | sentence", sentence=shortened),
            "Sentences that address the reader of the passage.",
        )
    }
    hanging = [
        {
            "response": verdict.response,
            "variant": verdict.variant,
            "claim": verdict.atom,
            "p": verdict.p,
            "without": verdict.without,
        }
        for verdict in verdicts
        if verdict.hangs
    ]
    if hanging:
        tables["hanging"] = Table(
            data_frame(hanging, ["response", "variant", "claim", "p", "without"]),
            columns_as("response | variant | claim | p:3 | without:3"),
            "Verdicts that would change without these sentences.",
        )
    return tables
