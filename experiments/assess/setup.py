"""From what a user asks for to the stages, views and settings of an assessment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from experiments.assess.relation_models_by_name import build_relation_model, relation_model_facts
from experiments.assess.response import AssessmentView
from experiments.assess.retrievers_by_name import (
    GIVEN,
    RETRIEVERS,
    SearchOptions,
    build_retriever,
)
from experiments.assess.threads import LocalRelations
from experiments.settings import Option
from factormodels.encodings import get_encoding
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.language_model.prices import Prices
from factormodels.extraction.pipeline import (
    Stage,
    assessor_stage,
    atomizer_stage,
    relation_stage,
    retrieval_stage,
    reviser_stage,
    sentences_stage,
    summary_stage,
)
from factormodels.extraction.prompts.replaced import Prompts, prompts_of
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.extraction.relation_models.prompted import chosen_method
from factormodels.extraction.retrieval.base import Retriever
from factormodels.extraction.safe import NAME as SAFE
from factormodels.extraction.safe import safe_stage
from factormodels.extraction.stages.duplicates import merge_duplicate_atoms
from factormodels.extraction.stages.relations import EXTRACTED_VARIANTS, LEAST_PROBABILITY
from factormodels.fact_graph import FactGraph
from factormodels.validation import validated_probability
from inference import Backend

ATOMS = ("given", "sentences", "model")
RELATIONS = ("lexical", "model", "recorded:FILE", "nli:FOLDER")


@dataclass(frozen=True, kw_only=True)
class AssessmentOptions(SearchOptions):
    """What a user asks for, of the search for evidence and beside it; None: the input decides.

    Attributes:
        model: the language model; None where none is wanted.
        atoms: one of `ATOMS`.
        stride: sentences per call of the atomizer: a number, or "all".
        revise: whether the language model rewrites atoms to be understood alone; None: those that
            it listed.
        queries: whether the language model writes the searches.
        question_contexts: whether the question is searched for, beside the atoms.
        method: where the language model's probabilities of relations come from: automatic (as the
            model allows), logprobs, verbalised or samples.
        retriever: "given", or one of `experiments.assess.retrievers_by_name.RETRIEVERS`.
        summarise: whether the language model cuts passages down to what bears on their claims.
        relations: one of `RELATIONS`.
        window: tokens that the language model takes; None for what is known of it.
        least: the least probability of an entailment or contradiction that counts.
        variants: the variants that are compared.
        encoding: encoding of relations.
        assessors: names of assessors that judge the claims by prompts, beside the graph.
        prices: what tokens of the language model cost; None: as litellm knows.
    """

    model: LanguageModel | None = None
    atoms: str | None = None
    stride: str = "all"
    revise: bool | None = None
    queries: bool = False
    question_contexts: bool = False
    method: str = "automatic"
    retriever: str | None = None
    summarise: bool = False
    relations: str | None = None
    window: int | None = None
    least: float = LEAST_PROBABILITY
    variants: tuple[str, ...] = ("FR2",)
    encoding: str = "implication"
    assessors: tuple[str, ...] = ()
    prices: Prices | None = None


@dataclass(frozen=True)
class Choices:
    """What is done, with nothing left open.

    Attributes:
        atoms: one of `ATOMS`.
        stride: sentences per call of the atomizer; None for all.
        revise: whether atoms are rewritten.
        retriever: "given", or one of `experiments.assess.retrievers_by_name.RETRIEVERS`.
        top_k: passages per query; 0 for the retriever "given".
        searcher: the retriever; None for "given".
        relations: one of `RELATIONS`.
        method: where the language model's probabilities of relations come from, "automatic" no
            more.
        samples: its answers per pair, for the method "samples".
        judge: the relation model.
        widest: the variant that relations are asked for: they hold those of the others.
        model: name of the language model; empty if there is none.
        prompts: what the language model is asked with.
        options: what was asked for.
    """

    atoms: str
    stride: int | None
    revise: bool
    retriever: str
    top_k: int
    searcher: Retriever | None
    relations: str
    method: str
    samples: int
    judge: RelationModel
    widest: str
    model: str
    prompts: Prompts
    options: AssessmentOptions

    @property
    def asks_nobody(self) -> bool:
        """Whether nobody is asked, so that nothing is gained by waiting side by side."""
        return not self.model and self.retriever in (GIVEN, "local")


@dataclass(frozen=True)
class AssessmentPlan:
    """How responses are assessed.

    Attributes:
        stages: what makes their graphs.
        views: how these become posteriors.
        settings: JSON values that results depend on.
        choices: what the stages do.
    """

    stages: tuple[Stage, ...]
    views: tuple[AssessmentView, ...]
    settings: dict[str, Any]
    choices: Choices


def make_plan(
    graphs: Sequence[FactGraph], options: AssessmentOptions, backend: Backend
) -> AssessmentPlan:
    """The stages, views and settings with which responses are assessed.

    Raises:
        InputError: for an unknown name, or options that do not fit the input or each other.
        MissingDependencyError: if a stage needs a library that is not installed.
    """
    least = validated_probability(options.least, "--least")
    views = tuple(
        AssessmentView(name, options.encoding, backend) for name in _variants(options.variants)
    )
    get_encoding(options.encoding)
    atoms = _atoms(graphs, options)
    revise = atoms == "model" if options.revise is None else options.revise
    retriever = _retriever_name(graphs, options, atoms)
    relations = options.relations or ("lexical" if options.model is None else "model")
    stages: list[Stage] = []
    # Whatever changes a result stands here: a journal is gone on with only under equal settings.
    settings: dict[str, Any] = {
        "atoms": atoms,
        "retriever": retriever,
        "relations": relations,
        "variants": list(options.variants),
        "encoding": options.encoding,
        "least": least,
        # The repr holds all settings, as backends are dataclasses.
        "backend": repr(backend),
    }
    # Without a model its settings mean nothing, and must not keep a batch from going on.
    if options.model is not None:
        settings |= _model_facts(options, options.model, revise)
    stride = stride_of(options.stride, "--stride")
    if atoms == "sentences":
        stages.append(sentences_stage())
    elif atoms == "model":
        stages.append(atomizer_stage(_model(options, "--atoms model"), stride))
    if revise:
        stages.append(reviser_stage(_model(options, "--revise")))
    # Only now, since revision may make two claims one, and before anything is asked about them.
    stages.append(merge_duplicate_atoms)
    searcher: Retriever | None = None
    if retriever != GIVEN:
        searcher, facts = build_retriever(retriever, graphs, options)
        writer = _model(options, "--queries") if options.queries else None
        if options.question_contexts and not any(graph.query.strip() for graph in graphs):
            raise InputError("--question-contexts: no response has a question; give --query")
        stages.append(retrieval_stage(searcher, writer, for_question=options.question_contexts))
        settings |= {**facts, "question_contexts": options.question_contexts}
    else:
        for name, chosen in (
            ("--queries", options.queries),
            ("--question-contexts", options.question_contexts),
        ):
            if chosen:
                raise InputError(
                    f"{name}: nothing is searched with --retriever given; leave one out"
                )
    if options.summarise:
        log_probabilities = _chosen_method(options) == "logprobs"
        summarising = _model(options, "--summarise")
        stages.append(summary_stage(summarising, log_probabilities=log_probabilities))
        settings["summarise"] = True
    model, facts = relation_model(relations, options)
    settings |= facts
    # The relations of the widest variant hold those of the others.
    widest = max(options.variants, key=EXTRACTED_VARIANTS.index)
    shared = model if relations == "model" else LocalRelations(model)
    told = facts
    if relations == "model":
        method: Any = options.method
        asked = prompts_of(options.model)
        told = facts | relation_model_facts("prompted", method=method, prompts=asked)
    stages.append(relation_stage(shared, widest, least, told))
    if options.assessors:
        if len(set(options.assessors)) < len(options.assessors):
            given = ", ".join(options.assessors)
            raise InputError(f"--assessor {given}: one is given twice; keep one")
        judge = _model(options, "--assessor")
        by_prompt = [name for name in options.assessors if name != SAFE]
        stages.append(assessor_stage(by_prompt, judge))
        if SAFE in options.assessors:
            if searcher is None:
                raise InputError(
                    "--assessor safe searches by itself; name --retriever wikipedia or google, or "
                    "--retriever local with --documents"
                )
            stages.append(safe_stage(judge, searcher))
        settings["assessors"] = list(options.assessors)
    choices = Choices(
        atoms=atoms,
        stride=stride,
        revise=revise,
        retriever=retriever,
        top_k=settings.get("top_k", 0),
        searcher=searcher,
        relations=relations,
        method=_chosen_method(options),
        # Only the prompted model has them.
        samples=getattr(model, "samples", 1),
        judge=model,
        widest=widest,
        model="" if options.model is None else options.model.name,
        prompts=prompts_of(options.model),
        options=options,
    )
    return AssessmentPlan(tuple(stages), views, settings, choices)


def _variants(names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name not in EXTRACTED_VARIANTS:
            raise InputError(
                f"the variant {name!r} is unknown; use one of {', '.join(EXTRACTED_VARIANTS)}"
            )
    if len(set(names)) < len(names):
        raise InputError(f"--variant {', '.join(names)}: one is given twice; keep one")
    return names


def _atoms(graphs: Sequence[FactGraph], options: AssessmentOptions) -> str:
    """Where claims come from: as asked for, or as the input allows; checked against it."""
    given = any(graph.atoms for graph in graphs)
    # What makes atoms if the input has none.
    without = "sentences" if options.model is None else "model"
    name = options.atoms or ("given" if given else without)
    if name not in ATOMS:
        raise InputError(f"--atoms {name!r} is unknown; use one of {', '.join(ATOMS)}")
    if name == "given" and not given:
        raise InputError(f"--atoms given: the input holds no atoms; use --atoms {without}")
    if name != "given":
        for graph in graphs:
            if not graph.response.strip():
                raise InputError(
                    f"--atoms {name}: the response {graph.id!r} has no text to take claims from; "
                    "use --atoms given"
                )
    return name


def _retriever_name(graphs: Sequence[FactGraph], options: AssessmentOptions, atoms: str) -> str:
    """Where evidence comes from: as asked for, or as the input allows; checked against it."""
    passages = any(graph.contexts for graph in graphs)
    name = options.retriever
    if name is None:
        if options.documents is not None:
            name = "local" if options.embeddings is None else "dense"
        elif passages:
            # Passages found for the input's own atoms fit no others; as documents they can be
            # searched.
            name = "given" if atoms == "given" else "local"
        else:
            raise InputError(
                "there is no evidence: name a folder with --documents, or a source with "
                "--retriever wikipedia or google"
            )
    if name not in (GIVEN, *RETRIEVERS):
        subject = f"--retriever {name!r}"
        raise InputError(unknown_name(subject, name, (GIVEN, *RETRIEVERS)))
    if name == "given" and not passages:
        raise InputError("--retriever given: the input holds no passages; name another source")
    if name == "given" and "FR1" in options.variants and not _has_provenance(graphs):
        raise InputError(
            "--variant FR1: the input does not say which claim a passage was retrieved for; use "
            "--variant FR2, or --retriever local to search the passages anew"
        )
    if name == "given" and atoms != "given":
        raise InputError(
            f"--retriever given: the passages were found for the atoms of the input, and --atoms "
            f"is {atoms}; use --retriever local to search them anew"
        )
    reads_documents = name != GIVEN and RETRIEVERS[name].reads_documents
    if reads_documents and options.documents is None and not passages:
        raise InputError(f"--retriever {name}: name a folder of documents with --documents")
    if not reads_documents and options.documents is not None:
        raise InputError(f"--documents is for --retriever local, not for {name}; leave one out")
    return name


def _has_provenance(graphs: Iterable[FactGraph]) -> bool:
    return any(context.retrieved_for for graph in graphs for context in graph.contexts)


def _chosen_method(options: AssessmentOptions) -> str:
    """Where probabilities of relations come from, by what the model is known to take."""
    if options.method != "automatic" or options.model is None:
        return options.method
    return chosen_method("automatic", options.model)


def _model(options: AssessmentOptions, option: str) -> LanguageModel:
    if options.model is None:
        raise InputError(f"{option} needs a language model; name one with --model")
    return options.model


def _model_facts(options: AssessmentOptions, model: LanguageModel, revise: bool) -> dict[str, Any]:
    return {
        "model": model.name,
        "stride": options.stride,
        "revise": revise,
        "queries": options.queries,
        "method": options.method,
        "prompts": prompts_of(model).digests(),
    }


Stride = Annotated[str, Option("W"), BeforeValidator(str)]
"""Sentences per call: a number, or "all"."""


def stride_of(text: str, option: str) -> int | None:
    """Sentences per call as an option says them; None for all.

    Raises:
        InputError: for what is not a number from 1, nor "all".
    """
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"{option} {text!r} is not a number of sentences; give one from 1, or all")
    return int(text)


def relation_model(
    name: str, options: AssessmentOptions, labels: Mapping[str, str] | None = None
) -> tuple[RelationModel, dict[str, Any]]:
    """The relation model that a name of `RELATIONS` stands for, with the facts results depend on.

    Args:
        name: one of `RELATIONS`.
        options: what a language model is asked with, where it is one.
        labels: relation of each label of an NLI model, where their names do not tell.

    Raises:
        InputError: for an unknown name, or a model that is not there.
        MissingDependencyError: if it needs a library that is not installed.
    """
    kind, _, place = name.partition(":")
    if name == "model":
        method: Any = options.method
        model = _model(options, "--relations model")
        # Without facts of its own: `_model_facts` has its name, method and prompts.
        window = options.window
        built = build_relation_model("prompted", model=model, method=method, window=window)
        return built, {} if window is None else {"window": window}
    if name == "lexical":
        return build_relation_model(name), {}
    if kind in ("recorded", "nli") and place:
        path = Path(place)
        facts = relation_model_facts(kind, path=path)
        built = build_relation_model(kind, path=path, labels=labels)
        return built, {f"{kind}_sha256": facts["sha256"]}
    raise InputError(f"--relations {name!r} is unknown; use one of {', '.join(RELATIONS)}")
