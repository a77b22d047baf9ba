"""The plain program beside selection under uncertain redundancy, on labelled responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.evaluators.robustness import CoreChoices
from factormodels.fact_graph import FactGraph
from factormodels.selection import Selection, adjusted_precision
from factormodels.selection.expected import (
    expected_weight,
    redundancy,
    score_distribution,
    select_expected,
)


def uncertain_rows(
    found: Sequence[tuple[FactGraph, Selection]],
    choices: CoreChoices,
    *,
    samples: int = 200,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Every response under three readings of the same judgements; precision is by human labels.

    Columns: response; claims; plain_count and plain_precision of Core's program, which decides each
    entailment; expected_count and expected_precision of the set of greatest expected weight, each
    claim counted with the probability that nothing heavier makes it redundant; gain, the expected
    weight of that set over that of the plain program's; proved, whether that set is the best;
    sampled_precision, lower and upper: mean and central 95 % of Core's precision over sampled
    redundancy graphs.

    Args:
        found: labelled responses with claims, each with what Core's program selects; a claim
            without a label is not supported.
        choices: how that was selected.
        samples: redundancy graphs per response.
        seed: seed of the graphs.

    Raises:
        InputError: as `score_distribution` does.
    """
    rows = []
    for graph, plain in found:
        supported = [atom.label is True for atom in graph.atoms]
        weights = plain.program.weights
        r = redundancy(plain.entailments, choices.rule)
        # Starting from the plain set, it can only be as good or better.
        best = select_expected(weights, r, start=plain.solution.chosen)
        drawn = score_distribution(
            weights, r, supported, samples=samples, seed=seed, solver=choices.solver
        )
        base = expected_weight(plain.solution.chosen, weights, r)
        lower, upper = drawn.interval()
        rows.append(
            {
                "response": graph.id,
                "claims": len(graph.atoms),
                "plain_count": len(plain.solution.chosen),
                "plain_precision": adjusted_precision(supported, plain.solution.chosen),
                "expected_count": best.expected_count,
                "expected_precision": best.precision(supported),
                "gain": best.expected_weight / base if base > 0 else float("nan"),
                "proved": best.status == "optimal",
                "sampled_precision": float(drawn.scores.mean()),
                "lower": lower,
                "upper": upper,
            }
        )
    return rows
