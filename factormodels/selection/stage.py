"""Core as a stage between decomposition and assessment, for any methods of either."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

import numpy as np

from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.fact_graph import FactGraph
from factormodels.nouns import counted
from factormodels.selection.entailment import (
    Entailments,
    pairwise_entailments,
    source_entailments,
)
from factormodels.selection.program import (
    EdgeRule,
    Program,
    Solution,
    SolverSettings,
    checked_rule,
    conflicts_of,
    solve,
)
from factormodels.selection.subclaims import Subclaim, subclaims_of
from factormodels.selection.weights import Weighting, uniform

Claims = TypeVar("Claims", list[str], list[Subclaim])
Parameters = ParamSpec("Parameters")


@dataclass(frozen=True)
class Core:
    """Settings of the selection of subclaims.

    Attributes:
        relations: predicts entailments between subclaims; wrap it in `CachedRelations` if several
            responses or weights share it.
        weighting: gives each subclaim its weight.
        rule: rule by which pairs exclude each other; see `conflicts_of`.
        share: minimum share of faithful subclaims among the chosen; None: no such constraint, and
            no sentence is compared with its subclaims.
        solver: limits of the solver.

    Raises:
        InputError: for an unknown rule.
    """

    relations: RelationModel
    weighting: Weighting = uniform
    rule: EdgeRule = "either"
    share: float | None = None
    solver: SolverSettings = field(default_factory=SolverSettings)

    def __post_init__(self) -> None:
        checked_rule(self.rule)


@dataclass(frozen=True)
class Selection:
    """The subclaims that count.

    Attributes:
        claims: all subclaims, in order.
        program: the program that was solved.
        solution: its solution.
        entailments: entailments between the subclaims.
        missing: number of missing judgments of the relation model; a missing judgment excludes no
            subclaim and makes none faithful.
    """

    claims: tuple[Subclaim, ...]
    program: Program
    solution: Solution
    entailments: Entailments
    missing: int

    @property
    def chosen(self) -> tuple[Subclaim, ...]:
        """The subclaims that count, in order."""
        return tuple(self.claims[i] for i in self.solution.chosen)


def select(claims: Sequence[Subclaim], core: Core) -> Selection:
    """Select the subclaims that count: supported by their sentence, informative, not redundant.

    Without subclaims, the selection is empty, with the reason in its solution.

    Raises:
        InputError: if the weighting does not give one finite weight per subclaim, or a share is
            required and a subclaim has no source sentence.
    """
    subclaims = tuple(claims)
    weights = tuple(float(weight) for weight in core.weighting(subclaims))
    if len(weights) != len(subclaims):
        raise InputError(
            f"the weighting gave {counted(len(weights), 'weight')} for "
            f"{counted(len(subclaims), 'subclaim')}; give one each"
        )
    for claim, weight in zip(subclaims, weights, strict=True):
        if not math.isfinite(weight):
            raise InputError(
                f"the weight of the subclaim {claim.text!r} is {weight}; give a finite number"
            )
    entailments = pairwise_entailments(subclaims, core.relations)
    faithful, missing = None, 0
    if core.share is not None:
        faithful, missing = source_entailments(subclaims, core.relations)
    program = Program(
        weights=weights,
        conflicts=conflicts_of(entailments.decided, core.rule),
        faithful=faithful,
        share=core.share,
    )
    solution = solve(program, core.solver)
    return Selection(subclaims, program, solution, entailments, entailments.missing + missing)


def most_entailments(n: int, *, n_templates: int, sourced: bool) -> int:
    """Return the largest number of pairs of texts that `select` asks about.

    Args:
        n: number of subclaims.
        n_templates: number of bleached claims of `Informativeness`; 0 for other weights.
        sourced: whether subclaims are compared with their sentences.
    """
    return n * (n - 1 + n_templates + sourced)


def selecting(
    core: Core,
) -> Callable[[Callable[Parameters, Claims]], Callable[Parameters, Claims]]:
    """Return a decorator for a decomposition that keeps only the subclaims that count.

    The decorated function returns texts or `Subclaim`s, and its decorated version the same, in
    order. Texts have the function's first argument, if it is text, as their source.

        @selecting(Core(LexicalRelations()))
        def decompose(sentence: str) -> list[str]: ...
    """

    def decorate(decompose: Callable[Parameters, Claims]) -> Callable[Parameters, Claims]:
        @functools.wraps(decompose)
        def decomposed(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Claims:
            claims = decompose(*args, **kwargs)
            source = args[0] if args and isinstance(args[0], str) else ""
            asked = [
                claim if isinstance(claim, Subclaim) else Subclaim(claim, source)
                for claim in claims
            ]
            chosen = set(select(asked, core).solution.chosen)
            return [claim for at, claim in enumerate(claims) if at in chosen]

        return decomposed

    return decorate


def select_atoms(
    graph: FactGraph, core: Core, sentences: Sequence[str] | None = None
) -> tuple[FactGraph, Selection]:
    """Return the fact graph of the atoms that count, and the selection.

    Later assessments of the graph, by inference or by prompts, see these atoms only.

    Args:
        graph: the response.
        core: settings of the selection.
        sentences: the sentences of the response; needed if a share is required.

    Raises:
        InputError: as in `select` and `subclaims_of`.
    """
    selection = select(subclaims_of(graph, sentences), core)
    return restricted(graph, [claim.id for claim in selection.chosen]), selection


def restricted(graph: FactGraph, atoms: Sequence[str]) -> FactGraph:
    """Return the graph with some of its atoms, in its order, and their contexts and relations.

    Contexts that were retrieved only for other atoms are dropped, as are relations that lose an
    end.

    Raises:
        InputError: for an id that is not an atom of the graph.
    """
    wanted = set(atoms)
    unknown = wanted - set(graph.atom_ids)
    if unknown:
        raise InputError(
            f"fact graph {graph.id!r} has no atom {min(unknown)!r}; name atoms of the graph"
        )
    kept = tuple(atom for atom in graph.atoms if atom.id in wanted)
    contexts = []
    for context in graph.contexts:
        served = tuple(atom for atom in context.retrieved_for if atom in wanted)
        if served or not context.retrieved_for:
            contexts.append(replace(context, retrieved_for=served))
    ends = wanted | {context.id for context in contexts}
    return replace(
        graph,
        atoms=kept,
        contexts=tuple(contexts),
        relations=tuple(r for r in graph.relations if r.source in ends and r.target in ends),
    )


def adjusted_precision(supported: Sequence[bool], chosen: Sequence[int]) -> float:
    """Return the share of the chosen subclaims that are supported; 0 if none was chosen.

    A response without subclaims that count has precision 0 (Core, section 3: the coin).

    Args:
        supported: verdict on each subclaim, (n,).
        chosen: indices of the chosen subclaims.
    """
    verdicts = np.asarray(supported, dtype=bool)[list(chosen)]
    return float(verdicts.mean()) if len(verdicts) else 0.0
