"""Relation models of known answers, and the integer program by enumeration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from factormodels.claims import RelationKind
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.selection import Program


@dataclass
class TableRelations:
    """Entailment with the probability of the table, for (premise, hypothesis); neutral else."""

    table: Mapping[tuple[str, str], float]
    missing: frozenset[tuple[str, str]] = frozenset()
    name: str = "table"
    asked: list[TextPair] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        self.asked += pairs
        self.batches.append(len(pairs))
        return [self._judge((pair.premise, pair.hypothesis)) for pair in pairs]

    def _judge(self, key: tuple[str, str]) -> Judgment | Missing:
        if key in self.missing:
            return Missing("nobody answered")
        p = self.table.get(key, 0.0)
        kind = RelationKind.ENTAILMENT if p > 0.5 else RelationKind.NEUTRAL
        return Judgment(kind, max(p, 1 - p), "recorded", (p, 0.0, 1 - p))


def enumerated(program: Program) -> tuple[int, ...] | None:
    """Return the set that the rule of ties names, by enumeration; None if no set is legal."""
    n = len(program.weights)
    share = None if program.share is None else Fraction(str(program.share))
    weights = [round(Fraction(w) * 10**9) for w in program.weights]
    excluded: list[set[int]] = [set() for _ in range(n)]
    for i, j in program.conflicts:
        excluded[max(i, j)].add(min(i, j))
    best: tuple[int, int, tuple[int, ...]] | None = None
    stack: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    while stack:
        i, chosen = stack.pop()
        if i < n:
            stack.append((i + 1, chosen))
            if not excluded[i] & set(chosen):
                stack.append((i + 1, (*chosen, i)))
            continue
        faithful = program.faithful or (True,) * n
        if share is not None and sum(faithful[k] for k in chosen) < share * len(chosen):
            continue
        taken = tuple(int(k in chosen) for k in range(n))
        key = (sum(weights[k] for k in chosen), -len(chosen), taken)
        if best is None or key > best:
            best = key
    return None if best is None else tuple(k for k, x in enumerate(best[2]) if x)
