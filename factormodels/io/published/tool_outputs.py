"""What other tools print of claims, as recorded verdicts on the same claims.

Sources, each read by its keys:

- FActScore (shmsw25/FActScore, MIT): what `FactScorer.get_score` returns, saved as JSON:
  `decisions` with `atom` and `is_supported`, a list for each response, null without facts.
- VeriScore (Yixiao-Song/VeriScore, MIT by its setup.py): lines of `verification_*.jsonl`, from
  claims to `verification_result`, or of responses with a list of them; a response that abstained
  is a line of its own. VeriFastScore writes the list too.
- SAFE (google-deepmind/long-form-factuality, Apache-2.0): `checked_statements` with `atomic_fact`,
  `self_contained_atomic_fact` and `annotation`, alone or in the `per_prompt_data` of a result file.
- LM-Polygraph (IINemo/lm-polygraph, MIT): fields of `UncertaintyOutput`, an object per claim, with
  the name of the `estimator`.
- MiniCheck (Liyan06/MiniCheck, Apache-2.0): `doc`, `claim` and what `score` returns of the pair,
  `raw_prob` or `max_support_prob`, with `pred_label`.

FactReasoner's own outputs are those of `factreasoner`. None of these files has labels, and of most
the response is known by its place in the file only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from factormodels.claims import Atom
from factormodels.decoded_values import (
    as_object,
    filled_field,
    first_key,
    list_field,
    located,
    objects_field,
    shown,
    text_field,
    texts_field,
)
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import record_at, record_id
from factormodels.io.records import Source
from factormodels.recorded_verdicts import (
    ASSESSORS_KEY,
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    RecordedVerdict,
    verdict_facts,
)
from factormodels.validation import validated_probability

FACTSCORE, VERISCORE, SAFE = "factscore", "veriscore", "safe"
POLYGRAPH, MINICHECK = "lm-polygraph", "minicheck"
"""Names of the assessors."""

_UNSUPPORTED = RecordedVerdict("unsupported", 0.0)
_IRRELEVANT = RecordedVerdict("irrelevant", None)

_VERISCORE: Mapping[str, RecordedVerdict] = MappingProxyType(
    {
        "supported": SUPPORTED,
        "unsupported": _UNSUPPORTED,
        "contradicted": CONTRADICTED,
        "inconclusive": UNDECIDED,
    }
)
_SAFE: Mapping[str, RecordedVerdict] = MappingProxyType(
    {"supported": SUPPORTED, "not supported": _UNSUPPORTED, "irrelevant": _IRRELEVANT}
)
_PROBABILITIES = ("raw_prob", "max_support_prob", "prob")
_VERIFIED, _EXTRACTED = "claim_verification_result", "all_claims"
_EVALUATIONS = ("side1_posthoc_eval_data", "side2_posthoc_eval_data")

Judged = tuple[str, RecordedVerdict | None]
"""The text of a claim and the verdict on it; None where the tool gave none that can be read."""


def parse_factscore_output(obj: object, source: Source, line: int | None = None) -> list[FactGraph]:
    """Fact graphs of FActScore's decisions, one for each response, numbered from 1.

    A fact that is not supported has P(true) 0: the tool says no more.

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    graphs = []
    decisions = list_field(record, "decisions", where)
    for number, decided in enumerate(decisions, 1):
        location = f"{where}: decisions[{number - 1}]"
        facts = list_field({"facts": decided}, "facts", location, [])
        judged = []
        for position, value in enumerate(facts):
            at = f"{location}[{position}]"
            fact = as_object(value, at)
            supported = fact.get("is_supported")
            if not isinstance(supported, bool):
                raise InputError(
                    f"{at}: key 'is_supported': {shown(supported)} is neither true nor false; "
                    "give one of them"
                )
            verdict = SUPPORTED if supported else _UNSUPPORTED
            judged.append((filled_field(fact, "atom", at), verdict))
        graphs.append(_graph(f"{record_id(source, line)}-{number}", judged, FACTSCORE))
    return graphs


def looks_like_veriscore(record: Mapping[str, Any]) -> bool:
    """Whether a record is a line of VeriScore's verification."""
    # FaStfact too says whether a response abstains, and has claims under a key of its own.
    whole = {"abstained", "response"} <= record.keys() and "claims_lst" not in record
    if whole or isinstance(record.get(_VERIFIED), list):
        return True
    verdicts = record.values()
    return bool(record) and all(
        isinstance(v, dict) and "verification_result" in v for v in verdicts
    )


def parse_veriscore(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Fact graph of a line of VeriScore's verification.

    The line is of a response, with its claims and their verdicts in a list (VeriFastScore's lines
    too), or of verdicts by claim. What was extracted and not verified has no verdict; a response
    of which the tool abstained has no claims.

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    name = record_id(source, line)
    if not {_VERIFIED, "abstained"} & record.keys():
        if not all(claim.strip() for claim in record):
            raise InputError(f"{where}: a claim is empty; give its text or drop it")
        by_claim = [
            (claim, _veriscore(value, f"{where}: claim {shown(claim)}"))
            for claim, value in record.items()
        ]
        return _graph(name, by_claim, VERISCORE)
    judged: list[Judged] = []
    for value, location in objects_field(record, _VERIFIED, where, []):
        judged.append((filled_field(value, "claim", location), _veriscore(value, location)))
    verified = {claim for claim, _ in judged}
    extracted = texts_field(record, _EXTRACTED, where)
    judged += [(claim, None) for claim in dict.fromkeys(extracted) if claim not in verified]
    return _graph(
        name,
        judged,
        VERISCORE,
        query=text_field(record, "question", where, ""),
        response=text_field(record, "response", where, ""),
    )


def _veriscore(value: object, where: str) -> RecordedVerdict | None:
    # The tool keeps the first sentence of an answer, whatever that says.
    text = text_field(as_object(value, where), "verification_result", where, "")
    return _VERISCORE.get(text.strip().strip(".").casefold())


def parse_safe(obj: object, source: Source, line: int | None = None) -> list[FactGraph]:
    """Fact graphs of SAFE's checked statements: of each prompt, and of both sides where it has two.

    A claim is the fact as it stands by itself; an irrelevant one has no P(true).

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    name = record_id(source, line)
    if "checked_statements" in record:
        return [_safe(record, where, name)]
    graphs = []
    prompts = objects_field(record, "per_prompt_data", where)
    for number, (prompt, location) in enumerate(prompts, 1):
        for side, key in enumerate(_EVALUATIONS, 1):
            if prompt.get(key) is not None:
                at = f"{location}: key {key!r}"
                graphs.append(_safe(as_object(prompt[key], at), at, f"{name}-{number}-side{side}"))
    return graphs


def _safe(record: Mapping[str, Any], where: str, name: str) -> FactGraph:
    judged = []
    for statement, location in objects_field(record, "checked_statements", where):
        key = "self_contained_atomic_fact"
        if not text_field(statement, key, location, "").strip():
            key = "atomic_fact"
        word = text_field(statement, "annotation", location, "")
        judged.append((filled_field(statement, key, location), _SAFE.get(word.strip().casefold())))
    return _graph(
        name,
        judged,
        SAFE,
        query=text_field(record, "prompt", where, ""),
        response=text_field(record, "response", where, ""),
    )


@dataclass(frozen=True)
class UncertainText:
    """A text with LM-Polygraph's uncertainty of it.

    Attributes:
        id: of the response that it belongs to.
        query: what the model was asked.
        text: the text.
        uncertainty: the number: the larger, the less sure.
        estimator: what gave the number; empty where nothing says it.
    """

    id: str
    query: str
    text: str
    uncertainty: float
    estimator: str = ""


def parse_polygraph(obj: object, source: Source, line: int | None = None) -> UncertainText:
    """A text with its uncertainty; texts of one `response`, or else of one input, belong together.

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    value = record.get("uncertainty")
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        raise InputError(
            f"{where}: key 'uncertainty': {shown(value)} is no finite number; give one number"
        )
    query = text_field(record, "input_text", where, "")
    response = text_field(record, "response", where, "") or query or record_id(source)
    text = filled_field(record, "generation_text", where)
    estimator = text_field(record, "estimator", where, "")
    return UncertainText(response, query, text, float(value), estimator)


def gather_polygraph(texts: Sequence[UncertainText]) -> list[FactGraph]:
    """Fact graphs of uncertain texts, a claim each, with a verdict by each estimator.

    An uncertainty is no probability. Of all numbers of an estimator together it is told what they
    are: between -1 and 0, a share with its sign turned (as of claim-conditioned probability and
    lexical similarity), so that P(true) is -u; 0 and more, the negative logarithm of a probability,
    e^-u; else 1 / (1 + e^u). All three fall as u grows: the ranking is the tool's own, and what
    calibration says of it is about these maps.
    """
    by_estimator: dict[str, list[float]] = {}
    by_response: dict[str, dict[str, list[UncertainText]]] = {}
    for text in texts:
        by_estimator.setdefault(text.estimator, []).append(text.uncertainty)
        claims = by_response.setdefault(text.id, {})
        claims.setdefault(text.text, []).append(text)
    p_true = {name: _map_of(values) for name, values in by_estimator.items()}
    graphs = []
    for response, claims in by_response.items():
        atoms = tuple(Atom(f"a{number}", text) for number, text in enumerate(claims, 1))
        verdicts: dict[str, dict[str, RecordedVerdict]] = {}
        for atom, estimates in zip(atoms, claims.values(), strict=True):
            for estimate in estimates:
                name = f"{POLYGRAPH}: {estimate.estimator}" if estimate.estimator else POLYGRAPH
                p = p_true[estimate.estimator](estimate.uncertainty)
                verdicts.setdefault(name, {})[atom.id] = RecordedVerdict("uncertain", p)
        (query, *_) = (estimate.query for estimates in claims.values() for estimate in estimates)
        assessors = {name: verdict_facts(each) for name, each in verdicts.items()}
        graphs.append(FactGraph(response, atoms, query=query, metadata={ASSESSORS_KEY: assessors}))
    return graphs


def _map_of(values: Sequence[float]) -> Callable[[float], float]:
    """P(true) of an uncertainty, by what all numbers of its estimator are."""
    if all(-1.0 <= value <= 0.0 for value in values):
        return lambda u: -u if u else 0.0
    if all(value >= 0.0 for value in values):
        return lambda u: math.exp(-u)
    # Numbers beyond what e takes are certain.
    return lambda u: 1.0 / (1.0 + math.exp(min(u, 700.0)))


@dataclass(frozen=True)
class ScoredPair:
    """A document and a claim, and how probably the one supports the other.

    Attributes:
        id: of the response that the claim belongs to.
        document: the document.
        claim: the claim.
        probability: of support.
    """

    id: str
    document: str
    claim: str
    probability: float


def parse_minicheck(obj: object, source: Source, line: int | None = None) -> ScoredPair:
    """A scored pair of a document and a claim, of the response that `response` or `id` names.

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    key = first_key(record, (*_PROBABILITIES, "pred_label"))
    value = record.get(key)
    if isinstance(value, str):
        # As a table of texts has it.
        try:
            value = float(value)
        except ValueError:
            raise InputError(
                f"{where}: key {key!r}: {shown(value)} is no number; give a probability"
            ) from None
    with located(f"{where}: key {key!r}"):
        probability = validated_probability(value, "support")
    named = record.get(first_key(record, ("response", "id", "dataset")))
    return ScoredPair(
        str(named) if isinstance(named, str | int) and str(named).strip() else record_id(source),
        text_field(record, "doc", where, ""),
        filled_field(record, "claim", where),
        probability,
    )


def gather_minicheck(pairs: Sequence[ScoredPair]) -> list[FactGraph]:
    """Fact graphs of scored pairs: P(true) of a claim is that of the document that supports it
    best, as MiniCheck takes the best chunk of a document."""
    by_response: dict[str, dict[str, float]] = {}
    for pair in pairs:
        by_claim = by_response.setdefault(pair.id, {})
        by_claim[pair.claim] = max(pair.probability, by_claim.get(pair.claim, 0.0))
    return [
        _graph(
            name,
            [
                (claim, RecordedVerdict("supported" if p > 0.5 else "unsupported", p))
                for claim, p in by_claim.items()
            ],
            MINICHECK,
        )
        for name, by_claim in by_response.items()
    ]


def _finite(value: float) -> bool:
    # A whole number may be too large for a float.
    return abs(value) <= 1e300


def _graph(
    name: str,
    judged: Sequence[Judged],
    assessor: str,
    *,
    query: str = "",
    response: str = "",
) -> FactGraph:
    """A response of judged claims, numbered in order."""
    atoms = tuple(Atom(f"a{number}", text) for number, (text, _) in enumerate(judged, 1))
    verdicts = {
        atom.id: verdict
        for atom, (_, verdict) in zip(atoms, judged, strict=True)
        if verdict is not None
    }
    return FactGraph(
        name,
        atoms,
        query=query,
        response=response,
        metadata={ASSESSORS_KEY: {assessor: verdict_facts(verdicts)}} if verdicts else {},
    )
