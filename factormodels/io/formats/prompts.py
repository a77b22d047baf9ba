"""Prompts for language models, without answers.

Based on these sources: VeriScore (Song et al. 2024; Yixiao-Song/VeriScore, README.md), the origin
of FactReasoner's AskHistorians, ELI5 and Books: JSON Lines with `question` and `prompt_source`; its
own files of these were not available. Xu et al. 2023 (carriex/lfqa_eval, README.md and
raw_annotation_data/README.md): `question`, or `q_id` with `question_text`. ELI5 (Fan et al. 2019):
`q_id`, `title`, `selftext`, `subreddit`. ExpertQA, data/r1_data_anon.jsonl: `question` with
`metadata`. FactReasoner's own copy of AskHistorians (IBM/FactReasoner, data/askhist.json) has
responses in FactReasoner's format, whose queries are the prompts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factormodels.decoded_values import as_text
from factormodels.io.formats.format import Format
from factormodels.io.formats.items import Prompt
from factormodels.io.formats.longfact import topic_of_file
from factormodels.io.formats.record import (
    ToolRecord,
    filled,
    record_of,
    root_path,
    stated_id,
    stated_of,
)
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source

_TEXTS = ("prompt", "question", "question_text", "title")
_IDS = ("id", "q_id", "question_id")
_TOPICS = ("topic", "prompt_source", "subreddit", "category")


class QuestionRecord(ToolRecord):
    """A question, under one of the keys that its owners use."""

    prompt: Any = None
    question: Any = None
    question_text: Any = None
    title: Any = None
    selftext: str | None = None
    id: Any = None
    q_id: Any = None
    question_id: Any = None
    topic: Any = None
    prompt_source: Any = None
    subreddit: Any = None
    category: Any = None
    metadata: Any = None


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a key of a prompt."""
    return any(key in record for key in _TEXTS[:3]) or {"q_id", "title"} <= record.keys()


def read(obj: object, source: Source, line: int | None = None) -> Prompt:
    """Return the prompt of a record; the text of an ELI5 post follows its title.

    Raises:
        InputError: if the record has no text.
    """
    record, top = record_of(QuestionRecord, obj, source, line), root_path(source, line)
    key, value = stated_of(record, _TEXTS, source, line)
    text = filled(as_text(value, f"{top}.{key}"), f"{top}.{key}")
    if key == "title" and (record.selftext or "").strip():
        text = f"{text}\n{record.selftext}"
    topic = next(
        (as_text(value, f"{top}.{key}") for key in _TOPICS if (value := getattr(record, key))), ""
    )
    ids = (stated_id(getattr(record, key), f"{top}.{key}") for key in _IDS)
    return Prompt(
        next(filter(None, ids), "") or record_id(source, line),
        text,
        topic or _field(record.metadata, top, source),
    )


def _field(metadata: object, top: str, source: Source) -> str:
    """Return the topic in a record's metadata, or else the file's name."""
    if not isinstance(metadata, dict):
        return topic_of_file(source)
    field = metadata.get("field")
    return "" if field is None else as_text(field, f"{top}.metadata.field")


FORMAT = Format(
    name="prompts",
    title="prompts (ELI5, AskHistorians, Books, ExpertQA's questions)",
    owner="Yixiao-Song/VeriScore; carriex/lfqa_eval; chaitanyamalaviya/ExpertQA",
    holds="prompts",
    keys=("question",),
    recognize=recognize,
    read=read,
    record=QuestionRecord,
    also=("annotator_id",),
)
