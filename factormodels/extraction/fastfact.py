"""FaStfact from response to verdicts: extract and pre-verify, search, verify, audit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from random import Random
from types import MappingProxyType
from typing import Any

from factormodels.claims import Atom
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.asking.claim_lines import PreLabel, PreVerified
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.pipeline import Stage, StageError
from factormodels.extraction.preverification import (
    STAGES,
    Extraction,
    ShownContext,
    extract,
)
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.retrieval.base import Retriever
from factormodels.extraction.sentences import stated_language
from factormodels.extraction.stages.assessors import Verdict, assess, assessor_facts, get_assessor
from factormodels.extraction.stages.queries import build_query
from factormodels.extraction.stages.retrieval import with_contexts
from factormodels.fact_graph import FactGraph
from factormodels.metadata.recorded_verdicts import ASSESSORS_KEY

_ASSESSOR = "fastfact"

FASTFACT_KEY = "fastfact"
"""Metadata key of the stage's record."""

_P_TRUE: Mapping[PreLabel, float | None] = {
    PreLabel.SUPPORTED: 1.0,
    PreLabel.NON_SUPPORTED: 0.0,
    PreLabel.IRRELEVANT: None,
}

CLAIM_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "supported": "supported",
        **dict.fromkeys(("refuted", "conflicting", "insufficient"), "non-supported"),
        "non-supported": "non-supported",
        **dict.fromkeys(("unverifiable", "irrelevant"), "irrelevant"),
    }
)
"""Type of a verdict or a definite label in the score: S, N, or neither (table 2)."""


@dataclass(frozen=True)
class FastFactSettings:
    """Settings of the pipeline.

    Attributes:
        stride: sentences w per extracting call; None takes the whole response at once.
        context: part of the response shown to the extracting model: the sentences of the call, or
            all of it.
        threshold: confidence theta above which a claim with a definite label is not searched; at 1,
            all claims are searched.
        audit_rate: share of the skipped claims that are verified anyway, drawn with the seed.
        seed: seed of the audit's draw, a whole number.
    """

    stride: int | None = None
    context: ShownContext = "chunk"
    threshold: float = 0.995
    audit_rate: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("threshold", "audit_rate"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise InputError(f"{name} is {value}; give a number from 0 to 1")
        if self.context not in STAGES:
            raise InputError(unknown_name(f"the context {self.context!r}", self.context, STAGES))


@dataclass(frozen=True)
class Audit:
    """Error rate of skipping, from the skipped claims that were verified anyway.

    Attributes:
        claims: number of audited claims with a verdict.
        wrong: number of them whose verdict has another type than the label.
        lower, upper: 95% interval of the share that is wrong (Clopper and Pearson); 0 and 1 without
            claims.
    """

    claims: int
    wrong: int
    lower: float
    upper: float


@dataclass(frozen=True)
class Effort:
    """Calls and searches, in the terms of FaStfact's table 6: N/w + pM calls, pqM searches.

    Attributes:
        sentences, claims: N and M.
        verified_share: p, the share of claims that were not skipped; NaN without claims.
        extracting_calls: calls that extract, N/w rounded up.
        verifying_calls: calls that verify claims that were not skipped, pM.
        audit_calls: calls that verify skipped claims, which the formulas leave out.
        searches: searches for claims that were not skipped, pqM with one query each (q = 1).
        audit_searches: searches for skipped claims.
    """

    sentences: int
    claims: int
    verified_share: float
    extracting_calls: int
    verifying_calls: int
    audit_calls: int
    searches: int
    audit_searches: int


@dataclass(frozen=True)
class FastFact:
    """The result of the pipeline for a response.

    Attributes:
        graph: the claims as atoms, with the contexts of the searched claims.
        extraction: claims with the extracting model's labels, in the order of the atoms.
        verdicts: verdicts by atom id of the verified claims, including audited ones; missing
            verdicts of audited claims are absent.
        p_true: P(true) by atom id; None if a claim is dropped or has no verdict.
        audited: ids of the skipped claims that were verified anyway.
        audit: error rate of skipping.
        effort: calls and searches.
    """

    graph: FactGraph
    extraction: Extraction
    verdicts: Mapping[str, Verdict]
    p_true: Mapping[str, float | None]
    audited: frozenset[str]
    audit: Audit
    effort: Effort


def fastfact(
    graph: FactGraph,
    model: LanguageModel,
    retriever: Retriever,
    settings: FastFactSettings | None = None,
) -> FastFact:
    """Return FaStfact's verdicts on the claims of a response.

    Args:
        graph: the response with its query and topic; existing atoms and contexts are replaced.
        model: the language model that extracts and verifies.
        retriever: searched for the claims that are not skipped.
        settings: settings of the pipeline; None for the defaults.

    Raises:
        InputError: if a setting is out of range.

    Source: FaStfact, section 4. The verdict of an audited claim, being more reliable, replaces its
    label.
    """
    chosen = settings or FastFactSettings()
    extraction = extract(
        graph.response,
        model,
        query=graph.query,
        stride=chosen.stride,
        context=chosen.context,
        language=stated_language(graph),
    )
    atoms = tuple(
        Atom(f"a{number}", claim.claim, sentence=claim.sentence)
        for number, claim in enumerate(extraction.claims, start=1)
    )
    labels = {atom.id: claim for atom, claim in zip(atoms, extraction.claims, strict=True)}
    skipped = [atom.id for atom in atoms if labels[atom.id].skips(chosen.threshold)]
    audited = _drawn(skipped, chosen)
    spared = set(skipped) - audited
    searched = replace(
        graph,
        atoms=tuple(atom for atom in atoms if atom.id not in spared),
        contexts=(),
        relations=(),
    )
    queries = [build_query(atom, graph.topic) for atom in searched.atoms]
    if queries:
        searched = with_contexts(searched, retriever, queries)
    verdicts = {verdict.atom: verdict for verdict in assess(searched, _ASSESSOR, model)}
    # If an audit fails, the claim stays skipped.
    verdicts = {
        atom: verdict for atom, verdict in verdicts.items() if verdict.label or atom not in audited
    }
    p_true = {
        atom.id: verdicts[atom.id].p_true if atom.id in verdicts else _P_TRUE[labels[atom.id].label]
        for atom in atoms
    }
    verified = len(atoms) - len(skipped)
    return FastFact(
        graph=replace(searched, atoms=atoms),
        extraction=extraction,
        verdicts=verdicts,
        p_true=p_true,
        audited=frozenset(audited),
        audit=_audit(audited, labels, verdicts),
        effort=Effort(
            sentences=extraction.sentences,
            claims=len(atoms),
            verified_share=verified / len(atoms) if atoms else math.nan,
            extracting_calls=extraction.calls,
            verifying_calls=verified,
            audit_calls=len(audited),
            searches=verified,
            audit_searches=len(audited),
        ),
    )


def fastfact_stage(
    model: LanguageModel, retriever: Retriever, settings: FastFactSettings | None = None
) -> Stage:
    """Return the stage that runs the pipeline; it raises a StageError if no chunk was answered.

    `metadata["fastfact"]` holds:

    - `claims`, by id of atom: `prelabel`, `confidence` (and `unusable`, the reason if
      log-probabilities give none), `skipped`, `audited`, the `verdict` (of the verifier, or of the
      extracting model if skipped; "" if missing) and `missing`, the reason;
    - `audit`, `effort`, the prompts and the settings;
    - `failures`, as [first sentence of a chunk, reason];
    - `unread`, as [first sentence of a chunk, line of its answer that could not be parsed].

    The verdicts are also recorded among the assessors'.
    """
    chosen = settings or FastFactSettings()

    def stage(graph: FactGraph) -> FactGraph:
        result = fastfact(graph, model, retriever, chosen)
        failures = result.extraction.failures
        if len(failures) == result.extraction.chunks:
            reason = failures[0][1] if failures else "there is no sentence in it"
            raise StageError(f"no claims were extracted: {reason}")
        claims = _claims(result, chosen)
        prompts = prompts_of(model)
        verifier = prompts.identity_of(get_assessor(_ASSESSOR).prompt)
        facts = {
            "model": model.name,
            "prompts": [prompts.identity_of(STAGES[chosen.context].prompt), verifier],
            "settings": asdict(chosen),
            "claims": claims,
            "audit": asdict(result.audit),
            "effort": {
                name: None if isinstance(value, float) and math.isnan(value) else value
                for name, value in asdict(result.effort).items()
            },
            "failures": [list(failure) for failure in failures],
            "unread": [list(line) for line in result.extraction.unread],
        }
        verdicts = [
            Verdict(
                atom, claim["verdict"], claim["confidence"], result.p_true[atom], claim["missing"]
            )
            for atom, claim in claims.items()
        ]
        judged = assessor_facts(get_assessor(_ASSESSOR), model, verdicts)
        return replace(
            result.graph,
            metadata={
                **result.graph.metadata,
                FASTFACT_KEY: facts,
                ASSESSORS_KEY: {_ASSESSOR: judged},
            },
        )

    return stage


def _claims(result: FastFact, settings: FastFactSettings) -> dict[str, dict[str, Any]]:
    claims = {}
    for atom, claim in zip(result.graph.atoms, result.extraction.claims, strict=True):
        verdict = result.verdicts.get(atom.id)
        claims[atom.id] = {
            "prelabel": str(claim.label),
            "confidence": claim.confidence,
            **({} if claim.unusable is None else {"unusable": str(claim.unusable)}),
            "skipped": claim.skips(settings.threshold),
            "audited": atom.id in result.audited,
            "verdict": str(claim.label) if verdict is None else verdict.label,
            "missing": "" if verdict is None else verdict.missing,
        }
    return claims


def _drawn(skipped: list[str], settings: FastFactSettings) -> set[str]:
    """Return the skipped claims that are verified anyway."""
    count = round(settings.audit_rate * len(skipped))
    return set(Random(settings.seed).sample(skipped, count))


def _audit(
    audited: set[str], labels: Mapping[str, PreVerified], verdicts: Mapping[str, Verdict]
) -> Audit:
    judged = [name for name in audited if name in verdicts]
    return audit_of(
        len(judged),
        sum(
            CLAIM_TYPES[verdicts[name].label] != CLAIM_TYPES[labels[name].label] for name in judged
        ),
    )


def audit_of(claims: int, wrong: int) -> Audit:
    """Return the audit of `claims` claims, `wrong` of which were judged differently."""
    from scipy.stats import beta

    right = claims - wrong
    return Audit(
        claims=claims,
        wrong=wrong,
        lower=float(beta.ppf(0.025, wrong, right + 1)) if wrong else 0.0,
        upper=float(beta.ppf(0.975, wrong + 1, right)) if right else 1.0,
    )
