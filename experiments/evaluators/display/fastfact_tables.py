"""Tables of FaStfact's results, from its graphs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.claims.counts import f1_at_k_prime, recall_at_k_prime
from calibration.intervals import mean_interval
from experiments.columns.frame import LONG, claim_row
from experiments.evaluators.calls.costs import METHODS, Load
from experiments.evaluators.core import kept_claims
from experiments.findings.table import Table, columns_as, data_frame, named, text_columns
from factormodels.extraction.asking.claim_faults import CATEGORIES, MISSING
from factormodels.extraction.asking.claim_lines import PreLabel
from factormodels.extraction.asking.table import PRE_VERIFICATION
from factormodels.extraction.claim_failures import METADATA_KEY as FAILURES_KEY
from factormodels.extraction.fastfact import CLAIM_TYPES, FASTFACT_KEY, audit_of
from factormodels.extraction.language_model.accounting import Ledger, StageUsage, total
from factormodels.extraction.preverification import Threshold, choose_threshold
from factormodels.fact_graph import FactGraph
from factormodels.metadata.recorded_verdicts import verdicts_of
from factormodels.metadata.stage_keys import CONSUMPTION_KEY

if TYPE_CHECKING:
    import pandas as pd

VERIFICATION = "fastfact"
"""Stage of the verification calls, which the ledger counts under the assessor's name."""

EVERYTHING = "all"

_LEVEL = 0.95
_CLAIMS = (
    *LONG,
    *("sentence", "prelabel", "confidence", "skipped", "audited", "verdict", "type", "missing"),
)
_EFFORT = (
    *("sentences", "claims", "verified_share", "extracting_calls", "verifying_calls"),
    *("audit_calls", "searches", "audit_searches"),
)
_SCORES = ("precision", "k_prime", "recall", "f1")
_OF_CORE = (
    *("core_claims", "core_supported", "core_unsupported"),
    *("core_precision", "core_recall", "core_f1"),
)
_FIRST = (
    *("response", "supported", "unsupported", "irrelevant", "missing", "missing_chunks"),
    "unread_lines",
    *_SCORES,
    *_EFFORT,
    *("pages", "prompt_tokens", "completion_tokens", "cost"),
)


_SHOWN = {
    "responses": (
        "FaStfact's counts and scores of responses.",
        "response | supported:0 S | unsupported:0 N | irrelevant:0 I | missing:0 | precision:3 | "
        "k_prime:0 K' | recall:3 R_K' | f1:3 F1@K' | claims:0 | verified_share:3 p | searches:0 | "
        "pages:0 | cost:4 cost (US$)",
    ),
    "core": (
        "Only the claims that count (Core).",
        "response | claims:0 | supported:0 S | unsupported:0 N | precision:3 | recall:3 R_K' | "
        "f1:3 F1@K'",
    ),
    "summary": (
        "F1@K', means over responses, with 95% intervals.",
        "responses:0 | scored:0 | f1:3± F1@K' | precision:3 | claims:1 | missing:0 | "
        "cost:4 cost (US$)",
    ),
    "claims": ("Claims.", "claim | prelabel | confidence:3 | verdict | text"),
    "curve": (
        "Means over responses for possible values of K'.",
        "k_prime:0 K' | precision:3 | recall:3 R_K' | f1:3 F1@K'",
    ),
    "claim_failures": (
        "Failures of extracted claims, judged by the model.",
        "category | failure | count:0 | claims:0 | share:3",
    ),
    "cost": (
        "Calls, searches and cost by stage, compared with FaStfact's table 6.",
        "stage | needed:0 | formula:0 | audit:0 of them audit | calls:0 | cached:0 | "
        "failures:0 failed | prompt_tokens:0 tokens in | completion_tokens:0 out | "
        "cost:4 cost (US$) | per_response:4 per response",
    ),
    "methods": (
        "Calls of several methods for these responses, by the formulas of FaStfact's table 6, with "
        "3 passages for each claim of FR1 to FR3 (in a dry run, no two claims share one).",
        "method | extracting:0 | verifying:0 | searches:0 | calls:0",
    ),
    "audit": (
        "Skipped claims that the audit verified.",
        "skipped:0 | claims:0 | wrong:0 | share:3",
    ),
    "calls": ("Upper bound on the calls.", "stage | calls:0"),
}
"""Caption of each table, and its shown columns."""

_NOTE = (
    "Tokens and cost cover all answers, including cached, unusable and failed responses' answers."
)

_CURVE = (1, 2, 5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200)
"""Values of K' in the curve."""


def shown_table(name: str, frame: pd.DataFrame, by: Sequence[str] = ()) -> Table:
    """Display table of the evaluation; hidden columns are data.

    Args:
        name: name of the table.
        frame: its data.
        by: columns of the input to group rows by, if the table has them.
    """
    caption, header = _SHOWN[name]
    groups = text_columns(*(each for each in by if each in frame))
    measures = tuple(column for column in columns_as(header) if column.name in frame)
    note = ""
    if name == "cost":
        unknown = "unpriced" in frame and bool(frame["unpriced"].fillna(0).sum())
        note = _NOTE + "  The prices of some answers are unknown." * unknown
    return Table(frame, (*groups, *measures), caption, note=note)


def columns_of(graph: FactGraph) -> dict[str, Any]:
    """Columns of the input for a response other than its text, by name."""
    others = {name: value for name, value in graph.metadata.items() if name != "columns"}
    return {**others, **graph.metadata.get("columns", {})}


def claim_table(graphs: Iterable[FactGraph]) -> pd.DataFrame:
    """Long frame of claims: P(true) by the verdict, the verdict, and how it counts."""
    rows: list[dict[str, Any]] = []
    for graph in graphs:
        verdicts = verdicts_of(graph, VERIFICATION)
        for atom in graph.atoms:
            facts = graph.metadata[FASTFACT_KEY]["claims"][atom.id]
            p = verdicts[atom.id].p_true if atom.id in verdicts else None
            kind = CLAIM_TYPES.get(facts["verdict"], "")
            row = claim_row(graph.id, atom, p, sentence=atom.sentence, **facts, type=kind)
            rows.append(row)
    return data_frame(rows, list(_CLAIMS)).astype({"p": float})


def failure_table(graphs: Iterable[FactGraph], by: Sequence[str]) -> pd.DataFrame:
    """Failures of extracted claims, a row per group and kind (figure 5 and table 5).

    `count` and `share` refer to the claims that the judge answered; the share of missing claims
    refers to the extracted ones. A claim may have several failures; a category counts it once.

    Args:
        graphs: responses whose claims were judged.
        by: columns of the input to group by, if the input has them.
    """
    keys = [name for name in by if any(name in columns_of(graph) for graph in graphs)]
    rows = [
        {
            **{name: str(columns_of(graph).get(name, "")) for name in keys},
            **counts,
            "unanswered": len(graph.metadata[FAILURES_KEY]["failures"]),
        }
        for graph in graphs
        for counts in _failure_counts(graph)
    ]
    kind = [*keys, "category", "failure"]
    frame = data_frame(rows, [*kind, "count", "claims", "unanswered"])
    failures = frame.groupby(kind, sort=False, as_index=False).sum()
    failures.insert(
        len(kind) + 2, "share", failures["count"] / failures["claims"].replace(0, math.nan)
    )
    return failures


def _failure_counts(graph: FactGraph) -> Iterator[dict[str, Any]]:
    failures = graph.metadata[FAILURES_KEY]
    judged = [set(claim_kinds) for claim_kinds in failures["claims"].values()]
    for category, names in CATEGORIES.items():
        for name, kinds in ((EVERYTHING, names), *((name, (name,)) for name in names)):
            count = sum(not claim_kinds.isdisjoint(kinds) for claim_kinds in judged)
            yield {"category": category, "failure": name, "count": count, "claims": len(judged)}
    missing = failures["missing_claims"]
    claims = 0 if missing is None else len(graph.atoms)
    reasons = [reason for _, reason in missing or ()]
    for name in (EVERYTHING, *MISSING):
        count = len(reasons) if name == EVERYTHING else reasons.count(name)
        yield {"category": "missing", "failure": name, "count": count, "claims": claims}


def response_table(
    graphs: Iterable[FactGraph],
    k_prime: Mapping[str, float],
    gamma: float,
    by: Sequence[str],
) -> pd.DataFrame:
    """A row per response: its claims by type, its score, and its costs.

    Args:
        graphs: the responses.
        k_prime: K' by id of response, for responses with a human count.
        gamma: decay rate of recall at K'.
        by: columns of the input to keep, if the input has them.
    """
    rows = [_response(graph, k_prime.get(graph.id), gamma, by) for graph in graphs]
    grouping = [name for name in by if any(name in row for row in rows)]
    core = _OF_CORE if any("core_claims" in row for row in rows) else ()
    frame = data_frame(rows, [_FIRST[0], *grouping, *_FIRST[1:], *core])
    return frame.astype(dict.fromkeys((*_SCORES, "verified_share", "cost"), "float64"))


def leaderboard(responses: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean F1@K' and its components, a row per group, the best first.

    Args:
        responses: output of `response_table`.
        by: columns to group responses by, with an additional row over all values of the second and
            later columns. Missing columns are ignored.
    """
    keys = [name for name in by if name in responses.columns]
    rows = []
    for depth in range(min(len(keys), 1), len(keys) + 1):
        whole = dict.fromkeys(keys[depth:], EVERYTHING)
        groups = responses.groupby(keys[:depth], sort=False, dropna=False) if depth else None
        for values, members in [((), responses)] if groups is None else groups:
            rows.append({**dict(zip(keys, values, strict=False)), **whole, **_mean(members)})
    rows.sort(key=lambda row: -math.inf if math.isnan(row["f1"]) else row["f1"], reverse=True)
    return data_frame(rows)


def curve_table(responses: pd.DataFrame, gamma: float) -> pd.DataFrame:
    """Precision, recall and F1@K', means over responses, for some K' up to twice their claims.

    One K' is used for all responses. No human count is needed, and none is substituted.
    """
    s = responses["supported"].to_numpy(dtype=np.float64)
    n = responses["unsupported"].to_numpy(dtype=np.float64)
    longest = max(10, 2 * int((s + n).max(initial=0)))
    table = data_frame({"k_prime": [*(k for k in _CURVE if k < longest), longest]})
    table["precision"] = responses["precision"].mean()
    scores = {
        "recall": [recall_at_k_prime(s, k, gamma) for k in table["k_prime"]],
        "f1": [f1_at_k_prime(s, n, k, gamma) for k in table["k_prime"]],
    }
    for name, values in scores.items():
        table[name] = [float(each.mean()) if len(s) else math.nan for each in values]
    return table


def cost_table(
    graphs: Sequence[FactGraph], ledger: Ledger, spent: Sequence[Mapping[str, Any]] = ()
) -> pd.DataFrame:
    """A row per stage: calls compared with the formulas of table 6, tokens and cost of all answers.

    `calls` counts new calls, `cached` answers from the cache, `failures` failed calls. `answers`,
    tokens and `cost` cover all answers that the responses needed, whenever they were paid for,
    including answers to responses that failed in this run; `per_response` is the mean of `cost`
    over both. Stages outside the formulas, such as the probe, have neither `needed` nor `formula`,
    and their tokens and cost cover this run's calls and cached answers. `needed` is the number of
    calls or searches that the responses need, `audit` the part for the audit, which `formula`
    leaves out. Pages are the pages that gave evidence.

    Args:
        graphs: the responses.
        ledger: calls of the run.
        spent: usage of each failed response by stage.
    """
    taken = [*spent, *(graph.metadata.get(CONSUMPTION_KEY, {}) for graph in graphs)]
    efforts = [graph.metadata[FASTFACT_KEY]["effort"] for graph in graphs]
    formulas = [METHODS["FaStfact"](_load(graph)) for graph in graphs]

    def summed(name: str) -> int:
        return sum(effort[name] for effort in efforts)

    rows: list[dict[str, Any]] = []
    for stage, needed, audit, formula in (
        (PRE_VERIFICATION.name, "extracting_calls", 0,
         sum(formula.extracting for formula in formulas)),
        (VERIFICATION, "verifying_calls", summed("audit_calls"),
         sum(formula.verifying for formula in formulas)),
    ):  # fmt: skip
        usage = ledger.stages.get(stage, StageUsage())
        used = total(response_usage[stage] for response_usage in taken if stage in response_usage)
        rows.append(
            {
                "stage": stage,
                "needed": summed(needed) + audit,
                "audit": audit,
                "formula": formula,
                "calls": usage.calls,
                "cached": usage.cached,
                "failures": usage.failures,
                **used,
                "cost": _price(used),
                "per_response": _price(used) / len(taken) if taken else math.nan,
            }
        )
    searches = summed("audit_searches")
    rows.append(
        {
            "stage": "searches",
            "needed": summed("searches") + searches,
            "audit": searches,
            "formula": sum(formula.searches for formula in formulas),
        }
    )
    rows.append({"stage": "pages", "needed": sum(_pages(graph) for graph in graphs)})
    # Stages outside the formulas: the probe, failures of claims, relations of Core.
    counted = {row["stage"] for row in rows}
    rows += [
        _beside(stage, usage, len(taken))
        for stage, usage in ledger.stages.items()
        if stage not in counted
    ]
    return data_frame(rows)


def _beside(stage: str, usage: StageUsage, n_responses: int) -> dict[str, Any]:
    """Return the row of a stage without a formula."""
    used = {
        "answers": usage.made,
        "prompt_tokens": usage.taken.prompt_tokens,
        "completion_tokens": usage.taken.completion_tokens,
        "cost": usage.cost + usage.cached_cost,
        "unpriced": usage.unpriced + usage.cached_unpriced,
    }
    return {
        "stage": stage,
        "calls": usage.calls,
        "cached": usage.cached,
        "failures": usage.failures,
        **used,
        "cost": _price(used),
        "per_response": _price(used) / n_responses if n_responses else math.nan,
    }


def loads_of(graphs: Iterable[FactGraph]) -> list[Load]:
    """Loads of judged responses on an assessor."""
    return [_load(graph) for graph in graphs]


def method_table(loads: Sequence[Load]) -> pd.DataFrame:
    """Calls and searches of several methods for the responses, by FaStfact's table 6.

    q = 1; FR1, FR2 and FR3 have k = 3 distinct contexts per claim.
    """
    columns = ("extracting", "verifying", "searches", "calls")
    return data_frame(
        [
            {
                "method": name,
                **{
                    column: sum(getattr(method(load), column) for load in loads)
                    for column in columns
                },
            }
            for name, method in METHODS.items()
        ]
    )


def audit_table(graphs: Iterable[FactGraph]) -> pd.DataFrame:
    """A row with the error rate of skipping over all responses.

    Columns: `skipped`, the number of skipped claims; `claims`, the audited ones; `wrong`; and their
    share with its 95% interval (Clopper and Pearson).
    """
    facts = [graph.metadata[FASTFACT_KEY] for graph in graphs]
    skipped = sum(claim["skipped"] for fact in facts for claim in fact["claims"].values())
    claims, wrong = (sum(fact["audit"][name] for fact in facts) for name in ("claims", "wrong"))
    share = wrong / claims if claims else math.nan
    row = {"skipped": skipped, **asdict(audit_of(claims, wrong)), "share": share}
    return data_frame([row], ["skipped", "claims", "wrong", "share", "lower", "upper"])


def guaranteed_threshold(claims: pd.DataFrame, target_error: float) -> Threshold | None:
    """Lowest θ at which at most a share of the skipped claims is wrong, with 95% confidence.

    None if no claim with a confidence in a definite label was verified.

    Args:
        claims: output of `claim_table`, with every skipped claim audited.
        target_error: largest share of wrong claims, between 0 and 1.

    Raises:
        InputError: if the share is out of range.
    """
    definite = claims["prelabel"].isin([str(label) for label in PreLabel if label.definite])
    verified = ~claims["skipped"].astype(bool) | claims["audited"].astype(bool)
    known = claims[definite & verified & claims["confidence"].notna() & (claims["type"] != "")]
    if known.empty:
        return None
    right = known["prelabel"].map(CLAIM_TYPES) == known["type"]
    return choose_threshold(known["confidence"].tolist(), right.tolist(), target_error)


def _response(
    graph: FactGraph, k_prime: float | None, gamma: float, by: Sequence[str]
) -> dict[str, Any]:
    facts = graph.metadata[FASTFACT_KEY]
    verdicts = {claim: claim_facts["verdict"] for claim, claim_facts in facts["claims"].items()}
    lacking = bool(facts["failures"] or facts.get("unread"))
    selected = kept_claims(graph)
    core: dict[str, Any] = {}
    if selected is not None:
        kept = [verdict for claim, verdict in verdicts.items() if claim in selected]
        scores = {"claims": len(kept), **_scored(kept, k_prime, gamma, lacking)}
        core = {f"core_{name}": value for name, value in scores.items()}
    used = total(graph.metadata.get(CONSUMPTION_KEY, {}).values())
    # The table selects among these columns.
    return {
        **{name: value for name, value in columns_of(graph).items() if name in by},
        "response": graph.id,
        **_scored([*verdicts.values()], k_prime, gamma, lacking),
        "missing": [*verdicts.values()].count(""),
        "missing_chunks": len(facts["failures"]),
        "unread_lines": len(facts.get("unread", ())),
        "k_prime": math.nan if k_prime is None else k_prime,
        **core,
        **facts["effort"],
        "pages": _pages(graph),
        **used,
        "cost": _price(used),
    }


def _scored(
    verdicts: Sequence[str], k_prime: float | None, gamma: float, failures: bool
) -> dict[str, Any]:
    """Claims by type, precision, recall at K' and F1@K' of some verdicts."""
    counts = Counter(CLAIM_TYPES[verdict] for verdict in verdicts if verdict)
    s, n = counts["supported"], counts["non-supported"]
    recall = f1 = math.nan
    # Without verdicts that count, there is a score only if nothing is missing.
    if k_prime is not None and (s + n or not ("" in verdicts or failures)):
        recall = float(recall_at_k_prime([s], [k_prime], gamma)[0])
        f1 = float(f1_at_k_prime([s], [n], [k_prime], gamma)[0])
    return {
        "supported": s,
        "unsupported": n,
        "irrelevant": counts["irrelevant"],
        "precision": s / (s + n) if s + n else math.nan,
        "recall": recall,
        "f1": f1,
    }


def _price(used: Mapping[str, Any]) -> float:
    """Price of answers in US dollars; NaN if no price is known."""
    known = used["answers"] > used["unpriced"] or not used["answers"]
    return float(used["cost"]) if known else math.nan


def _mean(responses: pd.DataFrame) -> dict[str, Any]:
    return {
        "responses": len(responses),
        "scored": int(responses["f1"].notna().sum()),
        **named("f1", mean_interval(responses["f1"].to_numpy(dtype=float), _LEVEL)),
        "precision": float(responses["precision"].mean()),
        "claims": float((responses["supported"] + responses["unsupported"]).mean()),
        "missing": int(responses["missing"].sum()),
        "missing_chunks": int(responses["missing_chunks"].sum()),
        "unread_lines": int(responses["unread_lines"].sum()),
        "cost": float(responses["cost"].mean()),
    }


def _load(graph: FactGraph) -> Load:
    facts = graph.metadata[FASTFACT_KEY]
    effort, stride = facts["effort"], facts["settings"]["stride"]
    return Load(
        effort["sentences"],
        effort["claims"],
        unsure=effort["verified_share"] or 0.0,
        stride=max(1, effort["sentences"] if stride is None else stride),
    )


def _pages(graph: FactGraph) -> int:
    return len({(context.link, context.title) for context in graph.contexts})
