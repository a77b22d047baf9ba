"""Files of answers with their kept claims."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".txt", ".md", ".html", ".json", ".jsonl")
"""Suffixes of files of answers."""

WITHOUT_TEXTS = "The data have no texts of claims; ids stand in their place."
"""Sentence on answers that are lists of ids."""

_ID = re.compile(r"[\w.:/#-]{1,64}", re.ASCII)
"""A claim that is an id rather than a text."""


def pieces(claims: pd.DataFrame) -> list[tuple[str, bool]]:
    """Split an answer into pieces, each with True if it is kept; joined, they are the answer.

    If the answer is known and contains every dropped claim word for word, and no kept claim
    overlaps a dropped one, the pieces are parts of the answer. Otherwise they are its claims in
    order, because a decontextualized claim does not occur in the answer word for word.

    Args:
        claims: the claims of one response: claim, text, kept, and answer (its whole text, or "").
    """
    answer = claims["answer"].iloc[0]
    dropped = np.zeros(len(answer), dtype=np.bool_)
    kept = dropped.copy()
    in_place = bool(answer)
    for text, keeps in zip(claims["text"], claims["kept"], strict=True):
        places = list(re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", answer)) if text else []
        in_place &= bool(places or keeps)
        for match in places:
            (kept if keeps else dropped)[slice(*match.span())] = True
    if not in_place or (kept & dropped).any():
        texts = claims["text"].where(claims["text"] != "", claims["claim"])
        marked = list(zip(texts, claims["kept"].tolist(), strict=True))
        spaces = [(" ", True)] * len(marked)
        return [piece for pair in zip(marked, spaces, strict=True) for piece in pair][:-1]
    return [
        ("".join(letter for letter, _ in letters), not gone)
        for gone, letters in groupby(zip(answer, dropped.tolist(), strict=True), key=itemgetter(1))
    ]


def _joined(parts: Sequence[tuple[str, bool]], shown: str, *, strike: bool) -> str:
    """Join the pieces; where a piece is removed, one of the two spaces around it is removed too."""
    text = ""
    for piece, kept in parts:
        if kept or strike:
            shown_piece = piece if kept else shown.format(piece)
            text += (
                shown_piece.lstrip(" ")
                if not strike and (not text or text[-1].isspace())
                else shown_piece
            )
    return text.strip()


def without_texts(claims: pd.DataFrame) -> bool:
    """True if neither the answers nor the claims of responses have texts, but at most ids.

    Args:
        claims: the claims of all responses: claim, text and answer.
    """
    texts = claims["text"]
    named = (texts == "") | ((texts == claims["claim"]) & texts.str.fullmatch(_ID))
    return bool(named.all() and (claims["answer"] == "").all())


def written_answers(claims: pd.DataFrame, suffix: str, *, strike: bool) -> str:
    """Text of a file with all answers and their kept claims.

    Args:
        claims: the claims of all responses: response, claim, text, p, kept, and answer.
        suffix: suffix of the file, one of `SUFFIXES`.
        strike: True to strike dropped claims through, False to remove them.
    """
    shown = "<del>{}</del>" if suffix == ".html" else "~~{}~~"
    spelled = escape if suffix == ".html" else str
    by_response = claims.groupby("response", sort=False)
    named = without_texts(claims)

    def text_of(claims: pd.DataFrame) -> str:
        if named:
            ids = zip(claims["claim"].map(spelled), claims["kept"], strict=True)
            return ", ".join(
                name if kept else shown.format(name) for name, kept in ids if kept or strike
            )
        parts = [(spelled(text), kept) for text, kept in pieces(claims)]
        return _joined(parts, shown, strike=strike)

    texts = {str(response): text_of(claims) for response, claims in by_response}
    if suffix in (".json", ".jsonl"):
        columns = ["claim", "text", "p", "kept"]
        records = [
            {
                "response": str(response),
                "answer": texts[str(response)],
                "claims": claims[columns].rename(columns={"claim": "id"}).to_dict("records"),
            }
            for response, claims in by_response
        ]
        if suffix == ".jsonl":
            return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in records)
        return f"{json.dumps(records, ensure_ascii=False, indent=1)}\n"
    remarks = [WITHOUT_TEXTS] if named else []
    if suffix == ".html":
        shown_texts = [
            f'<h2>{escape(response)}</h2>\n<p style="white-space: pre-line">{text}</p>'
            for response, text in texts.items()
        ]
        body = "\n".join([*(f"<p>{sentence}</p>" for sentence in remarks), *shown_texts])
        head = '<head><meta charset="utf-8"><title>Kept claims</title></head>'
        return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n<body>\n{body}\n</body>\n</html>\n'
    return "\n\n".join([*remarks, *(f"{name}\n{text}" for name, text in texts.items())]) + "\n"
