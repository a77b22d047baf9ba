"""A small local model: what is it worth for judging claims, as it is and corrected?

Each relation between a claim and a passage that was retrieved for it has the probabilities that the
model gave, those without its label bias (by the probe, by the mean answer, by labels of other
responses), or those of the lexical model, which takes no language model. Graphs are made of each,
and claims judged by default potentials, by a field learned in folds of responses, and by trees
without a graph.

Question: how good are the relations and the judgments of claims of a small local model?
Data: factcheck-bench and factscore, embedded, with recorded answers of models, as far as recorded.
Rival: the lexical model, and the shares of relations and of true claims in other responses.

    python notebooks/questions/small_local_model.py --out docs/results/small-local-model

It takes forty seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from calibration.folds import folds_of
from calibration.label_bias import compare_corrections, fit_vector_scaling, left_out_means
from calibration.learned_potentials.methods import (
    METHODS,
    ColumnMethod,
    CrossFitTask,
    cross_fit_task,
)
from calibration.validation import Floats
from experiments.asking.relation_correction import NONE
from experiments.evaluators.recorded_relations import (
    LEARNED,
    PairKey,
    RecordedPairs,
    RecordedRanks,
    corrected_pairs,
    judged_pairs,
    label_columns_of,
    read_record,
    record_costs,
    recorded_graphs,
    recorded_pairs,
    recorded_ranks,
    relation_score_row,
)
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.claim_scores import (
    LabeledAtoms,
    labeled_atoms,
    score_change,
    scores_with_intervals,
)
from experiments.findings.figures import estimate_figure
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame, named
from factormodels import datasets
from factormodels.claims import JUDGED_KINDS, RelationKind
from factormodels.extraction.asking.table import RELATION
from factormodels.fact_graph import FactGraph
from factormodels.io.relation_record import RelationRecord
from factormodels.nouns import counted
from factormodels.variants import variant
from inference.batch import claim_posteriors

BENCH, BIOGRAPHIES = "factcheck-bench", "factscore"

RAW, LEXICAL = "raw", "lexical"

VIEWS = ("FR1", "FR2", "FR3")

LEARNERS = {"learned field": "with causes of biographies", "trees without a graph": "boosted trees"}
"""Methods that labels of other folds teach, by what tables call them."""

SHARES = "shares of labels"
"""Rival that gives every pair the shares of the relations in the other responses."""

BASE_RATE = "base rate"
"""Rival that gives each claim the share of true claims in the other folds."""

_FEWEST_SCORED = 5
"""Fewest labeled responses of which judgments of claims are scored."""

_FEWEST = 10
"""Fewest labeled responses that a judge of claims is learned from."""

TABLES = {
    "relations": (
        "model | relations | n:0 pairs | accuracy:3± | log_loss:3± log loss | ece:3± ECE | "
        "difference:3± log loss minus raw",
        "Relations by source, on human stances",
        "data",
        "Intervals: 95% over responses, paired for the difference. ECE: of the most probable "
        "relation's probability. Learned, and lexical: from other folds of responses.",
    ),
    "claims": (
        "model | relations | graph | claims:0 | brier:3± Brier | "
        "difference:3± difference from base rate | "
        "difference_lexical:3± difference from lexical | auroc:3± AUROC",
        "Claims by source of relations and by what judges them",
        "data",
        "Intervals: 95% over responses, paired for the differences of the Brier score, from the "
        "base rate and from the same judge with lexical relations; AUROC within folds. Every "
        "source has the claim's own passages alone, so that FR3 equals FR2, and FR2 differs from "
        "FR1 where claims share a passage.",
    ),
    "across": (
        "model | relations | graph | claims:0 | brier:3± Brier | auroc:3± AUROC",
        "Judges learned from one source, used on the other",
        "where",
        "Intervals: 95% over responses of the second source, whose labels serve to score alone.",
    ),
    "costs": (
        "model | responses:0 responses | all_responses:0 of | passages | pairs:0 | "
        "all_pairs:0 of pairs | missing:0 | calls:1 calls a claim | asked:0 tokens a claim | "
        "read:0 of them read | seconds:1 seconds a claim",
        "Extent and cost of the records",
        "data",
        "Passages: those of each claim that judge it. Read: not in the server's prefix cache. "
        "Seconds: of the server's processor time.",
    ),
}
"""Columns, caption, groups and note of each table."""


def small_local_model(
    *, records: tuple[str, ...] = (), prompt: str = RELATION.prompt, folds: int = 5, seed: int = 0
) -> Artifacts:
    """Return scores of relations and of claims by source of relations, and what they cost.

    Args:
        records: embedded records of answers, or files of them; all embedded ones if none is given.
        prompt: the prompt whose answers count.
        folds: folds of responses in which corrections and judges are learned.
        seed: seed of the folds and of the bootstrap over responses.
    """
    recorded = merged(read_record(name) for name in records or datasets.relation_records())
    lexical = next((each for each in recorded if each.origin.model == LEXICAL), None)
    sources = [
        recorded_source(record, prompt, lexical) for record in recorded if record is not lexical
    ]
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    remarks = []
    tasks: dict[tuple[str, str, str], CrossFitTask] = {}
    for source in sources:
        probabilities = source.probabilities(sources, folds, seed)
        costs = cost_row(source)
        rows["costs"].append(costs)
        rows["relations"] += relation_rows(source, probabilities, seed)
        graphs = {name: source.graphs(shares) for name, shares in probabilities.items()}
        remarks.append(
            f"{source.name}: {counted(costs['responses'], 'response')} of "
            f"{len(source.all_graphs)} recorded; passages of each claim: {costs['passages']}."
        )
        judged = {name: judged_claims(source, made, folds, seed) for name, made in graphs.items()}
        for name, claims in judged.items():
            if claims is not None:
                rows["claims"] += claim_rows(source, name, claims, judged.get(LEXICAL), seed)
                if claims.task is not None:
                    tasks[source.model, name, source.dataset] = claims.task
    rows["across"] = list(across_rows(tasks, seed))
    frames = {name: data_frame(made) for name, made in rows.items() if made}
    figures = {}
    if "relations" in frames:
        shown = frames["relations"]
        values = {"log_loss": "log loss", "accuracy": "accuracy"}
        figure = estimate_figure(shown, "relations", values, by="model")
        figures["sources"] = PaperFigure(figure, shown, "Relations by source")
    return Artifacts(
        {name: table_of(name, frame) for name, frame in frames.items()}, figures, tuple(remarks)
    )


def merged(records: Iterable[RelationRecord]) -> list[RelationRecord]:
    """Records of one dataset and one model as one, with the origin of the first."""
    by_model: dict[tuple[str, str], list[RelationRecord]] = {}
    for record in records:
        by_model.setdefault((record.origin.dataset, record.origin.model), []).append(record)
    return [
        RelationRecord(
            same[0].origin,
            tuple({answer.key: answer for each in same for answer in each.answers}.values()),
        )
        for same in by_model.values()
    ]


def table_of(name: str, frame: Any) -> Table:
    """A table by its name, of the rows below."""
    columns, caption, group, note = TABLES[name]
    return Table(frame, columns_as(columns), caption, group=group, note=note)


@dataclass(frozen=True, eq=False)
class RecordedSource:
    """A model's recorded relations of a dataset, with the relations that people found.

    Attributes:
        record: the recorded answers.
        prompt: the prompt whose answers count.
        all_graphs: every response of the dataset.
        judged: column of the relation that people found, by pair; empty of the biographies.
        pairs: the recorded pairs, with probabilities that are not corrected.
        lexical: probabilities of the same pairs by the lexical model.
        ranks: ranks of the recorded passages; None if whole responses were recorded.
    """

    record: RelationRecord
    prompt: str
    all_graphs: tuple[FactGraph, ...]
    judged: Mapping[PairKey, int]
    pairs: RecordedPairs
    lexical: Mapping[PairKey, Floats]
    ranks: RecordedRanks | None = None

    @property
    def dataset(self) -> str:
        """Name of the dataset."""
        return self.record.origin.dataset

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.record.origin.model

    @property
    def name(self) -> str:
        """Dataset and model."""
        return f"{self.dataset}, {self.model}"

    def probabilities(
        self, others: list[RecordedSource], folds: int, seed: int
    ) -> dict[str, Floats]:
        """Probabilities of the pairs by source of relations, (n, 3) each.

        Where nobody judged the relations, the learned correction comes from all pairs of the other
        dataset that the model was asked about.

        Args:
            others: all sources.
            folds: folds of responses in which a correction is learned.
            seed: seed of the folds.
        """
        y = label_columns_of(self.pairs.keys, self.judged) if self.judged else None
        corrected = corrected_pairs(self.pairs, y, folds=folds, seed=seed)
        made = {RAW if name == NONE else name: p for name, p in corrected.items()}
        teacher = next((o for o in others if o.model == self.model and o.judged), None)
        if y is None and teacher is not None:
            taught = label_columns_of(teacher.pairs.keys, teacher.judged)
            made[LEARNED] = fit_vector_scaling(teacher.pairs.p, taught).apply(self.pairs.p)
        if all(key in self.lexical for key in self.pairs.keys):
            made[LEXICAL] = np.array([self.lexical[key] for key in self.pairs.keys])
        return made

    def graphs(self, p: Floats) -> list[FactGraph]:
        """The responses that are recorded, with relations of given probabilities.

        They are those recorded as a whole or, in a record by ranks, with the best-ranked passages
        of each claim.
        """
        answers = dict(zip(self.pairs.keys, p.tolist(), strict=True))
        ranked = self.ranks.best_passages(self.all_graphs) if self.ranks else self.all_graphs
        return recorded_graphs(ranked, self.record, self.prompt, answers)


def recorded_source(
    record: RelationRecord, prompt: str, lexical: RelationRecord | None
) -> RecordedSource:
    """A record with the graphs of its dataset.

    Args:
        record: the record.
        prompt: the prompt whose answers count.
        lexical: answers of the lexical model about the pairs of Factcheck-Bench; None if there are
            none.
    """
    dataset = record.origin.dataset
    pairs = recorded_pairs(record, prompt)
    if dataset == BENCH:
        stances = {"irrelevant": (RelationKind.NEUTRAL, 1.0)}
        graphs = datasets.load(dataset, stances=stances).graphs
        judged = judged_pairs(graphs)
        answers = [] if lexical is None else lexical.of_prompt(LEXICAL).items()
        shares = {key: np.array(a.shares) for key, a in answers if a.shares is not None}
        return RecordedSource(record, prompt, graphs, judged, pairs, shares)
    graphs = datasets.load(dataset).graphs
    shares = {
        (graph.id, relation.source, relation.target): np.array(
            [relation.distribution[0], relation.distribution[1], relation.distribution[3]]
        )
        for graph in graphs
        for relation in graph.relations
        if relation.distribution is not None
    }
    if record.origin.order != "ranks":
        return RecordedSource(record, prompt, graphs, {}, pairs, shares)
    ranks = recorded_ranks(graphs, record, prompt)
    best = pairs.part(np.array([ranks.ranks[key] <= ranks.complete for key in pairs.keys]))
    return RecordedSource(record, prompt, graphs, {}, best, shares, ranks)


def relation_rows(
    source: RecordedSource, probabilities: Mapping[str, Floats], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield a row for each source of relations and for the shares of labels.

    There is none where nobody judged the relations.
    """
    if not source.judged:
        return
    y, responses = label_columns_of(source.pairs.keys, source.judged), source.pairs.responses
    shares = left_out_means(np.eye(len(JUDGED_KINDS))[y], responses)
    for name, p in {**probabilities, SHARES: shares}.items():
        row: dict[str, Any] = {"data": source.dataset, "model": source.model, "relations": name}
        row |= relation_score_row(p, y, responses, seed)
        difference = (np.nan,) * 3
        if name != RAW:
            compared = compare_corrections(p, source.pairs.p, y, responses, seed=seed)
            difference = (compared.value, *compared.interval)
        yield row | named("difference", difference)


@dataclass(frozen=True, eq=False)
class JudgedClaims:
    """Labeled claims of responses, judged in each way from relations of one source.

    Attributes:
        atoms: the n claims.
        fold: fold of each, (n,).
        p: probability of each by judge, the share of true claims in other folds last, (n,) each.
        task: the task that judges are learned in; None where few responses are recorded.
    """

    atoms: LabeledAtoms
    fold: Any
    p: Mapping[str, Floats]
    task: CrossFitTask | None


def judged_claims(
    source: RecordedSource, graphs: list[FactGraph], folds: int, seed: int
) -> JudgedClaims | None:
    """Judge the claims of responses; None where too few responses are recorded.

    Args:
        source: where the relations are from.
        graphs: responses with relations of that source.
        folds: folds of responses.
        seed: seed of the folds.
    """
    kept = [graph for graph in graphs if any(atom.label is not None for atom in graph.atoms)]
    if len(kept) < _FEWEST_SCORED:
        return None
    atoms = labeled_atoms(kept, source.name)
    n = len(atoms.grouping.responses)
    task = cross_fit_task(kept, min(folds, n), seed) if n >= _FEWEST else None
    fold = folds_of(atoms.grouping, min(folds, n), seed)
    p = {
        view: claim_posteriors([variant(graph, view) for graph in kept])[atoms.kept]
        for view in VIEWS
    }
    if task is not None:
        p |= {title: METHODS[method](task)[atoms.kept] for title, method in LEARNERS.items()}
    return JudgedClaims(atoms, fold, p | {BASE_RATE: base_rates(atoms, fold)}, task)


def claim_rows(
    source: RecordedSource,
    name: str,
    judged: JudgedClaims,
    lexical: JudgedClaims | None,
    seed: int,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each judge of claims.

    Args:
        source: where the relations are from.
        name: the source of the relations.
        judged: the claims, judged from these relations.
        lexical: the same claims, judged from lexical relations; None if there are none.
        seed: seed of the bootstrap.
    """
    n = len(judged.atoms.grouping.responses)
    head = {"data": source.dataset, "model": source.model, "relations": name, "n_responses": n}
    for graph, p in judged.p.items():
        row: dict[str, Any] = {**head, "graph": graph, "claims": len(p)}
        learned = judged.fold if graph in (*LEARNERS, BASE_RATE) else None
        row |= scores_with_intervals(p, judged.atoms, ("brier", "auroc"), seed, learned)
        rivals = {"difference": judged.p[BASE_RATE] if graph != BASE_RATE else None}
        if lexical is not None and name != LEXICAL and graph != BASE_RATE:
            rivals["difference_lexical"] = lexical.p[graph]
        for column in ("difference", "difference_lexical"):
            rival = rivals.get(column)
            change = (np.nan,) * 3
            if rival is not None:
                change = score_change("brier", p, rival, judged.atoms, seed)
            row |= named(column, change)
        yield row


def base_rates(atoms: LabeledAtoms, fold: Any) -> Floats:
    """The share of true claims in the other folds, for each claim, (n,)."""
    rates = np.empty(len(atoms.labels))
    for number in np.unique(fold):
        rates[fold == number] = atoms.labels[fold != number].mean()
    return rates


def across_rows(
    tasks: Mapping[tuple[str, str, str], CrossFitTask], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield a row for each judge that one dataset teaches and the other tests, of one model.

    The base rate is the share of true claims in the dataset that teaches.
    """
    scores = ("brier", "auroc")
    for (model, name, first), (other_model, other_name, second) in permutations(tasks, 2):
        if (model, name) != (other_model, other_name):
            continue
        taught, tested = tasks[model, name, first], tasks[model, name, second]
        atoms = labeled_atoms(tested.graphs, second)
        head: dict[str, Any] = {"where": f"{first} to {second}", "model": model}
        head |= {"relations": name, "claims": len(atoms.labels)}
        for title, method_name in LEARNERS.items():
            method = METHODS[method_name]
            if not isinstance(method, ColumnMethod):
                continue
            (predict,) = method.learner(method.table(taught), [taught.table.labeled])
            p = predict(method.table(tested))[atoms.kept]
            yield head | {"graph": title} | scores_with_intervals(p, atoms, scores, seed)
        rate = labeled_atoms(taught.graphs, first).labels.mean()
        rates = np.full(len(atoms.labels), rate)
        yield head | {"graph": BASE_RATE} | scores_with_intervals(rates, atoms, scores, seed)


def cost_row(source: RecordedSource) -> dict[str, Any]:
    """Row of the extent of a record, with mean costs over claims."""
    answers = source.record.of_prompt(source.prompt)
    if source.ranks is not None:
        # Of the passages that judge claims: those of further ranks are recorded for some alone.
        used = [key for key, rank in source.ranks.ranks.items() if rank <= source.ranks.complete]
    else:
        # As of the whole dataset: what is recorded may have some of the passages of a claim.
        used = list(source.judged) or [
            (graph.id, context.id, claim)
            for graph in source.all_graphs
            for context in graph.contexts
            for claim in context.retrieved_for
        ]
    calls = len(used) / len({(response, claim) for response, _, claim in used})
    costs = {
        name: calls * value for name, value in record_costs(source.record, source.prompt).items()
    }
    whole = len(source.graphs(source.pairs.p))
    return {
        "data": source.dataset,
        "model": source.model,
        "prompt": source.prompt,
        "responses": whole,
        "all_responses": len(source.all_graphs),
        "passages": "all" if source.ranks is None else f"best {source.ranks.complete}",
        "pairs": len(answers),
        "all_pairs": source.record.origin.pairs,
        "missing": sum(answer.log_p is None for answer in answers.values()),
        "calls": calls,
        **costs,
    }


if __name__ == "__main__":
    answer_question(small_local_model, __file__)
