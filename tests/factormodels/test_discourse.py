"""Discourse senses: what each says of the truth of its two claims."""

from __future__ import annotations

from itertools import product

import pytest

from factormodels import Atom, FactGraph, Relation, RelationKind
from factormodels.discourse import (
    CONCEDED,
    KINDS_OF_SENSES,
    Sense,
    SensedPair,
    compiled_senses,
    sense_named,
)
from tests.oracle import oracle
from tests.refusals import refused

IMPOSSIBLE = {
    # The truth of (first, second) that a certain sense excludes, told without its kind.
    Sense.CAUSE: {(1, 0)}, Sense.EVIDENCE: {(1, 0)}, Sense.CONDITION: {(1, 0)},
    Sense.INSTANTIATION: {(1, 0)}, Sense.EFFECT: {(0, 1)}, Sense.RESTATEMENT: {(1, 0), (0, 1)},
    Sense.CONTRAST: {(1, 1)}, Sense.CONCESSION: {(1, 1)}, Sense.ALTERNATIVE: {(0, 0), (1, 1)},
    Sense.DISJUNCTION: {(0, 0)}, Sense.PRECEDENCE: set(), Sense.SUCCESSION: set(),
}  # fmt: skip


@pytest.mark.parametrize("sense", Sense)
def test_a_certain_sense_excludes_what_it_says(sense: Sense) -> None:
    relations = compiled_senses([SensedPair("a", "b", sense, 1.0)])
    graph = FactGraph("r", (Atom("a"), Atom("b")), relations=relations)
    answer = oracle(graph.to_factor_graph())
    for first, second in product((0, 1), repeat=2):
        possible = answer.probability({"a": first, "b": second}) > 0.0
        assert possible == ((first, second) not in IMPOSSIBLE[sense])


def test_senses_of_order_make_no_factor() -> None:
    order = [sense for sense, kind in KINDS_OF_SENSES.items() if kind is None]
    assert order == [Sense.PRECEDENCE, Sense.SUCCESSION]
    assert compiled_senses(SensedPair("a", "b", sense) for sense in order) == ()


def test_most_probable_of_several_senses_of_a_pair_stays() -> None:
    pairs = [
        SensedPair("a", "b", Sense.CAUSE, 0.6),
        SensedPair("a", "b", Sense.CONTRAST, 0.7),
        SensedPair("b", "a", Sense.EFFECT, 0.65),
        SensedPair("a", "b", Sense.PRECEDENCE, 0.9),
    ]
    assert compiled_senses(pairs) == (Relation("a", "b", RelationKind.CONTRADICTION, 0.7),)


def test_a_concession_nobody_measured_is_even() -> None:
    (relation,) = compiled_senses([SensedPair("a", "b", Sense.CONCESSION)])
    assert relation.probability == CONCEDED
    graph = FactGraph("r", (Atom("a"), Atom("b")), relations=(relation,))
    # All four states weigh one half: the factor says nothing.
    assert oracle(graph.to_factor_graph()).marginals["a"][1] == 0.5


@pytest.mark.parametrize("name", ["Cause-Effect", "cause_effect", "CAUSE", " cause "])
def test_names_are_read_as_others_write_them(name: str) -> None:
    assert sense_named(name) is Sense.CAUSE


def test_errors_are_reported() -> None:
    refused("the sense 'motive' is unknown", sense_named, "motive")
    refused(
        "'contrast' of 'a' and 'b' has no probability",
        compiled_senses,
        [SensedPair("a", "b", Sense.CONTRAST)],
    )
    refused("1.5", compiled_senses, [SensedPair("a", "b", Sense.CAUSE, 1.5)])
