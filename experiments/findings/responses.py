"""Responses on a page: claims, their judges, and the evidence that decides.

The page contains them as JSON, which its script renders. Texts are never interpreted as markup.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from experiments.findings.text import ABSENT, number, word
from factormodels.claims import Atom, Context, RelationKind
from factormodels.io.json import text_of


class Effect(NamedTuple):
    """Effect of removing a passage on a claim.

    Attributes:
        without: the posterior without the passage; None if unknown.
        change: decrease of the posterior; None if unknown.
        error: standard error of an estimated change; 0 if the change is exact.
    """

    without: float | None = None
    change: float | None = None
    error: float = 0.0


@dataclass(frozen=True)
class Evidence:
    """A relation that joins a passage to a claim.

    Attributes:
        passage: position of the passage in the response.
        relation: kind of the relation.
        probability: its probability.
        sentence: the sentence of the passage that decides; empty for a passage without text.
        effects: effect of the passage in every view; None if the view has no such relation.
    """

    passage: int
    relation: RelationKind
    probability: float
    sentence: str
    effects: tuple[Effect | None, ...]


@dataclass(frozen=True)
class ListedClaim:
    """A claim of a response.

    Attributes:
        atom: the claim.
        p: P(true) by every answer; None if an answer has none.
        evidence: evidence for and against it.
        ranges: for every answer, the range that missing answers leave open for the posterior, if
            any.
        words: for every answer, the assessor's own word for its verdict; empty for other answers.
        kept_by: the selections that keep it.
        same_as: id of the claim that is judged in its place; empty if there is none.
    """

    atom: Atom
    p: tuple[float | None, ...]
    evidence: tuple[Evidence, ...] = ()
    ranges: tuple[tuple[float, float] | None, ...] = ()
    words: tuple[str, ...] = ()
    kept_by: tuple[str, ...] = ()
    same_as: str = ""


class Ended(NamedTuple):
    """Outcome of the inference on a response.

    Attributes:
        status: one of the statuses of inference, judged, failed, absent (its library is not
            installed), or not asked.
        error: reason of a failure.
    """

    status: str
    error: str = ""


class GraphShown(NamedTuple):
    """The graph of a response, to be drawn.

    Attributes:
        views: numbers of the views that have this graph.
        passages: positions of the passages of the nodes, from the top.
        relations: (source, target, kind, probability); a claim is given by its position, and the
            node of a passage by -1 minus its number.
    """

    views: tuple[int, ...]
    passages: tuple[int, ...]
    relations: tuple[tuple[int, int, RelationKind, float], ...]


@dataclass(frozen=True)
class ListedResponse:
    """A response as a page lists it.

    Attributes:
        id: its id in the data.
        dataset: its dataset, if there are several.
        topic: its topic.
        query: the question.
        pieces: its text in pieces, each with the positions of the claims that it makes.
        claims: its claims.
        passages: its passages.
        n_relations: for every view, the number of relations of each passage; None if unknown.
        ended: outcome of every answer.
        failures: pairs of (stage and reason, subject).
        unknown: pairs of (numbers of views, reason why their relations are unknown).
        notes: remarks on the response.
        graphs: the graphs to draw.
    """

    id: str
    dataset: str
    topic: str
    query: str
    pieces: tuple[tuple[str, tuple[int, ...]], ...]
    claims: tuple[ListedClaim, ...]
    passages: tuple[Context, ...]
    n_relations: tuple[tuple[int, ...] | None, ...]
    ended: tuple[Ended, ...]
    failures: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unknown: tuple[tuple[tuple[int, ...], str], ...] = ()
    notes: tuple[str, ...] = ()
    graphs: tuple[GraphShown, ...] = ()


@dataclass(frozen=True)
class ListedJudge:
    """Judge of claims: a cell of a study, a variant of an assessment, or an assessor.

    Attributes:
        title: its title.
        view: number of the view that it uses; None for an assessor, which has no graph.
    """

    title: str
    view: int | None


class ListedFailure(NamedTuple):
    """Missing results with one reason.

    Attributes:
        stage: stage at which they are missing.
        reason: the reason.
        lacking: number of missing answers.
        responses: (id, position in the list) of the responses that lack them; the position is None
            if the response is not listed.
    """

    stage: str
    reason: str
    lacking: int
    responses: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True)
class ListedResponses:
    """Responses that a page lists.

    Attributes:
        answers: the judges of the claims; the first is shown first.
        views: titles of the views.
        responses: the responses, in the order of their source.
        n_responses: number of responses at the source, which may be larger.
        failures: missing results, in the order of the stages.
        selections: names of selections of claims.
        replaces: names of the tables that the list replaces.
        more: instructions for showing the responses that are not listed.
        n_judges: number of answers at the source, which may be larger; 0: only those listed.
        compared: whether means are over the claims judged by every answer that judged any claim of
            the response, as in an assessment; otherwise each answer's mean is over the claims that
            it judged.
        lead: sentences on the origin of the answers, for the head of the page.
        cautions: sentences that a reader must see before the first number.
    """

    answers: tuple[ListedJudge, ...]
    views: tuple[str, ...]
    responses: tuple[ListedResponse, ...]
    n_responses: int
    failures: tuple[ListedFailure, ...] = ()
    selections: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    more: str = ""
    n_judges: int = 0
    compared: bool = False
    lead: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    def renamed(self, named: Callable[[str], str]) -> ListedResponses:
        """Return the list with other names of judges, views and datasets.

        Args:
            named: function that replaces the names in a text.
        """
        return replace(
            self,
            answers=tuple(replace(each, title=named(each.title)) for each in self.answers),
            views=tuple(map(named, self.views)),
            responses=tuple(replace(each, dataset=named(each.dataset)) for each in self.responses),
            failures=tuple(each._replace(stage=named(each.stage)) for each in self.failures),
        )

    @property
    def n_claims(self) -> int:
        """The number of claims of the responses that are listed."""
        return sum(len(response.claims) for response in self.responses)

    @property
    def without_texts(self) -> str:
        """Kinds of texts that no response has: claims, passages, or both; empty for neither."""
        claims = [bool(claim.atom.text) for each in self.responses for claim in each.claims]
        passages = [bool(passage.content) for each in self.responses for passage in each.passages]
        texts = {"claims": claims, "passages": passages}
        return " and ".join(name for name, have in texts.items() if have and not any(have))

    @property
    def most_doubtful(self) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
        """For readers without scripts: ids of responses, with the text and posterior of each claim.

        These are the responses with the largest expected share of false claims, by the first
        answer.
        """
        ranked = sorted(self.responses, key=lambda response: -_doubt(response))
        return tuple(
            (
                response.id,
                tuple((claim.atom.text or claim.atom.id, _shown_p(claim)) for claim in claims),
            )
            for response in ranked[:PLAIN]
            if (claims := response.claims)
        )

    def as_json(self) -> str:
        """The list as JSON that is safe within a `script` element.

        A passage that several responses share is included once.
        """
        passages: dict[tuple[str, str, str, str], int] = {}

        def number_of(passage: Context) -> int:
            return passages.setdefault(
                (passage.title, passage.content, passage.link, passage.note), len(passages)
            )

        responses = [
            _response(response, [number_of(passage) for passage in response.passages])
            for response in self.responses
        ]
        text = text_of(
            {
                "answers": [
                    {"title": answer.title, "view": answer.view} for answer in self.answers
                ],
                "views": self.views,
                "selections": self.selections,
                "compared": self.compared,
                "responses": responses,
                "passages": [_passage(*key) for key in passages],
            },
            "the page",
        )
        for character in _OF_MARKUP:
            text = text.replace(character, f"\\u{ord(character):04x}")
        return text


PLAIN = 20
"""Number of responses that are listed for readers without scripts."""


def _doubt(response: ListedResponse) -> float:
    """The expected share of false claims; an unknown claim counts as one half."""
    first = [claim.p[0] if claim.p else None for claim in response.claims]
    return sum(0.5 if p is None else 1 - p for p in first) / max(len(first), 1)


def _shown_p(claim: ListedClaim) -> str:
    p = claim.p[0] if claim.p else None
    return ABSENT if p is None else number(p, 3)


_OF_MARKUP = "<>&\u2028\u2029"
"""Characters that an HTML parser could read as the end of the data, or a script parser as the end
of a line."""

_PLACES = 10
"""Decimals of posteriors in the page: three are shown, but a verdict depends on the ninth."""


def _response(response: ListedResponse, places: Sequence[int]) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "id": response.id,
        "dataset": response.dataset,
        "topic": response.topic,
        "query": response.query,
        "pieces": response.pieces,
        "claims": [_claim(each, response.passages) for each in response.claims],
        "passages": [
            {"id": passage.id, "at": at, "prior": round(passage.prior, 4)}
            for passage, at in zip(response.passages, places, strict=True)
        ],
        "relations": response.n_relations,
        "ended": [list(each) if each.error else [each.status] for each in response.ended],
        "failures": response.failures,
        "unknown": response.unknown,
        "notes": response.notes,
        "graphs": [
            {
                "views": each.views,
                "passages": each.passages,
                "relations": [
                    [source, target, str(kind), round(p, 4)]
                    for source, target, kind, p in each.relations
                ],
            }
            for each in response.graphs
        ],
    }
    return _filled(facts)


def _claim(claim: ListedClaim, passages: Sequence[Context]) -> dict[str, Any]:
    atom = claim.atom
    return _filled(
        {
            "id": atom.id,
            "text": atom.text,
            "p": [_rounded(value) for value in claim.p],
            "label": atom.label,
            # The annotator's own word, if it says more than the label.
            "annotation": "" if atom.annotation in (None, word(atom.label)) else atom.annotation,
            "evidence": [
                {
                    "passage": each.passage,
                    "relation": str(each.relation),
                    "probability": round(each.probability, 6),
                    # A passage of one sentence is shown from the passage itself.
                    "sentence": None
                    if each.sentence == passages[each.passage].content
                    else each.sentence,
                    "effects": [_effect(effect) for effect in each.effects],
                }
                for each in claim.evidence
            ],
            "ranges": claim.ranges if any(claim.ranges) else (),
            "said": claim.words if any(claim.words) else (),
            "kept": claim.kept_by,
            "same": claim.same_as,
        }
    )


def _effect(effect: Effect | None) -> list[float | None] | None:
    if effect is None:
        return None
    values = [_rounded(effect.without), _rounded(effect.change), _rounded(effect.error)]
    return values if effect.error else values[:2]


def _passage(title: str, text: str, link: str, note: str) -> dict[str, str]:
    # No other scheme: a link in a dataset could be a script.
    safe = link if link.startswith(("http://", "https://")) else ""
    return _filled({"title": title, "text": text, "link": safe, "note": note})


def _filled(facts: dict[str, Any]) -> dict[str, Any]:
    """Drop empty values, which the script treats like missing keys."""
    return {key: value for key, value in facts.items() if value not in ("", (), [], None)}


def _rounded(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, _PLACES)
