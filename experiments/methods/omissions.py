"""Facts of the passages that answers omit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from calibration.intervals import mean_interval
from experiments.asking.failed_calls import calls_in_ledger, with_failed_calls
from experiments.asking.ledger_table import cost_tables, planned_findings
from experiments.asking.probe_settings import FirstProbeSettings
from experiments.asking.relation_models import relation_model
from experiments.asking.relation_settings import EntailmentJudge
from experiments.asking.session import asking
from experiments.asking.settings import AskingSettings, Model
from experiments.columns.frame import claim_row, long_table
from experiments.columns.responses import load_responses
from experiments.evaluators.probe_first import FirstProbe, first_probe, is_probed, with_probe
from experiments.findings.findings import CLAIMS, Findings
from experiments.findings.table import Table, columns_as, data_frame, with_note
from experiments.findings.text import with_interval
from experiments.progress import each_response
from experiments.settings import USUAL, front_door
from experiments.settings.conventions import (
    SourcePriorSettings,
    graph_names,
    note_of,
    own_prior_remarks,
)
from experiments.settings.limits import Encoding, Openness, VariantName
from factormodels.claims import Atom
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.extraction.asking.table import FACT_RELEVANCE
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.language_model.log_probabilities import OPENNESS
from factormodels.extraction.probe.table import RELATIONS, RELEVANCES
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.extraction.stages.facts import Fact, compared_facts, facts_of
from factormodels.extraction.stages.relevance import relevances
from factormodels.fact_graph import FactGraph
from factormodels.nouns import counted
from factormodels.variants import variant

if TYPE_CHECKING:
    from experiments.settings.inputs import Responses


class OmissionSettings(AskingSettings, FirstProbeSettings, SourcePriorSettings):
    """Facts.

    Options of `omissions`.
    """

    model: Annotated[Model, USUAL] = None
    """Language model that lists the facts of passages and decides which are relevant to the
    question and which the response states; as litellm spells it, with its key from the environment.
    Without a model, every sentence of a passage counts as a fact."""

    relations: EntailmentJudge = None

    openness: Openness = OPENNESS

    variant: Annotated[VariantName, USUAL] = "FR2"
    """Recorded relations that the posteriors of claims and passages use."""

    encoding: Encoding = DEFAULT_ENCODING


@dataclass(frozen=True, eq=False)
class FactCoverage:
    """Coverage of the passages' facts by a response.

    Attributes:
        graph: the response.
        facts: the facts that are relevant to the question.
        precision: mean posterior of its claims; NaN without claims.
        n_unjudged: number of facts whose relevance to the question is unknown.
        failures: (passage, reason) of passages whose facts are missing.
    """

    graph: FactGraph
    facts: tuple[Fact, ...]
    precision: float
    n_unjudged: int
    failures: tuple[tuple[str, str], ...]

    @property
    def known(self) -> list[Fact]:
        """Facts whose relation to the response is known."""
        return [fact for fact in self.facts if fact.covered is not None]

    def share(self, name: str) -> float:
        """Weighted mean over known facts of `covered`, `contradicted` or `omitted`."""
        total = math.fsum(fact.weight for fact in self.known)
        if total == 0.0:
            return math.nan
        return math.fsum(fact.weight * getattr(fact, name) for fact in self.known) / total

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and the covered share."""
        both = self.precision, self.share("covered")
        if math.isnan(sum(both)):
            return math.nan
        return 0.0 if sum(both) == 0.0 else 2.0 * both[0] * both[1] / sum(both)


@front_door
def omissions(responses: Responses, settings: OmissionSettings) -> Findings:
    """Find facts of the passages that answers omit, and score recall and F1 from posteriors.

    Precision rewards short answers, and F1@K compares the number of claims only with their median.
    This command splits the passages of a response into facts, as it splits the response into
    claims. The weight of a fact is the probability of its passage in the graph. The relation model
    decides whether the response entails the fact, contradicts it, or neither. Shows a row per
    response, then the omitted facts, the heaviest first.

    Examples::

        omissions("assessed/graphs.jsonl", model="openai/NAME").save("omissions")
        omissions("demonstration")
        omissions("assessed/graphs.jsonl", relations="nli:FOLDER")

    Args:
        responses: Responses with texts and passages: the graphs of `assess`, fact graphs or an
            embedded dataset. In Python also fact graphs.
        settings: options; in Python, pass the fields as keywords instead. A language model may be
            an object.

    Raises:
        InputError: if the responses cannot be read, or none has a text and passages.
        MissingDependencyError: if a relation model needs a library that is not installed.
    """
    loaded = load_responses(responses).only(
        lambda graph: graph.response.strip() and any(each.text.strip() for each in graph.contexts),
        "a text or passages",
        "no response has both its text and passages with texts, so no omission can be found; "
        "give the graphs of `factormodels assess`",
    )
    coverages = []
    with asking(settings) as session:
        model = session.model
        relations = settings.relations or ("lexical" if model is None else "model")
        judge, _ = relation_model(relations, model, openness=settings.openness)
        probed = _probed(relations, loaded.graphs, model, settings)
        for graph in each_response(loaded.graphs):
            coverages.append(_coverage(graph, settings, model, judge))
    if settings.dry_run:
        return planned_findings(loaded.source, session.ledger)
    conventions = settings.declared()
    note = note_of(conventions, graph_names([settings.variant]))
    tables = {
        "responses": with_note(_responses(coverages), note),
        "omitted": with_note(_facts(coverages), note),
    }
    caption = "The facts of the passages; P(true): that the response entails it."
    tables[CLAIMS] = long_table(_claims(coverages), caption)
    tables |= cost_tables(session.ledger, len(coverages))
    missing = sum(len(coverage.facts) - len(coverage.known) for coverage in coverages)
    failures = sum(len(coverage.failures) for coverage in coverages)
    remarks = [*loaded.remarks, *own_prior_remarks(loaded.graphs, conventions)]
    if model is None:
        remarks.append(
            "Without --model every sentence of a passage counts as a fact, relevant to the "
            "question or not."
        )
    if missing:
        remarks.append(f"{counted(missing, 'fact')} could not be compared and are not counted.")
    if failures:
        remarks.append(f"The facts of {counted(failures, 'passage')} could not be listed.")
    findings = Findings(
        source=loaded.source,
        sentences=(*_sentences(coverages), *remarks),
        tables=tables,
        settings={"relations": relations},
        unshown=(CLAIMS,),
        incomplete=bool(missing or failures),
        tidy=lambda: tables[CLAIMS].frame,
    )
    return with_probe(with_failed_calls(findings, calls_in_ledger(session.ledger)), probed)


def _probed(
    relations: str,
    graphs: Sequence[FactGraph],
    model: LanguageModel | None,
    settings: OmissionSettings,
) -> FirstProbe:
    """Result of probing the questions about facts."""
    if not is_probed(settings.probe, settings.model):
        return FirstProbe()

    stages = [RELATIONS] if relations == "model" else []
    if any(graph.query.strip() for graph in graphs):
        stages.append(RELEVANCES)
    return first_probe([(name, model) for name in stages], openness=settings.openness)


def _coverage(
    graph: FactGraph,
    settings: OmissionSettings,
    model: LanguageModel | None,
    judge: RelationModel,
) -> FactCoverage:
    from inference import infer

    conventions = settings.declared()
    view = variant(graph, settings.variant, conventions)
    posterior = infer(view.to_factor_graph(conventions.encoding)).marginals
    # FR1 has a copy of a passage for each of its claims: count the response's own passages.
    trust = {
        context.id: float(posterior[context.id][1]) if context.id in posterior else context.prior
        for context in variant(graph, "given", conventions).contexts
    }
    p = [float(posterior[atom][1]) for atom in view.atom_ids]
    facts, failures = facts_of(graph, trust, model)
    unjudged = 0
    if model is not None and graph.query.strip():
        judgments = relevances(model, graph, [fact.text for fact in facts], FACT_RELEVANCE)
        # Facts of unknown relevance count.
        facts = [
            fact
            for fact, is_relevant in zip(facts, judgments, strict=True)
            if is_relevant is not False
        ]
        unjudged = judgments.count(None)
    compared, _ = compared_facts(graph, facts, judge)
    precision = math.fsum(p) / len(p) if p else math.nan
    return FactCoverage(graph, tuple(compared), precision, unjudged, tuple(failures))


def _responses(coverages: Sequence[FactCoverage]) -> Table:
    rows = [
        {
            "response": coverage.graph.id,
            "facts": len(coverage.known),
            "precision": coverage.precision,
            "recall": coverage.share("covered"),
            "contradicted": coverage.share("contradicted"),
            "omitted": coverage.share("omitted"),
            "f1": coverage.f1,
        }
        for coverage in coverages
    ]
    return Table(
        data_frame(rows),
        columns_as(
            "response | facts:0 | precision:3 | recall:3 | contradicted:3 | omitted:3 | f1:3 F1"
        ),
        "Coverage of the passages' facts by each response.",
        note=(
            "Precision: mean posterior of its claims. Recall: expected share by weight of the "
            "facts that the response entails; contradicted and omitted are the other shares. "
            "F1: harmonic mean of precision and recall."
        ),
    )


def _facts(coverages: Sequence[FactCoverage]) -> Table:
    rows: list[dict[str, Any]] = [
        {
            "response": coverage.graph.id,
            "fact": fact.text,
            "passages": ", ".join(fact.contexts),
            "weight": fact.weight,
            "covered": fact.covered,
            "contradicted": fact.contradicted,
            "omitted": fact.omitted,
            "missed": fact.weight * (fact.omitted or 0.0),
        }
        for coverage in coverages
        for fact in coverage.known
    ]
    rows.sort(key=lambda row: -row["missed"])
    numbers = ("weight", "covered", "contradicted", "omitted")
    return Table(
        data_frame(rows, ["response", "fact", "passages", *numbers, "missed"]),
        columns_as(
            "response | fact | passages | weight:2 | covered:2 | contradicted:2 | omitted:2"
        ),
        "Facts of the passages, the omitted facts with the largest weights first.",
        note="Weight: posterior of the most probable passage with the fact.",
    )


def _claims(coverages: Sequence[FactCoverage]) -> Iterator[dict[str, Any]]:
    """Yield a row for each fact as a claim about the response; p: that it is covered."""
    for coverage in coverages:
        for number, fact in enumerate(coverage.facts, 1):
            yield claim_row(
                *(coverage.graph.id, Atom(f"f{number}", fact.text), fact.covered),
                passages=", ".join(fact.contexts),
                weight=fact.weight,
                contradicted=fact.contradicted,
            )


def _sentences(coverages: Sequence[FactCoverage]) -> list[str]:
    sentences = [
        f"{counted(sum(len(coverage.known) for coverage in coverages), 'fact')} of the passages of "
        f"{counted(len(coverages), 'response')}."
    ]
    for title, values in (
        ("Recall", [coverage.share("covered") for coverage in coverages]),
        ("F1", [coverage.f1 for coverage in coverages]),
    ):
        ends = mean_interval(values)
        if not math.isnan(ends[0]):
            sentences.append(f"{title}, mean over responses: {with_interval(*ends)}.")
    return sentences
