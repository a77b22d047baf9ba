"""Alignment of a pipeline's claims and verdicts with human annotations.

Source: FaStfact, section 6, appendix F and table 2.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.claims import ClaimCounts, f1_at_k_prime
from calibration.claims.agreement import LABEL_TYPES
from calibration.intervals import (
    IntervalSettings,
    RatioSums,
    Scale,
    estimate_all,
    mean_interval,
)
from experiments.findings.artifacts import PaperFigure
from experiments.findings.table import (
    Column,
    Table,
    columns_as,
    data_frame,
    interval_column,
    named,
    text_columns,
)
from experiments.progress import tell
from factormodels.claims import Atom
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.fastfact_annotations import (
    AnnotatedClaim,
    AnnotatedResponse,
    Operation,
    Stage,
    annotated_response,
)
from factormodels.io.formats.registry import format_of
from factormodels.io.reading import records_of
from factormodels.io.source.files import read_text
from factormodels.io.source.places import location
from factormodels.io.tables.records import strictly
from factormodels.metadata.recorded_verdicts import recorded_verdicts
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd

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
"""Names of assessors' verdicts in FaStfact's table 2."""

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
"""Columns of the frame of responses in table 2, with their titles there."""

_SHARES = {"agreement_exact": "judged", "agreement_type": "judged", "agreement_said": "said"}
"""Denominators of agreements, in percent; other numbers are means over responses."""

_SCORES = ("f1_human", "f1_pipeline")
"""Means over responses of F1@K'."""

_CLAIM = (
    *("response", "claim", "operation", "original", "text", "stage", "verdict", "human"),
    *("agreement", "reason"),
)


def aligned(
    file: str | os.PathLike[str], gamma: float, intervals: IntervalSettings
) -> tuple[pd.DataFrame, dict[str, Table], list[str]]:
    """Compare a pipeline's claims and verdicts with human ones (FaStfact, table 2).

    Per response, overall and by benchmark: the claims that annotators removed, added, revised and
    left unchanged; how often annotators agree with the pipeline's verdicts, separately for verdicts
    at extraction and from evidence; and the differences of counts and F1@K'. All values come from
    the file.

    Args:
        file: Responses with claims, as FaStfact-Bench's annotation tool writes them, or with
            labels and recorded verdicts, such as FactReasoner's outputs.
        gamma: decay rate of recall in F1@K'; the paper does not state its value.
        intervals: settings of intervals over responses.

    Returns:
        The counts of every response, tables by name, and sentences.

    Raises:
        InputError: if the file cannot be read or is of another format.
    """
    responses = read_annotations(file)
    tell(f"aligning {counted(len(responses), 'response')}")
    claims = _claims(responses)
    counts = _counts(responses, claims, gamma)
    annotated = counts[counts["annotated"]]
    tables: dict[str, Table] = {}
    if len(annotated):
        tables["alignment"] = _alignment(annotated, "benchmark", gamma, intervals)
        if annotated["model"].nunique() > 1:
            tables["by-model"] = _alignment(annotated, "model", gamma, intervals)
    tables["verdicts"] = _verdicts(claims)
    of_people = claims[claims["annotated"]]
    if len(annotated):
        tables["labels"] = _labels(of_people)
    tables["responses"] = _by_response(counts)
    if any(response.tokens for response in responses):
        tables["tokens"] = _tokens(responses)
    tables["claims"] = Table(claims[list(_CLAIM)], text_columns(*_CLAIM), "Claims, one by one.")
    return counts, tables, list(_sentences(counts, of_people))


def read_annotations(file: str | os.PathLike[str]) -> list[AnnotatedResponse]:
    """Read responses from a file of the annotation tool, or with recorded verdicts.

    If responses carry the verdicts of several assessors, each assessor is a model.

    Raises:
        InputError: if the file cannot be read, or a record is malformed or of another format.
    """
    responses: list[AnnotatedResponse] = []
    for record in strictly(records_of(read_text(file), file)):
        form = format_of(record.value)
        if form is not None and form.name == "fastfact-bench":
            responses.append(annotated_response(record.value, file, record.line))
            continue
        graph = None if form is None else form.read(record.value, file, record.line)
        judged = list(_recorded(graph)) if isinstance(graph, FactGraph) else []
        if not judged:
            raise InputError(
                f"{location(file, record.line)}: no response has claims_lst or recorded "
                "verdicts; give a file of FaStfact-Bench's annotation tool, an output of "
                "FactReasoner, or an output of `factormodels assess --assessor`"
            )
        responses += judged
    if not responses:
        raise InputError(f"{file}: the file contains no response; name another file")
    return responses


def verdict_of(atom: Atom) -> str | None:
    """Human verdict on an atom, a key of `LABEL_TYPES`; None if there is none."""
    known = VERDICTS.get(atom.annotation or "", atom.annotation)
    if known in LABEL_TYPES:
        return known
    return None if atom.label is None else "supported" if atom.label else "non-supported"


def _recorded(graph: FactGraph) -> Iterable[AnnotatedResponse]:
    """Yield a response once for each of its assessors.

    Annotators labeled its claims without changing them.
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


def _claims(responses: Sequence[AnnotatedResponse]) -> pd.DataFrame:
    """A row per claim with its original and revised texts, and the types of verdicts.

    `own` is True if the pipeline found the claim, `kept` if annotators kept it, `judged` if both
    gave a verdict, and `same` and `same_type` if the verdicts or their types are equal.
    """
    frame = data_frame(
        [
            {
                "place": number,
                "annotated": response.is_annotated,
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
            for number, response in enumerate(responses)
            for claim in response.claims
        ],
        ["place", "annotated", *_CLAIM],
    )
    words = {who: [VERDICTS.get(word, word) for word in frame[who]] for who in ("verdict", "human")}
    types = {
        who: [LABEL_TYPES.get(word, "") for word in verdicts] for who, verdicts in words.items()
    }
    frame["annotated"] = frame["annotated"].astype(bool)
    frame["own"] = frame["operation"] != Operation.ADDED.value
    frame["kept"] = frame["operation"] != Operation.REMOVED.value
    frame["type"], frame["human_type"] = types["verdict"], types["human"]
    frame["judged"] = (frame["type"] != "") & (frame["human_type"] != "")
    same = np.array(words["verdict"], dtype=object) == np.array(words["human"], dtype=object)
    frame["same"] = frame["judged"] & same
    frame["same_type"] = frame["judged"] & (frame["type"] == frame["human_type"])
    return frame


def _counts(
    responses: Sequence[AnnotatedResponse], claims: pd.DataFrame, gamma: float
) -> pd.DataFrame:
    """A row per response with the counts `_STATISTICS` and their components."""
    flags = {
        **{each.value: claims["operation"] == each.value for each in Operation},
        "extracted": claims["own"],
        "judged": claims["judged"],
        "agreement_exact": claims["same"],
        "agreement_type": claims["same_type"],
        "said": claims["agreement"].isin(("agreed", "disagreed_corrected")),
        "agreement_said": claims["agreement"] == "agreed",
        **{f"own {kind}": claims["own"] & (claims["type"] == kind) for kind in _TYPES},
        **{f"human {kind}": claims["kept"] & (claims["human_type"] == kind) for kind in _TYPES},
    }
    sums = data_frame(flags).groupby(claims["place"]).sum()
    frame = sums.reindex(range(len(responses)), fill_value=0).astype(float)
    pipeline, human = (
        ClaimCounts(*(frame[f"{who} {kind}"] for kind in _TYPES)) for who in ("own", "human")
    )
    frame["k"], frame["k_human"] = pipeline.verifiable, human.verifiable
    frame["f1_pipeline"], frame["f1_human"] = (
        f1_at_k_prime(each.supported, each.unsupported, human.verifiable, gamma)
        for each in (pipeline, human)
    )
    frame["k_difference"] = (frame["k"] - frame["k_human"]).abs()
    for name in ("supported", "unsupported", "irrelevant"):
        frame[f"{name}_difference"] = np.abs(getattr(pipeline, name) - getattr(human, name))
    frame["f1_difference"] = (frame["f1_pipeline"] - frame["f1_human"]).abs()
    return frame.assign(
        response=[each.id for each in responses],
        model=[each.model for each in responses],
        benchmark=[each.benchmark for each in responses],
        annotated=[each.is_annotated for each in responses],
    )


def _alignment(counts: pd.DataFrame, by: str, gamma: float, intervals: IntervalSettings) -> Table:
    parts = counts.groupby(counts[by].replace("", f"no {by}"), sort=False)
    groups = {OVERALL: counts} | (
        {str(name): group_counts for name, group_counts in parts} if len(parts) > 1 else {}
    )
    rows: list[dict[str, Any]] = [
        {"statistic": name, "title": title} for name, title in _STATISTICS.items()
    ]
    for group, group_counts in groups.items():
        # Ratios of sums over responses, in one cell.
        ratios = {
            name: RatioSums(
                group_counts[[name]].to_numpy(),
                group_counts[[_SHARES[name]]].to_numpy()
                if name in _SHARES
                else np.ones((len(group_counts), 1)),
            )
            for name in _STATISTICS
        }
        estimates = estimate_all(
            [ratio.named(name, Scale.NUMBER) for name, ratio in ratios.items()], intervals
        )
        for row, estimate in zip(rows, estimates, strict=True):
            ends = float(estimate.estimate[0]), float(estimate.lower[0]), float(estimate.upper[0])
            if row["statistic"] in _SCORES:
                # Rounded as in other tables.
                ends = mean_interval(group_counts[row["statistic"]].to_numpy())
            factor = 100 if row["statistic"] in _SHARES else 1
            row |= named(group, (factor * value for value in ends))
    sizes = ", ".join(f"{group} {len(group_counts)}" for group, group_counts in groups.items())
    return Table(
        data_frame(rows),
        (*columns_as("title statistic"), *(interval_column(group, group, 2) for group in groups)),
        "Alignment of the pipeline with annotators, in the form of FaStfact's table 2: numbers "
        "per response.",
        note=(
            f"Responses: {sizes}. In brackets: 95% intervals over responses. Verdicts are "
            "compared on the claims that both judged; both F1@K' use the annotators' K', with "
            f"gamma {gamma:g}."
        ),
    )


def _verdicts(claims: pd.DataFrame) -> Table:
    """Verdicts of the pipeline and of annotators, by stage of the pipeline's verdict."""
    rows = []
    for stage in (Stage.PRE_VERIFIED.value, Stage.VERIFIED.value):
        here = claims[claims["stage"] == stage]
        pipeline, judged = here[here["own"]], here[here["judged"]]
        rows.append(
            {
                "stage": stage,
                "claims": len(pipeline),
                **{kind: int((pipeline["type"] == kind).sum()) for kind in _TYPES},
                "undecided": int((pipeline["type"] == "").sum()),
                "judged": len(judged),
                "exact": 100 * judged["same"].mean(),
                "type": 100 * judged["same_type"].mean(),
            }
        )
    columns = columns_as(
        "stage | claims:0 | supported:0 | non-supported:0 | irrelevant:0 | undecided:0 | "
        "judged:0 judged by people | exact:1 same verdict, % | type:1 same type, %"
    )
    return Table(
        data_frame(rows),
        columns,
        "Verdicts of the pipeline by stage: at extraction without a search, and from evidence.",
    )


def _labels(claims: pd.DataFrame) -> Table:
    """Contingency table of the pipeline's verdicts and human labels, by stage."""
    names = ["stage", "verdict", "human"]
    kept = claims[claims["kept"]].replace({"verdict": {"": "none"}, "human": {"": "none"}})
    return Table(
        kept.groupby(names).size().rename("claims").reset_index(),
        columns_as("stage | verdict pipeline | human people | claims:0"),
        "Verdicts of the pipeline and human labels.",
    )


def _by_response(counts: pd.DataFrame) -> Table:
    done = [each.value for each in Operation]
    names = ["response", "model", "benchmark", "extracted", *done, "k", "k_human"]
    frame = counts[names].rename(columns={"extracted": "claims"})
    # For responses without annotation, counts of zero mean unknown.
    frame.loc[~counts["annotated"], [*done, "k_human"]] = np.nan
    columns = (
        *columns_as("response | model | benchmark | claims:0 extracted"),
        *(Column(name, name, digits=0) for name in done),
        *columns_as("k:0 S + N of the pipeline | k_human:0 K' of people"),
    )
    return Table(frame, columns, "Responses, and the annotators' changes to their claims.")


def _tokens(responses: Sequence[AnnotatedResponse]) -> Table:
    stages = dict.fromkeys(stage for response in responses for stage in response.tokens)
    rows = []
    for stage in stages:
        values = [each.tokens[stage] for each in responses if stage in each.tokens]
        rows.append({"stage": stage, "responses": len(values), "tokens": float(np.mean(values))})
    columns = columns_as("stage | responses:0 | tokens:0 tokens per response")
    return Table(data_frame(rows), columns, "Tokens of the pipeline, from the file.")


def _sentences(counts: pd.DataFrame, claims: pd.DataFrame) -> Iterable[str]:
    """Remarks on annotated responses and their claims."""
    annotated = int(counts["annotated"].sum())
    if not annotated:
        yield (
            "This file has no annotations: it contains only the claims and verdicts of the "
            "pipeline, so there is nothing to align. The annotation tool adds "
            "annotation_status_details and annotator_label to each claim."
        )
        return
    done = ", ".join(
        f"{(claims['operation'] == each.value).sum():,} {each.value}" for each in Operation
    )
    yield f"{counted(annotated, 'annotated response')}: {done} claims."
    if missing := len(counts) - annotated:
        yield f"{counted(missing, 'response')} without annotation: left out of the alignment."
    open_yet = claims["agreement"] == "verification_pending"
    if pending := int(open_yet.sum()):
        yield f"{counted(pending, 'claim')} with a pending human verdict: not compared."
    if unknown := int((claims["kept"] & (claims["human_type"] == "") & ~open_yet).sum()):
        yield (
            f"{counted(unknown, 'claim')} that annotators kept without a verdict: counted as "
            "operations, not as verdicts."
        )


def counts_figure(counts: pd.DataFrame) -> dict[str, PaperFigure]:
    """Number of claims of the pipeline against the annotators', a point per annotated response."""
    from calibration.figures.panels import COLUMN, legend_above, panels

    shown = counts[counts["annotated"]]
    if not len(shown):
        return {}
    pipeline, human = shown["k"].to_numpy(), shown["k_human"].to_numpy()
    most = max(float(np.max([pipeline, human], initial=1.0)), 1.0)
    with panels(1, 1, (COLUMN, COLUMN)) as (figure, ((axes,),)):
        line = axes.plot([0, most], [0, most], color="0.7", linestyle="--", linewidth=0.8)
        points = axes.scatter(human, pipeline, s=14, alpha=0.6, color="C0")
        legend_above(axes, [points, *line], ["responses", "equal"])
        axes.set(
            xlabel="Claims that people judged (K')",
            ylabel="Claims that the pipeline judged (S + N)",
        )
    frame = data_frame({"response": [*shown["response"]], "human": human, "own": pipeline})
    return {
        "claims-counted": PaperFigure(figure, frame, "Claims of the pipeline and of annotators.")
    }
