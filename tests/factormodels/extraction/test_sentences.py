"""Sentences and chunks of a response."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factormodels import FactGraph
from factormodels.extraction.sentences import (
    LANGUAGE_KEY,
    sentences_of,
    split_chunks,
    split_sentences,
    stated_language,
)
from factormodels.extraction.stages.atomizer import sentence_atoms
from tests.refusals import refused


def test_full_stops_within_a_sentence_do_not_end_it() -> None:
    text = "Dr. Ada Example was born on 3.5.1901, e.g. in Ulm. She painted! Did she sing?"
    assert split_sentences(text) == (
        "Dr. Ada Example was born on 3.5.1901, e.g. in Ulm.",
        "She painted!",
        "Did she sing?",
    )


def test_marks_of_lists_and_headings_are_no_text() -> None:
    text = (
        "# The bridge\n\n1. It is long.\n- **Color**: it is red\n* **It is old.**\n---\n"
        "(2) Trains cross it, 2**3 and 4**5 of them."
    )
    assert split_sentences(text) == (
        "The bridge",
        "It is long.",
        "Color: it is red",
        "It is old.",
        "Trains cross it, 2**3 and 4**5 of them.",
    )


@pytest.mark.parametrize("text", ["", " \n\n ", "---", "..."])
def test_text_without_letters_has_no_sentence(text: str) -> None:
    assert split_sentences(text) == ()
    assert sentence_atoms(text) == ()


def test_a_long_line_is_split_like_its_sentences() -> None:
    sentences = tuple(f"The bridge number {i} is long and red and old." for i in range(300))
    assert split_sentences(" ".join(sentences)) == sentences


def test_a_long_line_without_any_sentence_loses_no_word() -> None:
    words = " ".join(f"word{i}" for i in range(2000))
    assert " ".join(split_sentences(words)).split() == words.split()
    assert "".join(split_sentences("x" * 9001)) == "x" * 9001


def test_invalid_codes_of_languages_are_refused() -> None:
    refused("'english' is not a language code", split_sentences, "A b.", "english")


class Case(NamedTuple):
    """A text with the sentences that a reader parts it into.

    Attributes:
        language: code of the language.
        kind: what makes the text hard.
        sentences: its sentences.
        text: the sentences in one line, with spaces between where the script has them.
    """

    language: str
    kind: str
    sentences: tuple[str, ...]
    text: str


def cases() -> list[Case]:
    """The cases of the table: language, kind, and sentences parted by " | ", or "||" for none."""
    lines = (Path(__file__).parent / "sentence_cases.tsv").read_text("utf-8").splitlines()
    read = []
    for line in lines:
        language, kind, marked = line.split("\t")
        sentences = tuple(re.split(r" \| |\|\|", marked))
        read.append(Case(language, kind, sentences, marked.replace(" | ", " ").replace("||", "")))
    return read


def test_only_marks_of_lists_are_taken_from_lines() -> None:
    assert split_sentences("3. Mai 1900: Wahl", "de") == ("3. Mai 1900: Wahl",)
    assert split_sentences("1. Der Turm steht.", "de") == ("Der Turm steht.",)
    assert split_sentences("1. Turm\n2. Hafen", "de") == ("Turm", "Hafen")
    assert split_sentences("7. The tower stands.") == ("The tower stands.",)


CASES = cases()
AMBIGUOUS = "The compiler is written in C. Rust came later."
"""Nothing but knowledge of the subject tells C here from the initial of a person."""


@pytest.mark.parametrize("stated", [True, False])
def test_sentences_of_all_languages_end_where_a_reader_ends_them(stated: bool) -> None:
    assert len(CASES) > 150
    assert len({case.language for case in CASES}) > 6
    wrong = [
        case.text
        for case in CASES
        if split_sentences(case.text, case.language if stated else None) != case.sentences
    ]
    assert wrong == [AMBIGUOUS]


def test_no_letter_is_lost_between_sentences() -> None:
    for case in CASES:
        joined = "".join(split_sentences(case.text, case.language))
        assert joined.replace(" ", "") == case.text.replace(" ", "")


@given(st.text(st.sampled_from("aB .!?)(»…。」3\n"), max_size=40))
def test_sentences_keep_order_and_letters_of_any_text(text: str) -> None:
    def letters(part: str) -> str:
        return "".join(filter(str.isalpha, part))

    # A number that begins a line is the mark of a list.
    assert letters("".join(split_sentences(text, "en"))) == letters(text)


def test_a_stated_language_goes_with_the_response() -> None:
    ordinal = FactGraph("r", (), response="Am 19. Maria kam. Er ging.")
    assert sentences_of(ordinal) == split_sentences(ordinal.response)
    german = replace(ordinal, metadata={LANGUAGE_KEY: "de"})
    english = replace(ordinal, metadata={LANGUAGE_KEY: "en-GB"})
    assert sentences_of(german) == ("Am 19. Maria kam.", "Er ging.")
    assert sentences_of(english) == ("Am 19.", "Maria kam.", "Er ging.")
    # Other files name languages in words.
    assert stated_language(replace(ordinal, metadata={LANGUAGE_KEY: "German"})) is None


SENTENCES = ("One.", "Two.", "Three.", "Four.", "Five.")


@given(st.integers(0, 40), st.one_of(st.none(), st.integers(1, 50)))
def test_chunks_hold_every_sentence_once_and_number_them(n: int, stride: int | None) -> None:
    sentences = tuple(f"s{i}" for i in range(1, n + 1))
    chunks = split_chunks(sentences, stride)
    assert tuple(s for chunk in chunks for s in chunk.sentences) == sentences
    assert all(chunk.sentences[0] == f"s{chunk.first}" for chunk in chunks)
    assert all(chunk.text == " ".join(chunk.sentences) for chunk in chunks)
    assert all(len(chunk.sentences) == (stride or n) for chunk in chunks[:-1])
    # FaStfact's count of calls: the number of sentences over the stride, rounded up.
    assert len(chunks) == -(-n // (stride or max(1, n)))


def test_sentence_atoms_say_where_they_stand() -> None:
    atoms = sentence_atoms("It is long. It is red.")
    assert [(a.id, a.text, a.sentence) for a in atoms] == [
        ("a1", "It is long.", 1),
        ("a2", "It is red.", 2),
    ]
