"""Pairs of claims that say the same, and pairs that differ in little and say something else."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from factormodels.aligned_claims import LEAST_LIKENESS, likeness
from factormodels.texts.claim_words import are_equal, worded_likeness
from factormodels.texts.opposed_words import (
    DECISIVE_LETTERS,
    LIMITING,
    NEGATIONS,
    WEIGHTLESS,
    are_forms,
    is_negation,
)


class Pair(NamedTuple):
    """Two claims of a language, and whether they say the same."""

    language: str
    kind: str
    first: str
    other: str


def pairs() -> list[Pair]:
    """The pairs of the table."""
    lines = (Path(__file__).parent / "claim_pairs.tsv").read_text("utf-8").splitlines()
    return [Pair(*line.split("\t")) for line in lines]


PAIRS = pairs()


@pytest.mark.parametrize("kind", ["same", "different"])
def test_claims_are_the_same_only_where_they_say_the_same(kind: str) -> None:
    wrong = [
        (pair.first, pair.other)
        for pair in PAIRS
        if pair.kind == kind
        for alike in (
            likeness(pair.first, pair.other, language=pair.language),
            likeness(pair.other, pair.first, language=pair.language),
        )
        if (alike >= LEAST_LIKENESS) != (kind == "same")
    ]
    assert wrong == []


def test_every_language_that_is_compared_by_words_has_a_pair() -> None:
    assert {pair.language for pair in PAIRS if pair.kind == "different"} >= NEGATIONS.keys()


@pytest.mark.parametrize(
    ("first", "other", "equal"),
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
def test_equality_ignores_case_space_and_punctuation(first: str, other: str, equal: bool) -> None:
    assert are_equal(first, other) == equal


def test_claims_of_an_unknown_language_are_alike_only_if_equal() -> None:
    first, other = (
        "Alizaliwa mjini Nairobi mwaka 1950.",
        "Alizaliwa mjini Nairobi mnamo mwaka 1950.",
    )
    assert likeness(first, other) == 0.0
    assert likeness(first, first.upper()) == 1.0
    # Swedish is known, and Finnish, whose function words are, is not.
    assert likeness("Han föddes i Lund och var lärare.", "Han var lärare, och föddes i Lund.") > 0
    assert likeness("Hän on syntynyt Turussa.", "Hän ei ole syntynyt Turussa.") == 0.0
    assert worded_likeness(first, other, "", "sw") == 0.0


@pytest.mark.parametrize("language", sorted(NEGATIONS))
def test_negations_are_words_of_their_language(language: str) -> None:
    for word in NEGATIONS[language]:
        assert is_negation(word.removesuffix("*"), language)
    assert not is_negation("ada", language)


@pytest.mark.parametrize(
    ("language", "first", "other", "forms"),
    [
        ("en", "painted", "painter", True),
        ("en", "roles", "role", True),
        ("en", "upper", "up", False),
        ("en", "larger", "largest", False),
        ("en", "employer", "employee", False),
        ("de", "bundeskanzler", "bundespräsident", False),
        ("de", "kleinere", "kleinste", False),
        ("es", "hermano", "hermana", False),
        ("ru", "туле", "тула", False),
        ("ru", "романа", "романов", True),
    ],
)
def test_forms_of_a_word_have_endings_of_its_language(
    language: str, first: str, other: str, forms: bool
) -> None:
    assert are_forms(first, other, language, is_name=False) == forms
    assert are_forms(other, first, language, is_name=False) == forms


@pytest.mark.parametrize(
    ("first", "other", "forms"),
    [
        ("brazil", "brazilian", True),
        ("argentine", "argentinian", True),
        ("austria", "australia", False),
        ("iran", "iraq", False),
        ("niger", "nigeria", False),
    ],
)
def test_names_are_another_only_by_what_is_called_after_them(
    first: str, other: str, forms: bool
) -> None:
    assert are_forms(first, other, "en", is_name=True) == forms


def test_every_language_that_is_compared_by_words_has_all_lists() -> None:
    spaced = NEGATIONS.keys() - DECISIVE_LETTERS.keys()
    assert WEIGHTLESS.keys() == LIMITING.keys() == spaced
