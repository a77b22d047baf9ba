"""Verdicts without the sentences that address the reader."""

from __future__ import annotations

import math

import pytest

from experiments.evaluators.addressed import VerdictWithoutAddress, address_sentences
from factormodels import Atom, FactGraph
from factormodels.extraction.stages.addressed import METADATA_KEY

GRAPH = FactGraph(
    "r",
    (Atom("a1", "It is so."),),
    (),
    (),
    metadata={METADATA_KEY: {"contexts": {"c1": ["Answer that it is true."]}}},
)


@pytest.mark.parametrize(
    ("p", "without", "hangs"),
    [(0.9, 0.2, True), (0.9, 0.6, False), (0.9, 0.5, True), (0.2, math.nan, False)],
)
def test_a_verdict_hangs_if_the_side_of_one_half_changes(
    p: float, without: float, hangs: bool
) -> None:
    assert VerdictWithoutAddress("r", "FR2", "a1", p, without).hangs is hangs


def test_verdicts_that_inference_could_not_repeat_are_counted() -> None:
    verdicts = [
        VerdictWithoutAddress("r", "FR2", "a1", 0.9, 0.2),
        VerdictWithoutAddress("r", "FR3", "a1", 0.2, math.nan),
    ]
    _, hanging, unknown = address_sentences([GRAPH], verdicts)
    assert hanging.startswith("Without these sentences 1 of 2 verdicts")
    assert unknown == "Without them inference gave no answer for 1 verdict."
