"""SAFE's checked statements, alone or in the `per_prompt_data` of a result file.

Source: google-deepmind/long-form-factuality (Apache-2.0). A statement has `atomic_fact`,
`self_contained_atomic_fact` and `annotation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from factormodels.decoded_values import as_text
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format, ToolVerdicts
from factormodels.io.formats.judged import UNSUPPORTED, judged_response
from factormodels.io.formats.record import ToolRecord, filled, placed, record_of, root_path
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source
from factormodels.metadata.recorded_verdicts import SUPPORTED, RecordedVerdict

_VERDICTS: Mapping[str, RecordedVerdict] = MappingProxyType(
    {
        "supported": SUPPORTED,
        "not supported": UNSUPPORTED,
        "irrelevant": RecordedVerdict("irrelevant", None),
    }
)


class SafeStatement(ToolRecord):
    """A fact in its original and self-contained form, with the tool's annotation."""

    # Used only if the other is blank.
    atomic_fact: Any = None
    self_contained_atomic_fact: str | None = None
    annotation: str | None = None


class SafeResponse(ToolRecord):
    """A response with its checked statements."""

    checked_statements: list[SafeStatement]
    prompt: str | None = None
    response: str | None = None


class SafePrompt(ToolRecord):
    """A prompt of a result file, with the evaluations of one or two responses."""

    side1_posthoc_eval_data: SafeResponse | None = None
    side2_posthoc_eval_data: SafeResponse | None = None


class SafeResults(ToolRecord):
    """A result file."""

    per_prompt_data: list[SafePrompt]


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has checked statements, or is a result file that contains some."""
    return "checked_statements" in record or "per_prompt_data" in record


def read(obj: object, source: Source, line: int | None = None) -> list[FactGraph]:
    """Return the fact graphs of checked statements, for both sides of a prompt that has two.

    A claim is the self-contained fact; an irrelevant one has no P(true).

    Raises:
        InputError: if the record is malformed.
    """
    name, top = record_id(source, line), root_path(source, line)
    if isinstance(obj, dict) and "checked_statements" not in obj:
        graphs = []
        results = record_of(SafeResults, obj, source, line)
        for number, prompt in enumerate(results.per_prompt_data):
            sides = (prompt.side1_posthoc_eval_data, prompt.side2_posthoc_eval_data)
            for side, response in enumerate(sides, 1):
                if response is not None:
                    where = f"{top}.per_prompt_data[{number}].side{side}_posthoc_eval_data"
                    graphs.append(_graph(response, f"{name}-{number + 1}-side{side}", where))
        return graphs
    return [_graph(record_of(SafeResponse, obj, source, line), name, top)]


def _graph(response: SafeResponse, name: str, top: str) -> FactGraph:
    judged = []
    for statement, where in placed(response.checked_statements, f"{top}.checked_statements"):
        text = statement.self_contained_atomic_fact or ""
        if not text.strip():
            text = as_text(statement.atomic_fact, f"{where}.atomic_fact")
            filled(text, f"{where}.atomic_fact")
        word = (statement.annotation or "").strip().casefold()
        judged.append((text, _VERDICTS.get(word)))
    return judged_response(name, judged, "safe", query=response.prompt, response=response.response)


FORMAT = Format(
    name="safe-output",
    title="SAFE, checked statements",
    owner="google-deepmind/long-form-factuality, Apache-2.0",
    holds="responses",
    keys=("checked_statements",),
    recognize=recognize,
    read=read,
    record=SafeResponse,
    fields=(
        *("prompt", "response", "checked_statements[].annotation"),
        "checked_statements[].self_contained_atomic_fact",
    ),
    also=(
        *("checked_statements[].sentence", "checked_statements[].rate_data"),
        *("checked_statements[].relevance_data", "Supported", "Irrelevant", "Not Supported"),
        "per_prompt_data",
    ),
    verdicts=ToolVerdicts(
        tool="SAFE",
        file="results with `checked_statements`, or a file with `per_prompt_data`",
        probability="1, 0; irrelevant facts have none",
    ),
)
