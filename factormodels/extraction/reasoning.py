"""What a model thought before it answered, which is not part of its answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from factormodels.extraction.language_model import Token

_OPENED = re.compile(
    r"\s*(?:<(?P<tag>think|thinking|thought|reasoning|seed:think)>|(?P<bracket>\[THINK\])"
    r"|(?P<channel><\|channel\|>analysis<\|message\|>))",
    re.I,
)
_CHANNEL_END = "<|channel|>final<|message|>"
_CLOSED_ALONE = re.compile(r"(?:^|\n)[^\n]*</think(?:ing)?>[ \t]*(?:\n|$)", re.I)
"""The end of thoughts whose beginning the server put into the question."""


def without_reasoning(text: str) -> tuple[str, bool]:
    """A text without the thoughts at its beginning, and whether there were any.

    Thoughts that do not end leave nothing: the answer had not begun.
    """
    found = False
    while (opened := _OPENED.match(text)) is not None:
        found = True
        end = _end_of_thoughts(opened)
        at = text.lower().find(end.lower(), opened.end())
        if at < 0:
            return "", True
        text = text[at + len(end) :]
    if not found and (closed := _CLOSED_ALONE.search(text)) is not None:
        return text[closed.end() :].strip(), True
    return (text.strip() if found else text), found


def _end_of_thoughts(opened: re.Match[str]) -> str:
    if opened["bracket"]:
        return "[/THINK]"
    return _CHANNEL_END if opened["channel"] else f"</{opened['tag']}>"


def aligned(text: str, tokens: Sequence[Token], reasoned: bool) -> tuple[str, tuple[Token, ...]]:
    """An answer and its tokens, such that these joined are the answer and no thoughts before it.

    Args:
        text: the answer.
        tokens: all tokens that the server reported.
        reasoned: whether there were thoughts; then tokens among which the answer is not found are
            of no use, since it is not known which of them are its own.
    """
    whole = "".join(token.text for token in tokens)
    if whole == text or not tokens:
        return text, tuple(tokens)
    stripped = text.strip()
    start = whole.rfind(stripped)
    if start < 0:
        return text, () if reasoned else tuple(tokens)
    kept: list[Token] = []
    end = 0
    for token in tokens:
        begin, end = end, end + len(token.text)
        if end > start:
            kept.append(replace(token, text=token.text[max(0, start - begin) :]))
    return stripped, tuple(kept)
