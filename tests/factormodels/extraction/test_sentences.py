"""Sentences and chunks of a response."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factormodels.extraction.sentences import split_chunks, split_sentences
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
        "# The bridge\n\n1. It is long.\n- **Colour**: it is red\n* **It is old.**\n---\n"
        "(2) Trains cross it, 2**3 and 4**5 of them."
    )
    assert split_sentences(text) == (
        "The bridge",
        "It is long.",
        "Colour: it is red",
        "It is old.",
        "Trains cross it, 2**3 and 4**5 of them.",
    )


@pytest.mark.parametrize("text", ["", " \n\n ", "---", "..."])
def test_what_has_no_letter_has_no_sentence(text: str) -> None:
    assert split_sentences(text) == ()
    assert sentence_atoms(text) == ()


def test_a_long_line_is_split_like_its_sentences() -> None:
    # Longer than pysbd is given at once; every border falls between two sentences.
    sentences = tuple(f"The bridge number {i} is long and red and old." for i in range(300))
    assert split_sentences(" ".join(sentences)) == sentences


def test_a_long_line_without_any_sentence_loses_no_word() -> None:
    words = " ".join(f"word{i}" for i in range(2000))
    assert " ".join(split_sentences(words)).split() == words.split()
    assert "".join(split_sentences("x" * 9001)) == "x" * 9001


def test_an_unknown_language_is_named() -> None:
    refused("'xx'", split_sentences, "A b.", "xx")


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
