"""Core on a user's responses: the claims that count, with or without labels.

Source: Core, sections 3 to 5.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from experiments.asking.failed_calls import calls_in_ledger, with_failed_calls
from experiments.asking.ledger_table import cost_tables, planned_findings
from experiments.asking.probe_settings import FirstProbeSettings
from experiments.asking.relation_models import relation_model
from experiments.asking.relation_settings import EntailmentJudge
from experiments.asking.session import Session, asking
from experiments.asking.settings import AskingSettings, Model
from experiments.columns.claims import claims_frame
from experiments.columns.responses import load_responses
from experiments.evaluators.calls.early_exits import declines
from experiments.evaluators.core import claims_with_sources, with_relevance
from experiments.evaluators.core_choices import (
    KEPT,
    KEPT_COLUMNS,
    KEPT_NOTE,
    CoreChoices,
    kept_by_sentence,
)
from experiments.evaluators.probe_first import FirstProbe, first_probe, is_probed, with_probe
from experiments.findings.artifacts import PaperFigure
from experiments.findings.findings import CLAIMS, Findings, no_figures
from experiments.findings.table import Table, columns_as, data_frame
from experiments.findings.text import some_of
from experiments.progress import each_response
from experiments.settings import USUAL, Option, Words, front_door
from experiments.settings.limits import PEOPLE, BleachedDomain, DrawnSettings, Openness
from experiments.settings.selection_rule import SelectionRule
from factormodels.errors import InputError
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.language_model.log_probabilities import OPENNESS
from factormodels.extraction.probe.table import RELATIONS, RELEVANCES
from factormodels.extraction.sentences import sentences_of, stated_language
from factormodels.extraction.stages.atomizer import sentence_atoms
from factormodels.fact_graph import FactGraph
from factormodels.nouns import counted, is_or_are
from factormodels.selection import Selection, UnjudgedClaimError, restricted
from factormodels.selection import select as select_claims
from factormodels.selection.weights import EPSILON, uniform

if TYPE_CHECKING:
    from experiments.settings.inputs import Responses
    from factormodels.selection import Core, Subclaim, Weighting


class SelectSettings(
    DrawnSettings,
    SelectionRule,
    AskingSettings,
    FirstProbeSettings,
):
    """Settings of the selection.

    Options of `select`.
    """

    relations: EntailmentJudge = None

    labels: Annotated[Words, Option("LABEL=RELATION")] = ()
    """Relation of a label of an NLI model, as LABEL=RELATION, if the label's name does not show it;
    repeatable."""

    domain: Annotated[BleachedDomain, USUAL] = PEOPLE

    epsilon: Annotated[float, Field(ge=0)] = EPSILON
    """Amount to subtract from the informativeness of each claim."""

    cap: Annotated[str | None, Option("NAME")] = None
    """Relation model whose entailment caps informativeness at 0."""

    graded: Annotated[str | None, Option("NAME")] = None
    """Relation model that gives P(c given h), such as one trained on UNLI."""

    model: Annotated[Model, USUAL] = None
    """Language model that decides entailment; as litellm spells it, with its key from the
    environment."""

    relevance: Model = None
    """Language model that decides which claims are relevant to the question; irrelevant claims do
    not count."""

    openness: Openness = OPENNESS

    @property
    def judge(self) -> str:
        """Name of the model that decides entailment."""
        return self.relations or ("lexical" if self.model is None else "model")

    def choices(self, model: LanguageModel | None) -> CoreChoices:
        """Choices of the selection for each response.

        Args:
            model: the language model, if any.

        Raises:
            InputError: for an unknown name or a setting out of range.
            MissingDependencyError: if a relation model needs a library that is not installed.
        """
        cap, graded = (
            None
            if name is None
            else relation_model(name, model, openness=self.openness, option=option)[0]
            for option, name in (("--cap", self.cap), ("--graded", self.graded))
        )
        labels = parse_labels(self.labels)
        return CoreChoices(
            relation_model(self.judge, model, labels, openness=self.openness)[0],
            self.weights,
            self.rule,
            domain=self.domain,
            templates=self.templates,
            share=self.share,
            epsilon=self.epsilon,
            cap=cap,
            graded=graded,
        )


def parse_labels(texts: Sequence[str]) -> dict[str, str] | None:
    """Parse texts such as LABEL_0=entailment into a relation by label; None if there are none.

    Raises:
        InputError: for a text without a relation, or with an unknown one.
    """
    known = ("entailment", "contradiction", "neutral", "other")
    relations = {}
    for text in texts:
        label, equals, relation = text.partition("=")
        if not equals or relation not in known:
            raise InputError(
                f"--labels {text}: write LABEL=RELATION, the relation one of {', '.join(known)}"
            )
        relations[label] = relation
    return relations or None


@front_door
def select(responses: Responses, settings: SelectSettings) -> Findings:
    """Select the claims that Core counts, and tabulate the changes.

    Shows the claims of each response before and after. With --out it also writes each claim with
    its weight and the reason why it does not count, and the responses with the claims that count,
    which every command reads. For labeled responses it also shows, by sentence, the share of kept
    claims and whether kept claims are more often true. Responses without claims are split into
    sentences; a response that declines to answer has no claims.

    Examples::

        select("ChatGPT.jsonl")
        select("ChatGPT.jsonl", weights="uniform", rule="both").save("results/select")
        select("demonstration", domain="things")
        select("answers.jsonl", model="openai/NAME", relevance="openai/NAME")

    Args:
        responses: Responses with the texts of their claims, or as text: FActScore's JSON Lines,
            fact graphs, an embedded dataset, a table or a text. Labels are not needed. In Python
            also fact graphs.
        settings: options; in Python, pass the fields as keywords instead. Language models may be
            objects.

    Raises:
        InputError: if the responses cannot be read, or an option does not fit them.
        MissingDependencyError: if a relation model needs a library that is not installed.
    """
    with asking(settings) as session:
        return _selected(responses, settings, session)


def _selected(responses: Responses, settings: SelectSettings, session: Session) -> Findings:
    loaded = load_responses(responses)
    graphs, source, remarks = loaded.graphs, loaded.source, loaded.remarks
    model = session.model
    judge_of_relevance = session.asked(settings.relevance)
    choices = settings.choices(model)
    probed = _probed(settings, model, judge_of_relevance)
    labeled = any(atom.label is not None for graph in graphs for atom in graph.atoms)
    if "seed" in settings.model_fields_set and not labeled:
        raise InputError(
            "--seed affects only intervals of labeled claims, and no claim has a label; leave it "
            "out"
        )
    split: set[str] = set()
    unjudged = 0
    irrelevant: set[tuple[str, str]] = set()
    selections: list[tuple[FactGraph, Selection]] = []
    unselected: list[str] = []
    declined: list[str] = []
    for graph in each_response(graphs):
        whole = graph
        if not graph.atoms and declines(graph):
            # The sentences of a refusal are not claims.
            declined.append(graph.id)
        elif not graph.atoms and graph.response.strip():
            # Each sentence counts as a claim.
            whole = replace(graph, atoms=sentence_atoms(graph.response, stated_language(graph)))
            split.add(graph.id)
        if whole.atoms:
            core: Core = choices.core(whole)
            if judge_of_relevance is not None:
                core, beside, unknown = with_relevance(whole, core, judge_of_relevance)
                irrelevant |= {(whole.id, claim) for claim in beside}
                unjudged += unknown
            if settings.dry_run:
                core = replace(core, weighting=_weighting_without_answers(core.weighting))
            try:
                selection = select_claims(claims_with_sources(whole, settings.share), core)
            except UnjudgedClaimError:
                unselected.append(whole.id)
            else:
                selections.append((whole, selection))
    if not selections and not unselected:
        lacks = (
            "every response declines to answer" if declined else "no response has a claim or a text"
        )
        raise InputError(f"{source}: {lacks}; name other data")
    empty = len(graphs) - len(selections) - len(unselected) - len(declined)
    sentences = [
        *([_summary(selections)] if selections else []),
        *remarks,
        *_remarks(selections, settings, empty, len(split), unjudged),
    ]
    if declined:
        verb = "declines" if len(declined) == 1 else "decline"
        sentences.append(
            f"{counted(len(declined), 'response')} {verb} to answer ({some_of(declined)}): without "
            "claims, and left out."
        )
    if unselected:
        sentences.append(
            f"It is not known which claims of {counted(len(unselected), 'response')} count, since "
            f"no answer on how informative a claim is could be read: {some_of(unselected)}."
        )
    if not selections:
        findings = Findings(source, tuple(sentences), incomplete=True)
        return with_probe(with_failed_calls(findings, calls_in_ledger(session.ledger)), probed)
    tables = {"responses": _responses(selections), "selection": _claims(selections, irrelevant)}
    counting = tuple(_counting(graph, selection) for graph, selection in selections)
    draw = no_figures
    if any(atom.label is not None for graph, _ in selections for atom in graph.atoms):
        kept = _kept(selections, settings.seed)
        tables["sentences"] = kept
        if len(kept.frame) > 1:
            draw = partial(_figures, kept)
    if settings.dry_run:
        return planned_findings(source, session.ledger)
    tables |= cost_tables(session.ledger, len(selections))
    findings = Findings(
        source=source,
        sentences=tuple(sentences),
        tables=tables,
        settings={"relations": settings.judge, "domain": choices.domain},
        draw=draw,
        unshown=("selection",),
        incomplete=bool(unselected),
        graphs=counting,
        tidy=partial(claims_frame, counting),
        frames={CLAIMS: partial(claims_frame, counting)},
    )
    return with_probe(with_failed_calls(findings, calls_in_ledger(session.ledger)), probed)


def _probed(
    settings: SelectSettings, model: LanguageModel | None, judge_of_relevance: LanguageModel | None
) -> FirstProbe:
    """Results of probing the models that decide entailment and relevance."""
    stages: list[tuple[str, LanguageModel | None]] = []
    if "model" in (settings.judge, settings.cap, settings.graded) and is_probed(
        settings.probe, settings.model
    ):
        stages.append((RELATIONS, model))
    if is_probed(settings.probe, settings.relevance):
        stages.append((RELEVANCES, judge_of_relevance))

    return first_probe(stages, openness=settings.openness)


def _remarks(
    selections: Sequence[tuple[FactGraph, Selection]],
    settings: SelectSettings,
    empty: int,
    split: int,
    unjudged: int,
) -> list[str]:
    """Remarks on the claims and their judges."""
    sentences = []
    if split:
        sentences.append(
            f"{counted(split, 'response')} without claims: each sentence counts as a claim; "
            "`factormodels assess --atoms model` lists claims with a language model."
        )
    if empty:
        sentences.append(f"{counted(empty, 'response')} without claims and text left out.")
    missing = sum(selection.missing for _, selection in selections)
    if missing:
        sentences.append(
            f"{counted(missing, 'judgment')} {is_or_are(missing)} missing; a missing judgment "
            "excludes no claim."
        )
    if unjudged:
        sentences.append(
            f"The relevance of {counted(unjudged, 'claim')} is unknown; they count as relevant."
        )
    if settings.graded is not None:
        sentences.append(f"P(c|h) comes from the graded model {settings.graded}.")
    elif settings.judge == "model" and settings.weights == "informativeness":
        sentences.append(
            "P(c|h) is approximated by the language model's probability of entailment; name a "
            "graded model with --graded for P(c|h) itself."
        )
    elif settings.judge.startswith("nli:"):
        sentences.append(
            "P(c|h) of a graded model is its output; for a model with two or three labels it is "
            "approximated by the probability of its entailment label."
        )
    return sentences


def _weighting_without_answers(weighting: Weighting) -> Weighting:
    """Return a weighting with the same questions that falls back to equal weights without answers.

    The selection of a dry run then continues to the pairs of claims, so that their calls are
    counted.
    """

    def weigh(claims: Sequence[Subclaim]) -> Sequence[float]:
        try:
            return weighting(claims)
        except UnjudgedClaimError:
            return uniform(claims)

    return weigh


def _responses(selections: Sequence[tuple[FactGraph, Selection]]) -> Table:
    rows = []
    for graph, selection in selections:
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
    labeled = any(row["true_before"] == row["true_before"] for row in rows)
    columns = (
        *columns_as("response | claims:0 | selected:0 | share:2 share left"),
        *(columns_as("true_before:2 true before | true_after:2 true after") if labeled else ()),
        *columns_as("status"),
    )
    return Table(data_frame(rows), columns, "Claims that count, by response.")


def _counting(graph: FactGraph, selection: Selection) -> FactGraph:
    """The response with the selected claims and its number of sentences."""
    kept = restricted(graph, [claim.id for claim in selection.chosen])
    if "sentences" in graph.metadata or not graph.response.strip():
        return kept
    # The sentence splitter may find fewer sentences than the annotators.
    length = max(len(sentences_of(graph)), *(atom.sentence or 0 for atom in graph.atoms))
    return replace(kept, metadata={**graph.metadata, "sentences": length})


def _kept(selected: Sequence[tuple[FactGraph, Selection]], seed: int) -> Table:
    selections = [
        (graph, {claim.id for claim in selection.chosen}) for graph, selection in selected
    ]
    return Table(
        data_frame(kept_by_sentence(selections, seed=seed)),
        columns_as(KEPT_COLUMNS),
        f"Kept claims of {counted(len(selected), 'response')} by position of the sentence.",
        note=KEPT_NOTE,
    )


def _figures(kept: Table) -> dict[str, PaperFigure]:
    from experiments.findings.figures import line_figure

    by_sentence = kept.frame[kept.frame["sentence"] != "all"]
    figure = line_figure(by_sentence, "sentence", KEPT)
    title = kept.caption.removesuffix(".")
    return {"kept-by-sentence": PaperFigure(figure, by_sentence, title)}


def _claims(
    selections: Sequence[tuple[FactGraph, Selection]], irrelevant: Set[tuple[str, str]]
) -> Table:
    rows = []
    for graph, selection in selections:
        chosen = set(selection.solution.chosen)
        decided = selection.entailments.decided
        for index, claim in enumerate(selection.claims):
            near = [
                other
                for other in sorted(chosen)
                if other != index and (decided[index, other] or decided[other, index])
            ]
            weight = float(selection.program.weights[index])
            rows.append(
                {
                    "response": graph.id,
                    "claim": claim.id,
                    "text": claim.text,
                    "weight": weight,
                    "selected": index in chosen,
                    # A claim of zero weight is left out by itself, any other in favor of a kept
                    # claim.
                    "because": ""
                    if index in chosen
                    else "irrelevant to the question"
                    if (graph.id, claim.id) in irrelevant
                    else "it informs of nothing"
                    if weight <= 0
                    else f"related to {', '.join(selection.claims[at].id for at in near)}"
                    if near
                    else "too few would be faithful",
                }
            )
    columns = columns_as(
        "response | claim | text | weight:3 | selected | because",
        selected=lambda value: "yes" if value else "no",
    )
    return Table(data_frame(rows), columns, "Every claim, with the reason if it does not count.")


def _summary(selections: Sequence[tuple[FactGraph, Selection]]) -> str:
    before = sum(len(selection.claims) for _, selection in selections)
    after = sum(len(selection.chosen) for _, selection in selections)
    limited = sum(selection.solution.status != "optimal" for _, selection in selections)
    none = sum(not selection.chosen for _, selection in selections)
    return (
        f"{after:,} of {before:,} claims of {counted(len(selections), 'response')} count; "
        f"{counted(none, 'response')} keep none, and {limited:,} selections are not proved optimal."
    )
