"""Relation models and assessors of a study, which answer once before its units; answers are kept.

Relations are found in the process that runs the study, so that its workers need no model and
receive graphs. The evaluators' stages `with_relations` and `assess` ask the models, and a language
model's answers are in its own cache. This module adds the parts that only a study has. Several
models judge several variants of the same responses: the widest variant is asked, and the others
read its answers, with the same relations as the views of `assess`
(`tests/experiments/study/test_relation_models.py`). Corrections by the mean of all answers are
known only at the end. The manifest has facts and hashes. Answers that no cache has are stored:
answers of local models, and failures, which count as results until `--retry-failed`.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibration.label_bias import smoothed_mean
from experiments.asking.failed_calls import StageCalls, calls_of_responses
from experiments.asking.probe_tables import probe_sentences
from experiments.asking.probing import (
    ProbeResult,
    UnansweredProbeError,
    probe_language_model_relations,
    probe_model,
    resolved_correction,
    with_correction,
)
from experiments.asking.relation_correction import (
    BATCH,
    NAMED,
    NONE,
    CorrectedRelations,
    RelationCorrection,
    read_correction,
)
from experiments.asking.relation_models import (
    build_relation_model,
    relation_model_facts,
)
from experiments.asking.session import answering
from experiments.columns.cell_names import FAILED, RECORDED
from experiments.study.cells import StudyCell
from experiments.study.config import (
    AssessorChoice,
    LanguageModelChoice,
    RelationModelChoice,
    Study,
)
from experiments.study.data import Related, StudyData
from experiments.study.reading import LoadedStudy
from experiments.study.units import UnitResult, sentence
from factormodels.claims import Relation, RelationKind
from factormodels.errors import InputError
from factormodels.extraction.asking.table import ASSESSORS
from factormodels.extraction.language_model import LanguageModel, lacking_parameters
from factormodels.extraction.language_model.accounting import Consumption, Ledger, total
from factormodels.extraction.probe.asking import probe_calls
from factormodels.extraction.probe.table import RELATIONS as RELATIONS_PROBE
from factormodels.extraction.prompts.replaced import Prompts, WithPrompts, read_prompts
from factormodels.extraction.relation_models.base import RelationModel, counted_fallbacks
from factormodels.extraction.stages.assessors import assess, verdict_fallbacks
from factormodels.extraction.stages.relations import (
    EXTRACTED_VARIANTS,
    METADATA_KEY,
    evidence_distributions,
    relation_pairs,
    with_corrected_relations,
    with_relations,
)
from factormodels.fact_graph import FactGraph
from factormodels.io.store.results import KeptValues
from factormodels.metadata.learned_from import LEARNED_FROM, LearnedFrom, relations_mark
from factormodels.metadata.recorded_verdicts import recorded_marks, verdicts_of
from factormodels.selection import CachedRelations
from factormodels.variants import merge_duplicate_contexts

RELATIONS, ASSESSING = "relation_models", "assessors"
"""Keys of a study that name its text models."""

JUDGED = "judged"
"""Status of a unit of an assessor."""


@dataclass(frozen=True)
class TextModel:
    """A relation model or an assessor of a study, which reads texts before any inference.

    Attributes:
        key: its key in the study.
        position: its index under this key.
        title: name in tables.
        facts: facts that its answers depend on, as JSON values.
        correction: correction of its relations: a name, or a learned correction.
    """

    key: str
    position: int
    title: str
    facts: Mapping[str, Any]
    correction: str | RelationCorrection = NONE

    @property
    def key_path(self) -> str:
        """Its place in the study."""
        return f"{self.key}[{self.position}]"

    @property
    def identity(self) -> str:
        """Its path in the study, and its correction, if any."""
        name = self.correction
        if isinstance(name, RelationCorrection):
            name = name.name
        return self.key_path if name == NONE else f"{self.key_path} ({name})"


@dataclass(frozen=True)
class OpenedTextModel:
    """A loaded text model.

    Attributes:
        model: the text model.
        relations: the relation model, corrected unless the correction needs all answers; None for
            an assessor.
        consumption: the language model behind it, or None.
        prompts: prompts of the language model.
        correction: the correction of its relations, or None.
        probe: probes the language model with this model's questions; None without a probe or a
            language model. It returns None in a replay without its answers.
    """

    model: TextModel
    relations: RelationModel | None
    consumption: Consumption | None
    prompts: Prompts
    correction: RelationCorrection | None = None
    probe: Callable[[], ProbeResult | None] | None = None


class TextRequest(NamedTuple):
    """Request to a text model about a response.

    Attributes:
        key: the study's key of the text model.
        title: the text model.
        dataset: name of the dataset.
        variant: the variant whose relations are requested; "" for an assessor.
        response: position of the response in its dataset; `MEAN` for the mean answer over all
            responses; `PROBED` for the probe of the model, which belongs to no dataset.
    """

    key: str
    title: str
    dataset: str
    variant: str
    response: int


MEAN = -1
"""Value of `TextRequest.response` for the mean answer over all responses."""

PROBED = -2
"""Placeholder for the response of a `TextRequest` whose answer is the probe of the model."""

Answer = dict[str, Any]
"""JSON values by key.

- `found`: relations, as [source, target, kind, probability, distribution] and, after a correction,
  the uncorrected distribution; or verdicts, as [atom, label, probability, P(true), reason if
  missing];
- `asked`, `missing`: numbers of questions; `reason`: the first reason of a missing answer;
- `lost`: missing relations, as [source, target, reason];
- `origins`: counts by origin; `fallbacks`: [origin, reason, count];
- `correction`, `judge`: the correction, and the model whose answers it corrects;
- `consumption`: usage of a language model for the answers;
- `error`: reason of a failure, in place of all others.

`MEAN` has only `bias`, the mean answer, and `least`. `PROBED` has `asked` and `correct`, numbers of
questions, `evidence`, True if the answers are evidence, and `remark`, a sentence; or `error`."""

TextMonitor = Callable[[int], AbstractContextManager[Callable[[], None]]]
"""Function of the number of responses that returns a context manager; its function is called after
each response."""


@dataclass(frozen=True)
class TextAnswers:
    """All answers of text models in a run.

    Attributes:
        by_request: the answers.
    """

    by_request: dict[TextRequest, Answer] = field(default_factory=dict)

    @staticmethod
    def of(kept: Iterable[tuple[str, Answer]]) -> TextAnswers:
        """The answers of a store."""
        return TextAnswers({TextRequest(*json.loads(key)): answer for key, answer in kept})

    def has(self, request: TextRequest, *, again: bool = False) -> bool:
        """True if there is an answer; with `again`, one that is not a failure."""
        answer = self.by_request.get(request)
        return answer is not None and not (again and "error" in answer)

    def keep(self, request: TextRequest, answer: Answer, kept: KeptValues) -> None:
        """Add an answer, after writing it to the store."""
        # An answer may have cost money, so store it before anything else.
        kept.put(json.dumps(request), answer)
        self.by_request[request] = answer

    def related(self, data: Sequence[StudyData]) -> tuple[StudyData, ...]:
        """The data with graphs of the new relations."""
        graphs: dict[tuple[str, int], dict[tuple[str, str], FactGraph | str]] = {}
        merged: dict[tuple[str, int], FactGraph] = {}
        by_name = {dataset.name: dataset.graphs for dataset in data}
        # Use all kept answers, even if this run did not request them.
        for request, answer in self.by_request.items():
            if request.key != RELATIONS or request.response < 0:
                continue
            response = (request.dataset, request.response)
            if response not in merged:
                graph = by_name[request.dataset][request.response]
                # Relations refer to merged contexts, so merge the graph in the same way.
                merged[response] = merge_duplicate_contexts(graph)
            by_view = graphs.setdefault(response, {})
            # An error replaces the graph, and fails the units that use it.
            by_view[request.title, request.variant] = answer.get("error") or _with_mean_taken_out(
                replace(
                    merged[response],
                    relations=tuple(_relations(answer["found"])),
                    metadata={
                        **merged[response].metadata,
                        METADATA_KEY: {"missing": answer.get("lost", []), **_mark_of(answer)},
                    },
                ),
                self.by_request.get(request._replace(response=MEAN)),
            )
        if not graphs:
            return tuple(data)
        # For responses without requests.
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

    def keep_means(
        self, models: Iterable[TextModel], data: Sequence[StudyData], kept: KeptValues
    ) -> None:
        """Keep the mean answer of each model with a batch correction, once all answers are there.

        A kept mean does not change, so that later repeated units get the same correction as the
        others.
        """
        by_title = {model.title: model for model in models if model.correction == BATCH}
        if not by_title:
            return
        answered: dict[TextRequest, list[tuple[float, float, float]]] = {}
        for dataset in self.related(data):
            for by_view in dataset.related:
                for (title, view), graph in by_view.items():
                    of_all = TextRequest(RELATIONS, title, dataset.name, view, MEAN)
                    if title in by_title and not self.has(of_all):
                        shares = answered.setdefault(of_all, [])
                        shares += [] if isinstance(graph, str) else evidence_distributions(graph)
        for of_all, shares in answered.items():
            bias = smoothed_mean(shares).tolist() if shares else None
            least = by_title[of_all.title].facts["least"]
            self.keep(of_all, {"bias": bias, "least": least}, kept)

    def unit(self, cell: int, request: TextRequest) -> UnitResult:
        """Result of a unit of an assessor."""
        answer = self.by_request[request]
        if "error" in answer:
            return UnitResult(cell, request.response, FAILED, error=answer["error"])
        p = [np.nan if p_true is None else p_true for *_, p_true, _ in answer["found"]]
        return UnitResult(
            cell, request.response, JUDGED, p=np.array(p, dtype=np.float64), log_z_kind="none"
        )


class TextUse(NamedTuple):
    """Use of a text model in a run: its requests over all responses, and their cost.

    Attributes:
        model: the text model.
        facts: entries of the manifest. `responses`, counted again for each variant of a relation
            model; `asked`, pairs or claims; `missing`, those without an answer; `dropped`, claims
            that the assessor takes out of the score; `failed`, responses without any answer. For a
            language model also the parameters that it does not take, `not_sent`, and answers,
            tokens and US dollars; an answer from the cache costs as much as when it was new.
            `origins`: the number of relations by the origin of their probabilities. `fallbacks`:
            [origin, reason, number] of answers without a probability from log-probabilities.
            `probe`: result of the probe of a language model. `in_sample`: for the lexical model,
            the number of passages, with labeled claims, to which it was fitted.
        reason: reason of the first missing answer or failed response.
        calls: calls of a language model by stage, over all runs.
    """

    model: TextModel
    facts: Mapping[str, Any]
    reason: str
    calls: Mapping[str, StageCalls]


def text_models(loaded: LoadedStudy) -> tuple[TextModel, ...]:
    """The text models of a study, not yet loaded.

    Raises:
        InputError: if a file or folder of a model or of prompts is missing or invalid.
    """
    study = loaded.study
    prompts = _prompts(loaded)
    models = []
    for position, choice in enumerate(study.relation_models):
        if choice.as_recorded:
            continue
        facts = _relation_facts(loaded, position, choice, prompts)
        for name, title in study.corrections_of(choice):
            wanted = _correction(loaded, name)
            corrected = facts | _correction_facts(wanted)
            models.append(TextModel(RELATIONS, position, title, corrected, wanted))
    for position, judging in enumerate(study.assessors):
        facts = {"assessor": judging.assessor, **judging.setting(study.language_model)}
        if not judging.as_recorded:
            # An edited prompt changes the answers, and therefore the plan.
            facts["prompts"] = [
                prompts.identity_of(name) for name in ASSESSORS[judging.assessor].prompts
            ]
        models.append(TextModel(ASSESSING, position, judging.title, facts))
    return tuple(models)


def check_texts(
    loaded: LoadedStudy, models: Sequence[TextModel], data: Iterable[StudyData]
) -> None:
    """Check that every dataset has the texts that text models read.

    Raises:
        InputError: if a dataset has no texts.
    """
    related = [model for model in models if model.key == RELATIONS]
    models = [model for model in models if model.facts.get("assessor") != RECORDED]
    for position, dataset in enumerate(data):
        for what, reading, texts_of in (
            ("claims", models, lambda graph: graph.column("atoms", "text")),
            ("contexts", related, lambda graph: [each.content for each in graph.contexts]),
        ):
            # Reading a large dataset takes long, and most studies have no text model.
            graphs = dataset.graphs if reading else ()
            texts = [text for graph in graphs for text in texts_of(graph)]
            # Refuse only datasets without any text; single empty texts are left to the model.
            if texts and not any(text.strip() for text in texts):
                raise InputError(
                    f"{loaded.blame(f'datasets[{position}]')}: the {what} of {dataset.name!r} have "
                    f"no texts, which {reading[0].title!r} ({reading[0].key_path}) reads; leave "
                    "one of the two out"
                )


def open_models(
    loaded: LoadedStudy, models: Iterable[TextModel], ledger: Ledger
) -> tuple[OpenedTextModel, ...]:
    """Load text models: local models, and language models behind their caches.

    Args:
        loaded: the study.
        models: its text models to load.
        ledger: ledger that counts the answers of language models.

    Raises:
        InputError: if a model cannot be used.
        MissingDependencyError: if a library that a model needs is not installed.
    """
    study, shared = loaded.study, loaded.study.language_model
    # Models with the same access share a client, its cache and its concurrency limit.
    behind: dict[LanguageModelChoice, Any] = {}
    prompts = _prompts(loaded)
    opened: list[OpenedTextModel] = []
    for model in models:
        choice: RelationModelChoice | AssessorChoice = (
            study.relation_models if model.key == RELATIONS else study.assessors
        )[model.position]
        access = choice.resolved(shared)
        consumption = None
        facts = model.facts
        judges = model.key == ASSESSING
        asks = facts["assessor"] != RECORDED if judges else facts["model"] == "prompted"
        if access is not None and asks:
            if access not in behind:
                behind[access] = _language_model(loaded, model, access, ledger)
            consumption = Consumption(behind[access])
        relations = correction = probe = None
        if consumption is not None and judges and study.probe:
            probe = partial(probe_model, WithPrompts(consumption, prompts), facts["assessor"])
        # Assessors need only the language model: their prompts come with each call.
        if isinstance(choice, RelationModelChoice):

            def judging(
                asked: LanguageModel | None, choice: RelationModelChoice = choice
            ) -> RelationModel:
                return build_relation_model(
                    choice.model,
                    path=_path(loaded, choice),
                    model=asked,
                    method=choice.method,
                    samples=choice.samples,
                    openness=choice.openness,
                    prompt=choice.prompt,
                )

            asked = None if consumption is None else WithPrompts(consumption, prompts)
            try:
                relations = judging(asked)
                correction = resolved_correction(model.correction, relations, asked, judging)
            except InputError as error:
                raise InputError(f"{loaded.blame(model.key_path)}: {error}") from None
            if correction is not None and correction.name != BATCH:
                relations = CorrectedRelations(relations, correction)
            if asked is not None and study.probe:
                probe = partial(_probed_relations, asked, judging, model.correction)
        opened.append(OpenedTextModel(model, relations, consumption, prompts, correction, probe))
    return tuple(opened)


def _probed_relations(
    model: LanguageModel,
    judging: Callable[[LanguageModel], RelationModel],
    correction: str | RelationCorrection,
) -> ProbeResult | None:
    result = probe_language_model_relations(model, judging)
    return None if result is None else with_correction(result, correction)


def probe_request(model: TextModel) -> TextRequest:
    """Key of the answer that is the probe of a text model."""
    return TextRequest(model.key, model.title, "", "", PROBED)


def probe_texts(opened: Iterable[OpenedTextModel]) -> Iterator[tuple[TextRequest, Answer]]:
    """Yield the probe of each text model that is probed.

    An outage leaves the evidence unknown and does not end the run, as with a response.

    Raises:
        InputError: for errors that the user must fix, such as a missing key.
    """
    for text_model in opened:
        if text_model.probe is None:
            continue
        try:
            result = text_model.probe()
            answer = _without_probe("the cache has no answers to it")
            if result is not None:
                answer = {
                    "asked": result.answered,
                    "correct": result.correct,
                    "evidence": result.usable,
                    # The others name options of commands, which a study does not have.
                    "remark": next(probe_sentences([result])),
                }
        except UnansweredProbeError as error:
            answer = _without_probe(sentence(error))
        yield probe_request(text_model.model), answer


def _without_probe(reason: str) -> Answer:
    remark = f"The probe has no answer ({reason}): whether the answers are evidence is not known."
    return {"error": reason, "remark": remark}


def text_request_of(cell: StudyCell) -> TextRequest | None:
    """Template of the request to a text model before the units of a cell, without a response.

    None if relations are the data's own.
    """
    if cell.algorithm.assessor:
        return TextRequest(ASSESSING, cell.algorithm.title, cell.dataset, "", -1)
    if cell.view.relation_model == RECORDED:
        return None
    return TextRequest(RELATIONS, cell.view.relation_model, cell.dataset, cell.view.variant, -1)


def n_asked(
    requests: Iterable[TextRequest], data: Sequence[StudyData], models: Iterable[TextModel]
) -> dict[str, tuple[int, str]]:
    """Number of pairs or claims that each text model is asked about, by its title.

    Recorded verdicts need no calls and are left out.
    """
    recorded = {model.title for model in models if model.facts.get("assessor") == RECORDED}
    by_name = {dataset.name: dataset.graphs for dataset in data}
    # By response: only its widest variant needs new answers.
    widest: dict[tuple[str, str, str, int], str] = {}
    # In reverse order the widest variant comes last and wins; its pairs include those of the
    # others.
    for request in sorted(set(requests), key=_order, reverse=True):
        if request.key != ASSESSING or request.title not in recorded:
            widest[request.key, request.title, request.dataset, request.response] = request.variant
    counts: dict[str, tuple[int, str]] = {}
    for (key, title, dataset, response), variant in widest.items():
        graph = by_name[dataset][response]
        if key == RELATIONS:
            asked, what = len(relation_pairs(merge_duplicate_contexts(graph), variant)), "pair"
        else:
            asked, what = len(graph.atoms), "claim"
        counts[title] = (counts.get(title, (0, ""))[0] + asked, what)
    return counts


def probe_calls_of(study: Study, models: Iterable[TextModel]) -> int:
    """Number of calls of the probes of a study, at one answer per question."""
    probed: dict[str, str] = {}
    for model in models:
        name = model.facts.get("assessor", RELATIONS_PROBE)
        if name != RECORDED and model.facts.get("model", "prompted") == "prompted":
            # The corrections of one relation model share its probe.
            probed[model.key_path] = name
    return sum(map(probe_calls, probed.values())) if study.probe else 0


def ask_texts(
    requests: Iterable[TextRequest],
    data: Sequence[StudyData],
    opened: Iterable[OpenedTextModel],
) -> Iterator[tuple[TextRequest, Answer]]:
    """Yield the requested answers.

    The relations of all variants of a response are found before the next response, the widest
    variant first, so that no pair is asked twice.

    Raises:
        InputError: for mistakes that the user must correct: a missing key, a replay without
            answers.
    """
    by_name = {dataset.name: dataset.graphs for dataset in data}
    by_title = {
        (opened_model.model.key, opened_model.model.title): opened_model for opened_model in opened
    }
    remembering: tuple[TextRequest, CachedRelations] | None = None
    for request in sorted(set(requests), key=_order):
        opened_model = by_title[request.key, request.title]
        graph = by_name[request.dataset][request.response]
        of_all = request._replace(variant="")
        # The variants of a response are adjacent, so only one response is remembered at a time.
        if opened_model.relations is not None and (remembering is None or remembering[0] != of_all):
            # A missing answer is a result of the run until `--retry-failed`.
            cached = CachedRelations(opened_model.relations, batch=None, keep_missing=True)
            remembering = (of_all, cached)
        try:
            # An InputError (a key, a replay) ends the run, because the user must correct it; any
            # other error concerns only this response.
            if opened_model.relations is None or remembering is None:
                answer = _verdicts(graph, opened_model)
            else:
                least = opened_model.model.facts["least"]
                answer = _found_relations(
                    *(graph, remembering[1], request.variant, least), opened_model.correction
                )
        except InputError:
            raise
        except Exception as error:
            answer = {"error": sentence(error)}
        if opened_model.consumption is not None:
            # Take usage after each response, so that the store has the cost of each answer.
            answer["consumption"] = opened_model.consumption.take()
            answer["not_sent"] = sorted(lacking_parameters(opened_model.consumption))
        yield request, answer


def uses(
    models: Iterable[TextModel], answers: TextAnswers, data: Sequence[StudyData]
) -> tuple[TextUse, ...]:
    """Use of each text model of a study."""
    text_uses = []
    for model in models:
        answered = {
            request: answers.by_request[request]
            for request in sorted(answers.by_request)
            if (request.key, request.title) == (model.key, model.title) and request.response >= 0
        }
        fitted = model.key == RELATIONS and model.facts["model"] == "lexical"
        known = _in_sample(answered, data) if fitted else 0
        probed = answers.by_request.get(probe_request(model))
        text_uses.append(_use(model, list(answered.values()), known, probed))
    return tuple(text_uses)


def _in_sample(requests: Iterable[TextRequest], data: Sequence[StudyData]) -> int:
    """Number of passages in the training data of the lexical model."""
    from experiments.evaluators.relation_quality import in_sample, passages_of

    by_name = {dataset.name: dataset.graphs for dataset in data}
    responses = {(request.dataset, request.response) for request in requests}
    read = (passages_of(by_name[name][response]) for name, response in responses)
    return in_sample(frozenset[str]().union(*read))


def facts_of(texts: Iterable[TextUse]) -> dict[str, dict[str, Any]]:
    """Manifest entries of text models, by key of the study and title."""
    facts: dict[str, dict[str, Any]] = {}
    for text in texts:
        facts.setdefault(text.model.key, {})[text.model.title] = text.facts
    return facts


def content_hashes(answers: TextAnswers) -> dict[str, dict[str, dict[str, str]]]:
    """Hashes of new relations, by dataset, relation model and variant."""
    digests: dict[tuple[str, str, str], Any] = {}
    # Sorted, so that the hash does not depend on the order of answers.
    for request in sorted(answers.by_request):
        if request.key == RELATIONS and request.response != PROBED:
            digest = digests.setdefault(
                (request.dataset, request.title, request.variant), hashlib.sha256()
            )
            answer = answers.by_request[request]
            content = [request.response, answer.get("found"), answer.get("error")]
            if request.response == MEAN:
                content = [answer["bias"], answer["least"]]
            digest.update(json.dumps(content).encode())
    hashes: dict[str, dict[str, dict[str, str]]] = {}
    for (dataset, title, variant), digest in digests.items():
        hashes.setdefault(dataset, {}).setdefault(title, {})[variant] = digest.hexdigest()
    return hashes


def _language_model(
    loaded: LoadedStudy, model: TextModel, access: LanguageModelChoice, ledger: Ledger
) -> Any:
    there = access.model_copy(update={"cache": loaded.folder / access.cache})
    try:
        return answering(access.model, there, ledger, there.budget)
    except InputError as error:
        raise InputError(f"{loaded.blame(model.key_path)}: {error}") from None


def _prompts(loaded: LoadedStudy) -> Prompts:
    folder = loaded.study.prompts
    try:
        return read_prompts(None if folder is None else loaded.folder / folder)
    except InputError as error:
        raise InputError(f"{loaded.blame('prompts')}: {error}") from None


def _relation_facts(
    loaded: LoadedStudy, position: int, choice: RelationModelChoice, prompts: Prompts
) -> dict[str, Any]:
    try:
        facts = relation_model_facts(
            choice.model,
            path=_path(loaded, choice),
            method=choice.method,
            samples=choice.samples,
            openness=choice.openness,
            prompt=choice.prompt,
            prompts=prompts,
        )
    except InputError as error:
        raise InputError(f"{loaded.blame(f'{RELATIONS}[{position}].path')}: {error}") from None
    access = choice.resolved(loaded.study.language_model)
    asked = {} if choice.model != "prompted" or access is None else {"language_model": access.model}
    return {"model": choice.model, **asked, "least": choice.least, **facts}


def _correction(loaded: LoadedStudy, name: str) -> str | RelationCorrection:
    """A correction by its name, or from the file of that name in the study's folder."""
    try:
        return name if name in NAMED else read_correction(loaded.folder / name)
    except InputError as error:
        raise InputError(f"{loaded.blame('relation_correction')}: {error}") from None


def _correction_facts(wanted: str | RelationCorrection) -> dict[str, Any]:
    if isinstance(wanted, RelationCorrection):
        return {"correction": wanted.facts}
    return {} if wanted == NONE else {"correction": {"name": wanted}}


def _path(loaded: LoadedStudy, choice: RelationModelChoice) -> Path | None:
    return None if choice.path is None else loaded.folder / choice.path


def _order(request: TextRequest) -> tuple[Any, ...]:
    """Sort key: by text model; within a response the widest variant first, which narrower ones
    reuse."""
    widest_first = -EXTRACTED_VARIANTS.index(request.variant) if request.variant else 0
    return request.key, request.title, request.dataset, request.response, widest_first


def _found_relations(
    graph: FactGraph,
    model: RelationModel,
    variant: str,
    least: float,
    correction: RelationCorrection | None,
) -> Answer:
    """New relations of a response as JSON values, or the reason for missing ones."""
    # A correction by the mean comes later, and applies to both orders of two contexts.
    unite = correction is None or correction.name != BATCH
    related = with_relations(
        merge_duplicate_contexts(graph), model, variant, least=least, unite=unite
    )
    if correction is not None:
        related = correction.marked(related)
        if relations_mark(related) is LearnedFrom.THIS_RESPONSE:
            return {
                "error": f"response {graph.id!r}: its own labels trained the correction "
                f"{correction.name} and cannot score its results; leave the response out of "
                "the data, or learn the correction from other responses"
            }
    facts = related.metadata[METADATA_KEY]
    missing, asked = facts["missing"], facts["asked"]
    # A response without any answer is a failure, not a response without relations.
    if asked and len(missing) == asked:
        return {
            "error": f"none of {asked} relations was found: {missing[0][2]}",
            **{"asked": asked, "missing": asked},
        }
    relations = [
        [r.source, r.target, str(r.kind), r.probability, r.distribution]
        # Without a correction, the format is that of earlier versions.
        + ([] if r.uncorrected is None else [r.uncorrected])
        for r in related.relations
    ]
    reasons = [reason for *_, reason in missing]
    counts = _counted(relations, asked, reasons)
    also = {name: facts[name] for name in ("fallbacks", LEARNED_FROM) if name in facts}
    if correction is not None:
        also |= {"correction": correction.facts, "judge": model.name}
    return {**counts, "lost": missing, "origins": facts["origins"], **also}


def _mark_of(answer: Answer) -> dict[str, Any]:
    return {LEARNED_FROM: answer[LEARNED_FROM]} if LEARNED_FROM in answer else {}


def _with_mean_taken_out(graph: FactGraph, mean: Answer | None) -> FactGraph:
    """Graph with relations divided by the mean answer; unchanged if no mean was kept."""
    if mean is None:
        return graph
    bias = mean["bias"]
    correction = RelationCorrection(BATCH, None if bias is None else tuple(bias))
    return with_corrected_relations(
        graph,
        lambda shares: correction.corrected(np.array(shares)).tolist(),
        least=mean["least"],
    )


def _relations(recorded: Iterable[Sequence[Any]]) -> Iterator[Relation]:
    # Answers of earlier versions have no distribution.
    for source, target, kind, probability, *shares in recorded:
        distribution, uncorrected = (
            tuple(each) if each is not None else None for each in (*shares, None, None)[:2]
        )
        yield Relation(source, target, RelationKind(kind), probability, distribution, uncorrected)


def _verdicts(graph: FactGraph, opened: OpenedTextModel) -> Answer:
    """An assessor's verdicts on a response as JSON values, or the reason for missing ones."""
    facts = opened.model.facts
    if facts["assessor"] == RECORDED:
        return _recorded_verdicts(graph, facts["of"] or "")
    if opened.consumption is None:
        raise InputError(f"{opened.model.key_path}: the assessor has no language model; name one")
    verdicts = assess(
        graph,
        facts["assessor"],
        WithPrompts(opened.consumption, opened.prompts),
        all_contexts=facts["all_contexts"],
        expected=facts["expected"],
    )
    reasons = [verdict.missing for verdict in verdicts if verdict.missing]
    if verdicts and len(reasons) == len(verdicts):
        return {
            "error": f"none of {len(reasons)} claims has a verdict: {reasons[0]}",
            **{"asked": len(reasons), "missing": len(reasons)},
        }
    answers = [[v.atom, v.label, v.probability, v.p_true, v.missing] for v in verdicts]
    return {**_counted(answers, len(answers), reasons), **verdict_fallbacks(verdicts)}


def _recorded_verdicts(graph: FactGraph, name: str) -> Answer:
    """The recorded verdicts of a response as JSON values, or the reason for missing ones."""
    try:
        verdicts = verdicts_of(graph, name)
        marks = recorded_marks(graph)
    except InputError as error:
        return {"error": str(error)}
    # Without a name, there is only one assessor.
    if marks.get(name or next(iter(marks), "")) is LearnedFrom.THIS_RESPONSE:
        return {
            "error": f"response {graph.id!r}: its own labels trained these verdicts and cannot "
            "score them; leave it out of the data, or give cross-fitted posteriors from "
            "factormodels fit"
        }
    absent = "no verdict was recorded"
    answers = [
        [atom, verdict.label, None, verdict.p_true, ""]
        if (verdict := verdicts.get(atom)) is not None
        else [atom, "", None, None, absent]
        for atom in graph.atom_ids
    ]
    return _counted(answers, len(answers), [absent for *_, missing in answers if missing])


def _counted(answers: list[Any], asked: int, reasons: list[str]) -> Answer:
    missing = {"reason": reasons[0]} if reasons else {}
    return {"found": answers, "asked": asked, "missing": len(reasons), **missing}


def _use(
    model: TextModel, answers: Sequence[Answer], in_sample: int, probed: Answer | None
) -> TextUse:
    """The counts of a text model over all its answers."""
    failed = [answer["error"] for answer in answers if "error" in answer]
    answered = [answer for answer in answers if "error" not in answer]
    dropped = 0
    if model.key != RELATIONS:
        verdicts = [verdict for answer in answered for verdict in answer["found"]]
        # The assessor answered with a verdict that excludes the claim from the score.
        dropped = sum(bool(label) and p is None for _, label, _, p, _ in verdicts)
    # Over all kept answers, from this run or an earlier one.
    stages = [stage for answer in answers for stage in answer.get("consumption", {}).values()]
    asked_a_model = any("consumption" in answer for answer in answers)
    facts = {
        **model.facts,
        "responses": len(answers),
        # A response that failed before any call has no counts.
        "asked": sum(answer.get("asked", 0) for answer in answers),
        "missing": sum(answer.get("missing", 0) for answer in answers),
        "dropped": dropped,
        "failed": len(failed),
    }
    if asked_a_model:
        facts["not_sent"] = sorted({name for a in answers for name in a.get("not_sent", ())})
    # All responses share a correction that the probe chose or that was learned.
    facts |= next(
        (
            {name: answer[name] for name in ("correction", "judge")}
            for answer in answered
            if "correction" in answer
        ),
        {},
    )
    origins = sum((Counter(answer.get("origins", {})) for answer in answers), Counter[str]())
    facts |= {"origins": dict(origins)} if origins else {}
    fallbacks: Counter[tuple[str, str]] = Counter()
    for answer in answers:
        for origin, reason, count in answer.get("fallbacks", ()):
            fallbacks[origin, reason] += count
    facts |= counted_fallbacks(fallbacks.elements())
    facts |= {"in_sample": in_sample} if in_sample else {}
    if probed is not None:
        facts["probe"] = probed
    # A response without any answer is more informative than a single missing answer.
    reason = next(iter([*failed, *(a["reason"] for a in answered if "reason" in a)]), "")
    calls = calls_of_responses(answer.get("consumption", {}) for answer in answers)
    return TextUse(model, facts | (total(stages) if asked_a_model else {}), reason, calls)
