"""Padded responses, with appended true sentences that are repetitive, uninformative or off topic.

The sentences come from templates of this project, from other responses, or from a language model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np

from experiments.evaluators.core_choices import subject_of
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.errors import InputError
from factormodels.extraction.asking.loop import ask_all
from factormodels.extraction.asking.stage import Question
from factormodels.extraction.asking.table import PADDING
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.fact_graph import FactGraph
from factormodels.selection import bleached_claims

FRAMES = (
    "In fact, {claim}",
    "It is true that {claim}",
    "To say it again, {claim}",
    "It is a fact that {claim}",
    "As already said, {claim}",
    "Once more: {claim}",
    "It cannot be denied that {claim}",
    "In other words, {claim}",
    "One may repeat that {claim}",
    "It remains true that {claim}",
)
"""Templates of paraphrases of a claim."""

SAYINGS = (
    "{claim}",
    "Clearly, {claim}",
    "It goes without saying that {claim}",
    "Of course, {claim}",
)
"""Templates around a bleached claim."""

EVIDENCE = 0.95
"""Probability that a passage with a bleached claim entails it."""


@dataclass(frozen=True)
class Padded:
    """A response with sentences appended.

    Attributes:
        graph: the response; the appended atoms are its last, labeled true.
        canonical: for each appended text, the text that it paraphrases: an atom of the response, or
            a bleached claim. Empty if no template was used.
        failures: reasons why a language model wrote nothing.
    """

    graph: FactGraph
    canonical: Mapping[str, str] = field(default_factory=dict)
    failures: tuple[str, ...] = ()


Padder = Callable[[FactGraph, int], Padded]
"""Function that appends up to n true sentences to a response, one claim each."""


def paddings_of(graphs: Sequence[FactGraph]) -> dict[str, Padder]:
    """Paddings that fit the responses, by name.

    "off-topic" needs two responses with a claim labeled true.
    """
    padders: dict[str, Padder] = {"repetitive": repetitive, "uninformative": uninformative}
    if sum(any(atom.label is True for atom in graph.atoms) for graph in graphs) > 1:
        padders["off-topic"] = partial(off_topic, graphs=graphs)
    return padders


def repetitive(graph: FactGraph, n: int) -> Padded:
    """The response with n paraphrases of one of its true claims appended.

    Each has the evidence and the relations of the claim (`repeated_claim`). Templates recur once
    all are used.

    Raises:
        InputError: if no claim is labeled true.
    """
    original = repeated_claim(graph)
    texts = [FRAMES[k % len(FRAMES)].replace("{claim}", _inside(original.text)) for k in range(n)]
    originals = dict.fromkeys(texts, original.text)
    return Padded(_with_repetitions(graph, original, texts), originals)


def uninformative(graph: FactGraph, n: int) -> Padded:
    """The response with n appended sentences that are true of nearly any subject in its domain.

    Each has a passage that supports it. Templates recur once all are used.
    """
    about = subject_of(graph)
    claims = bleached_claims(about.domain, about.name)
    stated = [claims[k % len(claims)] for k in range(n)]
    # Use the bare claim first, and a template once the claims recur.
    texts = [
        SAYINGS[k // len(claims) % len(SAYINGS)].replace(
            "{claim}", claim if k < len(claims) else _inside(claim)
        )
        for k, claim in enumerate(stated)
    ]
    return Padded(_with_truisms(graph, texts), dict(zip(texts, stated, strict=True)))


def off_topic(graph: FactGraph, n: int, graphs: Sequence[FactGraph]) -> Padded:
    """The response with n true claims of other responses appended, each with its evidence.

    Takes one claim from each other response in turn, so that neighbors have different topics;
    claims recur if there are too few.

    Args:
        graph: the response.
        n: number of claims.
        graphs: the responses that provide claims.

    Raises:
        InputError: if no other response has a claim labeled true.
    """
    lists = [
        [(other, atom) for atom in other.atoms if atom.label is True]
        for other in graphs
        if other.id != graph.id
    ]
    longest = max(map(len, lists), default=0)
    lent = [claims[turn] for turn in range(longest) for claims in lists if turn < len(claims)]
    if not lent:
        raise InputError(
            f"response {graph.id!r}: no other response has a claim labeled true, which off-topic "
            "padding needs; give more responses"
        )
    chosen = [lent[k % len(lent)] for k in range(n)]
    fresh = _atoms(graph, [atom.text for _, atom in chosen])
    contexts, relations = list(graph.contexts), list(graph.relations)
    for new, (other, atom) in zip(fresh, chosen, strict=True):
        passages = {c.id: c for c in other.contexts}
        bearing = [r for r in other.relations if r.target == atom.id and r.source in passages]
        served = [c.id for c in other.contexts if atom.id in c.retrieved_for]
        for name in dict.fromkeys([*served, *(r.source for r in bearing)]):
            copied = f"{new.id}-{name}"
            contexts.append(replace(passages[name], id=copied, retrieved_for=(new.id,)))
            relations += [
                replace(r, source=copied, target=new.id) for r in bearing if r.source == name
            ]
    return Padded(
        replace(
            graph,
            atoms=(*graph.atoms, *fresh),
            contexts=tuple(contexts),
            relations=tuple(relations),
        )
    )


def written_by(model: LanguageModel, kind: Literal["repetitive", "uninformative"]) -> Padder:
    """Padding with up to n sentences that a language model writes.

    They are labeled true, as the prompt demands, without a check. A failed call appends nothing,
    and `Padded.failures` has the reason.
    """

    def padder(graph: FactGraph, n: int) -> Padded:
        original = repeated_claim(graph)
        fields = {
            "kind": kind,
            "subject": subject_of(graph).name,
            "claim": original.text if kind == "repetitive" else "(none)",
            "number": str(n),
        }
        (written,) = ask_all(model, [Question(PADDING, fields, about=n, parts=n)])
        if isinstance(written, Failure):
            return Padded(graph, failures=(written.reason,))
        if kind == "repetitive":
            return Padded(_with_repetitions(graph, original, written))
        return Padded(_with_truisms(graph, written))

    return padder


def corrupted(
    graph: FactGraph,
    share: float = 0.5,
    seed: int = 0,
    swap_from: Sequence[FactGraph] | None = None,
) -> FactGraph:
    """The response with some of its true claims turned into false ones (Core, section 5.3).

    Each true claim is turned with the given probability: its text is denied, or its last name or
    number is exchanged; its label becomes false, and its supporting evidence contradicts it. The
    claim that repetition repeats is not turned. A claim without an exchangeable name or number is
    denied.

    Args:
        graph: the response, with labels.
        share: probability of turning a true claim.
        seed: seed of the draw.
        swap_from: responses that provide names and numbers, in addition to the response itself;
            None to deny every turned claim.

    Raises:
        InputError: for a share outside [0, 1], or if no claim is labeled true.
    """
    if not 0 <= share <= 1:
        raise InputError(f"the share of corrupted claims is {share}; give one between 0 and 1")
    drawn = np.random.default_rng(seed).random(len(graph.atoms)) < share
    # Draw for every atom first, so that the draw does not depend on the labels.
    spared = repeated_claim(graph).id
    turned = {
        atom.id
        for atom, hit in zip(graph.atoms, drawn, strict=True)
        if hit and atom.label is True and atom.id != spared
    }
    pool = [] if swap_from is None else _entities([graph, *swap_from])

    def turned_text(text: str, number: int) -> str:
        other = _swapped(text, pool, seed + number) if pool else None
        return other or f"It is not the case that {_inside(text)}"

    opposite = {
        RelationKind.ENTAILMENT: RelationKind.CONTRADICTION,
        RelationKind.CONTRADICTION: RelationKind.ENTAILMENT,
    }
    return replace(
        graph,
        atoms=tuple(
            replace(atom, label=False, text=turned_text(atom.text, number))
            if atom.id in turned
            else atom
            for number, atom in enumerate(graph.atoms)
        ),
        relations=tuple(
            replace(r, kind=opposite.get(r.kind, r.kind)) if r.target in turned else r
            for r in graph.relations
        ),
    )


_NUMBER = re.compile(r"\d[\d.,]*\d|\d")
_NAME = re.compile(r"(?<=[a-z,;)] )[A-Z][\w'-]*(?: (?:of |de |van |von )?[A-Z][\w'-]*)*")
"""Capitalized words that do not begin a sentence."""


def _entities(graphs: Sequence[FactGraph]) -> list[str]:
    """Distinct names and numbers of the claims, in order."""
    texts = {
        text: None
        for graph in graphs
        for atom in graph.atoms
        for kind in (_NUMBER, _NAME)
        for text in kind.findall(atom.text)
    }
    return list(texts)


def _swapped(text: str, pool: Sequence[str], seed: int) -> str | None:
    """The claim with its last name or number exchanged; None if there is none."""
    matches = [match for kind in (_NUMBER, _NAME) for match in kind.finditer(text)]
    if not matches:
        return None
    last = max(matches, key=lambda match: match.start())
    is_number = last.group()[0].isdigit()
    others = [
        entity
        for entity in pool
        if entity[0].isdigit() == is_number and entity not in text and last.group() not in entity
    ]
    if is_number:
        # Exchange years for years and counts for counts: otherwise the claim would be nonsense
        # instead of false.
        others = [entity for entity in others if len(entity) == len(last.group())]
    if not others:
        return None
    other = others[int(np.random.default_rng(seed).integers(len(others)))]
    return text[: last.start()] + other + text[last.end() :]


def repeated_claim(graph: FactGraph) -> Atom:
    """The claim that repetition repeats: the first true claim with supporting evidence.

    If no true claim has such evidence, the first true claim.

    Raises:
        InputError: if no claim is labeled true.
    """
    true = [atom for atom in graph.atoms if atom.label is True]
    if not true:
        raise InputError(
            f"response {graph.id!r}: no claim is labeled true, so no claim can be repeated"
        )
    borne_out = {r.target for r in graph.relations if r.kind is RelationKind.ENTAILMENT}
    against = {r.target for r in graph.relations if r.kind is RelationKind.CONTRADICTION}
    # Prefer undisputed evidence, so that repetitions score as well as the claim.
    return next((atom for atom in true if atom.id in borne_out - against), true[0])


def _with_repetitions(graph: FactGraph, original: Atom, texts: Sequence[str]) -> FactGraph:
    """The response with copies of a claim, which share its evidence and relations."""
    fresh = _atoms(graph, texts)
    ids = [atom.id for atom in fresh]
    contexts = tuple(
        replace(context, retrieved_for=(*context.retrieved_for, *ids))
        if original.id in context.retrieved_for
        else context
        for context in graph.contexts
    )
    relations = list(graph.relations)
    for name in ids:
        for r in graph.relations:
            if r.target == original.id:
                relations.append(replace(r, target=name))
            # Relations from the claim, such as to another claim, are repeated too.
            elif r.source == original.id:
                relations.append(replace(r, source=name))
    return replace(
        graph, atoms=(*graph.atoms, *fresh), contexts=contexts, relations=tuple(relations)
    )


def _with_truisms(graph: FactGraph, texts: Sequence[str]) -> FactGraph:
    """Response with claims appended, each supported by a separate passage."""
    fresh = _atoms(graph, texts)
    # Add a passage for each, so that a retrieving assessor also finds its evidence.
    passages = tuple(
        Context(f"{atom.id}-passage", atom.text, retrieved_for=(atom.id,)) for atom in fresh
    )
    relations = tuple(
        Relation(passage.id, atom.id, RelationKind.ENTAILMENT, EVIDENCE)
        for passage, atom in zip(passages, fresh, strict=True)
    )
    return replace(
        graph,
        atoms=(*graph.atoms, *fresh),
        contexts=(*graph.contexts, *passages),
        relations=(*graph.relations, *relations),
    )


def _atoms(graph: FactGraph, texts: Sequence[str]) -> tuple[Atom, ...]:
    last = max((atom.sentence or 0 for atom in graph.atoms), default=0)
    return tuple(
        # One sentence per atom, after the last sentence of the response.
        Atom(f"appended{k}", text, label=True, sentence=last + k)
        for k, text in enumerate(texts, start=1)
    )


def _inside(claim: str) -> str:
    """A claim as it reads within a sentence: an article or pronoun loses its capital."""
    first, _, rest = claim.partition(" ")
    # Names keep their capital within a sentence; other words lose it.
    plain = first in {"The", "A", "An", "It", "Its", "In", "He", "She", "They", "People", "Ask"}
    return f"{first.lower()} {rest}" if plain else claim
