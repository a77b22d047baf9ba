"""What text models say of the responses of a study: asked once, before the units, and kept.

Relations are found in the process that runs the study, so that its workers need no model; they
are sent the graphs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from experiments.results.rows import FAILED
from experiments.run.keyed_journal import KeyedJournal
from experiments.run.text_models import ASSESSING, RELATIONS, Opened, TextModel
from experiments.run.units import UnitResult, sentence
from experiments.study.cell_names import RECORDED
from experiments.study.data import Related, StudyData
from experiments.study.design import StudyCell
from factormodels.claims import Relation, RelationKind
from factormodels.errors import InputError
from factormodels.extraction.assessors import assess
from factormodels.extraction.consumption import total
from factormodels.extraction.relation_models.base import (
    Judgement,
    Missing,
    RelationModel,
    TextPair,
)
from factormodels.extraction.relations import (
    EXTRACTED_VARIANTS,
    METADATA_KEY,
    relation_pairs,
    with_relations,
)
from factormodels.fact_graph import FactGraph
from factormodels.variants import merge_duplicate_contexts

JUDGED = "judged"
"""How a unit of an assessor ends."""


class Place(NamedTuple):
    """What an answer is about.

    Attributes:
        key: the study's key of the text model.
        title: the text model.
        dataset: name of the dataset.
        variant: the variant whose relations were asked for; "" of an assessor.
        response: position of the response in its dataset.
    """

    key: str
    title: str
    dataset: str
    variant: str
    response: int


Answer = dict[str, Any]
"""JSON values. `found`: relations as [source, target, kind, probability], or verdicts as [atom,
label, probability, P(true), why it is missing]; `asked`; `missing`; `reason`, the first one;
`consumption`, what the answers of a language model took; or `error`, why there is nothing."""

TextMonitor = Callable[[int], AbstractContextManager[Callable[[], None]]]
"""Responses to be asked about -> a context with what is to be called after each."""


@dataclass(frozen=True)
class TextAnswers:
    """All that text models have said in a run.

    Attributes:
        by_place: the answers.
    """

    by_place: dict[Place, Answer] = field(default_factory=dict)

    @staticmethod
    def of(kept: KeyedJournal | Mapping[str, Answer]) -> TextAnswers:
        """Return the answers of a journal."""
        return TextAnswers({Place(*json.loads(key)): answer for key, answer in kept.items()})

    def has(self, place: Place, *, again: bool = False) -> bool:
        """Whether there is an answer; `again`: and it is no failure."""
        answer = self.by_place.get(place)
        return answer is not None and not (again and "error" in answer)

    def keep(self, place: Place, answer: Answer, kept: KeyedJournal) -> None:
        """Add an answer, to the journal first."""
        kept.put(json.dumps(place), answer)
        self.by_place[place] = answer

    def related(self, data: Sequence[StudyData]) -> tuple[StudyData, ...]:
        """Return the data with the graphs of the relations that were found."""
        graphs: dict[tuple[str, int], dict[tuple[str, str], FactGraph | str]] = {}
        merged: dict[tuple[str, int], FactGraph] = {}
        by_name = {dataset.name: dataset.graphs for dataset in data}
        for place, answer in self.by_place.items():
            if place.key != RELATIONS:
                continue
            response = (place.dataset, place.response)
            if response not in merged:
                graph = by_name[place.dataset][place.response]
                merged[response] = merge_duplicate_contexts(graph)
            own = graphs.setdefault(response, {})
            own[place.title, place.variant] = answer.get("error") or replace(
                merged[response], relations=tuple(_relations(answer["found"]))
            )
        if not graphs:
            return tuple(data)
        nothing: Related = {}
        return tuple(
            replace(
                dataset,
                related=tuple(
                    graphs.get((dataset.name, position), nothing)
                    for position in range(len(dataset.graphs))
                ),
            )
            for dataset in data
        )

    def unit(self, cell: int, place: Place) -> UnitResult:
        """Return what became of a unit of an assessor."""
        answer = self.by_place[place]
        if "error" in answer:
            return UnitResult(cell, place.response, FAILED, error=answer["error"])
        p = [np.nan if p_true is None else p_true for *_, p_true, _ in answer["found"]]
        return UnitResult(
            cell, place.response, JUDGED, p=np.array(p, dtype=np.float64), log_z_kind="none"
        )


def asked_of(cell: StudyCell) -> Place | None:
    """Return what a text model is to say before the units of a cell, of no response in particular.

    None if relations are the data's own.
    """
    if cell.algorithm.assessor:
        return Place(ASSESSING, cell.algorithm.title, cell.dataset, "", -1)
    if cell.view.relation_model == RECORDED:
        return None
    return Place(RELATIONS, cell.view.relation_model, cell.dataset, cell.view.variant, -1)


def n_asked(places: Iterable[Place], data: Sequence[StudyData]) -> dict[str, tuple[int, str]]:
    """Return how many pairs or claims each text model is asked about, by its title."""
    by_name = {dataset.name: dataset.graphs for dataset in data}
    widest: dict[tuple[str, str, str, int], str] = {}
    for place in sorted(set(places), key=_order, reverse=True):
        widest[place.key, place.title, place.dataset, place.response] = place.variant
    counts: dict[str, tuple[int, str]] = {}
    for (key, title, dataset, response), variant in widest.items():
        graph = by_name[dataset][response]
        if key == RELATIONS:
            asked, what = len(relation_pairs(merge_duplicate_contexts(graph), variant)), "pair"
        else:
            asked, what = len(graph.atoms), "claim"
        counts[title] = (counts.get(title, (0, ""))[0] + asked, what)
    return counts


def ask_texts(
    places: Iterable[Place],
    data: Sequence[StudyData],
    opened: Iterable[Opened],
) -> Iterator[tuple[Place, Answer]]:
    """Yield the answers that are asked for.

    Of a response the relations of all its variants are found before the next one, the widest
    variant first, so that no pair is asked twice.

    Raises:
        InputError: for what the user has to mend: a key that is missing, a replay without answer.
    """
    by_name = {dataset.name: dataset.graphs for dataset in data}
    by_title = {(one.model.key, one.model.title): one for one in opened}
    remembering: tuple[Place, _Remembering] | None = None
    for place in sorted(set(places), key=_order):
        one = by_title[place.key, place.title]
        graph = by_name[place.dataset][place.response]
        if one.relations is None:
            answer = _verdicts(graph, one)
        else:
            of_all = place._replace(variant="")
            if remembering is None or remembering[0] != of_all:
                remembering = (of_all, _Remembering(one.relations))
            least = one.model.facts["least"]
            answer = _found_relations(graph, remembering[1], place.variant, least)
        if one.consumption is not None:
            answer["consumption"] = one.consumption.take()
        yield place, answer


def content_hashes(answers: TextAnswers) -> dict[str, dict[str, dict[str, str]]]:
    """Return the hash of the relations found, by dataset, relation model and variant."""
    digests: dict[tuple[str, str, str], Any] = {}
    for place in sorted(answers.by_place):
        if place.key == RELATIONS:
            digest = digests.setdefault(
                (place.dataset, place.title, place.variant), hashlib.sha256()
            )
            answer = answers.by_place[place]
            content = [place.response, answer.get("found"), answer.get("error")]
            digest.update(json.dumps(content).encode())
    hashes: dict[str, dict[str, dict[str, str]]] = {}
    for (dataset, title, variant), digest in digests.items():
        hashes.setdefault(dataset, {}).setdefault(title, {})[variant] = digest.hexdigest()
    return hashes


@dataclass(frozen=True)
class TextUse:
    """What a text model was asked in a run, over all its responses, and what the answers took.

    Attributes:
        model: the text model.
        responses: number of responses; of a relation model for each variant anew.
        asked: number of pairs, or of claims.
        missing: those of them without an answer.
        dropped: claims that the assessor takes out of the score.
        failed: responses without any answer.
        reason: why the first answer is missing, or the first response failed.
        consumption: answers, tokens and US dollars; an answer from the cache counts as when it
            was new. Empty without a language model.
    """

    model: TextModel
    responses: int
    asked: int
    missing: int
    dropped: int
    failed: int
    reason: str
    consumption: Mapping[str, float]

    def facts(self) -> dict[str, Any]:
        """Return what a manifest says of it."""
        names = ("responses", "asked", "missing", "dropped", "failed")
        counts = {name: getattr(self, name) for name in names}
        return {**self.model.facts, **counts, **self.consumption}


def facts_of(texts: Iterable[TextUse]) -> dict[str, dict[str, Any]]:
    """Return what a manifest says of text models, by key of the study and title."""
    facts: dict[str, dict[str, Any]] = {}
    for one in texts:
        facts.setdefault(one.model.key, {})[one.model.title] = one.facts()
    return facts


def uses(models: Iterable[TextModel], answers: TextAnswers) -> tuple[TextUse, ...]:
    """Return what each text model of a study was asked."""
    return tuple(
        _use(
            one,
            [
                answers.by_place[place]
                for place in sorted(answers.by_place)
                if (place.key, place.title) == (one.key, one.title)
            ],
        )
        for one in models
    )


class _Remembering:
    """A relation model that is asked about each pair of texts and ids once."""

    def __init__(self, model: RelationModel) -> None:
        self._model = model
        self._known: dict[TextPair, Judgement | Missing] = {}

    @property
    def name(self) -> str:
        return self._model.name

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        new = [pair for pair in pairs if pair not in self._known]
        if new:
            self._known.update(zip(new, self._model.judge(new), strict=True))
        return [self._known[pair] for pair in pairs]


def _order(place: Place) -> tuple[Any, ...]:
    widest_first = -EXTRACTED_VARIANTS.index(place.variant) if place.variant else 0
    return place.key, place.title, place.dataset, place.response, widest_first


def _found_relations(graph: FactGraph, model: RelationModel, variant: str, least: float) -> Answer:
    try:
        related = with_relations(merge_duplicate_contexts(graph), model, variant, least=least)
    except InputError:
        raise
    except Exception as error:
        return {"error": sentence(error)}
    facts = related.metadata[METADATA_KEY]
    missing, asked = facts["missing"], facts["asked"]
    if asked and len(missing) == asked:
        return {"error": f"none of {asked} relations was found: {missing[0][2]}"}
    found = [[r.source, r.target, str(r.kind), r.probability] for r in related.relations]
    return _counted(found, asked, [reason for *_, reason in missing])


def _relations(found: Iterable[Sequence[Any]]) -> Iterator[Relation]:
    for source, target, kind, probability in found:
        yield Relation(source, target, RelationKind(kind), probability)


def _verdicts(graph: FactGraph, one: Opened) -> Answer:
    if one.consumption is None:
        raise InputError(f"{one.model.place}: the assessor has no language model; name one")
    facts = one.model.facts
    try:
        verdicts = assess(
            graph,
            facts["assessor"],
            one.consumption,
            all_contexts=facts["all_contexts"],
            expected=facts["expected"],
        )
    except InputError:
        raise
    except Exception as error:
        return {"error": sentence(error)}
    reasons = [verdict.missing for verdict in verdicts if verdict.missing]
    if verdicts and len(reasons) == len(verdicts):
        return {"error": f"none of {len(reasons)} claims has a verdict: {reasons[0]}"}
    found = [[v.atom, v.label, v.probability, v.p_true, v.missing] for v in verdicts]
    return _counted(found, len(found), reasons)


def _counted(found: list[Any], asked: int, reasons: list[str]) -> Answer:
    missing = {"reason": reasons[0]} if reasons else {}
    return {"found": found, "asked": asked, "missing": len(reasons), **missing}


def _use(one: TextModel, answers: Sequence[Answer]) -> TextUse:
    failed = [answer["error"] for answer in answers if "error" in answer]
    found = [answer for answer in answers if "error" not in answer]
    dropped = 0
    if one.key != RELATIONS:
        verdicts = [verdict for answer in found for verdict in answer["found"]]
        dropped = sum(bool(label) and p is None for _, label, _, p, _ in verdicts)
    stages = [stage for answer in answers for stage in answer.get("consumption", {}).values()]
    asked_a_model = any("consumption" in answer for answer in answers)
    return TextUse(
        model=one,
        responses=len(answers),
        asked=sum(answer["asked"] for answer in found),
        missing=sum(answer["missing"] for answer in found),
        dropped=dropped,
        failed=len(failed),
        reason=next(iter([*failed, *(a["reason"] for a in found if "reason" in a)]), ""),
        consumption=total(stages) if asked_a_model else {},
    )
