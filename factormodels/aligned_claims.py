"""Claims of two tools about the same responses: which of one is which of the other, by their texts.

Tools take a response apart in their own ways, word the same claim differently, and often do not say
which response a claim is of. Nothing is guessed beyond what words show: a claim that is like none
of the other's is left alone, and is counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.learned_from import LearnedFrom
from factormodels.recorded_verdicts import (
    ASSESSORS_KEY,
    RecordedVerdict,
    recorded_marks,
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
        source: what it was read from.
        n_aligned: claims of these responses that the other has too.
        n_claims: claims of these responses.
        n_others: claims of the other tool.
        n_responses: responses that the other has too.
        by_order: whether its responses could only be told by their order.
        by_id: whether its claims have no texts and could only be told by their ids.
    """

    graphs: tuple[FactGraph, ...]
    name: str
    source: str
    n_aligned: int
    n_claims: int
    n_others: int
    n_responses: int
    by_order: bool
    by_id: bool


def likeness(one: str, other: str, about: str = "") -> float:
    """How alike the words of two claims are, from 0 to 1: shared ones by all, empty words left out.

    Words are compared by their first six letters; numbers as they are. Claims that differ in a
    number or in a negation are not alike, whatever else they share.

    Args:
        one: a claim.
        other: another.
        about: what both are about, such as the question. Some tools write its name where others
            leave the pronoun: the first words of a claim, as far as they stand here, are taken for
            the same as a pronoun that the other begins with.
    """
    if normalised_text(one) == normalised_text(other):
        return 1.0
    first, second = _told_of(one, other, about), _told_of(other, one, about)
    if _decisive(first) != _decisive(second) or not first or not second:
        return 0.0
    return len(first & second) / len(first | second)


def differ_decisively(one: str, other: str) -> bool:
    """Whether one text has a number or a negation that the other lacks."""
    return _decisive(frozenset(_words(one))) != _decisive(frozenset(_words(other)))


def aligned_pairs(
    texts: Mapping[str, str],
    others: Mapping[str, str],
    about: str = "",
) -> dict[str, str]:
    """Which claim of the other tool each claim is, one to one, the most alike pairs first.

    Args:
        texts: claims by id.
        others: claims of the other tool by id.
        about: what all of them are about, as `likeness` takes it.
    """
    pairs = [
        (likeness(text, other, about), name, key)
        for name, text in texts.items()
        for key, other in others.items()
        if text.strip() and other.strip()
    ]
    found: dict[str, str] = {}
    taken: set[str] = set()
    # Of those that are as alike, equal texts first.
    order = sorted(pairs, key=lambda pair: (-pair[0], texts[pair[1]] != others[pair[2]]))
    for alike, name, key in order:
        if alike < LEAST_LIKENESS:
            break
        if name not in found and key not in taken:
            found[name] = key
            taken.add(key)
    return found


def with_verdicts_of(
    graphs: Sequence[FactGraph], others: Sequence[FactGraph], source: str
) -> list[Alignment]:
    """Responses with the verdicts that another tool recorded on the same claims.

    A response is found by its id, its text or its question, where only one has the same; if none
    is, by its place, if there are as many. Claims are found by their texts (`aligned_pairs`), or by
    their ids where one side has no texts.

    Args:
        graphs: the responses that stay, with their claims and labels.
        others: what the other tool wrote.
        source: its file, for messages.

    Returns:
        One alignment for each assessor that it recorded, each with the verdicts of those before.

    Raises:
        InputError: if it recorded no verdict, its responses cannot be told, or its claims have ids
            alone, and not those of the responses.
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
        n_aligned, by_id, with_this = 0, False, []
        for graph, other in zip(current, partners, strict=True):
            bare = other is not None and not (_has_texts(graph) and _has_texts(other))
            by_id |= bare
            told = {} if other is None else recorded_verdicts(other).get(name, {})
            if other is None or not told:
                verdicts = {}
            elif bare:
                verdicts = _by_id(graph, told, source)
            else:
                verdicts = _by_text(graph, other, told)
            n_aligned += len(verdicts)
            mark = None if other is None else recorded_marks(other).get(name)
            with_this.append(_recorded(graph, free, verdicts, mark))
        current = tuple(with_this)
        found.append(
            Alignment(
                current,
                free,
                source,
                n_aligned,
                sum(len(graph.atoms) for graph in graphs),
                sum(len(recorded_verdicts(other).get(name, ())) for other in others),
                sum(partner is not None for partner in partners),
                by_order,
                by_id,
            )
        )
    return found


def _by_text(
    graph: FactGraph, other: FactGraph, told: Mapping[str, RecordedVerdict]
) -> dict[str, RecordedVerdict]:
    """The other's verdicts by id of the response's own claims, which are found by their texts."""
    texts = {atom.id: atom.text for atom in graph.atoms}
    others = {atom.id: atom.text for atom in other.atoms if atom.id in told}
    about = f"{graph.query} {graph.topic}"
    return {id: told[key] for id, key in aligned_pairs(texts, others, about=about).items()}


def _by_id(
    graph: FactGraph, told: Mapping[str, RecordedVerdict], source: str
) -> dict[str, RecordedVerdict]:
    """The other's verdicts by ids alone.

    Where both number claims in their own ways, ids say nothing: of a0 to a9 and a1 to a10 most are
    in both, and none is of the same claim. Either may have fewer than the other.
    """
    own = {atom.id for atom in graph.atoms}
    if told.keys() - own and own - told.keys():
        raise InputError(
            f"{source}: claims without texts are told by their ids, and these are not those of "
            f"{graph.id}: it has no {min(told.keys() - own)!r}, and of {min(own - told.keys())!r} "
            "nothing is said; give the output that has the texts of the claims"
        )
    return {id: told[id] for id in told if id in own}


def _has_texts(graph: FactGraph) -> bool:
    return any(atom.text.strip() for atom in graph.atoms)


def _partners(
    graphs: Sequence[FactGraph], others: Sequence[FactGraph], source: str
) -> tuple[bool, list[FactGraph | None]]:
    """The other's response for each response, and whether only their order tells."""
    partners: list[FactGraph | None] = [None] * len(graphs)
    taken: set[int] = set()
    for kind in ("id", "response", "query"):
        keyed: dict[str, list[FactGraph]] = {}
        for other in others:
            keyed.setdefault(normalised_text(getattr(other, kind)), []).append(other)
        single = {key: found[0] for key, found in keyed.items() if key and len(found) == 1}
        for place, graph in enumerate(graphs):
            partner = single.get(normalised_text(getattr(graph, kind)))
            if partner is not None and partners[place] is None and id(partner) not in taken:
                partners[place] = partner
                taken.add(id(partner))
    if any(partner is not None for partner in partners):
        return False, partners
    if len(others) == len(graphs):
        return True, list(others)
    raise InputError(
        f"{source}: its {len(others)} responses share no id, text or question with the "
        f"{len(graphs)} responses, and are not as many; give them the same ids, or the same order"
    )


def _recorded(
    graph: FactGraph,
    name: str,
    verdicts: Mapping[str, RecordedVerdict],
    learned: LearnedFrom | None,
) -> FactGraph:
    if not verdicts:
        return graph
    told = {**graph.metadata.get(ASSESSORS_KEY, {}), name: verdict_facts(verdicts, learned)}
    return replace(graph, metadata={**graph.metadata, ASSESSORS_KEY: told})


def _free_name(name: str, graphs: Sequence[FactGraph]) -> str:
    """The name, numbered if another's verdicts have it."""
    used = {known for graph in graphs for known in graph.metadata.get(ASSESSORS_KEY, {})}
    free, number = name, 2
    while free in used:
        free, number = f"{name}-{number}", number + 1
    return free


def _told_of(claim: str, other: str, about: str) -> frozenset[str]:
    """The words of a claim, without its subject where one of the two begins with a pronoun."""
    words, opening = _words(claim), _words(other)[:1]
    if words and words[0] in _PRONOUNS:
        words = words[1:]
    elif opening and opening[0] in _PRONOUNS:
        named = {*_words(about), "s"}
        words = list(dropwhile(named.__contains__, words))
    return frozenset(
        word if word[0].isdigit() else word[:_STEM] for word in words if word not in _EMPTY_WORDS
    )


def _words(text: str) -> list[str]:
    return re.findall(r"\d[\d.,]*\d|\d|[^\W\d_]+", normalised_text(text))


_PRONOUNS = frozenset({"he", "she", "it", "they", "his", "her", "its", "their"})
_NEGATIONS = frozenset({"not", "no", "never", "nor", "neither", "none", "t"})


def _decisive(words: frozenset[str]) -> frozenset[str]:
    """Words that make another claim of the same words: numbers and negations."""
    negated = frozenset({"not"}) if words & _NEGATIONS else frozenset()
    return negated | {word for word in words if word[0].isdigit()}
