"""Table of all stages that ask a language model, and the assessors built from them.

To add an assessor, add a row to `ASSESSORS` and its prompt to `factormodels/extraction/prompts`. A
question before its verdict is a `Step` with its own prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from types import MappingProxyType
from typing import Any

from factormodels.claims import JUDGED_KINDS, ModelJudgment
from factormodels.discourse import Sense
from factormodels.extraction.asking.assessor import Assessor, Step, unsupported_as
from factormodels.extraction.asking.claim_faults import (
    FAILURES,
    MISSING,
    failures_of,
    missing_claims,
)
from factormodels.extraction.asking.claim_lines import read_claims
from factormodels.extraction.asking.claim_lists import claims_of_text, claims_of_value
from factormodels.extraction.asking.readings import (
    choice_at,
    flag_at,
    json_reading,
    label_reading,
    question_and_answer,
    sense_of,
    stated_label,
    text_at,
    texts_of,
    whole_text,
)
from factormodels.extraction.asking.schemas import (
    FLAG,
    INTEGER,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    list_of,
    object_of,
    one_of,
)
from factormodels.extraction.asking.self_answers import SelfSetting
from factormodels.extraction.asking.stage import (
    CLAIM_CHARACTERS,
    Calls,
    Extent,
    ModelStage,
    each_claim,
    each_search,
)
from factormodels.extraction.asking.summaries import weighed_summary

# Claims of a response, and search queries.


def _each_chunk(extent: Extent, slots: Mapping[str, str]) -> Calls:
    # A stride of None covers the whole response.
    chunks = ceil(extent.sentences / (extent.stride or max(1, extent.sentences)))
    whole = extent.response_characters
    # Each call that is shown the response repeats it; the chunks add up to the response once.
    return Calls(chunks, ("response" in slots) * whole, whole, extent.atoms)


ATOMIZER = ModelStage(
    "atomizer",
    "atomizer",
    json_reading(claims_of_value, claims_of_text),
    tokens=400,  # a sentence
    most_tokens=8000,
    usual_tokens=30,
    calls=_each_chunk,
    schema=object_of(claims=list_of(object_of(sentence=INTEGER, claim=TEXT))),
)

REVISER = ModelStage(
    "reviser",
    "reviser",
    text_at("claim"),
    tokens=300,
    usual_tokens=30,
    calls=lambda extent, _: Calls(extent.atoms, extent.response_characters),
    schema=object_of(claim=TEXT),
)

QUERIES = ModelStage(
    "queries",
    "search_query",
    text_at("query"),
    tokens=100,
    usual_tokens=15,
    calls=lambda extent, _: Calls(extent.atoms, CLAIM_CHARACTERS),
    schema=object_of(query=TEXT),
)

SUMMARIZER = ModelStage(
    "summarizer",
    "summary",
    weighed_summary,
    tokens=600,
    top_logprobs=1,
    usual_tokens=60,
    calls=lambda extent, _: Calls(
        extent.contexts - extent.samples, extent.passage_characters + extent.atom_characters
    ),
    schema=object_of(summary=TEXT_OR_NULL, confidence=NUMBER),
)

SAMPLED_ANSWER = ModelStage(
    "sampled answers",
    "sampled_answer",
    whole_text,
    tokens=2048,
    # As in SelfCheckGPT, section 5: samples of the model's own distribution.
    temperature=1.0,
    usual_tokens=1,
    calls=lambda extent, _: Calls(
        extent.unasked_samples,
        extent.question_characters,
        # Another answer is about as long as the response; four characters are a token.
        listed=round(extent.unasked_samples * extent.response_characters / 4),
    ),
)

PRE_VERIFICATION = ModelStage(
    "pre-verification",
    "preverify",
    lambda answer, _, chunk: read_claims(answer, chunk),
    tokens=400,  # a sentence
    most_tokens=8000,
    top_logprobs=5,
    usual_tokens=30,
    calls=_each_chunk,
)
PRE_VERIFICATION_IN_RESPONSE = replace(PRE_VERIFICATION, prompt="preverify_in_response")

# Relations between texts.


def _each_window(extent: Extent, _slots: Mapping[str, str]) -> Calls:
    # Each window repeats the prompt, the claim, and a part of the previous window.
    return Calls(
        extent.pairs * extent.windows,
        extent.atom_characters,
        extent.pairs * extent.passage_characters * (1 + extent.overlap),
    )


RELATION_PROMPTS = (
    "relation_question_examples",
    "relation_question_reordered",
    "relation_question",
    "relation_support",
    "relation",
    "relation_reordered",
    "relation_bare",
)
"""Prompts that ask for the relation of a passage to a claim as a label, the default first."""

RELATION = ModelStage(
    "relations",
    RELATION_PROMPTS[0],
    label_reading(tuple(map(str, JUDGED_KINDS))),
    tokens=16,
    top_logprobs=5,
    usual_tokens=3,
    calls=_each_window,
)
STATED_RELATION = ModelStage(
    RELATION.name,
    "relation_verbalized",
    stated_label(tuple(map(str, JUDGED_KINDS))),
    tokens=64,
    usual_tokens=20,
    calls=_each_window,
    schema=object_of(relation=one_of(tuple(map(str, JUDGED_KINDS))), confidence=NUMBER),
)

CLAIM_RELATION = ModelStage(
    "claim relations",
    "claim_relation",
    json_reading(sense_of),
    tokens=64,
    usual_tokens=20,
    calls=lambda extent, _: Calls(
        extent.pairs, extent.response_characters + 2 * extent.atom_characters
    ),
    schema=object_of(relation=one_of((*map(str, Sense), "none")), confidence=NUMBER),
)

# Transformations and judgments of claims.

CORRECTION = ModelStage(
    "corrections",
    "correction",
    text_at("claim", or_empty=True),
    tokens=300,
    schema=object_of(claim=TEXT),
)

SAFE_REVISION = replace(REVISER, name="safe-revision", usual_tokens=40, calls=each_claim)
SAFE_RELEVANCE = ModelStage(
    "safe-relevance",
    "safe_relevance",
    choice_at("relevant", "relevant", "irrelevant"),
    tokens=20,
    usual_tokens=10,
    schema=object_of(relevant=FLAG),
)
RELEVANCE = replace(SAFE_RELEVANCE, name="relevance")
FACT_RELEVANCE = replace(SAFE_RELEVANCE, name="relevance of facts")

CLAIMS_AT_ONCE = 40
"""Number of claims per call of the judge of claims."""

CLAIM_FAILURES = ModelStage(
    "claim failures",
    "claim_failures",
    json_reading(failures_of),
    tokens=40,  # a claim
    calls=lambda extent, _: Calls(
        ceil(extent.atoms / CLAIMS_AT_ONCE),
        extent.response_characters,
        extent.atoms * extent.atom_characters,
    ),
    schema=object_of(claims=list_of(object_of(claim=INTEGER, failures=list_of(one_of(FAILURES))))),
)
MISSING_CLAIMS = ModelStage(
    "claim failures",
    "missing_claims",
    json_reading(missing_claims),
    tokens=2000,
    calls=lambda extent, _: Calls(
        1, extent.response_characters + extent.atoms * extent.atom_characters
    ),
    schema=object_of(claims=list_of(object_of(claim=TEXT, reason=one_of(MISSING)))),
)

REFUSAL = ModelStage(
    "refusals",
    "refusal",
    flag_at("declines"),
    tokens=32,
    calls=lambda extent, _: Calls(1, extent.response_characters),
    schema=object_of(declines=FLAG),
)

CLAIM_AS_QUESTION = ModelStage(
    "question-answer pairs",
    "question_answer_pair",
    json_reading(question_and_answer),
    tokens=256,
    schema=object_of(question=TEXT, answer=TEXT),
)

_TWO = MappingProxyType({"true": ModelJudgment.TRUE, "false": ModelJudgment.FALSE})
_THREE = MappingProxyType({**_TWO, "none": ModelJudgment.NEITHER})

SELF_SETTINGS: Mapping[str, SelfSetting] = MappingProxyType(
    {
        stage.name: stage
        for stage in (
            SelfSetting("direct_asking", "self_direct", _TWO, needs_pair=False),
            SelfSetting("question_answering", "self_question", _TWO, needs_pair=True),
            SelfSetting("none_of_the_above", "self_question_none", _THREE, needs_pair=True),
        )
    }
)
"""The settings of the Self-Known paper, section 3, by name."""

PADDING = ModelStage(
    "padding",
    "padding",
    json_reading(texts_of),
    tokens=40,  # a sentence
    calls=lambda extent, _: Calls(1, extent.atom_characters),
    schema=object_of(sentences=list_of(TEXT)),
)

# Assessors.

_SUPPORT = MappingProxyType({"supported": 1.0, "contradicted": 0.0, "undecided": 0.5})

SAFE_SEARCHES = 5
"""Maximum number of searches per claim of SAFE, as in the paper."""

SAFE_SEARCH = ModelStage(
    "safe-search",
    "safe_query",
    text_at("query", or_empty=True),
    tokens=100,
    usual_tokens=15,
    calls=each_search(SAFE_SEARCHES),
    schema=object_of(query=TEXT),
)

ASSESSORS: Mapping[str, Assessor] = MappingProxyType(
    {
        assessor.name: assessor
        for assessor in (
            Assessor(
                "factscore",
                "assess_factscore",
                # Claims without support are undecided: FactReasoner's tables 3 to 7 count them
                # under #U and none under #C.
                MappingProxyType({"true": 1.0, "false": 0.5}),
                source="Min et al. 2023",
                words=MappingProxyType({**unsupported_as("false"), "not true": "false"}),
            ),
            Assessor(
                "factverify",
                "assess_factverify",
                _SUPPORT,
                reasons=True,
                source="Bayat et al. 2025",
                words=unsupported_as("undecided"),
            ),
            Assessor(
                "veriscore",
                "assess_veriscore",
                _SUPPORT,
                source="Song et al. 2024",
                words=unsupported_as("undecided"),
            ),
            Assessor(
                "own-knowledge",
                "assess_own_knowledge",
                _SUPPORT,
                reasons=True,
                source="what a model knows without any passage, to be compared with",
                words=unsupported_as("undecided"),
            ),
            Assessor(
                "evidence-and-knowledge",
                "assess_evidence_and_knowledge",
                _SUPPORT,
                reasons=True,
                source="FactReasoner, table 34, the row of DeepSeek-v3",
                words=unsupported_as("undecided"),
            ),
            Assessor(
                "fastfact",
                "assess_fastfact",
                MappingProxyType(
                    {
                        "supported": 1.0,
                        "refuted": 0.0,
                        "conflicting": 0.5,
                        "insufficient": 0.5,
                        "unverifiable": None,
                    }
                ),
                reasons=True,
                source="FaStfact, section 4.3",
                words=unsupported_as("insufficient"),
            ),
            Assessor(
                "safe",
                "assess_safe",
                # Claims without support are undecided, as with `factscore`.
                MappingProxyType({"supported": 1.0, "unsupported": 0.5}),
                reasons=True,
                source="Wei et al. 2024, section 3",
                words=unsupported_as("unsupported"),
                steps=(
                    Step(SAFE_REVISION, fills="claim"),
                    Step(SAFE_RELEVANCE, drops="irrelevant"),
                    Step(SAFE_SEARCH, searches=SAFE_SEARCHES),
                ),
            ),
        )
    }
)
"""The assessors of the papers. An undecided claim has P(true) 1/2: it is not supported."""

STAGES: tuple[ModelStage[Any], ...] = (
    *(ATOMIZER, REVISER, QUERIES, SUMMARIZER, PRE_VERIFICATION, PRE_VERIFICATION_IN_RESPONSE),
    *(replace(RELATION, prompt=name) for name in RELATION_PROMPTS),
    *(STATED_RELATION, CLAIM_RELATION, CORRECTION, RELEVANCE, FACT_RELEVANCE),
    *(CLAIM_FAILURES, MISSING_CLAIMS, REFUSAL, PADDING, CLAIM_AS_QUESTION, SAMPLED_ANSWER),
    *(setting.stage for setting in SELF_SETTINGS.values()),
    *(step.stage for assessor in ASSESSORS.values() for step in assessor.steps),
    *(assessor.verdict for assessor in ASSESSORS.values()),
)
"""All stages that ask a language model."""
