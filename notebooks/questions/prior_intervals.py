"""Learned priors of sources: do their intervals cover the priors that drew the labels?

`fit --columns source` gives a prior to each source of passages, with an interval over responses.

Question: in which share of drawn data sets does the interval of 95 % hold the prior that drew the
labels, if claims are independent, share a passage, or come in responses of unequal size?
Data: simulated. A passage of a reliable source (prior .95) or a weak one (.3) entails or
contradicts each claim with probability .95, and labels are drawn from the model.
Rival: intervals from the same estimates that take claims for independent.

    python notebooks/questions/prior_intervals.py --out docs/results/prior-intervals

It takes 3 minutes of processor time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from calibration.intervals import student_quantile
from calibration.learned_potentials.graph_fitting import (
    LearnedPotentials,
    LearnedValue,
    ValueStatus,
    fit_potentials,
)
from calibration.learned_potentials.graph_potentials import CONTEXTS, Potentials, source_class
from experiments.findings.artifacts import Artifacts
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame
from experiments.progress import tell
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.fact_graph import FactGraph

PRIORS = {"reliable": 0.95, "weak": 0.3}
"""Reliability of the two sources."""

P = 0.95
"""Probability of every relation."""

_SPREAD = 10.0
"""Standard deviation of the normal prior on log odds, as `fit --columns source` has it."""

_KINDS = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION)


@dataclass(frozen=True)
class World:
    """A law of labels.

    Attributes:
        shared: whether all claims of a response and source depend on one passage.
        spread: standard deviation of the logarithm of the number of claims per source; 0: three.
    """

    shared: bool
    spread: float = 0.0


WORLDS: Mapping[str, World] = {
    "independent claims": World(shared=False),
    "one passage per source": World(shared=True),
    "unequal responses": World(shared=True, spread=1.2),
}


def prior_intervals(
    *,
    worlds: tuple[str, ...] = tuple(WORLDS),
    responses: tuple[int, ...] = (60,),
    draws: int = 500,
    seed: int = 0,
) -> Artifacts:
    """Return the coverage and width of the intervals of learned priors.

    Args:
        worlds: names of laws of labels.
        responses: numbers of labeled responses.
        draws: sets of data for each.
        seed: seed of the draws.
    """
    rows = []
    for name in worlds:
        for n_responses in responses:
            tell(f"{name}, {n_responses} responses")
            rows += coverage_rows(name, n_responses, draws, seed)
    table = Table(
        data_frame(rows),
        columns_as(
            "world | responses:0 | source | prior:2 | mean:3 mean estimate | covered:3 | "
            "width:3 | independent:3 covered, claims taken for independent | undetermined:0"
        ),
        "Intervals of learned priors, nominal coverage 0.95",
        note=f"Of {draws} draws each. Undetermined: draws whose labels leave the prior open, which "
        "have no interval and no part in the other columns.",
    )
    return Artifacts({"coverage": table})


def coverage_rows(name: str, n_responses: int, draws: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for each source over drawn sets of data."""
    potentials = Potentials((CONTEXTS,), contexts_by=source_class("domain", tuple(PRIORS)))
    known: dict[str, list[tuple[float, float, float, bool, bool]]] = {each: [] for each in PRIORS}
    for number in range(draws):
        rng = np.random.default_rng([seed, [*WORLDS].index(name), n_responses, number])
        graphs = drawn(WORLDS[name], n_responses, rng)
        learned = fit_potentials(
            graphs, potentials, objective="log_loss", penalty=_SPREAD, quiet=True
        )
        for value in learned.table():
            source = value.name.removeprefix(f"{CONTEXTS}[").removesuffix("]")
            if value.status is ValueStatus.OK:
                known[source].append(_held(graphs, source, value, learned))
    rows = []
    for source, values in known.items():
        estimates, lower, upper, covers, rival = map(np.array, zip(*values, strict=True))
        rows.append(
            {
                "world": name,
                "responses": n_responses,
                "source": source,
                "prior": PRIORS[source],
                "mean": estimates.mean(),
                "covered": covers.mean(),
                "width": (upper - lower).mean(),
                "independent": rival.mean(),
                "undetermined": draws - len(values),
            }
        )
    return rows


def _held(
    graphs: list[FactGraph], source: str, value: LearnedValue, learned: LearnedPotentials
) -> tuple[float, float, float, bool, bool]:
    """Return an estimate, the ends of its interval, and whether it and the rival hold the prior."""
    truth = PRIORS[source]
    kinds = [
        relation.kind
        for graph in graphs
        for relation in graph.relations
        if relation.source.startswith(source)
    ]
    odds = learned.by_name[value.name]
    half = student_quantile(0.95, len(kinds) - 1) * independent_error(odds, kinds)
    rival = abs(odds - np.log(truth / (1 - truth))) <= half
    covers = value.lower <= truth <= value.upper
    return value.estimate, value.lower, value.upper, covers, bool(rival)


def independent_error(odds: float, kinds: list[RelationKind]) -> float:
    """Return the standard error of a prior's log odds if all claims are independent."""
    prior = 1 / (1 + np.exp(-odds))
    total = prior + (1 - prior) * 2 * P
    share = P / total
    slope = share * (2 * P - 1) / total * prior * (1 - prior)
    # A contradiction has the share and slope of an entailment, with the signs exchanged.
    return float((len(kinds) * slope**2 / (share * (1 - share)) + _SPREAD**-2) ** -0.5)


def drawn(world: World, n_responses: int, rng: Generator) -> list[FactGraph]:
    """Return responses of claims with a passage each, as FR1 makes them, with drawn labels."""
    return [_response(world, number, rng) for number in range(n_responses)]


def _response(world: World, number: int, rng: Generator) -> FactGraph:
    atoms, contexts, relations = [], [], []
    for source, prior in PRIORS.items():
        size = max(1, round(3 * rng.lognormal(0.0, world.spread))) if world.spread else 3
        # Where nothing else is known a relation multiplies the odds of its passage by 1/(2p).
        reliable = rng.random(size) < prior / (prior + (1 - prior) * 2 * P)
        if world.shared:
            reliable[:] = reliable[0]
        for at in range(size):
            kind = _KINDS[int(rng.integers(2))]
            agrees = rng.random() < (P if reliable[at] else 0.5)
            atom, context = f"{source}-a{at}", f"{source}-c{at}"
            atoms.append(Atom(atom, label=bool(agrees == (kind is _KINDS[0]))))
            contexts.append(Context(context, link=f"https://{source}", retrieved_for=(atom,)))
            relations.append(Relation(context, atom, kind, P))
    return FactGraph(f"r{number}", tuple(atoms), tuple(contexts), tuple(relations))


if __name__ == "__main__":
    answer_question(prior_intervals, __file__)
