"""Attribute a difference to conventions by solving models with one convention switched at a time.

Two results of the same relations under different conventions differ claim by claim. Each convention
that differs is switched alone, from the first result's to the second's, and the first result's
posteriors are recomputed. Then two are switched together, and so on. The smallest set that leaves
at most a tenth of the difference explains a claim.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

from experiments.findings.table import Column, Table, columns_as
from experiments.progress import tell
from experiments.settings.conventions import graph_names
from factormodels.conventions import TITLES, Conventions, differing, switched
from factormodels.nouns import counted, is_or_are

EXPLAINED = 0.1
"""Largest share of a difference that may remain if conventions explain it."""

REPRODUCED = 1e-6
"""Tolerance between posteriors and recomputed posteriors: tools write six decimals."""

TOGETHER = "several together"

OTHER = "something else"

_MOST_SETS = 4
_SINGULAR = ("context_prior", "encoding", "k", "f1", "logarithm")

MOST_SHOWN = 20
"""Largest number of claims in a table, by decreasing difference."""

Posteriors = Mapping[tuple[str, str], float]
"""P(true) by response and claim."""

Solve = Callable[[Conventions], Posteriors]
"""Posteriors of some responses under conventions."""


@dataclass(frozen=True)
class ClaimEffects:
    """A claim that two results judge differently.

    Attributes:
        response: id of the response.
        claim: id of the claim.
        cell: name of the cell; empty if there is only one.
        before: P(true) in the first result.
        after: P(true) in the second.
        alone: P(true) of the first result with one convention switched, by its name.
        explained_by: names of the conventions that explain the difference; empty if the conventions
            do not reproduce the two results.
    """

    response: str
    claim: str
    cell: str
    before: float
    after: float
    alone: Mapping[str, float]
    explained_by: tuple[str, ...]


def names_that_differ(
    first: Conventions, second: Conventions, variants: Iterable[str]
) -> tuple[str, ...]:
    """Names of the conventions that differ and that posteriors of some views depend on."""
    relevant = set(graph_names(variants))
    return tuple(name for name in differing(first, second) if name in relevant)


@dataclass(frozen=True)
class Comparison:
    """Posteriors of the same relations in two results, each with its conventions.

    Attributes:
        cell: name of the cell; empty if there is only one.
        variant: the view of the responses; empty without a graph.
        before: posteriors of the first result.
        after: posteriors of the second.
        first: conventions of the first.
        second: conventions of the second.
        solve: posteriors of the same relations under conventions.
    """

    cell: str
    variant: str
    before: Posteriors
    after: Posteriors
    first: Conventions
    second: Conventions
    solve: Solve


Compared = TypeVar("Compared", bound=Comparison)


class Attribution(NamedTuple):
    """The effects of conventions on a comparison.

    Attributes:
        names: conventions that differ and that the posteriors depend on.
        effects: the claims that the two results judge differently.
        alone: posteriors of the first result with one convention switched, by its name.
    """

    names: tuple[str, ...]
    effects: list[ClaimEffects]
    alone: Mapping[str, Posteriors]


def attributions(compared: Iterable[Compared]) -> Iterator[tuple[Compared, Attribution]]:
    """Yield every comparison with the effects of its conventions, solving one at a time."""
    for each in compared:
        names = names_that_differ(each.first, each.second, [each.variant] if each.variant else [])
        if not names:
            yield each, Attribution((), [], {})
            continue
        tell(f"conventions of {each.cell}: {', '.join(TITLES[name] for name in names)}")
        of_claims, alone = claim_effects(
            *(each.before, each.after, each.first, each.second, names, each.solve, each.cell)
        )
        yield each, Attribution(names, of_claims, alone)


def claim_effects(
    before: Posteriors,
    after: Posteriors,
    first: Conventions,
    second: Conventions,
    names: Sequence[str],
    solve: Solve,
    cell: str = "",
    tolerance: float = REPRODUCED,
) -> tuple[list[ClaimEffects], Mapping[str, Posteriors]]:
    """Effect of each convention on the claims that two results judge differently.

    Args:
        before: posteriors of the first result.
        after: posteriors of the second.
        first: conventions of the first.
        second: conventions of the second.
        names: conventions that differ.
        solve: posteriors of the same relations under conventions.
        cell: name of the cell.
        tolerance: largest difference of equal posteriors.

    Returns:
        The claims, and the posteriors of the first result with one convention switched, by
        convention.
    """
    moved = [key for key, p in before.items() if key in after and abs(after[key] - p) > tolerance]
    if not moved:
        return [], {}
    ends = solve(first), solve(second)
    # Allow for rounding by tools: conventions explain a result only if they reproduce it.
    known = [
        key
        for key in moved
        if all(
            key in end and abs(end[key] - side[key]) <= max(tolerance, REPRODUCED)
            for end, side in zip(ends, (before, after), strict=True)
        )
    ]
    alone: dict[str, Posteriors] = {}
    explained: dict[tuple[str, str], tuple[str, ...]] = {}
    for size in range(1, len(names) + 1):
        still = [key for key in known if key not in explained]
        if size > 1 and not still:
            break
        least: dict[tuple[str, str], float] = {}
        for chosen in combinations(names, size):
            solved = solve(reduce(lambda made, name: switched(made, second, name), chosen, first))
            if size == 1:
                alone[chosen[0]] = solved
            for key in still:
                remaining = abs(after[key] - solved.get(key, math.inf))
                allowed = EXPLAINED * abs(after[key] - before[key])
                if remaining <= min(allowed, least.get(key, math.inf)):
                    explained[key], least[key] = chosen, remaining
    effects = []
    for key in moved:
        of_claim = {name: solved[key] for name, solved in alone.items() if key in solved}
        effects.append(
            ClaimEffects(*key, cell, before[key], after[key], of_claim, explained.get(key, ()))
        )
    return effects, alone


def in_words(names: Sequence[str]) -> str:
    """The conventions that explain a claim, in words."""
    titles = [TITLES[name] for name in names]
    return " and ".join(filter(None, [", ".join(titles[:-1]), titles[-1]])) if titles else OTHER


def measures_table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    """A row per cell and measure that differs, with the convention that explains it.

    Args:
        rows: for each cell and measure: `cell`, `measure`, `before`, `after`, and the measure with
            one convention switched, by the convention's name.
        names: names of the conventions that differ.
    """
    explained = []
    for row in rows:
        remaining = {name: abs(row["after"] - row[name]) for name in names}
        best = min(remaining, key=remaining.__getitem__)
        alone = remaining[best] <= EXPLAINED * abs(row["after"] - row["before"])
        explained.append({**row, "explained_by": TITLES[best] if alone else TOGETHER})
    return Table(
        explained,
        (
            *columns_as("measure | before:4 | after:4"),
            *columns_as("explained_by explained by"),
        ),
        "Measures of each side under its conventions, over all its claims.",
        group="cell",
        note="A convention explains a measure if, switched alone, it leaves at most a tenth of the "
        "difference.",
    )


def _value(value: object) -> str:
    """Format a convention's value as for an option."""
    if value is None:
        return "of the data"
    return f"{value:g}" if isinstance(value, float) else str(value)


def conventions_table(
    effects: Sequence[ClaimEffects],
    first: Conventions,
    second: Conventions,
    names: Sequence[str],
) -> Table:
    """A row per convention that differs: its two values, and the effect of switching it alone.

    Columns: convention, before, after, n_explained (claims whose difference it explains alone),
    n_with_others (claims that it explains with others), n_moved (claims whose posterior it moves)
    and max_change, the largest |ΔP(true)|.
    """
    rows: list[dict[str, Any]] = []
    for name in names:
        changes = [abs(each.alone[name] - each.before) for each in effects if name in each.alone]
        rows.append(
            {
                "convention": TITLES[name],
                "before": _value(getattr(first, name)),
                "after": _value(getattr(second, name)),
                "n_moved": sum(change > REPRODUCED for change in changes),
                "n_explained": sum(each.explained_by == (name,) for each in effects),
                "n_with_others": sum(
                    name in each.explained_by and len(each.explained_by) > 1 for each in effects
                ),
                "max_change": max(changes, default=0.0),
            }
        )
    return Table(
        rows,
        columns_as(
            "convention | before | after | n_explained:0 explains | "
            "n_with_others:0 in part | n_moved:0 moves | "
            "max_change:4 max |Δp|"
        ),
        "Conventions that differ, and the effect of switching each alone on the "
        f"{counted(len(effects), 'claim')} that changed.",
        note="A convention explains a claim if, switched alone, it leaves at most a tenth of the "
        "difference; in part: it belongs to the smallest set of conventions that does so "
        "together.",
    )


def claims_table(
    effects: Sequence[ClaimEffects],
    names: Sequence[str],
    sides: tuple[str, str],
    caption: str = "P(true) of the claims that changed, with explaining conventions.",
) -> Table:
    """A row per claim that changed.

    Columns: cell, response, claim, before, after, P(true) with one convention switched (by its
    name), and explained_by.

    Args:
        effects: the claims.
        names: names of the conventions that differ.
        sides: names of the two results.
        caption: caption of the table.
    """
    rows = [
        {
            "cell": each.cell,
            "response": each.response,
            "claim": each.claim,
            "before": each.before,
            "after": each.after,
            **{name: each.alone.get(name) for name in names},
            "explained_by": in_words(each.explained_by),
        }
        for each in effects
    ]
    return Table(
        rows,
        (
            *columns_as("response | claim"),
            Column("before", sides[0], digits=4),
            Column("after", sides[1], digits=4),
            *columns_as("explained_by explained by"),
        ),
        caption,
        group="cell" if len({each.cell for each in effects}) > 1 else "",
    )


def changed_most(effects: Sequence[ClaimEffects], number: int) -> list[ClaimEffects]:
    """The claims that changed most, in the order of the cells."""
    most = sorted(effects, key=lambda each: -abs(each.after - each.before))[:number]
    places = {
        cell: position for position, cell in enumerate(dict.fromkeys(e.cell for e in effects))
    }
    return sorted(most, key=lambda each: places[each.cell])


def effect_sentences(effects: Sequence[ClaimEffects], moved: str = "changed") -> Iterator[str]:
    """Yield the conventions that explain the changed claims, by decreasing number of claims.

    Args:
        effects: the claims.
        moved: verb for the claims: changed, or differ.
    """
    total = f"{counted(len(effects), 'claim')} that {moved}"
    by_names = Counter(each.explained_by for each in effects)
    other = by_names.pop((), 0)
    for names, count in by_names.most_common(_MOST_SETS):
        verb = "explains" if len(names) == 1 and names[0] in _SINGULAR else "explain"
        together = " together" if len(names) > 1 else ""
        yield f"The {in_words(names)}{together} {verb} {count:,} of {total}."
    rest = sum(by_names.values()) - sum(n for _, n in by_names.most_common(_MOST_SETS))
    if rest:
        yield f"Other conventions together explain {rest:,} of {total}."
    if other:
        yield (
            f"{other:,} of {total} {is_or_are(other)} not reproduced by the conventions: the "
            "results also differ in something else."
        )
