"""Tables of an assessment, from its graphs, and of its estimated calls."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from experiments.columns.assessed_metadata import METADATA_KEY
from experiments.columns.frame import LONG
from experiments.evaluators.batches.batch import Batch
from experiments.evaluators.core import kept_claims
from experiments.evaluators.display.marked_texts import deciding_sentences
from experiments.evaluators.estimate import RELATED_SHARE, StageEstimate
from experiments.evaluators.open_relations import RANGED
from experiments.evaluators.response import (
    AssessedResponse,
    Compared,
    by_strength,
    summarize_judged,
)
from experiments.findings.table import (
    ENDS,
    Column,
    Table,
    columns_as,
    data_frame,
    interval_column,
    named,
    text_columns,
)
from experiments.findings.text import (
    ABSENT,
    duration,
    in_sample_remark,
    interval,
    shortened,
    verdict,
)
from factormodels.claims import RelationKind, likeliest_kind
from factormodels.conventions import DEFAULT, Conventions, meaning_of
from factormodels.extraction.stages.duplicates import every_atom
from factormodels.extraction.stages.relations import METADATA_KEY as RELATIONS_KEY
from factormodels.fact_graph import FactGraph
from factormodels.metadata.recorded_verdicts import ASSESSORS_KEY
from factormodels.metadata.stage_keys import STAGE_KEYS
from factormodels.nouns import counted
from factormodels.samples import is_sample

if TYPE_CHECKING:
    from inference.backend import Backend

MEASURES: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "supported": ("#S", 1),
        "contradicted": ("#C", 1),
        "undecided": ("#U", 1),
        "precision": ("Pr", 3),
        "recall_at_k": ("R_K", 3),
        "f1_at_k": ("F1@K", 3),
        "entropy": ("E", 3),
        "expected_precision": ("E[Pr]", 3),
        "human_precision": ("human Pr", 3),
        "precision_mae": ("MAE", 3),
        "f1": ("F1", 3),
        "f1_by_response": ("F1 by response", 3),
        "brier": ("Brier", 3),
        "accuracy": ("accuracy", 3),
    }
)
"""Title and decimals of every shown measure."""

_CLAIMS = (*LONG, "variant", "supporting", "contradicting")
_EVIDENCE = (
    *("response", "claim", "variant", "claim_text", "context", "relation", "probability"),
    *("change", "change_error", "title", "text", "of"),
)


def claim_table(graphs: Sequence[FactGraph]) -> Table:
    """Table of claims with a row per claim and variant, grouped by variant.

    Columns: response, claim (its id), text, p (probability of being true; missing if the backend
    had no answer, or if every relation of the claim is missing), label (human, if there is one),
    variant, supporting and contradicting (ids of contexts, the largest change of p first), verdict,
    for every assessor its p (NAME) and its label (NAME_label), and with Core `counts`, True if the
    claim counts.
    """
    rows = [
        row
        for graph in graphs
        for variant, view in graph.metadata[METADATA_KEY].items()
        for row in _claims(graph, variant, view)
    ]
    names = list(dict.fromkeys([*_CLAIMS, "verdict", *(name for row in rows for name in row)]))
    frame = data_frame(rows, names).astype({"label": "boolean", "p": "Float64"})
    assessors = [name.removesuffix("_label") for name in names if name.endswith("_label")]
    label_columns = [Column(f"{name}_label", name, show=_text) for name in assessors]
    columns = (
        *text_columns(*(["response"] if len(graphs) > 1 else [])),
        *columns_as("claim | p:3 P(true) | verdict"),
        *label_columns,
        *([Column("label", "label", show=_text)] if frame["label"].notna().any() else []),
        *([Column("counts", "counts", show=_text)] if "counts" in names else []),
        Column("text", "text", show=shortened),
    )
    # Also for a single variant, whose name appears nowhere else near the table.
    n_claims = counted(len(frame.drop_duplicates(["response", "claim"])), "claim")
    caption = f"{n_claims} of {counted(len(graphs), 'response')}."
    return Table(frame, columns, caption, group="variant")


def _claims(graph: FactGraph, variant: str, view: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    assessors = graph.metadata.get(ASSESSORS_KEY, {})
    kept = kept_claims(graph)
    for atom, same in every_atom(graph):
        p = None if same in view.get("unanswered", (same,)) else view["atoms"][same]["p"]
        sides: dict[bool, list[str]] = {True: [], False: []}
        for item in by_strength(view.get("atoms", {}).get(same, {"evidence": ()})["evidence"]):
            sides[item["relation"] != RelationKind.CONTRADICTION].append(item["context"])
        yield {
            "response": graph.id,
            "claim": atom.id,
            "text": atom.text,
            "label": atom.label,
            "p": p,
            "variant": variant,
            "supporting": " ".join(sides[True]),
            "contradicting": " ".join(sides[False]),
            "verdict": "missing" if p is None else verdict(p),
            **{name: facts["verdicts"].get(same, {}).get("p") for name, facts in assessors.items()},
            **{
                f"{name}_label": facts["verdicts"].get(same, {"label": "missing"})["label"]
                for name, facts in assessors.items()
            },
            **({} if kept is None else {"counts": atom.id in kept}),
        }


MOST_DOUBTFUL = 20
"""Number of doubtful claims that a terminal shows."""


def doubtful_table(graphs: Sequence[FactGraph]) -> Table:
    """A row per claim for the most doubtful claims of several responses, the most doubtful first.

    Columns: response, claim (its id), p (probability of being true, the smallest over variants),
    variant (the variant of p), and text. Claims without a posterior are left out.
    """
    least: dict[tuple[int, str], dict[str, Any]] = {}
    known = 0
    for position, graph in enumerate(graphs):
        for variant, view in graph.metadata[METADATA_KEY].items():
            for row in _claims(graph, variant, view):
                before = least.get((position, row["claim"]))
                if row["p"] is not None and (before is None or row["p"] < before["p"]):
                    least[position, row["claim"]] = row
    known = len(least)
    rows = sorted(least.values(), key=lambda row: float(row["p"]))[:MOST_DOUBTFUL]
    names = ["response", "claim", "p", "variant", "text"]
    frame = data_frame([{name: row[name] for name in names} for row in rows], names)
    several = len({*frame["variant"]}) > 1
    claims = counted(known, "claim")
    caption = f"{claims}." if known == len(rows) else f"The {len(rows)} most doubtful of {claims}."
    return Table(
        frame.astype({"p": float}),
        (
            *columns_as("response | claim | p:3 P(true)"),
            *text_columns(*(["variant"] if several else [])),
            Column("text", "text", show=shortened),
        ),
        caption,
    )


def evidence_table(graphs: Sequence[FactGraph], *, deciding: bool = False) -> Table:
    """A row per related claim and context, by claim, the largest change of p first.

    Columns: response, claim (its id), variant, claim_text, context, relation, probability, change
    (decrease of p when the context is removed), change_error (its standard error, for estimates),
    the context's title and text, and `of` (heading: claim and claim_text, shortened); for corrected
    relations also uncorrected_relation and uncorrected_probability, the most probable relation
    before the correction.

    Args:
        graphs: the responses.
        deciding: True to show the deciding sentence of each passage, `decides`, instead of its
            beginning.
    """
    rows = [
        row
        for graph in graphs
        for variant, view in graph.metadata[METADATA_KEY].items()
        for row in _evidence(graph, variant, view)
    ]
    if deciding:
        passages = [(row["text"], row["claim_text"], RelationKind(row["relation"])) for row in rows]
        for row, sentence in zip(rows, deciding_sentences(passages), strict=True):
            row["decides"] = sentence
    corrected = any("uncorrected_relation" in row for row in rows)
    frame = data_frame(
        rows,
        [
            *_EVIDENCE,
            *(["decides"] if deciding else []),
            *(["uncorrected_relation", "uncorrected_probability"] if corrected else []),
        ],
    )
    variants = frame["variant"].unique()
    estimated = frame["change_error"].notna().any()
    columns = (
        *text_columns(*(["response"] if len(graphs) > 1 else [])),
        *text_columns(*(["variant"] if len(variants) > 1 else []), "context", "relation"),
        *columns_as("probability:2"),
        *(
            columns_as('uncorrected_relation uncorrected | uncorrected_probability:2 "before"')
            if corrected
            else ()
        ),
        *columns_as("change:3"),
        *([Column("change_error", "±", digits=3)] if estimated else []),
        *columns_as("title", title=shortened),
        Column("decides", "passage") if deciding else Column("text", "passage", show=shortened),
    )
    return Table(
        frame,
        columns,
        "Evidence by claim.",
        group="of",
        note="Change: what P(true)"
        + (f" of {variants[0]}" if len(variants) == 1 else "")
        + " decreases when the passage is removed.",
    )


def _evidence(graph: FactGraph, variant: str, view: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    contexts = {context.id: context for context in graph.contexts}
    texts = {atom.id: atom.text for atom in graph.atoms}
    before = {
        (relation.source, relation.target): likeliest_kind(
            shares[0] + shares[2], shares[1], shares[3]
        )
        for relation in graph.relations
        if (shares := relation.uncorrected) is not None
    }
    for atom, judged in view.get("atoms", {}).items():
        for item in by_strength(judged["evidence"]):
            context = contexts[item["context"]]
            yield {
                "response": graph.id,
                "claim": atom,
                "variant": variant,
                "claim_text": texts[atom],
                **{name: item[name] for name in ("context", "relation", "probability", "change")},
                "change_error": item.get("change_error"),
                "title": context.title or ("sampled answer" if is_sample(context) else ""),
                "text": context.content,
                "of": shortened(f"{atom}: {texts[atom]}"),
                **_uncorrected(before.get((context.id, atom))),
            }


def _uncorrected(likeliest: tuple[RelationKind, float] | None) -> dict[str, Any]:
    if likeliest is None:
        return {}
    return {
        "uncorrected_relation": str(likeliest[0]),
        "uncorrected_probability": likeliest[1],
    }


def response_table(batch: Batch, names: Sequence[str], conventions: Conventions = DEFAULT) -> Table:
    """Table with a row per response, failed responses last.

    Columns: response, claims, for every variant and assessor NAME its precision, with its range
    under missing answers over all claims in NAME_lower and NAME_upper; missing (answers), failed
    (the reason for a missing result).

    Args:
        batch: result of the batch.
        names: names of the variants and assessors.
        conventions: conventions of the measures.
    """
    rows: list[dict[str, Any]] = []
    for response in batch.responses:
        compared = summarize_judged([response], names, conventions)
        row: dict[str, Any] = {"response": response.response, "claims": len(response.labels)}
        for name in names:
            summary, ranges = compared.summaries[name], compared.ranges.get(name)
            ends = (None, None) if ranges is None else ranges["precision"]
            row |= named(name, (None if summary is None else summary["precision"], *ends))
        rows.append({**row, "missing": response.lacking, "failed": ""})
    rows += [{"response": name, "failed": reason} for name, reason in batch.failed]
    shares = [f"{name}{end}" for name in names for end in ENDS]
    frame = data_frame(rows, ["response", "claims", *shares, "missing", "failed"])
    # A column with only None would have the type object.
    frame = frame.astype(dict.fromkeys(["claims", *shares, "missing"], float))
    columns = (
        *columns_as("response | claims:0"),
        *(interval_column(name, f"Pr {name}", 3) for name in names),
        *columns_as("missing:0"),
    )
    note = "In brackets: range of Pr over all claims of a response, for any missing answers."
    ranged = any(
        response.missing or response.unjudged or response.unasked for response in batch.responses
    )
    n_claims = counted(sum(len(response.labels) for response in batch.responses), "claim")
    return Table(
        frame,
        columns,
        f"{counted(len(rows), 'response')} with {n_claims}.",
        note=note if ranged else "",
        n_printed=_MOST_RESPONSES,
    )


_MOST_RESPONSES = 10
"""About how many responses a terminal shows, below the most doubtful claims."""


def origin_table(responses: Iterable[AssessedResponse]) -> Table:
    """A row per origin of probabilities and reason for not using log-probabilities.

    Columns: answers (relations, or the assessor whose verdicts have only a label), origin, number,
    and fell_back, the reason for a fallback, or empty.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    for response in responses:
        for origin, count in response.origins.items():
            counts["relations", origin, ""] += count
        for answers, origin, reason, count in response.fallbacks:
            counts[answers, origin, reason] += count
            if answers == "relations":
                # It is counted under its origin.
                counts[answers, origin, ""] -= count
    names = ["answers", "origin", "fell_back"]
    rows = [
        {**dict(zip(names, key, strict=True)), "number": count}
        for key, count in sorted(counts.items())
        if count
    ]
    return Table(
        data_frame(rows, ["answers", "origin", "number", "fell_back"]),
        columns_as("answers | origin | number:0 | fell_back fell back because"),
        "Origins of probabilities.",
    )


def summary_table(
    compared: Compared, cored: Compared | None, how: Mapping[str, tuple[str, str]]
) -> Table:
    """A row per variant and assessor, `name`, over the claims that all of them judged.

    Columns: name, encoding, backend, the columns of `experiments.evaluators.response`, n_left_out,
    the number of claims that some of them did not judge; n_in_sample, the number of passages in the
    training data of the lexical model (its scores are then optimistic); recall_at_k (R_K); and the
    ranges of Pr, R_K, F1@K and E under missing answers (`precision_from`, `precision_to` and so
    on), over all claims including claims without a verdict. With Core there is another row for
    each, with a name ending in "with Core", over only the claims that count.

    Args:
        compared: measures of all claims.
        cored: measures of the claims that count.
        how: encoding and backend of every variant.
    """
    rows = [
        *_summaries(compared, how),
        *([] if cored is None else _summaries(cored, how, " with Core")),
    ]
    # The conventions choose between two definitions of F1.
    absent = "f1_by_response" if any("f1" in row for row in rows) or not rows else "f1"
    measures = [name for name in MEASURES if name != absent]
    names = ["name", "encoding", "backend", *measures]
    frame = data_frame(rows, list(dict.fromkeys([*names, *(n for row in rows for n in row)])))
    ranged = [
        name
        for name in RANGED
        if any(
            name in ranges for each in (compared, cored) if each for ranges in each.ranges.values()
        )
    ]
    shown = [
        Column(
            *(name, title),
            digits=digits,
            lower=f"{name}_from" if name in ranged else "",
            upper=f"{name}_to" if name in ranged else "",
        )
        for name in measures
        if frame[name].notna().any()
        for title, digits in [MEASURES[name]]
    ]
    caption = "Measures."
    first = next((summary for summary in compared.summaries.values() if summary is not None), None)
    if first is not None:
        caption = (
            f"{counted(first['n_responses'], 'response')}, {counted(first['n_atoms'], 'atom')}, "
            f"{first['n_labeled']:,} labeled."
        )
    note = "In brackets: range over all claims, for any missing answers." if ranged else ""
    return Table(frame, (*columns_as("name | encoding | backend"), *shown), caption, note=note)


def measure_sentences(compared: Compared, conventions: Conventions = DEFAULT) -> Iterator[str]:
    """Yield remarks on the measures: K, open posteriors, and claims left out."""
    known = {name: summary for name, summary in compared.summaries.items() if summary is not None}
    if known:
        k = compared.k if compared.k is not None else math.nan
        meaning = meaning_of("k", conventions.k).removeprefix("K ")
        if conventions.k == "median":
            yield f"K of R_K and F1@K is {k:g}, the median number of claims of a response."
        elif math.isnan(k):
            yield f"K of R_K and F1@K is {meaning}."
        else:
            yield f"K of R_K and F1@K is {f'{k:g}, ' * (meaning != f'{k:g}')}{meaning}."
    for name, ranges in compared.ranges.items():
        texts = ", ".join(
            f"{MEASURES[measure][0]} {interval(*ends)}" for measure, ends in ranges.items()
        )
        yield f"{name}, over all claims and for any missing answers: {texts}."
    if compared.left_out:
        yield (
            f"{counted(compared.left_out, 'claim')} without a verdict in some row are left out "
            "of all rows."
        )
    if compared.in_sample:
        yield f"{in_sample_remark(compared.in_sample)}."
    for name in compared.summaries.keys() - known.keys() if known else ():
        yield f"{name} has no verdict and therefore no row."


def _summaries(
    compared: Compared, how: Mapping[str, tuple[str, str]], suffix: str = ""
) -> Iterator[dict[str, Any]]:
    for name, summary in compared.summaries.items():
        if summary is None:
            continue
        encoding, backend = how.get(name, (ABSENT, ABSENT))
        row = {"name": f"{name}{suffix}", "encoding": encoding, "backend": backend, **summary}
        row |= {"n_left_out": compared.left_out, "n_in_sample": compared.in_sample}
        row["recall_at_k"] = compared.recalls[name]
        for measure in RANGED:
            ends = compared.ranges.get(name, {}).get(measure, [row[measure]] * 2)
            row |= {f"{measure}_from": ends[0], f"{measure}_to": ends[1]}
        yield row


def call_table(rows: Sequence[StageEstimate]) -> Table:
    """Table of the stages' estimated calls: fields of `StageEstimate`, and the sum of chosen
    stages.

    Stages shown for comparison are in brackets.
    """
    thinks = any(row.thoughts for row in rows)
    sums = ("prompt_tokens", "completion_tokens", "cost", "thoughts", "thoughts_cost")
    chosen = [row for row in rows if row.chosen]
    records = [
        {
            "stage": row.stage if row.chosen else f"({row.stage})",
            "calls": row.calls,
            "about": "" if row.exact else "about",
            "chosen": row.chosen,
            **{name: getattr(row, name) for name in sums},
        }
        for row in rows
    ]
    # For a stage without a reasoning model, thoughts are known to be zero.
    total = {
        name: _total(
            getattr(row, name) for row in chosen if name != "thoughts_cost" or row.thoughts
        )
        for name in sums
    }
    frame = data_frame([*records, {"stage": "all", "about": "", "chosen": True, **total}])
    whole = ["calls", "prompt_tokens", "completion_tokens", "thoughts"]
    frame = frame.astype(dict.fromkeys(whole, "Int64"))
    titles = {
        "calls": "calls",
        "prompt_tokens": "tokens in",
        "completion_tokens": "tokens out",
        "cost": "cost (US$)",
        **({"thoughts": "thoughts, at most"} if thinks else {}),
        **({"thoughts_cost": "their cost (US$)"} if thinks else {}),
    }
    numbers = [
        Column(name, title, show=_dollars if name.endswith("cost") else _count, right=True)
        for name, title in titles.items()
    ]
    return Table(frame, (*columns_as('stage | about ""'), *numbers), "Dry run.")


def inference_table(rows: Sequence[StageEstimate], backend: Backend) -> Table:
    """Cost of exact inference in the largest response, by variant."""
    from inference.auto import Auto

    known = [(row, row.inference) for row in rows if row.inference is not None]
    records = []
    for row, expected in known:
        prediction = expected.prediction
        automatic = isinstance(backend, Auto)
        refused = isinstance(backend, Auto) and backend.exact().refuses(prediction)
        records.append(
            {
                "variant": row.stage.removeprefix("relations "),
                "induced_width": prediction.induced_width,
                "widest": expected.widest,
                "seconds": prediction.seconds,
                "answer": f"{backend.name}: bounds, estimates"
                if refused
                else f"{backend.name}: exact"
                if automatic
                else backend.name,
                "chosen": row.chosen,
            }
        )
    first = known[0][1]
    return Table(
        data_frame(records),
        columns_as(
            "variant | induced_width:0 induced width | widest:0 if all pairs are related | "
            "seconds> time, about | answer",
            seconds=duration,
        ),
        f"Exact inference in the largest response: {counted(first.atoms, 'claim')} and "
        f"{counted(first.contexts, 'passage')}, {RELATED_SHARE:.0%} of other pairs related.",
    )


def _total(values: Iterable[float | None]) -> float | None:
    """Sum of numbers; None if a number is unknown."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def _count(value: Any) -> str:
    import pandas as pd

    return "" if pd.isna(value) else f"{value:,}"


def _dollars(cost: float | None) -> str:
    return ABSENT if cost is None or math.isnan(cost) else f"{cost:.4f}"


def _text(value: Any) -> str:
    import pandas as pd

    return "" if pd.isna(value) else str(value).lower()


def missing_answers(responses: Iterable[AssessedResponse]) -> dict[str, tuple[int, int]]:
    """(number missing, number requested) of relations and of verdicts, over all responses."""
    listed = list(responses)
    return {
        "relation": (
            sum(response.missing for response in listed),
            sum(response.asked for response in listed),
        ),
        "verdict": (
            sum(response.unjudged for response in listed),
            sum(response.to_judge for response in listed),
        ),
    }


def missing_sentences(
    responses: Iterable[AssessedResponse], graphs: Sequence[FactGraph]
) -> Iterator[str]:
    """Sentences on the missing answers in the responses' column `missing`, by kind."""
    lacking = [
        f"{missing:,} of {counted(asked, what)} missing"
        for what, (missing, asked) in missing_answers(responses).items()
        if missing
    ]
    if lacking:
        yield f"{', '.join(lacking)}."
    failures = {
        key: sum(len(graph.metadata.get(key, {}).get("failures", ())) for graph in graphs)
        for key in STAGE_KEYS
    }
    if any(failures.values()):
        named = ", ".join(f"{key} {count:,}" for key, count in failures.items() if count)
        yield f"Without a result in other stages: {named}."


def stage_failures(graph: FactGraph) -> list[tuple[str, list[str]]]:
    """Failures as (stage and reason, ids of items without an answer), in the order of stages."""
    ids_by_reason: dict[str, list[str]] = {}
    for what, where, reason in _failures(graph):
        ids_by_reason.setdefault(f"{what}: {reason}", []).append(where)
    return list(ids_by_reason.items())


def _failures(graph: FactGraph) -> Iterator[tuple[str, str, str]]:
    for key in STAGE_KEYS:
        for failure in graph.metadata.get(key, {}).get("failures", ()):
            yield key, str(failure[0]), str(failure[-1])
    for source, target, reason in graph.metadata.get(RELATIONS_KEY, {}).get("missing", ()):
        yield RELATIONS_KEY, f"{source} → {target}", reason
    for name, facts in graph.metadata.get(ASSESSORS_KEY, {}).items():
        for atom, reason in facts["missing"]:
            yield name, atom, reason


def stage_remarks(graph: FactGraph) -> list[str]:
    """Remarks on a response, a line per stage with its results and missing answers."""
    lines = []
    facts: dict[str, Any] = dict(graph.metadata)
    if "retrieval" in facts:
        recorded = facts["retrieval"]
        lines.append(
            f"{recorded['retriever']}: {counted(recorded['queries'], 'query', 'queries')}, "
            f"{counted(recorded['passages'], 'passage')}, "
            f"{counted(recorded['contexts'], 'context')} after duplicates, "
            f"{counted(len(recorded.get('dropped', ())), 'page')} left out, "
            f"{counted(len(recorded['failures']), 'failure')}"
        )
    if "duplicates" in facts:
        repeated = counted(len(facts["duplicates"]), "claim")
        lines.append(f"{repeated} repeated: judged once, counted each time")
    if "summaries" in facts:
        summaries = facts["summaries"]
        lines.append(
            f"{summaries['model']}: {counted(len(summaries['passages']), 'passage')} summarized, "
            f"{len(summaries['dropped'])} dropped as irrelevant, "
            f"{counted(len(summaries['failures']), 'failure')}"
        )
    if "samples" in facts:
        sampled = facts["samples"]
        lines.append(
            f"{sampled['model']}: {counted(sampled['calls'], 'answer')} sampled, "
            f"{counted(len(sampled['failures']), 'failure')}"
        )
    if "relations" in facts:
        asked = facts["relations"]
        kinds = ", ".join(
            f"{asked[kind]} {kind}" for kind in ("entailment", "contradiction", "neutral")
        )
        lines.append(
            f"{asked['model']}: {counted(asked['asked'], 'pair')} asked, {kinds} "
            f"({asked['made_neutral']} of them for a probability below {asked['least']:g}), "
            f"{len(asked['missing'])} missing"
            + (
                f", {counted(len(asked['unasked']), 'pair')} not asked"
                if asked.get("unasked")
                else ""
            )
        )
    for name, recorded in facts.get(ASSESSORS_KEY, {}).items():
        # Relations from other sources do not name their model.
        of = f" of {recorded['model']}" if "model" in recorded else " as recorded"
        lines.append(
            f"{name}: {counted(len(recorded['verdicts']), 'verdict')}{of}, "
            f"{len(recorded['missing'])} missing"
        )
    return lines
