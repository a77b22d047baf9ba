"""Responses made to score well: true sentences appended that repeat, or that say nothing.

The sentences come from templates of this project, or from a language model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.errors import InputError
from factormodels.extraction.asking import Question, ask_all
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.relation_models.base import (
    Judgement,
    Missing,
    RelationModel,
    TextPair,
)
from factormodels.fact_graph import FactGraph
from factormodels.selection import bleached_claims
from factormodels.variants import normalised_text

Padding = Literal["repetitive", "uninformative"]

PADDINGS: tuple[Padding, ...] = ("repetitive", "uninformative")

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
"""Sentences that say what their claim says."""

SAYINGS = (
    "{claim}",
    "Clearly, {claim}",
    "It goes without saying that {claim}",
    "Of course, {claim}",
)
"""Sentences around a bleached claim."""

EVIDENCE = 0.95
"""Probability with which a passage that says a bleached claim entails it."""

PROMPT = "padding"
STAGE = "padding"
_TOKENS_PER_SENTENCE = 40


@dataclass(frozen=True)
class Subject:
    """What a response is about.

    Attributes:
        name: the name that bleached claims are filled with.
        domain: the domain of the bleached claims.
    """

    name: str
    domain: str = "things"


DEMONSTRATION: Mapping[str, Subject] = MappingProxyType(
    {
        "demo-01-marie-curie": Subject("Marie Curie", "people"),
        "demo-02-lake-baikal": Subject("Lake Baikal", "places"),
        "demo-03-penicillin": Subject("penicillin", "medicine"),
        "demo-04-world-cup-1966": Subject("the 1966 football World Cup", "events"),
        "demo-05-apollo-11": Subject("the flight of Apollo 11", "events"),
        "demo-06-mona-lisa": Subject("the Mona Lisa"),
        "demo-07-octopus": Subject("the octopus"),
        "demo-08-beethoven": Subject("Ludwig van Beethoven", "people"),
        "demo-09-chocolate": Subject("chocolate"),
        "demo-10-world-wide-web": Subject("the World Wide Web"),
        "demo-11-magna-carta": Subject("Magna Carta"),
        "demo-12-alan-turing": Subject("Alan Turing", "people"),
        "demo-13-panama-canal": Subject("the Panama Canal", "places"),
        "demo-14-antarctica": Subject("Antarctica", "places"),
    }
)
"""Subjects of the embedded responses, whose topics are subject areas."""


@dataclass(frozen=True)
class Padded:
    """A response with sentences appended.

    Attributes:
        graph: the response; the appended atoms are its last, labelled true.
        canonical: of each appended text the text that it says in other words: an atom of the
            response, or a bleached claim. Empty where a language model wrote it.
        failures: why a language model wrote nothing; empty otherwise.
    """

    graph: FactGraph
    canonical: Mapping[str, str] = field(default_factory=dict)
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class CanonicalRelations:
    """A relation model that sees through the templates: it judges what is said, not how.

    Texts that say the same entail each other; of others the model judges what they say.

    Attributes:
        model: the relation model.
        canonical: what a text says, as `Padded.canonical`; a text that is not there says itself.
    """

    model: RelationModel
    canonical: Mapping[str, str]

    @property
    def name(self) -> str:
        """The model's name, marked."""
        return f"{self.model.name}, templates known"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        """One answer per pair, in order."""
        said = [
            replace(
                pair,
                premise=self.canonical.get(pair.premise, pair.premise),
                hypothesis=self.canonical.get(pair.hypothesis, pair.hypothesis),
            )
            for pair in pairs
        ]
        # Only these are asked about: one that says the same needs no opinion.
        different = [
            pair
            for pair in said
            if normalised_text(pair.premise) != normalised_text(pair.hypothesis)
        ]
        answers = iter(self.model.judge(different) if different else [])
        same = Judgement(RelationKind.ENTAILMENT, 1.0, "recorded", (1.0, 0.0, 0.0))
        return [
            same
            if normalised_text(pair.premise) == normalised_text(pair.hypothesis)
            else next(answers)
            for pair in said
        ]


def subject_of(graph: FactGraph) -> Subject:
    """What a response is about: known of the embedded ones, otherwise its topic."""
    if graph.id in DEMONSTRATION:
        return DEMONSTRATION[graph.id]
    return Subject(graph.topic or graph.id)


def padded(graph: FactGraph, padding: Padding, n: int, subject: Subject | None = None) -> Padded:
    """The response with n true sentences appended, one claim each.

    "repetitive": n paraphrases of its first true claim for which evidence speaks (of its first
    true claim if there is none), each with the evidence and the relations of that claim.
    "uninformative": n sentences that hold of nearly everything of the subject's domain, each with
    a passage that says so. Templates recur once all are used.

    Args:
        graph: the response, with labels.
        padding: one of `PADDINGS`.
        n: number of sentences, from 0.
        subject: what the response is about; None takes `subject_of`.

    Raises:
        InputError: for an unknown padding, n below 0, or repetition where no claim is labelled
            true.
    """
    if padding not in PADDINGS:
        raise InputError(f"the padding {padding!r} is unknown; use one of {', '.join(PADDINGS)}")
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise InputError(f"the number of appended sentences is {n!r}; give one from 0")
    if n == 0:
        return Padded(graph)
    about = subject or subject_of(graph)
    if padding == "repetitive":
        original = repeated_claim(graph)
        texts = [
            FRAMES[k % len(FRAMES)].replace("{claim}", _inside(original.text)) for k in range(n)
        ]
        said = [original.text] * n
        return Padded(
            _with_repetitions(graph, original, texts), dict(zip(texts, said, strict=True))
        )
    claims = bleached_claims(about.domain, about.name)
    said = [claims[k % len(claims)] for k in range(n)]
    # A claim stands by itself the first time round, and in a frame once the templates recur.
    texts = [
        SAYINGS[k // len(claims) % len(SAYINGS)].replace(
            "{claim}", claim if k < len(claims) else _inside(claim)
        )
        for k, claim in enumerate(said)
    ]
    return Padded(_with_truisms(graph, texts), dict(zip(texts, said, strict=True)))


def known_templates(
    model: RelationModel, graphs: Sequence[FactGraph], n: int
) -> CanonicalRelations:
    """A relation model that sees through n sentences of either padding of the responses.

    Raises:
        InputError: as `padded` does.
    """
    known: dict[str, str] = {}
    for graph in graphs:
        for padding in PADDINGS:
            known |= padded(graph, padding, n).canonical
    return CanonicalRelations(model, known)


def padded_by_model(
    graph: FactGraph,
    padding: Padding,
    n: int,
    model: LanguageModel,
    subject: Subject | None = None,
) -> Padded:
    """The response with up to n sentences appended that a language model wrote.

    They are labelled true, which the prompt asks for and nobody checked. A failed call appends
    nothing and is reported.

    Raises:
        InputError: as `padded` does.
    """
    clean = padded(graph, padding, 0)
    if n == 0:
        return clean
    original = repeated_claim(graph)
    about = subject or subject_of(graph)
    fields = {
        "kind": padding,
        "subject": about.name,
        "claim": original.text if padding == "repetitive" else "(none)",
        "number": str(n),
    }
    question = Question(fields, lambda value: _sentences(value, n), _TOKENS_PER_SENTENCE * n)
    (found,) = ask_all(model, PROMPT, STAGE, [question])
    if isinstance(found, Failure):
        return replace(clean, failures=(found.reason,))
    if padding == "repetitive":
        return Padded(_with_repetitions(graph, original, found))
    return Padded(_with_truisms(graph, found))


def padding_alone(padding: Padded, n_clean: int) -> FactGraph:
    """The response that consists of the appended sentences only.

    Args:
        padding: a padded response.
        n_clean: number of atoms of the response before.
    """
    from factormodels.selection import restricted

    return restricted(padding.graph, padding.graph.atom_ids[n_clean:])


def corrupted(graph: FactGraph, share: float = 0.5, seed: int = 0) -> FactGraph:
    """The response with some of its true claims turned into false ones (Core, section 5.3).

    Each true claim is denied with the given probability: its text says that it is not so, its
    label is false, and evidence for it speaks against it. The one that repetition repeats is
    spared: what is repeated is true.

    Raises:
        InputError: for a share outside [0, 1], or if no claim is labelled true.
    """
    if not 0 <= share <= 1:
        raise InputError(f"the share of corrupted claims is {share}; give one between 0 and 1")
    drawn = np.random.default_rng(seed).random(len(graph.atoms)) < share
    # Drawn for every atom before anything is spared, so that the draw does not depend on the
    # labels.
    spared = repeated_claim(graph).id
    turned = {
        atom.id
        for atom, hit in zip(graph.atoms, drawn, strict=True)
        if hit and atom.label is True and atom.id != spared
    }
    opposite = {
        RelationKind.ENTAILMENT: RelationKind.CONTRADICTION,
        RelationKind.CONTRADICTION: RelationKind.ENTAILMENT,
    }
    return replace(
        graph,
        atoms=tuple(
            replace(atom, label=False, text=f"It is not the case that {_inside(atom.text)}")
            if atom.id in turned
            else atom
            for atom in graph.atoms
        ),
        relations=tuple(
            replace(r, kind=opposite.get(r.kind, r.kind)) if r.target in turned else r
            for r in graph.relations
        ),
    )


def repeated_claim(graph: FactGraph) -> Atom:
    """The claim that repetition repeats: the first true one with evidence for it.

    Raises:
        InputError: if no claim is labelled true.
    """
    true = [atom for atom in graph.atoms if atom.label is True]
    if not true:
        raise InputError(
            f"response {graph.id!r}: no claim is labelled true, so none can be repeated"
        )
    borne_out = {r.target for r in graph.relations if r.kind is RelationKind.ENTAILMENT}
    against = {r.target for r in graph.relations if r.kind is RelationKind.CONTRADICTION}
    # The claim with undisputed evidence: its repetitions then score as well as it does.
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
            # A relation that starts at the claim, such as one to another claim, is repeated too.
            elif r.source == original.id:
                relations.append(replace(r, source=name))
    return replace(
        graph, atoms=(*graph.atoms, *fresh), contexts=contexts, relations=tuple(relations)
    )


def _with_truisms(graph: FactGraph, texts: Sequence[str]) -> FactGraph:
    """The response with claims appended, each borne out by a passage of its own."""
    fresh = _atoms(graph, texts)
    # A passage for each, so that an assessor which retrieves finds its evidence too.
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
        # A sentence each, behind the last one of the response.
        Atom(f"appended{k}", text, label=True, sentence=last + k)
        for k, text in enumerate(texts, start=1)
    )


def _inside(claim: str) -> str:
    """A claim as it reads within a sentence: an article or pronoun loses its capital."""
    first, _, rest = claim.partition(" ")
    # A name keeps its capital within a sentence, so only words that are none lose it.
    plain = first in {"The", "A", "An", "It", "Its", "In", "He", "She", "They", "People", "Ask"}
    return f"{first.lower()} {rest}" if plain else claim


def _sentences(value: object, n: int) -> list[str] | None:
    # None tells `ask_all` that the answer is not usable.
    if not isinstance(value, list) or not value:
        return None
    if not all(isinstance(text, str) and text.strip() for text in value):
        return None
    return [" ".join(text.split()) for text in value[:n]]
