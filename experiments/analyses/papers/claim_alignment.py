"""How pipelines' claims and scores agree with people's, as in FaStfact's tables 1, 2 and 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from calibration.claims.agreement import claim_edits, label_agreement, mean_edits
from calibration.claims.counts import count_alignment, f1_at_k_prime
from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.shared.judged_claims import (
    JudgedResponse,
    counts_of,
    fastfact_pipeline,
    judged_graphs,
    recorded_verdicts,
    run_pipeline,
    sentence_pipeline,
)
from experiments.analyses.papers.shared.loading import Loaded, language_model, load, load_by_model
from experiments.analyses.papers.shared.published import (
    Published,
    printed,
    printed_rows,
    records,
    with_published,
)
from experiments.analyses.papers.shared.sources import DATA_FILE, SourceName
from experiments.findings.artefacts import Artefacts
from experiments.findings.table import Column, Table, data_frame, text_columns
from experiments.study.config import STRICT, Count
from factormodels.errors import InputError
from factormodels.extraction.language_model import LanguageModel
from factormodels.fact_graph import FactGraph

PIPELINES = "fastfact-pipelines"
OVERALL = "Overall"

OF_PIPELINES = ("table-1", "table-2")
"""Tables that there are only where a pipeline's claims are known."""


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        data: name of the responses with the claims and verdicts of people.
        gamma: of F1@K'; the paper does not print its own.
        passages: passages per search of the pipelines that are run here.
        published: the numbers that stand in the table of published ones.
        data_file: file that says where data are; None: the default one, if it exists.
    """

    __pydantic_config__: ClassVar = STRICT

    data: SourceName
    gamma: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.1
    passages: Count = 3
    published: tuple[Published, ...] = ()
    data_file: str | None = None


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """The tables of pipelines, of stages and of what people found."""
    loaded = load(settings.data, context, settings.data_file)
    graphs = loaded.graphs
    human = judged_graphs(graphs)
    pipelines, said = _pipelines_of(loaded, settings, context)
    remark = loaded.remark + said
    left_out = sum(len(graph.atoms) for graph in graphs) - sum(len(one.claims) for one in human)
    if left_out:
        remark += f" {left_out:,} claims of people have no verdict and are left out."
    tables = {}
    if pipelines:
        tables = {
            "table-1": _pipelines(pipelines, human, settings.gamma, remark),
            "table-2": _stages(pipelines, human, settings.gamma, remark),
            "table-2-paper": _printed_by_group(2, 3),
        }
    tables |= {
        "table-7": _people(human, settings.gamma, remark),
        "table-7-paper": _printed_by_group(7, 2),
    }
    if recorded := recorded_verdicts(graphs):
        tables["verdicts"] = _recorded(recorded, remark)
    published = [each for each in settings.published if pipelines or each.table not in OF_PIPELINES]
    return with_published(tables, published, remark)


def _pipelines_of(
    loaded: Loaded, settings: Settings, context: AnalysisContext
) -> tuple[dict[str, list[JudgedResponse]], str]:
    """What the user's pipelines said, or those run here with the user's first model; a remark."""
    user = loaded.user
    if PIPELINES in user.paths:
        theirs = load_by_model(PIPELINES, "pipeline", context, settings.data_file)
        return {name: judged_graphs(each.graphs) for name, each in theirs.parts.items()}, ""
    if not user.models:
        return {}, (
            f" Of pipelines nothing is known: name {PIPELINES} under datasets, or a language model "
            f"under models, in {user.where or DATA_FILE}."
        )
    name, access = next(iter(user.models.items()))
    model = language_model(name, access, context)
    return _run(loaded.graphs, model, settings, context), f" The pipelines were run with {name}."


def _run(
    graphs: Sequence[FactGraph],
    model: LanguageModel,
    settings: Settings,
    context: AnalysisContext,
) -> dict[str, list[JudgedResponse]]:
    from factormodels.extraction.retrieval.bm25 import build_collection
    from factormodels.extraction.retrieval.documents import documents_of_graphs

    retriever = build_collection(documents_of_graphs(graphs), top_k=settings.passages)
    kinds = {
        "FaStfact": fastfact_pipeline,
        "VeriScore": sentence_pipeline("veriscore"),
        "FactScore": sentence_pipeline("factscore"),
    }
    found = {}
    with context.track("pipelines", len(kinds)) as advance:
        for name, pipeline in kinds.items():
            found[name] = run_pipeline(pipeline, graphs, model, retriever)
            advance()
    return found


def _matched(
    responses: Sequence[JudgedResponse], human: Sequence[JudgedResponse], name: str
) -> tuple[list[JudgedResponse], list[JudgedResponse]]:
    by_id = {response.id: response for response in responses}
    both = [(by_id[one.id], one) for one in human if one.id in by_id]
    if not both:
        raise InputError(f"{name}: it has none of the responses that people judged; match the ids")
    return [one for one, _ in both], [other for _, other in both]


def _pipelines(
    pipelines: Mapping[str, Sequence[JudgedResponse]],
    human: Sequence[JudgedResponse],
    gamma: float,
    remark: str,
) -> Table:
    rows: list[dict[str, Any]] = []
    for name, responses in pipelines.items():
        own, people = _matched(responses, human, name)
        found = count_alignment(counts_of(own), counts_of(people), gamma)
        tokens = [response.tokens for response in own if response.tokens is not None]
        rows.append(
            {
                "origin": "ours",
                "pipeline": name,
                "f1": found.mean_f1,
                "f1_human": found.human_mean_f1,
                "f1_difference": found.f1_of_means,
                "f1_mean_difference": found.f1,
                "k_difference": found.k,
                "tokens": float(np.mean(tokens)) if tokens else float("nan"),
            }
        )
    keys = ("pipeline", "f1", "f1_difference", "k_difference", "tokens")
    # The table prints F1@K' of people once, for all pipelines.
    rows += [{**row, "f1_human": 0.792} for row in printed_rows("fastfact_table_1", *keys)]
    frame = data_frame(rows)
    columns = (
        *text_columns("origin", "pipeline"),
        Column("f1", "F1@K'", digits=3),
        Column("f1_human", "F1@K' of people", digits=3),
        Column("f1_difference", "|difference of means|", digits=3),
        Column("f1_mean_difference", "mean |difference|", digits=3),
        Column("k_difference", "mean |difference of K'|", digits=2),
        Column("tokens", "tokens per response", digits=0),
    )
    note = (
        f"Gamma of F1@K' is {gamma:g}. The paper's |difference of F1@K'| is that of the means; the "
        "mean of differences, which does not let errors cancel, stands beside it."
    )
    return Table(frame, columns, f"FaStfact, table 1. {remark}", note=note)


def _stages(
    pipelines: Mapping[str, Sequence[JudgedResponse]],
    human: Sequence[JudgedResponse],
    gamma: float,
    remark: str,
) -> Table:

    name = "FaStfact" if "FaStfact" in pipelines else next(iter(pipelines))
    own, people = _matched(pipelines[name], human, name)
    pairs = list(zip(own, people, strict=True))
    groups = list(dict.fromkeys(response.group for response in people))
    found = {
        group: _stage_values([pair for pair in pairs if group in (OVERALL, pair[1].group)], gamma)
        for group in (OVERALL, *groups)
    }
    caption = (
        f"FaStfact, table 2: {name} against people, means over responses; agreement in percent of "
        f"the claims that both have. {remark}"
    )
    return _by_group(found, caption, digits=3)


def _stage_values(
    pairs: Sequence[tuple[JudgedResponse, JudgedResponse]], gamma: float
) -> dict[str, float]:
    own, people = [one for one, _ in pairs], [other for _, other in pairs]
    edits = [claim_edits(one.claims, other.claims) for one, other in pairs]
    verdicts = [
        (one.verdicts[i], other.verdicts[j])
        for (one, other), edit in zip(pairs, edits, strict=True)
        for i, j in (*edit.unchanged, *edit.revised)
    ]
    exact = by_type = float("nan")
    if verdicts:
        agreement = label_agreement([one for one, _ in verdicts], [other for _, other in verdicts])
        exact, by_type = 100 * agreement.exact, 100 * agreement.type
    counts = count_alignment(counts_of(own), counts_of(people), gamma)
    return {
        **mean_edits(edits),
        "agreement_exact": exact,
        "agreement_type": by_type,
        "k_difference": counts.k,
        "f1_difference": counts.f1_of_means,
        "supported_difference": counts.supported,
        "unsupported_difference": counts.unsupported,
        "irrelevant_difference": counts.irrelevant,
        "f1_human": counts.human_mean_f1,
        "f1_fastfact": counts.mean_f1,
    }


def _recorded(verdicts: Sequence[tuple[str, str]], remark: str) -> Table:
    """The agreement of the verdicts that the data record with those of people."""
    agreement = label_agreement([one for one, _ in verdicts], [other for _, other in verdicts])
    shares = {"exact": 100 * agreement.exact, "type": 100 * agreement.type}
    row = {"claims": agreement.n, **{f"agreement_{of}": share for of, share in shares.items()}}
    frame = data_frame([row])
    columns = (
        Column("claims", "claims", digits=0),
        Column("agreement_exact", "same verdict, %", digits=1),
        Column("agreement_type", "same type, %", digits=1),
    )
    return Table(frame, columns, f"Verdicts that the data record against people's. {remark}")


def _people(human: Sequence[JudgedResponse], gamma: float, remark: str) -> Table:

    groups = [*dict.fromkeys(response.group for response in human), OVERALL]
    found = {
        group: _people_values([one for one in human if group in (OVERALL, one.group)], gamma)
        for group in groups
    }
    caption = (
        "FaStfact, table 7: what people found, per response; kinds of claims in percent of the "
        f"claims. {remark}"
    )
    return _by_group(found, caption, digits=2)


def _by_group(found: Mapping[str, Mapping[str, float]], caption: str, *, digits: int) -> Table:
    """A table with a row per statistic and a column per benchmark."""
    frame = data_frame(found).rename_axis("statistic").reset_index()
    columns = [Column("statistic", "statistic")]
    columns += [Column(group, group, digits=digits) for group in found]
    return Table(frame, tuple(columns), caption)


def _printed_by_group(number: int, digits: int) -> Table:
    found: dict[str, dict[str, float]] = {}
    for row in records(printed(f"fastfact_table_{number}")):
        found.setdefault(row["benchmark"], {})[row["statistic"]] = row["printed"]
    return _by_group(found, f"FaStfact, table {number}, as the paper prints it.", digits=digits)


def _people_values(responses: Sequence[JudgedResponse], gamma: float) -> dict[str, float]:
    counts = counts_of(responses)
    total = sum(len(response.claims) for response in responses)

    def percent(*verdicts: str) -> float:
        held = sum(verdict in verdicts for one in responses for verdict in one.verdicts)
        return 100 * held / total if total else float("nan")

    unsupported = ("refuted", "not enough evidence", "conflicting evidence", "non-supported")
    scores = f1_at_k_prime(counts.supported, counts.unsupported, counts.verifiable, gamma)
    return {
        "claims": total / len(responses),
        "supported": percent("supported"),
        "unsupported": percent(*unsupported),
        "refuted": percent("refuted"),
        "not_enough_evidence": percent("not enough evidence"),
        "conflicting_evidence": percent("conflicting evidence"),
        "others": percent("non-supported"),
        "irrelevant": percent("irrelevant", "unverifiable"),
        "k_prime": float(counts.verifiable.mean()),
        "f1": 100 * float(scores.mean()),
    }
