"""Core on anybody's responses: which claims count, with labels or without, with claims or as text.

Source: Core, sections 3 to 5.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from calibration.self_knowledge import IntervalSettings
from experiments.asking.failed_calls import calls_in_ledger, with_failed_calls
from experiments.asking.ledger_table import cost_tables, planned_findings
from experiments.asking.relation_models import relation_model
from experiments.asking.session import Session, asking
from experiments.asking.settings import AskingSettings, Model
from experiments.evaluators.core import claims_with_sources
from experiments.evaluators.gaming import known_templates
from experiments.evaluators.inputs import load_responses
from experiments.evaluators.robustness import (
    CoreChoices,
    assessors_by_name,
    by_labels,
    by_related_atoms,
    gains_table,
    labelled_by,
    padded_scores,
    padding_gains,
    robustness_curves,
    robustness_figure,
    robustness_table,
)
from experiments.evaluators.selection_study import (
    selection_study,
    study_figures,
    study_tables,
    uncertain_rows,
    uncertain_table,
)
from experiments.findings.artefacts import PaperFigure
from experiments.findings.findings import Findings
from experiments.findings.table import Column, Table, columns_as, data_frame
from experiments.progress import each_response, tell
from experiments.settings import SET, Names, Option, Settings, front_door
from experiments.settings.limits import DrawnSettings, Openness
from experiments.settings.selection_rule import SelectionRule
from factormodels.errors import InputError
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.language_model.log_probabilities import OPENNESS
from factormodels.extraction.safe import relevances
from factormodels.extraction.sentences import stated_language
from factormodels.extraction.stages.atomizer import sentence_atoms
from factormodels.fact_graph import FactGraph
from factormodels.nouns import counted, is_or_are
from factormodels.selection import CachedRelations, Relevance, Selection, restricted
from factormodels.selection import select as select_claims
from factormodels.selection.weights import EPSILON

if TYPE_CHECKING:
    import pandas as pd

    from factormodels.selection import Core

    Responses = str | os.PathLike[str] | Iterable[FactGraph]


_POINTS = 4
"""Points of each curve beside 0, evenly spaced."""


class PaddingSettings(Settings, together={"append": "verifier paraphrases templates_known"}):
    """Padding."""

    append: Annotated[int, Field(ge=0)] = 0
    """Append up to this many true sentences that add nothing, and show whether scores rise."""

    verifier: Annotated[str | None, Option("NAME")] = None
    """The assessor whose verdicts stand for labels of padded responses. Without it people's labels
    count; where there are none, FR2 on the recorded relations, or on those of --relations."""

    paraphrases: Model = None
    """Also repeat claims as paraphrases written by this language model."""

    templates_known: bool = False
    """Recognise the templates of the padding instead of judging it by its words alone."""


def _padding(
    graphs: Sequence[FactGraph],
    choices: CoreChoices,
    settings: SelectSettings,
    source: str,
    model: LanguageModel | None,
    writer: LanguageModel | None,
) -> tuple[list[str], dict[str, Table], pd.DataFrame]:
    """What is to be said of padding, its tables, and the curves by its length."""
    missing: Counter[str] = Counter()
    assessors = assessors_by_name(choices.relations, model, missing)
    labelled, whose, remark = labelled_by(graphs, settings.verifier, assessors, source)
    choices = replace(choices, templates_known=settings.templates_known)
    judge = choices.relations
    # One cache for all versions of all responses, since they share most of their claims.
    related = CachedRelations(
        known_templates(judge, labelled, settings.append) if settings.templates_known else judge
    )
    assessors = {
        whose: by_labels,
        **assessors,
        "FR2, atoms related": by_related_atoms("FR2", related),
    }
    tell("padded responses")
    scores = padded_scores(
        labelled, assessors, choices, appended=settings.append, paraphraser=writer
    )
    tell("curves")
    counts = [round(settings.append * point / _POINTS) for point in range(_POINTS + 1)]
    curves = robustness_curves(labelled, assessors, choices, counts=counts, seed=settings.seed)
    told = [
        f"{name}: {counted(number, 'verdict')} missing in all tables and curves of padding; they "
        "count as not supported."
        for name, number in missing.items()
        if number
    ]
    tables = {
        "padding": _scores(robustness_table(labelled, scores)),
        "gains": gains_table(
            padding_gains(scores),
            "assessor",
            "What padding gains in precision over the normal response.",
            "In brackets: 95% intervals over responses, paired.",
        ),
        "curves": _curves(curves),
    }
    return [*([remark] if remark else []), *told], tables, curves


def _scores(frame: pd.DataFrame) -> Table:
    columns = (
        *columns_as("core Core | kind response", core=_with),
        *columns_as("counted:1 claims | precision:3 Pr | f1:3 F1@K'"),
    )
    return Table(frame, columns, "Normal and padded responses.", group="assessor")


def _curves(points: pd.DataFrame) -> Table:
    """A line per curve: precision by number of sentences, and how many responses rise at last."""
    of = ["assessor", "core", "response", "padding"]
    counts = sorted(points["appended"].unique())
    wide = points.pivot_table(index=of, columns="appended", values="precision")
    last = points[points["appended"] == counts[-1]][[*of, "raised", "responses"]]
    # In the order of the points, which pivoting does not keep.
    frame = last.merge(wide.rename(columns="p{}".format).reset_index(), on=of)
    columns = (
        *columns_as("core Core | padding | response", core=_with),
        *(Column(f"p{count}", str(count), digits=3) for count in counts),
        *columns_as("raised:0 | responses:0 of"),
    )
    return Table(
        frame,
        columns,
        "Precision by the number of appended sentences.",
        group="assessor",
        note="Raised: responses that, with all sentences appended, score above the clean response.",
    )


def _padding_figures(curves: pd.DataFrame) -> dict[str, PaperFigure]:
    figures = {}
    drawn = zip(curves["assessor"], curves["padding"], strict=True)
    for assessor, padding in dict.fromkeys(drawn):
        own = curves[(curves["assessor"] == assessor) & (curves["padding"] == padding)]
        # Names of assessors hold commas and spaces, which file names had better not.
        stem = f"padding-{assessor}-{padding}".replace(", ", "-").replace(" ", "-")
        title = f"Precision with {padding} sentences appended, {assessor}"
        figures[stem] = PaperFigure(robustness_figure(curves, assessor, padding), own, title)
    return figures


def _with(core: bool) -> str:
    return "with" if core else "without"


PEOPLE = "people"
"""Domain of the bleached claims where none is given: that of Core's own data."""


class SelectSettings(
    DrawnSettings,
    PaddingSettings,
    SelectionRule,
    AskingSettings,
    together={"relations": "labels", "": "model", SET: "*"},
):
    """How claims are selected."""

    relations: Annotated[str | None, Option("NAME")] = None
    """What decides entailment: lexical, model (given by --model), recorded:FILE or nli:FOLDER. By
    default the language model where there is one, else lexical."""

    labels: Annotated[Names, Option("LABEL=RELATION,...")] = ()
    """What the labels of an NLI model mean, if their names do not say."""

    domain: Annotated[str | None, Option("NAME")] = None
    """Domain of the bleached claims; people by default, and with --append that of the response."""

    epsilon: Annotated[float, Field(ge=0)] = EPSILON
    """Amount subtracted from each informativeness."""

    cap: Annotated[str | None, Option("NAME")] = None
    """Relation model whose entailment caps informativeness at 0."""

    graded: Annotated[str | None, Option("NAME")] = None
    """Relation model that gives P(c given h), as one trained on UNLI."""

    model: Model = None
    """Language model that decides entailment and, with --append, judges claims by prompts; as
    litellm spells it, its key from the environment."""

    relevance: Model = None
    """Language model that decides which claims are relevant to the question; others do not
    count."""

    bins: Annotated[int, Field(ge=1, le=20)] = 5
    """Bins of relative position, for responses with labels."""

    samples: Annotated[int, Field(ge=0)] = 0
    """Also select under uncertain redundancy, with this many sampled redundancy graphs."""

    openness: Openness = OPENNESS

    @property
    def judge(self) -> str:
        """Name of who says who entails whom."""
        return self.relations or ("lexical" if self.model is None else "model")

    def choices(self, model: LanguageModel | None) -> CoreChoices:
        """How selection is set up for each response.

        Args:
            model: the language model, if there is one.

        Raises:
            InputError: for an unknown name or a setting out of range.
            MissingDependencyError: if a relation model needs a library that is not installed.
        """
        cap, graded = (
            None if name is None else relation_model(name, model, openness=self.openness)[0]
            for name in (self.cap, self.graded)
        )
        labels = parse_labels(self.labels)
        return CoreChoices(
            relation_model(self.judge, model, labels, openness=self.openness)[0],
            self.weights,
            self.rule,
            domain=self.domain or PEOPLE,
            templates=self.templates,
            share=self.share,
            epsilon=self.epsilon,
            cap=cap,
            graded=graded,
        )


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


@front_door
def select(responses: Responses, settings: SelectSettings) -> Findings:
    """Select the claims that count (Core) and tabulate what that changes.

    Shows the claims of each response before and after; with --out also each claim with its weight
    and the reason why it does not count. For responses with labels, also shows claims by sentence,
    and factuality by relative position, before and after. Responses without claims are split into
    sentences.

    With --append, shows whether scores stand up to padding: true sentences that repeat a claim, say
    something true of anything, or are claims of other responses. For each assessor (the labels;
    FR1, FR2 and FR3 on the recorded relations; FR2 on the relation model's; FR2 with atoms related
    to each other; with --model those that judge by a prompt), normal and padded responses with and
    without selection, what padding gains, and curves against the number of sentences.

    Examples::

        factormodels select ChatGPT.jsonl
        factormodels select ChatGPT.jsonl --set weights=uniform,rule=both \\
            --out results/select
        factormodels select demonstration --set domain=things,samples=200
        factormodels select answers.jsonl --model openai/NAME \\
            --set relevance=openai/NAME
        factormodels select demonstration --append 20 --out results/padding
        factormodels select assessed/graphs.jsonl --append 4,verifier=FR2

    Args:
        responses: Responses with the texts of their claims, or as text: FActScore's JSON Lines,
            fact graphs, an embedded dataset, a table or a text. Labels are not needed. In Python
            also fact graphs.
        settings: how; in Python the fields may be named instead, and language models given
            themselves.

    Raises:
        InputError: if the responses cannot be read, or an option does not fit them.
        MissingDependencyError: if a relation model needs a library that is not installed.
    """
    with asking(settings) as session:
        return _selected(responses, settings, session)


def _selected(responses: Responses, settings: SelectSettings, session: Session) -> Findings:
    loaded = load_responses(responses)
    graphs, source, remarks = loaded.graphs, loaded.source, loaded.remarks
    if settings.append and settings.share is not None:
        raise InputError(
            "--share is about sentences of the response, and what --append adds is in none; leave "
            "one out"
        )
    if settings.append and settings.relevance is not None:
        raise InputError("--relevance is not asked of what --append adds; leave one out")
    model = session.model
    judge_of_relevance, writer = map(session.asked, (settings.relevance, settings.paraphrases))
    choices = settings.choices(model)
    labelled = _placed_labels(graphs)
    for name in ("samples", "bins", *(() if settings.append else ("seed",))):
        if name in settings.model_fields_set and not labelled:
            raise InputError(
                f"--{name} is about labelled claims that say which sentence they are from; there "
                "are none"
            )
    split: set[str] = set()
    unjudged = 0
    found: list[tuple[FactGraph, Selection]] = []
    for graph in each_response(graphs):
        whole = graph
        if not graph.atoms and graph.response.strip():
            # Each of its sentences is taken for a claim.
            whole = replace(graph, atoms=sentence_atoms(graph.response, stated_language(graph)))
            split.add(graph.id)
        if whole.atoms:
            core: Core = choices.core(whole)
            if judge_of_relevance is not None:
                core, unknown = _with_relevance(whole, core, judge_of_relevance)
                unjudged += unknown
            found.append((whole, select_claims(claims_with_sources(whole, settings.share), core)))
    if not found:
        raise InputError(f"{source}: no response has a claim or a text; name other data")
    sentences = [
        _summary(found),
        *remarks,
        *_remarks(found, settings, len(graphs) - len(found), len(split), unjudged),
    ]
    tables = {"responses": _responses(found), "claims": _claims(found)}
    drawings: list[Callable[[], Mapping[str, PaperFigure]]] = []
    given = [(graph, one) for graph, one in found if graph.id not in split]
    if labelled and _placed_labels([restricted(g, [c.id for c in one.chosen]) for g, one in given]):
        study = selection_study(
            given,
            source=source,
            intervals=IntervalSettings(seed=settings.seed),
            n_positions=settings.bins,
        )
        tables |= study_tables(study)
        drawings.append(partial(study_figures, study))
        if settings.samples:
            rows = uncertain_rows(given, choices, samples=settings.samples, seed=settings.seed)
            tables["uncertain"] = uncertain_table(rows)
    if settings.append:
        by_subject = replace(choices, domain=settings.domain)
        graphs_with_claims = [graph for graph, _ in found]
        told, padded, curves = _padding(
            graphs_with_claims, by_subject, settings, source, model, writer
        )
        tables |= padded
        sentences += told
        drawings.append(partial(_padding_figures, curves))
    if settings.dry_run:
        return planned_findings(source, session.ledger)
    tables |= cost_tables(session.ledger)
    return with_failed_calls(
        Findings(
            source=source,
            sentences=tuple(sentences),
            tables=tables,
            settings={"relations": settings.judge, "domain": choices.domain},
            draw=lambda: {name: figure for draw in drawings for name, figure in draw().items()},
            unshown=("claims",),
        ),
        calls_in_ledger(session.ledger),
    )


def _remarks(
    found: Sequence[tuple[FactGraph, Selection]],
    settings: SelectSettings,
    empty: int,
    split: int,
    unjudged: int,
) -> list[str]:
    """What a reader must know of the claims and of who judged them."""
    sentences = []
    if split:
        sentences.append(
            f"{counted(split, 'response')} without claims: each sentence is taken for one; "
            "`factormodels assess --atoms model` lists claims with a language model."
        )
    if empty:
        sentences.append(f"{counted(empty, 'response')} without claims and text: left out.")
    missing = sum(selection.missing for _, selection in found)
    if missing:
        sentences.append(
            f"{counted(missing, 'judgement')} {is_or_are(missing)} missing; what is missing "
            "excludes nothing."
        )
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
    return sentences


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
    told = relevances(model, graph, [atom.text for atom in graph.atoms], "relevance")
    beside = {name for name, one in zip(graph.atom_ids, told, strict=True) if one is False}
    weighting = Relevance(lambda claim: claim.id not in beside, core.weighting)
    return replace(core, weighting=weighting), told.count(None)


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
        *columns_as("response | claims:0 | selected:0 | share:2 share left"),
        *(columns_as("true_before:2 true before | true_after:2 true after") if labelled else ()),
        *columns_as("status"),
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
    columns = columns_as(
        "response | claim | text | weight:3 | selected | because",
        selected=lambda value: "yes" if value else "no",
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
