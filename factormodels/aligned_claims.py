"""Claims of two tools about the same responses: which of one is which of the other, by their texts.

Tools take a response apart in their own ways, word the same claim differently, and often do not say
which response a claim is of. Nothing is guessed beyond what words show: a claim that is like none
of the other's is left alone, and is counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.recorded_verdicts import (
    ASSESSORS_KEY,
    RecordedVerdict,
    recorded_verdicts,
    verdict_facts,
)
from factormodels.variants import normalised_text

LEAST_LIKENESS = 0.6
"""Claims whose words are less alike are different claims."""

_STEM = 6
_EMPTY_WORDS = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "by", "did", "for", "from", "had", "has"),
        *("have", "in", "is", "it", "of", "on", "or", "that", "the", "to", "was", "were", "which"),
        *("who", "with"),
    )
)


@dataclass(frozen=True)
class Alignment:
    """What was found of another tool's claims.

    Attributes:
        graphs: the responses, with the other's verdicts under its name.
        name: what its verdicts are recorded as.
        n_aligned: claims of these responses that the other has too.
        n_claims: claims of these responses.
        n_others: claims of the other tool.
        n_responses: responses that the other has too.
        by_order: whether its responses could only be told by their order.
    """

    graphs: tuple[FactGraph, ...]
    name: str
    n_aligned: int
    n_claims: int
    n_others: int
    n_responses: int
    by_order: bool


def likeness(one: str, other: str) -> float:
    """How alike the words of two claims are, from 0 to 1: shared ones by all, empty words left out.

    Words are compared by their first six letters; numbers as they are. Claims that differ in a
    number or in a negation are not alike, whatever else they share.
    """
    if normalised_text(one) == normalised_text(other):
        return 1.0
    first, second = _words(one), _words(other)
    if _decisive(first) != _decisive(second) or not first or not second:
        return 0.0
    return len(first & second) / len(first | second)


def aligned_pairs(
    texts: Mapping[str, str], others: Mapping[str, str], least: float = LEAST_LIKENESS
) -> dict[str, str]:
    """Which claim of the other tool each claim is, one to one, the most alike pairs first.

    Args:
        texts: claims by id.
        others: claims of the other tool by id.
        least: the least likeness.
    """
    pairs = [
        (likeness(text, other), name, key)
        for name, text in texts.items()
        for key, other in others.items()
        if text.strip() and other.strip()
    ]
    found: dict[str, str] = {}
    taken: set[str] = set()
    for alike, name, key in sorted(pairs, key=lambda pair: -pair[0]):
        if alike < least:
            break
        if name not in found and key not in taken:
            found[name] = key
            taken.add(key)
    return found


def with_verdicts_of(
    graphs: Sequence[FactGraph], others: Sequence[FactGraph], source: str
) -> list[Alignment]:
    """Responses with the verdicts that another tool recorded on the same claims.

    A response is found by its id, its text or its question, where only one has the same; else by
    its place, if there are as many. Claims are found by their texts (`aligned_pairs`), or by their
    ids where one side has no texts.

    Args:
        graphs: the responses that stay, with their claims and labels.
        others: what the other tool wrote.
        source: its file, for messages.

    Returns:
        One alignment for each assessor that it recorded, each with the verdicts of those before.

    Raises:
        InputError: if it recorded no verdict, or its responses cannot be told.
    """
    names = dict.fromkeys(name for other in others for name in recorded_verdicts(other))
    if not names:
        raise InputError(
            f"{source}: it holds no verdicts; give what another tool wrote (`factormodels datasets`"
            " names the formats)"
        )
    by_order, partners = _partners(graphs, others, source)
    found: list[Alignment] = []
    current = tuple(graphs)
    for name in names:
        free = _free_name(name, current)
        n_aligned, with_this = 0, []
        for graph, other in zip(current, partners, strict=True):
            verdicts = {} if other is None else _verdicts(graph, other, name)
            n_aligned += len(verdicts)
            with_this.append(_recorded(graph, free, verdicts))
        current = tuple(with_this)
        found.append(
            Alignment(
                current,
                free,
                n_aligned,
                sum(len(graph.atoms) for graph in graphs),
                sum(len(recorded_verdicts(other).get(name, ())) for other in others),
                sum(partner is not None for partner in partners),
                by_order,
            )
        )
    return found


def _verdicts(graph: FactGraph, other: FactGraph, name: str) -> dict[str, RecordedVerdict]:
    """The other's verdicts by id of the response's own claims."""
    told = recorded_verdicts(other).get(name, {})
    texts = {atom.id: atom.text for atom in graph.atoms}
    others = {atom.id: atom.text for atom in other.atoms if atom.id in told}
    if not any(map(str.strip, texts.values())) or not any(map(str.strip, others.values())):
        return {id: told[id] for id in texts if id in told}
    return {id: told[key] for id, key in aligned_pairs(texts, others).items()}


def _partners(
    graphs: Sequence[FactGraph], others: Sequence[FactGraph], source: str
) -> tuple[bool, list[FactGraph | None]]:
    """The other's response for each response, and whether only their order tells."""
    for kind in ("id", "response", "query"):
        keyed: dict[str, list[FactGraph]] = {}
        for other in others:
            keyed.setdefault(normalised_text(getattr(other, kind)), []).append(other)
        single = {key: found[0] for key, found in keyed.items() if key and len(found) == 1}
        partners = [single.get(normalised_text(getattr(graph, kind))) for graph in graphs]
        if any(partner is not None for partner in partners):
            return False, partners
    if len(others) == len(graphs):
        return True, list(others)
    raise InputError(
        f"{source}: its {len(others)} responses share no id, text or question with the "
        f"{len(graphs)} responses, and are not as many; give them the same ids, or the same order"
    )


def _recorded(graph: FactGraph, name: str, verdicts: Mapping[str, RecordedVerdict]) -> FactGraph:
    if not verdicts:
        return graph
    told = {**graph.metadata.get(ASSESSORS_KEY, {}), name: verdict_facts(verdicts)}
    return replace(graph, metadata={**graph.metadata, ASSESSORS_KEY: told})


def _free_name(name: str, graphs: Sequence[FactGraph]) -> str:
    """The name, numbered if another's verdicts have it."""
    used = {known for graph in graphs for known in graph.metadata.get(ASSESSORS_KEY, {})}
    free, number = name, 2
    while free in used:
        free, number = f"{name}-{number}", number + 1
    return free


def _words(text: str) -> frozenset[str]:
    words = re.findall(r"\d[\d.,]*\d|\d|[^\W\d_]+", normalised_text(text))
    return frozenset(
        word if word[0].isdigit() else word[:_STEM] for word in words if word not in _EMPTY_WORDS
    )


_NEGATIONS = frozenset({"not", "no", "never", "nor", "neither", "none", "t"})


def _decisive(words: frozenset[str]) -> frozenset[str]:
    """Words that make another claim of the same words: numbers and negations."""
    negated = frozenset({"not"}) if words & _NEGATIONS else frozenset()
    return negated | {word for word in words if word[0].isdigit()}
