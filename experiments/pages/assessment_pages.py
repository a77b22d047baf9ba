"""What pages say of assessed responses that no study has: their stages, and what is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibration.scores.measures import entropy_warnings
from experiments.asking.failed_calls import failure_sentences
from experiments.evaluators.assess_tables import (
    MEASURES,
    missing_sentences,
    stage_failures,
    stage_remarks,
)
from experiments.evaluators.batch import calls_of_graphs
from experiments.evaluators.open_relations import RANGED
from experiments.evaluators.response import AssessedResponse, Compared, judged, summarise_judged
from experiments.pages.pages import fixed, interval
from experiments.pages.reported_datasets import Part
from factormodels.fact_graph import FactGraph


@dataclass(frozen=True)
class Assessment:
    """Assessed responses, as their pages speak of them.

    Attributes:
        name: what they are called.
        graphs: all of them, whether they have a page or not.
        names: the variants and assessors that judged them.
    """

    name: str
    graphs: Sequence[FactGraph]
    names: tuple[str, ...]

    @property
    def alone(self) -> bool:
        """Whether there is one response, whose page is the first and only one."""
        return len(self.graphs) == 1

    def of_response(self, graph: FactGraph) -> dict[str, Any]:
        """What the page of a response shows beside its claims."""
        return {
            "alone": self.alone,
            "measures": self._measures([judged(graph)]),
            "stages": stage_remarks(graph),
            "missing": stage_failures(graph),
        }

    def of_all(self, parts: Sequence[Part]) -> dict[str, Any]:
        """What the first page shows of several responses."""
        told = {graph.id: judged(graph) for graph in self.graphs}
        rows = [
            (graph, file, *self._row(told[graph.id]))
            for part in parts
            for graph, file in part.responses
        ]
        responses = list(told.values())
        return {
            "rows": rows,
            "names": self.names,
            "measures": self._measures(responses),
            "n_responses": len(responses),
            "n_claims": sum(len(one.labels) for one in responses),
            "missing": [
                *missing_sentences(responses, self.graphs),
                *(f"{each}." for each in failure_sentences(calls_of_graphs(self.graphs))),
            ],
        }

    def _row(self, response: AssessedResponse) -> tuple[list[tuple[str, str]], int]:
        compared = self._compared([response])
        shares = [
            (fixed(None if one is None else one["precision"]), _range(compared, name, "precision"))
            for name in self.names
            for one in [compared.summaries[name]]
        ]
        return shares, response.lacking

    def _compared(self, responses: Sequence[AssessedResponse]) -> Compared:
        with entropy_warnings():
            return summarise_judged(responses, self.names)

    def _measures(self, responses: Sequence[AssessedResponse]) -> dict[str, Any]:
        """The measures that are defined, a row per variant and assessor that judged anything."""
        compared = self._compared(responses)
        known = {name: one for name, one in compared.summaries.items() if one is not None}
        shown = [
            (key, title)
            for key, (title, _) in MEASURES.items()
            if not all(math.isnan(compared.measure(name, key)) for name in known)
        ]
        return {
            "titles": [title for _, title in shown],
            "k": "" if not known else f"{next(iter(known.values()))['k']:g}",
            "left_out": compared.left_out,
            "ranges": bool(compared.ranges),
            "rows": [
                (
                    name,
                    [
                        (_number(compared.measure(name, key), key), _range(compared, name, key))
                        for key, _ in shown
                    ],
                )
                for name in known
            ],
        }


def _number(value: float, key: str) -> str:
    digits = MEASURES[key][1]
    text = fixed(value, digits)
    return text.removesuffix(".0") if digits == 1 else text


def _range(compared: Compared, name: str, key: str) -> str:
    if key not in RANGED or name not in compared.ranges:
        return ""
    return interval(*compared.ranges[name][key])
