"""FR1, FR2, FR3: the relations of a fact graph that each variant of FactReasoner considers.

Source: FactReasoner, section 3.3. The views use recorded relations only: a relation that a variant
would need and that the relation model was never asked for is absent, not neutral.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from factormodels.claims import (
    SAMPLE_PRIOR,
    Context,
    ContextKind,
    Relation,
    RelationKind,
    is_evidence,
)
from factormodels.conventions import DEFAULT, DEFAULT_PRIORS, GraphConventions
from factormodels.errors import InputError, unknown_name
from factormodels.fact_graph import FactGraph
from factormodels.passage_sources import PassageKey, name_in, parse_priors, source_of

COPY_SEPARATOR = "@"
"""Separator of a context's and an atom's id in the id of FR1's copy of a shared context."""


def variant(graph: FactGraph, name: str, conventions: GraphConventions = DEFAULT) -> FactGraph:
    """Return the view of `graph` called `name`: "FR1", "FR2", "FR3" or "given" (all its relations).

    Args:
        graph: a response.
        name: the view.
        conventions: construction of the model from passages and relations.

    Raises:
        InputError: if no view has that name.
    """
    try:
        view = VARIANTS[name]
    except KeyError:
        raise InputError(unknown_name(f"the variant {name!r}", name, VARIANTS)) from None
    seen = view(graph, conventions)
    if conventions.context_prior is not None or conventions.prior is not None:
        replaced = {
            context.id: prior
            for context in seen.contexts
            if has_default_prior(context)
            and (prior := declared_prior(context, graph, conventions)) != context.prior
        }
        seen = seen.with_priors(contexts=replaced) if replaced else seen
    return seen.with_parameters() if conventions.weak_relations == "kept" else seen


def declared_prior(context: Context, graph: FactGraph, conventions: GraphConventions) -> float:
    """Return the prior that conventions give a passage without a stated prior.

    Args:
        context: the passage, of the response or of a view of it.
        graph: the response.
        conventions: a prior for the passage's source takes precedence over the prior for all
            passages; the latter does not apply to sampled answers.
    """
    if conventions.prior is not None:
        priors = parse_priors(conventions.prior)
        source = passage_source(context, graph, conventions.prior_by)
        name = name_in(source, conventions.prior_by, priors)
        if name is not None:
            return priors[name]
    prior = conventions.context_prior
    is_passage = context.kind is ContextKind.PASSAGE
    return prior if is_passage and prior is not None else context.prior


def passage_source(context: Context, graph: FactGraph, by: PassageKey) -> str:
    """Return the source of a passage of a response or of a view of it; "" if nothing states it."""
    recorded = context.id.rpartition(COPY_SEPARATOR)[0] or context.id
    return source_of(context, by, graph.metadata, recorded)


def has_default_prior(context: Context) -> bool:
    """Return whether a context has a prior that tools write by default."""
    if context.kind is ContextKind.SAMPLE:
        return context.prior == SAMPLE_PRIOR
    return context.prior in DEFAULT_PRIORS


def fr1(graph: FactGraph, conventions: GraphConventions = DEFAULT) -> FactGraph:
    """Return the view in which every atom depends only on the contexts retrieved for it: a forest.

    A context retrieved for several atoms becomes one copy per atom, named ``context@atom``, so that
    atoms stay independent; under the convention *one* it stays one variable, which couples them. A
    context without provenance was retrieved for the question and serves no atom. However, if no
    context of the graph has provenance, as in graphs that do not record it, each context serves
    every atom that a relation joins it to. Contexts that serve no atom are dropped.
    """
    by_pair = {(r.source, r.target): r for r in graph.relations}
    atoms = set(graph.atom_ids)
    served: dict[str, list[str]] = {context.id: [] for context in graph.contexts}
    for relation in graph.relations:
        for end, other in (
            (relation.source, relation.target),
            (relation.target, relation.source),
        ):
            if end in served and other in atoms and other not in served[end]:
                served[end].append(other)
    recorded = any(context.retrieved_for for context in graph.contexts)
    contexts: list[Context] = []
    relations: list[Relation] = []
    copied = conventions.shared_passage == "copied"
    any_shared = False
    for context in graph.contexts:
        atom_ids = tuple(dict.fromkeys(context.retrieved_for if recorded else served[context.id]))
        shared = copied and len(atom_ids) > 1
        any_shared |= shared
        if atom_ids and not shared:
            contexts.append(_retrieved_for(context, atom_ids))
        for atom in atom_ids:
            copy_id = context.id
            if shared:
                copy_id = f"{context.id}{COPY_SEPARATOR}{atom}"
                contexts.append(replace(context, id=copy_id, retrieved_for=(atom,)))
            forward = by_pair.get((context.id, atom))
            backward = by_pair.get((atom, context.id))
            # Relations in both orders would close a cycle of two factors. The paper defines the one
            # from the evidence to the atom.
            if forward is not None:
                relations.append(replace(forward, source=copy_id) if shared else forward)
            elif backward is not None:
                relations.append(replace(backward, target=copy_id) if shared else backward)
    if not any_shared:
        # Ids and relations are the graph's own, which was validated.
        return graph.derived(tuple(contexts), tuple(relations))
    # The id of a copy may collide with another id, so the view is validated.
    return replace(graph, contexts=tuple(contexts), relations=tuple(relations))


def fr2(graph: FactGraph, conventions: GraphConventions = DEFAULT) -> FactGraph:  # noqa: ARG001
    """Return the view with duplicate contexts merged and every recorded atom-context relation.

    If both orders of a pair are recorded, the relation from the context to the atom is kept, as in
    FR1: the paper has one factor per pair.
    """
    merged = merge_duplicate_contexts(graph)
    sources, targets = (merged.column("relations", end) for end in ("source", "target"))
    atoms = set(merged.atom_ids)
    # The common case: all relations are from contexts to atoms, and none need be examined.
    if atoms.isdisjoint(sources) and atoms.issuperset(targets):
        return merged
    return merged.derived(merged.contexts, tuple(_evidence(merged)))


def fr3(graph: FactGraph, conventions: GraphConventions = DEFAULT) -> FactGraph:
    """Return FR2's view plus the recorded context-context relations, one per pair.

    Two contexts that entail each other, in both orders, become one equivalence; its probability is
    the smaller of the two, since equivalence claims both, or by convention the larger. For any
    other two relations between the same contexts, the more probable one is kept (the first if they
    are equal; a neutral one yields). An entailment less probable than 1/2 makes no equivalence,
    unless weak relations are kept.
    """
    merged = merge_duplicate_contexts(graph)
    relations = (*_evidence(merged), *_between_contexts(merged, conventions))
    recorded = {(r.source, r.target): position for position, r in enumerate(merged.relations)}
    in_order = sorted(relations, key=lambda r: recorded[r.source, r.target])
    return merged.derived(merged.contexts, tuple(in_order))


VARIANTS: Mapping[str, Callable[[FactGraph, GraphConventions], FactGraph]] = MappingProxyType(
    {"given": lambda graph, _: graph, "FR1": fr1, "FR2": fr2, "FR3": fr3}
)


def between_claims(graph: FactGraph) -> tuple[Relation, ...]:
    """Return the relations whose two ends are claims, which FR1, FR2 and FR3 leave out."""
    atoms = set(graph.atom_ids)
    return tuple(
        relation
        for relation in graph.relations
        if relation.source in atoms and relation.target in atoms
    )


def claims_alone(graph: FactGraph) -> FactGraph:
    """Return the view without contexts, which keeps only relations between claims."""
    return graph.derived((), between_claims(graph))


def merge_duplicate_contexts(graph: FactGraph) -> FactGraph:
    """Return the graph with duplicate contexts merged into the first of each kind.

    Contexts are duplicates if their keys are equal or, if neither has a key, if their normalized
    texts are equal and not empty; a snippet replaces a missing text. Sampled answers without a key
    have no duplicates: how often a model gives an answer is evidence. The merged context keeps the
    id and prior of the first, and counts as retrieved for every atom for which any of the
    duplicates was retrieved. Relations are redirected; if two then join the same pair, the more
    probable one is kept (the first if they are equal), and a relation between two duplicates is
    dropped.
    """
    keys, *texts = (graph.stated("contexts", name) for name in ("key", "text", "snippet"))
    if keys.count(None) == len(keys) and not any(map(any, texts)):
        # No context has a key or a text.
        return graph
    representative: dict[str, str] = {}
    first: dict[tuple[str, str], str] = {}
    provenance: dict[str, list[str]] = {}
    for context in graph.contexts:
        owner = context.id
        identity = _identity(context)
        if identity is not None:
            owner = first.setdefault(identity, context.id)
        representative[context.id] = owner
        provenance.setdefault(owner, []).extend(context.retrieved_for)
    if len(provenance) == len(graph.contexts):
        # Nothing is merged, and a valid graph has no two relations of the same pair.
        return graph
    contexts = tuple(
        _retrieved_for(context, tuple(dict.fromkeys(provenance[context.id])))
        for context in graph.contexts
        if representative[context.id] == context.id
    )
    best: dict[tuple[str, str], Relation] = {}
    for relation in graph.relations:
        source = representative.get(relation.source, relation.source)
        target = representative.get(relation.target, relation.target)
        if source == target:
            continue
        moved = relation
        if (source, target) != (relation.source, relation.target):
            moved = replace(relation, source=source, target=target)
        strongest = best.get((source, target))
        if strongest is None or strength(moved) > strength(strongest):
            best[source, target] = moved
    return graph.derived(contexts, tuple(best.values()))


def normalized_text(text: str) -> str:
    """Return `text` normalized for comparison: NFKC, case-folded, single spaces."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text)).strip().casefold()


def united(
    forward: Relation, backward: Relation, conventions: GraphConventions = DEFAULT
) -> Relation:
    """Return the relation that both orders of a pair make; see `fr3`."""
    ends = forward.probability, backward.probability
    probability = max(ends) if conventions.equivalence == "larger" else min(ends)
    both = forward.kind is backward.kind is RelationKind.ENTAILMENT
    kept = conventions.weak_relations == "kept"
    if both and (kept or is_evidence(RelationKind.EQUIVALENCE, min(ends))):
        equivalence = replace(forward, kind=RelationKind.EQUIVALENCE, probability=probability)
        # Neither order states the alternatives to equivalence.
        return replace(equivalence, distribution=None, uncorrected=None)
    return max(forward, backward, key=strength)


def _retrieved_for(context: Context, atoms: tuple[str, ...]) -> Context:
    # Most contexts have no duplicate and are returned without a copy, which would be revalidated.
    return context if context.retrieved_for == atoms else replace(context, retrieved_for=atoms)


def _identity(context: Context) -> tuple[str, str] | None:
    if context.key is not None:
        return ("key", context.key)
    if context.kind is ContextKind.SAMPLE or not (context.text or context.snippet):
        return None
    text = normalized_text(context.text) or normalized_text(context.snippet)
    return ("text", text) if text else None


def strength(relation: Relation) -> tuple[bool, bool, float]:
    """Return a sort key that ranks relations of the same pair, the strongest highest."""
    # A neutral relation is the absence of evidence and ranks below any other; relations that are
    # too improbable to be evidence rank below those that are evidence.
    is_neutral = relation.kind is RelationKind.NEUTRAL
    return is_evidence(relation.kind, relation.probability), not is_neutral, relation.probability


def _evidence(graph: FactGraph) -> Iterator[Relation]:
    atoms = set(graph.atom_ids)
    recorded = {(r.source, r.target) for r in graph.relations}
    for relation in graph.relations:
        from_atom = relation.source in atoms
        if from_atom == (relation.target in atoms):
            continue
        if not from_atom or (relation.target, relation.source) not in recorded:
            yield relation


def _between_contexts(graph: FactGraph, conventions: GraphConventions) -> Iterator[Relation]:
    contexts = set(graph.context_ids)
    recorded = {
        (r.source, r.target): r
        for r in graph.relations
        if r.source in contexts and r.target in contexts
    }
    done: set[tuple[str, str]] = set()
    for pair, relation in recorded.items():
        back = recorded.get((relation.target, relation.source))
        if back is None:
            yield relation
        elif pair not in done:
            done.add((relation.target, relation.source))
            yield united(relation, back, conventions)
