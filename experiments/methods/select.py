"""Core on anybody's responses: which claims count, with labels or without, with claims or as text.

Source: Core, sections 3 and 4.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration.self_knowledge import IntervalSettings
from experiments.assess.core import claims_with_sources
from experiments.assess.evaluation import CACHE, metered_model
from experiments.assess.inputs import load_responses
from experiments.assess.setup import AssessmentOptions, relation_model
from experiments.findings.findings import Findings, no_figures
from experiments.findings.table import Column, Table, data_frame, text_columns
from experiments.findings.text import counted
from experiments.methods.inputs import parted_options
from experiments.methods.select_tables import study_figures, study_tables, uncertain_table
from experiments.methods.self_judged_claims import calls_table
from experiments.padding.robustness import CoreChoices
from experiments.padding.selection_study import selection_study
from experiments.padding.uncertain_selection import uncertain_rows
from factormodels.errors import InputError, options_as_arguments
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.language_model.accounting import Ledger
from factormodels.extraction.safe import (
    IRRELEVANT,
    RELEVANCE_PROMPT,
    RELEVANCE_TOKENS,
    read_relevance,
)
from factormodels.extraction.stages.asking import Question, ask_all
from factormodels.fact_graph import FactGraph
from factormodels.selection import Relevance, Selection, restricted
from factormodels.selection import select as select_claims

if TYPE_CHECKING:
    from factormodels.selection import Core

COMMAND = "select"
RELEVANCE_STAGE = "relevance"


@dataclass(frozen=True)
class SelectSettings:
    """How claims are selected.

    Attributes:
        relations: who entails whom: ``lexical``, ``model``, ``recorded:FILE`` or ``nli:FOLDER``;
            None: the language model where there is one, else ``lexical``.
        labels: relation of each label of an NLI model, such as ``LABEL_0=entailment``, where their
            names do not tell.
        weights: ``informativeness`` or ``uniform``.
        rule: claims exclude each other if ``either`` entails the other, or ``both``.
        domain: domain of the bleached claims.
        templates: file of one's own bleached claims.
        share: least share of claims that their sentence entails; None asks for none.
        epsilon: what is taken off each informativeness.
        cap: relation model whose answer caps it at 0, such as a ternary one beside a graded one.
        graded: relation model that gives P(claim given a bleached one), such as one trained on
            UNLI; None takes `relations`, and names what that gives.
        model: language model that says who entails whom.
        relevance: language model that says which claims bear on the question; others weigh 0.
        bins: bins of relative position, for responses with labels; None: 5.
        samples: redundancy graphs that are sampled of each response with labels; 0 samples none.
        seed: seed of these and of intervals; None: 0.
    """

    relations: str | None = None
    labels: tuple[str, ...] = ()
    weights: str = "informativeness"
    rule: str = "either"
    domain: str = "people"
    templates: str | None = None
    share: float | None = None
    epsilon: float = 0.01
    cap: str | None = None
    graded: str | None = None
    model: LanguageModel | None = None
    relevance: LanguageModel | None = None
    bins: int | None = None
    samples: int = 0
    seed: int | None = None

    def choices(self) -> CoreChoices:
        """How selection is set up for each response.

        Raises:
            InputError: for an unknown name or a setting out of range.
            MissingDependencyError: if a relation model needs a library that is not installed.
        """
        labels = parse_labels(self.labels)
        options = AssessmentOptions(model=self.model)
        model, _ = relation_model(self.judge, options, labels)
        cap, graded = (
            None if name is None else relation_model(name, options)[0]
            for name in (self.cap, self.graded)
        )
        if self.share is not None and not 0 <= self.share <= 1:
            raise InputError(f"--share {self.share:g}: give a share from 0 to 1")
        return CoreChoices(
            model,
            self.weights,
            self.rule,  # type: ignore[arg-type]
            templates=None if self.templates is None else Path(self.templates),
            domain=self.domain,
            share=self.share,
            epsilon=self.epsilon,
            cap=cap,
            graded=graded,
        )

    @property
    def judge(self) -> str:
        """Name of who says who entails whom."""
        return self.relations or ("lexical" if self.model is None else "model")


def parse_labels(texts: Sequence[str]) -> dict[str, str] | None:
    """Relation of each label, from texts such as LABEL_0=entailment; None if there are none.

    Raises:
        InputError: for a text without a relation, or one that is unknown.
    """
    known = ("entailment", "contradiction", "neutral", "other")
    found = {}
    for text in texts:
        label, equals, relation = text.partition("=")
        if not equals or relation not in known:
            raise InputError(
                f"--labels {text}: write LABEL=RELATION, the relation one of {', '.join(known)}"
            )
        found[label] = relation
    return found or None


def select(
    responses: str | os.PathLike[str] | Iterable[FactGraph],
    *,
    cache: str | os.PathLike[str] = CACHE,
    replay: bool = False,
    **options: Any,
) -> Findings:
    """Select the claims that count, as the command `factormodels select` does.

    from experiments import select
    select("responses.jsonl", share=0.5)["responses"]

    Args:
        responses: a file of responses, with claims or as text; or fact graphs.
        cache: file of answers of language models, none of which is repeated.
        replay: whether every answer is taken from there.
        options: fields of `SelectSettings`, by name; `model` and `relevance` also by the name of a
            language model, such as "openai/NAME".

    Raises:
        InputError: if the file cannot be read, or an option is unknown or out of range.
        MissingDependencyError: if a relation model needs a library that is not installed.
    """
    ledger = Ledger()
    wanted = {
        name: metered_model(value, Path(cache), ledger, replay)
        if name in ("model", "relevance") and value is not None
        else value
        for name, value in options.items()
    }
    with options_as_arguments():
        if isinstance(responses, str | os.PathLike):
            loaded = load_responses(Path(responses))
            return find_selection(
                loaded.graphs,
                Path(responses).name,
                wanted,
                remarks=loaded.remarks,
                ledger=ledger,
            )
        return find_selection(tuple(responses), "the responses", wanted, ledger=ledger)


def find_selection(
    graphs: Sequence[FactGraph],
    source: str,
    options: Mapping[str, Any],
    *,
    remarks: Sequence[str] = (),
    advance: Callable[[], None] | None = None,
    ledger: Ledger | None = None,
) -> Findings:
    """`select` of responses that were read, whose errors name options of the command line.

    Args:
        graphs: the responses.
        source: what they are called.
        options: fields of `SelectSettings`, by name.
        remarks: what a reader must know of how they were read.
        advance: called after each response.
        ledger: where answers of language models are counted; None counts none.

    Raises:
        InputError: for an unknown option, one out of range, or responses without a sentence.
    """
    (settings,) = parted_options(options, SelectSettings)
    choices = settings.choices()
    labelled = _placed_labels(graphs)
    for name in ("samples", "bins", "seed"):
        if getattr(settings, name) and not labelled:
            raise InputError(
                f"--{name} is about labelled claims that say which sentence they are from; there "
                "are none"
            )
    split: set[str] = set()
    unjudged = 0
    found: list[tuple[FactGraph, Selection]] = []
    empty = 0
    for graph in graphs:
        whole = graph
        if not graph.atoms and graph.response.strip():
            whole = with_sentences(graph)
            split.add(graph.id)
        if whole.atoms:
            core: Core = choices.core(whole)
            if settings.relevance is not None:
                core, unknown = _with_relevance(whole, core, settings.relevance)
                unjudged += unknown
            found.append((whole, select_claims(claims_with_sources(whole, settings.share), core)))
        else:
            empty += 1
        if advance is not None:
            advance()
    if not found:
        raise InputError(f"{source}: no response has a claim or a text; name other data")
    sentences = [_summary(found), *remarks]
    if split:
        sentences.append(
            f"{counted(len(split), 'response')} without claims: each sentence is taken for one; "
            "`factormodels assess --atoms model` lists claims with a language model."
        )
    if empty:
        sentences.append(f"{counted(empty, 'response')} without claims and text: left out.")
    missing = sum(one.missing for _, one in found)
    if missing:
        sentences.append(f"{missing:,} judgements are missing; they exclude nothing.")
    if unjudged:
        sentences.append(
            f"Of {counted(unjudged, 'claim')} it is not known whether they are relevant; they are "
            "taken as relevant."
        )
    if settings.graded is not None:
        sentences.append(f"P(c|h) is that of the graded model {settings.graded}.")
    elif settings.judge == "model" and settings.weights == "informativeness":
        sentences.append(
            "P(c|h) is the probability that the language model gives to entailment, which is not "
            "the same thing; --graded names a model that gives it."
        )
    elif settings.judge.startswith("nli:"):
        sentences.append(
            "P(c|h) of a graded model is its output; that of a model of two or three labels is "
            "the share of its label for entailment, which is not the same thing."
        )
    tables = {"responses": _responses(found), "claims": _claims(found)}
    study = None
    given = [(graph, one) for graph, one in found if graph.id not in split]
    if labelled and _placed_labels([restricted(g, [c.id for c in one.chosen]) for g, one in given]):
        seed = settings.seed or 0
        study = selection_study(
            given,
            source=source,
            intervals=IntervalSettings(seed=seed),
            n_positions=settings.bins or 5,
        )
        tables |= study_tables(study)
        if settings.samples:
            rows = uncertain_rows(given, choices, samples=settings.samples, seed=seed)
            tables["uncertain"] = uncertain_table(rows)
    if ledger is not None and ledger.stages:
        tables["calls"] = calls_table(ledger)
    return Findings(
        command=COMMAND,
        source=source,
        sentences=tuple(sentences),
        tables=tables,
        settings={
            **asdict(replace(settings, model=None, relevance=None)),
            "relations": settings.judge,
            "model": None if settings.model is None else settings.model.name,
            "relevance": None if settings.relevance is None else settings.relevance.name,
        },
        draw=no_figures if study is None else partial(study_figures, study),
        unshown=("claims",),
    )


def _placed_labels(graphs: Sequence[FactGraph]) -> bool:
    """Whether claims have labels, and all that do say where they stand."""
    labelled = [
        (graph, atom)
        for graph in graphs
        for atom in graph.atoms
        if atom.label is not None or atom.annotation
    ]
    return bool(labelled) and all(
        atom.sentence is not None and ("sentences" in graph.metadata or graph.response.strip())
        for graph, atom in labelled
    )


def _with_relevance(graph: FactGraph, core: Core, model: LanguageModel) -> tuple[Core, int]:
    """Core whose weights are 0 for claims beside the question, and how many nobody judged."""
    questions = [
        Question(
            {"question": graph.query, "response": graph.response, "claim": atom.text},
            read_relevance,
            RELEVANCE_TOKENS,
        )
        for atom in graph.atoms
    ]
    answers = ask_all(model, RELEVANCE_PROMPT, RELEVANCE_STAGE, questions)
    told = dict(zip(graph.atom_ids, answers, strict=True))
    beside = {claim for claim, answer in told.items() if answer == IRRELEVANT}
    unknown = sum(isinstance(answer, Failure) for answer in answers)
    weighting = Relevance(lambda claim: claim.id not in beside, core.weighting)
    return replace(core, weighting=weighting), unknown


def with_sentences(graph: FactGraph) -> FactGraph:
    """The response with each of its sentences for a claim."""
    from factormodels.extraction.stages.atomizer import sentence_atoms

    return replace(graph, atoms=sentence_atoms(graph.response))


def _responses(found: Sequence[tuple[FactGraph, Selection]]) -> Table:
    rows = []
    for graph, selection in found:
        chosen = {claim.id for claim in selection.chosen}
        labels = [(atom.label, atom.id in chosen) for atom in graph.atoms]
        before = [label for label, _ in labels if label is not None]
        after = [label for label, kept in labels if kept and label is not None]
        rows.append(
            {
                "response": graph.id,
                "claims": len(selection.claims),
                "selected": len(chosen),
                "share": len(chosen) / len(selection.claims),
                "true_before": sum(before) / len(before) if before else float("nan"),
                "true_after": sum(after) / len(after) if after else float("nan"),
                "status": selection.solution.status,
            }
        )
    labelled = any(row["true_before"] == row["true_before"] for row in rows)
    columns = (
        *text_columns("response"),
        Column("claims", "claims", digits=0),
        Column("selected", "selected", digits=0),
        Column("share", "share left", digits=2),
        *(
            (
                Column("true_before", "true before", digits=2),
                Column("true_after", "true after", digits=2),
            )
            if labelled
            else ()
        ),
        *text_columns("status"),
    )
    return Table(data_frame(rows), columns, "Claims that count, by response.")


def _claims(found: Sequence[tuple[FactGraph, Selection]]) -> Table:
    rows = []
    for graph, selection in found:
        chosen = set(selection.solution.chosen)
        decided = selection.entailments.decided
        for place, claim in enumerate(selection.claims):
            near = [
                other
                for other in sorted(chosen)
                if other != place and (decided[place, other] or decided[other, place])
            ]
            weight = float(selection.program.weights[place])
            rows.append(
                {
                    "response": graph.id,
                    "claim": claim.id,
                    "text": claim.text,
                    "weight": weight,
                    "selected": place in chosen,
                    # A claim of no worth is left out by itself, another for one that is kept.
                    "because": ""
                    if place in chosen
                    else "it informs of nothing"
                    if weight <= 0
                    else f"related to {', '.join(selection.claims[one].id for one in near)}"
                    if near
                    else "too few would be faithful",
                }
            )
    columns = (
        *text_columns("response", "claim", "text"),
        Column("weight", "weight", digits=3),
        Column("selected", "selected", show=lambda value: "yes" if value else "no"),
        *text_columns("because"),
    )
    return Table(data_frame(rows), columns, "Claims, one by one, and why some do not count.")


def _summary(found: Sequence[tuple[FactGraph, Selection]]) -> str:
    before = sum(len(selection.claims) for _, selection in found)
    after = sum(len(selection.chosen) for _, selection in found)
    limited = sum(selection.solution.status != "optimal" for _, selection in found)
    none = sum(not selection.chosen for _, selection in found)
    return (
        f"{after:,} of {before:,} claims of {counted(len(found), 'response')} count; "
        f"{counted(none, 'response')} keep none, and {limited:,} selections are not proved optimal."
    )
