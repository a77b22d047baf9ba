"""Prompts: what is asked of a language model, without answers.

Sources and what of them was relied on. LongFact (Wei et al. 2024; google-deepmind/
long-form-factuality, longfact/README.md): JSON Lines with `prompt` and `canary`, one file per
topic, named after it. VeriScore (Song et al. 2024; Yixiao-Song/VeriScore, README.md), from which
FactReasoner has AskHistorians, ELI5 and Books: JSON Lines with `question` and `prompt_source`; its
own files of these were not seen. Xu et al. 2023 (carriex/lfqa_eval, README.md and
raw_annotation_data/README.md): `question`, or `q_id` with `question_text`. ELI5 (Fan et al. 2019):
`q_id`, `title`, `selftext`, `subreddit`. ExpertQA, data/r1_data_anon.jsonl: `question` with
`metadata`. FactReasoner's own copy of AskHistorians (IBM/FactReasoner, data/askhist.json) holds
responses in FactReasoner's format; their queries are the prompts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factormodels.decoded_values import filled_field, named_id, text_field
from factormodels.errors import InputError
from factormodels.io.json_records import record_at, record_id
from factormodels.io.records import Source
from factormodels.validation import validated_id

_TEXTS = ("prompt", "question", "question_text", "title")
_IDS = ("id", "q_id", "question_id")
_TOPICS = ("topic", "prompt_source", "subreddit", "category")
_LONGFACT = re.compile(r"longfact-(?:concepts|objects)_(?P<topic>.+)")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is asked of a language model.

    Attributes:
        id: name of the prompt, unique in its file.
        text: the prompt.
        topic: what it is about, or the collection it comes from; empty where that is not said.
    """

    id: str
    text: str
    topic: str = ""

    def __post_init__(self) -> None:
        validated_id(self.id, "a prompt")
        if not isinstance(self.text, str) or not self.text.strip():
            raise InputError(f"prompt {self.id!r}: its text is empty; give one")


def looks_like_longfact(record: Mapping[str, Any]) -> bool:
    """Whether a record has the keys of LongFact."""
    return "prompt" in record and record.keys() <= {"prompt", "canary"}


def looks_like_prompt(record: Mapping[str, Any]) -> bool:
    """Whether a record has a key that holds a prompt."""
    return any(key in record for key in _TEXTS[:3]) or {"q_id", "title"} <= record.keys()


def parse_prompt(obj: object, source: Source, line: int | None = None) -> Prompt:
    """Prompt of a record.

    The text of ELI5's posts follows their title. A prompt of LongFact has the topic of its file.

    Raises:
        InputError: if the record has no text.
    """
    record, where = record_at(obj, source, line)
    key = next((key for key in _TEXTS if key in record), None)
    if key is None:
        raise InputError(f"{where}: the key 'prompt' is missing; add it")
    text = filled_field(record, key, where)
    if key == "title" and text_field(record, "selftext", where, "").strip():
        text = f"{text}\n{record['selftext']}"
    topic = next((text_field(record, key, where) for key in _TOPICS if record.get(key)), "")
    return Prompt(
        named_id(record, _IDS, where) or record_id(source, line),
        text,
        topic or _of(source, record, where),
    )


def _of(source: Source, record: dict[str, object], where: str) -> str:
    """Topic that the file's name or the record's metadata say."""
    about = record.get("metadata")
    if isinstance(about, dict):
        return text_field(about, "field", where, "")
    stem = record_id(Path(source).name)
    match = _LONGFACT.fullmatch(stem)
    return match["topic"].replace("-", " ") if match else ""
