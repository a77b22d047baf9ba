"""Pairs of claims that say the same, and pairs that differ in little and say something else."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from factormodels.aligned_claims import LEAST_LIKENESS, differ_decisively, likeness
from factormodels.claim_words import are_equal, worded_likeness
from factormodels.opposed_words import NEGATIONS, are_opposites, is_negation


class Pair(NamedTuple):
    """Two claims of a language, and whether they say the same."""

    language: str
    kind: str
    one: str
    other: str


def pairs() -> list[Pair]:
    """The pairs of the table."""
    lines = (Path(__file__).parent / "claim_pairs.tsv").read_text("utf-8").splitlines()
    return [Pair(*line.split("\t")) for line in lines]


PAIRS = pairs()


@pytest.mark.parametrize("kind", ["same", "different"])
def test_claims_are_the_same_only_where_they_say_the_same(kind: str) -> None:
    wrong = [
        (pair.one, pair.other)
        for pair in PAIRS
        if pair.kind == kind
        for alike in (
            likeness(pair.one, pair.other, language=pair.language),
            likeness(pair.other, pair.one, language=pair.language),
        )
        if (alike >= LEAST_LIKENESS) != (kind == "same")
    ]
    assert wrong == []


def test_every_language_that_is_compared_by_words_has_a_pair() -> None:
    assert {pair.language for pair in PAIRS if pair.kind == "different"} >= NEGATIONS.keys()


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("Ada  PAINTED birds", "ada painted birds.", True),
        ("„Die Mühle“ brannte", "Die Mu\u0308hle brannte!", True),
        ("It fell to ５ %", "it fell to 5%", True),
        ("It fell to 5%", "It fell to 5", False),
        ("It is written in C#", "It is written in C", False),
        ("It was -5 degrees", "It was 5 degrees", False),
        ("It was 3.5 m", "It was 35 m", False),
        ("It was 3.125 m", "It was 3125 m", False),
        ("It took 1/2 of it", "It took 12 of it", False),
        ("१२ पुल", "12 पुल", True),
        ("...", "!", False),
    ],
)
def test_equality_ignores_case_space_and_punctuation(one: str, other: str, equal: bool) -> None:
    assert are_equal(one, other) == equal


def test_claims_of_an_unknown_language_are_alike_only_if_equal() -> None:
    one, other = "Alizaliwa mjini Nairobi mwaka 1950.", "Alizaliwa mjini Nairobi mnamo mwaka 1950."
    assert likeness(one, other) == 0.0
    assert likeness(one, one.upper()) == 1.0
    # Swedish is known, and Finnish, whose function words are, is not.
    assert likeness("Han föddes i Lund och var lärare.", "Han var lärare, och föddes i Lund.") > 0
    assert likeness("Hän on syntynyt Turussa.", "Hän ei ole syntynyt Turussa.") == 0.0
    assert worded_likeness(one, other, "", "sw") == 0.0


def test_texts_differ_decisively_in_numbers_and_negations_of_any_language() -> None:
    assert not differ_decisively("Kinu kilijengwa karibu.", "Kinu kilijengwa karibu sana.")
    assert differ_decisively("Kinu kilijengwa 1901.", "Kinu kilijengwa 1910.")
    assert differ_decisively("Anna malte Schiffe.", "Anna malte nie Schiffe.")
    assert not differ_decisively("The mill was old.", "The mill was very old.")
    assert differ_decisively("The mill was old.", "The mill was not old.")
    assert differ_decisively("磨坊是旧的。", "磨坊不是旧的。")


@pytest.mark.parametrize("language", sorted(NEGATIONS))
def test_negations_are_words_of_their_language(language: str) -> None:
    for word in NEGATIONS[language]:
        assert is_negation(word.removesuffix("*"), language)
    assert not is_negation("ada", language)


@pytest.mark.parametrize(
    ("language", "one", "other", "opposite"),
    [
        ("en", "married", "unmarried", True),
        ("en", "careless", "careful", True),
        ("en", "married", "remarried", False),
        ("de", "arbeitslose", "arbeits", True),
        ("ru", "счастлив", "несчастлив", True),
        ("fa", "بود", "نبود", True),
        ("en", "do", "undo", False),
    ],
)
def test_affixes_make_opposites(language: str, one: str, other: str, opposite: bool) -> None:
    assert are_opposites(one, other, language) == are_opposites(other, one, language) == opposite
