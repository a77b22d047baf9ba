"""How responses are assessed: every setting declared once, in the groups that the help shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field

from experiments.asking.settings import AskingSettings, WebSettings
from experiments.evaluators.batch import BatchSettings
from experiments.evaluators.inputs import ResponseSettings
from experiments.evaluators.retrievers_by_name import DocumentSource
from experiments.settings import Option, Settings, Words
from experiments.study.backend_settings import AlgorithmSettings
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.extraction.stages.relations import LEAST_PROBABILITY

if TYPE_CHECKING:
    pass

Stride = Annotated[str, Option("W"), BeforeValidator(str)]
"""Sentences per call: a number, or "all"."""


class CoreSettings(Settings):
    """Claims that count."""

    core: bool = False
    """Also score only the claims that count: informative, not repeated, faithful."""

    faithfulness: bool = True
    """With --core: require that a claim is entailed by its sentence, as in the code that Core's
    authors released."""

    core_relations: Annotated[str, Option("NAME")] = "lexical"
    """With --core: what decides entailment: lexical, model, nli:FOLDER or recorded:FILE."""

    domain: Annotated[str, Option("NAME")] = "people"
    """With --core: domain of the bleached claims."""


class ClaimSettings(Settings):
    """Claims."""

    atoms: Annotated[str | None, Option("NAME")] = None
    """Claims: given (as recorded), model (listed by the language model), or sentences (each
    sentence one claim)."""

    stride: Stride = "all"
    """Sentences per call that lists claims, or all."""

    revise: bool | None = None
    """Rewrite claims so that they can be understood on their own; by default only those listed by
    the language model."""


class EvidenceSettings(Settings):
    """Evidence."""

    retriever: Annotated[str | None, Option("NAME")] = None
    """Evidence: given (as recorded), local (--documents, or the input's own passages), dense (the
    same by embeddings), wikipedia, or google (key in SERPER_API_KEY)."""

    documents: DocumentSource = None
    """Documents to search: .txt, .md, .html, .pdf, .jsonl; or a dataset."""

    queries: bool = False
    """Let the language model write the searches."""

    question_contexts: bool = False
    """Also search for the question (used by FR2 and FR3)."""

    top_k: Annotated[int | None, Field(ge=1), Option("K")] = None
    """Passages per claim; 3 by default, 5 with Google."""

    reading: Annotated[str, Option("NAME")] = "head"
    """What to read of a web page: snippet, head (its first 4,000 characters) or chunks (the best
    parts)."""

    summarise: bool = False
    """Let the language model cut each passage down to what matters for its claims; its confidence
    scales the passage's prior."""

    embeddings: Annotated[str | None, Option("NAME")] = None
    """For --retriever dense: a folder of sentence-transformers, or a model as litellm spells it."""

    embeddings_base: Annotated[str | None, Option("URL")] = None
    """Address of an embedding server with a compatible API."""

    price_embeddings: Annotated[float | None, Field(ge=0), Option("USD")] = None
    """Price of a million embedded tokens; litellm's price if not given."""


class JudgementSettings(AlgorithmSettings):
    """Relations and judgement."""

    relations: Annotated[str | None, Option("NAME")] = None
    """Relation model: lexical, model, recorded:FILE or nli:FOLDER."""

    method: Annotated[str, Option("NAME")] = "automatic"
    """How to get probabilities from the language model: automatic (whatever it allows), logprobs,
    verbalised or samples."""

    window: Annotated[int | None, Field(ge=1), Option("TOKENS")] = None
    """How much the language model reads at once; longer passages are read in overlapping parts."""

    least: Annotated[float, Field(ge=0, le=1), Option("P")] = LEAST_PROBABILITY
    """Smallest probability at which a relation counts."""

    variant: Annotated[Words, Option("NAME")] = ("FR2",)
    """FR1, FR2 or FR3; repeatable."""

    assessors: Annotated[Words, Option("NAME", "assessor")] = ()
    """Let the language model also judge the claims by a prompt: factscore, factverify, veriscore,
    evidence-and-knowledge, own-knowledge or fastfact; or safe, which rewrites claims to stand alone
    and searches in steps; repeatable."""

    encoding: Annotated[str, Option("NAME")] = DEFAULT_ENCODING
    """How relations become tables: implication, conditional or mixture."""


class AssessSettings(
    ResponseSettings,
    AskingSettings,
    ClaimSettings,
    EvidenceSettings,
    WebSettings,
    JudgementSettings,
    CoreSettings,
    BatchSettings,
):
    """Assessment."""
