"""Assessment of a response: posteriors of its atoms, effects of contexts, measures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.intervals import IntervalSettings
from calibration.scores.measures import (
    choose_k,
    entropy_warnings,
    recall_of_counts,
    verdicts,
)
from calibration.scores.registry import MEASURES as PAPERS_MEASURES
from calibration.scores.response_measures import measure_responses
from calibration.scoring import score
from experiments.columns.assessed_metadata import CORE_KEY, METADATA_KEY
from experiments.evaluators.convention_measures import in_logarithms, logarithm_factor
from experiments.evaluators.evidence import ContextEvidence, context_removals, evidence_of_atoms
from experiments.evaluators.open_relations import ANYTHING, Range, open_measures, open_posteriors
from experiments.findings.table import named
from factormodels.conventions import DEFAULT, Conventions, GraphConventions, stated
from factormodels.errors import FactormodelsError, InputError
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.stages.duplicates import every_atom
from factormodels.extraction.stages.relations import missing_relations, only_asked, unanswered_atoms
from factormodels.fact_graph import FactGraph
from factormodels.metadata.recorded_verdicts import ASSESSORS_KEY
from factormodels.metadata.stage_keys import STAGE_KEYS
from factormodels.variants import variant as variant_of
from factormodels.words import IRRELEVANT
from inference import Backend

COLUMNS = (
    *("n_responses", "n_atoms", "n_labeled", "label_policy", "supported", "contradicted"),
    *("undecided", "precision", "human_precision", "precision_mae", "f1_at_k", "k_policy", "k"),
    *("entropy", "mean_surprisal", "expected_precision", "f1", "accuracy", "brier", "log_loss"),
)
"""Columns of a row of `measured`: sizes, settings, and `PAPERS_MEASURES` (FactReasoner, tables 3 to
7)."""


def measured(
    p: ArrayLike,
    y: Any,
    responses: Any,
    *,
    policy: str = "exclude",
    k: str | float = "median",
    intervals: IntervalSettings | None = None,
    more: Sequence[str] = (),
    folds: ArrayLike | None = None,
) -> dict[str, Any]:
    """Measures of a method on a dataset by name; NaN if undefined.

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        y: labels (n,), True or False, None where unlabeled.
        responses: response ids (n,).
        policy: treatment of unlabeled atoms in scores that need labels.
        k: choice of K in F1@K, as in `calibration.scores.choose_k`.
        intervals: settings of intervals, which add MEASURE_lower and MEASURE_upper; None for no
            intervals.
        more: further scores, each with MEASURE_status, the reason for a missing value.
        folds: fold of each atom, (n,), within which AUROC compares; None if `p` is not
            cross-fitted.

    Raises:
        InputError: for invalid arrays, or unlabeled atoms under the policy "error".
    """
    scored = score(
        *(p, y, responses),
        folds=folds,
        scores=(*PAPERS_MEASURES, *more),
        k=k,
        intervals=intervals,
        unlabeled=policy,
    )
    (model,) = scored.models
    n_atoms = len(np.asarray(p))
    row: dict[str, Any] = {
        "n_responses": model.scores["precision"].n,
        "n_atoms": n_atoms,
        "n_labeled": n_atoms - model.n_unlabeled,
        "label_policy": str(policy),
        "k_policy": str(k),
        "k": model.k,
        **{name: estimate.value for name, estimate in model.scores.items()},
    }
    row = {name: row[name] for name in (*COLUMNS, *more)}
    row |= {f"{name}_status": str(model.scores[name].status) for name in more}
    if intervals is not None:
        # Put interval ends next to their measure, as readers of summary.csv expect.
        for name, estimate in model.scores.items():
            row |= named(name, (estimate.value, *estimate.interval))
    return row


MEASURES = (
    *("n_atoms", "supported", "contradicted", "undecided"),
    *("precision", "entropy", "mean_surprisal", "expected_precision"),
)
"""Measures of a single response that need neither labels nor other responses."""


@dataclass(frozen=True)
class AssessmentView:
    """View of a graph: the way from relations to a posterior.

    Attributes:
        variant: FR1, FR2 or FR3.
        encoding: encoding of relations.
        backend: the algorithm.
        conventions: conventions that turn passages and relations into a model.
    """

    variant: str
    encoding: str
    backend: Backend
    conventions: GraphConventions = DEFAULT.graph


def assess_graph(graph: FactGraph, views: Sequence[AssessmentView]) -> dict[str, Any]:
    """The assessment of a response under each view, as JSON values by name of the variant.

    Each has `encoding`, `conventions` (if any differ from the default), `backend`, `answered_by`
    (the algorithm that `auto` chose), `status`, `log_z`, `log_z_kind`, `log_z_lower`, `measures`
    (see `MEASURES`), `unanswered`, `open` and `atoms`: by id, the posterior `p` of being true and
    its `evidence`, the contexts that a relation joins to it. A piece of evidence has `relation`,
    `probability` and `change`, the decrease of p when the context is removed (computed exactly, or
    from draws if `auto` would not be exact; None if these do not suffice, or take more than a
    minute). Atoms in `unanswered` have no answered relation and no probability. `open` has the
    bounds of posteriors under missing relations, by id, as in `open_posteriors`.

    Measures are over the claims on which all views and assessors have a verdict, so that they are
    comparable. They include the number of other claims (`left_out`), and `missing_atoms` and
    `missing_relations` of the view and `missing_verdicts` of all assessors. A view without an
    answer has only `error`.
    """
    assessment = {view.variant: _assessed(graph, view) for view in views}
    compared = _compared(graph, assessment)
    missing = sum(len(facts["missing"]) for facts in graph.metadata.get(ASSESSORS_KEY, {}).values())
    for view in assessment.values():
        if "atoms" in view:
            p = [view["atoms"][atom]["p"] for _, atom in every_atom(graph) if atom in compared]
            view["measures"] = {
                **_measures(np.array(p)),
                **view["measures"],
                "missing_verdicts": missing,
                "left_out": len(every_atom(graph)) - len(p),
            }
    return assessment


def _compared(graph: FactGraph, assessment: Mapping[str, Any]) -> set[str]:
    """Ids of the atoms on which all views and assessors with any verdict have one."""
    judged = [
        {atom for atom, verdict in facts["verdicts"].items() if verdict["p"] is not None}
        for facts in graph.metadata.get(ASSESSORS_KEY, {}).values()
    ]
    judged += [
        set(view["atoms"]) - set(view["unanswered"])
        for view in assessment.values()
        if "atoms" in view
    ]
    return set(graph.atom_ids).intersection(*(atoms for atoms in judged if atoms))


def by_strength(evidence: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The evidence of an atom in an assessment, the largest change of the posterior first."""

    def strength(item: Mapping[str, Any]) -> float:
        size: float = item["probability"] if item["change"] is None else item["change"]
        return abs(size)

    return sorted(evidence, key=strength, reverse=True)


def _assessed(graph: FactGraph, view: AssessmentView) -> dict[str, Any]:
    asked = only_asked(graph, view.variant)
    seen = variant_of(asked, view.variant, view.conventions)
    factor_graph = seen.to_factor_graph(view.encoding)
    try:
        posterior = view.backend.infer(factor_graph)
    # Raise errors of encodings and settings, which the user must correct; record others for this
    # view.
    except InputError:
        raise
    except FactormodelsError as error:
        return {"encoding": view.encoding, "backend": view.backend.name, "error": str(error)}
    p = posterior.marginals.of_state(1, seen.atom_ids)
    of_atom = dict(zip(seen.atom_ids, p.tolist(), strict=True))
    unanswered = unanswered_atoms(asked)
    left_open = open_posteriors(asked, seen, view.encoding, of_atom)
    # Removals are computed exactly if they fit, otherwise from draws, independent of the
    # posterior's algorithm; so `change` may be None although `p` exists.
    evidence = evidence_of_atoms(graph, seen, context_removals(seen, factor_graph))
    declared = stated(view.conventions, GraphConventions)
    return {
        "encoding": view.encoding,
        **({"conventions": declared} if declared else {}),
        "backend": view.backend.name,
        "status": str(posterior.status),
        "log_z": posterior.log_z,
        "log_z_kind": str(posterior.log_z_kind),
        "log_z_lower": posterior.lower_bound,
        "answered_by": posterior.answered_by,
        "measures": {
            "missing_relations": missing_relations(asked),
            "missing_atoms": sum(atom in unanswered for _, atom in every_atom(graph)),
        },
        "unanswered": sorted(unanswered),
        "open": {atom: list(ends) for atom, ends in left_open.items()},
        "atoms": {
            atom: {"p": value, "evidence": [_plain(item) for item in evidence[atom]]}
            for atom, value in of_atom.items()
        },
    }


def _measures(p: np.ndarray[Any, Any]) -> dict[str, float | int]:
    if not p.size:
        return {"n_atoms": 0}
    # A batch would repeat the warning about E for every response; the summary shows it once.
    with entropy_warnings():
        # All atoms belong to response 0, so every measure has one entry.
        measured = measure_responses(p, np.zeros(p.size, dtype=int))
    return {name: measured[name][0].item() for name in MEASURES}


def _plain(item: ContextEvidence) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "context": item.context,
        "relation": str(item.relation),
        "probability": item.probability,
        "change": None if item.removal is None else item.removal.change,
    }
    if item.removal is not None and item.removal.error:
        plain["change_error"] = item.removal.error
    return plain


@dataclass(frozen=True)
class AssessedResponse:
    """Summary of an assessed response for tables, small regardless of its passages.

    Attributes:
        response: its id.
        labels: label of each atom, None if there is none; a repeated atom counts with the posterior
            of its original.
        p: posteriors of the atoms by variant, absent if a view had no answer; and verdicts of
            assessors by name. None for an atom without a verdict or without any answered relation.
        missing: relations without an answer.
        failures: failures of the other stages.
        unjudged: missing verdicts of assessors.
        counts: True for atoms that count by Core; None if nothing was selected. A repeated claim
            does not count.
        origins: number of relations by origin of their probabilities.
        passages: hashes of the passages that the lexical model read, if claims have labels.
        asked: number of requested relations.
        to_judge: number of requested verdicts of assessors.
        ranges: by name as `p`, bounds of each atom under missing answers, (lower, upper); None if
            an assessor drops the atom.
        errors: reason for a missing answer of a view, by variant.
        answered_by: the algorithm that answered, by variant.
        unasked: relations that were not asked because of a limit, a settled claim or an early exit.
        fallbacks: answers without usable log-probabilities, as (relations or an assessor's name,
            actual origin, reason, number).
        irrelevant: True for claims labeled irrelevant; empty if there are none.
    """

    response: str
    labels: tuple[bool | None, ...]
    p: Mapping[str, tuple[float | None, ...]]
    missing: int
    failures: int
    unjudged: int = 0
    origins: Mapping[str, int] = field(default_factory=dict)
    counts: tuple[bool, ...] | None = None
    passages: frozenset[str] = frozenset()
    asked: int = 0
    to_judge: int = 0
    ranges: Mapping[str, tuple[Range | None, ...]] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    answered_by: Mapping[str, str] = field(default_factory=dict)
    unasked: int = 0
    fallbacks: tuple[tuple[str, str, str, int], ...] = ()
    irrelevant: tuple[bool, ...] = ()

    @property
    def lacking(self) -> int:
        """All that has no answer."""
        return self.missing + self.failures + self.unjudged


def judged(graph: FactGraph) -> AssessedResponse:
    """Summarize an assessed response for tables."""
    assessment = graph.metadata[METADATA_KEY]
    atoms = every_atom(graph)
    stages = [graph.metadata.get(key, {}) for key in STAGE_KEYS]
    assessors = graph.metadata.get(ASSESSORS_KEY, {})
    kept = graph.metadata.get(CORE_KEY, {}).get("kept")
    irrelevant = tuple((atom.annotation or "").casefold() in IRRELEVANT for atom, _ in atoms)
    return AssessedResponse(
        graph.id,
        tuple(atom.label for atom, _ in atoms),
        {
            name: tuple(
                None if atom in view["unanswered"] else view["atoms"][atom]["p"]
                for _, atom in atoms
            )
            for name, view in assessment.items()
            if "atoms" in view
        }
        | {
            name: tuple(facts["verdicts"].get(atom, {}).get("p") for _, atom in atoms)
            for name, facts in assessors.items()
        },
        len(graph.metadata.get("relations", {}).get("missing", ())),
        sum(len(stage.get("failures", ())) for stage in stages),
        sum(len(facts["missing"]) for facts in assessors.values()),
        graph.metadata.get("relations", {}).get("origins", {}),
        None if kept is None else tuple(atom.id in kept for atom, _ in atoms),
        _lexical_passages(graph),
        graph.metadata.get("relations", {}).get("asked", 0),
        sum(len(facts["verdicts"]) + len(facts["missing"]) for facts in assessors.values()),
        _ranges(graph, [atom for _, atom in atoms]),
        errors={name: view["error"] for name, view in assessment.items() if "error" in view},
        answered_by={
            name: view["answered_by"] for name, view in assessment.items() if "answered_by" in view
        },
        unasked=len(graph.metadata.get("relations", {}).get("unasked", ())),
        fallbacks=tuple(
            (name, origin, reason, count)
            for name, facts in {
                "relations": graph.metadata.get("relations", {}),
                **assessors,
            }.items()
            for origin, reason, count in facts.get("fallbacks", ())
        ),
        irrelevant=irrelevant if any(irrelevant) else (),
    )


def _ranges(graph: FactGraph, atoms: Sequence[str]) -> dict[str, tuple[Range | None, ...]]:
    ranges: dict[str, tuple[Range | None, ...]] = {}
    for name, view in graph.metadata[METADATA_KEY].items():
        if "atoms" in view:
            # Graphs of earlier versions have no bounds: their missing relations are unknown.
            bounds = view.get("open", dict.fromkeys(view["unanswered"], ANYTHING))
            ranges[name] = tuple(
                (lower, upper)
                for lower, upper in (bounds.get(a, [view["atoms"][a]["p"]] * 2) for a in atoms)
            )
    for name, facts in graph.metadata.get(ASSESSORS_KEY, {}).items():
        lost = {atom for atom, _ in facts["missing"]}
        stated = {atom: verdict["p"] for atom, verdict in facts["verdicts"].items()}
        ranges[name] = tuple(
            ANYTHING if a in lost else None if (p := stated.get(a)) is None else (p, p)
            for a in atoms
        )
    return ranges


def _lexical_passages(graph: FactGraph) -> frozenset[str]:
    if graph.metadata.get("relations", {}).get("model") != LexicalRelations().name:
        return frozenset()
    from experiments.evaluators.relation_quality import passages_of

    return passages_of(graph)


def with_core(responses: Sequence[AssessedResponse]) -> list[AssessedResponse]:
    """Responses restricted to the claims that count, without responses that keep none."""
    return [
        _with_claims(response, response.counts)
        for response in responses
        if response.counts is not None and any(response.counts)
    ]


def _with_claims(response: AssessedResponse, kept: Sequence[bool]) -> AssessedResponse:
    """The response restricted to some of its claims."""
    return replace(
        response,
        labels=tuple(compress(response.labels, kept)),
        p={name: tuple(compress(values, kept)) for name, values in response.p.items()},
        ranges={name: tuple(compress(ends, kept)) for name, ends in response.ranges.items()},
        irrelevant=tuple(compress(response.irrelevant, kept)),
    )


def responses_under(
    responses: Sequence[AssessedResponse], conventions: Conventions
) -> list[AssessedResponse]:
    """The responses with the conventions' treatment of irrelevant claims.

    If they are left out, a response without other claims is left out too.
    """
    if conventions.irrelevant_claims == "counted":
        return list(responses)
    if conventions.irrelevant_claims == "left-out":
        kept = [
            [not each for each in response.irrelevant] or [True] * len(response.labels)
            for response in responses
        ]
        return [
            _with_claims(response, keeps)
            for response, keeps in zip(responses, kept, strict=True)
            if any(keeps)
        ]
    return [
        replace(
            response,
            labels=tuple(
                False if irrelevant else label
                for label, irrelevant in zip(response.labels, response.irrelevant, strict=True)
            ),
        )
        if response.irrelevant
        else response
        for response in responses
    ]


@dataclass(frozen=True)
class Compared:
    """Summaries over the same claims.

    Attributes:
        summaries: a row of `measured` by name of the variant or assessor; None if it judged no
            claim.
        left_out: number of claims that some but not all of them judged.
        in_sample: number of passages in the training data of the lexical model that judged them,
            which makes its scores optimistic.
        recalls: R_K of each, mean over responses, with the K of its summary.
        ranges: ranges of the measures of each summary under missing relations and verdicts, by
            name, over all claims including claims without a verdict; empty if nothing is missing.
    """

    summaries: Mapping[str, Mapping[str, Any] | None]
    left_out: int
    in_sample: int = 0
    recalls: Mapping[str, float] = field(default_factory=dict)
    ranges: Mapping[str, Mapping[str, Range]] = field(default_factory=dict)

    @property
    def k(self) -> float | None:
        """Common K of F1@K and R_K; None if nothing was judged."""
        return next(
            (summary["k"] for summary in self.summaries.values() if summary is not None), None
        )

    def measure(self, name: str, measure: str) -> float:
        """A measure of the summary of a variant or assessor, or `recall_at_k`."""
        if measure == "recall_at_k":
            return self.recalls[name]
        value: float = (self.summaries[name] or {})[measure]
        return value


def summarize_judged(
    responses: Sequence[AssessedResponse],
    names: Sequence[str],
    conventions: Conventions = DEFAULT,
    k: float | None = None,
) -> Compared:
    """Summarize variants and assessors over the claims that all of them judged.

    A claim without a verdict from some variant or assessor is left out of every summary, so that
    summaries are comparable. A variant or assessor that judged nothing has no effect.

    Args:
        responses: the responses.
        names: names of the variants and assessors.
        conventions: conventions of the measures.
        k: K of F1@K; None for the conventions' choice.
    """
    responses = responses_under(responses, conventions)
    policy = conventions.k if k is None else k
    judging = [
        name
        for name in names
        if any(p is not None for response in responses for p in response.p.get(name, ()))
    ]
    rows: list[tuple[tuple[float, ...], bool | None, str]] = []
    left_out = 0
    for response in responses:
        for position, label in enumerate(response.labels):
            posteriors = [
                response.p[name][position] if name in response.p else None for name in judging
            ]
            known = tuple(p for p in posteriors if p is not None)
            # Without any posterior, no claim has all of them.
            if known and len(known) == len(judging):
                rows.append((known, label, response.response))
            else:
                left_out += bool(known)
    labels, ids = [label for _, label, _ in rows], [response_id for *_, response_id in rows]
    summaries = {
        name: _measured_under(
            [p[judging.index(name)] for p, *_ in rows], labels, ids, conventions, policy
        )
        if rows and name in judging
        else None
        for name in names
    }
    recalls = {
        name: _recall_at_k([p[judging.index(name)] for p, *_ in rows], ids, policy)
        for name, summary in summaries.items()
        if summary is not None
    }
    ranges: Mapping[str, Mapping[str, Range]] = {}
    if rows and any(
        response.missing or response.unjudged or response.unasked for response in responses
    ):
        own_k = next(summary["k"] for summary in summaries.values() if summary is not None)
        judged_ranges = [
            {name: r.ranges[name] for name in judging if name in r.ranges} for r in responses
        ]
        ranges = open_measures(
            [
                response_ranges
                for response_ranges in judged_ranges
                if len(response_ranges) == len(judging)
            ],
            # If K is a share of each response's claims, compute it from all its claims.
            policy if math.isnan(own_k) else own_k,
            logarithm_factor("entropy", conventions),
        )
    return Compared(summaries, left_out, _in_sample(responses), recalls, ranges)


def _measured_under(
    p: Sequence[float],
    labels: Sequence[bool | None],
    responses: Sequence[str],
    conventions: Conventions,
    k: str | float,
) -> dict[str, Any]:
    """Measures of a method under conventions, with their definition of F1."""
    by_response = conventions.f1 == "by-response"
    more = ("f1_by_response",) if by_response else ()
    row = measured(p, labels, responses, policy=conventions.unlabeled, k=k, more=more)
    if by_response:
        del row["f1"], row["f1_by_response_status"]
    return in_logarithms(row, conventions)


def _recall_at_k(p: Sequence[float], responses: Sequence[str], policy: str | float) -> float:
    signs = verdicts(np.array(p)).tolist()
    supported = dict.fromkeys(responses, 0)
    for response, sign in zip(responses, signs, strict=True):
        supported[response] += sign > 0
    sizes = Counter(responses)
    k = choose_k(policy, [sizes[response] for response in supported])
    return float(recall_of_counts([*supported.values()], k).mean())


def _in_sample(responses: Sequence[AssessedResponse]) -> int:
    read = frozenset[str]().union(*(response.passages for response in responses))
    if not read:
        return 0
    from experiments.evaluators.relation_quality import in_sample

    return in_sample(read)
