"""Alignment of the claims that two tools extracted from the same responses, by their texts.

Tools split a response differently, word the same claim differently, and often do not record which
response a claim belongs to. The alignment relies on words alone: a claim that resembles no claim of
the other tool stays unaligned and is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.metadata.learned_from import LearnedFrom
from factormodels.metadata.recorded_verdicts import (
    ASSESSORS_KEY,
    RecordedVerdict,
    recorded_marks,
    recorded_verdicts,
    verdict_facts,
)
from factormodels.nouns import counted
from factormodels.texts.claim_words import are_equal, worded_likeness
from factormodels.texts.languages import detected_language
from factormodels.texts.opposed_words import is_compared_by_words
from factormodels.variants import normalized_text

LEAST_LIKENESS = 0.6
"""Least `likeness` of two claims that are aligned."""


@dataclass(frozen=True)
class Alignment:
    """Responses with the verdicts of one assessor of another tool.

    Attributes:
        graphs: the responses, with the other tool's verdicts under `name`.
        name: name under which the verdicts are recorded.
        source: the file that the verdicts were read from.
        n_aligned: number of claims of these responses that the other tool has too.
        n_claims: number of claims of these responses.
        n_others: number of claims of the other tool.
        n_responses: number of responses that the other tool has too.
        by_order: whether responses could be matched by their order only.
        by_id: whether the other tool's claims have no texts and were matched by their ids.
        n_compared_for_equality: number of claims compared with the other tool's texts for equality
            alone, because the negations of their language are not listed.
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
    n_compared_for_equality: int = 0


def likeness(first: str, other: str, about: str = "", language: str | None = None) -> float:
    """Return the likeness of two claims in [0, 1]: shared words divided by all words.

    Function words are left out, and words are compared by their first six letters. The likeness is
    0 if the claims differ in a number, a negation or a word such as *before*, or if two words
    exchange their roles (`factormodels.texts.claim_words`). In a language whose negations are not
    listed, it is 1 for equal claims and 0 otherwise.

    Args:
        first: a claim.
        other: another claim.
        about: the subject of both claims, such as the question. Some tools write a name where
            others keep the pronoun: words of this text at the beginning of a claim match a pronoun
            at the beginning of the other.
        language: code of the language of both; None detects it from the three texts.
    """
    if are_equal(first, other):
        return 1.0
    code = detected_language(f"{first}\n{other}\n{about}") if language is None else language
    return 0.0 if code is None else worded_likeness(first, other, about, code)


def aligned_pairs(
    texts: Mapping[str, str],
    others: Mapping[str, str],
    about: str = "",
    language: str | None = None,
) -> dict[str, str]:
    """Align claims of two tools one to one, the most alike pairs first.

    Args:
        texts: claims by id.
        others: claims of the other tool by id.
        about: the subject of all claims, as in `likeness`.
        language: code of their language; None detects it from all of them.

    Returns:
        Mapping from the id of a claim to the id of the other tool's claim.
    """
    if language is None:
        language = detected_language("\n".join((*texts.values(), *others.values(), about))) or ""
    pairs = [
        (likeness(text, other, about, language), name, key)
        for name, text in texts.items()
        for key, other in others.items()
        if text.strip() and other.strip()
    ]
    aligned: dict[str, str] = {}
    taken: set[str] = set()
    # Ties are broken in favor of equal texts.
    order = sorted(pairs, key=lambda pair: (-pair[0], texts[pair[1]] != others[pair[2]]))
    for alike, name, key in order:
        if alike < LEAST_LIKENESS:
            break
        if name not in aligned and key not in taken:
            aligned[name] = key
            taken.add(key)
    return aligned


def with_verdicts_of(
    graphs: Sequence[FactGraph],
    others: Sequence[FactGraph],
    source: str,
    language: str | None = None,
    called: Mapping[str, str] = MappingProxyType({}),
) -> list[Alignment]:
    """Return responses with the verdicts that another tool recorded on the same claims.

    A response is matched by its id, its text or its question, provided that only one response of
    the other tool has the same. If none matches and both sides have equally many, responses are
    matched by position. Claims are matched by their texts (`aligned_pairs`), or by their ids if one
    side has no texts.

    Args:
        graphs: the responses, with their claims and labels.
        others: the other tool's output.
        source: the other tool's file, for messages.
        language: code of the language of all claims; None detects it for each response, or for all
            together if one is too short.
        called: new names of assessors, by the names in the other tool's output; assessors that are
            not listed keep their names.

    Returns:
        One alignment for each recorded assessor. Its graphs also carry the verdicts of the
        alignments before it.

    Raises:
        InputError: if the other tool recorded no verdict, its responses cannot be matched, or its
            claims have no texts and other ids than the claims of the responses.
    """
    names = dict.fromkeys(name for other in others for name in recorded_verdicts(other))
    if not names:
        raise InputError(
            f"{source}: it holds no verdicts; give the output of another tool "
            "(`factormodels datasets` lists the formats)"
        )
    by_order, partners = _partners(graphs, others, source)
    languages = _languages(graphs, partners, language)
    alignments: list[Alignment] = []
    current = tuple(graphs)
    for name in names:
        free = _free_name(called.get(name, name), current)
        n_aligned, n_equality, by_id, with_this = 0, 0, False, []
        for graph, other, code in zip(current, partners, languages, strict=True):
            bare = other is not None and not (_has_texts(graph) and _has_texts(other))
            by_id |= bare
            recorded = {} if other is None else recorded_verdicts(other).get(name, {})
            if other is None or not recorded:
                verdicts = {}
            elif bare:
                verdicts = _by_id(graph, recorded, source)
            else:
                verdicts = _by_text(graph, other, recorded, code)
                n_equality += 0 if is_compared_by_words(code) else len(graph.atoms)
            n_aligned += len(verdicts)
            mark = None if other is None else recorded_marks(other).get(name)
            with_this.append(_recorded(graph, free, verdicts, mark))
        current = tuple(with_this)
        alignments.append(
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
                n_equality,
            )
        )
    return alignments


def _languages(
    graphs: Sequence[FactGraph], partners: Sequence[FactGraph | None], stated: str | None
) -> list[str]:
    """Return the code of the language of each response's claims; "" if it is not detected."""
    if stated is not None:
        return [stated] * len(graphs)
    claims = [
        "\n".join(atom.text for side in pair if side is not None for atom in side.atoms)
        for pair in zip(graphs, partners, strict=True)
    ]
    asked = [f"{graph.response}\n{graph.query}" for graph in graphs]
    together = detected_language("\n".join(claims)) or ""
    return [
        detected_language(claim_text) or detected_language(f"{claim_text}\n{more}") or together
        for claim_text, more in zip(claims, asked, strict=True)
    ]


def _by_text(
    graph: FactGraph, other: FactGraph, recorded: Mapping[str, RecordedVerdict], language: str
) -> dict[str, RecordedVerdict]:
    """Return the other tool's verdicts by id of the claim with a matching text."""
    texts = {atom.id: atom.text for atom in graph.atoms}
    others = {atom.id: atom.text for atom in other.atoms if atom.id in recorded}
    about = f"{graph.query} {graph.topic}"
    return {id: recorded[key] for id, key in aligned_pairs(texts, others, about, language).items()}


def _by_id(
    graph: FactGraph, recorded: Mapping[str, RecordedVerdict], source: str
) -> dict[str, RecordedVerdict]:
    """Return the other tool's verdicts, matched by ids alone.

    Either side may lack some claims of the other. If each side has ids that the other lacks, the
    two were numbered independently and ids identify nothing: a0–a9 and a1–a10 share nine ids, none
    of which denotes the same claim.
    """
    ids = {atom.id for atom in graph.atoms}
    if recorded.keys() - ids and ids - recorded.keys():
        raise InputError(
            f"{source}: claims without texts are matched by their ids, which differ from those of "
            f"{graph.id}: it has no {min(recorded.keys() - ids)!r}, and there is no verdict on "
            f"{min(ids - recorded.keys())!r}; give the output with the texts of the claims"
        )
    return {id: recorded[id] for id in recorded if id in ids}


def _has_texts(graph: FactGraph) -> bool:
    return any(atom.text.strip() for atom in graph.atoms)


def _partners(
    graphs: Sequence[FactGraph], others: Sequence[FactGraph], source: str
) -> tuple[bool, list[FactGraph | None]]:
    """Return whether responses were matched by order, and the other tool's response for each."""
    partners: list[FactGraph | None] = [None] * len(graphs)
    taken: set[int] = set()
    for kind in ("id", "response", "query"):
        keyed: dict[str, list[FactGraph]] = {}
        for other in others:
            keyed.setdefault(normalized_text(getattr(other, kind)), []).append(other)
        single = {key: owners[0] for key, owners in keyed.items() if key and len(owners) == 1}
        for number, graph in enumerate(graphs):
            partner = single.get(normalized_text(getattr(graph, kind)))
            if partner is not None and partners[number] is None and id(partner) not in taken:
                partners[number] = partner
                taken.add(id(partner))
    if any(partner is not None for partner in partners):
        return False, partners
    if len(others) == len(graphs):
        return True, list(others)
    raise InputError(
        f"{source}: its {counted(len(others), 'response')} share no id, text or question with the "
        f"{counted(len(graphs), 'response')}, and differ in number; give both the same ids, or "
        "as many in the same order"
    )


def _recorded(
    graph: FactGraph,
    name: str,
    verdicts: Mapping[str, RecordedVerdict],
    learned: LearnedFrom | None,
) -> FactGraph:
    if not verdicts:
        return graph
    assessors = {**graph.metadata.get(ASSESSORS_KEY, {}), name: verdict_facts(verdicts, learned)}
    return replace(graph, metadata={**graph.metadata, ASSESSORS_KEY: assessors})


def _free_name(name: str, graphs: Sequence[FactGraph]) -> str:
    """Return the name, numbered if other verdicts already have it."""
    used = {known for graph in graphs for known in graph.metadata.get(ASSESSORS_KEY, {})}
    free, number = name, 2
    while free in used:
        free, number = f"{name}-{number}", number + 1
    return free
