"""From what a user asks for to the stages, views and settings of an assessment."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.assess.relation_models import build_relation_model, relation_model_facts
from experiments.assess.response import AssessmentView
from factormodels.encodings import get_encoding
from factormodels.errors import InputError
from factormodels.extraction.accounting import Ledger
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.litellm_model import LitellmSettings
from factormodels.extraction.pipeline import (
    Stage,
    assessor_stage,
    atomizer_stage,
    relation_stage,
    retrieval_stage,
    reviser_stage,
    sentences_stage,
)
from factormodels.extraction.prompts import load_prompt, prompt_names
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.extraction.relations import EXTRACTED_VARIANTS
from factormodels.extraction.retrieval.base import Retriever
from factormodels.extraction.retrieval.documents import Document
from factormodels.fact_graph import FactGraph
from inference import Backend

ATOMS = ("given", "sentences", "model")
RETRIEVERS = ("given", "local", "wikipedia", "google")
RELATIONS = ("lexical", "model", "recorded:FILE", "nli:FOLDER")


@dataclass(frozen=True)
class AssessmentOptions:
    """What a user asks for; None where the input decides.

    Attributes:
        model: the language model; None where none is wanted.
        atoms: one of `ATOMS`.
        stride: sentences per call of the atomizer: a number, or "all".
        revise: whether the language model rewrites atoms to be understood alone.
        queries: whether the language model writes the searches.
        method: where the language model's probabilities of relations come from.
        retriever: one of `RETRIEVERS`.
        documents: folder or file of documents for the retriever "local", or the documents.
        top_k: passages per query.
        reading: what of a web page becomes a passage.
        relations: one of `RELATIONS`.
        variants: the variants that are compared.
        encoding: encoding of relations.
        assessors: names of assessors that judge the claims by prompts, beside the graph.
        cache: file in which searches of the web are kept; None keeps none.
        replay: whether every search is taken from there.
    """

    model: LanguageModel | None = None
    atoms: str | None = None
    stride: str = "1"
    revise: bool = False
    queries: bool = False
    method: str = "logprobs"
    retriever: str | None = None
    documents: Path | tuple[Document, ...] | None = None
    top_k: int | None = None
    reading: str = "head"
    relations: str | None = None
    variants: tuple[str, ...] = ("FR2",)
    encoding: str = "implication"
    assessors: tuple[str, ...] = ()
    cache: Path | None = None
    replay: bool = False


@dataclass(frozen=True)
class Choices:
    """What is done, with nothing left open.

    Attributes:
        atoms: one of `ATOMS`.
        stride: sentences per call of the atomizer; None for all.
        revise: whether atoms are rewritten.
        queries: whether the language model writes the searches.
        retriever: one of `RETRIEVERS`.
        top_k: passages per query; 0 for the retriever "given".
        searcher: the retriever; None for "given".
        relations: one of `RELATIONS`.
        method: where the language model's probabilities of relations come from.
        samples: its answers per pair, for the method "samples".
        widest: the variant that relations are asked for: they hold those of the others.
        model: name of the language model; empty if there is none.
        assessors: names of the assessors.
    """

    atoms: str
    stride: int | None
    revise: bool
    queries: bool
    retriever: str
    top_k: int
    searcher: Retriever | None
    relations: str
    method: str
    samples: int
    widest: str
    model: str
    assessors: tuple[str, ...]


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
    views = tuple(
        AssessmentView(name, options.encoding, backend) for name in _variants(options.variants)
    )
    get_encoding(options.encoding)
    atoms = _atoms(graphs, options)
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
        # The repr holds all settings, as backends are dataclasses.
        "backend": repr(backend),
    }
    # Without a model its settings mean nothing, and must not keep a batch from going on.
    if options.model is not None:
        settings |= _model_facts(options, options.model)
    stride = stride_of(options.stride, "--stride")
    if atoms == "sentences":
        stages.append(sentences_stage())
    elif atoms == "model":
        stages.append(atomizer_stage(_model(options, "--atoms model"), stride))
    if options.revise:
        stages.append(reviser_stage(_model(options, "--revise")))
    searcher: Retriever | None = None
    if retriever != "given":
        searcher, facts = _retriever(retriever, graphs, options)
        writer = _model(options, "--queries") if options.queries else None
        stages.append(retrieval_stage(searcher, writer))
        settings |= facts
    elif options.queries:
        raise InputError("--queries: nothing is searched with --retriever given; leave one out")
    model, facts = relation_model(relations, options)
    settings |= facts
    # The relations of the widest variant hold those of the others.
    widest = max(options.variants, key=EXTRACTED_VARIANTS.index)
    stages.append(relation_stage(model, widest))
    if options.assessors:
        if len(set(options.assessors)) < len(options.assessors):
            given = ", ".join(options.assessors)
            raise InputError(f"--assessor {given}: one is given twice; keep one")
        stages.append(assessor_stage(options.assessors, _model(options, "--assessor")))
        settings["assessors"] = list(options.assessors)
    choices = Choices(
        atoms=atoms,
        stride=stride,
        revise=options.revise,
        queries=options.queries,
        retriever=retriever,
        top_k=settings.get("top_k", 0),
        searcher=searcher,
        relations=relations,
        method=options.method,
        # Only the prompted model has them.
        samples=getattr(model, "samples", 1),
        widest=widest,
        model="" if options.model is None else options.model.name,
        assessors=options.assessors,
    )
    return AssessmentPlan(tuple(stages), views, settings, choices)


def language_model(
    settings: LitellmSettings, cache: Path, ledger: Ledger, *, replay: bool = False
) -> LanguageModel:
    """The language model behind a cache, its answers counted.

    Args:
        settings: how the provider is called.
        cache: file of answers; it is made if it does not exist.
        ledger: where answers are counted.
        replay: whether to answer from the cache alone.

    Raises:
        InputError: if the cache cannot be used, or there is none to replay.
        MissingDependencyError: if litellm is not installed.
    """
    from factormodels.extraction.accounting import MeteredModel
    from factormodels.extraction.cache import AnswerCache, CachedModel
    from factormodels.extraction.litellm_model import LitellmModel

    # Metered outside the cache, so that answers from it are counted as well.
    answers = AnswerCache(cache, read_only=replay)
    provider = None if replay else LitellmModel(settings)
    return MeteredModel(CachedModel(provider, answers, name=settings.model), ledger)


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
                    f"--atoms {name}: the response {graph.id!r} has no text to take apart; use "
                    "--atoms given"
                )
    return name


def _retriever_name(graphs: Sequence[FactGraph], options: AssessmentOptions, atoms: str) -> str:
    """Where evidence comes from: as asked for, or as the input allows; checked against it."""
    passages = any(graph.contexts for graph in graphs)
    name = options.retriever
    if name is None:
        if options.documents is not None:
            name = "local"
        elif passages:
            # Passages found for the input's own atoms fit no others; as documents they can be
            # searched.
            name = "given" if atoms == "given" else "local"
        else:
            raise InputError(
                "there is no evidence: name a folder with --documents, or a source with "
                "--retriever wikipedia or google"
            )
    if name not in RETRIEVERS:
        raise InputError(f"--retriever {name!r} is unknown; use one of {', '.join(RETRIEVERS)}")
    if name == "given" and not passages:
        raise InputError("--retriever given: the input holds no passages; name another source")
    if name == "given" and atoms != "given":
        raise InputError(
            f"--retriever given: the passages were found for the atoms of the input, and --atoms "
            f"is {atoms}; use --retriever local to search them anew"
        )
    if name == "local" and options.documents is None and not passages:
        raise InputError("--retriever local: name a folder of documents with --documents")
    if name != "local" and options.documents is not None:
        raise InputError(f"--documents is for --retriever local, not for {name}; leave one out")
    return name


def _retriever(
    name: str, graphs: Sequence[FactGraph], options: AssessmentOptions
) -> tuple[Retriever, dict[str, Any]]:
    """The retriever of a name, with the facts of it that results depend on."""
    # Left out rather than None, so that each retriever has its own default.
    top: dict[str, Any] = {} if options.top_k is None else {"top_k": options.top_k}
    if name == "local":
        from factormodels.extraction.retrieval.collection import build_collection
        from factormodels.extraction.retrieval.documents import documents_of_graphs

        documents = (
            documents_of_graphs(graphs)
            if options.documents is None
            else _documents(options.documents)
        )
        local = build_collection(documents, **top)
        return local, {"top_k": local.top_k, "documents_sha256": _digest(documents)}
    from factormodels.extraction.retrieval.pages import checked_reading

    reading = checked_reading(options.reading)
    searcher: Any
    if name == "wikipedia":
        from factormodels.extraction.retrieval.wikipedia import WikipediaRetriever

        searcher = WikipediaRetriever(reading=reading, **top)
    else:
        from factormodels.extraction.retrieval.google import GoogleRetriever, serper_key

        if not options.replay:
            serper_key()  # so that its absence is told before anything is done
        searcher = GoogleRetriever(reading=reading, **top)
    facts = {"top_k": searcher.top_k, "reading": reading}
    if options.cache is None:
        return searcher, facts
    from factormodels.extraction.cache import AnswerCache
    from factormodels.extraction.retrieval.cached import CachedRetriever, search_settings

    kept = AnswerCache(options.cache, read_only=options.replay)
    return CachedRetriever(searcher, kept, search_settings(searcher), options.replay), facts


def _documents(source: Path | tuple[Document, ...]) -> tuple[Document, ...]:
    if isinstance(source, tuple):
        return source
    from experiments.study.inputs import is_dataset, read_graphs
    from factormodels.extraction.retrieval.documents import documents_of_graphs, read_documents

    if is_dataset(source):
        return documents_of_graphs(read_graphs(source))
    return read_documents(source)


def _digest(documents: Iterable[Document]) -> str:
    digest = hashlib.sha256()
    for document in documents:
        for part in (document.title, document.link, document.text):
            # With its length, so that no two lists of parts give the same text.
            digest.update(f"{len(part)} {part}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _model(options: AssessmentOptions, option: str) -> LanguageModel:
    if options.model is None:
        raise InputError(f"{option} needs a language model; name one with --model")
    return options.model


def _model_facts(options: AssessmentOptions, model: LanguageModel) -> dict[str, Any]:
    return {
        "model": model.name,
        "stride": options.stride,
        "revise": options.revise,
        "queries": options.queries,
        "method": options.method,
        "prompts": {name: load_prompt(name).identity.digest for name in prompt_names()},
    }


def stride_of(text: str, option: str) -> int | None:
    """Sentences per call as an option says them; None for all.

    Raises:
        InputError: for what is no number from 1, nor "all".
    """
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"{option} {text!r} is no number of sentences; give one from 1, or all")
    return int(text)


def relation_model(name: str, options: AssessmentOptions) -> tuple[RelationModel, dict[str, Any]]:
    """The relation model that a name of `RELATIONS` stands for, with the facts results depend on.

    Raises:
        InputError: for an unknown name, or a model that is not there.
        MissingDependencyError: if it needs a library that is not installed.
    """
    kind, _, place = name.partition(":")
    if name == "model":
        method: Any = options.method
        model = _model(options, "--relations model")
        # Without facts of its own: `_model_facts` has its name, method and prompts.
        return build_relation_model("prompted", model=model, method=method), {}
    if name == "lexical":
        return build_relation_model(name), {}
    if kind in ("recorded", "nli") and place:
        path = Path(place)
        facts = relation_model_facts(kind, path=path)
        return build_relation_model(kind, path=path), {f"{kind}_sha256": facts["sha256"]}
    raise InputError(f"--relations {name!r} is unknown; use one of {', '.join(RELATIONS)}")
