"""Passages longer than a relation model reads at once: overlapping windows, and their sum.

Nothing is cut off silently: what stands at the end of a passage counts like its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from factormodels.claims import RelationKind
from factormodels.extraction.relation_models.base import Judgement, Missing

OVERLAP = 0.25
"""Share of a window that the next one repeats: what stands across a border is read whole."""

_NEUTRAL = 2
"""Place of neutral in a distribution."""


def windows(text: str, longest: int, size: Callable[[str], int]) -> list[str]:
    """Overlapping pieces of a text that cover it, none longer than what is read at once.

    Borders fall between words where there are any; a text that fits is its only piece.

    Args:
        text: the text.
        longest: the largest size of a piece, from 1.
        size: size of a text, such as its number of tokens; no smaller for a longer text.
    """
    if size(text) <= longest:
        return [text]
    pieces: list[str] = []
    start = 0
    while True:
        end = _end(text, start, longest, size)
        pieces.append(text[start:end].strip())
        if end >= len(text):
            return [piece for piece in pieces if piece]
        # On by three quarters, to the beginning of a word, and by one letter at the least.
        back = start + max(1, round((1 - OVERLAP) * (end - start)))
        space = text.find(" ", back, end)
        start = back if space < 0 else space + 1


def window_pairs(
    premise: str, hypothesis: str, room: int, least: int, size: Callable[[str], int]
) -> list[list[tuple[str, str]]]:
    """Parts of a pair that are read at once: for each part of the hypothesis, those of the premise.

    A claim is one part; a hypothesis that is a passage, as between two contexts, may be several.

    Args:
        premise: the premise.
        hypothesis: the hypothesis.
        room: the largest size of both together.
        least: the least room for a premise that is worth reading, if it is longer.
        size: size of a text; see `windows`.

    Returns:
        Nothing where the room is too small for parts of either.
    """
    wanted = min(least, max(1, size(premise)))
    parts = [hypothesis]
    if room - size(hypothesis) < wanted:
        if room // 2 < least:
            return []
        parts = windows(hypothesis, room // 2, size)
    return [
        [(passage, part) for passage in windows(premise, room - size(part), size)] for part in parts
    ]


def combined_pairs(answers: Sequence[Sequence[Judgement | Missing]]) -> Judgement | Missing:
    """What a pair says by the parts of `window_pairs`.

    A passage is contradicted if any part of it is, and entailed if all are: as probably as the
    part that is so least.
    """
    parts = [combined(row) for row in answers]
    kinds: dict[RelationKind, list[Judgement]] = {}
    for part in parts:
        if isinstance(part, Missing):
            return part
        kinds.setdefault(part.kind, []).append(part)
    for kind, choose in (
        (RelationKind.CONTRADICTION, max),
        (RelationKind.NEUTRAL, max),
        (RelationKind.ENTAILMENT, min),
    ):
        if kind in kinds:
            return choose(kinds[kind], key=lambda judgement: judgement.probability)
    return Missing("the pair has no part")


def combined(answers: Sequence[Judgement | Missing]) -> Judgement | Missing:
    """What a passage says by what its windows say: the answer of the most telling one.

    That is the window that is neutral with the least probability: a passage bears on a claim if any
    part of it does. If a window has no answer, the passage has none: it was not read whole.
    """
    missing = [
        (number, answer) for number, answer in enumerate(answers, 1) if isinstance(answer, Missing)
    ]
    if missing:
        number, first = missing[0]
        where = f"part {number} of {len(answers)}: " if len(answers) > 1 else ""
        return Missing(f"{where}{first.reason}")
    return min((answer for answer in answers if isinstance(answer, Judgement)), key=_neutral)


def _neutral(answer: Judgement) -> float:
    """Probability of neutral; as it follows where the answer gives only that of its kind."""
    if answer.distribution is not None:
        return answer.distribution[_NEUTRAL]
    neutral = answer.kind is RelationKind.NEUTRAL
    return answer.probability if neutral else 1.0 - answer.probability


def _end(text: str, start: int, longest: int, size: Callable[[str], int]) -> int:
    """End of the longest piece from `start` on, between two words if it holds a border."""
    low, high = start + 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if size(text[start:middle]) <= longest:
            low = middle
        else:
            high = middle - 1
    if low == len(text):
        return low
    space = text.rfind(" ", start + 1, low + 1)
    # A border near the beginning would make many small windows of one long word.
    return space if space > start + (low - start) // 2 else low
