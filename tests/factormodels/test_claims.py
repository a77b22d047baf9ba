"""Atoms, contexts and relations: what they accept and promise."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factormodels import Atom, Context, Relation, RelationKind
from factormodels.validation import validated_probability
from tests.refusals import refused

# What a caller without a type checker writes.
atom: Any = Atom
context: Any = Context
relation: Any = Relation

NO_PROBABILITY = [-0.1, 1.1, float("nan"), float("inf"), -1, 2, 10**400, np.float64(1.5)]
NO_NUMBER = ["0.5", None, True, False, np.bool_(True), 1j, [0.5], np.array([0.5])]


@given(st.floats(0.0, 1.0))
def test_every_number_from_0_to_1_is_a_probability_and_kept_exactly(value: float) -> None:
    assert validated_probability(value, "here") == value


@pytest.mark.parametrize("value", [0, 1, np.float32(0.25), np.int64(1), Fraction(1, 4)])
def test_a_probability_may_be_any_real_number_and_becomes_a_float(value: object) -> None:
    probability = validated_probability(value, "here")
    assert type(probability) is float
    assert probability == value


@pytest.mark.parametrize("value", NO_PROBABILITY)
def test_a_number_outside_0_and_1_is_refused_with_place_value_and_fix(value: float) -> None:
    # Of a number with hundreds of digits the middle is left out.
    words = [str(value)[:80], " is not between 0 and 1; "]
    message = refused(words, validated_probability, value, "here")
    assert message.startswith("here: the probability ")


@pytest.mark.parametrize("value", NO_NUMBER)
def test_values_that_are_not_numbers_are_refused_with_place_value_and_fix(value: object) -> None:
    words = [repr(value), " is not a number; give one"]
    assert refused(words, validated_probability, value, "here").startswith("here: ")


def test_default_priors_are_those_of_the_paper() -> None:
    assert Atom("a1").prior == 0.5
    assert Context("c1").prior == 0.99


def test_a_relation_takes_the_name_of_its_kind() -> None:
    named = relation("c", "a", "contradiction", 1)
    assert named.kind is RelationKind.CONTRADICTION
    assert named.probability == 1.0
    assert named == Relation("c", "a", RelationKind.CONTRADICTION, 1.0)


def test_a_probability_below_one_half_is_legal() -> None:
    assert Relation("c", "a", RelationKind.ENTAILMENT, 0.1).probability == 0.1


def test_provenance_becomes_a_tuple_in_the_order_given() -> None:
    assert context("c", retrieved_for=["a10", "a9"]).retrieved_for == ("a10", "a9")


ITEMS = [
    Atom("a1", "text", 0.25, label=False, annotation="NS", sentence=2),
    Context("c1", "text", 0.9, "title", "link", "snippet", ("a1",), "key", "note"),
    Relation("c1", "a1", RelationKind.ENTAILMENT, 0.75),
]


@pytest.mark.parametrize("item", ITEMS, ids=["atom", "context", "relation"])
def test_items_are_immutable_hashable_and_survive_copying(item: Any) -> None:
    for field in item.__dataclass_fields__:
        with pytest.raises(FrozenInstanceError):
            setattr(item, field, "other")
    # Slots and frozen fields meet in CPython 3.11 as a TypeError rather than an AttributeError.
    with pytest.raises((AttributeError, TypeError)):
        item.further = 1
    for twin in (pickle.loads(pickle.dumps(item)), copy.deepcopy(item), replace(item)):
        assert twin == item
        assert hash(twin) == hash(item)


def test_replacing_a_field_validates_it() -> None:
    refused("prior of atom 'a1'", replace, Atom("a1"), prior=2.0)


@pytest.mark.parametrize(
    ("snippet", "text", "content"),
    [
        ("", "Text.", "Text."),
        ("Snippet.", "", "Snippet."),
        ("Snippet.", "Text.", "Snippet.\n\nText."),
        # What the text says already is not said twice, however a search engine cuts it.
        ("The text  goes on ...", "The text goes on and on.", "The text goes on and on."),
        ("THE TEXT …", "See: the text.", "See: the text."),
        (" ", "", ""),
    ],
)
def test_a_context_says_its_snippet_and_its_text(snippet: str, text: str, content: str) -> None:
    assert Context("c1", text, snippet=snippet).content == content
