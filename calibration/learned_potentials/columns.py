"""Numeric columns of claims, from their evidence, their position and neighboring claims.

A column is a function of a response's graph and does not depend on labels. Columns of evidence
describe the relations of a claim: the probabilities that passages support or contradict it, by
strength, and the share of the response's claims that its passages serve, which separates passages
about the topic from unrelated ones. Sampled answers are not passages and have separate columns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibration.validation import Floats, Integers
from factormodels.claims import Atom, Relation, RelationKind
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.text_match import has_text_match, text_match
from factormodels.fact_graph import FactGraph
from factormodels.metadata.recorded_match import FIGURES
from factormodels.samples import samples_alone, without_samples
from factormodels.variants import COPY_SEPARATOR, variant

SENTENCE, RESPONSE = "sentence", "response"

_INSIDE = 1e-4
"""Probabilities of relations are clipped to [_INSIDE, 1 - _INSIDE]."""

_ABSENT = -5.0
"""Log odds used for a missing passage."""

_RANKS = 5

_WIDEST = "the strongest passage (of equally strong ones the widest)"

EVIDENCE: Mapping[str, str] = {
    "support 1": f"log odds that {_WIDEST} entails the claim; {_ABSENT:g} if there is none",
    **{
        f"support {rank}": f"the same for the passage with rank {rank} by strength"
        for rank in range(2, _RANKS + 1)
    },
    "mean support": "mean of these log odds over all of the claim's passages",
    "passages": "number of the claim's passages",
    "largest contradiction": "logarithm of the largest probability that a passage contradicts it",
    "mean contradiction": "mean of the logarithms of these probabilities",
    "support 1 above -2": "excess of support 1 over -2, or 0",
    "support 1 above 0": "excess of support 1 over 0, or 0",
    "mean support above -2": "excess of the mean support over -2, or 0",
    "largest reach": "the largest reach of its passages: the share of the response's claims that "
    "a passage serves, large for passages about the topic",
    "mean reach": "the mean reach of its passages",
    "reach of support 1": f"the reach of {_WIDEST}",
    "reached support": "mean over its passages of reach times log odds",
    "support elsewhere": f"mean log odds with which {_WIDEST} entails the response's claims",
    "support of the widest": "log odds that the passage with the largest reach entails the claim; "
    "the mean of equally wide ones",
}
"""Columns of evidence, with descriptions."""

COLUMN_GROUPS: Mapping[str, tuple[str, ...]] = {
    "position": ("position", "log position"),
    "the strongest passage": ("support 1", "support 1 above -2", "support 1 above 0"),
    "other passages' ranks": tuple(f"support {rank}" for rank in range(2, _RANKS + 1)),
    "mean support": ("mean support", "mean support above -2"),
    "number of passages": ("passages",),
    "contradiction": ("largest contradiction", "mean contradiction"),
    "reach": (
        *("largest reach", "mean reach", "reach of support 1", "reached support"),
        *("support elsewhere", "support of the widest"),
    ),
    "texts": tuple(FIGURES),
}
"""Groups of related columns of evidence, position and texts."""

POSITION: Mapping[str, str] = {
    "position": "position among the response's claims, from 0 to 1",
    "log position": "logarithm of the position, counted from 1",
}
"""Columns of the order of claims."""

_OF_NEIGHBORS = ("support 1", "mean support")

NEIGHBORS: Mapping[str, str] = {
    f"{name} of the {group}": f"mean of the column {name!r} over the claims of the {group}"
    for name in _OF_NEIGHBORS
    for group in (SENTENCE, RESPONSE)
}
"""Columns of the claims beside a claim."""

OTHERS: Mapping[str, str] = {
    "support of others": "largest log odds that a passage retrieved for other claims entails this "
    f"one; {_ABSENT:g} if there is none",
    "mean support of others": "mean of these log odds",
    "other passages": "logarithm of 1 more than the number of these passages",
}
"""Columns of recorded relations with passages that were not retrieved for the claim."""

PASSAGES: Mapping[str, str] = {
    "topic match": "share of the topic's words in the strongest passage's title or text",
    "mean topic match": "the same, mean of all of the claim's passages",
    "word match": "share of the claim's words in the strongest passage's title or text",
    "mean word match": "the same, mean of all of the claim's passages",
}
"""Columns of the passages' texts; 0 if none is recorded, and the mean over equally strong passages.
Graphs record no retriever scores, and scores of different retrievers are not comparable."""

SAMPLES: Mapping[str, str] = {
    "mean support of samples": "mean log odds that a sampled answer entails the claim; "
    f"{_ABSENT:g} if there is none",
    "mean contradiction of samples": "mean of the logarithms of the probabilities that a sampled "
    "answer contradicts the claim",
    "samples": "number of sampled answers related to the claim",
}
"""Columns of sampled answers."""

_OF_SAMPLES = ("mean support", "mean contradiction", "passages")

TEXTS = FIGURES
"""Columns of text match: the share of the claim's statement on the topic that occurs in the
response's passages, from texts or from recorded figures (`factormodels.extraction.text_match`)."""

FAMILIES: Mapping[str, Mapping[str, str]] = {
    "evidence": EVIDENCE,
    "position": POSITION,
    "neighbors": NEIGHBORS,
    "others": OTHERS,
    "passages": PASSAGES,
    "texts": TEXTS,
    "samples": SAMPLES,
}
"""Families of columns by name, with a description of each column."""

MEANINGS: Mapping[str, str] = {
    name: meaning for family in FAMILIES.values() for name, meaning in family.items()
}
"""Description of each column, by its name."""


@dataclass(frozen=True, eq=False)
class ClaimTable:
    """Columns of the claims of responses.

    Attributes:
        names: names of the columns.
        values: float64 (n, d).
        labels: float64 (n,): 1 for true, 0 for false, nan for no label.
        responses: int64 (n,), the response of each claim.
        groups: group of each claim, int64 (n,), by name of a level of causes.
        ids: ids (response, claim) of each claim.
        n_responses: number of responses.
    """

    names: tuple[str, ...]
    values: Floats
    labels: Floats
    responses: Integers
    groups: Mapping[str, Integers]
    ids: tuple[tuple[str, str], ...]
    n_responses: int

    @property
    def labeled(self) -> Integers:
        """Positions of the claims with a label."""
        return np.flatnonzero(~np.isnan(self.labels))

    def of(self, names: Collection[str], causes: Sequence[str]) -> ClaimTable:
        """The same claims with some of the columns and causes."""
        kept = [column for column, name in enumerate(self.names) if name in names]
        return replace(
            self,
            names=tuple(self.names[column] for column in kept),
            values=self.values[:, kept],
            groups={name: self.groups[name] for name in causes},
        )


@dataclass(frozen=True, eq=False)
class UserColumns:
    """Numbers and groups supplied by the user, by response and claim.

    Attributes:
        source: name of the source in errors.
        names: names of the columns of numbers.
        rows: a number for each of `names`, by ids (response, claim).
        groups: names of the columns of groups.
        members: a group for each of `groups`, by ids (response, claim).
    """

    source: str
    names: tuple[str, ...]
    rows: Mapping[tuple[str, str], tuple[float, ...]]
    groups: tuple[str, ...] = ()
    members: Mapping[tuple[str, str], tuple[str, ...]] | None = None


def claim_table(
    graphs: Sequence[FactGraph],
    families: Sequence[str] = ("evidence", "position"),
    causes: Sequence[str] = (SENTENCE, RESPONSE),
    *,
    view: str = "FR1",
    own: UserColumns | None = None,
) -> ClaimTable:
    """Columns of all claims of responses, in order.

    Args:
        graphs: the responses, with all recorded relations.
        families: names in `FAMILIES`.
        causes: levels of groups: `SENTENCE`, `RESPONSE`, or a group of the user's columns. A claim
            without a sentence forms a separate group.
        view: graph variant whose relations count as a claim's evidence.
        own: the user's columns.

    Raises:
        InputError: for an unknown family or level, no claim, a duplicate column, a claim that the
            user's columns lack, or a response without the texts that the columns need.
    """
    for name in families:
        if name not in FAMILIES:
            raise InputError(unknown_name(f"the family of columns {name!r}", name, FAMILIES))
    ids = tuple((graph.id, atom.id) for graph in graphs for atom in graph.atoms)
    if not ids:
        raise InputError("the responses hold no claim; give some with claims")
    sizes = [len(graph.atoms) for graph in graphs]
    responses = np.repeat(np.arange(len(graphs)), sizes)
    atoms = [atom for graph in graphs for atom in graph.atoms]
    groups = _groups(ids, atoms, causes, own)
    if "samples" in families:
        samples = np.concatenate([_evidence(variant(samples_alone(g), view)) for g in graphs])
    graphs = [without_samples(graph) for graph in graphs]
    evidence = np.concatenate([_evidence(variant(graph, view)) for graph in graphs])
    parts = {"evidence": evidence}
    if "position" in families:
        position = np.concatenate([np.arange(size) for size in sizes])
        size = np.repeat(np.asarray(sizes), sizes)
        parts["position"] = np.stack([position / size, np.log1p(position)], axis=1)
    if "neighbors" in families:
        means = [
            (np.bincount(group, values) / np.bincount(group))[group]
            for values in evidence[:, [list(EVIDENCE).index(n) for n in _OF_NEIGHBORS]].T
            for group in _groups(ids, atoms, (SENTENCE, RESPONSE), None).values()
        ]
        parts["neighbors"] = np.stack(means, axis=1)
    if "others" in families:
        parts["others"] = np.concatenate([_others(graph, view) for graph in graphs])
    if "passages" in families:
        parts["passages"] = np.concatenate([_passages(variant(graph, view)) for graph in graphs])
    if "samples" in families:
        parts["samples"] = samples[:, [list(EVIDENCE).index(name) for name in _OF_SAMPLES]]
    if "texts" in families:
        parts["texts"] = np.concatenate([_texts(graph) for graph in graphs])
    names = [name for family in families for name in FAMILIES[family]]
    columns = [parts[family] for family in families]
    if own is not None:
        names += own.names
        columns.append(_user_values(own, ids))
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"the column {name!r} occurs twice; name every family of columns, and every "
                "column of your own, once"
            )
    labels = np.array([np.nan if a.label is None else float(a.label) for a in atoms])
    values = np.concatenate([np.empty((len(ids), 0)), *columns], axis=1)
    return ClaimTable(tuple(names), values, labels, responses, groups, ids, len(graphs))


def stated(relation: Relation) -> tuple[float, float]:
    """Probabilities that a relation supports its claim and that it contradicts it.

    If the relation states no distribution, the other two kinds share the remaining probability,
    each at most as likely as the stated kind.
    """
    if relation.distribution is not None:
        entails, contradicts, equivalent, *_ = relation.distribution
        return entails + equivalent, contradicts
    rest = (1.0 - relation.probability) / 2
    if relation.kind is RelationKind.NEUTRAL:
        return rest, rest
    rest = min(rest, relation.probability)
    if relation.kind is RelationKind.CONTRADICTION:
        return rest, relation.probability
    return relation.probability, rest


def log_odds_of(p: float) -> float:
    """Log odds of a probability clipped to [_INSIDE, 1 - _INSIDE]."""
    inside = min(max(p, _INSIDE), 1.0 - _INSIDE)
    return float(np.log(inside) - np.log1p(-inside))


def own_pairs(graph: FactGraph, view: str = "FR1") -> set[tuple[str, str]]:
    """Pairs (passage, claim) of a view: the passages retrieved for each claim."""
    return {
        (r.source.rpartition(COPY_SEPARATOR)[0] or r.source, r.target)
        for r in variant(graph, view).relations
    }


def _evidence(graph: FactGraph) -> Floats:
    """Columns of evidence of a response's claims, (n, len(EVIDENCE))."""
    atoms = set(graph.atom_ids)
    of_claim: dict[str, list[tuple[float, float, str]]] = {}
    of_passage: dict[str, list[float]] = {}
    passages = {c.id: c.id.rpartition(COPY_SEPARATOR)[0] or c.id for c in graph.contexts}
    for relation in graph.relations:
        ends = relation.source, relation.target
        claim, other = ends if ends[0] in atoms else ends[::-1]
        if claim not in atoms or other not in passages:
            continue
        supports, contradicts = stated(relation)
        support, against = log_odds_of(supports), float(np.log(max(contradicts, _INSIDE)))
        of_claim.setdefault(claim, []).append((support, against, passages[other]))
        of_passage.setdefault(passages[other], []).append(support)
    reach = {name: len(values) / len(atoms) for name, values in of_passage.items()}
    means = {name: float(np.mean(values)) for name, values in of_passage.items()}
    rows = []
    for atom in graph.atoms:
        # Strongest first; ties are broken by the number of claims that the passage serves.
        statements = sorted(of_claim.get(atom.id, ()), key=lambda r: (-r[0], -reach[r[2]]))
        if not statements:
            absent = [*[_ABSENT] * (_RANKS + 1), 0.0, *[np.log(_INSIDE)] * 2]
            rows.append([*absent, *[0.0] * 7, _ABSENT, _ABSENT])
            continue
        strengths = np.array([each[0] for each in statements])
        opposed = np.array([each[1] for each in statements])
        reaches = np.array([reach[each[2]] for each in statements])
        ranks = np.full(_RANKS, _ABSENT)
        ranks[: len(strengths)] = strengths[:_RANKS]
        best, mean = float(strengths[0]), float(strengths.mean())
        # The result must not depend on the file's order of passages that are equal in both.
        equals = (strengths == best) & (reaches == reaches[0])
        elsewhere = np.array([means[each[2]] for each in statements])[equals].mean()
        rows.append(
            [
                *(*ranks, mean, len(statements), opposed.max(), opposed.mean()),
                *(max(best + 2.0, 0.0), max(best, 0.0), max(mean + 2.0, 0.0)),
                *(reaches.max(), reaches.mean(), reaches[0], (reaches * strengths).mean()),
                *(elsewhere, strengths[reaches.argmax()]),
            ]
        )
    return np.array(rows, np.float64).reshape(-1, len(EVIDENCE))


def _others(graph: FactGraph, view: str) -> Floats:
    """Columns of passages that were not retrieved for the claim, (n, len(OTHERS))."""
    excluded = own_pairs(graph, view)
    contexts = set(graph.context_ids)
    supports: dict[str, list[float]] = {}
    for relation in graph.relations:
        if relation.source in contexts and (relation.source, relation.target) not in excluded:
            supports.setdefault(relation.target, []).append(log_odds_of(stated(relation)[0]))
    rows = []
    for atom in graph.atoms:
        values = supports.get(atom.id, [])
        strengths = values or [_ABSENT]
        rows.append([max(strengths), np.mean(strengths), np.log1p(len(values))])
    return np.array(rows, np.float64).reshape(-1, len(OTHERS))


def _passages(graph: FactGraph) -> Floats:
    """Columns of passages' texts, (n, len(PASSAGES))."""
    topic = _words(graph.topic)
    texts = {c.id: _words(f"{c.title} {c.text or c.snippet}") for c in graph.contexts}
    supports: dict[str, list[tuple[float, str]]] = {}
    for relation in graph.relations:
        if relation.source in texts:
            support = stated(relation)[0]
            supports.setdefault(relation.target, []).append((support, relation.source))
    rows = []
    for atom in graph.atoms:
        asked = topic, _words(atom.text)
        matches = [
            (support, [_shared(each, texts[name]) for each in asked])
            for support, name in supports.get(atom.id, [])
        ]
        strengths, shares = map(np.array, zip(*matches or [(0.0, [0.0, 0.0])], strict=True))
        # Equally strong passages are averaged.
        strongest = shares[strengths == strengths.max()].mean(axis=0)
        rows.append(np.stack([strongest, shares.mean(axis=0)], axis=1).ravel())
    return np.array(rows, np.float64).reshape(-1, len(PASSAGES))


def _texts(graph: FactGraph) -> Floats:
    """Columns of text match, (n, len(TEXTS))."""
    values = text_match(graph)
    if values is None:
        raise InputError(
            f"response {graph.id!r} lacks texts of claims or passages, which the columns "
            "texts read; give both, or leave these columns out"
        )
    return values


def records_texts(graphs: Sequence[FactGraph]) -> bool:
    """Return whether every response records the data that the columns of texts need."""
    return all(has_text_match(without_samples(graph)) for graph in graphs)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def _shared(asked: set[str], there: set[str]) -> float:
    """Share of the words of `asked` that are in `there`; 0 if `asked` is empty."""
    return len(asked & there) / len(asked) if asked else 0.0


def _groups(
    ids: Sequence[tuple[str, str]],
    atoms: Sequence[Atom],
    causes: Sequence[str],
    columns: UserColumns | None,
) -> dict[str, Integers]:
    """Group of every claim, int64 (n,), by level of causes, numbered by first appearance."""
    levels = columns.groups if columns is not None else ()
    members = columns.members or {} if columns is not None else {}
    keys: dict[str, list[Any]] = {
        **{name: [members[each][position] for each in ids] for position, name in enumerate(levels)},
        SENTENCE: [
            (response, claim if atom.sentence is None else atom.sentence)
            for (response, claim), atom in zip(ids, atoms, strict=True)
        ],
        RESPONSE: [response for response, _ in ids],
    }
    groups: dict[str, Integers] = {}
    for name in causes:
        if name not in keys:
            known = (SENTENCE, RESPONSE, *levels)
            raise InputError(
                f"{unknown_name(f'the cause {name!r}', name, known)}; a column of --table is a "
                "cause if --groups names it too"
            )
        number = {key: position for position, key in enumerate(dict.fromkeys(keys[name]))}
        groups[name] = np.array([number[key] for key in keys[name]], np.int64)
    return groups


def _user_values(columns: UserColumns, ids: Sequence[tuple[str, str]]) -> Floats:
    for response, claim in ids:
        if (response, claim) not in columns.rows:
            raise InputError(
                f"{columns.source}: no row of claim {claim!r} of response {response!r}; give a row "
                "of every claim"
            )
    return np.array([columns.rows[each] for each in ids], np.float64).reshape(len(ids), -1)
