"""Questions with responses, the input of VeriScore and FaStfact, and sampled answers of UQLM.

Sources: Yixiao-Song/VeriScore; Yingjia-Wan/FaStfact, README.md (`question`, `response`, `model`,
`prompt_source`) and FaStfact-Bench/fastfact-bench_for_eval.jsonl (also `question_id`, `topic`,
`cat`); cvs-health/uqlm, whose rows without claims have `prompt`, `response` and
`sampled_responses`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factormodels.decoded_values import as_text
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.cells import listed_texts
from factormodels.io.formats.format import Format
from factormodels.io.formats.record import (
    ToolRecord,
    record_of,
    root_path,
    stated_id,
    stated_of,
)
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source
from factormodels.samples import with_samples

_QUESTIONS = ("question", "prompt", "query", "user_input", "instruction")
"""Keys of the question; the owners use the first."""

_METADATA = ("question_id", "prompt_source", "model", "cat")


class AnsweredQuestion(ToolRecord):
    """A question with its response."""

    # Null means that there is no response; a missing key may be a spelling error.
    response: str | None
    question: Any = None
    prompt: Any = None
    query: Any = None
    user_input: Any = None
    instruction: Any = None
    id: Any = None
    topic: str | None = None
    question_id: Any = None
    prompt_source: Any = None
    model: Any = None
    cat: Any = None
    sampled_responses: Any = None


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a question and a response."""
    return "response" in record and any(key in record for key in _QUESTIONS)


def read(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Return a question with its response and sampled answers, without atoms.

    Raises:
        InputError: if the record is malformed.
    """
    record = record_of(AnsweredQuestion, obj, source, line)
    where = f"{root_path(source, line)}.sampled_responses"
    samples = listed_texts(record.sampled_responses, where)
    return with_samples(answered_graph(record, source, line), samples)


def answered_graph(record: AnsweredQuestion, source: Source, line: int | None = None) -> FactGraph:
    """Return a question with its response, without atoms, under the id stated in the record.

    The text of a null response is empty.

    Raises:
        InputError: if there is no question.
    """
    top = root_path(source, line)
    key, question = stated_of(record, _QUESTIONS, source, line)
    return FactGraph(
        stated_id(record.id, f"{top}.id") or record_id(source, line),
        (),
        query=as_text(question, f"{top}.{key}"),
        response=record.response or "",
        topic=record.topic or "",
        metadata={
            key: value for key in _METADATA if (value := getattr(record, key)) not in (None, "")
        },
    )


FORMAT = Format(
    name="responses",
    title="questions with responses (VeriScore, FaStfact-Bench for evaluation)",
    owner="Yixiao-Song/VeriScore; Yingjia-Wan/FaStfact",
    holds="responses",
    keys=("question", "response"),
    recognize=recognize,
    read=read,
    record=AnsweredQuestion,
    fields=("question", "response", "model", "prompt_source"),
)
