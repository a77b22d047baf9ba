"""Human findings in responses, and agreement with recorded verdicts (FaStfact, table 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from calibration.claims.agreement import label_agreement
from calibration.claims.counts import f1_at_k_prime
from experiments.analyses.context import AnalysisContext
from experiments.analyses.judged_claims import (
    JudgedResponse,
    counts_of,
    judged_graphs,
    recorded_verdicts,
)
from experiments.analyses.user_data import SourceName, load
from experiments.evaluators.annotation_counts import JUDGED, read_counts, shares_of
from experiments.findings.artifacts import Artifacts
from experiments.findings.table import Column, Table, columns_as, data_frame
from experiments.settings.keyed import Keyed
from experiments.settings.limits import Gamma
from experiments.study.manifest import file_hash
from factormodels.io.formats.fastfact_counts import GroupedCounts

OVERALL = "Overall"


class Settings(Keyed):
    """Settings of the analysis."""

    data: SourceName = "fastfact-bench"
    """Name of the responses with the claims and verdicts of people."""

    gamma: Gamma = 0.1
    """Rate at which recall decreases away from K'; the paper does not state its value."""


def run(settings: Settings, context: AnalysisContext) -> Artifacts:
    """The table of human findings, and of recorded verdicts if there are any."""
    if context.given is not None and (counts := read_counts(context.given)) is not None:
        return _of_counts(settings.data, counts, context)
    graphs, remark = load(settings.data, context)
    human = judged_graphs(graphs)
    left_out = sum(len(graph.atoms) for graph in graphs) - sum(
        len(response.claims) for response in human
    )
    if left_out:
        remark += f" {left_out:,} claims of people have no verdict and are left out."
    groups = [*dict.fromkeys(response.group for response in human), OVERALL]
    statistics = {
        group: _values(
            [response for response in human if group in (OVERALL, response.group)], settings.gamma
        )
        for group in groups
    }
    tables = {"table-7": _table(statistics, remark)}
    if recorded := recorded_verdicts(graphs):
        tables["verdicts"] = _agreement(recorded, remark)
    return Artifacts(tables, remarks=(remark,))


def _of_counts(name: str, counts: GroupedCounts, context: AnalysisContext) -> Artifacts:
    """The table from sums, from which F1@K' and K' cannot be computed."""
    remark = (
        f"Data of {context.given}: sums without claims, pooled over responses, so K' and F1@K' are "
        "not known."
    )
    context.sources.add(name)
    context.data[name] = {
        "sha256": file_hash(context.given) if context.given else "",
        "responses": counts.overall.n_responses,
        "atoms": sum(counts.overall.labels.values()),
        "labeled": sum(counts.overall.labels.get(label, 0) for label in JUDGED),
    }
    groups = {**counts.by_benchmark, OVERALL: counts.overall}
    statistics = {group: shares_of(each) for group, each in groups.items()}
    return Artifacts({"table-7": _table(statistics, remark)}, remarks=(remark,))


def _table(statistics: Mapping[str, Mapping[str, float]], remark: str) -> Table:
    frame = data_frame(statistics).rename_axis("statistic").reset_index()
    columns = (
        Column("statistic", "statistic"),
        *(Column(each, each, digits=2) for each in statistics),
    )
    caption = (
        "FaStfact, table 7: what people found, per response; kinds of claims in percent of the "
        f"claims. {remark}"
    )
    return Table(frame, columns, caption)


def _values(responses: Sequence[JudgedResponse], gamma: float) -> dict[str, float]:
    counts = counts_of(responses)
    verdict_counts = Counter(verdict for response in responses for verdict in response.verdicts)
    total = verdict_counts.total()

    def percent(*verdicts: str) -> float:
        return (
            100 * sum(verdict_counts[each] for each in verdicts) / total if total else float("nan")
        )

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


def _agreement(verdicts: Sequence[tuple[str, str]], remark: str) -> Table:
    agreement = label_agreement(
        [verdict for verdict, _ in verdicts], [other for _, other in verdicts]
    )
    shares = {"exact": 100 * agreement.exact, "type": 100 * agreement.type}
    row = {"claims": agreement.n, **{f"agreement_{of}": share for of, share in shares.items()}}
    columns = columns_as(
        "claims:0 | agreement_exact:1 same verdict, % | agreement_type:1 same type, %"
    )
    title = f"Verdicts that the data record against people's. {remark}"
    return Table(data_frame([row]), columns, title)
