"""An assessment in Python: from texts to data frames of claims, evidence, measures and cost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration.scores.measures import entropy_warnings
from experiments.asking.session import asking
from experiments.evaluators.batch import (
    Batch,
    assess_responses,
    responses_under_way,
)
from experiments.evaluators.core import kept_claims, with_selection
from experiments.evaluators.inputs import Texts, load_responses
from experiments.evaluators.open_relations import RANGED
from experiments.evaluators.response import (
    METADATA_KEY,
    Compared,
    by_strength,
    summarise_judged,
    with_core,
)
from experiments.evaluators.response_columns import GUESSED, ResponseColumns
from experiments.evaluators.settings import AssessSettings
from experiments.evaluators.setup import make_plan
from experiments.findings.markup import csv_text
from experiments.settings import front_door
from factormodels.claims import RelationKind
from factormodels.errors import options_as_arguments
from factormodels.extraction.language_model.accounting import (
    Ledger,
    StageUsage,
)
from factormodels.extraction.language_model.litellm_model import LitellmSettings
from factormodels.extraction.stages.duplicates import every_atom
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import write_fact_graphs
from factormodels.io.files import prepare_folder, write_text
from factormodels.object_repr import Preview, Previewed, counted
from factormodels.recorded_verdicts import ASSESSORS_KEY
from inference.warm_up import warm_up

if TYPE_CHECKING:
    import pandas as pd

CACHE = Path("answers.sqlite")

CONCURRENCY = LitellmSettings.concurrency
"""Calls under way at a time of a model that does not say how many it takes."""

_CLAIMS = ("response", "atom", "text", "label", "p", "variant", "supporting", "contradicting")
_EVIDENCE = (
    *("response", "atom", "variant", "context", "relation", "probability", "change"),
    *("title", "text"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Previewed):
    """What an assessment of responses found; shown as its table of claims.

    Attributes:
        claims: a row per claim and variant: response, atom, text, label (of a human, where there
            is one), p (of being true; missing where the backend had no answer, or every relation of
            the claim is missing), variant,
            supporting and contradicting (ids of contexts, those that change p most first), a
            column per assessor with its p, and with Core `counts`: whether the claim counts.
        evidence: a row per claim and context that a relation joins: response, atom, variant,
            context, relation, probability, change (what p loses when the context is taken away),
            and the context's title and text.
        summary: a row per variant and assessor, `name`: the measures of
            `calibration.scores.summary.Summary` over the claims that all of them judged, and
            n_left_out, the number of the others; n_in_sample, the number of passages to which the
            lexical model that read them was fitted (scores then flatter it); R_K (`recall_at_k`);
            and the range that what is missing leaves open of Pr, R_K, F1@K and E (`precision_from`,
            `precision_to` and so on), over all claims, also those without a verdict. With Core
            another row for each, its name ending in "with Core", over the claims that count alone;
            K of F1@K is that of all claims.
        cost: what language models were asked, a row per stage: calls, cached, failures, tokens,
            cost in US dollars, unpriced; without a row where none was asked.
        failures: (id, reason) of every response that a stage could not go on with.
        graphs: the responses with all that was found, the assessment in their metadata.
    """

    claims: pd.DataFrame
    evidence: pd.DataFrame
    summary: pd.DataFrame
    cost: pd.DataFrame
    failures: tuple[tuple[str, str], ...]
    graphs: tuple[FactGraph, ...]

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the tables as CSV, and the graphs as graphs.jsonl, which every command reads.

        Returns:
            The files.

        Raises:
            InputError: if the folder cannot be made or written.
        """
        lists = {name: self.claims[name].map(" ".join) for name in ("supporting", "contradicting")}
        tables = {
            "claims": self.claims.assign(**lists),
            "evidence": self.evidence,
            "summary": self.summary,
            "cost": self.cost,
        }
        return save_tables(folder, tables, self.graphs)

    def preview(self, most: int) -> Preview:
        """How much was assessed, and the first claims."""
        heading = (
            f"Evaluation of {counted(len(self.graphs), 'response')}: "
            f"{counted(len(self.claims), 'claim')}"
        )
        if self.failures:
            heading += f"; {counted(len(self.failures), 'response')} failed"
        import pandas as pd

        # Of several variants a claim has a row each.
        named = (
            "response",
            "atom",
            *(("variant",) if self.claims["variant"].nunique() > 1 else ()),
        )
        titles = (*named, "p", "supporting", "contradicting", "text")
        rows = [
            (
                *(row[name] for name in named),
                "" if pd.isna(row["p"]) else f"{row['p']:.3f}",
                *(" ".join(row["supporting"]), " ".join(row["contradicting"]), row["text"]),
            )
            for row in self.claims.head(most).to_dict("records")
        ]
        return Preview(heading, titles, rows, len(self.claims))


def save_tables(
    folder: str | os.PathLike[str], tables: Mapping[str, pd.DataFrame], graphs: Iterable[FactGraph]
) -> list[Path]:
    """Write tables as NAME.csv, and graphs as graphs.jsonl, into a folder.

    Returns:
        The files.

    Raises:
        InputError: if the folder cannot be made or written.
    """
    place = Path(folder)
    with options_as_arguments():
        prepare_folder(place)
    for name, table in tables.items():
        write_text(place / f"{name}.csv", csv_text(table))
    write_fact_graphs(graphs, place / "graphs.jsonl")
    return [*(place / f"{name}.csv" for name in tables), place / "graphs.jsonl"]


@front_door
def evaluate(texts: Texts, settings: AssessSettings) -> Evaluation:
    """Assess responses: their claims, the evidence, the probability of each claim.

    from experiments import evaluate
    evaluate("It opened in 1890.", documents=["The bridge opened on 4 March 1890."]).claims

    This is the command `factormodels assess`. Without a language model claims are sentences and
    relations are lexical: a baseline that compares words and numbers, works offline, and is often
    wrong. Relations are found anew from the texts; `posteriors` takes recorded ones.

    Args:
        texts: the text of a response, or several; a file or folder of responses (as a `Path`),
            whatever `factormodels assess` reads; rows of a table, as a data frame or dicts, with a
            column whose name tells that it holds the responses; a fact graph, or several, whose
            claims and passages are used.
        settings: how; the fields may be named instead, such as ``retriever="wikipedia"``,
            ``assessors="factscore"`` or ``max_cost=2.0``. `documents` are also texts, or texts by
            title; `model` is also an object with the methods of `LanguageModel`, or settings of
            litellm; `backend` also one that is built already.

    Raises:
        InputError: for an unknown name or option, or options that do not fit the input or each
            other.
        LimitReachedError: if the budget is used up; what was answered is in the cache.
        MissingDependencyError: if a library that is needed is not installed.
    """
    graphs = settings.load(texts).graphs
    found: list[FactGraph] = []
    with asking(settings) as session:
        plan = with_selection(make_plan(graphs, settings, session), graphs, settings, session.model)
        concurrency = 1 if plan.choices.asks_nobody else responses_under_way(session.calls)
        options = settings.options(concurrency, partial(warm_up, settings.algorithm))
        with session.responses(len(graphs)) as report:
            batch = assess_responses(
                graphs,
                plan.stages,
                plan.views,
                plan.settings,
                options,
                report=report,
                keep=found.append,
            )
    return _evaluation(found, batch, (*settings.variant, *settings.assessors), session.ledger)


def as_responses(
    texts: Texts,
    query: str | None = None,
    topic: str | None = None,
    columns: ResponseColumns = GUESSED,
) -> tuple[FactGraph, ...]:
    """The responses that texts, files or graphs stand for, as `load_responses`."""
    return load_responses(texts, query=query, topic=topic, columns=columns).graphs


def _evaluation(
    graphs: Sequence[FactGraph], batch: Batch, names: Sequence[str], ledger: Ledger
) -> Evaluation:
    import pandas as pd

    claims: list[dict[str, Any]] = []
    evidence: list[dict[str, Any]] = []
    for graph in graphs:
        for variant, view in graph.metadata[METADATA_KEY].items():
            own = list(_evidence(graph, variant, view))
            evidence += own
            claims += _claims(graph, variant, view, own)
    with entropy_warnings():
        compared = summarise_judged(batch.responses, names)
        rows = _summary_rows(compared)
        first = next((one for one in compared.summaries.values() if one is not None), None)
        counting = with_core(batch.responses)
        if counting and first is not None:
            rows += _summary_rows(summarise_judged(counting, names, first.k), " with Core")
    frame = pd.DataFrame(claims, columns=_columns(claims, _CLAIMS))
    return Evaluation(
        claims=frame.astype({"label": "boolean", "p": "Float64"}),
        evidence=pd.DataFrame(evidence, columns=list(_EVIDENCE)),
        summary=pd.DataFrame(rows),
        cost=pd.DataFrame(
            [{"stage": stage, **asdict(usage)} for stage, usage in ledger.stages.items()],
            columns=["stage", *(field.name for field in fields(StageUsage))],
        ),
        failures=batch.failed,
        graphs=tuple(graphs),
    )


def _summary_rows(compared: Compared, suffix: str = "") -> list[dict[str, Any]]:
    return [
        {"name": f"{name}{suffix}", **asdict(found), "n_left_out": compared.left_out}
        | {"n_in_sample": compared.in_sample, "recall_at_k": compared.recalls[name]}
        | {
            f"{measure}_{word}": end
            for measure in RANGED
            for word, end in zip(
                ("from", "to"),
                compared.ranges.get(name, {}).get(measure, [compared.measure(name, measure)] * 2),
                strict=True,
            )
        }
        for name, found in compared.summaries.items()
        if found
    ]


def _columns(rows: Sequence[Mapping[str, Any]], first: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*first, *(name for row in rows for name in row)]))


def _claims(
    graph: FactGraph, variant: str, view: Mapping[str, Any], evidence: Sequence[Mapping[str, Any]]
) -> Iterable[dict[str, Any]]:
    assessors = graph.metadata.get(ASSESSORS_KEY, {})
    kept = kept_claims(graph)
    for atom, same in every_atom(graph):
        sides: dict[bool, list[str]] = {True: [], False: []}
        for one in evidence:
            if one["atom"] == same:
                sides[one["relation"] != RelationKind.CONTRADICTION].append(one["context"])
        yield {
            "response": graph.id,
            "atom": atom.id,
            "text": atom.text,
            "label": atom.label,
            "p": None if same in view.get("unanswered", (same,)) else view["atoms"][same]["p"],
            "variant": variant,
            "supporting": tuple(sides[True]),
            "contradicting": tuple(sides[False]),
            **{name: facts["verdicts"].get(same, {}).get("p") for name, facts in assessors.items()},
            **({} if kept is None else {"counts": atom.id in kept}),
        }


def _evidence(graph: FactGraph, variant: str, view: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    contexts = {context.id: context for context in graph.contexts}
    for atom, judged in view.get("atoms", {}).items():
        for item in by_strength(judged["evidence"]):
            context = contexts[item["context"]]
            yield {
                "response": graph.id,
                "atom": atom,
                "variant": variant,
                **{name: item[name] for name in ("context", "relation", "probability", "change")},
                "title": context.title,
                "text": context.content,
            }
