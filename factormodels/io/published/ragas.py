"""Ragas: answers of retrieval-augmented generation with the passages that they were made from.

Source: explodinggradients/ragas (Apache-2.0), src/ragas/dataset_schema.py: samples of one turn
(`user_input`, `response`, `retrieved_contexts`, `reference`) and of several (`user_input` is a list
of messages with `type` and `content`); before version 0.2 `question`, `answer`, `contexts` and
`ground_truth`. What its faithfulness metric decides is a list of `statements` with `statement` and
`verdict` (1 or 0).

The retrieved passages are contexts of the whole response. A reference answer is no evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factormodels.claims import Atom, Context
from factormodels.decoded_values import (
    as_text,
    filled_field,
    first_key,
    named_id,
    objects_field,
    shown,
    text_field,
)
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import record_at, record_id
from factormodels.io.published.cells import listed_cell
from factormodels.io.published.judged_claims import assessor_metadata, truth_word
from factormodels.io.records import Source
from factormodels.recorded_verdicts import SUPPORTED, RecordedVerdict

RAGAS = "ragas"
"""Name of the assessor."""

QUESTIONS = ("user_input", "question")
RESPONSES = ("response", "answer")
CONTEXTS = ("retrieved_contexts", "contexts")

_UNSUPPORTED = RecordedVerdict("unsupported", 0.0)
_TEXTS = ("page_content", "text", "content", "passage")


def looks_like_ragas(record: Mapping[str, Any]) -> bool:
    """Tell whether a record is a sample of one turn with its passages."""
    return (
        any(key in record for key in RESPONSES)
        and any(key in record for key in CONTEXTS)
        and not looks_like_ragas_conversation(record)
    )


def looks_like_ragas_conversation(record: Mapping[str, Any]) -> bool:
    """Tell whether a record is a sample of several turns, or has verdicts on statements."""
    if _has_messages(record):
        return True
    statements = record.get("statements")
    return (
        isinstance(statements, list)
        and bool(statements)
        and all(
            isinstance(statement, dict) and {"statement", "verdict"} <= statement.keys()
            for statement in statements
        )
    )


def parse_ragas(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Fact graph of a sample: its passages are contexts, its statements atoms with a verdict.

    In a conversation the response is all that the assistant says, the query all that the user says,
    and the results of tools are contexts.

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    contexts = passages_of(record.get(first_key(record, CONTEXTS)), where)
    if _has_messages(record):
        spoken = _spoken(record, where)
        query, response = ("\n\n".join(spoken[role]) for role in ("human", "ai"))
        contexts = (*contexts, *passages_of(spoken["tool"], where, len(contexts)))
    else:
        query = text_field(record, first_key(record, QUESTIONS), where, "")
        response = text_field(record, first_key(record, RESPONSES), where, "")
    atoms, verdicts = [], {}
    for number, (statement, location) in enumerate(
        objects_field(record, "statements", where, []), 1
    ):
        atoms.append(Atom(f"a{number}", filled_field(statement, "statement", location)))
        faithful, _ = truth_word(statement.get("verdict"), f"{location}: key 'verdict'")
        if faithful is not None:
            verdicts[f"a{number}"] = SUPPORTED if faithful else _UNSUPPORTED
    return FactGraph(
        named_id(record, ("id",), where) or record_id(source, line),
        tuple(atoms),
        contexts,
        query=query,
        response=response.strip(),
        metadata=assessor_metadata({RAGAS: verdicts}),
    )


def passages_of(value: object, where: str, before: int = 0) -> tuple[Context, ...]:
    """Return the passages of a cell as contexts of the whole response, numbered in order.

    Args:
        value: a list of texts or of objects with a text, a list as the text of a CSV cell has it,
            one text, or null.
        where: the place, which errors name.
        before: number of contexts of the response that go before.

    Raises:
        InputError: if it is anything else.
    """
    # One text is one passage, whatever it begins with, unless it is the text of a list.
    whole = isinstance(value, str) and not value.lstrip().startswith("[")
    passages = [value] if whole else listed_cell(value, f"{where}: its passages")
    texts = [_text(passage, where).strip() for passage in passages if passage is not None]
    return tuple(
        Context(f"c{number}", text) for number, text in enumerate(filter(None, texts), before + 1)
    )


def _text(passage: object, where: str) -> str:
    if isinstance(passage, dict):
        key = first_key(passage, _TEXTS)
        if key not in passage:
            raise InputError(
                f"{where}: the passage {shown(passage)} has no text; give it under 'text'"
            )
        passage = passage[key]
    return as_text(passage, f"{where}: a passage")


def _has_messages(record: Mapping[str, Any]) -> bool:
    messages = record.get("user_input")
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(isinstance(message, dict) and "content" in message for message in messages)
    )


_ROLES = {
    **dict.fromkeys(("human", "user"), "human"),
    **dict.fromkeys(("ai", "assistant"), "ai"),
    "tool": "tool",
}


def _spoken(record: Mapping[str, Any], where: str) -> dict[str, list[str]]:
    """Texts of user, assistant and tools in a conversation, by role."""
    spoken: dict[str, list[str]] = {role: [] for role in _ROLES.values()}
    for message, location in objects_field(record, "user_input", where):
        kind = message.get("type", message.get("role"))
        if not isinstance(kind, str) or kind not in _ROLES:
            raise InputError(
                f"{location}: key 'type': {shown(kind)} is unknown; use one of {', '.join(_ROLES)}"
            )
        # A call of a tool has no text.
        if text := text_field(message, "content", location, "").strip():
            spoken[_ROLES[kind]].append(text)
    return spoken
