"""Ragas: answers of retrieval-augmented generation with the retrieved passages.

Source: explodinggradients/ragas (Apache-2.0), src/ragas/dataset_schema.py: samples of one turn
(`user_input`, `response`, `retrieved_contexts`, `reference`) and of several (`user_input` is a list
of messages with `type` and `content`); before version 0.2 `question`, `answer`, `contexts` and
`ground_truth`. The decisions of its faithfulness metric are a list of `statements` with `statement`
and `verdict` (1 or 0).

The retrieved passages are contexts of the whole response. A reference answer is not evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factormodels.claims import Atom, Context
from factormodels.decoded_values import as_text, shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.cells import listed_cell
from factormodels.io.formats.format import Format
from factormodels.io.formats.judged import UNSUPPORTED, assessor_metadata, truth_word
from factormodels.io.formats.record import (
    ToolRecord,
    filled,
    placed,
    record_of,
    root_path,
    stated_id,
)
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source
from factormodels.metadata.recorded_verdicts import SUPPORTED, RecordedVerdict

QUESTIONS = ("user_input", "question")
RESPONSES = ("response", "answer")
CONTEXTS = ("retrieved_contexts", "contexts")

_ASSESSOR = "ragas"
_TEXTS = ("page_content", "text", "content", "passage")


class RagasStatement(ToolRecord):
    """A statement of the answer, and whether the passages support it."""

    statement: str
    verdict: Any = None


class RagasSample(ToolRecord):
    """A sample of one turn or of several."""

    id: Any = None
    # A text, or the messages of a conversation.
    user_input: Any = None
    question: Any = None
    response: Any = None
    answer: Any = None
    # A list, or its text in a cell of a table.
    retrieved_contexts: Any = None
    contexts: Any = None
    statements: list[RagasStatement] | None = None


class RagasMessage(ToolRecord):
    """A message of a conversation; a call of a tool has no text."""

    type: Any = None
    role: Any = None
    content: str | None = None


class RagasConversation(ToolRecord):
    """A sample of several turns."""

    user_input: list[RagasMessage]


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a sample of one turn with its passages."""
    return (
        any(key in record for key in RESPONSES)
        and any(key in record for key in CONTEXTS)
        and not recognize_turns(record)
    )


def recognize_turns(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a sample of several turns, or has verdicts on statements."""
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


def read(obj: Any, source: Source, line: int | None = None) -> FactGraph:
    """Return the fact graph of a sample.

    Its passages are contexts, its statements atoms with a verdict. In a conversation the response
    is the assistant's text, the query the user's text, and the results of tools are contexts.

    Raises:
        InputError: if the record is malformed.
    """
    sample, top = record_of(RagasSample, obj, source, line), root_path(source, line)
    key, passages = sample.first_of(CONTEXTS)
    contexts = passages_of(passages, f"{top}.{key}")
    if _has_messages(obj):
        spoken = _spoken(record_of(RagasConversation, obj, source, line), top)
        query, response = ("\n\n".join(spoken[role]) for role in ("human", "ai"))
        contexts = (*contexts, *passages_of(spoken["tool"], top, len(contexts)))
    else:
        query, response = (sample.first_text(keys, top) for keys in (QUESTIONS, RESPONSES))
    atoms = []
    verdicts: dict[str, RecordedVerdict | None] = {}
    statements = placed(sample.statements or (), f"{top}.statements")
    for number, (statement, at) in enumerate(statements, 1):
        atoms.append(Atom(f"a{number}", filled(statement.statement, f"{at}.statement")))
        faithful, _ = truth_word(statement.verdict, f"{at}.verdict")
        if faithful is not None:
            verdicts[f"a{number}"] = SUPPORTED if faithful else UNSUPPORTED
    return FactGraph(
        stated_id(sample.id, f"{top}.id") or record_id(source, line),
        tuple(atoms),
        contexts,
        query=query,
        response=response.strip(),
        metadata=assessor_metadata({_ASSESSOR: verdicts}),
    )


def passages_of(value: object, where: str, before: int = 0) -> tuple[Context, ...]:
    """Return the passages of a cell as contexts of the whole response, numbered in order.

    Args:
        value: a list of texts or of objects with a text, such a list as the text of a CSV cell, a
            text, or null.
        where: the place, for errors.
        before: number of preceding contexts of the response.

    Raises:
        InputError: if it is anything else.
    """
    # A text is a single passage, unless it is the text of a list.
    whole = isinstance(value, str) and not value.lstrip().startswith("[")
    passages = [value] if whole else listed_cell(value, where)
    texts = [_text(passage, where).strip() for passage in passages if passage is not None]
    return tuple(
        Context(f"c{number}", text) for number, text in enumerate(filter(None, texts), before + 1)
    )


def _text(passage: object, where: str) -> str:
    if isinstance(passage, dict):
        key = next((key for key in _TEXTS if key in passage), None)
        if key is None:
            raise InputError(
                f"{where}: the passage {shown(passage)} has no text; give it under 'text'"
            )
        passage = passage[key]
    return as_text(passage, where)


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


def _spoken(conversation: RagasConversation, top: str) -> dict[str, list[str]]:
    """Return the texts of user, assistant and tools in a conversation, by role."""
    spoken: dict[str, list[str]] = {role: [] for role in _ROLES.values()}
    for message, where in placed(conversation.user_input, f"{top}.user_input"):
        kind = message.first_of(("type", "role"))[1]
        if not isinstance(kind, str) or kind not in _ROLES:
            raise InputError(
                f"{where}.type: {shown(kind)} is unknown; use one of {', '.join(_ROLES)}"
            )
        if text := (message.content or "").strip():
            spoken[_ROLES[kind]].append(text)
    return spoken


FORMAT = Format(
    name="ragas",
    title="Ragas, answers with the passages retrieved for the question",
    owner="explodinggradients/ragas, Apache-2.0",
    holds="responses",
    keys=("user_input", "response", "retrieved_contexts"),
    recognize=recognize,
    read=read,
    record=RagasSample,
)
