"""Sampled answers: what are they worth beside passages, in one graph with learned strengths?

A sampled answer is a further answer of the model to the same question. A sentence that the samples
of a response support is likelier true, also where no passage is at hand.

Question: how well do samples alone, passages alone, and both in one graph predict people's labels,
with strengths as given and learned in folds of responses?
Data: SelfCheckGPT's own file (selfcheck_wikibio.jsonl), which --selfcheck names: 959 sentences on
119 persons with labels, ten sampled passages, a language model's twenty votes on each sentence and
SelfCheckGPT's scores. It has no passages of a source. Each sentence is given the relations of the
passages of a claim of factscore, embedded, that has the same label and is drawn at random: they are
as good as real ones there, and independent of the samples given the label.
Rival: SelfCheckGPT's scores (contradiction by an NLI model, BERTScore, votes, and unigrams) and
logistic regression on the scores of samples and passages, recalibrated in the same folds.

    python notebooks/questions/sample_evidence.py --selfcheck selfcheck_wikibio.jsonl \\
        --out docs/results/sample-evidence

It takes a minute of processor time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibration.learned_potentials.graph_fitting import (
    WHOLE,
    CrossFitting,
    cross_fitting,
    labeled_folds,
)
from calibration.learned_potentials.graph_potentials import (
    ATOMS,
    TEMPERATURE,
    Potentials,
    kind_class,
)
from calibration.validation import Floats, Integers
from experiments import assess
from experiments.findings.artifacts import Artifacts
from experiments.findings.claim_scores import (
    RANKED,
    LabeledAtoms,
    labeled_atoms,
    score_change,
    scores_with_intervals,
)
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame, named
from factormodels import datasets
from factormodels.claims import Context, Relation, RelationKind
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats import selfcheck as selfcheck_format
from factormodels.io.json import read_json_lines
from factormodels.samples import samples_alone, with_samples, without_samples
from factormodels.variants import variant
from inference.batch import claim_posteriors

P = 0.9
"""Stated probability of a vote, which learned strengths replace."""

KINDS: Mapping[str, Callable[[FactGraph], FactGraph]] = {
    "passages": without_samples,
    "samples": samples_alone,
    "both": lambda graph: graph,
}
STRENGTHS = Potentials((ATOMS, TEMPERATURE), by=kind_class)
GRAPH, GIVEN, LEARNED = "graph", "as given", "learned in folds"
TWO_SCORES = "logistic regression on both scores"
_SCORES = "brier:4± Brier | log_loss:3± log loss | auroc:3± AUROC"


@dataclass(frozen=True, eq=False)
class LabeledSamples:
    """Labeled sentences with sampled passages.

    Attributes:
        graphs: the responses, each with its samples.
        scores: SelfCheckGPT's scores, larger if less consistent, by name and by (response, claim).
    """

    graphs: tuple[FactGraph, ...]
    scores: Mapping[str, Mapping[tuple[str, str], float]]


def sample_evidence(
    *, selfcheck: Path = Path("selfcheck_wikibio.jsonl"), folds: int = 5, seed: int = 0
) -> Artifacts:
    """Return scores of samples, passages and both, and the strengths that were learned.

    Args:
        selfcheck: SelfCheckGPT's file.
        folds: folds of responses.
        seed: seed of the folds, of the drawn passages and of the bootstrap over responses.
    """
    data = read_samples(selfcheck)
    related = assess(data.graphs, retriever="given", variant="FR1", relations="lexical").graphs
    atoms = labeled_atoms(related, str(selfcheck))
    sizes = [len(graph.atoms) for graph in related]
    fold = np.repeat(labeled_folds(related, folds, seed), sizes)
    passages = drawn_passages(related, datasets.load("factscore").graphs, seed)
    by_relations = {
        "lexical": [together(*pair) for pair in zip(passages, related, strict=True)],
        "votes": [
            together(each, with_votes(graph)) for each, graph in zip(passages, related, strict=True)
        ],
    }
    rows, strengths = [], []
    for relations, graphs in by_relations.items():
        predicted = graph_posteriors(graphs, folds, seed)
        rival = scored_together(predicted, atoms, fold)
        for (evidence, how), p in {**predicted, ("both", TWO_SCORES): rival}.items():
            # Relations of passages are the same in both.
            if (evidence, relations) == ("passages", "votes"):
                continue
            row: dict[str, Any] = {"relations": relations, "evidence": evidence, "strengths": how}
            within = None if how == GIVEN else fold
            row |= scores_with_intervals(p, atoms, RANKED, seed, within)
            rows.append(row | named("difference", score_change("brier", p, rival, atoms, seed)))
        strengths += [{"relations": relations, **row} for row in learned_strengths(graphs)]
    # A sentence that a response repeats is one claim.
    claims = [(graph.id, atom) for graph in related for atom in graph.atom_ids]
    for name, values in data.scores.items():
        column = np.array([[values[claim]] for claim in claims])
        p = logistic(column, atoms.labels, fold)
        row = {"relations": "", "evidence": f"SelfCheckGPT, {name}", "strengths": "logistic"}
        row |= scores_with_intervals(p, atoms, RANKED, seed, fold)
        rows.append(row | named("difference", [np.nan] * 3))
    tables = {
        "scores": Table(
            data_frame(rows),
            columns_as(
                f"relations relations of samples | evidence | strengths | {_SCORES} | "
                "difference:4± Brier minus that of both scores"
            ),
            "Samples, passages and both against people's labels",
            note="Passages are drawn: those of a claim of factscore with the same label. Learned: "
            "on responses of other folds; their AUROC is within folds. Intervals: 95% over "
            "responses, differences paired.",
        ),
        "strengths": Table(
            data_frame(strengths),
            columns_as("relations relations of samples | name weight | value:2± | status"),
            "Strengths learned from all responses",
            note="A strength b changes the probability p of a relation to sigmoid(b logit p). "
            "Intervals: 95% over responses.",
        ),
    }
    return Artifacts(tables)


def read_samples(path: Path) -> LabeledSamples:
    """Read SelfCheckGPT's file.

    Raises:
        InputError: if a response has no sampled passages, votes or scores.
    """
    graphs, scores = [], dict[str, dict[tuple[str, str], float]]()
    for line, record in read_json_lines(path):
        graph = selfcheck_format.read(record, path, line)
        stated = record.get("scores") if isinstance(record, dict) else None
        if not (graph.contexts and selfcheck_format.VOTES in graph.metadata and stated):
            raise InputError(
                f"{path}, line {line}: sampled passages, votes or scores are missing; give the "
                "file of KAIST-CS584-HCI/selfcheckgpt-replication"
            )
        graphs.append(graph)
        for name, values in {**stated, "unigram": unigram_scores(graph)}.items():
            keys = [(graph.id, atom) for atom in graph.atom_ids]
            scores.setdefault(name, {}).update(zip(keys, map(float, values), strict=True))
    return LabeledSamples(tuple(graphs), scores)


def unigram_scores(graph: FactGraph) -> list[float]:
    """Largest negative log-probability of a word of each sentence, under its response's samples.

    Source: SelfCheckGPT, section 4.3: a unigram model of the samples and the response itself.
    """
    texts = [graph.response, *(context.text for context in graph.contexts)]
    counts = Counter(word for text in texts for word in _words(text))
    total = counts.total() + len(counts)
    return [
        max((-np.log((counts[word] + 1) / total) for word in _words(atom.text)), default=0.0)
        for atom in graph.atoms
    ]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def drawn_passages(
    graphs: Sequence[FactGraph], donors: Iterable[FactGraph], seed: int
) -> list[FactGraph]:
    """Responses whose claims have the passages' relations of other claims with the same label.

    Args:
        graphs: the responses, every claim with a label.
        donors: responses with passages and relations; no claim of theirs is drawn twice.
        seed: seed of the draws.
    """
    pool: dict[bool, list[list[Relation]]] = {False: [], True: []}
    for donor in donors:
        seen = variant(donor, "FR1")
        by_claim: dict[str, list[Relation]] = {atom: [] for atom in seen.atom_ids}
        for relation in seen.relations:
            by_claim[relation.target].append(relation)
        for atom in seen.atoms:
            if atom.label is not None:
                pool[atom.label].append(by_claim[atom.id])
    rng = np.random.default_rng(seed)
    left = {label: iter(rng.permutation(len(claims))) for label, claims in pool.items()}
    drawn = []
    for graph in graphs:
        contexts, relations = list[Context](), list[Relation]()
        for atom in graph.atoms:
            label = atom.label is True
            for relation in pool[label][next(left[label])]:
                name = f"c{len(contexts) + 1}"
                contexts.append(Context(name, retrieved_for=(atom.id,)))
                relations.append(replace(relation, source=name, target=atom.id))
        drawn.append(replace(graph, contexts=tuple(contexts), relations=tuple(relations)))
    return drawn


def with_votes(graph: FactGraph) -> FactGraph:
    """A response with a sample for each vote of the model, which entails or contradicts."""
    votes = graph.metadata[selfcheck_format.VOTES]
    bare = replace(graph, contexts=(), relations=())
    numbered = with_samples(bare, [f"vote {n}" for n in range(len(votes[graph.atom_ids[0]]))])
    kinds = {"Y": RelationKind.ENTAILMENT, "N": RelationKind.CONTRADICTION}
    return replace(
        numbered,
        relations=tuple(
            Relation(sample, atom, kinds[vote], P)
            for atom in graph.atom_ids
            for sample, vote in zip(numbered.context_ids, votes[atom], strict=True)
        ),
    )


def together(passages: FactGraph, samples: FactGraph) -> FactGraph:
    """Join the passages of a graph and the samples of another graph with the same claims."""
    return replace(
        passages,
        contexts=(*passages.contexts, *samples.contexts),
        relations=(*passages.relations, *samples.relations),
    )


def graph_posteriors(
    graphs: Sequence[FactGraph], folds: int, seed: int
) -> dict[tuple[str, str], Floats]:
    """Posteriors under FR1 by evidence and strengths, as given and learned in folds."""
    predicted = {}
    for evidence, part in KINDS.items():
        seen = [variant(part(graph), "FR1") for graph in graphs]
        predicted[evidence, GIVEN] = claim_posteriors(seen)
        predicted[evidence, LEARNED] = claim_posteriors(fitted(seen, folds, seed).learned()[1])
    return predicted


def fitted(graphs: Sequence[FactGraph], folds: int, seed: int, **settings: Any) -> CrossFitting:
    """Strengths of relations by kind of context and relation, and the prior of claims."""
    return cross_fitting(graphs, STRENGTHS, n_folds=folds, seed=seed, penalty=3.0, **settings)


def learned_strengths(graphs: Sequence[FactGraph]) -> list[dict[str, Any]]:
    """A row for each weight that all responses determine."""
    seen = [variant(graph, "FR1") for graph in graphs]
    learned = fitted(seen, 2, 0).without(WHOLE)
    return [
        {"name": each.name, "status": str(each.status)}
        | named("value", (each.estimate, each.lower, each.upper))
        for each in learned.table()
    ]


def scored_together(
    predicted: Mapping[tuple[str, str], Floats], atoms: LabeledAtoms, fold: Integers
) -> Floats:
    """Logistic regression on the log odds of passages and of samples, in folds."""
    both = [np.clip(predicted[kind, GIVEN], 1e-6, 1 - 1e-6) for kind in ("passages", "samples")]
    odds = np.stack([np.log(p) - np.log1p(-p) for p in both], axis=1)
    return logistic(odds, atoms.labels, fold)


def logistic(columns: Floats, labels: Floats, fold: Integers) -> Floats:
    """Probability of each claim by a logistic regression on the claims of other folds, (n,)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    p = np.empty(len(labels))
    for number in np.unique(fold):
        inside = fold == number
        model = make_pipeline(StandardScaler(), LogisticRegression(C=1e3))
        model.fit(columns[~inside], labels[~inside])
        p[inside] = model.predict_proba(columns[inside])[:, 1]
    return p


if __name__ == "__main__":
    answer_question(sample_evidence, __file__)
