"""FActScore's decisions: the result of `FactScorer.get_score`, saved as JSON.

Source: shmsw25/FActScore (MIT). `decisions` has a list for each response, null without facts. A
response is identified only by its position in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format, ToolVerdicts
from factormodels.io.formats.judged import UNSUPPORTED, judged_response
from factormodels.io.formats.record import ToolRecord, filled, placed, record_of, root_path
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source
from factormodels.metadata.recorded_verdicts import SUPPORTED


class FactscoreDecision(ToolRecord):
    """An atomic fact, and whether the tool considers it supported."""

    atom: str
    is_supported: bool


class FactscoreOutput(ToolRecord):
    """The decisions of the tool on the facts of several responses."""

    decisions: list[list[FactscoreDecision] | None]


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has decisions and their score."""
    return "decisions" in record and "score" in record


def read(obj: object, source: Source, line: int | None = None) -> list[FactGraph]:
    """Return a fact graph for each response, numbered from 1.

    A fact that is not supported has P(true) 0, since the tool states nothing more.

    Raises:
        InputError: if the record is malformed.
    """
    output = record_of(FactscoreOutput, obj, source, line)
    graphs = []
    for number, decisions in enumerate(output.decisions):
        judged = [
            (
                filled(decision.atom, f"{where}.atom"),
                SUPPORTED if decision.is_supported else UNSUPPORTED,
            )
            for decision, where in placed(
                decisions or (), f"{root_path(source, line)}.decisions[{number}]"
            )
        ]
        name = f"{record_id(source, line)}-{number + 1}"
        graphs.append(judged_response(name, judged, "factscore"))
    return graphs


FORMAT = Format(
    name="factscore-output",
    title="FActScore, decisions",
    owner="shmsw25/FActScore, MIT",
    holds="responses",
    keys=("decisions", "score"),
    recognize=recognize,
    read=read,
    record=FactscoreOutput,
    fields=("decisions",),
    also=("decisions[].*", "init_score", "respond_ratio", "num_facts_per_response"),
    verdicts=ToolVerdicts(
        tool="FActScore",
        file="what `get_score` returns, saved as JSON (`decisions`)",
        probability="1 or 0",
    ),
)
