"""LongFact's prompts: JSON Lines with `prompt` and `canary`, one file per topic, named after it.

Source: Wei et al. 2024, google-deepmind/long-form-factuality, longfact/README.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from factormodels.io.formats.format import Format
from factormodels.io.formats.items import Prompt
from factormodels.io.formats.record import ToolRecord, filled, record_of, root_path
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source

_FILE = re.compile(r"longfact-(?:concepts|objects)_(?P<topic>.+)")


class LongfactPrompt(ToolRecord):
    """A prompt."""

    prompt: str


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the keys of LongFact and no others."""
    return "prompt" in record and record.keys() <= {"prompt", "canary"}


def read(obj: object, source: Source, line: int | None = None) -> Prompt:
    """Return the prompt of a record, with the topic in the name of its file.

    Raises:
        InputError: if the record has no text.
    """
    text = filled(
        record_of(LongfactPrompt, obj, source, line).prompt, f"{root_path(source, line)}.prompt"
    )
    return Prompt(record_id(source, line), text, topic_of_file(source))


def topic_of_file(source: Source) -> str:
    """Return the topic in the name of one of LongFact's files; empty for other files."""
    match = _FILE.fullmatch(record_id(Path(source).name))
    return match["topic"].replace("-", " ") if match else ""


FORMAT = Format(
    name="longfact",
    title="LongFact prompts",
    owner="google-deepmind/long-form-factuality, longfact",
    holds="prompts",
    keys=("prompt", "canary"),
    recognize=recognize,
    read=read,
    record=LongfactPrompt,
    fields=("prompt", "canary"),
)
