"""How a pipeline's claims and verdicts align with people's, from what annotators recorded.

Source: FaStfact, section 6, appendix F and table 2.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.claims import ClaimCounts, f1_at_k_prime
from calibration.claims.agreement import LABEL_TYPES
from calibration.intervals import (
    IntervalSettings,
    RatioEstimand,
    RatioSums,
    Scale,
    estimate_all,
    mean_interval,
)
from experiments.findings.artefacts import PaperFigure
from experiments.findings.table import Column, Table, columns_as, data_frame, text_columns
from experiments.findings.text import counted
from experiments.progress import tell
from factormodels.claims import Atom
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.files import read_text
from factormodels.io.json_records import location
from factormodels.io.published.fastfact_annotations import (
    AnnotatedClaim,
    AnnotatedResponse,
    Operation,
    Stage,
    parse_annotations,
)
from factormodels.io.published.fastfact_bench import looks_like_fastfact
from factormodels.io.published.formats import format_of
from factormodels.io.reading import records_of
from factormodels.io.records import strictly
from factormodels.recorded_verdicts import recorded_verdicts

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

VERDICTS: Mapping[str, str] = MappingProxyType(
    {
        "conflicting": "conflicting evidence",
        "insufficient": "not enough evidence",
        "undecided": "not enough evidence",
        "contradicted": "refuted",
        "true": "supported",
        "false": "non-supported",
        "unsupported": "non-supported",
    }
)
"""What FaStfact's table 2 calls the verdicts of assessors."""

OVERALL = "Overall"

_TYPES = ("supported", "non-supported", "irrelevant")

_STATISTICS = {
    "removed": "# removed",
    "added": "# added",
    "revised": "# revised",
    "unchanged": "# unchanged",
    "agreement_exact": "same verdict, %",
    "agreement_type": "same type of verdict, %",
    "agreement_said": "verdict that people said to agree with, %",
    "k_difference": "|difference of K'|",
    "supported_difference": "|difference of # supported|",
    "unsupported_difference": "|difference of # non-supported|",
    "irrelevant_difference": "|difference of # irrelevant|",
    "f1_difference": "|difference of F1@K'|",
    "f1_human": "F1@K' of people",
    "f1_pipeline": "F1@K' of the pipeline",
}
"""What table 2 prints, and what it calls each."""

_PERCENT = ("agreement_exact", "agreement_type", "agreement_said")

_SCORES = ("f1_human", "f1_pipeline")
"""Means over responses of F1@K'."""


def aligned(
    file: str | os.PathLike[str], gamma: float, intervals: IntervalSettings
) -> tuple[list[AnnotatedResponse], dict[str, Table], list[str]]:
    """A pipeline's claims and verdicts beside people's (FaStfact, table 2).

    Per response, overall and by benchmark: the claims that annotators removed, added, revised and
    left unchanged; how often they agree with the pipeline's verdicts, separately for verdicts at
    extraction and from evidence; and how far its counts and F1@K' are from theirs. Everything comes
    from what the file records.

    Args:
        file: Responses with claims, as FaStfact-Bench's annotation tool writes them, or with
            labels and recorded verdicts, such as FactReasoner's outputs.
        gamma: how fast recall falls in F1@K'; the paper does not print its own.
        intervals: how intervals over responses are made.

    Returns:
        The responses, tables by name, and what to say of them.

    Raises:
        InputError: if the file cannot be read or is of another format.
    """
    responses = read_annotations(file)
    annotated = [response for response in responses if response.is_annotated]
    tell(f"aligning {counted(len(responses), 'response')}")
    tables: dict[str, Table] = {}
    if annotated:
        tables["alignment"] = _alignment(annotated, "benchmark", gamma, intervals)
        if len({response.model for response in annotated}) > 1:
            tables["by-model"] = _alignment(annotated, "model", gamma, intervals)
    tables["verdicts"] = _verdicts(responses)
    if annotated:
        tables["labels"] = _labels(annotated)
    tables["responses"] = _by_response(responses)
    if any(response.tokens for response in responses):
        tables["tokens"] = _tokens(responses)
    tables["claims"] = _claims(responses)
    return responses, tables, list(_sentences(responses, annotated))


def read_annotations(file: str | os.PathLike[str]) -> list[AnnotatedResponse]:
    """The responses of a file: of the annotation tool, or with verdicts that were recorded.

    Of responses that carry the verdicts of several assessors, each is a model.

    Raises:
        InputError: if the file cannot be read, or a record is malformed or of another format.
    """
    found: list[AnnotatedResponse] = []
    for record in strictly(records_of(read_text(file), file)):
        if looks_like_fastfact(record.value):
            found.append(parse_annotations(record.value, file, record.line))
            continue
        form = format_of(record.value)
        graph = None if form is None else form.parse(record.value, file, record.line)
        judged = list(_recorded(graph)) if isinstance(graph, FactGraph) else []
        if not judged:
            raise InputError(
                f"{location(file, record.line)}: there is no response with claims_lst, and none "
                "with recorded verdicts; give a file of FaStfact-Bench's annotation tool, an "
                "output of FactReasoner, or what `factormodels assess --assessors` wrote"
            )
        found += judged
    if not found:
        raise InputError(f"{file}: the file holds no response; name another")
    return found


def verdict_of(atom: Atom) -> str | None:
    """What people said of an atom, a key of `LABEL_TYPES`; None where they said nothing."""
    known = VERDICTS.get(atom.annotation or "", atom.annotation)
    if known in LABEL_TYPES:
        return known
    return None if atom.label is None else "supported" if atom.label else "non-supported"


def _recorded(graph: FactGraph) -> Iterable[AnnotatedResponse]:
    """Yield a response once for each assessor whose verdicts it carries.

    People labelled its claims as they were, and changed none.
    """
    annotated = any(atom.label is not None for atom in graph.atoms)
    for name, verdicts in recorded_verdicts(graph).items():
        claims = [
            AnnotatedClaim(
                id=atom.id,
                original=atom.text,
                text=atom.text,
                operation=Operation.UNCHANGED if annotated else None,
                stage=Stage.VERIFIED if atom.id in verdicts else Stage.NONE,
                verdict=verdicts[atom.id].label if atom.id in verdicts else "",
                human=verdict_of(atom) or "",
                agreement="",
                reason="",
            )
            for atom in graph.atoms
        ]
        yield AnnotatedResponse(graph.id, name, "", tuple(claims), annotated, {})


def _type_of(label: str) -> str | None:
    """Type of a verdict or label; None where it is not a verdict."""
    return LABEL_TYPES.get(VERDICTS.get(label, label))


def _own_claims(response: AnnotatedResponse) -> list[AnnotatedClaim]:
    """The claims that the pipeline found."""
    return [claim for claim in response.claims if claim.operation is not Operation.ADDED]


def _human_claims(response: AnnotatedResponse) -> list[AnnotatedClaim]:
    """The claims as people left them."""
    return [claim for claim in response.claims if claim.operation is not Operation.REMOVED]


def _counts(
    responses: Sequence[AnnotatedResponse],
    of: Callable[[AnnotatedResponse], Iterable[AnnotatedClaim]],
    label: Callable[[AnnotatedClaim], str],
) -> ClaimCounts:
    counts = [Counter(_type_of(label(claim)) for claim in of(response)) for response in responses]
    return ClaimCounts(*([each[kind] for each in counts] for kind in _TYPES))


def _judged(response: AnnotatedResponse, stage: Stage | None = None) -> list[AnnotatedClaim]:
    """Claims that both the pipeline and a person gave a verdict, of one stage or of all."""
    return [
        claim
        for claim in response.claims
        if _type_of(claim.verdict) and _type_of(claim.human) and stage in (None, claim.stage)
    ]


def _same(claim: AnnotatedClaim) -> bool:
    one, other = (VERDICTS.get(label, label) for label in (claim.verdict, claim.human))
    return one == other


def _same_type(claim: AnnotatedClaim) -> bool:
    return _type_of(claim.verdict) == _type_of(claim.human)


def _ratios(responses: Sequence[AnnotatedResponse], gamma: float) -> dict[str, RatioSums]:
    """Each statistic as a ratio of sums over responses, one cell."""
    one = np.ones(len(responses))
    ratios: dict[str, RatioSums] = {}

    def mean(name: str, values: Any) -> None:
        ratios[name] = _ratio(values, one)

    for operation in (Operation.REMOVED, Operation.ADDED, Operation.REVISED, Operation.UNCHANGED):
        mean(
            operation.value,
            [sum(claim.operation is operation for claim in each.claims) for each in responses],
        )
    judged = [_judged(response) for response in responses]
    sizes = [len(claims) for claims in judged]
    ratios["agreement_exact"] = _ratio([sum(map(_same, each)) for each in judged], sizes)
    ratios["agreement_type"] = _ratio([sum(map(_same_type, each)) for each in judged], sizes)
    said = [
        [claim for claim in each.claims if claim.agreement in ("agreed", "disagreed_corrected")]
        for each in responses
    ]
    ratios["agreement_said"] = _ratio(
        [sum(claim.agreement == "agreed" for claim in each) for each in said],
        [len(each) for each in said],
    )
    own = _counts(responses, _own_claims, lambda claim: claim.verdict)
    human = _counts(responses, _human_claims, lambda claim: claim.human)
    mean("k_difference", np.abs(own.verifiable - human.verifiable))
    mean("supported_difference", np.abs(own.supported - human.supported))
    mean("unsupported_difference", np.abs(own.unsupported - human.unsupported))
    mean("irrelevant_difference", np.abs(own.irrelevant - human.irrelevant))
    f1 = f1_at_k_prime(own.supported, own.unsupported, human.verifiable, gamma)
    human_f1 = f1_at_k_prime(human.supported, human.unsupported, human.verifiable, gamma)
    mean("f1_difference", np.abs(f1 - human_f1))
    mean("f1_human", human_f1)
    mean("f1_pipeline", f1)
    return ratios


def _ratio(above: Any, below: Any) -> RatioSums:
    column = (np.asarray(values, dtype=np.float64)[:, np.newaxis] for values in (above, below))
    return RatioSums(*column)


def _alignment(
    responses: Sequence[AnnotatedResponse], by: str, gamma: float, intervals: IntervalSettings
) -> Table:
    groups = {OVERALL: list(responses)}
    for response in responses:
        groups.setdefault(getattr(response, by) or f"no {by}", []).append(response)
    if len(groups) == 2:
        # One group is all of them.
        groups = {OVERALL: groups[OVERALL]}
    rows: list[dict[str, Any]] = [
        {"statistic": name, "title": title} for name, title in _STATISTICS.items()
    ]
    for group, members in groups.items():
        ratios = _ratios(members, gamma)
        estimates = estimate_all(
            [RatioEstimand(name, ratio, Scale.NUMBER) for name, ratio in ratios.items()], intervals
        )
        for row, found in zip(rows, estimates, strict=True):
            ends = float(found.estimate[0]), float(found.lower[0]), float(found.upper[0])
            if row["statistic"] in _SCORES:
                # As everywhere else.
                ends = mean_interval(ratios[row["statistic"]].numerator[:, 0])
            factor = 100 if row["statistic"] in _PERCENT else 1
            for key, value in zip((group, f"{group}_lower", f"{group}_upper"), ends, strict=True):
                row[key] = factor * value
    columns = (
        *columns_as("title statistic"),
        *(
            Column(group, group, digits=2, lower=f"{group}_lower", upper=f"{group}_upper")
            for group in groups
        ),
    )
    sizes = ", ".join(f"{group} {len(members)}" for group, members in groups.items())
    return Table(
        data_frame(rows),
        columns,
        "Alignment of the pipeline with people, in the form of FaStfact's table 2: numbers per "
        "response.",
        note=(
            f"Responses: {sizes}. In brackets: 95% intervals over responses. Verdicts are compared "
            "on the claims that both judged; F1@K' of both is against people's K', with gamma "
            f"{gamma:g}."
        ),
    )


def _verdicts(responses: Sequence[AnnotatedResponse]) -> Table:
    """Verdicts of the pipeline and of people, kept apart by the stage of the pipeline's."""
    rows = []
    for stage in (Stage.PRE_VERIFIED, Stage.VERIFIED):
        own = [
            claim
            for response in responses
            for claim in _own_claims(response)
            if claim.stage is stage
        ]
        judged = [claim for response in responses for claim in _judged(response, stage)]
        counts = Counter(_type_of(claim.verdict) for claim in own)
        rows.append(
            {
                "stage": stage.value,
                "claims": len(own),
                **{kind: counts[kind] for kind in _TYPES},
                "undecided": counts[None],
                "judged": len(judged),
                "exact": _share(judged, _same),
                "type": _share(judged, _same_type),
            }
        )
    columns = (
        *columns_as("stage"),
        *(Column(name, name, digits=0) for name in ("claims", *_TYPES, "undecided")),
        *columns_as("judged:0 judged by people | exact:1 same verdict, % | type:1 same type, %"),
    )
    return Table(
        data_frame(rows),
        columns,
        "Verdicts of the pipeline by stage: at extraction without a search, and from evidence.",
    )


def _share(claims: Sequence[AnnotatedClaim], holds: Callable[[AnnotatedClaim], bool]) -> float:
    return 100 * sum(map(holds, claims)) / len(claims) if claims else float("nan")


def _labels(responses: Sequence[AnnotatedResponse]) -> Table:
    """How often each verdict of the pipeline met each label of people, by stage."""
    counts = Counter(
        (claim.stage.value, claim.verdict or "none", claim.human or "none")
        for response in responses
        for claim in _human_claims(response)
    )
    rows = [
        {"stage": stage, "verdict": verdict, "human": human, "claims": count}
        for (stage, verdict, human), count in sorted(counts.items())
    ]
    columns = columns_as("stage | verdict pipeline | human people | claims:0")
    return Table(data_frame(rows), columns, "Verdicts of the pipeline and labels of people.")


def _by_response(responses: Sequence[AnnotatedResponse]) -> Table:
    own = _counts(responses, _own_claims, lambda claim: claim.verdict)
    human = _counts(responses, _human_claims, lambda claim: claim.human)
    rows = []
    for place, response in enumerate(responses):
        operations = Counter(claim.operation for claim in response.claims)
        done = {operation.value: float(operations[operation]) for operation in Operation}
        rows.append(
            {
                "response": response.id,
                "model": response.model,
                "benchmark": response.benchmark,
                "claims": len(_own_claims(response)),
                **(done if response.is_annotated else dict.fromkeys(done, float("nan"))),
                "k": float(own.verifiable[place]),
                "k_human": float(human.verifiable[place])
                if response.is_annotated
                else float("nan"),
            }
        )
    columns = (
        *columns_as("response | model | benchmark | claims:0 extracted"),
        *(Column(each.value, each.value, digits=0) for each in Operation),
        *columns_as("k:0 S + N of the pipeline | k_human:0 K' of people"),
    )
    return Table(data_frame(rows), columns, "Responses, and what people did to their claims.")


def _tokens(responses: Sequence[AnnotatedResponse]) -> Table:
    stages = dict.fromkeys(stage for response in responses for stage in response.tokens)
    rows = []
    for stage in stages:
        values = [each.tokens[stage] for each in responses if stage in each.tokens]
        rows.append({"stage": stage, "responses": len(values), "tokens": float(np.mean(values))})
    columns = columns_as("stage | responses:0 | tokens:0 tokens per response")
    return Table(data_frame(rows), columns, "Tokens of the pipeline, as the file records them.")


def _claims(responses: Sequence[AnnotatedResponse]) -> Table:
    """Every claim with its original and its revised text."""
    rows = [
        {
            "response": response.id,
            "claim": claim.id,
            "operation": "" if claim.operation is None else claim.operation.value,
            "original": claim.original,
            "text": claim.text,
            "stage": claim.stage.value,
            "verdict": claim.verdict,
            "human": claim.human,
            "agreement": claim.agreement,
            "reason": claim.reason,
        }
        for response in responses
        for claim in response.claims
    ]
    names = (
        *("response", "claim", "operation", "original", "text", "stage", "verdict", "human"),
        *("agreement", "reason"),
    )
    return Table(data_frame(rows, list(names)), text_columns(*names), "Claims, one by one.")


def _sentences(
    responses: Sequence[AnnotatedResponse], annotated: Sequence[AnnotatedResponse]
) -> Iterable[str]:
    missing = len(responses) - len(annotated)
    if not annotated:
        yield (
            "Nobody annotated this file: it holds the claims and verdicts of the pipeline alone, "
            "so there is nothing to align them with. The annotation tool adds "
            "annotation_status_details and annotator_label to each claim."
        )
        return
    operations = Counter(claim.operation for response in annotated for claim in response.claims)
    done = ", ".join(f"{operations[each]:,} {each.value}" for each in Operation)
    yield f"{counted(len(annotated), 'annotated response')}: {done} claims."
    if missing:
        yield f"{counted(missing, 'response')} without annotation: left out of the alignment."
    pending = sum(
        claim.agreement == "verification_pending"
        for response in annotated
        for claim in response.claims
    )
    if pending:
        yield f"{counted(pending, 'claim')} whose verdict people left pending: not compared."
    unknown = sum(
        _type_of(claim.human) is None and claim.agreement != "verification_pending"
        for response in annotated
        for claim in _human_claims(response)
    )
    if unknown:
        yield (
            f"{counted(unknown, 'claim')} that people kept without a verdict: in the operations, "
            "and in no count of verdicts."
        )


def counts_figure(responses: Sequence[AnnotatedResponse]) -> dict[str, PaperFigure]:
    """The pipeline's number of claims against people's, a point per response."""
    from calibration.figures.single_panel import panel_figure

    own = _counts(responses, _own_claims, lambda claim: claim.verdict).verifiable
    human = _counts(responses, _human_claims, lambda claim: claim.human).verifiable

    def draw(axes: Axes) -> list[Artist]:
        most = max(float(np.max([own, human], initial=1.0)), 1.0)
        line = axes.plot([0, most], [0, most], color="0.7", linestyle="--", linewidth=0.8)
        points = axes.scatter(human, own, s=14, alpha=0.6, color="C0")
        return [points, *line]

    figure = panel_figure(
        draw,
        ["responses", "equal"],
        labels=("K' of people", "S + N of the pipeline"),
    )
    frame = data_frame({"response": [each.id for each in responses], "human": human, "own": own})
    return {"claims-counted": PaperFigure(figure, frame, "Claims of the pipeline and of people.")}
