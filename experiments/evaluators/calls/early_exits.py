"""Rules that skip all relations of a response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from experiments.evaluators.calls.likeness import shared_words
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.pipeline import Stage, relation_stage
from factormodels.extraction.relation_models.base import Judgment, Missing, NotAsked, TextPair
from factormodels.fact_graph import FactGraph

EarlyExit = Callable[[FactGraph], str]
"""Function of a response with its claims and passages that returns the reason to stop asking, or an
empty string to continue."""


def declines(graph: FactGraph) -> str:
    """Return the reason to stop for a response that declines to answer, by `declining_clauses`."""
    from calibration.self_knowledge import declining_clauses

    return "it declines to answer" if declining_clauses(graph.response) else ""


def unlike_its_passages(graph: FactGraph) -> str:
    """Return the reason to skip a response if no claim shares half of its words with a passage."""
    pairs = [
        TextPair(context.content, atom.text, title=context.title)
        for context in graph.contexts
        for atom in graph.atoms
    ]
    near = shared_words(pairs)
    return "" if near.size and near.max() >= _HALF else "no passage is about any of its claims"


_HALF = 0.5

EARLY_EXITS: MappingProxyType[str, EarlyExit] = MappingProxyType(
    {"declines": declines, "unlike": unlike_its_passages}
)
"""Rules that skip the relations of a response, by name."""


def early_exit(rule: Any) -> EarlyExit:
    """Return the rule of a name of `EARLY_EXITS`, or the given function.

    Raises:
        InputError: for an unknown name.
    """
    if callable(rule):
        custom: EarlyExit = rule
        return custom
    if rule not in EARLY_EXITS:
        raise InputError(unknown_name(f"the early exit {rule!r}", str(rule), EARLY_EXITS))
    return EARLY_EXITS[rule]


def of_answers(stage: Stage) -> Stage:
    """Return a claim stage that extracts no claims from a response that declines to answer.

    The sentences of a refusal are not claims, and would be judged false.
    """

    def claims(graph: FactGraph) -> FactGraph:
        reason = declines(graph)
        if not reason:
            return stage(graph)
        return replace(graph, atoms=(), metadata={**graph.metadata, DECLINED_KEY: reason})

    return claims


DECLINED_KEY = "declined"
"""Metadata key of a response: reason why no claims were extracted."""

EXIT_KEY = "early_exit"
"""Metadata key of a response: reason why relations were skipped."""


def unless(rule: EarlyExit, stage: Stage, variant: str, least: float) -> Stage:
    """Return a relation stage that skips responses according to a rule.

    Pairs of a skipped response are unasked and its claims unanswered; their ranges allow every
    answer.
    """

    def ended(graph: FactGraph) -> FactGraph:
        reason = rule(graph)
        if not isinstance(reason, str):
            raise InputError(
                f"the early exit gave {reason!r} of {graph.id!r}; return a string: the reason to "
                "stop, or empty to continue"
            )
        metadata = {key: value for key, value in graph.metadata.items() if key != EXIT_KEY}
        if not reason:
            return stage(replace(graph, metadata=metadata))
        bare = relation_stage(_Nobody(reason), variant, least)(graph)
        return replace(bare, metadata={**bare.metadata, EXIT_KEY: reason})

    return ended


@dataclass(frozen=True)
class _Nobody:
    """A relation model that answers nothing."""

    reason: str
    name: str = "nobody"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        return [NotAsked(f"not asked: {self.reason}") for _ in pairs]
