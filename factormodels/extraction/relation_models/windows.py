"""Overlapping windows of passages that exceed a relation model's limit, and their combination.

Nothing is truncated silently: the end of a passage counts like its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from factormodels.claims import RelationKind
from factormodels.extraction.relation_models.base import Judgment, Missing

OVERLAP = 0.25
"""Share of a window that the next one repeats, so that text across a border is read as a whole."""

_NEUTRAL = 2
"""Index of neutral in a distribution."""


def windows(text: str, longest: int, size: Callable[[str], int]) -> list[str]:
    """Return overlapping pieces that cover a text, each no longer than the limit.

    Borders are between words if possible; a text that fits is a single piece.

    Args:
        text: the text.
        longest: maximum size of a piece, from 1.
        size: size of a text, such as its number of tokens; must not decrease with length.
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
        # Advance by three quarters, to the beginning of a word, and by at least one letter.
        back = start + max(1, round((1 - OVERLAP) * (end - start)))
        space = text.find(" ", back, end)
        start = back if space < 0 else space + 1


def window_pairs(
    premise: str, hypothesis: str, room: int, least: int, size: Callable[[str], int]
) -> list[list[tuple[str, str]]]:
    """Return the parts of a pair: for each part of the hypothesis, the parts of the premise.

    A claim is one part; a hypothesis that is a passage, as between two contexts, may have several.

    Args:
        premise: the premise.
        hypothesis: the hypothesis.
        room: maximum size of both together.
        least: minimum room for a useful part of a longer premise.
        size: size of a text; see `windows`.

    Returns:
        The pairs of parts; empty if the room is too small for parts of either.
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


def combined_pairs(answers: Sequence[Sequence[Judgment | Missing]]) -> Judgment | Missing:
    """Return the judgment of a pair from the judgments of its parts, as in `window_pairs`.

    A passage is contradicted if any part of it is, and entailed if all parts are, with the
    probability of the least probable part.
    """
    parts = [combined(row) for row in answers]
    kinds: dict[RelationKind, list[Judgment]] = {}
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
            return choose(kinds[kind], key=lambda judgment: judgment.probability)
    return Missing("the pair has no part")


def combined(answers: Sequence[Judgment | Missing]) -> Judgment | Missing:
    """Return the judgment of a passage: the most informative judgment of its windows.

    That is the window with the smallest probability of neutral, since a passage bears on a claim if
    any part of it does. If a window has no answer, the passage has none.
    """
    missing = [
        (number, answer) for number, answer in enumerate(answers, 1) if isinstance(answer, Missing)
    ]
    if missing:
        number, first = missing[0]
        where = f"part {number} of {len(answers)}: " if len(answers) > 1 else ""
        return Missing(f"{where}{first.reason}")
    return min((answer for answer in answers if isinstance(answer, Judgment)), key=_neutral)


def _neutral(answer: Judgment) -> float:
    """Return the probability of neutral, inferred if the answer gives only the probability of its
    kind.
    """
    if answer.distribution is not None:
        return answer.distribution[_NEUTRAL]
    neutral = answer.kind is RelationKind.NEUTRAL
    return answer.probability if neutral else 1.0 - answer.probability


def _end(text: str, start: int, longest: int, size: Callable[[str], int]) -> int:
    """Return the end of the longest piece from `start`, between two words if possible."""
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
    # A border near the beginning would split a long word into many small windows.
    return space if space > start + (low - start) // 2 else low
