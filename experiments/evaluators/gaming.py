"""Responses made to score well: true sentences appended that repeat, or that say nothing.

The sentences come from templates of this project, or from a language model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.errors import InputError
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.relation_models.base import (
    Judgement,
    Missing,
    RelationModel,
    TextPair,
)
from factormodels.extraction.stages.asking import Question, ask_all
from factormodels.fact_graph import FactGraph
from factormodels.selection import bleached_claims
from factormodels.variants import normalised_text

Padding = Literal["repetitive", "uninformative", "off-topic"]

PADDINGS: tuple[Padding, ...] = ("repetitive", "uninformative")
"""What the project's templates write."""

OFF_TOPIC: Padding = "off-topic"
"""True claims about other topics, taken from the data: no template has written them."""

CORRUPTIONS = ("negation", "entities")
"""How a claim is made false: it is denied, or a name or number in it becomes another."""

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
        said = [self._said(pair) for pair in pairs]
        # Many pairs are made of few texts: each text is compared in the form it has once.
        texts = dict.fromkeys(text for pair in said for text in (pair.premise, pair.hypothesis))
        plain = {text: normalised_text(text) for text in texts}
        same = [plain[pair.premise] == plain[pair.hypothesis] for pair in said]
        # Only these are asked about: one that says the same needs no opinion.
        different = [pair for pair, alike in zip(said, same, strict=True) if not alike]
        answers = iter(self.model.judge(different) if different else [])
        entailed = Judgement(RelationKind.ENTAILMENT, 1.0, "recorded", (1.0, 0.0, 0.0))
        return [entailed if alike else next(answers) for alike in same]

    def _said(self, pair: TextPair) -> TextPair:
        """A pair with what its texts say in the place of what they are."""
        premise = self.canonical.get(pair.premise, pair.premise)
        hypothesis = self.canonical.get(pair.hypothesis, pair.hypothesis)
        if premise is pair.premise and hypothesis is pair.hypothesis:
            return pair
        return replace(pair, premise=premise, hypothesis=hypothesis)


def subject_of(graph: FactGraph) -> Subject:
    """What a response is about: known of the embedded ones, otherwise its topic."""
    if graph.id in DEMONSTRATION:
        return DEMONSTRATION[graph.id]
    return Subject(graph.topic or graph.id)


def paddings_of(graphs: Sequence[FactGraph]) -> tuple[Padding, ...]:
    """The paddings that responses can have: without others there are no claims on other topics."""
    holding = sum(any(atom.label is True for atom in graph.atoms) for graph in graphs)
    return (*PADDINGS, OFF_TOPIC) if holding > 1 else PADDINGS


def padded_from(graph: FactGraph, padding: Padding, n: int, graphs: Sequence[FactGraph]) -> Padded:
    """`padded`, or with n true claims of other responses appended, each with its evidence.

    One claim of each other response in turn, then the next of each, so that neighbours have
    different topics; claims that recur stand more than once.

    Args:
        graph: the response, with labels.
        padding: a padding of `paddings_of`.
        n: number of sentences, from 0.
        graphs: the responses, of which others lend claims.

    Raises:
        InputError: as `padded`, or if no other response has a claim labelled true.
    """
    if padding != OFF_TOPIC:
        return padded(graph, padding, n)
    lists = [
        [(other, atom) for atom in other.atoms if atom.label is True]
        for other in graphs
        if other.id != graph.id
    ]
    longest = max(map(len, lists), default=0)
    lent = [own[place] for place in range(longest) for own in lists if place < len(own)]
    if n and not lent:
        raise InputError(
            f"response {graph.id!r}: no other response has a claim labelled true, which padding "
            "off topic takes; give more responses"
        )
    chosen = [lent[k % len(lent)] for k in range(n)] if n else []
    fresh = _atoms(graph, [atom.text for _, atom in chosen])
    contexts, relations = list(graph.contexts), list(graph.relations)
    for new, (other, atom) in zip(fresh, chosen, strict=True):
        own = {c.id: c for c in other.contexts}
        bearing = [r for r in other.relations if r.target == atom.id and r.source in own]
        served = [c.id for c in other.contexts if atom.id in c.retrieved_for]
        for name in dict.fromkeys([*served, *(r.source for r in bearing)]):
            copied = f"{new.id}-{name}"
            contexts.append(replace(own[name], id=copied, retrieved_for=(new.id,)))
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


def padded(graph: FactGraph, padding: Padding, n: int) -> Padded:
    """The response with n true sentences appended, one claim each.

    "repetitive": n paraphrases of its first true claim for which evidence speaks (of its first
    true claim if there is none), each with the evidence and the relations of that claim.
    "uninformative": n sentences that hold of nearly everything of the subject's domain, each with
    a passage that says so. Templates recur once all are used.

    Args:
        graph: the response, with labels.
        padding: one of `PADDINGS`.
        n: number of sentences, from 0.

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
    about = subject_of(graph)
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


def padded_by_model(graph: FactGraph, padding: Padding, n: int, model: LanguageModel) -> Padded:
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
    about = subject_of(graph)
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


def corrupted(
    graph: FactGraph,
    share: float = 0.5,
    seed: int = 0,
    how: str = "negation",
    graphs: Sequence[FactGraph] = (),
) -> FactGraph:
    """The response with some of its true claims turned into false ones (Core, section 5.3).

    Each true claim is turned with the given probability: its text says that it is not so, or names
    another name or number in the place of its last one; its label is false, and evidence for it
    speaks against it. The one that repetition repeats is spared: what is repeated is true. A claim
    that has no name or number, or for which there is no other, is denied.

    Args:
        graph: the response, with labels.
        share: probability with which a true claim is turned.
        seed: seed of the draw.
        how: one of `CORRUPTIONS`.
        graphs: responses whose claims lend names and numbers, beside the response itself.

    Raises:
        InputError: for a share outside [0, 1], an unknown corruption, or if no claim is labelled
            true.
    """
    if how not in CORRUPTIONS:
        raise InputError(f"the corruption {how!r} is unknown; use one of {', '.join(CORRUPTIONS)}")
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
    pool = [] if how == "negation" else _entities([graph, *graphs])

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
"""Words with capitals that begin no sentence."""


def _entities(graphs: Sequence[FactGraph]) -> list[str]:
    """Names and numbers of the claims, each once, in order."""
    found = {
        text: None
        for graph in graphs
        for atom in graph.atoms
        for kind in (_NUMBER, _NAME)
        for text in kind.findall(atom.text)
    }
    return list(found)


def _swapped(text: str, pool: Sequence[str], seed: int) -> str | None:
    """The claim with another name or number in place of its last one; None if there is none."""
    places = [match for kind in (_NUMBER, _NAME) for match in kind.finditer(text)]
    if not places:
        return None
    last = max(places, key=lambda match: match.start())
    is_number = last.group()[0].isdigit()
    others = [
        one
        for one in pool
        if one[0].isdigit() == is_number and one not in text and last.group() not in one
    ]
    if is_number:
        # A year becomes a year, a count a count: else the claim would be nonsense, and not false.
        others = [one for one in others if len(one) == len(last.group())]
    if not others:
        return None
    other = others[int(np.random.default_rng(seed).integers(len(others)))]
    return text[: last.start()] + other + text[last.end() :]


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
